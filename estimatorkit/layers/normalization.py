"""Layers that normalize: `BatchNormalization`, `LayerNormalization`, `GroupNormalization`,
`UnitNormalization`.

All compute in float32 at least. Batch normalization moves its averages by operations that a
training step must run: `add_update` puts them into UPDATE_OPS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variable_options import VariableAggregation
from estimatorkit.layers.engine.configured import ConfiguredLayer, check_floating, known_dimension
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.layers.engine.scoped import ScopedLayer
from estimatorkit.layers.noise import known_training
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.normalization import weighted_moments


class _ScaleAndShift(ConfiguredLayer):
    """A normalization with variables `gamma` and `beta`."""

    gamma: Any
    beta: Any
    axis: Any
    epsilon: float
    center: bool
    scale: bool

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def add_scale_and_shift(self, shape: Sequence[int], **kwargs: Any) -> None:
        """Creates `gamma` and `beta` if enabled."""
        add = self.add_configured_weight
        self.gamma = add("gamma", shape, **kwargs) if self.scale else None
        self.beta = add("beta", shape, **kwargs) if self.center else None


def _wide(inputs: Tensor) -> Tensor:
    """Casts 16-bit floats to float32, since their squares overflow or round."""
    return elementwise.cast(inputs, "float32") if inputs.dtype.size < 4 else inputs


def _read(variable: Any, dtype: Any) -> Any:
    return None if variable is None else elementwise.cast(variable, dtype)


def _positive_axes(axis: Any, input_shape: Any, layer: ConfiguredLayer) -> list[int]:
    """Converts axes to nonnegative numbers.

    Raises:
        ValueError: the rank is unknown, there is no such axis, or one is named twice.
    """
    rank = input_shape.rank
    axes = [int(each) for each in (axis if isinstance(axis, (list, tuple)) else [axis])]
    found = [] if rank is None else [each % rank for each in axes if -rank <= each < rank]
    if len(found) != len(axes) or len(set(found)) != len(found):
        raise value_error(
            f"Invalid value for `axis` argument of {type(layer).__name__}",
            expected=f"different axes of {rank} dimensions",
            received=f"axis={axis}, inputs of shape {input_shape}",
        )
    return found


_REFUSED = ("renorm", "virtual_batch_size", "adjustment", "synchronized")


class BatchNormalization(_ScaleAndShift):
    """Normalizes each channel to mean 0 and variance 1, then scales and shifts it (Ioffe & Szegedy
    2015; `tf.keras.layers.BatchNormalization`).

    In training, the mean and variance are those of the batch (under a strategy, of each replica's
    own batch), and `updates` moves `moving_mean` and `moving_variance` towards them; otherwise they
    are the moving averages. As in TensorFlow's fused kernel, inputs of rank 4 or 5 update
    `moving_variance` with the unbiased variance, unless `fused` is False. If `trainable` is False,
    the layer always uses the moving averages, except in `tf.layers`.

    Variables: `gamma`, `beta`, `moving_mean`, `moving_variance`, all `(channels,)`.

    Args:
        axis: the axis of the channels, or a list of axes.
        momentum: the fraction of their old value that moving averages keep at each step.
        epsilon: added to the variance.
        center, scale: whether there is a `beta` (shift), a `gamma` (scale).
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer:
            of the variables.
        beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: see `Dense`.
        renorm, virtual_batch_size, adjustment, synchronized: not supported.
        renorm_clipping, renorm_momentum: accepted for compatibility only; they belong to
            renorm.
        fused: see above; it has no other effect.
        kwargs: as for `Layer`.

    Raises:
        ValueError: the number of channels is unknown, or an argument is not supported.
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        synchronized: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals(), (*_REFUSED, "renorm_clipping", "renorm_momentum"))
        given = (renorm, virtual_batch_size, adjustment, synchronized)
        for refused, value in zip(_REFUSED, given, strict=True):
            if value:
                raise value_error(f"batch_normalization: {refused} is not supported")
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis
        self.momentum = momentum
        self.fused = fused

    def build(self, input_shape: Any) -> None:
        """Makes the scale, the shift and the moving averages."""
        check_floating(self)
        self._axes = _positive_axes(self.axis, input_shape, self)
        problem = "Input has undefined `axis` dimension"
        lengths = {each: known_dimension(input_shape, each, self, problem) for each in self._axes}
        self.input_spec = InputSpec(ndim=input_shape.rank, axes=lengths)
        # Several axes: the variables have the inputs' rank, so that they broadcast.
        shape = list(lengths.values())
        if len(lengths) > 1:
            shape = [lengths.get(each, 1) for each in range(input_shape.rank)]
        # At least float32, whatever dtype the layer computes in.
        wide = "float32" if self.dtype in ("float16", "bfloat16") else self.dtype
        kept: dict[str, Any] = {"dtype": wide, "experimental_autocast": False}
        self.add_scale_and_shift(shape, **kept)
        add, kept["trainable"] = self.add_configured_weight, False
        kept["aggregation"], kept["partitioner"] = VariableAggregation.MEAN, False
        self.moving_mean = add("moving_mean", shape, **kept)
        self.moving_variance = add("moving_variance", shape, **kept)
        super().build(input_shape)

    def call(self, inputs: Tensor, training: Any = None, mask: Any = None) -> Tensor:
        """The outputs.

        Args:
            inputs: floats with a known number of channels.
            training: whether this is training: a bool, or a scalar bool tensor.
            mask: bool `(batch, steps)`: which steps count in the batch's moments; all by default.
        """
        if not self.trainable and not isinstance(self, ScopedLayer):
            training = False
        known = known_training(training)
        x = _wide(inputs)
        mean, variance = self.moving_mean.value(), self.moving_variance.value()
        if known is not False:
            found, spread = self._move(x, mask, None if known else training)
            if known is None:
                training = elementwise.cast(training, "bool")
                found = indexing.where(training, found, mean)
                spread = indexing.where(training, spread, variance)
            mean, variance = found, spread
        mean, variance, shift, factor = (
            self._spread(each, x) for each in (mean, variance, self.beta, self.gamma)
        )
        outputs = nn.batch_normalization(x, mean, variance, shift, factor, self.epsilon)
        return elementwise.cast(outputs, inputs.dtype)

    def _spread(self, statistic: Any, x: Tensor) -> Any:
        """Reshapes a per-channel vector to broadcast with the inputs."""
        rank = len(x.shape)
        if statistic is None or len(self._axes) > 1 or self._axes[0] == rank - 1:
            return statistic
        shape = [1] * rank
        shape[self._axes[0]] = -1
        return array.reshape(statistic, shape)

    def _move(self, x: Tensor, mask: Any, training: Tensor | None) -> tuple[Tensor, Tensor]:
        """Computes the batch's moments, and adds the moving averages' updates."""
        rank = len(x.shape)
        axes = [each for each in range(rank) if each not in self._axes]
        several = len(self._axes) > 1
        fused = self._is_fused(rank)
        if fused:
            mean, variance = _differentiable_moments(x, axes)
        elif mask is None:
            mean, variance = nn.moments(x, axes, keepdims=several)
        else:
            weights = array.expand_dims(elementwise.cast(mask, x.dtype), -1)
            mean, variance = weighted_moments(x, axes, weights, keepdims=several)
        rate: Any = 1.0 - self.momentum
        if training is not None:
            rate = elementwise.cast(training, x.dtype) * rate
        target = variance
        if fused:
            count = elementwise.cast(array.size(x), x.dtype) / float(mean.shape[0] or 1)
            target = variance * (count / elementwise.maximum(count - 1.0, 1.0))
        for average, new in ((self.moving_mean, mean), (self.moving_variance, target)):
            change = (average.read_value() - new) * rate  # after the updates of earlier calls
            self.add_update(average.assign_sub(change, name="AssignMovingAvg"))
        return mean, variance

    def _is_fused(self, rank: int) -> bool:
        """Whether TensorFlow would use its fused kernel."""
        channels = len(self._axes) == 1 and self._axes[0] in (1, rank - 1)
        return self.fused is not False and rank in (4, 5) and channels and self.dtype != "float64"


