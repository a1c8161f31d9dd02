"""`RuleOptimizer`: a Keras optimizer that is an update rule (see `update_rule`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.keras.optimizers.optimizer import Optimizer, computed_in
from estimatorkit.train.optimizers.optimizer import takes_repeated_rows
from estimatorkit.train.optimizers.rule_optimizer import apply_rule
from estimatorkit.train.optimizers.update_rule import UpdateRule


class RuleOptimizer(Optimizer):
    """An optimizer that is an update rule.

    A subclass sets `_rule`, and maps the rule's hyperparameters in `_coefficients`.
    """

    _rule: UpdateRule
    _rule_slots: ClassVar[Mapping[str, str]] = {}
    """The names of slots that the rule calls otherwise, by the rule's names."""
    _attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes that are arguments and no hyperparameters, for `get_config`."""

    def _set_hypers(self, arguments: Mapping[str, Any], **hypers: Any) -> None:
        """Sets the hyperparameters: the learning rate, by its older name too, and others."""
        rate = arguments.get("lr")
        if rate is not None:
            hypers["learning_rate"] = rate
        for name, value in {**hypers, "decay": self._initial_decay}.items():
            self._set_hyper(name, value)

    def _initial(self, slot: str) -> Any:
        """The initializer of a slot."""
        return "zeros"

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for slot in self._rule.slots:
            for variable in var_list:
                self.add_slot(variable, self._rule_slots.get(slot, slot), self._initial(slot))

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        """The values of the rule's hyperparameters but for the learning rate."""
        raise NotImplementedError

    def _prepare_local(self, var_device: str, var_dtype: DType, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        dtype = computed_in(var_dtype)
        tensors = {
            name: convert_to_tensor(value, None if isinstance(value, Tensor) else dtype, name)
            for name, value in self._coefficients(dtype).items()
        }
        tensors["learning_rate"] = apply_state[var_device, var_dtype]["lr_t"]
        apply_state[var_device, var_dtype].update(tensors)

    def _resource_apply_dense(
        self, grad: Tensor, handle: Variable, apply_state: Any = None
    ) -> Operation:
        return self._apply_rule(grad, handle, apply_state)

    @takes_repeated_rows
    def _resource_apply_sparse(
        self, grad: Tensor, handle: Variable, indices: Tensor, apply_state: Any = None
    ) -> Operation:
        return self._apply_rule(IndexedSlices(grad, indices), handle, apply_state)

    def _apply_rule(
        self, gradient: Tensor | IndexedSlices, variable: Variable, apply_state: Any
    ) -> Operation:
        key = (variable.device, variable.dtype)
        tensors = (apply_state or {}).get(key) or self._fallback_apply_state(*key)
        return apply_rule(self._rule, self, tensors, variable, gradient, self._rule_slots)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as plain values."""
        config = super().get_config()
        config |= {
            name: self._initial_decay if name == "decay" else self._serialize_hyperparameter(name)
            for name in self._hyper
        }
        return config | {name: getattr(self, name) for name in self._attributes}


__all__ = ["RuleOptimizer"]
