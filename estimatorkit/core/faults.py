"""Faults: invalid values of an operation's inputs, such as ids out of range and divisors of 0.

A row of the registry may have a function `fault(inputs, attrs)`, which returns `Fault`s. Masks are
arrays of NumPy where the inputs are, otherwise of JAX. Host kernels and folded constants are
tested at once; on a device the result of the test is an output of the executable (see
`runtime.xla.faults`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.sizes import traced_size

if TYPE_CHECKING:
    from estimatorkit.core.tensor import Operation

MOST_VALUES = 8
"""The most values of a fault."""


class Fault(NamedTuple):
    """A test of an operation's inputs.

    Attributes:
        position: the number of the input that is tested; JAX integers, bools or floats.
        bad: which elements are faulty, of bool.
        values: what to report of the first faulty element: integers of `bad`'s shape, or scalars;
            at most `MOST_VALUES`.
        text: the error's text, given the element's index and its `values`.
    """

    position: int
    bad: Any
    values: tuple[Any, ...]
    text: Callable[[tuple[int, ...], tuple[int, ...]], str]


FaultTest = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Fault]]
"""`fault(inputs, attrs)`: the tests of an operation."""

ResultTest = Callable[[Sequence[Any], Sequence[Any], Mapping[str, Any]], Sequence[Fault]]
"""`result_fault(inputs, results, attrs)`: the tests of an operation's results."""


def known(*values: Any) -> bool:
    """Whether all values are known before a run: NumPy's."""
    return all(isinstance(value, (np.ndarray, np.generic, int, float, bool)) for value in values)


def xp(*values: Any) -> Any:
    """`numpy` if all values are known, else `jax.numpy`."""
    if known(*values):
        return np
    import jax.numpy

    return jax.numpy


def at(index: tuple[int, ...]) -> str:
    """An element's index as TensorFlow writes it: `[1,2]`, and nothing for a scalar's."""
    return f"[{','.join(map(str, index))}]" if index else ""


def outside(ids: Any, bound: Any, low: int = 0) -> Any:
    """A mask of the integers outside of `[low, bound)`."""
    if low == 0 and known(bound) and 0 <= int(bound) <= np.iinfo(ids.dtype).max:
        # One comparison: as unsigned integers, negative ones are larger than all others.
        return ids.view(f"u{ids.dtype.itemsize}") >= int(bound)
    return (ids < low) | (ids >= bound)


def in_range(
    position: int,
    ids: Any,
    bound: Any,
    text: str = "indices{at} = {value} is not in [0, {bound})",
    low: int | None = 0,
) -> list[Fault]:
    """The test that ids are from `low` to before `bound`.

    Args:
        position: the number of the input.
        ids: its value, integers.
        bound: a number or an integer scalar.
        text: the error, with `{at}`, `{value}` and `{bound}`.
        low: the least id; None if there is none.
    """
    limits = np.iinfo(ids.dtype)
    if not known(ids):
        bound = traced_size(bound)
    most = int(bound) if known(bound) else None
    too_low = low is not None and limits.min < low
    too_high = most is None or limits.max >= most
    if not too_low and not too_high:
        return []
    if too_low and too_high:
        bad = outside(ids, bound, low or 0)
    else:
        bad = ids < low if too_low else ids >= bound

    def text_of(index: tuple[int, ...], values: tuple[int, ...]) -> str:
        size = values[1] if most is None else most
        return text.format(at=at(index), value=values[0], bound=size)

    values = (ids, bound) if most is None else (ids,)
    return [Fault(position, bad, values, text_of)]


def refused(position: int, bad: Any, text: str) -> Fault:
    """A fault whose error needs no values: `text`, with `{at}`."""

    def text_of(index: tuple[int, ...], _: tuple[int, ...]) -> str:
        return text.format(at=at(index))

    return Fault(position, bad, (), text_of)


def first_fault(faults: Sequence[Fault]) -> tuple[Fault, int] | None:
    """The first fault of known values, and the flat position of its element; None if there is
    none."""
    for fault in faults:
        bad = np.asarray(fault.bad)
        if bad.any():
            return fault, int(bad.argmax())
    return None


def message(fault: Fault, place: int, values: Sequence[int] | None = None) -> str:
    """The error's text.

    Args:
        fault: the fault.
        place: the flat position of its element.
        values: `fault.values` of that element; by default they are computed, and must be known.
    """
    shape = np.shape(fault.bad)
    index = tuple(map(int, np.unravel_index(place, shape))) if shape else ()
    if values is None:
        every = [np.broadcast_to(value, shape) for value in fault.values]
        values = [int(value[index]) for value in every]
    return fault.text(index, tuple(values))


def fault_error(op: Operation, text: str) -> InvalidArgumentError:
    """The error for a fault of an operation."""
    return InvalidArgumentError.explained(
        text, made_at=f"{op.source} ({op.name}, {op.type})", op=op
    )
