"""Constant folding and common-subexpression elimination.

XLA does both, but only within a segment, after Python has traced every operation, and invisibly;
`Plan.describe` shows what was done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from estimatorkit.core import registry
from estimatorkit.core.registry import Role, folding, inference, role_of
from estimatorkit.core.tensor import Operation, Tensor


@dataclass(eq=False)
class Rewriting:
    """Replacements of operations that do not run.

    Attributes:
        known: the values of folded tensors.
        same: maps tensors of eliminated operations to those of the equal earlier operation.
        same_name: the same, by operation name.
    """

    known: dict[Tensor, Any] = field(default_factory=dict)
    same: dict[Tensor, Tensor] = field(default_factory=dict)
    same_name: dict[str, str] = field(default_factory=dict)

    def resolve(self, tensor: Tensor) -> Tensor:
        """The tensor computed in place of `tensor`."""
        return self.same.get(tensor, tensor)

    def value(self, tensor: Tensor) -> Any | None:
        """The value of `tensor` if folded, else None."""
        tensor = self.resolve(tensor)
        return (
            tensor.op.attrs["value"]
            if role_of(tensor.op) is Role.CONSTANT
            else self.known.get(tensor)
        )


def rewrite(ops: Sequence[Operation], fed: set[Tensor], fetched: set[Tensor]) -> Rewriting:
    """Folds constants and finds common subexpressions.

    Args:
        ops: the needed operations, in order.
        fed: the fed tensors.
        fetched: the fetched tensors.
    """
    result = Rewriting()
    seen: dict[Any, Operation] = {}
    for op in ops:
        row = registry.lookup(op.type)
        if not row.semantics.pure or op.control_inputs or not op.outputs:
            continue
        if any(output in fed for output in op.outputs):
            continue
        inputs = [result.resolve(tensor) for tensor in op.inputs]
        if _fold(op, row, inputs, fed, result):
            continue
        key = (op.type, tuple(map(id, inputs)), op.device, _attributes(op))
        earlier = seen.setdefault(key, op)
        if earlier is not op:
            result.same.update(zip(op.outputs, earlier.outputs, strict=True))
            result.same_name[op.name] = earlier.name
    return result


def _fold(
    op: Operation,
    row: registry.OpDef,
    inputs: Sequence[Tensor],
    fed: set[Tensor],
    result: Rewriting,
) -> bool:
    """Folds an operation if its inputs are constant, or their shapes suffice."""
    if not inputs or not row.foldable or any(t in fed for t in inputs):
        return False
    if row.semantics.known_from_shape:
        if all(role_of(tensor.op) is not Role.PLACEHOLDER for tensor in inputs):
            return False  # a known value need not have the static shape
        shapes = {tensor: registry.constant_value(tensor) for tensor in op.outputs}
        known = {tensor: value for tensor, value in shapes.items() if value is not None}
        result.known.update(known)
        return bool(known)
    values = [result.value(tensor) for tensor in inputs]
    if any(value is None or value.dtype == object for value in values):
        return False
    found = folding.fold(row, values, op.kernel_attrs, op.outputs)
    if found is None:
        return False
    result.known.update(zip(op.outputs, found, strict=True))
    return True


def _attributes(op: Operation) -> Any:
    """The attributes as a key; functions and custom gradients compare by identity."""
    held = {name: value for name, value in op.attrs.items() if name != "_forward"}
    key = inference.as_key(held)
    try:
        hash(key)
    except TypeError:
        return id(op)
    return key
