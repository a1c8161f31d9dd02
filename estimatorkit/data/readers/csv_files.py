"""CSV files as a plan: rows of columns, file by file, parsed chunk by chunk.

`CsvFile` is one open file (a `RecordFile` whose records are rows of columns); `CsvRows` the plan. A
position is a file, the byte and line at which a chunk begins, and a row in the chunk.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.data.execution.block_iterator import BlockIterator, State
from estimatorkit.data.execution.buffers import Columns, slice_rows
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.plan import UNKNOWN, Plan
from estimatorkit.data.readers.chunks import CHUNK_BYTES, Chunks
from estimatorkit.data.readers.csv_layout import CsvLayout
from estimatorkit.data.readers.csv_parsing import Parsed, Parser
from estimatorkit.data.readers.csv_records import BYTE_ORDER_MARK, LINE_END, end_of_records, records
from estimatorkit.data.readers.record_files import (
    OpenFile,
    RecordFile,
    RecordFilesIterator,
    names_iterator,
)


@dataclass
class SkippedRows:
    """The number of skipped rows, and the error of the first.

    Attributes:
        first: a message; empty if no row was skipped.
        total: also incremented: the count over all passes and iterators of a dataset.
    """

    count: int = 0
    first: str = ""
    total: SkippedRows | None = None

    def add(self, message: str) -> None:
        """Counts a skipped row."""
        self.count += 1
        self.first = self.first or message
        if self.total is not None:
            self.total.add(message)


@dataclass(frozen=True)
class CsvFormat:
    """How files are read.

    Attributes:
        layout: of their records.
        header: whether the first record of each file holds names.
        skip_bad: drop malformed rows instead of raising.
        chunk_bytes: bytes parsed at once.
    """

    layout: CsvLayout
    header: bool = False
    skip_bad: bool = False
    chunk_bytes: int = CHUNK_BYTES


class CsvFile:
    """An open CSV file as rows of columns.

    Args:
        compression: '', 'GZIP' or 'ZLIB'.
        skipped: counts skipped rows.
        offset: where to begin: 0, or a previous value of the property.
    """

    def __init__(
        self,
        format: CsvFormat,
        compression: str,
        skipped: SkippedRows,
        name: str,
        offset: Any = 0,
    ) -> None:
        self._format = format
        self._skipped = skipped
        self._name = name
        self._parser = Parser(format.layout, name)
        place = offset or {"byte": 0, "line": 1, "row": 0, "bad": 0}
        cut = functools.partial(end_of_records, format.layout)
        self._chunks = Chunks(name, compression, format.chunk_bytes, cut, place["byte"])
        self._byte, self._line = place["byte"], place["line"]  # where the chunk begins
        self._parsed = Parsed([], 0)
        self._row = self._bad = 0  # rows and bad rows of the chunk already read
        if place["row"] or place["bad"]:
            self._load()
            self._row, self._bad = place["row"], place["bad"]

    @property
    def offset(self) -> State:
        """The position of the next row."""
        return {"byte": self._byte, "line": self._line, "row": self._row, "bad": self._bad}

    def read(self, n: int) -> Columns:
        """Returns columns of the next 1 to `n` rows; an empty list at the end.

        Raises:
            InvalidArgumentError: the next row is malformed; reading continues after it.
        """
        count = self.skip(n)
        return slice_rows(self._parsed.columns, self._row - count, self._row) if count else []

    def skip(self, n: int) -> int:
        """Skips up to `n` rows; returns how many, 0 only at the end."""
        while True:
            bad = self._parsed.bad
            end = bad[self._bad].row if self._bad < len(bad) else self._parsed.count
            if self._row < end:
                count = min(n, end - self._row)
                self._row += count
                return count
            if self._bad < len(bad):
                self._bad += 1
                message = bad[self._bad - 1].message
                if not self._format.skip_bad:
                    raise InvalidArgumentError(None, None, message)
                self._skipped.add(message)
            elif not self._load():
                return 0

    def _load(self) -> bool:
        """Parses the next chunk."""
        self._byte = self._chunks.offset
        self._line += self._parsed.lines
        self._row = self._bad = 0
        self._parsed = Parsed([], 0)
        chunk = self._chunks.read()
        line = self._line
        if self._byte == 0:
            chunk, line = self._body(chunk)
        elif not chunk:
            return False
        if chunk:
            self._parsed = self._parser.parse(chunk, line)
        self._parsed.lines += line - self._line
        return bool(chunk) or self._chunks.offset > 0

    def _body(self, chunk: bytes) -> tuple[bytes, int]:
        """The first chunk without byte order mark and header, and its first line."""
        chunk = chunk.removeprefix(BYTE_ORDER_MARK)
        if not self._format.header:
            return chunk, 1
        header = next(records(chunk, self._format.layout), None)
        if header is None:
            raise InvalidArgumentError.explained(
                f"Can't read header of file {self._name}",
                expected="a line with the names of the columns",
                received="an empty file",
            )
        end = LINE_END.match(chunk, header.end)
        body = chunk[end.end() if end else len(chunk) :]
        return body, 1 + len(LINE_END.findall(chunk, 0, len(chunk) - len(body)))

    def close(self) -> None:
        """Closes the file; idempotent."""
        self._chunks.close()


class CsvIterator(RecordFilesIterator):
    """Rows of CSV files.

    Args:
        names: an iterator of one column of file names.
        open_file: opens a file.
        order: for each output column its index among the files' columns.
        skipped: counts the skipped rows of a pass.
    """

    def __init__(
        self,
        names: BlockIterator,
        open_file: OpenFile,
        order: tuple[int, ...],
        skipped: SkippedRows,
    ) -> None:
        super().__init__(names, open_file)
        self._order = order
        self._skipped = skipped

    def _produce(self, n: int) -> Columns:
        while True:
            columns: Any = self._file_of_pass().read(n)  # a bad row does not end its file
            if columns:
                return [columns[index] for index in self._order]
            self._leave()

    def _skip(self, n: int) -> int:
        skipped = 0
        while skipped < n:
            try:
                count = self._file_of_pass().skip(n - skipped)
            except OutOfRangeError:
                break
            skipped += count
            if not count:
                self._leave()
        return skipped

    def _file_of_pass(self) -> RecordFile:
        try:
            return self._opened()
        except OutOfRangeError:
            if self._skipped.count:
                warnings.warn(
                    f"{self._skipped.count} bad rows skipped; the first: {self._skipped.first}",
                    stacklevel=2,
                )
                self._begin(0, "")
            raise

    def _begin(self, count: int, first: str) -> None:
        self._skipped.count, self._skipped.first = count, first

    def _save(self) -> State:
        if not self._skipped.count:
            return super()._save()
        return {**super()._save(), "skipped": [self._skipped.count, self._skipped.first]}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        self._begin(*state.get("skipped", (0, "")))

    def _restart(self, epoch: int) -> None:
        super()._restart(epoch)
        self._begin(0, "")


@dataclass(frozen=True, eq=False)
class CsvRows(Plan):
    """Rows of CSV files.

    Args:
        filenames: strings `(n,)`, a pending parameter, or a plan of names.
        spec: of a row.
        order: for each leaf of `spec` the index of its column in the layout.
        compression: '', 'GZIP' or 'ZLIB', or a pending parameter.
        skipped: counts skipped rows.
    """

    filenames: Any
    spec: Any
    order: tuple[int, ...]
    format: CsvFormat
    compression: Any
    skipped: SkippedRows
    not_identifying = frozenset({"skipped"})

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        skipped = SkippedRows(total=self.skipped)
        open_file = functools.partial(CsvFile, self.format, self.compression, skipped)
        names = names_iterator(self.filenames, seeds)
        return CsvIterator(names, open_file, self.order, skipped)
