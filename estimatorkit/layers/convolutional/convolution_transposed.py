"""Transposed convolutions ("deconvolution"): `Conv1DTranspose`, `Conv2DTranspose`,
`Conv3DTranspose`.

Variables: `kernel` `(*kernel_size, filters, channels)`, `bias` `(filters,)`.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.convolutional.convolution import Filters, as_count, described
from estimatorkit.layers.engine.configured import as_window, channels_axis, layout
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.nn.transposed_convolution import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
)

_FUNCTIONS: dict[int, Any] = {1: conv1d_transpose, 2: conv2d_transpose, 3: conv3d_transpose}


class ConvTranspose(Filters):
    """What transposed convolutions of 1, 2 and 3 dimensions share."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
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
        self.output_padding = (
            None
            if output_padding is None
            else as_window(output_padding, self.rank, "output_padding", least=0)
        )
        for step, extra in zip(self.strides, self.output_padding or (), strict=False):
            if extra >= step:
                raise value_error(
                    "Strides must be greater than output padding",
                    received=f"strides={self.strides}, output_padding={self.output_padding}",
                )
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def build(self, input_shape: Any) -> None:
        """Makes the kernel and the bias."""
        channels = self.read_channels(input_shape)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes=self.input_spec.axes)
        self.kernel = self.add_configured_weight(
            "kernel", [*self.kernel_size, self.filters, channels]
        )
        self.add_bias(self.filters)
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        at = 2 if self.channels_first else 1
        known, shape = inputs.shape.as_list(), None
        lengths: list[Any] = []
        for axis in range(self.rank):
            length: Any = known[at + axis]
            if length is None:
                shape = array.shape(inputs) if shape is None else shape
                length = shape[at + axis]
            lengths.append(self._output_length(length, axis))
        batch = known[0] if known[0] is not None else array.shape(inputs)[0]
        sizes = [batch, *lengths]
        sizes.insert(channels_axis(self.data_format, self.rank), self.filters)
        outputs = _FUNCTIONS[self.rank](
            inputs,
            self.kernel,
            sizes if all(isinstance(each, int) for each in sizes) else joining.stack(sizes),
            self.strides,
            self.padding.upper(),
            layout(self.data_format),
            dilations=self.dilation_rate,
        )
        outputs.set_shape([each if isinstance(each, int) else None for each in sizes])
        return self.finish(outputs)

    def _output_length(self, length: Any, axis: int) -> Any:
        """The length of the outputs, as the convolution backwards has it, or as
        `output_padding` says.
        """
        step, dilation = self.strides[axis], self.dilation_rate[axis]
        reach = self.kernel_size[axis] + (self.kernel_size[axis] - 1) * (dilation - 1)
        if self.output_padding is None:
            if self.padding == "same":
                return length * step
            return length * step + max(reach - step, 0)
        pad = reach // 2 if self.padding == "same" else 0
        return (length - 1) * step + reach - 2 * pad + self.output_padding[axis]


class Conv1DTranspose(ConvTranspose):
    rank = 1


class Conv2DTranspose(ConvTranspose):
    rank = 2


class Conv3DTranspose(ConvTranspose):
    rank = 3


for _kind in (Conv1DTranspose, Conv2DTranspose, Conv3DTranspose):
    described(
        _kind,
        f"{_kind.rank}D transposed convolution, with a bias and an activation "
        f"(`tf.keras.layers.{_kind.__name__}`).",
    )

__all__ = ["Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"]
