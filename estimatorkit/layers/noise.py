"""Layers that do something in training only: dropout and noise. `ActivityRegularization`, which
adds a loss, is here too.

If the training mode is not static, a tensor chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import type_error
from estimatorkit.core.registry import fixed_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, as_data_format
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.layers.regularizers import L1L2
from estimatorkit.ops.array import array, indexing
from estimatorkit.ops.math import elementwise, random
from estimatorkit.ops.nn import nn


def known_training(training: Any) -> bool | None:
    """The training mode as a bool if it is static; None for a tensor."""
    known = fixed_value(training) if isinstance(training, Tensor) else training
    return None if known is None else bool(known)


def in_training(training: Any, change: Callable[[], Any], otherwise: Any) -> Any:
    """Returns `change()` in training, else the tensor `otherwise`.

    Args:
        training: a bool, or a scalar bool tensor.
        change: makes a tensor; called where this may be training.
        otherwise: a tensor.
    """
    known = known_training(training)
    if known is None:
        return indexing.where(elementwise.cast(training, "bool"), change(), otherwise)
    return change() if known else otherwise


class _InTraining(ConfiguredLayer):
    """A layer that returns its inputs unchanged, except in training, where `change` alters them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def change(self, inputs: Tensor) -> Tensor:
        """The outputs in training."""
        raise NotImplementedError

    def changes(self) -> bool:
        """Whether training makes a difference."""
        return True

    def call(self, inputs: Tensor, training: Any = None) -> Any:
        """The outputs.

        Args:
            inputs: floats.
            training: whether this is training: a bool, or a scalar bool tensor.
        """
        if not inputs.dtype.is_floating:
            raise type_error(
                f"Unable to build `{type(self).__name__}` layer with non-floating point dtype",
                expected="float32, float64, float16 or bfloat16",
                received=f"{inputs.name} {inputs.dtype.name}",
                made_at=inputs.op.source,
                hint="cast(inputs, float32)",
            )
        same = builtin_ops.identity(inputs)
        return in_training(training, lambda: self.change(inputs), same) if self.changes() else same


