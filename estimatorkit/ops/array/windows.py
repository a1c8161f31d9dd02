"""`x[begin:end]` with bounds computed at run time, and `strided_slice`.

XLA compiles per shape, so `x[i * n:(i + 1) * n]` would recompile in every step if compiled for its
bounds. Such bounds are rewritten to a start, a run-time input, and a length, for which alone the
segment is compiled; bounds that follow from shapes are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import as_dtype, bool_, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, fixed_value, folding, register
from estimatorkit.core.shapes import SCALAR
from estimatorkit.core.tensor import Tensor, operators
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.array.selection import boolean_mask

_ALL = slice(None)


def _bounds(begin: Any, end: Any, dimension: Any) -> tuple[Any, Any]:
    start, stop, _ = slice(int(begin), int(end)).indices(int(dimension))
    return np.int32(start), np.int32(max(stop - start, 0))


register(
    "SliceBounds",
    _bounds,
    infer=lambda inputs, attrs: [Spec(int32, SCALAR), Spec(int32, SCALAR)],
    where="host",
    gradient=None,
    cases=lambda: [
        Case(
            (np.int32(begin), np.int32(end), np.int32(10)),
            expected=[np.int32(start), np.int32(length)],
        )
        for begin, end, start, length in [(3, 5, 3, 2), (-2, 40, 8, 2), (8, -9, 8, 0)]
    ],
)


def _is_computed(bound: Any) -> bool:
    """Whether a slice's bound is known only at run time."""
    if not isinstance(bound, Tensor) and not hasattr(bound, "_as_tensor"):
        return False
    return not indexing.follows_from_shapes(convert_to_tensor(bound))


def _axis(parts: Sequence[Any], position: int, rank: int | None) -> int | None:
    """The axis of an index part; None if it depends on the unknown rank."""

    def takes(some: Sequence[Any]) -> int:
        return sum(part is not None and part is not Ellipsis for part in some)

    if not any(part is Ellipsis for part in parts[:position]):
        return takes(parts[:position])
    return None if rank is None else rank - takes(parts[position:])


def _is_mask(key: Any) -> bool:
    array = isinstance(key, (Tensor, np.ndarray)) or hasattr(key, "_as_tensor")
    return array and as_dtype(key.dtype) is bool_


def _getitem(tensor: Tensor, key: Any) -> Tensor:
    """`tensor[key]`; slices with two computed bounds are extracted first. The key may be a mask."""
    if _is_mask(key):
        return boolean_mask(tensor, key)
    parts = list(key) if isinstance(key, tuple) else [key]
    rank = tensor.shape.rank
    windows = {
        axis: position
        for position, part in enumerate(parts)
        if isinstance(part, slice)
        and part.step in (None, 1)
        and _is_computed(part.start)
        and _is_computed(part.stop)
        and (axis := _axis(parts, position, rank)) is not None
    }
    if rank is None or not windows or max(windows) >= rank:
        return indexing.getitem(tensor, key)
    bounds = {axis: parts[position] for axis, position in windows.items()}
    for position in windows.values():
        parts[position] = _ALL
    with get_default_graph().name_scope("strided_slice") as scope:
        if all(part is Ellipsis or part == _ALL for part in parts):
            return _cut(tensor, bounds, scope)
        return indexing.getitem(_cut(tensor, bounds, "window"), tuple(parts), scope)


operators["getitem"] = _getitem


def _cut(tensor: Tensor, bounds: dict[int, slice], name: str) -> Tensor:
    begin: list[Any] = []
    size: list[Any] = []
    for axis, known in enumerate(tensor.shape):
        length = array.shape(tensor)[axis] if known is None else known
        if axis in bounds:
            inputs = {"begin": bounds[axis].start, "end": bounds[axis].stop, "dimension": length}
            start, length = make("SliceBounds", inputs, {}, "bounds").op.outputs
        begin.append(start if axis in bounds else 0)
        size.append(length)
    inputs = {"input": tensor, "begin": joining.stack(begin), "size": joining.stack(size)}
    return make("Slice", inputs, {"to_end": False}, name)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """`input_[begin:end:strides]`, dimension by dimension.

    Bit i of a mask refers to position i of `begin`, `end` and `strides`.

    Args:
        input_: a tensor.
        begin, end: an int for each dimension, or a vector tensor of known length.
        strides: an int for each dimension, known when the graph is built; ones by default.
        begin_mask, end_mask: positions whose begin or end is ignored.
        ellipsis_mask: the position of an ellipsis.
        new_axis_mask: positions of new axes of length 1.
        shrink_axis_mask: positions at which `begin` is a single index, which drops the dimension.
        var: the variable that is sliced, so that the result has `assign`.
        name: accepted for compatibility only.

    Raises:
        ValueError: the lengths of `begin`, `end` and `strides` differ or are unknown.
    """
    firsts, lasts = _numbers(begin, "begin"), _numbers(end, "end")
    steps = [1] * len(firsts) if strides is None else _numbers(strides, "strides")
    if not len(firsts) == len(lasts) == len(steps):
        raise value_error(
            "strided_slice: begin, end and strides have different lengths",
            received=f"{len(firsts)}, {len(lasts)} and {len(steps)}",
        )
    key: list[Any] = []
    for at, (first, last, step) in enumerate(zip(firsts, lasts, steps, strict=True)):
        bit = 1 << at
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            if isinstance(step, int) and step < 0:
                raise value_error("only stride 1 allowed on non-range indexing", received=step)
            key.append(first)
        else:
            start = None if begin_mask & bit else first
            stop = None if end_mask & bit else last
            key.append(slice(start, stop, step))
    whole = convert_to_tensor(input_) if var is None else var
    part: Tensor = whole[tuple(key)]
    return part


def _numbers(vector: Any, what: str) -> list[Any]:
    """The elements of a vector: ints if known, else tensors."""
    tensor = convert_to_tensor(vector, name=what)
    known = fixed_value(tensor)
    if tensor.shape.rank not in (None, 1):
        raise value_error(
            f"strided_slice: Shape must be rank 1 but is rank {tensor.shape.rank}: {what}",
            received=tensor,
        )
    if known is not None:
        numbers: list[Any] = known.tolist()
        return numbers
    if (parts := folding.packed(tensor)) is not None:
        elements = [(each, fixed_value(each)) for each in parts]
        return [each if value is None else int(value) for each, value in elements]
    length = tensor.shape[0] if tensor.shape.rank == 1 else None
    if length is None:
        raise value_error(
            f"strided_slice: the length of {what} must be known",
            expected="a vector of known length",
            received=tensor,
            made_at=tensor.op.source,
        )
    return [tensor[at] for at in range(length)]
