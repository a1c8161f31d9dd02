"""Axis arguments: ints, constant tensors, lists of one, and tensors that only a run knows.

A known axis becomes an attribute. Otherwise it is the operation's last input, which must be
known when the kernel is traced (`OpDef.static`); the attribute then says which (`input_of`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import nest, registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, whole_numbers
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.registry import Attrs, Infer, OpDef, Spec, constant_value, fixed_value
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor, holds_tensors


def ints_of(value: Any, what: str) -> NDArray[Any]:
    """Converts integers (axes, a permutation, a length) that must be known at graph construction.

    Args:
        value: an int, nested lists of ints, an array, or a constant tensor; lists may hold
            constant scalars.
        what: the caller's name, for the error.

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


def unknown_numbers(value: Any, what: str) -> Tensor | None:
    """The tensor of numbers that only a run knows; None for all others (see `ints_of`).

    Raises:
        TypeError: it is neither int32 nor int64.
    """
    if not holds_tensors([value]):
        return None
    if all(constant_value(each) is not None for each in nest.flatten(value)):
        return None
    is_list = isinstance(value, (list, tuple))
    tensor = as_index_tensor(value, "axis") if is_list else convert_to_tensor(value)
    registry.check_allowed(tensor, "x", what, "axis")
    return tensor


def with_axis(
    inputs: Mapping[str, Any], axis: Any, what: str, attr: str = "axis"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs and the attribute of an operation with an axis (or another int).

    Raises:
        TypeError, ValueError: see `axis_of`.
    """
    tensor = unknown_numbers(axis, what)
    if tensor is None:
        return dict(inputs), {attr: axis_of(axis, what)}
    if tensor.shape.num_elements() not in (1, None):
        raise value_error(f"{what}: the axis must be a single number", received=tensor)
    return {**inputs, attr: tensor}, {attr: input_attr(len(inputs))}


def input_attr(position: int) -> str:
    """The attribute that represents the value of an input."""
    return f"input {position}"


def input_of(attr: Any) -> int | None:
    """The position of the input whose value an attribute has; None if it has its own.

    Older graphs have 'input' for the second.
    """
    if not isinstance(attr, str) or not attr.startswith("input"):
        return None
    return int(attr.removeprefix("input") or 1)


def as_tuple(attr: str) -> Callable[[Any], Attrs]:
    """The `read` of `register_with_axis` for an attribute that has several axes, or one."""
    return lambda value: {attr: tuple(np.atleast_1d(value).tolist())}


def register_with_axis(
    op_type: str,
    kernel: Callable[..., Any],
    *,
    infer: Infer,
    attr: str = "axis",
    read: Callable[[Any], Attrs] | None = None,
    unknown: Infer | None = None,
    **rest: Any,
) -> OpDef:
    """Adds a row, one of whose attributes may be the value of an input (see `registry.register`).

    Args:
        op_type, kernel, infer, rest: the row, as if the attribute were always given.
        attr: the attribute.
        read: the attributes that the input's value stands for; by default `attr` alone, an int or
            a tuple of ints.
        unknown: infers while the value is unknown; by default, the ranks are those for -1.
    """

    def one(value: Any) -> Attrs:
        return {attr: tuple(value.tolist()) if np.ndim(value) else int(value)}

    def resolved(
        inputs: Sequence[Any], attrs: Attrs, value: Any = None
    ) -> tuple[Sequence[Any], Attrs]:
        place = input_of(attrs[attr])
        if place is None:
            return inputs, attrs
        found = np.asarray(inputs[place] if value is None else value)
        return [*inputs[:place], *inputs[place + 1 :]], {**attrs, **(read or one)(found)}

    def given(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*inputs: Any, **attrs: Any) -> Any:
            own, known = resolved(inputs, attrs)
            return function(*own, **known)

        return call

    def inferred(inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
        place = input_of(attrs[attr])
        value = None if place is None else constant_value(inputs[place])
        is_known = place is None or value is not None
        if unknown is not None and not is_known:
            return unknown(inputs, attrs)
        own, known = resolved(inputs, attrs, -1 if value is None else value)
        if is_known:
            return infer(own, known)
        return [Spec(each.dtype, _rank(each)) for each in infer(own, known)]

    def static(attrs: Attrs) -> tuple[int, ...]:
        place = input_of(attrs[attr])
        return () if place is None else (place,)

    if "numpy_kernel" in rest:
        rest["numpy_kernel"] = given(rest["numpy_kernel"])
    if "fault" in rest:
        fault = rest["fault"]
        rest["fault"] = lambda inputs, attrs: fault(*resolved(inputs, attrs))
    return registry.register(op_type, given(kernel), infer=inferred, static=static, **rest)


def _rank(spec: Spec) -> TensorShape:
    rank = spec.shape.rank
    return UNKNOWN if rank is None else TensorShape([None] * rank)


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
