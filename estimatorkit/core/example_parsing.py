"""Serialized `Example`s and `SequenceExample`s to arrays: the kernels of `ops.parsing`.

A `Column` says what is read of one feature (or, for sparse features, of several) and how: `dense`
(equally many values in each example), `padded` (any number, padded to the longest), `lists` (a
sparse tensor of rank 2) and `sparse` (a sparse tensor by features that hold indices). Everything
here is plain data and NumPy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, float32, int64, string
from estimatorkit.core.errors import InvalidArgumentError, explain
from estimatorkit.core.example_wire import BYTES, FLOATS, INTS, NONE, Lists, read_features
from estimatorkit.core.sparse_rows import rows_as_sparse

LISTS = {string: "bytes_list", float32: "float_list", int64: "int64_list"}
"""The dtypes that features have, and where a `Feature` holds them."""

_KINDS = {string: BYTES, float32: FLOATS, int64: INTS}
_FIELDS = ("", *LISTS.values())
"""The fields of a `Feature` by their numbers, which are the kinds."""
_FEW = 8
"""Fewer examples are read through protobuf's objects: 10 us each; at once they take 400 us."""
_NO_EXAMPLE = "Could not parse example input, value: '{}'"

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


Part = tuple[Any, ...]
"""What `parse_rows` gives for a column."""


class _Examples(NamedTuple):
    """Features of examples.

    Attributes:
        lists: the values of a feature as a kind.
        name: what errors call an example.
        place: its number in its batch.
        features: the names of the features of an example, for errors.
        total: how many examples there are.
    """

    lists: Mapping[tuple[bytes, int], Lists]
    name: Callable[[int], str]
    place: Callable[[int], int]
    features: Callable[[int], list[str]]
    total: int

    def about(self, key: str, row: int) -> str:
        """The words for a feature of an example."""
        return f"Name: {self.name(row)}, Key: {key}, Index: {self.place(row)}."

    def of(self, key: str, dtype: DType) -> Lists:
        """The values of a feature."""
        return self.lists[key.encode(), _KINDS[dtype]]


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
    return _batch(parse_rows(serialized, columns, defaults, names), columns, defaults)


def parse_rows(
    serialized: Sequence[bytes],
    columns: Sequence[Column],
    defaults: Sequence[NDArray[Any]],
    names: Sequence[bytes] = (),
    *,
    places: NDArray[np.int64] | None = None,
) -> list[Part]:
    """The columns of examples that are parsed together, but have results of their own.

    Args:
        serialized, columns, defaults, names: as for `parse_examples`.
        places: the number of each example in its batch, where there are several: errors name it.

    Returns:
        For dense columns `("dense", values (n, *shape))`; for padded ones `("ragged", values
        (total, *shape), lengths (n,))`, where the lengths count what one example has; for the
        others `("sparse", indices (nnz, rank), values (nnz,), shapes (n, rank), offsets (n + 1,))`,
        where example i has the entries from offsets[i] on, up to offsets[i + 1].

    Raises:
        InvalidArgumentError: as `parse_examples`.
    """
    wanted = _wanted(columns)

    def place(row: int) -> int:
        return row if places is None else int(places[row])

    if len(serialized) < _FEW:
        messages = [_decoded(_messages()[0], text, _NO_EXAMPLE) for text in serialized]
        features = [each.features.feature for each in messages]
        return _read(_from_messages(features, wanted, names, place), columns, defaults)
    found = read_features(serialized, wanted, lambda row, keys: _common_form(serialized[row], keys))
    examples = _Examples(
        dict(zip(wanted, found, strict=True)),
        lambda row: _name(names, place(row)),
        place,
        lambda row: sorted(_messages()[0].FromString(serialized[row]).features.feature),
        len(serialized),
    )
    return _read(examples, columns, defaults)


def _wanted(columns: Sequence[Column]) -> list[tuple[bytes, int]]:
    """The features that columns need, each once, and the kind of their values."""
    wanted = [(column.key.encode(), _KINDS[column.dtype]) for column in columns]
    wanted += [(key.encode(), INTS) for column in columns for key in column.index_keys]
    return list(dict.fromkeys(wanted))


