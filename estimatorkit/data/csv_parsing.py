"""CSV text to columns: a chunk of whole records at a time, vectorised, and exact about what is bad.

NumPy finds the records of a chunk and the cells of each; pandas' C parser then reads the columns of
those that are well formed. Where quotes do not fit together, records are taken apart one by one.
Numbers that pandas does not read, and missing ones, are looked at as text. So a bad cell costs its
chunk some time, and its message has the file, the line and the column. Source of the rules:
RFC 4180 and TensorFlow's CsvDataset; blank lines are passed over.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes
from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import explain
from estimatorkit.core.number_text import to_number, to_numbers

NEWLINE, RETURN, QUOTE, SPACE, MINUS, ZERO = b'\n\r" -0'

_LINE_END = re.compile(rb"\r\n?|\n")
_QUOTED = re.compile(rb'"([^"]*(?:""[^"]*)*)"')
_INT64_DIGITS = 18  # of integers that fit in any case
_BOOLEANS = {b"true": True, b"1": True, b"false": False, b"0": False}

_UNCLOSED = "Reached end of file without closing quoted field in record"
_QUOTE_INSIDE = "Unquoted fields cannot have quotes inside"
_NOT_ESCAPED = "Quote inside a string has to be escaped by another quote"

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class CsvColumn:
    """A column that is read.

    Attributes:
        index: its place in a record, from 0.
        dtype: string, bool, or a number's.
        default: stands for missing cells; None: the cell must be there.
        name: for messages; None where there is none.
    """

    index: int
    dtype: DType
    default: Any = None
    name: str | None = None


@dataclass(frozen=True)
class CsvLayout:
    """How records are read.

    Attributes:
        columns: those that are read, in their order in a record.
        width: cells of a record; None: any number that has these columns.
        delimiter: one byte.
        quotes: whether cells may be quoted.
        na_values: cells that count as missing.
        skip_initial_space: spaces after a delimiter are left out.
        encoding: of the text, whose strings come out as UTF-8; None: bytes as they are.
        missing_hint: what to do about missing cells, for messages.
    """

    columns: tuple[CsvColumn, ...]
    width: int | None
    delimiter: bytes = b","
    quotes: bool = True
    na_values: frozenset[bytes] = frozenset({b""})
    skip_initial_space: bool = False
    encoding: str | None = None
    missing_hint: str | None = None

    def label(self, column: CsvColumn) -> str:
        """A column in messages: `column 'age' (1 of 15)`."""
        of = "" if self.width is None else f" of {self.width}"
        if column.name is None:
            return f"column {column.index + 1}{of}"
        return f"column {column.name!r} ({column.index + 1}{of})"


class BadRow(NamedTuple):
    """A record that is not read.

    Attributes:
        row: how many rows of the chunk come before it.
        line: where it begins.
        message: what is wrong, with file, line and column.
    """

    row: int
    line: int
    message: str


@dataclass
class Parsed:
    """The rows of a chunk.

    Attributes:
        columns: `(count,)` each.
        count: rows that are good.
        bad: those that are not, in order.
        lines: lines of the chunk.
    """

    columns: list[NDArray[Any]]
    count: int
    bad: list[BadRow] = field(default_factory=list)
    lines: int = 0


class Record(NamedTuple):
    """A record, taken apart: where it begins and ends, its cells, what is wrong with its quotes."""

    start: int
    end: int
    cells: list[bytes]
    problem: str | None


def records(data: bytes, layout: CsvLayout, at: int = 0) -> Iterator[Record]:
    """Takes records apart one by one; after a malformed one it goes on with the next line."""
    delimiter = layout.delimiter
    unquoted = re.compile(b'[^\r\n"' + re.escape(delimiter) + b"]*")
    while at < len(data):
        found = _LINE_END.search(data, at)
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
                ended = _LINE_END.match(data, stop)
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
            return cells, at, _UNCLOSED
        cells.append(found[1].replace(b'""', b'"') if quoted else found[0])
        at = found.end()
        following = data[at : at + 1]
        if following == layout.delimiter:
            at += 1
        elif following in (b"", b"\n", b"\r"):
            return cells, at, None
        else:
            return cells, at, _NOT_ESCAPED if quoted else _QUOTE_INSIDE


def end_of_records(layout: CsvLayout, data: bytes) -> int:
    """How many bytes are whole records: up to the last line end that no quotes enclose."""
    end = data.rfind(b"\n") + 1
    if not end:
        end = data.rfind(b"\r", 0, -1) + 1  # lines that end in CR alone
    if not layout.quotes or data.find(b'"', 0, end) < 0:
        return end
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == data[end - 1])
    ends = ends[np.searchsorted(np.flatnonzero(array == QUOTE), ends) % 2 == 0]
    if len(ends):
        return int(ends[-1]) + 1
    # A quote is open up to the end: of a long cell, or a quote that stands where it may not.
    first = next(records(data, layout))
    return 0 if first.problem in (None, _UNCLOSED) else data.find(b"\n", first.end) + 1


class Parser:
    """Reads chunks of one file.

    Args:
        layout: how.
        name: the file, for messages.
    """

    def __init__(self, layout: CsvLayout, name: str) -> None:
        self._layout = layout
        self._name = name
        self._last = max((column.index for column in layout.columns), default=-1)
        self._as_text: set[int] = set()  # columns of floats that have missing cells

    def parse(self, chunk: bytes, line: int) -> Parsed:
        """The rows of a chunk.

        Args:
            chunk: whole records; the last may have no line end.
            line: the number of the first line.
        """
        spans = _spans(chunk, self._layout)
        if spans is None or not self._decodes(chunk):
            return self._one_by_one(chunk, line)
        layout, widths, whole = self._layout, spans.widths, ~spans.blank()
        if layout.width is None:
            if (widths != widths[0])[whole].any():
                return self._one_by_one(chunk, line)
            fitting = widths > self._last
        else:
            fitting = widths == layout.width
        good = whole & fitting
        cells = self._cells(chunk, spans, good)
        if cells is None:
            return self._one_by_one(chunk, line)
        lines = line + np.searchsorted(spans.line_ends, spans.starts)
        bad = []
        for row in np.flatnonzero(whole & ~fitting):
            record = next(records(chunk, layout, int(spans.starts[row])))
            before = int(np.count_nonzero(good[:row]))
            message = self._wrong_width(int(lines[row]), record.cells)
            bad.append(BadRow(before, int(lines[row]), message))
        count = len(spans.line_ends) + (not chunk.endswith((b"\n", b"\r")))
        return self._converted(cells, int(good.sum()), lines[good], bad, count)

    def _decodes(self, chunk: bytes) -> bool:
        if self._layout.encoding is None or chunk.isascii():
            return True
        try:
            chunk.decode(self._layout.encoding)
        except UnicodeDecodeError:
            return False
        return True

    def _cells(self, chunk: bytes, spans: _Spans, rows: NDArray[np.bool_]) -> list[_Cells] | None:
        """The cells of the columns; None where pandas takes the text for another table."""
        layout, count = self._layout, int(rows.sum())
        if not count:
            return [_Cells([], None) for _ in layout.columns]
        found: dict[int, _Cells] = {}
        for column in layout.columns:
            if column.dtype.is_integer:
                integers = spans.integers(rows, column.index)
                if integers is not None:
                    found[column.index] = _Cells(integers, None)
        left = [column for column in layout.columns if column.index not in found]
        if left:
            text = _without(chunk, spans, ~rows)
            tabled = self._tabled(text, left, int(spans.widths[rows][0]), count)
            if tabled is None:
                return None
            found.update(tabled)
        return [found[column.index] for column in layout.columns]

    def _tabled(
        self, text: bytes, columns: Sequence[CsvColumn], width: int, rows: int
    ) -> dict[int, _Cells] | None:
        """The cells of columns, by pandas."""
        import pandas as pd

        kinds: dict[int, Any] = {
            column.index: np.float64
            if column.dtype.is_floating and column.index not in self._as_text
            else object
            for column in columns
        }
        table = _read_table(text, kinds, width, self._layout)
        if table is None:  # some number is none, or missing
            table = _read_table(text, dict.fromkeys(kinds, object), width, self._layout)
        if table is None or len(table) != rows:
            return None
        cells = {}
        for index in kinds:
            values = table[index].to_numpy()
            if values.dtype == np.float64:
                cells[index] = _Cells(values, None)
            else:
                # Each distinct text becomes bytes once. (pandas' own categories may be numbers.)
                codes, distinct = pd.factorize(values)
                texts = [text.encode("latin-1") for text in distinct]
                cells[index] = _Cells(texts, codes)
        return cells

    def _one_by_one(self, chunk: bytes, line: int) -> Parsed:
        layout = self._layout
        rows: list[list[bytes]] = []
        lines, bad = [], []
        at = 0
        for record in records(chunk, layout):
            line += len(_LINE_END.findall(chunk, at, record.start))
            at = record.start
            if record.problem is not None:
                bad.append(BadRow(len(rows), line, self._malformed(line, record)))
            elif (
                len(record.cells) != layout.width
                if layout.width
                else len(record.cells) <= self._last
            ):
                bad.append(BadRow(len(rows), line, self._wrong_width(line, record.cells)))
            else:
                rows.append([record.cells[column.index] for column in layout.columns])
                lines.append(line)
        line += len(_LINE_END.findall(chunk, at))
        columns = list(zip(*rows, strict=True)) or [()] * len(layout.columns)
        cells = [_Cells(list(texts), None) for texts in columns]
        counted = len(_LINE_END.findall(chunk)) + (not chunk.endswith((b"\n", b"\r")))
        return self._converted(cells, len(rows), np.array(lines, np.int64), bad, counted)

    def _converted(
        self, cells: Sequence[_Cells], count: int, lines: Ints, bad: list[BadRow], counted: int
    ) -> Parsed:
        """The rows whose cells all fit; those that do not fit are bad too."""
        columns = []
        reasons: dict[int, str] = {}
        for column, each in zip(self._layout.columns, cells, strict=True):
            values, wrong = self._values(column, each)
            columns.append(values)
            for row, text in wrong.items():
                reasons.setdefault(row, self._wrong_cell(int(lines[row]), column, text))
        if reasons:
            kept = np.ones(count, bool)
            kept[list(reasons)] = False
            before = np.cumsum(kept)
            bad = [each._replace(row=int(before[each.row - 1]) if each.row else 0) for each in bad]
            bad += [
                BadRow(int(before[row]), int(lines[row]), message)
                for row, message in reasons.items()
            ]
            bad.sort(key=lambda each: each.line)
            columns = [column[kept] for column in columns]
            count = int(kept.sum())
        return Parsed(columns, count, bad, counted)

    def _values(self, column: CsvColumn, cells: _Cells) -> tuple[NDArray[Any], Mapping[int, bytes]]:
        """A column's values, and by row the texts that are no values of its dtype."""
        dtype = column.dtype.numpy_dtype
        if isinstance(cells.texts, np.ndarray):
            with np.errstate(over="ignore"):  # 1e39 is infinite, as in TensorFlow
                narrow = cells.texts.astype(dtype)
            if column.dtype.is_integer and (narrow != cells.texts).any():
                rows = np.flatnonzero(narrow != cells.texts)
                return narrow, {int(row): b"%d" % cells.texts[row] for row in rows}
            return narrow, {}
        layout = self._layout
        values: list[Any] = list(cells.texts)
        if column.dtype is dtypes.string:
            unfit = self._recode(values)
        else:
            unfit = self._numbers(column, values)
        for code, text in enumerate(cells.texts):
            if text in layout.na_values and column.default is not None:
                values[code] = column.default
                unfit.discard(code)
                self._as_text.add(column.index)
            elif text in layout.na_values:
                unfit.add(code)
        for code in unfit:
            values[code] = b"" if column.dtype is dtypes.string else 0
        distinct = np.empty(len(values), dtype)
        with np.errstate(over="ignore"):
            distinct[:] = values
        if cells.codes is None:
            return distinct, {code: cells.texts[code] for code in sorted(unfit)}
        rows = np.flatnonzero(np.isin(cells.codes, list(unfit))) if unfit else np.empty(0, np.int64)
        wrong = {int(row): cells.texts[cells.codes[row]] for row in rows}
        return distinct.take(cells.codes), wrong

    def _recode(self, values: list[Any]) -> set[int]:
        encoding = self._layout.encoding
        if encoding is None or all(map(bytes.isascii, values)):
            return set()
        unfit = set()
        for code, text in enumerate(values):
            try:
                values[code] = text.decode(encoding).encode()
            except UnicodeDecodeError:
                unfit.add(code)
        return unfit

    def _numbers(self, column: CsvColumn, values: list[Any]) -> set[int]:
        dtype = column.dtype
        if dtype is dtypes.bool_:
            values[:] = [_BOOLEANS.get(text.strip().lower()) for text in values]
            return {code for code, value in enumerate(values) if value is None}
        try:
            values[:] = to_numbers(values, dtype)
        except ValueError:
            convert, unfit = to_number(dtype), set()
            for code, text in enumerate(values):
                try:
                    values[code] = convert(text)
                except ValueError:
                    unfit.add(code)
            return unfit
        return set()

    # What is wrong

    def _wrong_width(self, line: int, cells: Sequence[bytes]) -> str:
        layout = self._layout
        need = layout.width or self._last + 1
        problem = f"Expect {need} fields but have {len(cells)} in record: "
        if len(cells) > need:
            problem += f"cell {need + 1} is one too many"
        else:
            missing = next((c for c in layout.columns if c.index == len(cells)), None)
            missing = missing or CsvColumn(len(cells), dtypes.string)
            problem += f"{layout.label(missing)} is missing"
        shown = [_shown(cell) for cell in cells]
        return explain(
            f"{self._name}:{line}: {problem}",
            expected=f"{need} cells",
            received=f"{len(cells)}: {shown!r}"[:200],
            hint="is the delimiter right, and is a cell that holds it quoted?",
        )

    def _malformed(self, line: int, record: Record) -> str:
        return explain(
            f"{self._name}:{line}: the record that begins here is no CSV",
            expected="quotes around a whole cell",
            received=f"{record.problem} (behind {len(record.cells)} cells)",
            hint='a quote within a quoted cell is written twice: ""',
        )

    def _wrong_cell(self, line: int, column: CsvColumn, text: bytes) -> str:
        layout, wanted, hint = self._layout, column.dtype.name, None
        if text in layout.na_values:
            problem, hint = "is required but missing", layout.missing_hint
        elif column.dtype is dtypes.string:
            problem, wanted = f"is no {layout.encoding} text", f"{layout.encoding} text"
            hint = "give the file's encoding, for example encoding='latin-1'"
        else:
            problem = f"is not a valid {wanted}"
            if column.dtype is dtypes.bool_:
                problem, wanted = "is not true, false, 1 or 0", "true, false, 1 or 0"
        received = repr(text) if hint and column.dtype is dtypes.string else repr(_shown(text))
        return explain(
            f"{self._name}:{line}: {layout.label(column)} {problem}",
            expected=wanted,
            received=received[:200],
            hint=hint,
        )


