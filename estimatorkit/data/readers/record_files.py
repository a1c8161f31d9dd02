"""Files of records as a dataset: one file after the other, read a block of records at a time.

`RecordFilesIterator` takes file names from any iterator and keeps one `RecordFile` open. Its
position is the names' position at the current file and the offset in that file (bytes or records),
so restoring opens one file and seeks. Tables (`csv_files`, `parquet`) build on it: their records
are rows.
"""

from __future__ import annotations

import os
import weakref
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes
from estimatorkit.core.errors import OutOfRangeError, type_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator, State
from estimatorkit.data.execution.buffers import Columns
from estimatorkit.data.execution.iterators import GatherIterator, RangeIterator
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.parameters import as_tensor, integer, parameter, then
from estimatorkit.data.plan import UNKNOWN, Plan
from estimatorkit.data.spec import TensorSpec
from estimatorkit.storage.filesystem import compression_name

_SKIP_AT_ONCE = 8192


class RecordFile(Protocol):
    """An open file of records."""

    @property
    def offset(self) -> Any:
        """The position of the next record, for `OpenFile`; JSON-able."""

    def read(self, n: int) -> list[Any]:
        """Returns the next 1 to `n` records, strings or (for tables) columns; empty at the end."""

    def skip(self, n: int) -> int:
        """Skips up to `n` records; returns how many."""

    def close(self) -> None:
        """Closes the file; idempotent."""


OpenFile: TypeAlias = Callable[[str, Any], RecordFile]
"""Opens a file by name, at 0 or at an earlier `offset` of its `RecordFile`."""


class RecordFilesIterator(BlockIterator):
    """The records of files as one column of strings.

    After an error in a file it continues with the next one, as in TensorFlow, for `ignore_errors`.

    Args:
        names: an iterator of one column of file names.
    """

    def __init__(self, names: BlockIterator, open_file: OpenFile) -> None:
        super().__init__(names)
        self._names = names
        self._open_file = open_file
        self._file: RecordFile | None = None
        self._at: State = {}  # the names' position before the open file

    def _produce(self, n: int) -> Columns:
        while True:
            file = self._opened()
            try:
                records = file.read(n)
            except Exception:
                self._leave()
                raise
            if records:
                return self._columns(records)
            self._leave()

    def _columns(self, records: list[Any]) -> Columns:
        return [np.array(records, object)]

    def _skip(self, n: int) -> int:
        skipped = 0
        while skipped < n:
            try:
                file = self._opened()
            except OutOfRangeError:
                break
            try:
                count = file.skip(min(n - skipped, _SKIP_AT_ONCE))
            except Exception:
                self._leave()
                raise
            skipped += count
            if not count:
                self._leave()
        return skipped

    def _opened(self, offset: Any = 0) -> RecordFile:
        if self._file is None:
            self._at = self._names.get_state()
            name = self._names.next_block(1)[0][0]
            self._file = self._open_file(os.fsdecode(name), offset)
            self._close_file = weakref.finalize(self, self._file.close)
        return self._file

    def _leave(self) -> None:
        if self._file is not None:
            self._close_file()
            self._file = None

    def _save(self) -> State:
        if self._file is None:
            return {"names": self._names.get_state()}
        return {"names": self._at, "offset": self._file.offset}

    def _restore(self, state: State) -> None:
        self._leave()
        self._names.set_state(state["names"])
        if "offset" in state:
            self._opened(state["offset"])

    def _restart(self, epoch: int) -> None:
        self._leave()
        self._names.restart(epoch)

    def close(self) -> None:
        self._leave()
        super().close()


@dataclass(frozen=True, eq=False)
class RecordFiles(Plan):
    """The records of files.

    Args:
        filenames: strings `(n,)`, a pending parameter, or a plan of names.
    """

    filenames: Any

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec((), dtypes.string)

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return RecordFilesIterator(names_iterator(self.filenames, seeds), self._opener())

    @abstractmethod
    def _opener(self) -> OpenFile:
        """Returns the function that opens files. It holds plain values only, so parameters are read
        once.
        """


def names_iterator(filenames: Any, seeds: Seeds) -> BlockIterator:
    """An iterator over a plan of names, or over strings `(n,)`."""
    if isinstance(filenames, Plan):
        return filenames.iterator(seeds)
    return GatherIterator([filenames], RangeIterator(range(len(filenames))))


def compression(value: Any, what: str) -> Any:
    """The compression as a parameter: '', 'GZIP' or 'ZLIB', or pending."""
    given = parameter("" if value is None else value, dtypes.string, f"{what}: compression_type")
    return then(given, lambda name: compression_name(np.asarray(name, object).item().decode()))


def byte_count(what: str, value: Any) -> Any:
    """A number of bytes as a parameter; 0 for None."""
    return integer(what, 0 if value is None else value, least=0)


def file_names(filenames: Any, what: str) -> Any:
    """The file names as `RecordFiles` accepts them.

    Args:
        filenames: a name, nested lists of names, paths, a string tensor, or a dataset of names.
        what: the called function, for messages.

    Raises:
        TypeError: they are not names.
    """
    if isinstance(filenames, Dataset):
        spec = filenames.element_spec
        if not (isinstance(spec, TensorSpec) and spec.is_compatible_with(TensorSpec((), "string"))):
            raise type_error(
                f"{what}: the elements of the dataset `filenames` are not names",
                expected=TensorSpec((), "string"),
                received=spec,
            )
        return filenames._plan
    filenames = as_tensor(filenames)
    if not isinstance(filenames, Tensor):
        if isinstance(filenames, os.PathLike):
            filenames = os.fspath(filenames)
        elif isinstance(filenames, (list, tuple)):
            filenames = [
                os.fspath(each) if isinstance(each, os.PathLike) else each for each in filenames
            ]
            filenames = filenames or np.empty(0, object)

    def flat(names: Any) -> NDArray[Any]:
        found = np.asarray(names, object).reshape(-1)
        if not all(isinstance(each, bytes) for each in found):
            raise type_error(f"{what}: filenames are not names", expected="strings", received=names)
        return found

    return then(parameter(filenames, dtypes.string, f"{what}: filenames"), flat)
