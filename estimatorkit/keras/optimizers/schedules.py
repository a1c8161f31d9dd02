"""Learning-rate schedules as objects (`tf.keras.optimizers.schedules`).

A schedule maps a step to a learning rate, computed by the function of the same name in
`train.optimizers.schedules`. Users subclass `LearningRateSchedule`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.arguments import given_arguments
from estimatorkit.layers.serialization import Registry, classes_in
from estimatorkit.lazy import listing
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise
from estimatorkit.train.optimizers import schedules


class LearningRateSchedule(ABC):
    """A learning rate as a function of the step.

    Subclasses override `__call__(step)`, where `step` is a float32 scalar tensor, and `get_config`.
    """

    @abstractmethod
    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as plain values."""
        raise NotImplementedError(
            f"{type(self).__name__} must override get_config() to be written to a file."
        )

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """Creates a schedule from the result of `get_config`."""
        return cls(**config)


class _OfFunction(LearningRateSchedule):
    """The schedule of a function in `train`, whose arguments are its config."""

    _arguments: dict[str, Any]
    _function: ClassVar[Callable[..., Tensor]]

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None) -> None:
        super().__init_subclass__()
        if function is not None:
            cls._function = staticmethod(function)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as plain values."""
        return dict(self._arguments)

    def __call__(self, step: Any) -> Tensor:
        """The learning rate at a step."""
        rate, *rest = self._arguments.values()
        return self._function(rate, step, *rest)


class ExponentialDecay(_OfFunction, function=schedules.exponential_decay):
    """initial_learning_rate * decay_rate ^ (step / decay_steps); see `train.exponential_decay`.

    Args:
        initial_learning_rate, decay_steps, decay_rate: numbers or scalar tensors.
        staircase: whether to decay only every `decay_steps` steps.
        name: the name scope.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        self._arguments = given_arguments(locals())


class InverseTimeDecay(ExponentialDecay, function=schedules.inverse_time_decay):
    """initial_learning_rate / (1 + decay_rate * step / decay_steps).

    See `train.inverse_time_decay`; arguments as for `ExponentialDecay`.
    """


class PiecewiseConstantDecay(_OfFunction, function=schedules.piecewise_constant):
    """`values[i]`, where i is the number of boundaries below the step.

    See `train.piecewise_constant`.

    Args:
        boundaries: the steps after which the value changes, in increasing order.
        values: the values between the boundaries, one more than there are boundaries.
        name: the name scope.

    Raises:
        ValueError: the number of values is wrong.
    """

    def __init__(
        self, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
    ) -> None:
        if len(boundaries) != len(values) - 1:
            raise value_error(
                "The length of boundaries should be 1 less than the length of values",
                received=f"boundaries={boundaries} of length {len(boundaries)}, and "
                f"values={values} of length {len(values)}",
            )
        self._arguments = given_arguments(locals())

    def __call__(self, step: Any) -> Tensor:
        """The learning rate at a step."""
        position = convert_to_tensor(step)
        limits = [elementwise.cast(each, position.dtype) for each in self._arguments["boundaries"]]
        values, name = self._arguments["values"], self._arguments["name"]
        return schedules.piecewise_constant(position, limits, values, name)


class PolynomialDecay(_OfFunction, function=schedules.polynomial_decay):
    """(initial - end) * (1 - step / decay_steps) ^ power + end; see `train.polynomial_decay`.

    Args:
        initial_learning_rate, decay_steps, end_learning_rate, power: numbers or scalar tensors.
        cycle: whether to restart the decay after `decay_steps`.
        name: the name scope.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: Any = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        self._arguments = given_arguments(locals())


class CosineDecay(_OfFunction, function=schedules.cosine_decay):
    """Cosine decay to `alpha` times the initial rate; see `train.cosine_decay`.

    Args:
        initial_learning_rate, decay_steps, alpha: numbers or scalar tensors.
        name: the name scope.
        warmup_target: if given, the rate first rises linearly from `initial_learning_rate` to this
            value, from which it decays.
        warmup_steps: the length of the warmup.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        alpha: Any = 0.0,
        name: str | None = None,
        warmup_target: Any = None,
        warmup_steps: Any = 0,
    ) -> None:
        self._arguments = given_arguments(locals())

    def __call__(self, step: Any) -> Tensor:
        """The learning rate at a step."""
        first, decay_steps, alpha, name, target, warmup_steps = self._arguments.values()
        if target is None:
            return schedules.cosine_decay(first, step, decay_steps, alpha, name)
        with get_default_graph().name_scope(name or "CosineDecay"):
            rate = convert_to_tensor(first)
            done, warmup, top = (
                elementwise.cast(each, rate.dtype) for each in (step, warmup_steps, target)
            )
            rising = rate + (top - rate) * (done / warmup)
            falling = schedules.cosine_decay(top, done - warmup, decay_steps, alpha)
            return indexing.where(done < warmup, rising, falling)


class CosineDecayRestarts(_OfFunction, function=schedules.cosine_decay_restarts):
    """Cosine decay with warm restarts; see `train.cosine_decay_restarts`.

    Args:
        initial_learning_rate, first_decay_steps, t_mul, m_mul, alpha: numbers or scalar tensors.
        name: the name scope.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        first_decay_steps: Any,
        t_mul: Any = 2.0,
        m_mul: Any = 1.0,
        alpha: Any = 0.0,
        name: str | None = None,
    ) -> None:
        self._arguments = given_arguments(locals())


_REGISTRY = Registry("learning rate schedule", classes_in(__name__, _OfFunction))


def serialize(learning_rate_schedule: LearningRateSchedule) -> dict[str, Any]:
    """Returns {'class_name': ..., 'config': ...} for a schedule."""
    described: dict[str, Any] = _REGISTRY.serialize(learning_rate_schedule)
    return described


def deserialize(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> LearningRateSchedule:
    """Creates a schedule from the result of `serialize`.

    Args:
        config: {'class_name': ..., 'config': ...}.
        custom_objects: a dict from names to your own classes.

    Raises:
        ValueError: the name is unknown.
    """
    schedule: LearningRateSchedule = _REGISTRY.deserialize(config, custom_objects)
    return schedule


__dir__ = listing(__name__)
__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "deserialize",
    "serialize",
]
