"""`ConfiguredLayer`: a layer whose config is derived from its constructor's arguments.

A constructor keeps each argument as an attribute of the same name, and `get_config` reads them
back. Initializers, regularizers, constraints and activations are recognized by the argument's
suffix. This module also holds helpers of image layers: windows and data formats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import activations, constraints, initializers, regularizers
from estimatorkit.layers.engine.arguments import argument_names, given_arguments
from estimatorkit.layers.engine.base import Layer
from estimatorkit.ops.array import array, joining

# The suffix of an argument's name, and the functions that read and serialize its value.
_KINDS = {
    "initializer": (initializers.get, initializers.serialize),
    "regularizer": (regularizers.get, regularizers.serialize),
    "constraint": (constraints.get, constraints.serialize),
    "activation": (activations.get, activations.serialize),
}
_CHANNELS = ("channels_first", "channels_last")
_image_data_format = "channels_last"


class ConfiguredLayer(Layer):
    """A `Layer` whose `get_config` is derived from its constructor's arguments."""

    activation: Any
    use_bias: bool

    def keep_arguments(self, values: Mapping[str, Any], without: Collection[str] = ()) -> None:
        """Stores a constructor's arguments as attributes; see `given_arguments` and `keep`."""
        self.keep(**given_arguments(values, without))

    def keep(self, **arguments: Any) -> None:
        """Stores arguments as attributes, resolving names of initializers and so on to objects."""
        for name, value in arguments.items():
            kind = _KINDS.get(name.rsplit("_", 1)[-1])
            setattr(self, name, value if kind is None else kind[0](value))

    def add_configured_weight(
        self, name: str, shape: Sequence[int], stem: str | None = None, **kwargs: Any
    ) -> Any:
        """Adds a variable with the stored initializer, regularizer and constraint.

        Args:
            name, shape, kwargs: as for `add_weight`.
            stem: the prefix of those arguments' names; `name` by default.
        """
        parts = ("initializer", "regularizer", "constraint")
        given: dict[str, Any] = {
            part: getattr(self, f"{stem or name}_{part}", None) for part in parts
        }
        return self.add_weight(name, list(shape), **given, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, as plain values."""
        config = super().get_config()
        for name in argument_names(type(self), Layer):
            if name not in config and name != "dynamic" and hasattr(self, name):
                kind = _KINDS.get(name.rsplit("_", 1)[-1])
                describe = plain if kind is None else kind[1]
                config[name] = describe(getattr(self, name))
        return config


def plain(value: Any) -> Any:
    """Converts a config value to its serializable form: numbers, strings, lists, tuples, dicts."""
    if isinstance(value, TensorShape):
        return None if value.dims is None else tuple(value.dims)
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value)(plain(each) for each in value)
    return value


# -- windows and data formats


def image_data_format() -> str:
    """The default data format, 'channels_last' or 'channels_first'.

    Source: `tf.keras.backend.image_data_format`.
    """
    return _image_data_format


def set_image_data_format(data_format: str) -> None:
    """Sets `image_data_format` (`tf.keras.backend.set_image_data_format`).

    Raises:
        ValueError: it is neither 'channels_last' nor 'channels_first'.
    """
    global _image_data_format
    _image_data_format = as_data_format(data_format)


def as_data_format(data_format: Any) -> str:
    """Validates a `data_format` argument; None means `image_data_format()`.

    Raises:
        ValueError: it is neither 'channels_last' nor 'channels_first'.
    """
    given = _image_data_format if data_format is None else str(data_format).lower()
    if given not in _CHANNELS:
        raise value_error(
            "The `data_format` argument must be one of 'channels_first', 'channels_last'",
            received=repr(data_format),
        )
    return given


def as_window(value: Any, rank: int, name: str, least: int = 1) -> tuple[int, ...]:
    """Normalizes a window, strides or dilations to one integer per dimension.

    Args:
        value: a number, or `rank` of them.
        name: the argument's name in errors.
        least: the smallest number allowed.

    Raises:
        ValueError: the count of numbers is wrong, or one is too small.
    """
    if isinstance(value, (int, np.integer)):
        numbers: tuple[Any, ...] = (value,) * rank
    else:
        numbers = tuple(value) if isinstance(value, Iterable) else ()
    if len(numbers) != rank or any(int(each) < least for each in numbers):
        raise value_error(
            f"The `{name}` argument must be a tuple of {rank} integers",
            expected=f"{rank} numbers of at least {least}, or one for all",
            received=repr(value),
        )
    return tuple(int(each) for each in numbers)


def channels_axis(data_format: str, rank: int) -> int:
    """The channel axis of a tensor with `rank` spatial dimensions."""
    return 1 if data_format == "channels_first" else rank + 1


def layout(data_format: str) -> str:
    """The operations' name of a data format."""
    return "NCHW" if data_format == "channels_first" else "NHWC"


def over_images(function: Callable[[Tensor], Tensor], inputs: Tensor, rank: int) -> Tensor:
    """Applies a function with `rank` spatial dimensions to a tensor with extra batch dimensions.

    `function` gets a tensor of `rank + 2` dimensions; the batch dimensions are flattened for the
    call.
    """
    given = inputs.shape.dims
    if given is None or len(given) <= rank + 2:
        return function(inputs)
    inner = given[-rank - 1 :]
    batch = len(given) - rank - 1
    shape = array.shape(inputs)
    flat = array.reshape(inputs, joining.concat([[-1], shape[batch:]], 0))
    flat.set_shape([None, *inner])
    outputs = function(flat)
    result = array.reshape(outputs, joining.concat([shape[:batch], array.shape(outputs)[1:]], 0))
    result.set_shape([*given[:batch], *(outputs.shape.dims or ())[1:]])
    return result


def known_dimension(shape: Any, axis: int, layer: Layer, problem: str | None = None) -> int:
    """The static length of an axis of the inputs, needed for a variable's shape.

    Raises:
        ValueError: the length is unknown; `problem` (TensorFlow's wording) is the first line.
    """
    dims = TensorShape(shape).dims
    length = None if dims is None or not -len(dims) <= axis < len(dims) else dims[axis]
    if length is None:
        raise value_error(
            problem or f"The dimension {axis} of the inputs to `{layer.name}` should be defined",
            received=str(shape),
            hint="give the placeholder a shape, or call set_shape",
        )
    return int(length)


def check_floating(layer: Layer) -> None:
    """Raises TypeError unless the layer's dtype is floating."""
    if not as_dtype(layer.compute_dtype).is_floating:
        raise type_error(
            f"Unable to build `{type(layer).__name__}` layer with non-floating point dtype",
            expected="float32, float64, float16 or bfloat16",
            received=layer.dtype,
            hint="cast(inputs, float32)",
        )


__all__ = [
    "ConfiguredLayer",
    "as_data_format",
    "as_window",
    "channels_axis",
    "check_floating",
    "image_data_format",
    "known_dimension",
    "layout",
    "over_images",
    "plain",
    "set_image_data_format",
]
