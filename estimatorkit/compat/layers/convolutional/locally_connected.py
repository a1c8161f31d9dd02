"""Convolutions whose filters differ from place to place: `LocallyConnected1D`,
`LocallyConnected2D`.

Variables: `kernel` `(places, window x channels, filters)`, `bias` `(*places, filters)`. A window's
elements are in the order of the inputs: channels last, or first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.convolutional.convolution import Filters, as_count, described
from estimatorkit.layers.engine.configured import known_dimension
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.linalg.products import einsum


def local_convolution(
    inputs: Any,
    kernel: Any,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    places: Sequence[int],
    channels_first: bool,
) -> Tensor:
    """Convolution with unshared filters.

    Args:
        inputs: `(batch, *space, channels)`, or channels first.
        kernel: `(places, window x channels, filters)`; see the module.
        kernel_size, strides: of the windows.
        places: how many there are in each dimension.
        channels_first: whether channels come before space, in inputs and outputs.
    """
    x = convert_to_tensor(inputs)
    last = len(kernel_size) + 1
    if channels_first:
        x = array.transpose(x, [0, *range(2, last + 1), 1])
    windows = [
        x[
            (
                slice(None),
                *(
                    slice(begin, begin + step * (count - 1) + 1, step)
                    for begin, step, count in zip(start, strides, places, strict=True)
                ),
            )
        ]
        for start in itertools.product(*(range(each) for each in kernel_size))
    ]
    stacked = joining.stack(windows, -1 if channels_first else -2)
    filters = convert_to_tensor(kernel)
    shape = filters.shape.as_list()
    outputs = einsum("bpi,pif->bpf", array.reshape(stacked, [-1, *shape[:2]]), filters)
    outputs = array.reshape(outputs, [-1, *places, shape[2]])
    return array.transpose(outputs, [0, last, *range(1, last)]) if channels_first else outputs


def spread_bias(bias: Any, channels_first: bool) -> Tensor:
    """Reshapes a bias `(*places, channels)` to broadcast with the outputs.

    Where channels come first, its numbers are taken in their order as `(channels, *places)`, as
    TensorFlow does: it does not transpose them.
    """
    added = convert_to_tensor(bias)
    *places, channels = added.shape.as_list()
    return array.reshape(
        added, [1, channels, *places] if channels_first else [1, *places, channels]
    )


class LocallyConnected(Filters):
    """What both share."""

    paddings = ("valid",)

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.check_window()
        if implementation != 1:
            raise value_error(
                f"{type(self).__name__}: implementation={implementation} is not there",
                expected="implementation=1, the default: the numbers are the same",
            )
        self.filters = as_count(filters, "filters", self)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def build(self, input_shape: Any) -> None:
        """Makes the kernel and the bias."""
        channels = self.read_channels(input_shape)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes=self.input_spec.axes)
        at = 2 if self.channels_first else 1
        lengths = [known_dimension(input_shape, at + axis, self) for axis in range(self.rank)]
        self._places = [
            (length - size) // step + 1
            for length, size, step in zip(lengths, self.kernel_size, self.strides, strict=True)
        ]
        if min(self._places) < 1:
            raise value_error(
                f"{type(self).__name__}: the window is longer than the inputs",
                expected=f"at least {self.kernel_size}",
                received=f"{input_shape}",
            )
        taken = math.prod(self.kernel_size) * channels
        self.kernel = self.add_configured_weight(
            "kernel", [math.prod(self._places), taken, self.filters]
        )
        if self.use_bias:
            self.bias = self.add_configured_weight("bias", [*self._places, self.filters])
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        outputs = local_convolution(
            inputs,
            self.kernel,
            self.kernel_size,
            self.strides,
            self._places,
            channels_first=self.channels_first,
        )
        if self.bias is not None:
            outputs = outputs + spread_bias(self.bias, self.channels_first)
        return self.activation(outputs)


class LocallyConnected1D(LocallyConnected):
    rank = 1


class LocallyConnected2D(LocallyConnected):
    rank = 2


for _kind in (LocallyConnected1D, LocallyConnected2D):
    described(
        _kind,
        f"{_kind.rank}D convolution with separate filters for each position "
        f"(`tf.keras.layers.{_kind.__name__}`).",
    )

__all__ = ["LocallyConnected1D", "LocallyConnected2D", "local_convolution", "spread_bias"]
