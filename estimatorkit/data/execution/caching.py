"""`cache`: the elements of the first pass, kept in memory or in a file.

A cache file is a zip archive of plain arrays (loading executes no code). It is written under a
temporary name during the first complete pass and then renamed, so it is complete if it exists.
"""

from __future__ import annotations

import io
import json
import os
import struct
import weakref
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import (
    DataLossError,
    FailedPreconditionError,
    OutOfRangeError,
)
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    State,
    UnaryIterator,
    end_of_sequence,
)
from estimatorkit.data.execution.buffers import Columns, concatenate, count_rows, slice_rows
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.execution.replaying import ReplayIterator
from estimatorkit.data.plan import Reordering, Unary
from estimatorkit.runtime.steps.columns import RaggedColumn, SparseColumn
from estimatorkit.storage.atomic_files import temporary_beside

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    LookupError,
    ValueError,
    TypeError,
    RuntimeError,  # encrypted; NotImplementedError: another method of compression
    MemoryError,
)


@dataclass(frozen=True, eq=False)
class Cache(Reordering):
    """The elements of the first pass in memory (for arrays in memory, only row indices)."""

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return CacheIterator(source)


class CacheIterator(UnaryIterator):
    """Stores the rows of the first pass in memory and serves all later passes from there.

    Its position includes the input's initial one; restoring reads the input again from there.
    """

    def __init__(self, source: BlockIterator) -> None:
        super().__init__(source)
        self._start = source.get_state()
        self._forget()

    def _forget(self) -> None:
        self._blocks: list[Columns] = []
        self._starts: list[int] = []
        self._cached = 0
        self._complete = False
        self._failures = 0  # errors while the input was read
        self._position = 0

    def _produce(self, n: int) -> Columns:
        self._read_until(self._position + n)
        if self._position == self._cached:
            raise end_of_sequence()
        index = bisect_right(self._starts, self._position) - 1
        first = self._position - self._starts[index]
        # A copy: the caller's changes to its rows must not reach the cache.
        rows = concatenate([slice_rows(self._blocks[index], first, first + n)])
        self._position += count_rows(rows)
        return rows

    def _skip(self, n: int) -> int:
        self._read_until(self._position + n)
        count = min(n, self._cached - self._position)
        self._position += count
        return count

    def _read_until(self, count: int) -> None:
        while self._cached < count and not self._complete:
            try:
                rows = self._input.next_block(count - self._cached)
            except OutOfRangeError:
                self._complete = True
                self._join()
            except Exception:
                self._failures += 1
                raise
            else:
                self._add(rows)
                if self._input.failing:  # these rows precede the error
                    return

    def _add(self, rows: Columns) -> None:
        self._blocks.append(rows)
        self._starts.append(self._cached)
        self._cached += count_rows(rows)

    def _join(self) -> None:
        """Concatenates the blocks, so that later passes read large slices."""
        blocks, self._blocks, self._starts, self._cached = self._blocks, [], [], 0
        if blocks:
            self._add(concatenate(blocks))

    def _save(self) -> State:
        # After an error the pass is read again, and its rows must not be cached twice.
        read = self._cached if self._failures else self._position
        place = {"position": self._position, "read": read, "failures": self._failures}
        return {**place, "start": self._start}

    def _restore(self, state: State) -> None:
        self._start = state["start"]
        self._input.set_state(self._start)
        self._forget()
        rows, failures = state["read"], state["failures"]
        while not self._complete and (self._cached < rows or self._failures < failures):
            try:
                self._read_until(max(rows, self._cached + 1))
            except Exception:  # already raised, unless it is a different one
                if self._failures > failures:
                    raise
        self._position = min(state["position"], self._cached)

    def _restart(self, epoch: int) -> None:
        self._position = 0


@dataclass(frozen=True, eq=False)
class FileCache(Unary):
    """The elements of the first complete pass, kept in the file `filename` + '.cache'."""

    filename: Any

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        path = os.fsdecode(np.asarray(self.filename, object).item())
        return FileCacheIterator(source, f"{path}.cache", repr(self.element_spec))


