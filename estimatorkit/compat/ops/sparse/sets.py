"""Set operations along the last dimension: difference, intersection, union, size; edit distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    apply,
    check_same_dtype,
    constant_value_as_shape,
    output,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.sparse.sparse import (
    Array,
    as_sparse,
    check_in_bounds,
    check_in_order,
    convert_to_tensor_or_sparse_tensor,
    floats,
    length_of,
    longs,
    sparse_from,
    sparse_specs,
)

_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": set.difference,
    "b-a": lambda a, b: b - a,
    "intersection": set.intersection,
    "union": set.union,
}

_KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")


def _groups(indices: Array, values: Array) -> dict[tuple[int, ...], set[Any]]:
    """The set of each row."""
    groups: dict[tuple[int, ...], set[Any]] = {}
    for place, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        groups.setdefault(tuple(place), set()).add(value)
    return groups


def _set_operation(
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
    operation: str,
    validate_indices: bool,
) -> Any:
    if (a_shape[:-1].tolist()) != (b_shape[:-1].tolist()):
        raise ValueError(f"Mismatched group shapes {a_shape.tolist()} and {b_shape.tolist()}")
    if validate_indices:
        for indices, shape in ((a_indices, a_shape), (b_indices, b_shape)):
            check_in_bounds(indices, shape)
            check_in_order(indices, shape)
    a, b = _groups(a_indices, a_values), _groups(b_indices, b_values)
    combine, empty = _OPERATIONS[operation], set[Any]()
    places, values, longest = [], [], 0
    for row in sorted({*a, *b}):
        found = sorted(combine(a.get(row, empty), b.get(row, empty)))
        longest = max(longest, len(found))
        places += [(*row, at) for at in range(len(found))]
        values += found
    indices = longs(places).reshape(-1, len(a_shape))
    return indices, np.array(values, a_values.dtype), longs([*a_shape[:-1], longest])


register(
    "SparseToSparseSetOperation",
    _set_operation,
    where="host",
    infer=lambda inputs, attrs: sparse_specs(inputs[1].dtype, length_of(inputs[2])),
    gradient=None,
    cases=lambda: [
        Case(
            (
                longs([[0, 0], [0, 1], [1, 0]]),
                longs(5, 3, 8),
                longs(2, 2),
                longs([[0, 0], [1, 0], [1, 1]]),
                longs(3, 9, 7),
                longs(2, 3),
            ),
            {"operation": "union", "validate_indices": True},
            (
                longs([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]),
                longs(3, 5, 7, 8, 9),
                longs(2, 3),
            ),
        )
    ],
    accepts=("int64", "ns uint8 uint16", "int64", "int64", "ns uint8 uint16", "int64"),
)


def _elements(x: Array) -> Any:
    indices = np.indices(x.shape).reshape(x.ndim, -1).T
    return indices.astype(np.int64), x.reshape(-1), longs(list(x.shape))


register(
    "SparseElements",
    _elements,
    where="host",
    infer=lambda inputs, attrs: sparse_specs(
        inputs[0].dtype, inputs[0].shape.rank, inputs[0].shape.num_elements()
    ),
    gradient=None,
    cases=lambda: [
        Case((longs([[7, 0]]),), {}, (longs([[0, 0], [0, 1]]), longs(7, 0), longs(1, 2)))
    ],
)


def _checked(given: Any) -> Any:
    if given.dtype.name not in _KINDS:
        raise type_error(
            f"Invalid dtype {given.dtype.name} not in supported dtypes",
            expected=", ".join(_KINDS),
            received=given,
            made_at=given.op.source,
        )
    return given


def _as_sets(value: Any) -> SparseTensor:
    given = _checked(convert_to_tensor_or_sparse_tensor(value))
    if isinstance(given, SparseTensor):
        return given
    if given.shape.rank is not None and given.shape.rank < 2:
        raise value_error(
            "sets must be rows of a matrix", expected="rank 2 or more", received=given
        )
    return sparse_from(apply("SparseElements", [given]), given.shape)


def _combined(
    a: Any, b: Any, operation: str, validate_indices: bool, name: str | None = None
) -> SparseTensor:
    with get_default_graph().name_scope(name or "SparseToSparseSetOperation") as scope:
        one, two = _as_sets(a), _as_sets(b)
        if one.dtype is not two.dtype:
            raise type_error(
                "the sets have different dtypes",
                received=f"{one.dtype.name} and {two.dtype.name}",
                made_at=two.op.source,
            )
        op = apply(
            "SparseToSparseSetOperation",
            [*one._components(), *two._components()],
            {"operation": operation, "validate_indices": bool(validate_indices)},
            scope,
        )
        shape = one.shape
        if shape.dims:
            shape = TensorShape([*shape.dims[:-1], None])
        return sparse_from(op, shape)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The intersection of corresponding rows.

    Args:
        a, b: tensors or sparse tensors of integers or strings, equal in all but the last dimension.
        validate_indices: whether to reject unsorted sparse indices.

    Returns:
        Sparse, each row sorted and without duplicates.
    """
    return _combined(a, b, "intersection", validate_indices)


