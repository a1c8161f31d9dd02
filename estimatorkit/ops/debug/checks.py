"""Assertions about tensors (`assert_equal`, `assert_rank`, `assert_type`, ...) and predicates such
as `is_non_decreasing`.

As in TensorFlow 1, statically known values are checked at graph construction; the rest becomes an
`Assert` operation, which has no effect unless it is run: build dependent operations under
`control_dependencies([assertion])`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32, int32
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import constant_value
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.debug.debug import Assert, with_dependencies
from estimatorkit.ops.debug.summarize import summarize_first
from estimatorkit.ops.math import elementwise, reduce

_Data = Sequence[Any] | None


def _prefix(message: str | None) -> str:
    return f"{message}.  " if message else ""


def _all_hold(
    holds: Callable[[Any, Any], Tensor],
    numpy_holds: Callable[[Any, Any], Any],
    x: Tensor,
    y: Tensor,
    data: Sequence[Any],
    summarize: int | None,
) -> Operation:
    """Asserts `holds` elementwise.

    If both values are known, raises InvalidArgumentError at graph construction.
    """
    condition = reduce.reduce_all(holds(x, y))
    known = [constant_value(tensor) for tensor in (x, y)]
    if all(value is not None for value in known) and not np.all(numpy_holds(*known)):
        raise InvalidArgumentError(None, None, "\n".join(map(_as_text, data)))
    return Assert(condition, data, summarize=summarize)


def _as_text(part: Any) -> str:
    value = constant_value(part) if isinstance(part, Tensor) else None
    return str(part) if value is None else f"[{summarize_first(value, -1)}]"


# -- elementwise, two tensors


class _OfTwo(Protocol):
    """Signature of elementwise assertions about two tensors."""

    def __call__(
        self,
        x: Any,
        y: Any,
        data: _Data = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation: ...


def _of_two(
    name: str, symbol: str, holds: Callable[..., Tensor], numpy_holds: Callable[[Any, Any], Any]
) -> _OfTwo:
    default_name = name

    def check(
        x: Any,
        y: Any,
        data: _Data = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with get_default_graph().name_scope(name or default_name):
            x = convert_to_tensor(x, name="x", dtype_hint=getattr(y, "dtype", None))
            y = convert_to_tensor(y, name="y", dtype_hint=x.dtype)
            if data is None:
                words = f"Condition x {symbol} y did not hold element-wise:"
                data = [words, f"x ({x.name}) = ", x, f"y ({y.name}) = ", y]
            said = data if message is None else [message, *data]
            return _all_hold(holds, numpy_holds, x, y, said, summarize)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Asserts that `x {symbol} y` elementwise, with broadcasting.

    Args:
        x, y: tensors of one dtype.
        data: values to print in the error; a sentence and both tensors by default.
        summarize: the number of elements to print of each; 3 by default.
        message: the beginning of the error text.

    Returns:
        The `Assert` operation.

    Raises:
        InvalidArgumentError: both values are statically known, and violate the assertion.
    """
    return check


assert_equal = _of_two("assert_equal", "==", elementwise.equal, np.equal)
assert_none_equal = _of_two("assert_none_equal", "!=", elementwise.not_equal, np.not_equal)
assert_less = _of_two("assert_less", "<", elementwise.less, np.less)
assert_less_equal = _of_two("assert_less_equal", "<=", elementwise.less_equal, np.less_equal)
assert_greater = _of_two("assert_greater", ">", elementwise.greater, np.greater)
assert_greater_equal = _of_two(
    "assert_greater_equal", ">=", elementwise.greater_equal, np.greater_equal
)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: _Data = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Asserts that `|x - y| <= atol + rtol |y|` elementwise.

    Args:
        x, y: floating tensors of one dtype.
        rtol, atol: tolerances; 10 times the dtype's epsilon by default.
        data, summarize, message, name: see `assert_equal`.
    """
    with get_default_graph().name_scope(name or "assert_near"):
        x = convert_to_tensor(x, name="x", dtype_hint=getattr(y, "dtype", None))
        y = convert_to_tensor(y, x.dtype, name="y")
        epsilon = 10 * float(_epsilon(x.dtype))
        relative = convert_to_tensor(epsilon if rtol is None else rtol, x.dtype, "rtol")
        absolute = convert_to_tensor(epsilon if atol is None else atol, x.dtype, "atol")
        if data is None:
            words = "x and y not equal to tolerance rtol, atol = "
            data = [_prefix(message), words, relative, absolute]
            data += [f"x ({x.name}) = ", x, f"y ({y.name}) = ", y]
        far = elementwise.abs(x - y)
        near = elementwise.less_equal(far, absolute + relative * elementwise.abs(y))
        return Assert(reduce.reduce_all(near), data, summarize=summarize)


def _epsilon(dtype: DType) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(dtype.numpy_dtype).eps  # type: ignore[no-untyped-call]


# -- elementwise, one tensor against zero


class _OfOne(Protocol):
    """Signature of elementwise assertions about one tensor."""

    def __call__(
        self,
        x: Any,
        data: _Data = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation: ...


def _of_one(
    name: str, symbol: str, holds: Callable[..., Tensor], numpy_holds: Callable[[Any, Any], Any]
) -> _OfOne:
    default_name = name

    def check(
        x: Any,
        data: _Data = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with get_default_graph().name_scope(name or default_name):
            x = convert_to_tensor(x, name="x")
            if data is None:
                condition = f"Condition x {symbol} 0 did not hold element-wise:"
                data = [_prefix(message), condition, f"x ({x.name}) = ", x]
            zero = convert_to_tensor(np.zeros((), x.dtype.numpy_dtype), name="zero")
            return _all_hold(holds, numpy_holds, x, zero, data, summarize)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Asserts that `x {symbol} 0` elementwise; otherwise like `assert_equal`."""
    return check