class _Cells(NamedTuple):
    """A column's cells: numbers, or texts, of which `codes` (None: in order) picks one a row."""

    texts: Any
    codes: NDArray[Any] | None


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _without(chunk: bytes, spans: _Spans, rows: NDArray[np.bool_]) -> bytes:
    """A chunk without some records."""
    if not rows.any():
        return chunk
    kept = np.ones(len(chunk), bool)
    for row in np.flatnonzero(rows):
        kept[spans.starts[row] : spans.ends[row] + 1] = False
    return spans.array[kept].tobytes()


def _read_table(text: bytes, kinds: Mapping[int, Any], width: int, layout: CsvLayout) -> Any:
    """A DataFrame with the columns of `kinds`; None where pandas meets what it cannot read."""
    import pandas as pd

    options: dict[str, Any] = {
        "engine": "c",
        "header": None,
        "names": range(width),
        "usecols": list(kinds),
        "index_col": False,
        "dtype": dict(kinds),
        "sep": layout.delimiter.decode("latin-1"),
        "quoting": csv.QUOTE_MINIMAL if layout.quotes else csv.QUOTE_NONE,
        "skipinitialspace": layout.skip_initial_space,
        "skip_blank_lines": False,
        "na_filter": False,
        "low_memory": False,
        "encoding": "latin-1",  # each byte is a character: what comes out is what is in the file
    }
    if not _pandas_reads_exactly(pd.__version__):
        options["float_precision"] = "round_trip"
    try:
        return pd.read_csv(io.BytesIO(text), **options)
    except (ValueError, OverflowError):
        return None


