"""Locates the records and cells of a CSV text.

Two equivalent methods: `spans` finds all records of a chunk with NumPy if quotes are well placed;
`records` parses any text record by record and reports what is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data.readers.csv_layout import CsvLayout

NEWLINE, RETURN, QUOTE, SPACE, MINUS, ZERO = b'\n\r" -0'

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

MAX_RECORD_BYTES = 1 << 24
"""The maximum bytes per record; an unclosed quote must not exhaust memory."""

LINE_END = re.compile(rb"\r\n?|\n")
_QUOTED = re.compile(rb'"([^"]*(?:""[^"]*)*)"')
_INT64_DIGITS = 18  # of integers that always fit
_MOST_SPACES = 8  # around an integer parsed by NumPy

UNCLOSED = "Reached end of file without closing quoted field in record"
QUOTE_INSIDE = "Unquoted fields cannot have quotes inside"
NOT_ESCAPED = "Quote inside a string has to be escaped by another quote"

Ints: TypeAlias = NDArray[np.int64]


class Record(NamedTuple):
    """A parsed record: its extent, its cells, and the error in its quotes, if any."""

    start: int
    end: int
    cells: list[bytes]
    problem: str | None


def records(data: bytes, layout: CsvLayout, at: int = 0) -> Iterator[Record]:
    """Parses records one by one; after a malformed one it continues with the next line."""
    delimiter = layout.delimiter
    unquoted = re.compile(b'[^\r\n"' + re.escape(delimiter) + b"]*")
    while at < len(data):
        found = LINE_END.search(data, at)
        end, after = found.span() if found else (len(data), len(data))
        line = data[at:end]
        if not (layout.quotes and b'"' in line):
            cells = line.split(delimiter)
            if layout.skip_initial_space:
                cells = [cell.lstrip(b" ") for cell in cells]
            if line:
                yield Record(at, end, cells, None)
        else:
            cells, stop, problem = _quoted_record(data, at, layout, unquoted)
            if problem is None:
                end = stop
                ended = LINE_END.match(data, stop)
                after = ended.end() if ended else stop
            yield Record(at, end, cells, problem)
        at = after


def _quoted_record(
    data: bytes, at: int, layout: CsvLayout, unquoted: re.Pattern[bytes]
) -> tuple[list[bytes], int, str | None]:
    cells: list[bytes] = []
    while True:
        while layout.skip_initial_space and data[at : at + 1] == b" ":
            at += 1
        quoted = data[at : at + 1] == b'"'
        found = (_QUOTED if quoted else unquoted).match(data, at)
        if found is None:
            return cells, at, UNCLOSED
        cells.append(found[1].replace(b'""', b'"') if quoted else found[0])
        at = found.end()
        following = data[at : at + 1]
        if following == layout.delimiter:
            at += 1
        elif following in (b"", b"\n", b"\r"):
            return cells, at, None
        else:
            return cells, at, NOT_ESCAPED if quoted else QUOTE_INSIDE


def end_of_records(layout: CsvLayout, data: bytes) -> int:
    """The number of bytes of complete records: up to the last unquoted line end.

    Raises:
        InvalidArgumentError: there is none in more than `MAX_RECORD_BYTES`.
    """
    end = data.rfind(b"\n") + 1
    if not end:
        end = data.rfind(b"\r", 0, -1) + 1  # lines that end in CR only
    if not end and len(data) > MAX_RECORD_BYTES:
        raise InvalidArgumentError.explained(
            "a record of the CSV text is too long",
            expected=f"at most {MAX_RECORD_BYTES} bytes",
            received=repr(data[:40]),
            hint="is this a CSV file, and is it compressed?",
        )
    if not layout.quotes or data.find(b'"', 0, end) < 0:
        return end
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == data[end - 1])
    ends = ends[np.searchsorted(np.flatnonzero(array == QUOTE), ends) % 2 == 0]
    if len(ends):
        return int(ends[-1]) + 1
    # The text ends within quotes: a long cell, or a misplaced quote.
    first = next(records(data, layout))
    if first.problem in (None, UNCLOSED) and len(data) < MAX_RECORD_BYTES:
        return 0
    return data.find(b"\n", first.end) + 1


class Spans(NamedTuple):
    """The extents of the records of a chunk.

    Attributes:
        array: the bytes.
        starts, ends: where each record and its line end begin.
        delimiters: those between cells.
        first: for each record the index of its first delimiter, followed by the total.
        line_ends: all line ends, also those in quotes.
    """

    array: NDArray[np.uint8]
    starts: Ints
    ends: Ints
    delimiters: Ints
    first: Ints
    line_ends: Ints

    @property
    def widths(self) -> Ints:
        """The number of cells of each record."""
        return np.diff(self.first) + 1

    def blank(self) -> NDArray[np.bool_]:
        """Which records are empty lines."""
        returns = self.array[np.minimum(self.starts, len(self.array) - 1)] == RETURN
        blank: NDArray[np.bool_] = (self.ends == self.starts) | (
            (self.ends == self.starts + 1) & returns
        )
        return blank

    def integers(self, rows: NDArray[np.bool_], index: int, missing: int | None) -> Ints | None:
        """The integers of a column.

        Args:
            rows: a mask of records.
            index: the column.
            missing: the value of empty cells.

        Returns:
            int64; None if a cell is not a plain integer, or is empty and `missing` is None.
        """
        starts, ends, first = self.starts[rows], self.ends[rows], self.first[:-1][rows]
        if index:
            starts = self.delimiters[first + index - 1] + 1
        followed = index < self.first[1:][rows] - first
        ends[followed] = self.delimiters[first[followed] + index]
        return _integers(self.array, starts, ends, missing)


def _integers(
    array: NDArray[np.uint8], starts: Ints, ends: Ints, missing: int | None
) -> Ints | None:
    """See `Spans.integers`. pandas parses integers more slowly, and accepts `1e5`."""
    end = len(array) - 1
    ends = ends - ((starts < ends) & (array[ends - 1] == RETURN))
    empty = starts == ends
    if missing is None and empty.any():
        return None
    for _ in range(_MOST_SPACES):
        leading = (starts < ends) & (array[np.minimum(starts, end)] == SPACE)
        trailing = (starts < ends) & (array[ends - 1] == SPACE)
        if not (leading.any() or trailing.any()):
            break
        starts, ends = starts + leading, np.maximum(ends - trailing, starts + leading)
    negative = ~empty & (array[np.minimum(starts, end)] == MINUS)
    starts = starts + negative
    lengths = ends - starts
    if (lengths[~empty] < 1).any() or lengths.max() > _INT64_DIGITS:
        return None
    values = np.zeros(len(starts), np.int64)
    for place in range(int(lengths.max())):
        inside = place < lengths
        digits = array[np.minimum(starts + place, end)] - ZERO  # other bytes become more than 9
        if (digits[inside] > 9).any():
            return None
        values = np.where(inside, values * 10 + digits, values)
    return np.where(empty, missing or 0, np.where(negative, -values, values))


def spans(chunk: bytes, layout: CsvLayout) -> Spans | None:
    """The extents of the records; None if a quote is misplaced."""
    if b"\0" in chunk:
        return None
    array = np.frombuffer(chunk, np.uint8)
    line_ends = np.flatnonzero(array == NEWLINE)
    if b"\r" in chunk:
        returns = np.flatnonzero(array == RETURN)
        following = array[np.minimum(returns + 1, len(array) - 1)]
        lone = returns[(following != NEWLINE) | (returns + 1 == len(array))]
        if len(lone):
            line_ends = np.sort(np.concatenate([line_ends, lone]))
    delimiters = np.flatnonzero(array == layout.delimiter[0])
    ends = line_ends
    if layout.quotes and b'"' in chunk:
        quotes = np.flatnonzero(array == QUOTE)
        if not _well_quoted(array, quotes, layout.delimiter[0]):
            return None
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        delimiters = delimiters[np.searchsorted(quotes, delimiters) % 2 == 0]
    if not len(ends) or ends[-1] != len(chunk) - 1:
        ends = np.append(ends, len(chunk))
    starts = np.concatenate([[0], ends[:-1] + 1])
    first = np.concatenate([[0], np.searchsorted(delimiters, ends)])
    return Spans(array, starts, ends, delimiters, first, line_ends)


def _well_quoted(array: NDArray[np.uint8], quotes: Ints, delimiter: int) -> bool:
    """Whether each quote opens or closes a whole cell, or is one of a pair within a quoted cell."""
    if len(quotes) % 2:
        return False
    allowed = np.zeros(256, bool)
    allowed[[delimiter, NEWLINE, RETURN, QUOTE]] = True
    opening, closing = quotes[::2], quotes[1::2]
    before = array[opening[opening > 0] - 1]
    after = array[closing[closing < len(array) - 1] + 1]
    return bool(allowed[before].all() and allowed[after].all())


def without_records(chunk: bytes, spans: Spans, rows: NDArray[np.bool_]) -> bytes:
    """A chunk with the given records removed."""
    if not rows.any():
        return chunk
    kept = np.ones(len(chunk), bool)
    for row in np.flatnonzero(rows):
        kept[spans.starts[row] : spans.ends[row] + 1] = False
    return spans.array[kept].tobytes()