def set_difference(
    a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """The difference of corresponding rows.

    Args:
        a, b: tensors or sparse tensors of integers or strings, equal in all but the last dimension.
        aminusb: whether to compute a - b rather than b - a.
        validate_indices: whether to reject unsorted sparse indices.

    Returns:
        Sparse, each row sorted and without duplicates.
    """
    return _combined(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The union of corresponding rows; see `set_intersection`."""
    return _combined(a, b, "union", validate_indices)


def _set_size(indices: Array, values: Array, shape: Array, validate_indices: bool) -> Array:
    if validate_indices:
        check_in_bounds(indices, shape)
        check_in_order(indices, shape)
    sizes = np.zeros([int(dim) for dim in shape[:-1]], np.int32)
    for row, found in _groups(indices, values).items():
        sizes[row] = len(found)
    return sizes


register(
    "SparseSetSize",
    _set_size,
    where="host",
    infer=lambda inputs, attrs: [Spec(int32, _without_last(constant_value_as_shape(inputs[2])))],
    gradient=None,
    cases=lambda: [
        Case(
            (longs([[0, 0], [0, 1], [2, 0]]), longs(5, 5, 8), longs(3, 2)),
            {"validate_indices": True},
            np.array([1, 0, 1], np.int32),
        )
    ],
)


def _without_last(shape: TensorShape) -> TensorShape:
    return UNKNOWN if shape.dims is None else TensorShape(shape.dims[:-1])


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """The number of distinct elements of each row: int32, of the shape without its last dimension.

    Args:
        a: a sparse tensor of integers or strings.
        validate_indices: whether to reject unsorted indices.
    """
    sparse = _checked(as_sparse(a))
    attrs = {"validate_indices": bool(validate_indices)}
    sizes = output("SparseSetSize", sparse._components(), attrs, "SetSize")
    sizes.set_shape(_without_last(sparse.shape))
    return sizes


# -- edit distance


def levenshtein(a: Sequence[Any], b: Sequence[Any]) -> int:
    """The minimum number of insertions, deletions and substitutions that turn `a` into `b`."""
    before = list(range(len(b) + 1))
    for row, one in enumerate(a, 1):
        now = [row]
        for column, two in enumerate(b, 1):
            exchange = before[column - 1] + (one != two)
            now.append(min(exchange, before[column] + 1, now[-1] + 1))
        before = now
    return before[-1]


def _sequences(indices: Array, values: Array) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(place), []).append(value)
    return found


def _edit_distance(
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
    normalize: bool,
) -> Array:
    if len(a_shape) != len(b_shape):
        raise ValueError(f"truth has rank {len(b_shape)} but hypothesis has rank {len(a_shape)}")
    check_in_bounds(a_indices, a_shape)
    check_in_bounds(b_indices, b_shape)
    result = np.zeros([int(dim) for dim in np.maximum(a_shape, b_shape)[:-1]], np.float32)
    hypotheses, truths = _sequences(a_indices, a_values), _sequences(b_indices, b_values)
    for row in {*hypotheses, *truths}:
        truth = truths.get(row, [])
        distance = levenshtein(hypotheses.get(row, []), truth)
        # As in TensorFlow, the normalized distance from an empty truth is infinite.
        scale = len(truth) if normalize else 1
        result[row] = distance / scale if scale else np.inf
    return result


def _infer_distance(inputs: Any, attrs: Any) -> list[Spec]:
    a, b = constant_value_as_shape(inputs[2]).dims, constant_value_as_shape(inputs[5]).dims
    if a is None or b is None or len(a) != len(b):
        return [Spec(float32, UNKNOWN)]
    pairs = list(zip(a, b, strict=True))[:-1]
    dims = [None if one is None or two is None else max(one, two) for one, two in pairs]
    return [Spec(float32, TensorShape(dims))]


register(
    "EditDistance",
    _edit_distance,
    where="host",
    infer=_infer_distance,
    gradient=None,
    cases=lambda: [
        Case(
            (
                longs([[0, 0], [1, 0], [2, 0]]),
                longs(1, 2, 3),
                longs(4, 1),
                longs([[1, 0], [1, 1], [2, 0]]),
                longs(2, 5, 3),
                longs(4, 2),
            ),
            {"normalize": True},
            floats([np.inf, 0.5, 0, 0]),
        )
    ],
)


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """The Levenshtein distance of sequences along the last dimension.

    Args:
        hypothesis, truth: sparse tensors of one dtype and rank.
        normalize: whether to divide by the length of the truth.

    Returns:
        float32, of the shape without its last dimension.

    Raises:
        TypeError: a value is not sparse.
    """
    one, two = as_sparse(hypothesis), as_sparse(truth)
    check_same_dtype("EditDistance", [one.values, two.values], name)
    inputs = [*one._components(), *two._components()]
    return output("EditDistance", inputs, {"normalize": bool(normalize)}, name)
