"""`map_fn`, `scan`, `foldl`, `foldr`: functions over tensors' rows in one XLA loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core import nest
from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.composite import is_composite
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.function_graph import trace
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import expand
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import stop_gradient
from estimatorkit.ops.control.function_ops import make_function_op
from estimatorkit.ops.control.host_functions import ELEMENT


def scan_op(
    function: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    elements: Any,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """A loop over elements with carried values: the basis of recurrent networks and `scan`.

    Args:
        function: `function(carry, element)` returns the next carry and a result.
        carry: the initial carry, a nested structure of tensors.
        elements: a nested structure of tensors whose rows are the elements; an empty tuple for
            none.
        length: the number of steps if there are no elements.
        reverse: start with the last element; results keep their elements' positions.

    Returns:
        The last carry, and the results stacked along a new first dimension.

    Raises:
        TypeError, ValueError: the carry changes its structure, dtype or shape.
    """
    before, rebuild_carry = expand(nest.map_structure(_tensor, carry))
    columns, rebuild_elements = expand(nest.map_structure(_tensor, elements))
    rows = [_row_of(column) for column in columns]
    if len({column.shape[0] for column in columns if column.shape.rank} - {None}) > 1:
        raise value_error(
            "Dimensions are not compatible: the elements have different numbers of rows",
            received=columns,
        )
    count = len(before)

    def arguments(inputs: Sequence[Tensor]) -> Sequence[Any]:
        return rebuild_carry(inputs[:count]), rebuild_elements(inputs[count:])

    def convert(returned: Any) -> Any:
        after, result = returned
        leaves, _ = expand(after)
        if len(leaves) != count:
            raise value_error(
                "The two structures don't have the same nested structure: the carried value "
                "changes",
                expected=nest.map_structure(lambda leaf: type(leaf).__name__, carry),
                received=repr(after)[:300],
            )
        after = [
            convert_to_tensor(leaf, dtype_hint=tensor.dtype)
            for leaf, tensor in zip(leaves, before, strict=True)
        ]
        for tensor, start in zip(after, before, strict=True):
            _check_carry(tensor, start)
        return after, nest.map_structure(_tensor, result)

    body = trace(function, [*before, *rows], arguments, convert)
    op = make_function_op(
        "Scan",
        [*before, *columns],
        [body],
        [[*range(count), *[ELEMENT] * len(columns)]],
        {"carried": count, "length": length, "reverse": reverse},
    )
    _, rebuild_result = expand(body.structure[1])
    return rebuild_carry(op.outputs[:count]), rebuild_result(op.outputs[count:])


def _tensor(value: Any) -> Any:
    return value if is_composite(value) else convert_to_tensor(value)


def _row_of(column: Tensor) -> Tensor:
    """A placeholder tensor with the dtype and shape of an element."""
    if column.shape.rank == 0:
        raise value_error(
            "Elements in elems must be 1+ dimensional Tensors, not scalars",
            received=column,
            made_at=column.op.source,
        )
    dims = None if column.shape.dims is None else column.shape.dims[1:]
    return Tensor(column.op, column.value_index, column.dtype, TensorShape(dims))


def _check_carry(after: Tensor, before: Tensor) -> None:
    if after.dtype is not before.dtype or not after.shape.is_compatible_with(before.shape):
        raise value_error(
            "the carried value changes its dtype or shape",
            expected=f"{before.dtype.name} {before.shape}",
            received=after,
            made_at=after.op.source,
        )


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Applies `fn` to each element of `elems` and stacks the results.

    Args:
        fn: maps an element (in the structure of `elems`) to a nested structure of tensors.
        elems: a tensor or a nested structure of tensors, dense or sparse, with equal first
            dimensions. Elements of a sparse tensor are sparse, with one dimension less.
        dtype: the results' dtypes if they differ from those of `elems`; others are refused.
        parallel_iterations, swap_memory, infer_shape: accepted for compatibility only.
        back_prop: whether gradients flow through.
        fn_output_signature: as `dtype`.

    Returns:
        The results in the structure that `fn` returns, `(elements, ...)`.

    Raises:
        TypeError: `fn` is not a function, or returns a dtype other than `dtype` or sparse tensors.
        ValueError: `elems` is empty.
    """
    _check_callable(fn)
    _check_elems(elems)
    dtype = fn_output_signature if dtype is None else dtype
    with get_default_graph().name_scope(name or "map"):
        results = _mapped(_giving(fn, elems if dtype is None else dtype), elems)
        expected = elems if dtype is None else dtype
        _check_dtypes(results, expected, given=dtype is not None)
        with get_default_graph().name_scope("TensorArrayStack"):
            return _finished(results, back_prop, "TensorArrayGatherV3")


