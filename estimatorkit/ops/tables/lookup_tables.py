"""Host-side contents of lookup tables, to which table handles refer in a session.

A `HostTable` is a dict from keys to values (bytes, ints, floats, or rows for values with a shape).
Static tables are initialized once, from arrays or a text file; mutable ones change. Lookups and
updates may come from different threads.
"""

from __future__ import annotations

import codecs
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, string
from estimatorkit.core.errors import FailedPreconditionError, InvalidArgumentError
from estimatorkit.storage.filesystem import file_errors, open_file
from estimatorkit.storage.number_text import to_number

WHOLE_LINE = -2
LINE_NUMBER = -1


class TableSpec(NamedTuple):
    """Static description of a table.

    Attributes:
        name: that of its handle.
        value_shape, key_shape: the shape of one value or key.
        mutable: whether it is filled by insertions and needs no initializer.
        reserved: keys that may not be used: the empty and the deleted key of a `DenseTable`.
        buckets: the initial number of buckets of a `DenseTable`; 0 for other tables.
    """

    name: str
    key_dtype: DType
    value_dtype: DType
    value_shape: tuple[int, ...] = ()
    mutable: bool = False
    reserved: tuple[Any, ...] = ()
    key_shape: tuple[int, ...] = ()
    buckets: int = 0


