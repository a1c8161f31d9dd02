"""Lookup tables as host objects: what a table's handle stands for in a session.

A `HostTable` is a dict from keys to values (bytes, ints, floats, or rows for values with a shape).
Static tables are filled once, from arrays or from a text file; mutable ones change. Those who look
up and those who change may be different threads.
"""

from __future__ import annotations

import codecs
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, string
from estimatorkit.core.errors import FailedPreconditionError, InvalidArgumentError, explain
from estimatorkit.core.filesystem import file_errors, open_file
from estimatorkit.core.number_text import to_number

WHOLE_LINE = -2
LINE_NUMBER = -1


class TableSpec(NamedTuple):
    """What a table is.

    Attributes:
        name: that of its handle.
        key_dtype: of the keys.
        value_dtype: of the values.
        value_shape: of one value.
        mutable: whether it is filled by insertions and needs no initializer.
        reserved: keys that may not be used.
    """

    name: str
    key_dtype: DType
    value_dtype: DType
    value_shape: tuple[int, ...] = ()
    mutable: bool = False
    reserved: tuple[Any, ...] = ()


class HostTable:
    """The content of a table.

    Args:
        spec: what it is.
    """

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._lock = threading.RLock()
        self._entries: dict[Any, Any] | None = {} if spec.mutable else None

    def _content(self) -> dict[Any, Any]:
        if self._entries is None:
            raise FailedPreconditionError(
                None,
                None,
                explain(
                    "Table not initialized",
                    received=f"table {self._spec.name!r}",
                    hint="run tables_initializer() first",
                ),
            )
        return self._entries

    def initialize(self, items: Iterable[tuple[Any, Any]]) -> None:
        """Fills the table; filling it again with the same changes nothing.

        Raises:
            FailedPreconditionError: a key has two values, or the table holds others already.
        """
        entries: dict[Any, Any] = {}
        for key, value in items:
            if entries.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    None,
                    None,
                    explain(
                        f"HashTable has different value for same key. Key {_shown(key)} has "
                        f"{_shown(entries[key])} and trying to add value {_shown(value)}",
                        received=f"table {self._spec.name!r}",
                    ),
                )
        with self._lock:
            if self._entries is not None and self._entries != entries:
                raise FailedPreconditionError(
                    None,
                    None,
                    explain(
                        "Table already initialized with different data",
                        received=f"table {self._spec.name!r}",
                    ),
                )
            self._entries = entries

    def size(self) -> int:
        """How many keys there are; 0 before it is filled."""
        return len(self._entries or ())

    def lookup(self, keys: Any, default: Any) -> NDArray[Any]:
        """The values of keys.

        Args:
            keys: any shape.
            default: what keys have that are not there: one value, or one for each key.
        """
        flat = self._keys(keys)
        shape = (*np.shape(keys), *self._spec.value_shape)
        default = np.asarray(default, self._spec.value_dtype.numpy_dtype)
        with self._lock:
            entries = self._content()
            if default.shape == self._spec.value_shape:
                missing = default[()] if default.ndim == 0 else default
                found = [entries.get(key, missing) for key in flat]
            else:
                each = np.broadcast_to(default, shape).reshape(len(flat), *self._spec.value_shape)
                found = [entries.get(key, other) for key, other in zip(flat, each, strict=True)]
        return self._values(found, shape)

    def find(self, keys: Sequence[Any]) -> list[Any]:
        """The values of keys, None for those that are not there."""
        entries = self._content()
        return [entries.get(key) for key in keys]

    def _values(self, found: Sequence[Any], shape: Sequence[int]) -> NDArray[Any]:
        result = np.empty((len(found), *self._spec.value_shape), self._spec.value_dtype.numpy_dtype)
        if found:
            result[:] = found
        return result.reshape(shape)

    def _keys(self, keys: Any) -> list[Any]:
        flat: list[Any] = [keys] if isinstance(keys, bytes) else np.asarray(keys).ravel().tolist()
        if self._spec.reserved and not set(self._spec.reserved).isdisjoint(flat):
            empty, *_ = self._spec.reserved
            which = "empty_key" if empty in flat else "deleted_key"
            raise InvalidArgumentError(
                None,
                None,
                explain(
                    f"Using the {which} as a table key is not allowed",
                    received=f"table {self._spec.name!r}",
                ),
            )
        return flat

    def _rows(self, keys: Any, values: Any) -> list[tuple[Any, Any]]:
        flat = self._keys(keys)
        shape = (*np.shape(keys), *self._spec.value_shape)
        array = np.array(values, self._spec.value_dtype.numpy_dtype)  # the table's own copy
        if array.shape != shape:
            raise InvalidArgumentError(
                None,
                None,
                explain(
                    f"Expected shape {list(shape)} for value, got {list(array.shape)}",
                    received=f"table {self._spec.name!r}",
                ),
            )
        rows = array.reshape(len(flat), *self._spec.value_shape)
        return list(zip(flat, rows if self._spec.value_shape else rows.tolist(), strict=True))

    def insert(self, keys: Any, values: Any) -> None:
        """Puts values in, in place of those that the keys have."""
        rows = self._rows(keys, values)
        with self._lock:
            self._content().update(rows)

    def remove(self, keys: Any) -> None:
        """Takes keys out; those that are not there are no error."""
        flat = self._keys(keys)
        with self._lock:
            for key in flat:
                self._content().pop(key, None)

    def replace(self, keys: Any, values: Any) -> None:
        """Puts keys and values in place of the whole content."""
        rows = self._rows(keys, values)
        with self._lock:
            self._entries = dict(rows)

    def export(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """All keys `(n,)` and their values `(n, *value shape)`, in the order of their coming."""
        with self._lock:
            entries = dict(self._content())
        keys = np.empty(len(entries), self._spec.key_dtype.numpy_dtype)
        keys[:] = list(entries)
        shape = (len(entries), *self._spec.value_shape)
        return keys, self._values(list(entries.values()), shape)


def _shown(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


# -- vocabulary files


class Column(NamedTuple):
    """Where keys or values stand in a text file.

    Attributes:
        place: the column, counted from 0, or WHOLE_LINE, or LINE_NUMBER.
        dtype: of what stands there.
    """

    place: int
    dtype: DType


def read_vocabulary(
    path: str, key: Column, value: Column, vocab_size: int, delimiter: str, offset: int = 0
) -> list[tuple[Any, Any]]:
    """The keys and values of a text file, a pair a line.

    A byte order mark, which editors put before the first word, is not part of it.

    Args:
        path: the file.
        key: where the keys stand.
        value: where the values do.
        vocab_size: how many lines are read; all where negative.
        delimiter: the character between columns.
        offset: added to line numbers.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it has too few lines or columns, an empty line, or other values.
    """
    with open_file(path) as file, file_errors("read the vocabulary", path):
        lines = file.read().removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1]:
        lines.pop()
    # A line may end as Windows writes it.
    lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
    if vocab_size >= 0:
        if len(lines) < vocab_size:
            raise InvalidArgumentError(
                None,
                None,
                explain(
                    f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}",
                    hint="leave vocab_size out to read every line",
                ),
            )
        lines = lines[:vocab_size]
    if b"" in lines:
        position = sum(len(line) + 1 for line in lines[: lines.index(b"") + 1])
        raise InvalidArgumentError(
            None,
            None,
            explain(
                f"Invalid content in {path}: empty line found at position {position}",
                expected="a word in each line",
            ),
        )
    keys = _column(lines, key, delimiter.encode(), path, offset)
    values = _column(lines, value, delimiter.encode(), path, offset)
    return list(zip(keys, values, strict=True))