def _giving(fn: Callable[[Any], Any], expected: Any) -> Callable[[Any], Any]:
    """Wraps `fn` to convert its numbers and arrays to the expected dtypes if possible."""
    dtypes = [getattr(each, "dtype", each) for each in nest.flatten(expected)]

    def converted(element: Any) -> Any:
        result = fn(element)
        leaves = nest.flatten(result)
        if len(leaves) != len(dtypes) or any(hasattr(leaf, "dtype") for leaf in leaves):
            return result
        pairs = zip(leaves, dtypes, strict=True)
        tensors = [convert_to_tensor(leaf, dtype_hint=dtype) for leaf, dtype in pairs]
        return nest.pack_sequence_as(result, tensors)

    return converted


def vectorized_map(
    fn: Callable[[Any], Any],
    elems: Any,
    fallback_to_while_loop: bool = True,
    warn: bool = True,
    name: str | None = None,
) -> Any:
    """Applies `fn` to each element of `elems` and stacks the results, of any dtype.

    Args:
        fn: maps an element (in the structure of `elems`) to a nested structure of tensors.
        elems: a tensor or a nested structure of tensors with equal first dimensions; a dimension
            of 1 is broadcast.
        fallback_to_while_loop, warn: accepted for compatibility only: the loop is compiled.

    Returns:
        The results in the structure that `fn` returns, `(elements, ...)`.

    Raises:
        TypeError: `fn` is not a function.
        ValueError: `elems` is empty, or its first dimensions differ.
    """
    _check_callable(fn)
    leaves = [_tensor(leaf) for leaf in nest.flatten(elems)]
    if not leaves:
        raise value_error("vectorized_map: elems is empty", expected="at least one tensor")
    lengths = {leaf.shape[0] for leaf in leaves if leaf.shape.rank} - {1}
    if len(lengths - {None}) > 1:
        raise value_error(
            "vectorized_map: the first dimensions of elems differ",
            expected="equal ones, or 1",
            received=[leaf.shape for leaf in leaves],
        )
    repeated = [bool(lengths) and bool(leaf.shape.rank) and leaf.shape[0] == 1 for leaf in leaves]
    columns = [leaf for leaf, once in zip(leaves, repeated, strict=True) if not once]

    def with_repeated(rows: Sequence[Any]) -> Any:
        left = iter(rows)
        whole = [
            leaf[0] if once else next(left) for leaf, once in zip(leaves, repeated, strict=True)
        ]
        return fn(nest.pack_sequence_as(elems, whole))

    with get_default_graph().name_scope(name or "vectorized_map"):
        return _mapped(with_repeated, columns)


def _check_elems(elems: Any) -> None:
    if not nest.flatten(elems):
        raise ValueError(
            "elems must be a Tensor or (possibly nested) sequence of Tensors. "
            f"Got {elems}, which does not contain any Tensors."
        )


def _mapped(fn: Callable[[Any], Any], elems: Any) -> Any:
    """The stacked results of `fn`; rows of sparse tensors are selected by index."""
    from estimatorkit.ops.array.filling import range_

    def column(leaf: Any) -> Any:
        return range_(leaf.dense_shape[0]) if isinstance(leaf, SparseTensor) else leaf

    def element(leaf: Any, row: Any) -> Any:
        return _sparse_row(leaf, row) if isinstance(leaf, SparseTensor) else row

    def of_element(_: Any, rows: Any) -> tuple[Any, Any]:
        result = fn(nest.map_structure(element, elems, rows) if sparse else rows)
        if any(isinstance(leaf, SparseTensor) for leaf in nest.flatten(result)):
            raise type_error(
                "functions that are mapped over elements give dense tensors",
                received=repr(result)[:300],
                hint="use sparse.to_dense, and sparse.from_dense on the stacked result",
            )
        return (), result

    sparse = any(isinstance(leaf, SparseTensor) for leaf in nest.flatten(elems))
    columns = nest.map_structure(column, elems) if sparse else elems
    return scan_op(of_element, (), columns)[1]


