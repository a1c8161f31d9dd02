"""`Conv1D`, `Conv2D`, `Conv3D`, and the base of all layers with filters.

Variables are `kernel` `(*kernel_size, channels / groups, filters)` and `bias` `(filters,)`.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import (
    ConfiguredLayer,
    as_data_format,
    as_window,
    check_floating,
    known_dimension,
    layout,
    over_images,
)
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.convolution_functions import convolution

_INPUTS = """
Inputs: floats `(batch, *space, channels)`, or `(batch, channels, *space)` if `data_format` is
'channels_first'. The number of channels must be known.
"""
_RAISES = """
Raises:
    ValueError: an argument is invalid, or does not match the inputs.
"""
_ARGUMENTS = {
    "filters": "the number of output channels.",
    "kernel_size": "the size of the window: an int, or one per spatial dimension.",
    "strides": "the strides of the window, likewise.",
    "padding": "",
    "output_padding": "how much longer the outputs are than the shortest possible; less than\n"
    "    `strides`. By default 'same' gives length * strides.",
    "data_format": "'channels_last' or 'channels_first'; that of the backend by default.",
    "dilation_rate": "the dilation of the window, likewise.",
    "groups": "the number of channel groups, each with `filters / groups` filters.",
    "depth_multiplier": "the number of filters per channel.",
    "implementation": "must be 1.",
    "kwargs": "as for `Layer`.",
}
_PADDINGS = {
    ("valid",): "must be 'valid'.",
    ("valid", "same"): "'valid' or 'same'.",
    ("valid", "same", "causal"): "'valid', 'same', or 'causal': outputs do not depend on later "
    "inputs.",
}


class Filters(ConfiguredLayer):
    """What layers of filters share: the window, the layout of the data, a bias, an activation.

    Subclasses say the number of spatial dimensions, and have the arguments of `Conv2D`.
    """

    rank = 2
    paddings: tuple[str, ...] = ("valid", "same")
    filters: int
    kernel_size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str
    data_format: str
    dilation_rate: Any = 1

    def check_window(self) -> None:
        """Validates the arguments that all layers of filters have, and brings them into one form.

        Raises:
            ValueError: one is invalid.
        """
        self.kernel_size = as_window(self.kernel_size, self.rank, "kernel_size")
        self.strides = as_window(self.strides, self.rank, "strides")
        padding, self.padding = self.padding, str(self.padding).lower()
        if self.padding not in self.paddings:
            raise value_error(
                f"{type(self).__name__}: the `padding` argument must be one of its values",
                expected=", ".join(repr(each) for each in self.paddings),
                received=repr(padding),
            )
        self.data_format = as_data_format(self.data_format)
        self.dilation_rate = as_window(self.dilation_rate, self.rank, "dilation_rate")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise value_error(
                "`strides > 1` not supported in conjunction with `dilation_rate > 1`",
                received=f"strides={self.strides} and dilation_rate={self.dilation_rate}",
            )
        self.bias: Any = None
        self.input_spec = InputSpec(min_ndim=self.rank + 2)

    @property
    def channels_first(self) -> bool:
        """Whether the channel axis precedes the spatial axes."""
        return self.data_format == "channels_first"

    @property
    def window_padding(self) -> Any:
        """The padding in the operations' form."""
        if self.padding == "causal":
            return [(self.dilation_rate[0] * (self.kernel_size[0] - 1), 0)]
        return self.padding.upper()

    def read_channels(self, input_shape: Any) -> int:
        """Reads the inputs' channel count, and fixes it in the input spec."""
        check_floating(self)
        axis = -1 - self.rank if self.channels_first else -1
        problem = "The channel dimension of the inputs should be defined"
        channels = known_dimension(input_shape, axis, self, problem)
        self.input_spec = InputSpec(min_ndim=self.rank + 2, axes={axis: channels})
        return channels

    def add_bias(self, length: int) -> None:
        """Creates the bias if enabled."""
        if self.use_bias:
            self.bias = self.add_configured_weight("bias", [length])

    def finish(self, outputs: Tensor) -> Any:
        """Adds the bias and applies the activation."""
        if self.bias is not None:
            outputs = nn.bias_add(outputs, self.bias, layout(self.data_format))
        return self.activation(outputs)


class Conv(Filters):
    """What convolutions of 1, 2 and 3 dimensions share."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
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
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.check_window()
        self.filters = as_count(filters, "filters", self)
        self.groups = as_count(groups, "groups", self)
        if self.filters % self.groups:
            raise ValueError(
                "The number of filters must be evenly divisible by the number of groups. "
                f"Received: groups={groups}, filters={filters}."
            )

    def build(self, input_shape: Any) -> None:
        """Makes the kernel and the bias."""
        channels = self.read_channels(input_shape)
        if channels % self.groups:
            raise ValueError(
                "The number of input channels must be evenly divisible by the number of groups. "
                f"Received groups={self.groups}, but the input has {channels} channels "
                f"(full input shape is {input_shape})."
            )
        shape = [*self.kernel_size, channels // self.groups, self.filters]
        self.kernel = self.add_configured_weight("kernel", shape)
        self.add_bias(self.filters)
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        return over_images(self._convolve, inputs, self.rank)

    def _convolve(self, inputs: Tensor) -> Any:
        return self.finish(
            convolution(
                inputs,
                self.kernel,
                self.window_padding,
                self.strides,
                data_format=layout(self.data_format),
                dilations=self.dilation_rate,
                name=f"Conv{self.rank}D",
            )
        )


def as_count(value: Any, name: str, layer: Any) -> int:
    """A positive number.

    Raises:
        ValueError: it is not positive.
    """
    if int(value) < 1:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected a strictly positive value. "
            f"Received {name}={value} ({type(layer).__name__})."
        )
    return int(value)


def described(kind: type[Filters], first: str) -> None:
    """Writes the docstring of a layer of filters.

    Args:
        kind: the class.
        first: what it computes, and its source.
    """
    texts = {**_ARGUMENTS, "padding": _PADDINGS[kind.paddings]}
    names = list(inspect.signature(kind).parameters)
    shared = ", ".join(name for name in names if name not in texts)
    arguments = [f"{name}: {texts[name]}" for name in names if name in texts]
    arguments.insert(-1, textwrap.fill(f"{shared}: see `Dense`.", 90, subsequent_indent="    "))
    lines = textwrap.indent("\n".join(arguments), "    ")
    kind.__doc__ = f"{first}\n{_INPUTS}\nArgs:\n{lines}\n{_RAISES}"


class Conv1D(Conv):
    rank = 1
    paddings = ("valid", "same", "causal")


class Conv2D(Conv):
    rank = 2


class Conv3D(Conv):
    rank = 3


for _kind in (Conv1D, Conv2D, Conv3D):
    described(
        _kind,
        f"{_kind.rank}D convolution: activation(convolution(inputs, kernel) + bias) "
        f"(`tf.keras.layers.{_kind.__name__}`).",
    )

__all__ = ["Conv", "Conv1D", "Conv2D", "Conv3D", "Filters", "as_count", "described"]
