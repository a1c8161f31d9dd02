"""Serialized `Example`s and `SequenceExample`s to arrays: the kernels of `ops.parsing`.

A `Column` says what is read of one feature (or, for sparse features, of several) and how: `dense`
(equally many values in each example), `padded` (any number, padded to the longest), `lists` (a
sparse tensor of rank 2) and `sparse` (a sparse tensor by features that hold indices). Everything
here is plain data and NumPy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, float32, int64, string
from estimatorkit.core.errors import InvalidArgumentError, explain
from estimatorkit.core.sparse_rows import rows_as_sparse

LISTS = {string: "bytes_list", float32: "float_list", int64: "int64_list"}
"""The dtypes that features have, and where a `Feature` holds them."""

_NAMES = {"bytes_list": "string", "float_list": "float32", "int64_list": "int64"}


class Column(NamedTuple):
    """What is read of a feature.

    Attributes:
        kind: how (see the module).
        key: the feature's name; of sparse features that which holds the values.
        dtype: of the values.
        shape: of one example's (or one step's) values; of sparse features the size of the whole.
        default: whether there is a default for examples without the feature.
        index_keys: of sparse features those which hold the indices, one a dimension.
        already_sorted: of sparse features, whether the indices are in order.
        allow_missing: of steps, whether there may be none.
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
        """The list of a `Feature` that holds the values."""
        return LISTS[self.dtype]

    @property
    def size(self) -> int:
        """How many values `shape` has."""
        return math.prod(self.shape)


class _Example(NamedTuple):
    """The features of one example, what errors call it, and its place in the batch."""

    features: Mapping[str, Any]
    name: str
    position: int

    def values(self, key: str, field: str) -> Any:
        """The values of a feature, or None where it is not there.

        Args:
            key: the feature's name.
            field: the list that must hold them (see `LISTS`).
        """
        feature = self.features.get(key)
        if feature is None:
            return None
        values = getattr(feature, field).value
        # A list that holds something is the one there is: no need to ask for its kind, 0.3 us.
        return values if values else _no_values(feature, key, field, self.name, self.position)


def _no_values(feature: Any, key: str, field: str, name: str, position: int) -> Any:
    """What a feature holds whose list `field` is empty: an empty list, None, or another list."""
    kind = feature.WhichOneof("kind")
    if kind is not None and kind != field:
        raise _error(
            f"Name: {name}, Key: {key}, Index: {position}.  Data types don't match. Expected type: "
            f"{_NAMES[field]}, Actual type: {_NAMES[kind]}",
            hint=f"ask for {_NAMES[kind]}, or write a {field}",
        )
    return None if kind is None else ()


def _error(problem: str, **parts: Any) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, explain(problem, **parts))


@functools.cache
def _messages() -> tuple[Any, Any, type[Exception]]:
    from google.protobuf.message import DecodeError

    from estimatorkit.core.example_proto import Example, SequenceExample

    return Example, SequenceExample, DecodeError


def _decoded(message: Any, text: bytes, problem: str) -> Any:
    """The message; `{}` in the words of the error stands for the bytes."""
    try:
        return message.FromString(text)
    except _messages()[2] as error:
        raise _error(
            problem.replace("{}", text[:100].decode("utf-8", "backslashreplace")),
            expected=f"a serialized {message.DESCRIPTOR.name}",
            received=f"{len(text)} bytes",
        ) from error


def _name(names: Sequence[bytes], position: int) -> str:
    return names[position].decode("utf-8", "backslashreplace") if names else "<unknown>"


# -- Example


def parse_examples(
    serialized: Sequence[bytes],
    names: Sequence[bytes],
    columns: Sequence[Column],
    defaults: Sequence[NDArray[Any]],
) -> list[NDArray[Any]]:
    """The columns of examples.

    Args:
        serialized: `Example`s.
        names: what errors call them; empty for none.
        columns: what is read.
        defaults: an array for each column with `default`, in order.

    Returns:
        For dense columns `(n, *shape)`, for padded ones `(n, longest, *shape)`; for the others the
        indices, the values and the shape of a sparse tensor.

    Raises:
        InvalidArgumentError: an example is none, or lacks a feature, or has it in another form.
    """
    message = _messages()[0]
    examples = []
    for position, text in enumerate(serialized):
        decoded = _decoded(message, text, "Could not parse example input, value: '{}'")
        examples.append(_Example(decoded.features.feature, _name(names, position), position))
    return _read(examples, columns, defaults)


