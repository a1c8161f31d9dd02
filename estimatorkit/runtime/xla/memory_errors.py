"""Errors for want of memory: ours, which name the largest tensors and the batch.

XLA says how many bytes it could not have, not what for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import jax
import numpy as np

from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import ResourceExhaustedError
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor

Shapes: TypeAlias = Mapping[Tensor, tuple[int, ...]]
"""The shapes of tensors in a run."""

_MOST_NAMED = 3


ERRORS = (MemoryError, jax.errors.JaxRuntimeError)
"""What NumPy and XLA raise."""


def explained(
    error: Exception, ops: Sequence[Operation], shapes: Callable[[], Shapes] = dict
) -> Exception:
    """What to raise for one of `ERRORS`: ours if it is for want of memory, else the error itself.

    Args:
        error: the error.
        ops: what ran.
        shapes: the shapes of tensors in the run; without them, those that the graph knows count.
    """
    if isinstance(error, MemoryError) or "Out of memory" in str(error):
        return out_of_memory(ops, str(error), shapes())
    return error


def out_of_memory(
    ops: Sequence[Operation], reason: str, shapes: Shapes | None = None
) -> ResourceExhaustedError:
    """The error for operations that need more memory than there is.

    Args:
        ops: the operations.
        reason: what XLA or NumPy said.
        shapes: of tensors in the run; for others, what the graph knows counts.
    """
    shapes = shapes or {}
    sizes = {tensor: _bytes(tensor, shapes) for op in ops for tensor in op.outputs}
    largest = heapq.nlargest(_MOST_NAMED, sizes, key=sizes.__getitem__)
    named = [
        f"{tensor.name} {tensor.dtype.name}{list(_shape(tensor, shapes))} of {_text(sizes[tensor])}"
        for tensor in largest
        if sizes[tensor]
    ]
    op = largest[0].op if largest else ops[-1]
    received = [reason.splitlines()[0][:200]] if reason else []
    if named:
        received.append(f"the largest tensors are {', '.join(named)}")
    if (batch := _batch(ops, shapes)) is not None:
        received.append(f"the batch has {batch} rows")
    return ResourceExhaustedError.explained(
        f"out of memory in {op.name} ({op.type})"
        + (f" and {len(ops) - 1} other operations" if len(ops) > 1 else ""),
        received="; ".join(received) or None,
        made_at=op.source,
        hint="use smaller batches, or a smaller model",
        op=op,
    )


class _Step(Protocol):
    @property
    def segment(self) -> Any:
        """What it computes."""

    def shapes(self, values: Mapping[Any, Any]) -> Shapes:
        """The shapes of its tensors for these inputs, arrays or their specs."""


def shapes_of(steps: Iterable[_Step], given: Mapping[Any, Any]) -> Shapes:
    """The shapes of the tensors of compiled steps.

    Args:
        steps: the steps, in the order of the run.
        given: what is known before the first: constants and feeds.
    """
    known = dict(given)
    found: dict[Tensor, tuple[int, ...]] = {}
    for step in steps:
        found.update(step.shapes(known))
        known.update(
            (each, jax.ShapeDtypeStruct(found[each], each.dtype.numpy_dtype))  # type: ignore[no-untyped-call]
            for each in step.segment.outputs
            if each in found
        )
    return found


def _shape(tensor: Tensor, shapes: Shapes) -> tuple[int, ...]:
    if tensor in shapes:
        return shapes[tensor]
    return tuple(map(int, tensor.shape)) if tensor.shape.is_fully_defined() else (0,)


def _bytes(tensor: Tensor, shapes: Shapes) -> int:
    if tensor.dtype is resource:
        return 0
    elements = 1
    for dim in _shape(tensor, shapes):
        elements *= dim
    return elements * tensor.dtype.size


def _batch(ops: Sequence[Operation], shapes: Shapes) -> int | None:
    """The common first dimension of what the operations are given; None if there is none."""
    made = {tensor for op in ops if role_of(op) is not Role.ELEMENT for tensor in op.outputs}
    rows = {
        shape[0]
        for tensor, shape in shapes.items()
        if shape and tensor not in made and role_of(tensor.op) not in (Role.CONSTANT, Role.READ)
    }
    return rows.pop() if len(rows) == 1 else None


def _text(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def abstract(values: Any) -> Any:
    """The shapes and dtypes of arrays, also of donated ones."""
    return jax.tree.map(
        lambda each: jax.ShapeDtypeStruct(np.shape(each), each.dtype),  # type: ignore[no-untyped-call]
        values,
    )
