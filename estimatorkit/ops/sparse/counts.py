"""Bin counts and crosses of sparse values: `sparse.bincount`, `sparse.cross`,
`sparse.cross_hashed`.

They run on the host because the size of the result depends on the values.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int64, string
from estimatorkit.core.errors import type_error
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import reshape
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.sparse.sparse import Array, as_sparse, check_in_bounds, longs, sparse_from
from estimatorkit.ops.tables.feature_crosses import HASH_KEY, join_fingerprint
from estimatorkit.ops.text import farmhash

# -- counts


def _count(
    indices: Array,
    values: Array,
    shape: Array,
    *weights: Array,
    minlength: int,
    maxlength: int,
    binary: bool,
) -> tuple[Array, Array, Array]:
    if np.any(values < 0):
        raise ValueError("Input values must all be non-negative")
    check_in_bounds(indices, shape)
    length = maxlength if maxlength > 0 else max(int(values.max(initial=-1)) + 1, minlength)
    kept = values < length
    rows = np.concatenate([indices[:, :-1], values[:, None].astype(np.int64)], axis=1)[kept]
    bins, places = np.unique(rows, axis=0, return_inverse=True)
    counts = np.zeros(len(bins), weights[0].dtype if weights else values.dtype)
    np.add.at(counts, places.reshape(-1), weights[0][kept] if weights else counts.dtype.type(1))
    found = np.ones_like(counts) if binary else counts
    return bins, found, np.array([*shape[:-1], length], np.int64)


def _infer_count(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    rank = inputs[2].shape.with_rank(1)[0]
    return [
        Spec(int64, TensorShape([None, rank])),
        Spec(inputs[-1 if len(inputs) == 4 else 1].dtype, TensorShape([None])),
        Spec(int64, TensorShape([rank])),
    ]


register(
    "SparseCountSparseOutput",
    _count,
    where="host",
    infer=_infer_count,
    gradient=None,
    cases=lambda: [
        Case(
            (longs([[0, 0], [0, 3], [1, 1]]), longs(2, 2, 5), longs(2, 4)),
            {"minlength": -1, "maxlength": -1, "binary": False},
            (longs([[0, 2], [1, 5]]), longs(2, 1), longs(2, 6)),
        ),
        Case(
            (longs([[0], [1], [2]]), longs(2, 2, 5), longs([3])),
            {"minlength": 1, "maxlength": 4, "binary": True},
            (longs([[2]]), longs([1]), longs([4])),
        ),
    ],
)


def sparse_bincount(
    values: Any,
    weights: Any = None,
    axis: int | None = 0,
    minlength: int | None = None,
    maxlength: int | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Counts the occurrences of each integer, as a sparse tensor of nonempty bins.

    Args:
        values: non-negative integers, a tensor or a sparse tensor; `(rows, n)` for axis -1.
        weights: summed instead of counts; of the same type and shape as `values`.
        axis: 0 (or None) counts all values together, -1 those of each row.
        minlength: the minimum size of the last dimension.
        maxlength: the maximum size of the last dimension; larger integers are ignored.
        binary_output: whether to set each nonempty bin to 1.

    Returns:
        `(length,)` or `(rows, length)`, of the dtype of `weights`, else of `values`.

    Raises:
        ValueError: both `weights` and `binary_output` are given, or `axis` or `weights` is invalid.
        InvalidArgumentError: at run time, a value is negative.
    """
    if weights is not None and binary_output:
        raise ValueError(
            "Arguments `binary_output` and `weights` are mutually exclusive. Please specify only "
            "one."
        )
    if axis not in (None, 0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        )
    sparse = _with_places(values, by_row=axis == -1)
    inputs = [sparse.indices, sparse.values, sparse.dense_shape]
    if weights is not None:
        if hasattr(values, "dense_shape") != hasattr(weights, "dense_shape"):
            form = "tf.SparseTensor" if hasattr(values, "dense_shape") else "tf.Tensor"
            raise ValueError(f"Argument `weights` must be a {form} if `values` is a {form}.")
        inputs.append(_with_places(weights, by_row=axis == -1).values)
    attrs = {
        "minlength": -1 if minlength is None else int(minlength),
        "maxlength": -1 if maxlength is None else int(maxlength),
        "binary": bool(binary_output),
    }
    return sparse_from(apply("SparseCountSparseOutput", inputs, attrs, name))


def _with_places(values: Any, by_row: bool) -> SparseTensor:
    """The integers to count as a sparse tensor, zeros included; a vector unless `by_row`."""
    from estimatorkit.ops.array.array import shape, size
    from estimatorkit.ops.array.filling import ones_like, range_
    from estimatorkit.ops.array.indexing import where

    if hasattr(values, "dense_shape"):
        sparse = as_sparse(values)
        if by_row:
            return sparse
        flat = sparse.values
    else:
        dense = convert_to_tensor(values, name="values")
        if by_row:
            places = where(ones_like(dense, dtype="bool"))
            return SparseTensor(places, reshape(dense, [-1]), shape(dense, out_type=int64))
        flat = reshape(dense, [-1])
    count = size(flat, out_type=int64)
    return SparseTensor(reshape(range_(count), [-1, 1]), flat, reshape(count, [1]))


