"""Conversion of features to columns: `Column` describes a feature, `read_columns` reads it.

A column is `dense` (a fixed number of values per example), `padded` (any number, padded to the
longest), `lists` (a sparse tensor of rank 2) or `sparse` (a sparse tensor whose indices are other
features). Independent of the source of the values, bytes or messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, float32, int64, string
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.ops.parsing.example_wire import BYTES, FLOATS, INTS, NONE, Lists

LISTS = {string: "bytes_list", float32: "float_list", int64: "int64_list"}
"""The field of `Feature` for each dtype."""

KINDS = {string: BYTES, float32: FLOATS, int64: INTS}
"""The kind of list for each dtype."""

FIELDS = ("", *LISTS.values())
"""The fields of `Feature` by number, which is the kind."""

NAMES = {"bytes_list": "string", "float_list": "float32", "int64_list": "int64"}
"""The names of the fields in errors."""


class Column(NamedTuple):
    """Describes how to read a feature.

    Attributes:
        kind: see the module docstring.
        key: the feature's name; for sparse features, the name of the values' feature.
        dtype: the dtype of the values.
        shape: the shape of one example's (or step's) values; for sparse features, the dense size.
        default: whether there is a default for examples without the feature.
        index_keys: for sparse features, the names of the indices, one per dimension.
        already_sorted: for sparse features, whether the indices are sorted.
        allow_missing: for steps, whether the feature may be missing.
    """

    kind: Literal["dense", "padded", "lists", "sparse"]
    key: str
    dtype: DType
    shape: tuple[int, ...] = ()
    default: bool = False
    index_keys: tuple[str, ...] = ()
    already_sorted: bool = False
    allow_missing: bool = False

    @property
    def field(self) -> str:
        """The field of `Feature` that holds the values."""
        return LISTS[self.dtype]

    @property
    def size(self) -> int:
        """The number of elements of `shape`."""
        return math.prod(self.shape)


def feature_error(problem: str, **parts: Any) -> InvalidArgumentError:
    """The error for an invalid example; see `explain`."""
    return InvalidArgumentError.explained(problem, **parts)


Part = tuple[Any, ...]
"""Result of `parse_rows` for one column."""


class Examples(NamedTuple):
    """Features of examples.

    Attributes:
        lists: the values by key and kind.
        name: the name of an example in errors.
        place: its index in its batch.
        features: the names of an example's features, for errors.
        total: the number of examples.
    """

    lists: Mapping[tuple[bytes, int], Lists]
    name: Callable[[int], str]
    place: Callable[[int], int]
    features: Callable[[int], list[str]]
    total: int

    def about(self, key: str, row: int) -> str:
        """Describes a feature of an example, for errors."""
        return f"Name: {self.name(row)}, Key: {key}, Index: {self.place(row)}."

    def of(self, key: str, dtype: DType) -> Lists:
        """The values of a feature."""
        return self.lists[key.encode(), KINDS[dtype]]


def read_columns(
    examples: Examples, columns: Sequence[Column], defaults: Sequence[NDArray[Any]]
) -> list[Part]:
    """Reads each column into the parts that `parse_rows` returns.

    `defaults` has an array for each column with `default`, in order. Raises InvalidArgumentError if
    an example lacks a feature or stores it in another form.
    """
    rest = iter(defaults)
    return [
        _READERS[column.kind](examples, column, next(rest) if column.default else None)
        for column in columns
    ]


def _first(problems: NDArray[Any]) -> int:
    """The index of the first true element, -1 if none."""
    return int(np.argmax(problems)) if problems.any() else -1


def _check_kinds(examples: Examples, key: str, dtype: DType, upto: int) -> None:
    """Raises if one of the first `upto` examples (all if negative) has a list of another kind."""
    lists = examples.of(key, dtype)
    if lists.complete:
        return
    kinds = lists.kinds[: upto if upto >= 0 else None]
    row = _first((kinds != NONE) & (kinds != KINDS[dtype]))
    if row < 0:
        return
    kind = NAMES[FIELDS[kinds[row]]]
    raise feature_error(
        f"{examples.about(key, row)}  Data types don't match. Expected type: "
        f"{NAMES[LISTS[dtype]]}, Actual type: {kind}",
        hint=f"request {kind}, or write a {LISTS[dtype]}",
    )


def _dense(examples: Examples, column: Column, default: NDArray[Any] | None) -> Part:
    lists = examples.of(column.key, column.dtype)
    if lists.complete and (lists.counts == column.size).all():
        return "dense", lists.values.reshape(examples.total, *column.shape)
    missing = lists.kinds == NONE
    full = lists.counts == column.size
    if default is not None:
        full |= missing
    else:
        full &= ~missing
    row = _first(~full)
    _check_kinds(examples, column.key, column.dtype, row + 1 if row >= 0 else -1)
    if row >= 0 and missing[row]:
        raise feature_error(
            f"Name: {examples.name(row)}, Feature: {column.key} (data type: {column.dtype.name}) "
            "is required but could not be found",
            received=f"features {examples.features(row)}",
            hint="give the FixedLenFeature a default_value",
        )
    if row >= 0:
        raise feature_error(
            f"{examples.about(column.key, row)}  Number of {column.dtype.name} values != expected. "
            f" Values size: {lists.counts[row]} but output shape: {list(column.shape)}",
            hint="VarLenFeature and FixedLenSequenceFeature take any number of values",
        )
    values = lists.values
    if default is not None and missing.any():
        values = np.empty((examples.total, column.size), column.dtype.numpy_dtype)
        values[missing] = default.reshape(-1)
        values[~missing] = lists.values.reshape(-1, column.size)
    return "dense", values.reshape(examples.total, *column.shape)


def _padded(examples: Examples, column: Column, default: NDArray[Any] | None) -> Part:
    lists = examples.of(column.key, column.dtype)
    row = _first(lists.counts % column.size != 0)
    _check_kinds(examples, column.key, column.dtype, row + 1 if row >= 0 else -1)
    if row >= 0:
        raise feature_error(
            f"{examples.about(column.key, row)}  Number of {column.dtype.name} values is not a "
            f"multiple of stride length. Saw {lists.counts[row]} values but output shape is: "
            f"[{','.join(map(str, ('?', *column.shape)))}]"
        )
    return "ragged", lists.values.reshape(-1, *column.shape), lists.counts // column.size


def _offsets(counts: NDArray[Any]) -> NDArray[Any]:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _lists(examples: Examples, column: Column, default: NDArray[Any] | None) -> Part:
    _check_kinds(examples, column.key, column.dtype, -1)
    lists = examples.of(column.key, column.dtype)
    offsets = _offsets(lists.counts)
    indices = np.arange(len(lists.values)) - np.repeat(offsets[:-1], lists.counts)
    return "sparse", indices[:, None], lists.values, lists.counts[:, None], offsets


def _sparse(examples: Examples, column: Column, default: NDArray[Any] | None) -> Part:
    lists = examples.of(column.key, column.dtype)
    axes = [examples.of(key, int64) for key in column.index_keys]
    rows = np.repeat(np.arange(examples.total), lists.counts)
    problems = np.zeros(examples.total, bool)
    for axis, size in zip(axes, column.shape, strict=True):
        problems |= axis.counts != lists.counts
        outside = (axis.values < 0) | (axis.values >= size)
        if outside.any():
            owners = np.repeat(np.arange(examples.total), axis.counts)
            problems[owners[outside]] = True
    row = _first(problems)
    for key, dtype in ((column.key, column.dtype), *((key, int64) for key in column.index_keys)):
        _check_kinds(examples, key, dtype, row + 1 if row >= 0 else -1)
    if row >= 0:
        _explain_sparse(examples, column, row)
    indices = np.stack([axis.values for axis in axes], axis=1)
    values = lists.values
    if not column.already_sorted:
        order = np.lexsort((*indices.T[::-1], rows))
        indices, values = indices.take(order, 0), values[order]
    shapes = np.broadcast_to(np.array(column.shape, np.int64), (examples.total, len(axes)))
    return "sparse", indices, values, shapes, _offsets(lists.counts)


def _explain_sparse(examples: Examples, column: Column, row: int) -> NoReturn:
    """Raises for an example with inconsistent values and indices."""
    own = int(examples.of(column.key, column.dtype).counts[row])
    for key, size in zip(column.index_keys, column.shape, strict=True):
        axis = examples.of(key, int64)
        if axis.counts[row] != own:
            raise feature_error(
                f"Name: {examples.name(row)}, SparseFeature: the features {key!r} and "
                f"{column.key!r} have different numbers of values",
                expected=f"{own} indices in {key!r}",
                received=axis.counts[row],
            )
        start = int(axis.counts[:row].sum())
        values = axis.values[start : start + own]
        outside = values[(values < 0) | (values >= size)]
        if len(outside):
            raise feature_error(
                f"Name: {examples.name(row)}, SparseFeature: an index in {key!r} is out of range",
                expected=f"0 to {size - 1}",
                received=outside[0],
            )
    raise AssertionError(f"example {row} has no problem")


_READERS: dict[str, Callable[[Examples, Column, Any], Part]] = {
    "dense": _dense,
    "padded": _padded,
    "lists": _lists,
    "sparse": _sparse,
}


def as_batch(
    parts: Sequence[Part], columns: Sequence[Column], defaults: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """Joins the result of `parse_rows` into one batch."""
    rest = iter(defaults)
    outputs: list[NDArray[Any]] = []
    for part, column in zip(parts, columns, strict=True):
        default = next(rest) if column.default else None
        if part[0] == "dense":
            outputs.append(part[1])
        elif part[0] == "ragged":
            fill = None if default is None else default.reshape(-1)[0]
            outputs.append(pad_rows(part[1], part[2], column.dtype, fill))
        else:
            indices, values, shapes, offsets = part[1:]
            rows = np.repeat(np.arange(len(shapes)), np.diff(offsets))
            size = column.shape or (int(shapes.max(initial=0)),)
            outputs += [
                np.concatenate([rows[:, None], indices], axis=1),
                values,
                np.array([len(shapes), *size], np.int64),
            ]
    return outputs


def pad_rows(
    values: NDArray[Any], lengths: NDArray[Any], dtype: DType, fill: Any = None
) -> NDArray[Any]:
    """Pads rows of different lengths, `(total, *shape)`, to an array `(rows, longest, *shape)`."""
    shape = len(lengths), int(lengths.max(initial=0)), *values.shape[1:]
    empty = b"" if dtype is string else 0
    result = np.full(shape, empty if fill is None else fill, dtype.numpy_dtype)
    result[np.arange(shape[1]) < lengths[:, None]] = values
    return result


def without_batch(outputs: Sequence[NDArray[Any]], columns: Sequence[Column]) -> list[Any]:
    """Removes the batch dimension from the result of `parse_examples` for one example."""
    rest = iter(outputs)
    single: list[Any] = []
    for column in columns:
        if column.kind in ("dense", "padded"):
            single.append(next(rest)[0, ...])
        else:
            indices, values, shape = next(rest), next(rest), next(rest)
            single += [indices[:, 1:], values, shape[1:]]
    return single
