"""Layers of products and tables: `Dense`, `Embedding`, and what they share."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import explain
from estimatorkit.core.ops import elementwise, indexing, linalg, nn
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import activations, constraints, initializers, regularizers
from estimatorkit.layers.base import Layer
from estimatorkit.layers.input_spec import InputSpec


def known_dimension(shape: Any, axis: int, layer: Layer) -> int:
    """The length of an axis of the inputs, which a variable's shape needs.

    Raises:
        ValueError: it is unknown.
    """
    dims = TensorShape(shape).dims
    length = None if dims is None or not -len(dims) <= axis < len(dims) else dims[axis]
    if length is None:
        raise ValueError(
            explain(
                f"The dimension {axis} of the inputs to `{layer.name}` should be defined",
                received=str(shape),
                hint="give the placeholder a shape, or call set_shape",
            )
        )
    return int(length)


class Dense(Layer):
    """activation(inputs x kernel + bias) (`tf.keras.layers.Dense`).

    Inputs: floats `(..., n)`, of at least 2 dimensions, n known. Outputs: `(..., units)`.
    Variables: `kernel` `(n, units)`, `bias` `(units,)`.

    Args:
        units: the number of outputs.
        activation: a function or its name; none by default.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: objects or names.
        kernel_regularizer, bias_regularizer: functions of the variable giving a loss, or names.
        activity_regularizer: a function of the outputs giving a loss.
        kernel_constraint, bias_constraint: functions that optimizers apply to the new value.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `units` is not positive.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activity_regularizer=regularizers.get(activity_regularizer),
            **kwargs,
        )
        self.units = int(units)
        if self.units < 1:
            raise ValueError(
                f"Received an invalid value for `units`, expected a positive integer. "
                f"Received: units={units}"
            )
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.supports_masking = True
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """Makes the kernel and the bias."""
        _check_floating(self)
        width = known_dimension(input_shape, -1, self)
        self.input_spec = InputSpec(min_ndim=2, axes={-1: width})
        self.kernel = self.add_weight(
            "kernel",
            [width, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        super().build(input_shape)

    def call(self, inputs: Any) -> Tensor:
        """The outputs."""
        if not inputs.dtype.is_floating:
            inputs = elementwise.cast(inputs, self.compute_dtype)
        outputs = linalg.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = nn.bias_add(outputs, self.bias)
        result: Tensor = self.activation(outputs)
        return result

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            **weight_config(self, "kernel", "bias"),
            "activity_regularizer": regularizers.serialize(self.activity_regularizer),
        }


def weight_config(layer: Any, *names: str) -> dict[str, Any]:
    """The initializer, regularizer and constraint of a layer's variables, for `get_config`.

    Args:
        layer: the layer; `<name>_initializer` and so on are its attributes.
        names: of the variables.
    """
    kinds = (
        ("initializer", initializers.serialize),
        ("regularizer", regularizers.serialize),
        ("constraint", constraints.serialize),
    )
    return {
        f"{name}_{kind}": serialize(getattr(layer, f"{name}_{kind}"))
        for kind, serialize in kinds
        for name in names
        if hasattr(layer, f"{name}_{kind}")
    }


def _check_floating(layer: Layer) -> None:
    if not as_dtype(layer.compute_dtype).is_floating:
        raise TypeError(
            explain(
                f"Unable to build `{type(layer).__name__}` layer with non-floating point dtype",
                expected="float32, float64, float16 or bfloat16",
                received=layer.dtype,
                hint="cast(inputs, float32)",
            )
        )


class Embedding(Layer):
    """A table of vectors, one a row, looked up by integers (`tf.keras.layers.Embedding`).

    Inputs: integers in [0, input_dim) of any shape. Outputs: floats `(..., output_dim)`. Variables:
    `embeddings` `(input_dim, output_dim)`. Its gradient is `IndexedSlices`: optimizers change the
    rows that were looked up.

    Args:
        input_dim: the number of rows.
        output_dim: the length of a vector.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: see `Dense`.
        activity_regularizer: see `Dense`.
        mask_zero: whether 0 is padding, which is masked.
        input_length: the number of integers of an example, where it is fixed.
        sparse: must be False: outputs are dense.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a dimension is not positive, or outputs should be sparse.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: int | None = None,
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        if "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            if input_length is not None:
                lengths = (
                    input_length if isinstance(input_length, (list, tuple)) else [input_length]
                )
                kwargs["input_shape"] = tuple(lengths)
            else:
                kwargs["input_shape"] = (None,)
        if input_dim <= 0 or output_dim <= 0:
            raise ValueError(
                "Both `input_dim` and `output_dim` should be positive, Received input_dim = "
                f"{input_dim} and output_dim = {output_dim}"
            )
        if sparse:
            raise ValueError("Embedding: sparse=True is not there; outputs are dense")
        kwargs["autocast"] = False
        super().__init__(activity_regularizer=regularizers.get(activity_regularizer), **kwargs)
        self.input_dim = int(input_dim)
        self.output_dim = int(output_dim)
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = constraints.get(embeddings_constraint)
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero
        self.input_length = input_length
        self.sparse = sparse

    @property
    def _infers_dtype(self) -> bool:
        return False

    def build(self, input_shape: Any = None) -> None:
        """Makes the table."""
        self.embeddings = self.add_weight(
            "embeddings",
            [self.input_dim, self.output_dim],
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
            experimental_autocast=False,
        )
        super().build(input_shape)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Which integers are not 0, where `mask_zero`."""
        if not self.mask_zero:
            return None
        return elementwise.not_equal(inputs, elementwise.cast(0, inputs.dtype))

    def call(self, inputs: Any) -> Tensor:
        """The vectors."""
        if not inputs.dtype.is_integer:
            inputs = elementwise.cast(inputs, "int32")
        rows = indexing.gather(self.embeddings, inputs)
        wanted = as_dtype(self.compute_dtype)
        return rows if rows.dtype == wanted else elementwise.cast(rows, wanted)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            **weight_config(self, "embeddings"),
            "activity_regularizer": regularizers.serialize(self.activity_regularizer),
            "mask_zero": self.mask_zero,
            "input_length": self.input_length,
            "sparse": self.sparse,
        }


__all__ = ["Dense", "Embedding", "known_dimension", "weight_config"]