def _pandas_reads_exactly(version: str) -> bool:
    """Whether pandas rounds floats correctly by itself: 3.1 does, and warns of the option."""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (3, 1)


class _Spans(NamedTuple):
    """Where the records of a chunk are.

    Attributes:
        array: the bytes.
        starts, ends: where each record begins, and where its line end is.
        delimiters: those between cells.
        first: for each record the number of its first delimiter, and one more: that of all.
        line_ends: those in quotes too.
    """

    array: NDArray[np.uint8]
    starts: Ints
    ends: Ints
    delimiters: Ints
    first: Ints
    line_ends: Ints

    @property
    def widths(self) -> Ints:
        """Cells of each record."""
        return np.diff(self.first) + 1

    def blank(self) -> NDArray[np.bool_]:
        """Which records are empty lines."""
        returns = self.array[np.minimum(self.starts, len(self.array) - 1)] == RETURN
        blank: NDArray[np.bool_] = (self.ends == self.starts) | (
            (self.ends == self.starts + 1) & returns
        )
        return blank

    def integers(self, rows: NDArray[np.bool_], index: int) -> Ints | None:
        """The integers of a column of some records; None where one is missing, or not plain."""
        starts, ends, first = self.starts[rows], self.ends[rows], self.first[:-1][rows]
        if index:
            starts = self.delimiters[first + index - 1] + 1
        followed = index < self.first[1:][rows] - first
        ends[followed] = self.delimiters[first[followed] + index]
        return _integers(self.array, starts, ends)