assert_negative = _of_one("assert_negative", "<", elementwise.less, np.less)
assert_positive = _of_one("assert_positive", ">", elementwise.greater, np.greater)
assert_non_positive = _of_one("assert_non_positive", "<=", elementwise.less_equal, np.less_equal)
assert_non_negative = _of_one(
    "assert_non_negative", ">=", elementwise.greater_equal, np.greater_equal
)


# -- ranks


def _rank_check(
    scope: str,
    words: str,
    x: Any,
    ranks: Sequence[Any],
    fits: Callable[[int, Sequence[int]], bool],
    holds: Callable[[Tensor, Sequence[Tensor]], Tensor],
    data: _Data,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    """Asserts that the rank of `x` satisfies `holds`, or statically `fits`.

    Raises ValueError if the rank is known and does not, or if an element of `ranks` is not a
    scalar.
    """
    with get_default_graph().name_scope(name or scope):
        x = x if isinstance(x, SparseTensor) else convert_to_tensor(x, name="x")
        shown_name = f"of shape {x.shape}" if isinstance(x, SparseTensor) else x.name
        wanted = [convert_to_tensor(rank, int32, "rank") for rank in ranks]
        known = [constant_value(rank) for rank in wanted]
        checks: list[Operation] = []
        for rank, value in zip(wanted, known, strict=True):
            if rank.shape.rank not in (None, 0):
                raise ValueError("Rank must be a scalar.")
            if value is None and rank.shape.rank is None:
                received = ["Rank must be a scalar. Received rank: ", rank]
                checks.append(assert_rank(rank, 0, data=received))
        if x.shape.rank is not None and all(value is not None for value in known):
            numbers = [int(value) for value in known if value is not None]
            if not fits(x.shape.rank, numbers):
                shown = tuple(numbers) if words.endswith("in") else numbers[0]
                raise ValueError(
                    f"{_prefix(message)}Tensor {shown_name} must have {words} {shown}.  Received "
                    f"rank {x.shape.rank}, shape {x.shape}"
                )
            done: Operation = builtin_ops.no_op("static_checks_determined_all_ok")
            return done
        if data is None:
            start = [_prefix(message), f"Tensor {shown_name} must have {words}"]
            data = [*start, *wanted, "Received shape: ", array.shape(x)]
        condition = holds(array.rank(x), wanted)
        if checks:
            condition = with_dependencies(checks, condition)
        return Assert(condition, data, summarize=summarize)


def assert_rank(
    x: Any,
    rank: Any,
    data: _Data = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Asserts that `x` has `rank` dimensions.

    Args:
        x: a tensor.
        rank: an int or an int32 scalar.
        data, summarize, message, name: see `assert_equal`.

    Raises:
        ValueError: the static rank differs.
    """
    return _rank_check(
        "assert_rank",
        "rank",
        x,
        [rank],
        lambda actual, wanted: actual == wanted[0],
        lambda actual, wanted: elementwise.equal(actual, wanted[0]),
        data,
        summarize,
        message,
        name,
    )


def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: _Data = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Asserts that `x` has at least `rank` dimensions; arguments as for `assert_rank`."""
    return _rank_check(
        "assert_rank_at_least",
        "rank at least",
        x,
        [rank],
        lambda actual, wanted: actual >= wanted[0],
        lambda actual, wanted: elementwise.greater_equal(actual, wanted[0]),
        data,
        summarize,
        message,
        name,
    )


def assert_rank_in(
    x: Any,
    ranks: Sequence[Any],
    data: _Data = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Asserts that the rank of `x` is one of `ranks`; otherwise like `assert_rank`."""
    return _rank_check(
        "assert_rank_in",
        "rank in",
        x,
        list(ranks),
        lambda actual, wanted: actual in wanted,
        lambda actual, wanted: reduce.reduce_any(elementwise.equal(actual, wanted)),
        data,
        summarize,
        message,
        name,
    )


# -- checks of static properties


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Asserts that `x` has an integer dtype.

    Raises:
        TypeError: it has another dtype.
    """
    with get_default_graph().name_scope(name or "assert_integer"):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError(
                f'{_prefix(message)}Expected "x" to be integer type.  Found: {x.name} of dtype '
                f"{x.dtype}"
            )
        done: Operation = builtin_ops.no_op("statically_determined_was_integer")
        return done


def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """Asserts that `tensor` has dtype `tf_type`.

    Raises:
        TypeError: it has another dtype.
    """
    wanted = as_dtype(tf_type)
    with get_default_graph().name_scope(name or "assert_type"):
        tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype is not wanted:
            raise TypeError(
                f"{_prefix(message)}{tensor.name} must be of type {wanted!r}; got {tensor.dtype!r}"
            )
        done: Operation = builtin_ops.no_op("statically_determined_correct_type")
        return done


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """Returns `tensor`, which must statically be a scalar.

    Raises:
        ValueError: it has dimensions, or its rank is unknown.
    """
    with get_default_graph().name_scope(name or "assert_scalar") as scope:
        scalar = convert_to_tensor(tensor, name=scope)
        if scalar.shape.rank != 0:
            raise ValueError(
                f"{_prefix(message)}Expected scalar shape for {scalar.name}, saw shape: "
                f"{scalar.shape}."
            )
        return scalar


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """Returns the floating dtype that all tensors must have.

    Args:
        tensors: tensors; None elements are skipped.
        dtype: the required dtype, if any.

    Raises:
        ValueError: the dtypes differ, or are not floating.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    first: Any = None
    for tensor in tensors or ():
        if tensor is None:
            continue
        if wanted is None:
            wanted, first = as_dtype(tensor.dtype), tensor
        elif as_dtype(tensor.dtype) is not wanted:
            of = "" if first is None else f" as {first.name}"
            raise ValueError(
                f"{tensor.name}, type={tensor.dtype}, must be of the same type ({wanted}){of}."
            )
    wanted = wanted or float32
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted}.")
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Asserts that `values` is iterable, but not a tensor, array or string.

    Raises:
        TypeError: it is one of these, or not iterable.
    """
    if isinstance(values, (Tensor, np.ndarray, str, bytes)):
        raise TypeError(
            f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}'
        )
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# -- predicates


def is_numeric_tensor(tensor: Any) -> bool:
    """Returns whether `tensor` is a tensor of a numeric dtype."""
    return isinstance(tensor, Tensor) and tensor.dtype.kind in "fci"


def is_tensor(x: Any) -> bool:
    """Whether this is a tensor, a sparse tensor, `IndexedSlices`, or a variable."""
    return isinstance(x, (Tensor, SparseTensor, IndexedSlices)) or hasattr(x, "_as_tensor")


def _of_neighbours(scope: str, x: Any, name: str | None, holds: Callable[..., Tensor]) -> Tensor:
    with get_default_graph().name_scope(name or scope):
        tensor = convert_to_tensor(x, name="x")
        if not is_numeric_tensor(tensor):
            raise TypeError(f"Expected x to be numeric, instead found: {tensor}")
        flat = array.reshape(tensor, [-1])
        found: Tensor = reduce.reduce_all(holds(flat[:-1], flat[1:]), name="All")
        return found


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether the elements of `x`, in row-major order, are non-decreasing: a bool scalar.

    Raises:
        TypeError: `x` is not numeric.
    """
    return _of_neighbours("is_non_decreasing", x, name, elementwise.less_equal)


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether the elements of `x`, in row-major order, are strictly increasing: a bool scalar.

    Raises:
        TypeError: `x` is not numeric.
    """
    return _of_neighbours("is_strictly_increasing", x, name, elementwise.less)
