"""Where the windows of a gather or a scatter are in its operand.

An index names the first element of a window. With the operand's elements numbered in order, a
window's are at `bases + offsets`: one base per index, and the same offsets for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.lax import GatherScatterMode

from estimatorkit.runtime.interpreter.equations import Aval, Equation

_INT32, _INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


class Windows(NamedTuple):
    """The windows of a gather or a scatter.

    Attributes:
        operand: the shape of the operand.
        sizes: the size of a window in each dimension of the operand.
        starts: the dimensions of the operand that the components of an index count.
        batches: dimensions of the operand, and those of the indices with which they advance.
        kept: the dimensions of the operand that a window has in the result, or in the updates.
        indices: the shape of the indices, without that of their components.
        order: the dimensions of the result or of the updates in which the indices' come first.
        clamp: whether windows are moved into the operand; otherwise those outside it are left out.
        wraps: whether indices are reduced to 32 bits.
    """

    operand: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    batches: tuple[tuple[int, int], ...]
    kept: tuple[int, ...]
    indices: tuple[int, ...]
    order: tuple[int, ...]
    clamp: bool
    wraps: bool = False

    @property
    def strides(self) -> list[int]:
        """The distance between neighbours along each dimension of the operand, in elements."""
        return [math.prod(self.operand[at + 1 :]) for at in range(len(self.operand))]

    @property
    def number(self) -> int:
        """The number of windows."""
        return math.prod(self.indices)

    @property
    def window(self) -> tuple[int, ...]:
        """The shape of a window in the result or the updates."""
        return tuple(self.sizes[at] for at in self.kept)

    @property
    def limits(self) -> list[int]:
        """The last index that is within the operand, for each component."""
        return [self.operand[at] - self.sizes[at] for at in self.starts]

    def is_of_rows(self) -> bool:
        """Whether windows are rows: whole, except for leading dimensions, of which they are one."""
        lead = self.leading
        return (
            sorted([*self.starts, *(at for at, _ in self.batches)]) == list(range(lead))
            and all(size == 1 for size in self.sizes[:lead])
            and self.sizes[lead:] == self.operand[lead:]
        )

    @property
    def leading(self) -> int:
        """How many dimensions of the operand are indexed."""
        return len(self.starts) + len(self.batches)

    def offsets(self) -> Any:
        """The numbers of a window's elements, from its first."""
        total = np.zeros((), np.int64)
        for at, stride in enumerate(self.strides):
            total = total[..., None] + np.arange(self.sizes[at]) * stride
        return total.reshape(-1)


def of_gather(equation: Equation) -> Windows:
    """The windows of a gather."""
    numbers, parameters = equation.params["dimension_numbers"], equation.params
    operand, indices = equation.inputs
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    return Windows(
        operand.shape,
        tuple(parameters["slice_sizes"]),
        tuple(numbers.start_index_map),
        _pairs(numbers.operand_batching_dims, numbers.start_indices_batching_dims),
        tuple(at for at in range(len(operand.shape)) if at not in left_out),
        indices.shape[:-1],
        _order(len(equation.result.shape), numbers.offset_dims),
        parameters["mode"] != GatherScatterMode.FILL_OR_DROP,
        wraps=parameters["mode"] == GatherScatterMode.FILL_OR_DROP,
    )


def of_scatter(equation: Equation) -> Windows:
    """The windows of a scatter."""
    numbers = equation.params["dimension_numbers"]
    operand, indices, updates = equation.inputs
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = [updates.shape[at] for at in numbers.update_window_dims]
    kept = tuple(at for at in range(len(operand.shape)) if at not in left_out)
    window = dict(zip(kept, sizes, strict=True))
    return Windows(
        operand.shape,
        tuple(window.get(at, 1) for at in range(len(operand.shape))),
        tuple(numbers.scatter_dims_to_operand_dims),
        _pairs(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims),
        kept,
        indices.shape[:-1],
        _order(len(updates.shape), numbers.update_window_dims),
        equation.params["mode"] == GatherScatterMode.CLIP,
    )


def _pairs(first: Sequence[int], second: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(first, second, strict=True))


def _order(rank: int, last: Sequence[int]) -> tuple[int, ...]:
    return (*(at for at in range(rank) if at not in last), *last)


def bases(windows: Windows, indices: Aval, unit: int = 1) -> Callable[[Any], tuple[Any, Any]]:
    """The function that finds the first elements of windows.

    Args:
        windows: the windows.
        indices: those that it will get.
        unit: number the operand's elements by so many.

    Returns:
        From indices to an array of the indices' shape, and which windows are within the operand:
        None if all are. The others have some base within it.
    """
    limits = windows.limits
    strides = [windows.strides[at] // unit for at in windows.starts]
    own: Any = 0
    for at, along in windows.batches:
        shape = [1] * len(windows.indices)
        shape[along] = -1
        first = np.arange(windows.indices[along]) * (windows.strides[at] // unit)
        own = own + first.reshape(shape)
    if not limits:
        every = np.broadcast_to(np.asarray(own, np.int64), windows.indices)
        return lambda _: (every, None)
    whole = integers(windows, indices.dtype)
    if len(limits) == 1:
        ((limit,), (stride,)) = limits, strides
        if windows.clamp:

            def clamped(given: Any) -> tuple[Any, Any]:
                first = np.minimum(np.maximum(whole(given[..., 0]), 0), limit)
                return (first if stride == 1 else first * stride) + own, None

            return clamped

        def checked(given: Any) -> tuple[Any, Any]:
            first = whole(given[..., 0])
            inside = (first >= 0) & (first <= limit)
            if inside.all():
                return (first if stride == 1 else first * stride) + own, None
            return np.where(inside, first, 0) * stride + own, inside

        return checked
    most, steps = np.asarray(limits, np.int64), np.asarray(strides, np.int64)

    def general(given: Any) -> tuple[Any, Any]:
        first = whole(given)
        moved = np.minimum(np.maximum(first, 0), most)
        inside = None if windows.clamp else (moved == first).all(-1)
        if inside is not None and inside.all():
            inside = None
        return moved @ steps + own, inside

    return general


def integers(windows: Windows, dtype: Any) -> Callable[[Any], Any]:
    """The function that makes int64 of indices; as in XLA, those of more bits may wrap."""
    if windows.clamp and dtype == np.uint64:
        return lambda given: np.minimum(given, np.uint64(_INT64.max)).astype(np.int64)
    if windows.wraps and max(windows.operand, default=0) <= _INT32.max:
        return lambda given: given.astype(np.int32).astype(np.int64)
    return lambda given: given.astype(np.int64)


def slicing(operand: Sequence[int], sizes: Sequence[int]) -> Callable[[Any], Any]:
    """The function from starts, which may be outside, to the index of a slice."""
    limits = [whole - size for whole, size in zip(operand, sizes, strict=True)]
    moving = [(at, limits[at], sizes[at]) for at in range(len(limits)) if limits[at]]
    whole = [slice(None)] * len(limits)

    def run(starts: Any) -> Any:
        index = whole.copy()
        for at, limit, size in moving:
            start = min(max(int(starts[at]), 0), limit)
            index[at] = slice(start, start + size)
        return tuple(index)

    return run


def within(index: Sequence[int], limits: Sequence[int]) -> bool:
    """Whether each component of an index is between 0 and a limit, inclusive."""
    return all(0 <= at <= limit for at, limit in zip(index, limits, strict=True))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes one."""
    return tuple(np.argsort(order).tolist())


__all__ = [
    "Windows",
    "bases",
    "integers",
    "inverse",
    "of_gather",
    "of_scatter",
    "slicing",
    "within",
]
