"""Errors for want of memory: ours, which name the largest tensors and the batch.

XLA says how many bytes it could not have, not what for. Linux gives memory that it does not have,
and ends the process when it is used: what is large is compared with what is free before.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import jax
import numpy as np

from estimatorkit.core.dtypes import DType, resource
from estimatorkit.core.errors import ResourceExhaustedError
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor

Shapes: TypeAlias = Mapping[Tensor, tuple[int, ...]]
"""The shapes of tensors in a run."""

_MOST_NAMED = 3
_LARGE = 1 << 30
"""Bytes that are compared with what is free."""
_CGROUP = Path("/sys/fs/cgroup")
_KIB_AVAILABLE = re.compile(r"(?:MemAvailable|SwapFree):\s+(\d+) kB")
_CACHED = re.compile(r"^inactive_file (\d+)", re.M)


ERRORS = (MemoryError, jax.errors.JaxRuntimeError)
"""What NumPy and XLA raise."""

_WORDS = ("Out of memory", "RESOURCE_EXHAUSTED")
"""Found in XLA's errors for want of memory; some allocators for GPUs say only the second."""


def explained(
    error: Exception, ops: Sequence[Operation], shapes: Callable[[], Shapes] = dict
) -> Exception:
    """What to raise for one of `ERRORS`: ours if it is for want of memory, else the error itself.

    Args:
        error: the error.
        ops: what ran.
        shapes: the shapes of tensors in the run; without them, those that the graph knows count.
    """
    if isinstance(error, MemoryError) or any(each in str(error) for each in _WORDS):
        return out_of_memory(ops, str(error), shapes())
    return error


def check_variables(variables: Iterable[tuple[Operation, DType, Sequence[int]]]) -> None:
    """Checks that new variables fit into the host's free memory.

    Args:
        variables: the operation, dtype and shape of each.

    Raises:
        ResourceExhaustedError: they do not fit.
    """
    sizes = {op: (math.prod(shape) * dtype.size, shape) for op, dtype, shape in variables}
    needed = sum(size for size, _ in sizes.values())
    free = free_memory() if needed > _LARGE else None
    if free is None or needed <= free:
        return
    op = max(sizes, key=lambda op: (sizes[op][0], -len(op.name)))  # no slot of an optimizer
    size, shape = sizes[op]
    raise ResourceExhaustedError.explained(
        f"the variables of the model take {_text(needed)}",
        expected=f"at most {_text(free)}, the memory that is free",
        received=f"{len(sizes)} variables; the largest is {op.name} {list(shape)} of {_text(size)}",
        made_at=op.source,
        hint="use a smaller model, with fewer buckets or words (hash_bucket_size, "
        "vocabulary_size) or smaller dimensions, or distribute rows over parameter servers",
        op=op,
    )


def check_words(path: str, size: int, count: int) -> None:
    """Compares what the words of a vocabulary take in memory with what is free.

    A word takes its bytes twice, and 300 bytes of objects, of a list and of a table's index.

    Args:
        path: the file.
        size: its bytes.
        count: how many words there are, nearly.

    Raises:
        ResourceExhaustedError: they do not fit.
    """
    needed = 2 * size + 300 * count
    free = free_memory() if needed > _LARGE else None
    if free is not None and needed > free:
        raise ResourceExhaustedError.explained(
            f"the vocabulary {path!r} takes {_text(needed)}",
            expected=f"at most {_text(free)}, the memory that is free",
            received=f"about {count:,} words",
            hint="keep the most frequent words, or use categorical_column_with_hash_bucket",
        )


def free_memory() -> int | None:
    """The bytes that this process can have of the machine, or of its container; None if unknown."""
    try:
        found = _KIB_AVAILABLE.findall(Path("/proc/meminfo").read_text())
    except OSError:
        return None  # not Linux
    free = sum(map(int, found)) << 10 if found else None
    with suppress(OSError, ValueError):  # "max": no limit
        limit, used = (int((_CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        cached = _CACHED.search((_CGROUP / "memory.stat").read_text())
        left = limit - used + (int(cached[1]) if cached else 0)
        free = left if free is None else min(free, left)
    return free


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