def _sparse_row(sparse: SparseTensor, row: Tensor) -> SparseTensor:
    from estimatorkit.ops.array.filling import ones_like, zeros_like
    from estimatorkit.ops.array.joining import concat
    from estimatorkit.ops.sparse.shapes import sparse_slice

    rest = sparse.dense_shape[1:]
    start = concat([row[None], zeros_like(rest)], 0)
    found = sparse_slice(sparse, start, concat([ones_like(row)[None], rest], 0))
    return SparseTensor(found.indices[:, 1:], found.values, rest)


def _check_callable(fn: Any) -> None:
    if not callable(fn):
        raise TypeError(f"fn must be callable, got {fn!r}.")


def _check_dtypes(results: Any, expected: Any, given: bool) -> None:
    found = nest.flatten(results)
    wanted = [
        as_dtype(getattr(each, "dtype", each)) if given else _tensor(each).dtype
        for each in nest.flatten(expected)
    ]
    if len(found) != len(wanted):
        raise value_error(
            "The two structures don't have the same nested structure: map_fn's results",
            expected=f"{len(wanted)} values, as `{'dtype' if given else 'elems'}` says",
            received=len(found),
        )
    if any(a.dtype is not b for a, b in zip(found, wanted, strict=True)):
        raise type_error(
            "map_fn: the results have other dtypes than "
            + ("`dtype` says" if given else "`elems`, and `dtype` is not given"),
            expected=[each.name for each in wanted],
            received=[each.dtype.name for each in found],
            hint="pass dtype= with the structure and dtypes that fn gives",
        )


def _finished(results: Any, back_prop: bool, name: str) -> Any:
    def finish(tensor: Any) -> Any:
        if is_composite(tensor):
            return tensor
        return identity(tensor, name) if back_prop else stop_gradient(tensor, name)

    return nest.map_structure(finish, results)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """The results of `fn(accumulated, element)` after each element.

    Args:
        fn: maps the accumulated value and an element to the next accumulated value.
        elems: a tensor or a nested structure of tensors whose rows are the elements.
        initializer: the initial value; by default the first element, and `fn` starts with the
            second.
        parallel_iterations, swap_memory, infer_shape: accepted for compatibility only.
        back_prop: whether gradients flow through.
        reverse: start with the last element.

    Returns:
        The accumulated values, stacked, `(elements, ...)`.
    """
    from estimatorkit.ops.array.joining import concat

    _check_callable(fn)
    with get_default_graph().name_scope(name or "scan"):
        first, rest = _first_and_rest(elems, initializer, reverse)

        def step(accumulated: Any, element: Any) -> tuple[Any, Any]:
            after = fn(accumulated, element)
            return after, after

        _, results = scan_op(step, first, rest, reverse=reverse)
        if initializer is None:
            ends = nest.flatten(first)
            results = nest.pack_sequence_as(
                first,
                [
                    concat([each, end[None]] if reverse else [end[None], each], 0)
                    for each, end in zip(nest.flatten(results), ends, strict=True)
                ],
            )
        with get_default_graph().name_scope("TensorArrayStack"):
            return _finished(results, back_prop, "TensorArrayGatherV3")


def _first_and_rest(elems: Any, initializer: Any, reverse: bool) -> tuple[Any, Any]:
    _check_elems(elems)
    columns = nest.map_structure(_tensor, elems)
    if initializer is not None:
        return nest.map_structure(_tensor, initializer), columns
    ends, rest = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
    return (
        nest.map_structure(lambda column: column[ends], columns),
        nest.map_structure(lambda column: column[rest], columns),
    )


def _fold(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any,
    back_prop: bool,
    name: str,
    reverse: bool,
) -> Any:
    _check_callable(fn)
    with get_default_graph().name_scope(name):
        first, rest = _first_and_rest(elems, initializer, reverse)
        last, _ = scan_op(
            lambda carry, element: (fn(carry, element), ()), first, rest, reverse=reverse
        )
        return _finished(last, back_prop, "while/Exit")


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Folds `fn(accumulated, element)` over the elements from first to last.

    Returns the last result; see `scan` for the arguments.
    """
    return _fold(fn, elems, initializer, back_prop, name or "foldl", reverse=False)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Folds `fn(accumulated, element)` over the elements from last to first.

    Returns the last result; see `scan` for the arguments.
    """
    return _fold(fn, elems, initializer, back_prop, name or "foldr", reverse=True)
