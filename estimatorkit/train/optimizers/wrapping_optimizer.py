"""`WrappingOptimizer`: an optimizer that does something around the steps of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from estimatorkit.core.errors import type_error
from estimatorkit.core.tensor import Operation
from estimatorkit.core.variables import Variable
from estimatorkit.train.optimizers.optimizer import GradientAndVariable, Optimizer


class WrappingOptimizer(Optimizer):
    """Another optimizer: its gradients, its step, its slots and its variables.

    A subclass overrides `compute_gradients` or `apply_gradients` and calls those of here.

    Args:
        opt: the optimizer.
        name: the name of the operations; that of the optimizer by default.

    Raises:
        TypeError: `opt` is not an optimizer.
    """

    def __init__(self, opt: Optimizer, name: str | None = None) -> None:
        if not isinstance(opt, Optimizer):
            raise type_error('"opt" must be an instance of Optimizer', received=repr(opt)[:200])
        super().__init__(use_locking=False, name=name or opt.get_name())
        self._optimizer = opt

    @property
    def divides_loss(self) -> bool:
        """As the optimizer inside."""
        return self._optimizer.divides_loss

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        """Those of the optimizer inside; see `Optimizer.compute_gradients`."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """One step of the optimizer inside; see `Optimizer.apply_gradients`."""
        # Optimizers of the user's own may not know the last argument.
        rest = {"skip_gradients_aggregation": True} if skip_gradients_aggregation else {}
        return self._optimizer.apply_gradients(
            grads_and_vars, global_step=global_step, name=name, **rest
        )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        self._optimizer._create_slots(var_list)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of the optimizer inside."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the slots of the optimizer inside."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Variable]:
        """The variables of the optimizer inside."""
        return self._optimizer.variables()


__all__ = ["WrappingOptimizer"]
