"""`RuleOptimizer`: an update rule with values of its hyperparameters.

A hyperparameter is a number, a tensor, or a callable that returns one of these, called when the
operation is created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.train.optimizers.optimizer import Optimizer, takes_repeated_rows
from estimatorkit.train.optimizers.update_rule import UpdateRule


class RuleOptimizer(Optimizer):
    """An update rule with values of its hyperparameters.

    Args:
        use_locking, name: see `Optimizer`.
        hyperparameters: numbers, tensors or callables, by the rule's names or those of the
            constructor's arguments: `locals()` of a constructor that takes them.
        initial: the initial values of slots; 0 by default.
        suffixes: the suffixes of the slots' names; `name` by default.
    """

    def __init__(
        self,
        rule: UpdateRule,
        use_locking: bool,
        name: str,
        hyperparameters: Mapping[str, Any],
        initial: Mapping[str, float] | None = None,
        suffixes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(use_locking, name)
        self._rule = rule
        self._hyperparameters = {
            name: hyperparameters[each]
            for name in rule.hyperparameters
            for each in (name, f"{name}_regularization_strength")
            if each in hyperparameters
        }
        self._initial = dict(initial or {})
        self._suffixes = dict(suffixes or {})
        self._tensors: dict[str, Tensor] = {}

    @property
    def _learning_rate(self) -> Any:
        """The learning rate as given, which user programs read and replace."""
        return self._hyperparameters["learning_rate"]

    @_learning_rate.setter
    def _learning_rate(self, value: Any) -> None:
        self._hyperparameters["learning_rate"] = value

    _lr = _learning_rate

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            for slot in self._rule.slots:
                suffix = self._suffixes.get(slot, self._name)
                self._get_or_make_slot(variable, self._initial.get(slot, 0.0), slot, suffix)

    def _prepare(self) -> None:
        self._tensors = {name: self._tensor(name) for name in self._rule.hyperparameters}

    def _tensor(self, name: str) -> Tensor:
        value = self._call_if_callable(self._hyperparameters[name])
        if not isinstance(value, (Tensor, Variable)):
            return convert_to_tensor(value, float32, name)
        return convert_to_tensor(value)

    def _tensors_of(self, var: Variable) -> Mapping[str, Tensor]:
        """The hyperparameters of a variable: the same for all by default."""
        return self._tensors

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        return apply_rule(self._rule, self, self._tensors_of(var), var, grad)

    @takes_repeated_rows
    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        return apply_rule(self._rule, self, self._tensors_of(var), var, grad)


def apply_rule(
    rule: UpdateRule,
    optimizer: Optimizer,
    hyperparameters: Mapping[str, Tensor],
    variable: Variable,
    gradient: Tensor | IndexedSlices,
    slot_names: Mapping[str, str] | None = None,
) -> Operation:
    """Returns the operation of one update of a variable.

    The optimizer owns the slots; `slot_names` are its names for them, if they differ from the
    rule's. Hyperparameters unknown to the rule are ignored.
    """
    names = [(slot_names or {}).get(slot, slot) for slot in rule.slots]
    slots: list[Any] = [optimizer.get_slot(variable, name) for name in names]
    handles = [each.handle for each in (variable, *slots)]
    given = [hyperparameters[name] for name in rule.hyperparameters]
    if isinstance(gradient, IndexedSlices):
        rows = [gradient.all_values, gradient.all_indices]
        return registry.apply(f"SparseApply{rule.name}", [*handles, *rows, *given])
    return registry.apply(f"Apply{rule.name}", [*handles, gradient, *given])


__all__ = ["RuleOptimizer", "apply_rule"]
