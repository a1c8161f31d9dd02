"""Premade models: `LinearModel` and `WideDeepModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.nest import map_structure
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.engine.model import Model
from estimatorkit.layers import activations, initializers, regularizers
from estimatorkit.layers.engine.configured import known_dimension
from estimatorkit.ops.math import elementwise, linalg
from estimatorkit.ops.nn import nn


class LinearModel(Model):
    """activation(sum of inputs x kernels + bias) (`tf.keras.experimental.LinearModel`).

    Inputs: floats `(batch, n)`, or a list, a tuple or a dict of such. Outputs: `(batch, units)`.
    Variables: a `kernel` `(n, units)` for each input, those of a dict by sorted key; `bias`
    `(units,)`.

    Args:
        units: the number of outputs.
        activation: a function or its name; none by default.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: objects or names.
        kernel_regularizer, bias_regularizer: functions of a variable giving a loss, or names.
        kwargs: as for `Layer`.
    """

    def __init__(
        self,
        units: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "zeros",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.bias: Any = None
        self._keys: list[Any] = []
        self._kernels: list[Any] = []

    def build(self, input_shape: Any = None) -> None:
        """Makes the kernels and the bias.

        Args:
            input_shape: a shape, or a list, a tuple or a dict of shapes.
        """
        shapes = _by_key(input_shape)
        self._keys = list(shapes)
        self._kernels = [
            self.add_weight(
                "kernel",
                [known_dimension(shape, -1, self), self.units],
                initializer=self.kernel_initializer,
                regularizer=self.kernel_regularizer,
            )
            for shape in shapes.values()
        ]
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
            )
        self.built = True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Tensor:
        """The outputs.

        Raises:
            ValueError: inputs are missing that the model was built for.
        """
        given = _by_key(inputs)
        missing = [key for key in self._keys if key not in given]
        if missing:
            raise value_error(
                "The `inputs` dictionary does not match the structure expected by the model",
                expected=self._keys,
                received=list(given),
            )
        result: Any = None
        for key, kernel in zip(self._keys, self._kernels, strict=True):
            values = elementwise.cast(given[key], self.compute_dtype)
            part = linalg.matmul(values, kernel)
            result = part if result is None else result + part
        if self.bias is not None:
            result = nn.bias_add(result, self.bias)
        output: Tensor = self.activation(result)
        return output

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self._policy_config(),
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializers.serialize(self.kernel_initializer),
            "bias_initializer": initializers.serialize(self.bias_initializer),
            "kernel_regularizer": regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": regularizers.serialize(self.bias_regularizer),
        }


def _by_key(structure: Any) -> dict[Any, Any]:
    """Inputs or shapes by key or position."""
    if isinstance(structure, Mapping):
        return {key: structure[key] for key in sorted(structure)}
    is_shape = isinstance(structure, TensorShape)
    several = isinstance(structure, (list, tuple)) and not is_shape
    if several and not all(each is None or isinstance(each, int) for each in structure):
        return dict(enumerate(structure))
    return {0: structure}


class WideDeepModel(Model):
    """The sum of a linear model and a network (`tf.keras.experimental.WideDeepModel`).

    Inputs: those of both models in a list or tuple of two, or one structure for both. Cheng et al.
    2016, "Wide & Deep Learning for Recommender Systems".

    Args:
        linear_model: most often a `LinearModel`.
        dnn_model: a model with outputs of the same structure.
        activation: a function of the sum, or its name; none by default.
        kwargs: as for `Layer`.

    Example:
        ```python
        wide = keras.experimental.LinearModel()
        deep = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
        model = keras.experimental.WideDeepModel(wide, deep)
        model.compile(["ftrl", "adam"], "mse")
        ```
    """

    _untracked = Model._untracked | {"_linear_optimizer"}

    def __init__(
        self, linear_model: Any, dnn_model: Any, activation: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.linear_model = linear_model
        self.dnn_model = dnn_model
        self.activation = activations.get(activation)
        self._linear_optimizer: Any = None

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs."""
        two = isinstance(inputs, (list, tuple)) and len(inputs) == 2
        of_linear, of_network = inputs if two else (inputs, inputs)
        linear = self.linear_model(of_linear)
        deep = self.dnn_model(of_network, training=training)
        return map_structure(lambda one, other: self.activation(one + other), linear, deep)

    def compile(self, optimizer: Any = "rmsprop", *args: Any, **kwargs: Any) -> None:
        """See `Model.compile`.

        Args:
            optimizer: also a list of two: that of the linear model, and that of the network, which
                `optimizer` then is.
            args, kwargs: as for `Model.compile`.
        """
        from estimatorkit.keras import optimizers

        self._linear_optimizer = None
        if isinstance(optimizer, (list, tuple)):
            linear, optimizer = optimizer
            with self.graph.as_default():
                self._linear_optimizer = optimizers.get(linear)
        super().compile(optimizer, *args, **kwargs)

    def training_updates(self, loss: Tensor) -> list[Any]:
        """The operations of a training step."""
        if self._linear_optimizer is None:
            return super().training_updates(loss)
        return [
            *self._updates_of(self._linear_optimizer, loss, self.linear_model.trainable_weights),
            *self._updates_of(self.optimizer, loss, self.dnn_model.trainable_weights),
        ]


__all__ = ["LinearModel", "WideDeepModel"]