def _common_form(text: bytes, keys: Collection[bytes]) -> bytes:
    """An example as most writers write it, with these features only."""
    message = _decoded(_messages()[0], text, _NO_EXAMPLE)
    message.DiscardUnknownFields()
    feature = message.features.feature
    for key in list(feature):
        if key.encode() not in keys:
            del feature[key]
    written: bytes = message.SerializeToString(deterministic=True)
    return written


def _from_messages(
    features: Sequence[Mapping[str, Any]],
    wanted: Sequence[tuple[bytes, int]],
    names: Sequence[bytes],
    place: Callable[[int], int] = int,
) -> _Examples:
    """What `read_features` finds, from messages: better for few of them."""
    lists = {}
    for key, kind in wanted:
        kinds, counts = [], []
        values: list[Any] = []
        for each in features:
            feature = each.get(key.decode())
            field = "" if feature is None else feature.WhichOneof("kind") or ""
            kinds.append(_FIELDS.index(field))
            own = getattr(feature, field).value if kinds[-1] == kind else ()
            counts.append(len(own))
            values += own
        dtype = next(dtype for dtype in LISTS if _KINDS[dtype] == kind)
        lists[key, kind] = Lists(
            np.array(kinds, np.int8),
            np.array(counts, np.int64),
            _array(values, (len(values),), dtype),
            all(each == kind for each in kinds),
        )
    return _Examples(
        lists,
        lambda row: _name(names, place(row)),
        place,
        lambda row: sorted(features[row]),
        len(features),
    )


def _array(flat: Sequence[Any], shape: Sequence[int], dtype: DType) -> NDArray[Any]:
    result = np.empty(len(flat), dtype.numpy_dtype)
    result[:] = flat
    return result.reshape(shape)


def _read(
    examples: _Examples, columns: Sequence[Column], defaults: Sequence[NDArray[Any]]
) -> list[Part]:
    rest = iter(defaults)
    return [
        _READERS[column.kind](examples, column, next(rest) if column.default else None)
        for column in columns
    ]


def _first(problems: NDArray[Any]) -> int:
    """The first example that has a problem; -1 if none."""
    return int(np.argmax(problems)) if problems.any() else -1


def _check_kinds(examples: _Examples, key: str, dtype: DType, upto: int) -> None:
    """Raises where one of the first `upto` examples has another list; below 0: of all."""
    lists = examples.of(key, dtype)
    if lists.complete:
        return
    kinds = lists.kinds[: upto if upto >= 0 else None]
    row = _first((kinds != NONE) & (kinds != _KINDS[dtype]))
    if row < 0:
        return
    kind = _NAMES[_FIELDS[kinds[row]]]
    raise _error(
        f"{examples.about(key, row)}  Data types don't match. Expected type: "
        f"{_NAMES[LISTS[dtype]]}, Actual type: {kind}",
        hint=f"ask for {kind}, or write a {LISTS[dtype]}",
    )