class Dropout(_InTraining):
    """In training, sets random elements to 0 and scales the others up to keep the expected sum
    (`tf.keras.layers.Dropout`).

    Args:
        rate: the probability that an element is dropped, in [0, 1]; or a scalar tensor.
        noise_shape: the shape of the random mask, which broadcasts to that of the inputs: elements
            that share an entry are dropped together. None for the shape of the inputs.
        seed: see `set_random_seed`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `rate` is not in [0, 1].
    """

    def __init__(
        self, rate: Any, noise_shape: Any = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(rate, (int, float)) and not 0 <= rate <= 1:
            raise ValueError(
                f"Invalid value {rate} received for `rate`, expected a value between 0 and 1."
            )
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def changes(self) -> bool:
        """Whether anything is dropped."""
        return isinstance(self.rate, Tensor) or self.rate > 0

    def draw_shape(self, inputs: Tensor) -> Any:
        """The shape of the random mask; None for that of the inputs."""
        return self.noise_shape

    def change(self, inputs: Tensor) -> Tensor:
        """The outputs in training."""
        if not isinstance(self.rate, Tensor) and self.rate == 1:
            return inputs * elementwise.cast(0.0, inputs.dtype)
        shape = self.draw_shape(inputs)
        return nn.dropout(inputs, noise_shape=shape, seed=self.seed, rate=self.rate)


class SpatialDropout(Dropout):
    """`Dropout` of whole channels: all of a channel's elements are dropped together.

    Args:
        rate: the probability that a channel is dropped.
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`; `seed` as for `Dropout`.
    """

    rank = 2

    def __init__(self, rate: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(rate, **kwargs)
        self.data_format = as_data_format("channels_last" if self.rank == 1 else data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def draw_shape(self, inputs: Tensor) -> Any:
        """One draw per example and channel."""
        shape = array.shape(inputs)
        if self.data_format == "channels_first":
            return [shape[0], shape[1], *(1,) * self.rank]
        return [shape[0], *(1,) * self.rank, shape[self.rank + 1]]


class SpatialDropout1D(SpatialDropout):
    """Drops whole channels of sequences in training (`tf.keras.layers.SpatialDropout1D`).

    Args:
        rate: the probability that a channel is dropped.
        kwargs: as for `Layer`; `seed` as for `Dropout`.
    """

    rank = 1

    def __init__(self, rate: Any, **kwargs: Any) -> None:
        super().__init__(rate, **kwargs)


class SpatialDropout2D(SpatialDropout):
    """Drops whole channels of images in training (`tf.keras.layers.SpatialDropout2D`).

    Args:
        rate: the probability that a channel is dropped.
        data_format: 'channels_last' or 'channels_first'; that of the backend by default.
        kwargs: as for `Layer`; `seed` as for `Dropout`.
    """


class SpatialDropout3D(SpatialDropout):
    """Drops whole channels of volumes in training (`tf.keras.layers.SpatialDropout3D`).

    Arguments are those of `SpatialDropout2D`.
    """

    rank = 3


class GaussianNoise(_InTraining):
    """Adds normally distributed noise with mean 0 in training (`tf.keras.layers.GaussianNoise`).

    Args:
        stddev: the standard deviation.
        seed: see `set_random_seed`.
        kwargs: as for `Layer`.
    """

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = stddev
        self.seed = seed

    def change(self, inputs: Tensor) -> Tensor:
        """The outputs in training."""
        shape, dtype = array.shape(inputs), inputs.dtype
        return inputs + random.random_normal(shape, 0.0, self.stddev, dtype, self.seed)


class GaussianDropout(_InTraining):
    """Multiplies by normal noise of mean 1 and variance rate / (1 - rate) in training
    (Srivastava et al. 2014; `tf.keras.layers.GaussianDropout`).

    Args:
        rate: as for `Dropout`.
        seed: see `set_random_seed`.
        kwargs: as for `Layer`.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.seed = seed

    def changes(self) -> bool:
        """Whether there is noise."""
        return 0 < self.rate < 1

    def change(self, inputs: Tensor) -> Tensor:
        """The outputs in training."""
        spread = math.sqrt(self.rate / (1.0 - self.rate))
        shape, dtype = array.shape(inputs), inputs.dtype
        return inputs * random.random_normal(shape, 1.0, spread, dtype, self.seed)


class AlphaDropout(_InTraining):
    """In training, sets random elements to the lowest value of `selu`, then scales and shifts to
    keep the mean and the variance (Klambauer et al. 2017; `tf.keras.layers.AlphaDropout`).

    Args:
        rate, noise_shape, seed: as for `Dropout`.
        kwargs: as for `Layer`.
    """

    _LOWEST = -1.6732632423543772 * 1.0507009873554805

    def __init__(
        self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def changes(self) -> bool:
        """Whether anything is dropped."""
        return 0 < self.rate < 1

    def change(self, inputs: Tensor) -> Tensor:
        """The outputs in training."""
        shape = array.shape(inputs) if self.noise_shape is None else self.noise_shape
        draws = random.random_uniform(shape, dtype=inputs.dtype, seed=self.seed)
        kept = elementwise.cast(draws >= self.rate, inputs.dtype)
        scale = ((1 - self.rate) * (1 + self.rate * self._LOWEST**2)) ** -0.5
        shift = -scale * self._LOWEST * self.rate
        result: Tensor = scale * (inputs * kept + self._LOWEST * (1 - kept)) + shift
        return result


class ActivityRegularization(ConfiguredLayer):
    """Returns its inputs unchanged and adds a loss that penalizes them
    (`tf.keras.layers.ActivityRegularization`).

    Args:
        l1, l2: the loss is l1 * sum(|x|) + l2 * sum(x^2), divided by the batch size.
        kwargs: as for `Layer`.
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=L1L2(l1, l2), **kwargs)
        self.supports_masking = True
        self.l1 = l1
        self.l2 = l2


__all__ = [
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "in_training",
    "known_training",
]
