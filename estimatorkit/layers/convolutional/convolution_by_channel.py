"""Depthwise and separable convolutions: `DepthwiseConv1D/2D`, `SeparableConv1D/2D`.

Variables: `depthwise_kernel` `(*kernel_size, channels, depth_multiplier)`; separable ones have
`pointwise_kernel` `(1.., channels * depth_multiplier, filters)` too; `bias`.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.convolutional.convolution import Filters, as_count, described
from estimatorkit.layers.engine.configured import layout, over_images
from estimatorkit.ops.array import array
from estimatorkit.ops.nn.convolution_functions import convolution, depthwise_conv2d


class _ByChannel(Filters):
    """What depthwise and separable convolutions share: filters of each channel's own."""

    depth_multiplier: int

    def add_depthwise_kernel(self, channels: int) -> int:
        """Creates the depthwise kernel.

        Returns:
            The number of channels that come out.
        """
        self.depthwise_kernel = self.add_configured_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier], "depthwise"
        )
        return channels * self.depth_multiplier

    def convolve_channels(self, inputs: Tensor) -> Tensor:
        """Applies the depthwise convolution."""
        if self.rank == 2:
            return depthwise_conv2d(
                inputs,
                self.depthwise_kernel,
                self.strides,
                self.window_padding,
                data_format=layout(self.data_format),
                dilations=self.dilation_rate,
            )
        return convolution(
            inputs,
            array.reshape(self.depthwise_kernel, [*self.kernel_size, 1, -1]),
            self.window_padding,
            self.strides,
            data_format=layout(self.data_format),
            dilations=self.dilation_rate,
        )


class DepthwiseConv(_ByChannel):
    """What depthwise convolutions of 1 and 2 dimensions share."""

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.check_window()
        self.depth_multiplier = as_count(depth_multiplier, "depth_multiplier", self)

    def build(self, input_shape: Any) -> None:
        """Makes the kernel and the bias."""
        self.add_bias(self.add_depthwise_kernel(self.read_channels(input_shape)))
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        return self.finish(self.convolve_channels(inputs))


class SeparableConv(_ByChannel):
    """What separable convolutions of 1 and 2 dimensions share."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.check_window()
        self.filters = as_count(filters, "filters", self)
        self.depth_multiplier = as_count(depth_multiplier, "depth_multiplier", self)

    def build(self, input_shape: Any) -> None:
        """Makes the two kernels and the bias."""
        middle = self.add_depthwise_kernel(self.read_channels(input_shape))
        self.pointwise_kernel = self.add_configured_weight(
            "pointwise_kernel", [*(1,) * self.rank, middle, self.filters], "pointwise"
        )
        self.add_bias(self.filters)
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        return over_images(self._convolve, inputs, self.rank)

    def _convolve(self, inputs: Tensor) -> Any:
        return self.finish(
            convolution(
                self.convolve_channels(inputs),
                self.pointwise_kernel,
                "VALID",
                data_format=layout(self.data_format),
                name=f"separable_conv{self.rank}d",
            )
        )


class DepthwiseConv1D(DepthwiseConv):
    rank = 1
    paddings = ("valid", "same", "causal")


class DepthwiseConv2D(DepthwiseConv):
    rank = 2


class SeparableConv1D(SeparableConv):
    rank = 1
    paddings = ("valid", "same", "causal")


class SeparableConv2D(SeparableConv):
    rank = 2


for _kind in (DepthwiseConv1D, DepthwiseConv2D, SeparableConv1D, SeparableConv2D):
    described(
        _kind,
        f"{_kind.rank}D convolution of each channel with its own filters"
        + ", then a pointwise convolution" * issubclass(_kind, SeparableConv)
        + f" (`tf.keras.layers.{_kind.__name__}`).",
    )

__all__ = ["DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"]