def _integers(array: NDArray[np.uint8], starts: Ints, ends: Ints) -> Ints | None:
    """The integers that are written between bytes; None where something else is.

    pandas reads integers more slowly, and takes `1e5` for one.
    """
    end = len(array) - 1
    while (space := (starts < ends) & (array[np.minimum(starts, end)] == SPACE)).any():
        starts = starts + space
    while (space := (starts < ends) & np.isin(array[ends - 1], (SPACE, RETURN))).any():
        ends = ends - space
    negative = array[np.minimum(starts, end)] == MINUS
    starts = starts + negative
    lengths = ends - starts
    if lengths.min() < 1 or lengths.max() > _INT64_DIGITS:
        return None
    values = np.zeros(len(starts), np.int64)
    for place in range(int(lengths.max())):
        inside = place < lengths
        digits = array[np.minimum(starts + place, end)] - ZERO  # others become more than 9
        if (digits[inside] > 9).any():
            return None
        values = np.where(inside, values * 10 + digits, values)
    return np.where(negative, -values, values)


def _spans(chunk: bytes, layout: CsvLayout) -> _Spans | None:
    """Where the records are; None where quotes stand where they may not."""
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
    return _Spans(array, starts, ends, delimiters, first, line_ends)


def _well_quoted(array: NDArray[np.uint8], quotes: Ints, delimiter: int) -> bool:
    """Whether each quote opens or closes a whole cell, or is one of two within a quoted cell."""
    if len(quotes) % 2:
        return False
    allowed = np.zeros(256, bool)
    allowed[[delimiter, NEWLINE, RETURN, QUOTE]] = True
    opening, closing = quotes[::2], quotes[1::2]
    before = array[opening[opening > 0] - 1]
    after = array[closing[closing < len(array) - 1] + 1]
    return bool(allowed[before].all() and allowed[after].all())
