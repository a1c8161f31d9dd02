"""Kernels of `ops.parsing`: serialized `Example`s and `SequenceExample`s to arrays.

Large batches are read directly from the wire format (`example_wire`), small ones through protobuf.
`example_columns` converts the values to columns. Depends on plain data and NumPy only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType
from estimatorkit.ops.parsing.example_columns import (
    FIELDS,
    KINDS,
    LISTS,
    NAMES,
    Column,
    Examples,
    Part,
    as_batch,
    feature_error,
    pad_rows,
    read_columns,
    without_batch,
)
from estimatorkit.ops.parsing.example_wire import INTS, Lists, read_features
from estimatorkit.ops.text.sparse_rows import rows_as_sparse

_FEW = 24
"""Smaller batches are parsed through protobuf: with 14 features, 20 us per example, as against 550
us per batch plus 1.4 us per example.
"""
_NO_EXAMPLE = "Could not parse example input, value: '{}'"


@functools.cache
def _messages() -> tuple[Any, Any, type[Exception]]:
    from google.protobuf.message import DecodeError

    from estimatorkit.storage.example_proto import Example, SequenceExample

    return Example, SequenceExample, DecodeError


def _decoded(message: Any, text: bytes, problem: str) -> Any:
    """Parses a message; `{}` in `problem` is replaced by the bytes."""
    try:
        return message.FromString(text)
    except _messages()[2] as error:
        raise feature_error(
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
    """Parses `Example`s into columns.

    Args:
        serialized: `Example`s.
        names: their names for error messages; may be empty.
        columns: what to read.
        defaults: an array for each column with `default`, in order.

    Returns:
        For dense columns `(n, *shape)`, for padded ones `(n, longest, *shape)`; for the others the
        indices, values and shape of a sparse tensor.

    Raises:
        InvalidArgumentError: an example is invalid, lacks a feature, or stores it in another form.
    """
    return as_batch(parse_rows(serialized, columns, defaults, names), columns, defaults)


def parse_rows(
    serialized: Sequence[bytes],
    columns: Sequence[Column],
    defaults: Sequence[NDArray[Any]],
    names: Sequence[bytes] = (),
    *,
    places: NDArray[np.int64] | None = None,
) -> list[Part]:
    """Parses examples together but returns separate results for each.

    `places` are the indices of the examples in their batches, for errors; for the other arguments
    and errors see `parse_examples`.

    Returns:
        For dense columns `("dense", values (n, *shape))`; for padded ones `("ragged", values
        (total, *shape), lengths (n,))`, where a length counts the blocks of one example; for the
        others `("sparse", indices (nnz, rank), values (nnz,), shapes (n, rank), offsets (n + 1,))`,
        where example i has the entries from offsets[i] up to offsets[i + 1].
    """
    wanted = _wanted(columns)

    def place(row: int) -> int:
        return row if places is None else int(places[row])

    if len(serialized) < _FEW:
        messages = [_decoded(_messages()[0], text, _NO_EXAMPLE) for text in serialized]
        features = [each.features.feature for each in messages]
        return read_columns(_from_messages(features, wanted, names, place), columns, defaults)
    found = read_features(serialized, wanted, lambda row, keys: _common_form(serialized[row], keys))
    examples = Examples(
        dict(zip(wanted, found, strict=True)),
        lambda row: _name(names, place(row)),
        place,
        lambda row: sorted(_messages()[0].FromString(serialized[row]).features.feature),
        len(serialized),
    )
    return read_columns(examples, columns, defaults)


def _wanted(columns: Sequence[Column]) -> list[tuple[bytes, int]]:
    """The distinct features that columns need, with the kinds of their values."""
    wanted = [(column.key.encode(), KINDS[column.dtype]) for column in columns]
    wanted += [(key.encode(), INTS) for column in columns for key in column.index_keys]
    return list(dict.fromkeys(wanted))


def _common_form(text: bytes, keys: Collection[bytes]) -> bytes:
    """Re-encodes an example in the form that most writers use, with these features only."""
    message = _decoded(_messages()[0], text, _NO_EXAMPLE)
    message.DiscardUnknownFields()
    feature = message.features.feature
    for key in list(feature):
        if key.encode() not in keys:
            del feature[key]
    written: bytes = message.SerializeToString(deterministic=True)
    return written


def _array(flat: Sequence[Any], shape: Sequence[int], dtype: DType) -> NDArray[Any]:
    result = np.empty(len(flat), dtype.numpy_dtype)
    result[:] = flat
    return result.reshape(shape)


def _from_messages(
    features: Sequence[Mapping[str, Any]],
    wanted: Sequence[tuple[bytes, int]],
    names: Sequence[bytes],
    place: Callable[[int], int] = int,
) -> Examples:
    """Equivalent of `read_features` for parsed messages; faster for few of them."""
    lists = {}
    for key, kind in wanted:
        kinds, counts = [], []
        values: list[Any] = []
        for each in features:
            feature = each.get(key.decode())
            field = "" if feature is None else feature.WhichOneof("kind") or ""
            kinds.append(FIELDS.index(field))
            own = getattr(feature, field).value if kinds[-1] == kind else ()
            counts.append(len(own))
            values += own
        dtype = next(dtype for dtype in LISTS if KINDS[dtype] == kind)
        lists[key, kind] = Lists(
            np.array(kinds, np.int8),
            np.array(counts, np.int64),
            _array(values, (len(values),), dtype),
            all(each == kind for each in kinds),
        )
    return Examples(
        lists,
        lambda row: _name(names, place(row)),
        place,
        lambda row: sorted(features[row]),
        len(features),
    )


# -- SequenceExample


def parse_sequence_examples(
    serialized: Sequence[bytes],
    names: Sequence[bytes],
    context: Sequence[Column],
    sequence: Sequence[Column],
    defaults: Sequence[NDArray[Any]],
) -> tuple[list[NDArray[Any]], list[NDArray[Any]], list[NDArray[Any]]]:
    """Parses `SequenceExample`s into columns.

    Args:
        serialized: `SequenceExample`s.
        names: their names for error messages; may be empty.
        context: the columns of their contexts, as for `parse_examples`.
        sequence: the columns of their steps: 'dense' or 'lists'.
        defaults: an array for each context column with `default`.

    Returns:
        The context's columns; the sequences': for dense columns `(n, most steps, *shape)`,
        zero-padded, for lists the components of a sparse tensor `(n, most steps, longest)`; and for
        each dense column the number of steps of each example, int64 `(n,)`.
    """
    message = _messages()[1]
    known = [_name(names, position) for position in range(len(serialized))]
    decoded = [
        _decoded(message, text, f"Invalid protocol message input, example id: {name}")
        for text, name in zip(serialized, known, strict=True)
    ]
    contexts = _from_messages([each.context.feature for each in decoded], _wanted(context), names)
    outputs: list[NDArray[Any]] = []
    lengths: list[NDArray[Any]] = []
    for column in sequence:
        steps = [
            _steps(each.feature_lists.feature_list, column, name)
            for each, name in zip(decoded, known, strict=True)
        ]
        if column.kind == "dense":
            flat = [value for example in steps for step in example for value in step]
            counts = np.array([len(example) for example in steps], np.int64)
            values = _array(flat, (int(counts.sum()), *column.shape), column.dtype)
            outputs.append(pad_rows(values, counts, column.dtype))
            lengths.append(counts)
        else:
            most = max(map(len, steps), default=0)
            every = [row for example in steps for row in _filled_up(example, most)]
            outputs += rows_as_sparse(every, (len(steps), most), column.dtype)
    found = as_batch(read_columns(contexts, context, defaults), context, defaults)
    return found, outputs, lengths


def _filled_up(steps: Sequence[Sequence[Any]], most: int) -> list[Sequence[Any]]:
    return [*steps, *((),) * (most - len(steps))]


def _steps(feature_lists: Mapping[str, Any], column: Column, name: str) -> list[Sequence[Any]]:
    """The values of each step of one example."""
    if column.key not in feature_lists:
        if column.kind == "dense" and not column.allow_missing:
            raise feature_error(
                f"Name: {name}, Feature list '{column.key}' is required but could not be found. "
                " Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?",
                received=f"feature lists {sorted(feature_lists)}",
                hint="FixedLenSequenceFeature(..., allow_missing=True)",
            )
        return []
    steps: list[Sequence[Any]] = []
    for step, feature in enumerate(feature_lists[column.key].feature):
        kind = feature.WhichOneof("kind") or column.field
        if kind != column.field:
            raise feature_error(
                f"Name: {name}, Feature list: {column.key}, Index: {step}.  Data types don't match."
                f" Expected type: {NAMES[column.field]}, Actual type: {NAMES[kind]}",
                hint=f"request {NAMES[kind]}, or write a {column.field}",
            )
        values = getattr(feature, column.field).value
        if column.kind == "dense" and len(values) != column.size:
            raise feature_error(
                f"Name: {name}, Feature list: {column.key}, Index: {step}.  Number of "
                f"{column.dtype.name} values != expected.  Values size: {len(values)} but output "
                f"shape: {list(column.shape)}"
            )
        steps.append(values)
    return steps


__all__ = [
    "LISTS",
    "Column",
    "Part",
    "parse_examples",
    "parse_rows",
    "parse_sequence_examples",
    "without_batch",
]
