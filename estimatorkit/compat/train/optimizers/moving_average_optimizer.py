"""`MovingAverageOptimizer`: maintains moving averages of the variables it trains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.core.builtin_ops import group
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Operation
from estimatorkit.core.variables import Variable
from estimatorkit.ops.variables.variable_collections import global_variables
from estimatorkit.train.optimizers.moving_averages import ExponentialMovingAverage
from estimatorkit.train.optimizers.optimizer import GradientAndVariable, Optimizer
from estimatorkit.train.optimizers.wrapping_optimizer import WrappingOptimizer
from estimatorkit.train.saving.saver import Saver


class MovingAverageOptimizer(WrappingOptimizer):
    """Wraps an optimizer with an `ExponentialMovingAverage` of its variables.

    Source: `tf.contrib.opt.MovingAverageOptimizer`.

    Args:
        average_decay, num_updates: see `ExponentialMovingAverage`.
        sequential_update: whether the averages use the values after the step.
    """

    def __init__(
        self,
        opt: Optimizer,
        average_decay: Any = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        super().__init__(opt)
        self._average = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential_update = sequential_update
        self._averaged: list[Variable] = []

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """Applies gradients, then updates the averages; see `Optimizer.apply_gradients`."""
        pairs = list(grads_and_vars)
        step = super().apply_gradients(pairs, global_step, name)
        self._averaged = [variable for gradient, variable in pairs if gradient is not None]
        before = [step] if self._sequential_update else []
        with get_default_graph().control_dependencies(before):
            averages = self._average.apply(self._averaged)
        done: Operation = group(step, averages)
        return done

    def swapping_saver(
        self,
        var_list: Sequence[Variable] | Mapping[str, Variable] | None = None,
        name: str = "swapping_saver",
        **kwargs: Any,
    ) -> Saver:
        """Returns a `Saver` that saves averages under the variables' names, and vice versa.

        Args:
            var_list: the variables to save; all global variables by default.
            name, **kwargs: see `Saver`.

        Raises:
            RuntimeError: there are no averages; call `apply_gradients` or `minimize` first.
        """
        if not self._averaged:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        if not isinstance(var_list, Mapping):
            chosen = global_variables() if var_list is None else var_list
            var_list = {variable.op.name: variable for variable in chosen}
        names = {variable: key for key, variable in var_list.items()}
        swapped = dict(var_list)
        for variable in self._averaged:
            average = self._average.average(variable)
            if variable in names and average in names:
                swapped[names[variable]], swapped[names[average]] = average, variable
        return Saver(swapped, name=name, **kwargs)


__all__ = ["MovingAverageOptimizer"]
