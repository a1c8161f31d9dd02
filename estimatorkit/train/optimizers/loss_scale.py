"""Loss scaling, against underflow of 16-bit gradients (Micikevicius et al. 2018).

The loss is multiplied by a scale before differentiation, and the gradients are divided by it before
they are applied. If a gradient is not finite, a `DynamicLossScale` halves the scale and skips the
step; it doubles the scale after many finite steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.distribute.replica_context import replica_context, summed_gradients
from estimatorkit.ops.array import indexing, joining
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.train.optimizers.clip import scale_gradient
from estimatorkit.train.optimizers.optimizer import GradientAndVariable, Optimizer
from estimatorkit.train.optimizers.wrapping_optimizer import WrappingOptimizer

INITIAL_SCALE = 2.0**15
GROWTH_STEPS = 2000


class LossScale(ABC):
    """The base class of loss scales. Source: `tf.compat.v1.train.experimental.LossScale`."""

    @abstractmethod
    def __call__(self) -> Tensor:
        """Returns the current scale, a float32 scalar."""

    @abstractmethod
    def update(self, grads: Sequence[Any]) -> tuple[Operation, Tensor | bool]:
        """Updates the scale, given unscaled gradients.

        Returns:
            The update operation, and whether to apply the gradients.
        """


class FixedLossScale(LossScale):
    """A constant loss scale. Source: `tf.compat.v1.train.experimental.FixedLossScale`.

    Args:
        loss_scale_value: the scale, at least 1.

    Raises:
        ValueError: it is less than 1.
    """

    def __init__(self, loss_scale_value: float) -> None:
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value must be at least 1, received: {loss_scale_value}")
        self._value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        """Returns the scale."""
        return constant(self._value, float32)

    def update(self, grads: Sequence[Any]) -> tuple[Operation, Tensor | bool]:
        """Does nothing; the gradients are applied."""
        nothing: Operation = builtin_ops.no_op()
        return nothing, True

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"loss_scale_value": self._value}


class DynamicLossScale(LossScale):
    """A loss scale that is reduced when gradients are not finite, and raised after a period.

    Source: `tf.compat.v1.train.experimental.DynamicLossScale`. Variables: 'current_loss_scale',
    'good_steps'.

    Args:
        initial_loss_scale: the initial scale.
        increment_period: the number of consecutive steps with finite gradients until it is raised.
        multiplier: the factor by which it is raised or reduced; it never falls below 1.
    """

    def __init__(
        self,
        initial_loss_scale: float = INITIAL_SCALE,
        increment_period: int = GROWTH_STEPS,
        multiplier: float = 2.0,
    ) -> None:
        self._arguments = {
            "initial_loss_scale": float(initial_loss_scale),
            "increment_period": int(increment_period),
            "multiplier": float(multiplier),
        }
        self._made: dict[Graph, tuple[Variable, Variable]] = {}

    @property
    def initial_loss_scale(self) -> float:
        """The initial scale."""
        return self._arguments["initial_loss_scale"]

    @property
    def increment_period(self) -> int:
        """The number of consecutive finite steps until the scale grows."""
        return int(self._arguments["increment_period"])

    @property
    def multiplier(self) -> float:
        """The factor by which the scale grows and falls."""
        return self._arguments["multiplier"]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return dict(self._arguments)

    def variables(self) -> tuple[Variable, Variable]:
        """Returns the scale and its count of finite steps, in the default graph."""
        graph = get_default_graph().outermost
        if graph not in self._made:
            with graph.init_scope(), graph.name_scope(None):
                self._made[graph] = (
                    Variable(
                        np.float32(self.initial_loss_scale),
                        trainable=False,
                        name="current_loss_scale",
                    ),
                    Variable(np.int64(0), trainable=False, name="good_steps", dtype=int64),
                )
        return self._made[graph]

    def __call__(self) -> Tensor:
        """Returns the current scale."""
        return self.variables()[0].read_value()

    def update(self, grads: Sequence[Any]) -> tuple[Operation, Tensor | bool]:
        """See `LossScale.update`; gradients are applied if all are finite."""
        scale, good_steps = self.variables()
        finite = all_finite(grads)
        grown = scale * self.multiplier
        grown = indexing.where(elementwise.is_finite(grown), grown, builtin_ops.identity(scale))
        steps = good_steps + 1
        is_due = steps >= self.increment_period
        kept = indexing.where(is_due, grown, builtin_ops.identity(scale))
        fallen = elementwise.maximum(scale / self.multiplier, 1.0)
        begin = elementwise.logical_or(elementwise.logical_not(finite), is_due)
        done: Operation = builtin_ops.group(
            scale.assign(indexing.where(finite, kept, fallen)),
            good_steps.assign(indexing.where(begin, constant(0, int64), steps)),
        )
        return done, finite


def all_finite(grads: Sequence[Any]) -> Tensor:
    """Returns whether all elements of all gradients are finite."""
    values = [each.all_values if isinstance(each, IndexedSlices) else each for each in grads]
    each_finite = [reduce.reduce_all(elementwise.is_finite(value)) for value in values]
    return reduce.reduce_all(joining.stack(each_finite))


def as_loss_scale(loss_scale: Any) -> LossScale:
    """Converts a number or 'dynamic' to a `LossScale`.

    Raises:
        ValueError: the argument is neither, nor a `LossScale`.
    """
    if isinstance(loss_scale, LossScale):
        return loss_scale
    if loss_scale == "dynamic":
        return DynamicLossScale()
    if isinstance(loss_scale, (int, float)):
        return FixedLossScale(loss_scale)
    raise value_error(
        "Could not interpret loss scale",
        expected="'dynamic', a number, or a LossScale",
        received=repr(loss_scale),
    )


class MixedPrecisionLossScaleOptimizer(WrappingOptimizer):
    """Wraps an optimizer with loss scaling.

    A step with gradients that are not finite changes neither variables nor the global step.

    Source: `tf.compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer`.

    Args:
        opt: the optimizer to wrap.
        loss_scale: a `LossScale`, a number, or 'dynamic'.

    Raises:
        TypeError: `opt` is not an optimizer.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        super().__init__(opt)
        self._loss_scale = as_loss_scale(loss_scale)

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        """Returns unscaled gradients, computed from the scaled loss; see `Optimizer`."""
        scaled = self.get_scaled_loss(loss() if callable(loss) else loss)
        pairs = super().compute_gradients(scaled, *args, **kwargs)
        unscaled = self.get_unscaled_gradients([gradient for gradient, _ in pairs])
        return [(each, variable) for each, (_, variable) in zip(unscaled, pairs, strict=True)]

    def get_scaled_loss(self, loss: Any) -> Any:
        """Returns the loss times the scale, in the loss's dtype."""
        tensor = convert_to_tensor(loss)
        return tensor * elementwise.cast(self._loss_scale(), tensor.dtype)

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> list[Any]:
        """Returns the gradients divided by the scale; None stays None."""
        inverse = 1.0 / self._loss_scale()
        return [None if each is None else scale_gradient(each, inverse) for each in grads]

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """Applies gradients if all are finite; see `Optimizer.apply_gradients`."""
        pairs = list(grads_and_vars)
        given = [gradient for gradient, _ in pairs if gradient is not None]
        if not given:
            return super().apply_gradients(pairs, global_step, name)
        summed = skip_gradients_aggregation or replica_context() is not None
        if not skip_gradients_aggregation:  # so that all replicas agree on finiteness
            given = summed_gradients(given)
            sums = iter(given)
            pairs = [(each if each is None else next(sums), var) for each, var in pairs]
        update, should_apply = self._loss_scale.update(given)
        if should_apply is True:
            with get_default_graph().control_dependencies([update]):
                return super().apply_gradients(pairs, global_step, name, summed)

        def apply() -> Tensor:
            step = WrappingOptimizer.apply_gradients(self, pairs, global_step, name, summed)
            with get_default_graph().control_dependencies([step]):
                return constant(True)

        # Created outside the branch, whose scope would become part of the variables' names.
        with get_default_graph().init_scope():
            self._create_slots([variable for gradient, variable in pairs if gradient is not None])
        applied = cond(convert_to_tensor(should_apply), apply, lambda: constant(False))
        done: Operation = builtin_ops.group(applied, update, name=name or self._name)
        self._note_train_op(done)
        return done

    def variables(self) -> list[Variable]:
        """Returns the variables of the wrapped optimizer, then those of the loss scale."""
        own: Sequence[Variable] = ()
        if isinstance(self._loss_scale, DynamicLossScale):
            own = self._loss_scale.variables()
        return [*super().variables(), *own]


def enable_mixed_precision_graph_rewrite(
    opt: Optimizer, loss_scale: Any = "dynamic"
) -> MixedPrecisionLossScaleOptimizer:
    """Wraps an optimizer with loss scaling.

    TensorFlow also rewrites operations to 16 bits; here, use
    `keras.mixed_precision.set_global_policy` or `cast`. Source:
    `tf.compat.v1.train.experimental.enable_mixed_precision_graph_rewrite`.

    Args:
        loss_scale: a `LossScale`, a number, or 'dynamic'.
    """
    return MixedPrecisionLossScaleOptimizer(opt, loss_scale)


__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "MixedPrecisionLossScaleOptimizer",
    "all_finite",
    "as_loss_scale",
    "enable_mixed_precision_graph_rewrite",
]
