"""Convolutional LSTM (`tf.keras.layers.ConvLSTM2D`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import (
    as_data_format,
    as_window,
    channels_axis,
    known_dimension,
    layout,
    over_images,
)
from estimatorkit.layers.recurrent.recurrent_cells import LSTMCell
from estimatorkit.layers.recurrent.recurrent_kinds import CellRNN
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.convolution_functions import convolution
from estimatorkit.ops.nn.sliding_windows import output_length


class ConvLSTM2DCell(LSTMCell):
    """`LSTMCell` with convolutions of inputs and state (Shi et al. 2015).

    Inputs: `(batch, height, width, channels)`, of known size. States have the shape of the outputs.
    The convolution of the state has stride 1 and 'same' padding.

    Args:
        filters: the number of output channels.
        kernel_size: the window of both convolutions: a number, or two.
        strides, padding, data_format, dilation_rate: of the inputs' convolution; see `Conv2D`.
        activation: of the candidate and the memory.
        recurrent_activation: of the gates.
        use_bias, kernel_initializer, recurrent_initializer, bias_initializer, unit_forget_bias: see
            `LSTMCell`.
        kwargs: as for `SimpleRNNCell`.

    Raises:
        ValueError: an argument is invalid.
    """

    fixed = ("units", "implementation")
    loop = None

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            activation,
            recurrent_activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            unit_forget_bias,
            **kwargs,
        )
        if padding.lower() not in ("valid", "same"):
            raise ValueError(
                f"The `padding` argument must be one of 'valid', 'same'. Received: {padding}"
            )
        self.filters = int(filters)
        self.kernel_size = as_window(kernel_size, 2, "kernel_size")
        self.strides = as_window(strides, 2, "strides")
        self.padding = padding.lower()
        self.data_format = as_data_format(data_format)
        self.dilation_rate = as_window(dilation_rate, 2, "dilation_rate")
        self.gates_axis = channels_axis(self.data_format, 2)
        self._image: list[int] | None = None

    @property
    def state_size(self) -> Any:
        """The shape of the outputs, for the output and for the memory."""
        return [TensorShape(self._image), TensorShape(self._image)]

    @property
    def output_size(self) -> Any:
        """The shape of the outputs."""
        return TensorShape(self._image)

    def _kernel_shapes(self, input_shape: Any) -> tuple[list[int], list[int]]:
        first = self.data_format == "channels_first"
        channels = known_dimension(input_shape, 1 if first else -1, self)
        sizes = [known_dimension(input_shape, axis + (2 if first else 1), self) for axis in (0, 1)]
        parts = zip(sizes, self.kernel_size, self.strides, self.dilation_rate, strict=True)
        space = [
            output_length(size, window, stride, self.padding.upper(), rate) or 0
            for size, window, stride, rate in parts
        ]
        self._image = [self.filters, *space] if first else [*space, self.filters]
        inner, outer = self.kernel_size, 4 * self.filters
        return [*inner, channels, outer], [*inner, self.filters, outer]

    def project(self, inputs: Tensor) -> Tensor:
        """Convolution of the inputs, plus the bias."""
        form = layout(self.data_format)

        def convolve(images: Tensor) -> Tensor:
            found = convolution(
                images,
                self.kernel,
                self.padding.upper(),
                self.strides,
                data_format=form,
                dilations=self.dilation_rate,
            )
            return found if self.bias is None else nn.bias_add(found, self.bias, form)

        return over_images(convolve, inputs, 2)

    def recur(self, state: Tensor, weight: Tensor) -> Tensor:
        """Convolution of the previous output."""
        return convolution(state, weight, "SAME", data_format=layout(self.data_format))


class ConvLSTM2D(CellRNN):
    """An LSTM whose products are 2D convolutions (Shi et al. 2015; `tf.keras.layers.ConvLSTM2D`).

    Inputs: `(batch, steps, height, width, channels)`, of known height and width. The convolution of
    the state has stride 1 and 'same' padding. Variables are under the layer's own name.

    Args:
        filters: the number of output channels.
        kernel_size: the window of both convolutions: an int, or one for height and one for width.
        strides, padding, data_format, dilation_rate: of the inputs' convolution; see `Conv2D`.

    Other arguments are those of `LSTMCell`, whose `recurrent_activation` is 'hard_sigmoid' by
    default here, `activity_regularizer`, and those of `RNN`.
    """

    kind = ConvLSTM2DCell

    def _build_cell(self, shape: Any) -> None:
        self.cell._run_build(self.cell.build, shape)


__all__ = ["ConvLSTM2D", "ConvLSTM2DCell"]