# -- crosses


def _cross(
    *arrays: Array, sparse: int, separator: bytes | None, num_buckets: int, hash_key: int
) -> tuple[Array, Array, Array]:
    columns = [
        _by_row(arrays[at], arrays[at + 1], int(arrays[at + 2][0]))
        for at in range(0, 3 * sparse, 3)
    ]
    columns += [list(dense) for dense in arrays[3 * sparse :]]
    batch = len(columns[0]) if columns else 0
    if any(len(column) != batch for column in columns):
        raise ValueError(f"Expected batch size {batch}, got {[len(each) for each in columns]}")
    found: list[Any] = []
    places: list[tuple[int, int]] = []
    for row in range(batch):
        parts = [column[row] for column in columns]
        for at, features in enumerate(itertools.product(*parts)):
            places.append((row, at))
            if separator is None:
                found.append(_hashed(features, num_buckets, hash_key))
            else:
                words = (x if isinstance(x, bytes) else str(x).encode() for x in features)
                found.append(separator.join(words))
    width = max((at + 1 for _, at in places), default=0)
    values = np.array(found, np.int64 if separator is None else object)
    return np.array(places, np.int64).reshape(-1, 2), values, longs(batch, width)


def _by_row(indices: Array, values: Array, batch: int) -> list[list[Any]]:
    rows: list[list[Any]] = [[] for _ in range(batch)]
    for (row, _), value in zip(indices, values, strict=True):
        rows[row].append(value)
    return rows


def _hashed(features: Sequence[Any], num_buckets: int, hash_key: int) -> int:
    joined = np.array([hash_key], np.uint64)
    for feature in features:
        number = (
            farmhash.fingerprint64([feature])
            if isinstance(feature, bytes)
            else np.array([feature], np.int64).view(np.uint64)
        )
        joined = join_fingerprint(joined, number)
    return int(joined[0]) % (num_buckets or np.iinfo(np.int64).max)


def _infer_cross(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [
        Spec(int64, TensorShape([None, 2])),
        Spec(int64 if attrs["separator"] is None else string, TensorShape([None])),
        Spec(int64, TensorShape([2])),
    ]


_CASE = (
    longs([[0, 0], [1, 0], [1, 1]]),
    np.array([b"a", b"b", b"c"], object),
    longs(2, 2),
    longs([[1], [2]]),
)
_PLACES = longs([[0, 0], [1, 0], [1, 1]])
_WORDS = np.array([b"a_1", b"b_2", b"c_2"], object)

register(
    "SparseCross",
    _cross,
    where="host",
    infer=_infer_cross,
    gradient=None,
    cases=lambda: [
        Case(
            _CASE,
            {"sparse": 1, "separator": b"_", "num_buckets": 0, "hash_key": HASH_KEY},
            (_PLACES, _WORDS, longs(2, 2)),
        )
    ],
)


def sparse_cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """Joins one value of each input into strings, row by row, in all combinations.

    Args:
        inputs: a list of tensors and sparse tensors `(batch, n)` of strings or integers. Values of
            sparse ones come first in the strings, and the last input varies fastest.
        separator: str or bytes between the values; default: '_X_'.

    Returns:
        Strings, `(batch, most combinations of a row)`.

    Raises:
        TypeError: the inputs are not a list of tensors.
        InvalidArgumentError: at run time, they have different numbers of rows.
    """
    between = "_X_" if separator is None else separator
    between = between.encode() if isinstance(between, str) else between
    return _crossed(inputs, between, 0, HASH_KEY, name)


def sparse_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Hashes one value of each input, row by row, in all combinations; see `sparse_cross`.

    Args:
        inputs: as for `sparse_cross`.
        num_buckets: the exclusive bound of the hashes; 0 for the range of int64.
        hash_key: the seed of the hash.

    Returns:
        int64, `(batch, most combinations of a row)`, equal to TensorFlow's.

    Raises:
        TypeError: the inputs are not a list of tensors.
    """
    return _crossed(inputs, None, int(num_buckets), int(hash_key or HASH_KEY), name)


def _crossed(
    inputs: Any, separator: bytes | None, num_buckets: int, hash_key: int, name: str | None
) -> SparseTensor:
    if not isinstance(inputs, (list, tuple)):
        raise type_error("Inputs must be a list", received=repr(inputs))
    if not all(isinstance(each, (Tensor, SparseTensor)) for each in inputs):
        raise type_error(
            "All inputs must be Tensor or SparseTensor.",
            received=[type(each).__name__ for each in inputs],
        )
    sparse = [each for each in inputs if isinstance(each, SparseTensor)]
    tensors: list[Tensor] = []
    for each in sparse:
        tensors += [each.indices, _words_or_longs(each.values), each.dense_shape]
    tensors += [_words_or_longs(each) for each in inputs if isinstance(each, Tensor)]
    attrs = {
        "sparse": len(sparse),
        "separator": separator,
        "num_buckets": num_buckets,
        "hash_key": hash_key,
    }
    return sparse_from(apply("SparseCross", tensors, attrs, name))


def _words_or_longs(values: Tensor) -> Tensor:
    return values if values.dtype is string else cast(values, int64)