def _dense(examples: _Examples, column: Column, default: NDArray[Any] | None) -> Part:
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
        raise _error(
            f"Name: {examples.name(row)}, Feature: {column.key} (data type: {column.dtype.name}) "
            "is required but could not be found",
            received=f"features {examples.features(row)}",
            hint="give the FixedLenFeature a default_value",
        )
    if row >= 0:
        raise _error(
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


def _padded(examples: _Examples, column: Column, default: NDArray[Any] | None) -> Part:
    lists = examples.of(column.key, column.dtype)
    row = _first(lists.counts % column.size != 0)
    _check_kinds(examples, column.key, column.dtype, row + 1 if row >= 0 else -1)
    if row >= 0:
        raise _error(
            f"{examples.about(column.key, row)}  Number of {column.dtype.name} values is not a "
            f"multiple of stride length. Saw {lists.counts[row]} values but output shape is: "
            f"[{','.join(map(str, ('?', *column.shape)))}]"
        )
    return "ragged", lists.values.reshape(-1, *column.shape), lists.counts // column.size


def _offsets(counts: NDArray[Any]) -> NDArray[Any]:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _lists(examples: _Examples, column: Column, default: NDArray[Any] | None) -> Part:
    _check_kinds(examples, column.key, column.dtype, -1)
    lists = examples.of(column.key, column.dtype)
    offsets = _offsets(lists.counts)
    indices = np.arange(len(lists.values)) - np.repeat(offsets[:-1], lists.counts)
    return "sparse", indices[:, None], lists.values, lists.counts[:, None], offsets


def _sparse(examples: _Examples, column: Column, default: NDArray[Any] | None) -> Part:
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
        indices, values = indices[order], values[order]
    shapes = np.broadcast_to(np.array(column.shape, np.int64), (examples.total, len(axes)))
    return "sparse", indices, values, shapes, _offsets(lists.counts)


def _explain_sparse(examples: _Examples, column: Column, row: int) -> NoReturn:
    """Raises for an example whose features do not fit together."""
    own = int(examples.of(column.key, column.dtype).counts[row])
    for key, size in zip(column.index_keys, column.shape, strict=True):
        axis = examples.of(key, int64)
        if axis.counts[row] != own:
            raise _error(
                f"Name: {examples.name(row)}, SparseFeature: the features {key!r} and "
                f"{column.key!r} have different numbers of values",
                expected=f"{own} indices in {key!r}",
                received=axis.counts[row],
            )
        start = int(axis.counts[:row].sum())
        values = axis.values[start : start + own]
        outside = values[(values < 0) | (values >= size)]
        if len(outside):
            raise _error(
                f"Name: {examples.name(row)}, SparseFeature: an index in {key!r} is out of range",
                expected=f"0 to {size - 1}",
                received=outside[0],
            )
    raise AssertionError(f"example {row} has no problem")


_READERS: dict[str, Callable[[_Examples, Column, Any], Part]] = {
    "dense": _dense,
    "padded": _padded,
    "lists": _lists,
    "sparse": _sparse,
}


def _batch(
    parts: Sequence[Part], columns: Sequence[Column], defaults: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """What `parse_rows` gave, joined to one batch."""
    rest = iter(defaults)
    outputs: list[NDArray[Any]] = []
    for part, column in zip(parts, columns, strict=True):
        default = next(rest) if column.default else None
        if part[0] == "dense":
            outputs.append(part[1])
        elif part[0] == "ragged":
            fill = None if default is None else default.reshape(-1)[0]
            outputs.append(_pad(part[1], part[2], column.dtype, fill))
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


def _pad(
    values: NDArray[Any], lengths: NDArray[Any], dtype: DType, fill: Any = None
) -> NDArray[Any]:
    """Rows of different lengths `(total, *shape)` in an array `(rows, longest, *shape)`."""
    shape = len(lengths), int(lengths.max(initial=0)), *values.shape[1:]
    empty = b"" if dtype is string else 0
    result = np.full(shape, empty if fill is None else fill, dtype.numpy_dtype)
    result[np.arange(shape[1]) < lengths[:, None]] = values
    return result


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
            outputs.append(_pad(values, counts, column.dtype))
            lengths.append(counts)
        else:
            most = max(map(len, steps), default=0)
            every = [row for example in steps for row in _filled_up(example, most)]
            outputs += rows_as_sparse(every, (len(steps), most), column.dtype)
    found = _batch(_read(contexts, context, defaults), context, defaults)
    return found, outputs, lengths


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
        kind = feature.WhichOneof("kind") or column.field
        if kind != column.field:
            raise _error(
                f"Name: {name}, Key: {column.key}, Index: {step}.  Data types don't match. "
                f"Expected type: {_NAMES[column.field]}, Actual type: {_NAMES[kind]}",
                hint=f"ask for {_NAMES[kind]}, or write a {column.field}",
            )
        values = getattr(feature, column.field).value
        if column.kind == "dense" and len(values) != column.size:
            raise _error(
                f"Name: {name}, Feature list: {column.key}, Index: {step}.  Number of "
                f"{column.dtype.name} values != expected.  Values size: {len(values)} but output "
                f"shape: {list(column.shape)}"
            )
        steps.append(values)
    return steps