def _read(
    examples: Sequence[_Example], columns: Sequence[Column], defaults: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    rest = iter(defaults)
    outputs: list[NDArray[Any]] = []
    for column in columns:
        default = next(rest) if column.default else None
        outputs += _READERS[column.kind](examples, column, default)
    return outputs


def _dense(
    examples: Sequence[_Example], column: Column, default: NDArray[Any] | None
) -> list[NDArray[Any]]:
    flat: list[Any] = []
    key, field, size = column.key, column.field, column.size
    for example in examples:
        values = example.values(key, field)
        if values is None:
            if default is None:
                raise _error(
                    f"Name: {example.name}, Feature: {column.key} (data type: "
                    f"{column.dtype.name}) is required but could not be found",
                    received=f"features {sorted(example.features)}",
                    hint="give the FixedLenFeature a default_value",
                )
            values = default.reshape(-1).tolist()
        if len(values) != size:
            raise _error(
                f"Name: {example.name}, Key: {column.key}, Index: {example.position}.  Number of "
                f"{column.dtype.name} values != expected.  Values size: {len(values)} but output "
                f"shape: {list(column.shape)}",
                hint="VarLenFeature and FixedLenSequenceFeature take any number of values",
            )
        flat.extend(values)
    return [_array(flat, (len(examples), *column.shape), column.dtype)]


def _array(flat: Sequence[Any], shape: Sequence[int], dtype: DType) -> NDArray[Any]:
    result = np.empty(len(flat), dtype.numpy_dtype)
    result[:] = flat
    return result.reshape(shape)


def _padded(
    examples: Sequence[_Example], column: Column, default: NDArray[Any] | None
) -> list[NDArray[Any]]:
    rows = []
    for example in examples:
        values = example.values(column.key, column.field)
        rows.append([] if values is None else values)
        if len(rows[-1]) % column.size:
            raise _error(
                f"Name: {example.name}, Key: {column.key}, Index: {example.position}.  Number of "
                f"{column.dtype.name} values is not a multiple of stride length. Saw "
                f"{len(rows[-1])} values but output shape is: "
                f"[{','.join(map(str, ('?', *column.shape)))}]"
            )
    fill = None if default is None else default.reshape(-1)[0]
    return [_pad(rows, column, fill)]


def _pad(rows: Sequence[Sequence[Any]], column: Column, fill: Any = None) -> NDArray[Any]:
    """Rows of values in an array `(rows, longest, *shape)`."""
    longest = max(map(len, rows), default=0)
    empty = b"" if column.dtype is string else 0
    result = np.full(
        (len(rows), longest), empty if fill is None else fill, column.dtype.numpy_dtype
    )
    for place, row in enumerate(rows):
        result[place, : len(row)] = row
    return result.reshape(len(rows), longest // column.size, *column.shape)


def _lists(
    examples: Sequence[_Example], column: Column, default: NDArray[Any] | None
) -> list[NDArray[Any]]:
    key, field = column.key, column.field
    rows = [example.values(key, field) or () for example in examples]
    return rows_as_sparse(rows, (len(rows),), column.dtype)


def _sparse(
    examples: Sequence[_Example], column: Column, default: NDArray[Any] | None
) -> list[NDArray[Any]]:
    places, values = [], []
    for example in examples:
        own = example.values(column.key, column.field) or ()
        by_axis = [example.values(key, LISTS[int64]) or () for key in column.index_keys]
        for key, axis, size in zip(column.index_keys, by_axis, column.shape, strict=True):
            if len(axis) != len(own):
                raise _error(
                    f"Name: {example.name}, SparseFeature: the features {key!r} and "
                    f"{column.key!r} have different numbers of values",
                    expected=f"{len(own)} indices in {key!r}",
                    received=len(axis),
                )
            outside = next((each for each in axis if not 0 <= each < size), None)
            if outside is not None:
                raise _error(
                    f"Name: {example.name}, SparseFeature: an index in {key!r} is out of range",
                    expected=f"0 to {size - 1}",
                    received=outside,
                )
        entries = list(zip(*by_axis, own, strict=True))
        if not column.already_sorted:
            entries.sort(key=lambda entry: entry[:-1])
        places += [(example.position, *entry[:-1]) for entry in entries]
        values += [entry[-1] for entry in entries]
    indices = np.array(places, np.int64).reshape(len(places), len(column.shape) + 1)
    shape = np.array([len(examples), *column.shape], np.int64)
    return [indices, _array(values, (len(values),), column.dtype), shape]


_READERS: dict[str, Callable[..., list[NDArray[Any]]]] = {
    "dense": _dense,
    "padded": _padded,
    "lists": _lists,
    "sparse": _sparse,
}


def without_batch(outputs: Sequence[NDArray[Any]], columns: Sequence[Column]) -> list[Any]:
    """What `parse_examples` gave for a batch of one, without the batch's dimension."""
    rest = iter(outputs)
    single: list[Any] = []
    for column in columns:
        if column.kind in ("dense", "padded"):
            single.append(next(rest)[0, ...])
        else:
            indices, values, shape = next(rest), next(rest), next(rest)
            single += [indices[:, 1:], values, shape[1:]]
    return single


# -- SequenceExample


def parse_sequence_examples(
    serialized: Sequence[bytes],
    names: Sequence[bytes],
    context: Sequence[Column],
    sequence: Sequence[Column],
    defaults: Sequence[NDArray[Any]],
) -> tuple[list[NDArray[Any]], list[NDArray[Any]], list[NDArray[Any]]]:
    """The columns of sequence examples.

    Args:
        serialized: `SequenceExample`s.
        names: what errors call them; empty for none.
        context: what is read of their contexts, as by `parse_examples`.
        sequence: what is read of each of their steps: 'dense' or 'lists' columns.
        defaults: an array for each column of the context with `default`.

    Returns:
        The context's; the sequences': for dense columns `(n, most steps, *shape)`, padded with 0,
        for lists the parts of a sparse tensor `(n, most steps, longest)`; and for each dense column
        the number of steps of each example, int64 `(n,)`.

    Raises:
        InvalidArgumentError: as `parse_examples`.
    """
    message = _messages()[1]
    known = [_name(names, position) for position in range(len(serialized))]
    decoded = [
        _decoded(message, text, f"Invalid protocol message input, example id: {name}")
        for text, name in zip(serialized, known, strict=True)
    ]
    contexts = [
        _Example(each.context.feature, name, position)
        for position, (each, name) in enumerate(zip(decoded, known, strict=True))
    ]
    outputs: list[NDArray[Any]] = []
    lengths: list[NDArray[Any]] = []
    for column in sequence:
        steps = [
            _steps(each.feature_lists.feature_list, column, name)
            for each, name in zip(decoded, known, strict=True)
        ]
        if column.kind == "dense":
            rows = [[value for step in example for value in step] for example in steps]
            outputs.append(_pad(rows, column))
            lengths.append(np.array([len(example) for example in steps], np.int64))
        else:
            most = max(map(len, steps), default=0)
            every = [row for example in steps for row in _filled_up(example, most)]
            outputs += rows_as_sparse(every, (len(steps), most), column.dtype)
    return _read(contexts, context, defaults), outputs, lengths


def _filled_up(steps: Sequence[Sequence[Any]], most: int) -> list[Sequence[Any]]:
    return [*steps, *((),) * (most - len(steps))]


def _steps(feature_lists: Mapping[str, Any], column: Column, name: str) -> list[Sequence[Any]]:
    """The values of each step of one example."""
    if column.key not in feature_lists:
        if column.kind == "dense" and not column.allow_missing:
            raise _error(
                f"Name: {name}, Feature list '{column.key}' is required but could not be found. "
                " Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?",
                received=f"feature lists {sorted(feature_lists)}",
                hint="FixedLenSequenceFeature(..., allow_missing=True)",
            )
        return []
    steps: list[Sequence[Any]] = []
    for step, feature in enumerate(feature_lists[column.key].feature):
        values = getattr(feature, column.field).value
        values = values or _no_values(feature, column.key, column.field, name, step) or ()
        if column.kind == "dense" and len(values) != column.size:
            raise _error(
                f"Name: {name}, Feature list: {column.key}, Index: {step}.  Number of "
                f"{column.dtype.name} values != expected.  Values size: {len(values)} but output "
                f"shape: {list(column.shape)}"
            )
        steps.append(values)
    return steps
