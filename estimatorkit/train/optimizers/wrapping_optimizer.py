"""`WrappingOptimizer`: the base class of optimizers that wrap another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from estimatorkit.core.errors import type_error
from estimatorkit.core.tensor import Operation
from estimatorkit.core.variables import Variable
from estimatorkit.train.optimizers.optimizer import GradientAndVariable, Optimizer


class WrappingOptimizer(Optimizer):
    """Delegates gradients, steps, slots and variables to another optimizer.

    Subclasses override `compute_gradients` or `apply_gradients`, and call the base method.

    Args:
        name: the name of the operations; the optimizer's by default.

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
        """See the wrapped optimizer."""
        return self._optimizer.divides_loss

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        """Returns the wrapped optimizer's gradients; see `Optimizer.compute_gradients`."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """Applies the wrapped optimizer's step; see `Optimizer.apply_gradients`."""
        # Custom optimizers may not accept the last argument.
        rest = {"skip_gradients_aggregation": True} if skip_gradients_aggregation else {}
        return self._optimizer.apply_gradients(
            grads_and_vars, global_step=global_step, name=name, **rest
        )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        self._optimizer._create_slots(var_list)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Returns the wrapped optimizer's slot."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Returns the names of the wrapped optimizer's slots."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Variable]:
        """Returns the wrapped optimizer's variables."""
        return self._optimizer.variables()


__all__ = ["WrappingOptimizer"]
