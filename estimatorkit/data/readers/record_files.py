"""Files of records as a dataset: one file after the other, a block of records at a call.

`RecordFilesIterator` takes file names from any iterator of names, and holds one open file at a
time, as a `RecordFile`. Its position is that of the names' iterator at the file it is in, and
where in the file it stands: a byte offset, or a number of records. So going to a position opens
one file and seeks. Tables (`csv_files`, `parquet`) build on it: their records are rows.
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
from estimatorkit.data.parameters import integer, parameter, then
from estimatorkit.data.plan import UNKNOWN, Plan
from estimatorkit.data.spec import TensorSpec
from estimatorkit.storage.filesystem import compression_name

_SKIP_AT_ONCE = 8192


class RecordFile(Protocol):
    """An open file of records."""

    @property
    def offset(self) -> Any:
        """Where the next record is, for `OpenFile`: something that JSON can hold."""

    def read(self, n: int) -> list[Any]:
        """The next 1 to `n` records, strings or (of tables) as columns; none at the end."""

    def skip(self, n: int) -> int:
        """Passes over up to `n` records; returns how many."""

    def close(self) -> None:
        """Closes the file; may be called again."""


OpenFile: TypeAlias = Callable[[str, Any], RecordFile]
"""Opens a file, by its name, at an offset that its `RecordFile` once had; 0 is the beginning."""


class RecordFilesIterator(BlockIterator):
    """The records of files, as one column of strings.

    After an error of a file it goes on with the next one, as TensorFlow does: somebody may ignore
    the error.

    Args:
        names: an iterator of one column of file names.
        open_file: opens one.
    """

    def __init__(self, names: BlockIterator, open_file: OpenFile) -> None:
        super().__init__(names)
        self._names = names
        self._open_file = open_file
        self._file: RecordFile | None = None
        self._at: State = {}  # where the names stood before that of the open file

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
        filenames: strings `(n,)`, or what becomes such when the graph runs, or a plan of names.
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
        """What opens the files: plain values only, so that it is read once."""


def names_iterator(filenames: Any, seeds: Seeds) -> BlockIterator:
    """An iterator of the names of a plan of names, or of strings `(n,)`."""
    if isinstance(filenames, Plan):
        return filenames.iterator(seeds)
    return GatherIterator([filenames], RangeIterator(range(len(filenames))))


def compression(value: Any, what: str) -> Any:
    """The compression that a user gave: '', 'GZIP', 'ZLIB', or what becomes such in a run."""
    given = parameter("" if value is None else value, dtypes.string, f"{what}: compression_type")
    return then(given, lambda name: compression_name(np.asarray(name, object).item().decode()))


def byte_count(what: str, value: Any) -> Any:
    """A number of bytes that a user gave; 0 for None."""
    return integer(what, 0 if value is None else value, least=0)


def file_names(filenames: Any, what: str) -> Any:
    """The names that a user gave, as `RecordFiles` takes them.

    Args:
        filenames: a name, nested lists of names, paths, a string tensor, or a dataset of names.
        what: the function that was called, for messages.

    Raises:
        TypeError: they are not names.
    """
    if isinstance(filenames, Dataset):
        spec = filenames.element_spec
        if not (isinstance(spec, TensorSpec) and spec.is_compatible_with(TensorSpec((), "string"))):
            raise type_error(
                f"{what}: the elements of the dataset `filenames` are no names",
                expected=TensorSpec((), "string"),
                received=spec,
            )
        return filenames._plan
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
            raise type_error(f"{what}: filenames are no names", expected="strings", received=names)
        return found

    return then(parameter(filenames, dtypes.string, f"{what}: filenames"), flat)
