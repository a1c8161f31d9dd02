"""The values of `from_tensor_slices` and `from_tensors` as specs and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor, holds_tensors
from estimatorkit.data.execution.buffers import Columns, unbatch_sparse
from estimatorkit.data.parameters import Pending, as_tensor, collect, parameter
from estimatorkit.data.readers.frames import open_frames
from estimatorkit.data.spec import (
    LeafSpec,
    SparseTensorSpec,
    TensorSpec,
    leaf_names,
    pack,
    to_array,
)
from estimatorkit.runtime.steps.columns import SparseColumn


def columns_of_slices(tensors: Any) -> tuple[Any, Columns]:
    """The spec of one row of `tensors`, and a column for each leaf.

    Raises:
        ValueError: an empty structure, a scalar, ragged lists, or missing values.
        TypeError: a leaf cannot be converted to a tensor.
    """
    what = "from_tensor_slices()"
    structure, leaves, names = _leaves(tensors, what)
    pairs = [_sliced(leaf, f"{what}: {name}") for leaf, name in zip(leaves, names, strict=True)]
    return pack(structure, [spec for spec, _ in pairs]), [column for _, column in pairs]


def columns_of_one(tensors: Any) -> tuple[Any, Columns]:
    """The spec of `tensors` as one element, and a column of one row for each leaf."""
    what = "from_tensors()"
    structure, leaves, names = _leaves(tensors, what)
    pairs = [_whole(leaf, f"{what}: {name}") for leaf, name in zip(leaves, names, strict=True)]
    return pack(structure, [spec for spec, _ in pairs]), [column for _, column in pairs]


def _leaves(tensors: Any, what: str) -> tuple[Any, list[Any], list[str]]:
    structure = open_frames(tensors)
    leaves: list[Any] = []

    def visit(part: Any) -> Any:
        """The structure with its leaves numbered; sparse values are leaves, although tuples."""
        if isinstance(part, Mapping):
            numbered = {key: visit(part[key]) for key in sorted(part)}
            return {key: numbered[key] for key in part}
        if isinstance(part, tuple) and not _is_sparse(part):
            parts = [visit(each) for each in part]
            return type(part)(*parts) if nest.is_namedtuple(part) else tuple(parts)
        if part is None:
            return None
        if isinstance(part, list) and holds_tensors(part):
            from estimatorkit.core.conversion import convert_to_tensor  # imports JAX

            part = convert_to_tensor(part)
        leaves.append(as_tensor(part))
        return len(leaves) - 1

    numbered = visit(structure)
    if not leaves:
        raise value_error(
            f"{what} got an empty structure",
            expected="an array, or a dict or tuple with at least one array",
            received=repr(tensors),
        )
    return numbered, leaves, leaf_names(numbered)


def _is_sparse(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("indices", "values", "dense_shape"))


def _sliced(leaf: Any, where: str) -> tuple[LeafSpec, Any]:
    if _is_sparse(leaf):
        return _sparse(leaf, slices=True)
    column = parameter(leaf, None, where)
    shape, dtype = _shape_and_dtype(leaf, column)
    if shape.rank == 0:
        raise value_error(
            f"{where} is a scalar",
            expected="arrays of rank 1 or more, to slice along the first dimension",
            received=repr(leaf),
            hint="use from_tensors() for a dataset of one element",
        )
    return TensorSpec(None if shape.rank is None else shape[1:], dtype), column


def _whole(leaf: Any, where: str) -> tuple[LeafSpec, Any]:
    if _is_sparse(leaf):
        return _sparse(leaf, slices=False)
    value = parameter(leaf, None, where)
    shape, dtype = _shape_and_dtype(leaf, value)
    if isinstance(value, Pending):
        finish = value.finish
        return TensorSpec(shape, dtype), Pending(value.tensors, lambda found: finish(found)[None])
    return TensorSpec(shape, dtype), value[np.newaxis]


def _shape_and_dtype(leaf: Any, value: Any) -> tuple[TensorShape, Any]:
    if isinstance(value, Pending):
        return leaf.shape, leaf.dtype
    return TensorShape(value.shape), value.dtype


def _sparse(leaf: Any, *, slices: bool) -> tuple[LeafSpec, Any]:
    """A sparse tensor, or the value of one."""

    def column(indices: Any, values: Any, shape: Any) -> SparseColumn:
        counts = np.array([0, len(values)], np.int64)
        whole = np.asarray(shape, np.int64)[np.newaxis]
        one = SparseColumn(
            np.asarray(indices, np.int64).reshape(-1, whole.shape[1]), values, whole, counts
        )
        return unbatch_sparse(one) if slices else one

    if isinstance(leaf.values, Tensor):
        parts = (leaf.indices, leaf.values, leaf.dense_shape)
        static, dtype = leaf.shape, leaf.dtype
        known = [parameter(part, None, "a part of a sparse tensor") for part in parts]
        made: Any = collect(known, lambda found: column(*found))
    else:
        values = to_array(leaf.values, "the values of a sparse tensor")
        static, dtype = TensorShape(np.asarray(leaf.dense_shape).tolist()), values.dtype
        made = column(leaf.indices, values, leaf.dense_shape)
    shape = static[1:] if slices and static.rank is not None else static
    return SparseTensorSpec(shape, dtype), made


def range_of(given: Sequence[int]) -> range:
    """Python's range.

    Raises:
        InvalidArgumentError: the step is zero.
    """
    if not 1 <= len(given) <= 3:
        raise value_error(
            "range(): the number of arguments is wrong", expected="1 to 3", received=len(given)
        )
    try:
        return range(*given)
    except ValueError as error:
        raise InvalidArgumentError.explained(
            "range(): step must be a non-zero integer", received=given
        ) from error