class HostTable:
    """The content of a table."""

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._lock = threading.RLock()
        self._entries: dict[Any, Any] | None = {} if spec.mutable else None

    def _content(self) -> dict[Any, Any]:
        if self._entries is None:
            raise FailedPreconditionError.explained(
                "Table not initialized",
                received=f"table {self._spec.name!r}",
                hint="run tables_initializer() first",
            )
        return self._entries

    def initialize(self, items: Iterable[tuple[Any, Any]]) -> None:
        """Fills the table; filling it again with equal content has no effect.

        Raises FailedPreconditionError if a key has two values, or the table has other content.
        """
        entries: dict[Any, Any] = {}
        for key, value in items:
            if entries.setdefault(key, value) != value:
                raise FailedPreconditionError.explained(
                    f"HashTable has different value for same key. Key {_shown(key)} has "
                    f"{_shown(entries[key])} and trying to add value {_shown(value)}",
                    received=f"table {self._spec.name!r}",
                )
        with self._lock:
            if self._entries is not None and self._entries != entries:
                raise FailedPreconditionError.explained(
                    "Table already initialized with different data",
                    received=f"table {self._spec.name!r}",
                )
            self._entries = entries

    def size(self) -> int:
        """The number of keys; 0 before initialization."""
        return len(self._entries or ())

    def lookup(self, keys: Any, default: Any) -> NDArray[Any]:
        """The values of keys, in an array of any shape.

        `default` is the value of missing keys: one, or one per key.
        """
        flat = self._keys(keys)
        shape = self._values_shape(keys)
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
        """The values of keys, None for missing ones."""
        entries = self._content()
        return [entries.get(key) for key in keys]

    def _values(self, found: Sequence[Any], shape: Sequence[int]) -> NDArray[Any]:
        result = np.empty((len(found), *self._spec.value_shape), self._spec.value_dtype.numpy_dtype)
        if found:
            result[:] = found
        return result.reshape(shape)

    def _keys(self, keys: Any) -> list[Any]:
        flat = self._flat(keys)
        if self._spec.reserved and not set(self._spec.reserved).isdisjoint(flat):
            empty, *_ = self._spec.reserved
            which = "empty_key" if empty in flat else "deleted_key"
            raise InvalidArgumentError.explained(
                f"Using the {which} as a table key is not allowed",
                received=f"table {self._spec.name!r}",
            )
        return flat

    def _flat(self, keys: Any) -> list[Any]:
        """The keys as a flat list; keys with a shape become tuples."""
        if isinstance(keys, bytes):
            return [keys]
        array, shape = np.asarray(keys), self._spec.key_shape
        if not shape:
            found: list[Any] = array.ravel().tolist()
            return found
        if array.shape[-len(shape) :] != shape:
            raise InvalidArgumentError.explained(
                f"Input key shape {list(array.shape)} must end with the table's key shape "
                f"{list(shape)}",
                received=f"table {self._spec.name!r}",
            )
        return [tuple(row) for row in array.reshape(-1, math.prod(shape)).tolist()]

    def _values_shape(self, keys: Any) -> tuple[int, ...]:
        """The shape of the values of `keys`."""
        shape = np.shape(keys)
        return (*shape[: len(shape) - len(self._spec.key_shape)], *self._spec.value_shape)

    def _rows(self, keys: Any, values: Any) -> list[tuple[Any, Any]]:
        flat = self._keys(keys)
        shape = self._values_shape(keys)
        array = np.array(values, self._spec.value_dtype.numpy_dtype)  # a copy owned by the table
        if array.shape != shape:
            raise InvalidArgumentError.explained(
                f"Expected shape {list(shape)} for value, got {list(array.shape)}",
                received=f"table {self._spec.name!r}",
            )
        rows = array.reshape(len(flat), *self._spec.value_shape)
        return list(zip(flat, rows if self._spec.value_shape else rows.tolist(), strict=True))

    def insert(self, keys: Any, values: Any) -> None:
        """Inserts or overwrites values."""
        rows = self._rows(keys, values)
        with self._lock:
            self._content().update(rows)

    def remove(self, keys: Any) -> None:
        """Removes keys; missing ones are ignored."""
        flat = self._keys(keys)
        with self._lock:
            for key in flat:
                self._content().pop(key, None)

    def replace(self, keys: Any, values: Any) -> None:
        """Replaces the whole content."""
        rows = self._rows(keys, values)
        with self._lock:
            self._entries = dict(rows)

    def entries(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """All keys `(n, *key shape)` and values `(n, *value shape)`, in insertion order."""
        with self._lock:
            entries = dict(self._content())
        return self._arrays(list(entries), list(entries.values()))

    def export(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The result of the table's export operation: `entries`."""
        return self.entries()

    def _arrays(
        self, keys: Sequence[Any], values: Sequence[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        size, shape = len(keys), self._spec.key_shape
        made = np.empty((size, math.prod(shape)) if shape else size, self._key_type)
        if size:
            made[:] = keys
        return made.reshape(size, *shape), self._values(values, (size, *self._spec.value_shape))

    @property
    def _key_type(self) -> Any:
        return self._spec.key_dtype.numpy_dtype


class DenseTable(HostTable):
    """The content of a `DenseHashTable`, with as many buckets as TensorFlow's table.

    A bucket holds a key, the empty key, or the deleted key with the value of the removed key.

    Raises:
        InvalidArgumentError: the number of buckets is less than 4 or not a power of 2, or the empty
            and the deleted key are equal.
    """

    FULL = 0.8  # TensorFlow's `max_load_factor`

    def __init__(self, spec: TableSpec) -> None:
        super().__init__(spec)
        self._buckets = spec.buckets
        self._deleted: list[Any] = []
        problem = None
        if spec.buckets < 4 or spec.buckets & (spec.buckets - 1):
            problem = f"Number of buckets must be at least 4 and a power of 2, got: {spec.buckets}"
        elif spec.reserved[0] == spec.reserved[1]:
            problem = f"Empty and deleted keys cannot be equal, got: {spec.reserved[0]!r}"
        if problem:
            raise InvalidArgumentError.explained(problem, received=f"table {spec.name!r}")

    def insert(self, keys: Any, values: Any) -> None:
        """Inserts values; first doubles the buckets until at most 0.8 of them would be used,
        counting all given keys as new.
        """
        with self._lock:
            self._reserve(self.size() + len(self._flat(keys)))
            super().insert(keys, values)
            self._fit()

    def remove(self, keys: Any) -> None:
        """Removes keys; their buckets stay occupied until the table grows."""
        flat = self._keys(keys)
        with self._lock:
            entries = self._content()
            self._deleted += [entries.pop(key) for key in flat if key in entries]

    def replace(self, keys: Any, values: Any) -> None:
        """Replaces the whole content; reserved keys are dropped."""
        used = [at for at, key in enumerate(self._flat(keys)) if key not in self._spec.reserved]
        rows = np.asarray(values)
        rows = rows.reshape(len(rows), *self._spec.value_shape)
        with self._lock:
            super().replace(
                np.asarray(keys).reshape(len(rows), *self._spec.key_shape)[used], rows[used]
            )
            self._deleted = []
            self._reserve(self.size())

    def export(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """All buckets: keys `(buckets, size of a key)`, values `(buckets, size of a value)`."""
        empty_key, deleted_key = self._spec.reserved
        with self._lock:
            entries, deleted = self._content(), self._deleted
            free = self._buckets - len(entries) - len(deleted)
            keys = [*entries, *[deleted_key] * len(deleted), *[empty_key] * free]
            nothing = np.zeros(self._spec.value_shape, self._spec.value_dtype.numpy_dtype)
            if self._spec.value_dtype is string:
                nothing[...] = b""
            values = [*entries.values(), *deleted, *[nothing[()]] * free]
        made, rows = self._arrays(keys, values)
        return made.reshape(self._buckets, -1), rows.reshape(self._buckets, -1)

    def _reserve(self, size: int) -> None:
        """Doubles the buckets until they can hold `size` keys."""
        while size > self._buckets * self.FULL:
            self._buckets *= 2
            self._deleted = []

    def _fit(self) -> None:
        """Gives buckets of deleted keys to new keys if no others are left."""
        del self._deleted[: max(0, self.size() + len(self._deleted) - self._buckets)]


def _shown(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


# -- vocabulary files


class Column(NamedTuple):
    """Where a text file holds keys or values.

    Attributes:
        place: the zero-based column, or WHOLE_LINE, or LINE_NUMBER.
    """

    place: int
    dtype: DType


def read_vocabulary(
    path: str, key: Column, value: Column, vocab_size: int, delimiter: str, offset: int = 0
) -> list[tuple[Any, Any]]:
    """Reads pairs of keys and values from a text file, one per line; a byte order mark is skipped.

    Reads `vocab_size` lines, all if negative; `offset` is added to line numbers.

    Raises:
        NotFoundError: the file does not exist.
        InvalidArgumentError: it has too few lines or columns, an empty line, or invalid values.
    """
    with open_file(path) as file, file_errors("read the vocabulary", path):
        lines = file.read().removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1]:
        lines.pop()
    # Windows line endings.
    lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
    if vocab_size >= 0:
        if len(lines) < vocab_size:
            raise InvalidArgumentError.explained(
                f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}",
                hint="leave vocab_size out to read every line",
            )
        lines = lines[:vocab_size]
    if b"" in lines:
        position = sum(len(line) + 1 for line in lines[: lines.index(b"") + 1])
        raise InvalidArgumentError.explained(
            f"Invalid content in {path}: empty line found at position {position}",
            expected="a word in each line",
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
        raise InvalidArgumentError.explained(
            f"Invalid number of columns in {path} line {number} ({_shown(line[:100])}) : "
            f"expected at least {index + 1} got {len(cells)}"
        )
    try:
        return convert(cells[index])
    except ValueError as error:
        raise InvalidArgumentError.explained(
            f"Field {_shown(cells[index])} in line {number} is not a valid {column.dtype.name}",
            received=path,
        ) from error