class FileCacheIterator(ReplayIterator):
    """See `FileCache`."""

    def __init__(self, source: BlockIterator, path: str, description: str) -> None:
        self._path = path
        self._description = description
        self._writing: zipfile.ZipFile | None = None
        self._reading: zipfile.ZipFile | None = None
        super().__init__(source)

    def _forget(self) -> None:
        self._stop_writing(whole=False)
        if self._reading is not None:
            self._reading.close()
        self._reading = None
        self._block = 0
        self._rows: Columns | None = None

    def _make(self, n: int) -> Columns:
        if self._reading is None and self._writing is None:
            self._begin()
        return self._write(n) if self._reading is None else self._read(n)

    def _begin(self) -> None:
        if os.path.exists(self._path):
            self._reading = self._opened()
            return
        folder = os.path.dirname(self._path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        opened = ExitStack()
        self._temporary = opened.enter_context(temporary_beside(Path(self._path)))
        self._writing = opened.enter_context(zipfile.ZipFile(self._temporary, "w"))
        self._discard = weakref.finalize(self, opened.close)

    def _opened(self) -> zipfile.ZipFile:
        with _damage_named(self._path):
            archive = zipfile.ZipFile(self._path)
            found = json.loads(archive.read("cache.json"))
            self._blocks = int(found["blocks"])
            if found.get("names", names := _digest(archive)) != names:
                raise ValueError("arrays are missing")
        if found["elements"] != self._description:
            archive.close()
            raise FailedPreconditionError.explained(
                f"{self._path} is the cache of another dataset",
                expected=self._description,
                received=found["elements"],
                hint="remove the file, or pass another name to cache()",
            )
        return archive

    def _write(self, n: int) -> Columns:
        try:
            rows = self._input.next_block(n)
        except OutOfRangeError:
            self._stop_writing(whole=True)
            raise
        archive = self._writing
        if archive is not None:
            for number, column in enumerate(rows):
                for part, array in _encode(column).items():
                    name = f"{self._block}/{number}/{part}.npy"
                    with archive.open(name, "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, array, allow_pickle=False)
        self._block += 1
        return rows

    def _stop_writing(self, *, whole: bool) -> None:
        archive, self._writing = self._writing, None
        if archive is None:
            return
        if whole:
            about = {
                "elements": self._description,
                "blocks": self._block,
                "names": _digest(archive),
            }
            archive.writestr("cache.json", json.dumps(about))
            archive.close()
            os.replace(self._temporary, self._path)
        self._discard()

    def _read(self, n: int) -> Columns:
        archive = self._reading
        while self._rows is None or not count_rows(self._rows):
            if archive is None or self._block == self._blocks:
                raise end_of_sequence()
            with _damage_named(f"{self._path}, block {self._block},"):
                self._rows = _decode_block(archive, self._block)
            self._block += 1
        rows, self._rows = slice_rows(self._rows, 0, n), slice_rows(self._rows, n)
        return rows

    def close(self) -> None:
        self._forget()
        super().close()


@contextmanager
def _damage_named(place: str) -> Iterator[None]:
    """Makes what zipfile and NumPy raise for damaged bytes a `DataLossError` with a place."""
    try:
        yield
    except _DAMAGE as error:
        raise DataLossError.explained(
            f"{place} is damaged, or not a dataset cache",
            received=f"{type(error).__name__}: {error}",
            hint="remove the file; it will be rewritten",
        ) from error


def _digest(archive: zipfile.ZipFile) -> int:
    """A checksum of the names of the arrays, which those of zip files do not include."""
    return zlib.crc32("\n".join(sorted(set(archive.namelist()) - {"cache.json"})).encode())


def _encode(column: Any) -> dict[str, NDArray[Any]]:
    """The plain arrays that represent a column; strings become bytes and end offsets."""
    if isinstance(column, RaggedColumn):
        values = _encode(column.flat)
        return {**values, "shapes": column.shapes}
    if isinstance(column, SparseColumn):
        cut = slice(column.starts[0], column.starts[-1])
        starts = column.starts - column.starts[0]
        parts = {"indices": column.indices[cut], "shapes": column.shapes, "starts": starts}
        return {**_encode(column.values[cut]), **parts}
    if column.dtype != object:
        return {"values": np.ascontiguousarray(column)}
    strings = column.reshape(-1).tolist()
    ends = np.cumsum([len(each) for each in strings], dtype=np.int64)
    shape = np.array(column.shape, np.int64)
    return {"bytes": np.frombuffer(b"".join(strings), np.uint8), "ends": ends, "shape": shape}


def _decode_block(archive: zipfile.ZipFile, block: int) -> Columns:
    columns: dict[int, dict[str, NDArray[Any]]] = {}
    for name in archive.namelist():
        head, _, rest = name.partition("/")
        if head == str(block):
            number, _, part = rest.partition("/")
            stored = io.BytesIO(archive.read(name))  # all of it, which compares the checksum
            array = np.lib.format.read_array(stored, allow_pickle=False)
            columns.setdefault(int(number), {})[part.removesuffix(".npy")] = array
    return [_decode(columns[number]) for number in sorted(columns)]


def _decode(parts: Mapping[str, NDArray[Any]]) -> Any:
    if "values" in parts:
        values = parts["values"]
    else:
        text = parts["bytes"].tobytes()
        ends = parts["ends"].tolist()
        values = np.empty(len(ends), object)
        values[:] = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        values = values.reshape(parts["shape"])
    if "starts" in parts:
        return SparseColumn(parts["indices"], values, parts["shapes"], parts["starts"])
    if "shapes" in parts:
        return RaggedColumn(values, parts["shapes"])
    return values
