"""Layers of one function: `Activation`, `Lambda`, `Masking`, `Identity`, and activations with
arguments or variables of their own (`ReLU`, `LeakyReLU`, `PReLU`, ...).
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import activations, serialization
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.configured import ConfiguredLayer, known_dimension
from estimatorkit.layers.engine.input_spec import InputSpec, as_shapes
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn


class Identity(Layer):
    """Returns its inputs unchanged (`tf.keras.layers.Identity`)."""


class Activation(ConfiguredLayer):
    """Applies an activation function (`tf.keras.layers.Activation`).

    Args:
        activation: a function or its name.
        kwargs: as for `Layer`.
    """

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.keep(activation=activation)
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        return self.activation(inputs)


class Masking(ConfiguredLayer):
    """Masks the steps whose values all equal `mask_value`, and sets them to 0
    (`tf.keras.layers.Masking`).

    Args:
        mask_value: the value.
        kwargs: as for `Layer`.
    """

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.mask_value = mask_value

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Tensor:
        """Returns bool `(batch, steps)`, False for masked steps."""
        return reduce.reduce_any(elementwise.not_equal(inputs, self.mask_value), -1)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        counts = reduce.reduce_any(elementwise.not_equal(inputs, self.mask_value), -1, True)
        return inputs * elementwise.cast(counts, inputs.dtype)


_functions = serialization.Registry("function of a Lambda layer", {})
_in_use: dict[str, weakref.WeakSet[Any]] = {}  # the functions of this process's layers, by name


def _note_use(function: Any) -> None:
    name = getattr(function, "__name__", "<lambda>")
    if inspect.isfunction(function) and name != "<lambda>":
        _in_use.setdefault(name, weakref.WeakSet()).add(function)


def _found(name: str, custom_objects: Mapping[str, Any] | None) -> Any:
    """The function of a name: the user's, or else that of a layer of this process.

    Raises:
        ValueError: there is none, or layers have different ones.
    """
    if serialization.get_registered_object(name, custom_objects) is None:
        used = list(_in_use.get(name, ()))
        if used and all(_does_the_same(each, used[0]) for each in used):
            return used[0]
    return _functions.find(name, custom_objects)


def _does_the_same(one: Any, other: Any) -> bool:
    """Whether two functions come from one `def`, with equal defaults and the same variables."""
    return (
        one.__code__ is other.__code__
        and one.__globals__ is other.__globals__
        and one.__defaults__ == other.__defaults__
        and one.__kwdefaults__ == other.__kwdefaults__
        and [id(cell.cell_contents) for cell in one.__closure__ or ()]
        == [id(cell.cell_contents) for cell in other.__closure__ or ()]
    )


class Lambda(ConfiguredLayer):
    """Wraps a Python function as a layer (`tf.keras.layers.Lambda`).

    The layer has no variables, unless they are its attributes. Its config contains only the
    function's name: a function that is defined with `def` can be saved, and is found again where it
    is passed in `custom_objects`, registered with `keras.utils.register_keras_serializable`, or
    used by a layer of this process. A function without a name is in the config itself, for copies;
    no file is written with it: code is never written to a file, or run from one.

    Args:
        function: called with the inputs; it may also take `mask` and `training`.
        output_shape: the shape of the outputs without the batch, or a function that returns it
            given the shape of the inputs. By default it is inferred from a call.
        mask: a mask of the outputs, or a function that returns it given the inputs and their mask.
        arguments: further keyword arguments of the function.
        kwargs: as for `Layer`.

    Raises:
        ValueError: the function creates variables.
    """

    _untracked = ConfiguredLayer._untracked | {"arguments"}

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.function: Callable[..., Any] = _functions.get(function)
        _note_use(self.function)
        self._output_shape = output_shape
        self.mask = mask
        self.arguments = dict(arguments or {})
        self.supports_masking = mask is not None

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        """The outputs."""
        taken = inspect.signature(self.function).parameters
        given = {"mask": mask, "training": training}
        found = {key: value for key, value in given.items() if key in taken}
        before = len(_variables())
        outputs = self.function(inputs, **found, **self.arguments)
        self._check_no_more(_variables()[before:])
        return outputs

    def _check_no_more(self, created: Sequence[Any]) -> None:
        own = self.weights
        lost = [each for each in created if not any(each is one for one in own)]
        if lost:
            listed = "\n".join(f"  {each}" for each in lost)
            raise ValueError(
                f"The following Variables were created within a Lambda layer ({self.name})\n"
                f"but are not tracked by said layer:\n{listed}\n"
                "The layer cannot safely ensure proper Variable reuse across multiple calls: "
                "create them before, or write a subclass of Layer."
            )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Computes the outputs' mask."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Infers the outputs' shape from the inputs'."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return as_shapes(self._output_shape(input_shape))
        batch = flatten([as_shapes(input_shape)])[0][0]
        return map_structure(
            lambda shape: TensorShape([batch, *shape.as_list()]), as_shapes(self._output_shape)
        )

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, and under Keras's names which of them are functions."""
        mask = {"mask": _described(self.mask), "mask_type": _kind(self.mask)}
        return {
            **super().get_config(),
            "function": _described(self.function),
            "function_type": _kind(self.function),
            "output_shape": _described(self._output_shape),
            "output_shape_type": _kind(self._output_shape),
            **(mask if self.mask is not None else {}),
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Lambda:
        """Creates a layer from the result of `get_config`.

        Raises:
            ValueError: a function's name is unknown.
        """
        named = {key: value for key, value in config.items() if key not in _NOT_ARGUMENTS}
        for key in ("function", "output_shape", "mask"):
            if isinstance(named.get(key), str):
                named[key] = _found(named[key], custom_objects)
        return cls(**named)


_NOT_ARGUMENTS = frozenset(
    ("module", "function_type", "output_shape_type", "output_shape_module", "mask_type")
)


def _variables() -> list[Any]:
    found: list[Any] = get_default_graph().outermost.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
    return found


def _described(value: Any) -> Any:
    """A function's registered name, or its own; the function if it has none."""
    if not callable(value):
        return value
    known = serialization.get_custom_objects()
    name = next((name for name, each in known.items() if each is value), None)
    name = name or getattr(value, "__name__", None)
    return value if name in (None, "<lambda>") else str(name)


def _kind(value: Any) -> str:
    if not callable(value):
        return "raw"
    return "lambda" if getattr(value, "__name__", None) == "<lambda>" else "function"


# -- activations


class ReLU(ConfiguredLayer):
    """max(x, 0) and its variants, see `activations.relu` (`tf.keras.layers.ReLU`).

    Args:
        max_value: the largest output; None for no limit.
        negative_slope: the slope below `threshold`.
        threshold: below it, outputs are negative_slope * (x - threshold).
        kwargs: as for `Layer`.

    Raises:
        ValueError: an argument is negative.
    """

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        given = {
            "max_value": 0.0 if max_value is None else max_value,
            "negative_slope": negative_slope,
            "threshold": threshold,
        }
        for name, value in given.items():
            if value is None or value < 0:
                raise ValueError(
                    f"{name} of a ReLU layer cannot be a negative value. Received: {value}"
                )
        self.supports_masking = True
        self.max_value = None if max_value is None else float(max_value)
        self.negative_slope = float(negative_slope)
        self.threshold = float(threshold)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class _WithSlope(ConfiguredLayer):
    """An activation with a number `alpha`."""

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if alpha is None:
            raise ValueError(
                f"The alpha value of a {type(self).__name__} layer cannot be None, expecting a "
                "float"
            )
        self.supports_masking = True
        self.alpha = float(alpha)


class LeakyReLU(_WithSlope):
    """x if x > 0, else alpha * x (`tf.keras.layers.LeakyReLU`).

    Args:
        alpha: the slope below 0.
        kwargs: as for `Layer`.
    """

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(alpha, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return nn.leaky_relu(inputs, self.alpha)


class ELU(_WithSlope):
    """x if x > 0, else alpha * (exp(x) - 1) (`tf.keras.layers.ELU`).

    Args:
        alpha: minus the limit for very negative x.
        kwargs: as for `Layer`.
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(alpha, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return activations.elu(inputs, self.alpha)


class ThresholdedReLU(ConfiguredLayer):
    """x if x > theta, else 0 (`tf.keras.layers.ThresholdedReLU`).

    Args:
        theta: the threshold.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `theta` is negative.
    """

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if theta is None or theta < 0:
            raise ValueError(
                f"Theta of a Thresholded ReLU layer cannot be None or negative. Received: {theta}"
            )
        self.supports_masking = True
        self.theta = float(theta)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return inputs * elementwise.cast(inputs > self.theta, inputs.dtype)


class PReLU(ConfiguredLayer):
    """x if x > 0, else alpha * x, where `alpha` is learned (He et al. 2015;
    `tf.keras.layers.PReLU`).

    Args:
        alpha_initializer, alpha_regularizer, alpha_constraint: see `Dense`.
        shared_axes: the axes, counted from 1, along which `alpha` is shared.
        kwargs: as for `Layer`.

    Raises:
        ValueError: the length of an axis that is not shared is unknown.
    """

    def __init__(
        self,
        alpha_initializer: Any = "zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.supports_masking = True
        given = shared_axes if isinstance(shared_axes, (list, tuple)) else [shared_axes]
        self.shared_axes = None if shared_axes is None else [int(each) for each in given]

    def build(self, input_shape: Any) -> None:
        """Makes the slopes."""
        shared = self.shared_axes or []
        axes = range(1, input_shape.rank)
        shape = [1 if each in shared else known_dimension(input_shape, each, self) for each in axes]
        self.alpha = self.add_configured_weight("alpha", shape)
        lengths = {each: shape[each - 1] for each in axes if each not in shared}
        self.input_spec = InputSpec(ndim=input_shape.rank, axes=lengths)
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        result: Tensor = nn.relu(inputs) - self.alpha * nn.relu(-inputs)
        return result


class Softmax(ConfiguredLayer):
    """`nn.softmax` along one or more axes (`tf.keras.layers.Softmax`).

    Args:
        axis: an axis, or a list of axes over which outputs jointly sum to 1.
        kwargs: as for `Layer`.
    """

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis

    def call(self, inputs: Tensor, mask: Any = None) -> Tensor:
        """The outputs.

        Args:
            inputs: floats.
            mask: bool, broadcasts with the inputs; outputs are 0 where it is False.
        """
        if mask is not None:
            least = -32752.0 if inputs.dtype.name == "float16" else -1e9
            inputs = inputs + (1.0 - elementwise.cast(mask, inputs.dtype)) * least
        if isinstance(self.axis, list):
            if len(self.axis) > 1:
                return elementwise.exp(inputs - reduce.reduce_logsumexp(inputs, self.axis, True))
            return nn.softmax(inputs, self.axis[0])
        return nn.softmax(inputs, self.axis)


__all__ = [
    "Activation",
    "ELU",
    "Identity",
    "Lambda",
    "LeakyReLU",
    "Masking",
    "PReLU",
    "ReLU",
    "Softmax",
    "ThresholdedReLU",
]