def _column(
    lines: Sequence[bytes], column: Column, delimiter: bytes, path: str, offset: int
) -> Sequence[Any]:
    if column.place == LINE_NUMBER:
        return range(offset, offset + len(lines))
    convert: Callable[[bytes], Any] = bytes if column.dtype is string else to_number(column.dtype)
    if column.place == WHOLE_LINE and column.dtype is string:
        return lines
    return [
        _cell(line, number, column, convert, delimiter, path) for number, line in enumerate(lines)
    ]


def _cell(
    line: bytes,
    number: int,
    column: Column,
    convert: Callable[[bytes], Any],
    delimiter: bytes,
    path: str,
) -> Any:
    cells = [line] if column.place == WHOLE_LINE else line.split(delimiter)
    index = max(column.place, 0)
    if index >= len(cells):
        raise InvalidArgumentError(
            None,
            None,
            explain(
                f"Invalid number of columns in {path} line {number} ({_shown(line[:100])}) : "
                f"expected at least {index + 1} got {len(cells)}"
            ),
        )
    try:
        return convert(cells[index])
    except ValueError as error:
        raise InvalidArgumentError(
            None,
            None,
            explain(
                f"Field {_shown(cells[index])} in line {number} is not a valid {column.dtype.name}",
                received=path,
            ),
        ) from error
