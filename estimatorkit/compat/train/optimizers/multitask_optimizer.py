"""`MultitaskOptimizerWrapper`: skips variables that a step does not train."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import type_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.train.optimizers.clip import clip_by_global_norm
from estimatorkit.train.optimizers.optimizer import GradientAndVariable
from estimatorkit.train.optimizers.wrapping_optimizer import WrappingOptimizer


class MultitaskOptimizerWrapper(WrappingOptimizer):
    """Wraps an optimizer; variables with all-zero gradients and their slots do not change.

    When tasks alternate, momentum and averages of one would otherwise change in the steps of the
    others. Source: `tf.contrib.opt.MultitaskOptimizerWrapper`.

    Args:
        opt: the optimizer, to which other methods and attributes are delegated.

    Raises:
        TypeError: `opt` is not an optimizer.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "_optimizer":
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """See `Optimizer.apply_gradients`.

        Raises:
            TypeError: the wrapped optimizer does not update variables individually.
        """
        update = self._optimizer._update
        updated: list[Variable] = []

        def update_where_trained(gradient: Any, variable: Variable) -> Operation:
            updated.append(variable)
            values = gradient.all_values if isinstance(gradient, IndexedSlices) else gradient
            trained = reduce.reduce_any(elementwise.not_equal(values, 0.0))

            def apply() -> Tensor:
                with get_default_graph().control_dependencies([update(gradient, variable)]):
                    return constant(True)

            applied: Tensor = cond(trained, apply, lambda: constant(False))
            return applied.op

        vars(self._optimizer)["_update"] = update_where_trained
        try:
            done = super().apply_gradients(grads_and_vars, global_step, name)
        finally:
            del vars(self._optimizer)["_update"]
        if not updated:
            raise type_error(
                "MultitaskOptimizerWrapper requires an optimizer that updates variables "
                "individually",
                received=repr(self._optimizer)[:200],
                hint="wrap the inner optimizer instead",
            )
        return done


def clip_gradients_by_global_norm(
    gradients_variables: Sequence[GradientAndVariable], clip_norm: Any = 20.0
) -> list[GradientAndVariable]:
    """Scales gradients so that their global norm is at most `clip_norm`; None stays None.

    Args:
        gradients_variables: pairs as from `compute_gradients`.
        clip_norm: a positive scalar.
    """
    clipped, _ = clip_by_global_norm([gradient for gradient, _ in gradients_variables], clip_norm)
    return [(each, pair[1]) for each, pair in zip(clipped, gradients_variables, strict=True)]


__all__ = ["MultitaskOptimizerWrapper", "clip_gradients_by_global_norm"]
