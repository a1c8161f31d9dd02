"""Resolving axis arguments: ints, constant tensors, lists of one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, whole_numbers
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.registry import constant_value, fixed_value
from estimatorkit.core.tensor import Tensor


def ints_of(value: Any, what: str) -> NDArray[Any]:
    """Converts integers (axes, a permutation, a length) that must be known at graph construction.

    Args:
        value: an int, nested lists of ints, an array, or a constant tensor; lists may hold
            constant scalars.
        what: who asks, for the error.

    Raises:
        TypeError: these are not integers, or a tensor of a dtype other than int32 and int64.
        ValueError: it is a tensor that is not constant.
    """
    if isinstance(value, (list, tuple)):
        return np.asarray([ints_of(each, what) for each in value], None if value else np.int64)
    if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        tensor = convert_to_tensor(value)
        registry.check_allowed(tensor, "x", what, "axis")
        value = fixed_value(tensor)
        if value is None:
            raise value_error(
                f"{what}: the axis must be known when the graph is built",
                expected="an int or a constant",
                received=tensor,
                made_at=tensor.op.source,
            )
    found = np.asarray(whole_numbers(value))
    if found.size and found.dtype.kind not in "iu":
        raise type_error(f"{what}: expected int32 or int64", received=f"{value!r} ({found.dtype})")
    return found


def axis_of(axis: Any, what: str) -> int:
    """Converts an axis (or another int, or a list of one) that must be known at graph construction.

    Raises:
        TypeError, ValueError: see `ints_of`; or there are several.
    """
    found = ints_of(axis, what)
    if found.size != 1:
        raise value_error(
            f"{what}: the axis must be an int or a tensor with a single value", received=axis
        )
    return int(found.reshape(()))


def with_axes(kernel: Callable[..., Any], attr: str = "axis") -> Callable[..., Any]:
    """Wraps a kernel so that the attribute 'input' means the value of its second input."""

    @functools.wraps(kernel)
    def call(x: Any, *computed: Any, **attrs: Any) -> Any:
        if computed:
            attrs[attr] = tuple(int(each) for each in np.atleast_1d(computed[0]))
        return kernel(x, **attrs)

    return call


def known_axes(inputs: Sequence[Tensor], axes: Any) -> Any:
    """The axes of an operation; 'input' if they are not constant."""
    value = constant_value(inputs[1]) if axes == "input" else None
    return axes if value is None else tuple(np.atleast_1d(value).tolist())


def in_range(axis: int, rank: int, what: str) -> int:
    """Normalizes an axis to be non-negative.

    Raises:
        ValueError: it is not in [-rank, rank).
    """
    if not -rank <= axis < rank:
        raise value_error(
            f"{what}: axis out of range: dim {axis} not in the interval [{-rank}, {rank - 1}]",
            expected=f"in [{-rank}, {rank})",
            received=axis,
        )
    return axis % rank