def _differentiable_moments(x: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """The moments with all their derivatives, as those of TensorFlow's fused kernel.

    `moments` takes the mean in the variance as constant: exact in the first derivative only.
    """
    with get_default_graph().name_scope("moments"):
        mean = reduce.reduce_mean(x, axes, True, name="mean")
        squares = elementwise.squared_difference(x, mean)
        variance = reduce.reduce_mean(squares, axes, name="variance")
        return array.squeeze(mean, axes, name="Squeeze"), variance


class LayerNormalization(_ScaleAndShift):
    """Normalizes each example to mean 0 and variance 1 along some axes, then scales and shifts it
    (Ba et al. 2016; `tf.keras.layers.LayerNormalization`).

    Variables: `gamma` and `beta`, whose shapes are the lengths of the axes.

    Args:
        axis: the axis, or a list of axes.
        epsilon: added to the variance.
        center, scale: whether there is a `beta` (shift), a `gamma` (scale).
        beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer, beta_constraint,
            gamma_constraint: see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: the length of an axis is unknown.
    """

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis

    def build(self, input_shape: Any) -> None:
        """Makes the scale and the shift."""
        check_floating(self)
        self._axes = _positive_axes(self.axis, input_shape, self)
        self.add_scale_and_shift([known_dimension(input_shape, each, self) for each in self._axes])
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        x = _wide(inputs)
        rank, dims = len(x.shape), x.shape.as_list()
        mean, variance = nn.moments(x, self._axes, keepdims=True)
        shape = [dims[each] if each in self._axes else 1 for each in range(rank)]
        scale, shift = (_read(each, x.dtype) for each in (self.gamma, self.beta))
        if self._axes != [rank - 1]:
            scale, shift = (
                None if each is None else array.reshape(each, shape) for each in (scale, shift)
            )
        outputs = nn.batch_normalization(x, mean, variance, shift, scale, self.epsilon)
        return elementwise.cast(outputs, inputs.dtype)


class GroupNormalization(_ScaleAndShift):
    """Normalizes each group of channels of each example to mean 0 and variance 1, then scales and
    shifts the channels (Wu & He 2018; `tf.keras.layers.GroupNormalization`).

    Variables: `gamma` and `beta`, `(channels,)`.

    Args:
        groups: the number of groups; -1 for one per channel.
        axis: the axis of the channels.
        epsilon: added to the variance.
        center, scale: whether there is a `beta` (shift), a `gamma` (scale).
        beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer, beta_constraint,
            gamma_constraint: see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: the number of channels is unknown, or not a multiple of `groups`.
    """

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.groups = groups

    def build(self, input_shape: Any) -> None:
        """Makes the scale and the shift."""
        check_floating(self)
        (self._channels_axis,) = _positive_axes(self.axis, input_shape, self)
        channels = known_dimension(input_shape, self.axis, self)
        self._group_count = channels if self.groups == -1 else self.groups
        if channels % self._group_count:
            raise value_error(
                f"Number of channels ({channels}) must be a multiple of the number of groups "
                f"({self._group_count})",
                received=f"inputs of shape {input_shape}",
            )
        self.input_spec = InputSpec(ndim=input_shape.rank, axes={self._channels_axis: channels})
        self.add_scale_and_shift([channels])
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        x = _wide(inputs)
        at, known, shape = self._channels_axis, x.shape.as_list(), array.shape(x)
        size = int(known[at] or 0) // self._group_count
        lengths = [shape[axis] if each is None else each for axis, each in enumerate(known)]
        inner: list[Any] = [1] * len(known)
        for each in (lengths, inner):
            each[at : at + 1] = [self._group_count, size]
        grouped = array.reshape(x, joining.stack(lengths))
        axes = [each for each in range(1, len(known) + 1) if each != at]
        mean, variance = nn.moments(grouped, axes, keepdims=True)
        scale, shift = (
            None if each is None else array.reshape(_read(each, x.dtype), inner)
            for each in (self.gamma, self.beta)
        )
        outputs = nn.batch_normalization(grouped, mean, variance, shift, scale, self.epsilon)
        outputs = array.reshape(elementwise.cast(outputs, inputs.dtype), shape)
        outputs.set_shape(inputs.shape)
        return outputs


class UnitNormalization(ConfiguredLayer):
    """Scales inputs to Euclidean norm 1 along some axes (`tf.keras.layers.UnitNormalization`).

    Args:
        axis: the axis, or a list of axes.
        kwargs: as for `Layer`.
    """

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return nn.l2_normalize(inputs, self.axis)


__all__ = [
    "BatchNormalization",
    "GroupNormalization",
    "LayerNormalization",
    "UnitNormalization",
]
