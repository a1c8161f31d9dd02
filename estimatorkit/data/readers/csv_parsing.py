"""Vectorised parsing of CSV chunks (whole records) to columns, with exact errors.

NumPy finds the records and cells of a chunk; pandas' C parser converts the columns of well-formed
records (NumPy itself converts integers). If quotes do not match, records are parsed one by one; a
column with an invalid number is re-read as text. A malformed cell thus slows down its chunk only,
and its message has file, line and column. Rules: RFC 4180 and TensorFlow's CsvDataset; blank lines
are skipped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes
from estimatorkit.core.errors import explain
from estimatorkit.data.readers.csv_layout import Cells, CsvColumn, CsvLayout, column_values
from estimatorkit.data.readers.csv_records import (
    LINE_END,
    Ints,
    Record,
    Spans,
    records,
    spans,
    without_records,
)


class BadRow(NamedTuple):
    """A malformed record.

    Attributes:
        row: the number of rows of the chunk before it.
        line: its first line.
        message: the error, with file, line and column.
    """

    row: int
    line: int
    message: str


@dataclass
class Parsed:
    """The rows of a chunk.

    Attributes:
        columns: `(count,)` each.
        count: the number of well-formed rows.
        bad: malformed rows, in order.
        lines: the number of lines of the chunk.
        row_lines: the first line of each row.
    """

    columns: list[NDArray[Any]]
    count: int
    bad: list[BadRow] = field(default_factory=list)
    lines: int = 0
    row_lines: Ints = field(default_factory=lambda: np.empty(0, np.int64))


class Parser:
    """Parses chunks of one file, `name` in messages."""

    def __init__(self, layout: CsvLayout, name: str) -> None:
        self._layout = layout
        self._name = name
        self._last = max((column.index for column in layout.columns), default=-1)
        self._with_missing: set[int] = set()  # float columns with missing cells

    def parse(self, chunk: bytes, line: int) -> Parsed:
        """Parses a chunk.

        Args:
            chunk: whole records; the last may lack a line end.
            line: the number of the first line.
        """
        found = spans(chunk, self._layout)
        if found is None or not self._decodes(chunk):
            return self._one_by_one(chunk, line)
        layout, widths, whole = self._layout, found.widths, ~found.blank()
        if layout.width is None:
            if (widths != widths[0])[whole].any():
                return self._one_by_one(chunk, line)
            fitting = widths > self._last
        else:
            fitting = widths == layout.width
        good = whole & fitting
        cells = self._cells(chunk, found, good)
        if cells is None:
            return self._one_by_one(chunk, line)
        lines = line + np.searchsorted(found.line_ends, found.starts)
        before = np.cumsum(good)
        bad = []
        for row in np.flatnonzero(whole & ~fitting):
            record = next(records(chunk, layout, int(found.starts[row])))
            message = self._wrong_width(int(lines[row]), record.cells)
            bad.append(BadRow(int(before[row]), int(lines[row]), message))
        count = len(found.line_ends) + (not chunk.endswith((b"\n", b"\r")))
        return self._converted(cells, int(good.sum()), lines[good], bad, count)

    def _decodes(self, chunk: bytes) -> bool:
        if self._layout.encoding is None or chunk.isascii():
            return True
        try:
            chunk.decode(self._layout.encoding)
        except UnicodeDecodeError:
            return False
        return True

    def _cells(self, chunk: bytes, place: Spans, rows: NDArray[np.bool_]) -> list[Cells] | None:
        """The cells of the columns; None if pandas splits the text differently."""
        layout, count = self._layout, int(rows.sum())
        if not count:
            return [Cells([], None) for _ in layout.columns]
        found: dict[int, Cells] = {}
        for column in layout.columns:
            if column.dtype.is_integer:
                missing = column.default if b"" in layout.na_values else None
                integers = place.integers(rows, column.index, missing)
                if integers is not None:
                    found[column.index] = Cells(integers, None)
        left = [column for column in layout.columns if column.index not in found]
        if left:
            text = without_records(chunk, place, ~rows)
            tabled = self._tabled(text, left, int(place.widths[rows][0]), count)
            if tabled is None:
                return None
            found.update(tabled)
        return [found[column.index] for column in layout.columns]

    def _tabled(
        self, text: bytes, columns: Sequence[CsvColumn], width: int, rows: int
    ) -> dict[int, Cells] | None:
        """Parses cells of columns with pandas."""
        import pandas as pd

        kinds: dict[int, Any] = {
            column.index: np.float64 if column.dtype.is_floating else object for column in columns
        }
        defaults = {
            column.index: column.default
            for column in columns
            if column.index in self._with_missing and column.default is not None
        }
        if defaults and b"nan" in text.lower():
            defaults = {}  # a literal NaN is not missing
        table = _read_table(text, kinds, width, self._layout, list(defaults))
        if table is None or (_has_infinite(table, kinds) and b"infinity" in text.lower()):
            # A number is malformed or missing; TensorFlow reads 'inf', but not 'infinity'.
            table = _read_table(text, dict.fromkeys(kinds, object), width, self._layout, [])
            defaults = {}
        if table is None or len(table) != rows:
            return None
        cells = {}
        for index in kinds:
            values = table[index].to_numpy()
            if index in defaults:
                values = np.where(np.isnan(values), defaults[index], values)
            if values.dtype == np.float64:
                cells[index] = Cells(values, None)
            else:
                # Decodes each distinct text once. (pandas' own categories may be numbers.)
                codes, distinct = pd.factorize(values)
                texts = [text.encode("latin-1") for text in distinct]
                cells[index] = Cells(texts, codes)
        return cells

    def _one_by_one(self, chunk: bytes, line: int) -> Parsed:
        layout = self._layout
        rows: list[list[bytes]] = []
        lines, bad = [], []
        at = 0
        for record in records(chunk, layout):
            line += len(LINE_END.findall(chunk, at, record.start))
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
        columns = list(zip(*rows, strict=True)) or [()] * len(layout.columns)
        cells = [Cells(list(texts), None) for texts in columns]
        counted = len(LINE_END.findall(chunk)) + (not chunk.endswith((b"\n", b"\r")))
        return self._converted(cells, len(rows), np.array(lines, np.int64), bad, counted)

    def _converted(
        self, cells: Sequence[Cells], count: int, lines: Ints, bad: list[BadRow], counted: int
    ) -> Parsed:
        """Converts cells; rows with cells that do not fit become bad rows."""
        columns = []
        reasons: dict[int, str] = {}
        for column, each in zip(self._layout.columns, cells, strict=True):
            values, wrong = column_values(self._layout, column, each)
            columns.append(values)
            if column.dtype.is_floating and isinstance(each.texts, list) and not wrong:
                self._with_missing.add(column.index)
            for row, text in wrong.items():
                reasons.setdefault(
                    row, wrong_cell(self._name, int(lines[row]), self._layout, column, text)
                )
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
            count, lines = int(kept.sum()), lines[kept]
        return Parsed(columns, count, bad, counted, lines)

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
            hint="check the delimiter, and quote cells that contain it",
        )

    def _malformed(self, line: int, record: Record) -> str:
        return explain(
            f"{self._name}:{line}: the record that begins here is not valid CSV",
            expected="quotes around a whole cell",
            received=f"{record.problem} (behind {len(record.cells)} cells)",
            hint='a quote within a quoted cell is written twice: ""',
        )


def _has_infinite(table: Any, kinds: Mapping[int, Any]) -> bool:
    numbers = (table[index].to_numpy() for index, kind in kinds.items() if kind is np.float64)
    return any(np.isinf(each).any() for each in numbers)


def wrong_cell(name: str, line: int, layout: CsvLayout, column: CsvColumn, text: bytes) -> str:
    """The error message for a cell that is not a valid value of its column.

    Args:
        name: the file.
        line: the first line of its row.
    """
    wanted, hint = column.dtype.name, None
    received = repr(_shown(text))
    if text in layout.na_values:
        problem, hint = "is required but missing", layout.missing_hint
    elif column.dtype is dtypes.string:
        problem, wanted = f"is not valid {layout.encoding}", f"{layout.encoding} text"
        received, hint = repr(text), "give the file's encoding, for example encoding='latin-1'"
    elif column.dtype is dtypes.bool_:
        problem, wanted = "is not true, false, 1 or 0", "true, false, 1 or 0"
    else:
        problem = f"is not a valid {wanted}"
    return explain(
        f"{name}:{line}: {layout.label(column)} {problem}",
        expected=wanted,
        received=received[:200],
        hint=hint,
    )


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _read_table(
    text: bytes, kinds: Mapping[int, Any], width: int, layout: CsvLayout, missing: list[int]
) -> Any:
    """A DataFrame with the columns of `kinds`; None if pandas fails to parse the text.

    Missing cells of the columns `missing` become NaN.
    """
    import pandas as pd

    na_values = [each.decode("latin-1") for each in layout.na_values]
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
        "na_filter": bool(missing),
        "keep_default_na": False,
        "na_values": {index: na_values for index in missing},
        "low_memory": False,
        "encoding": "latin-1",  # each byte is a character, so bytes are preserved
    }
    if not _pandas_reads_exactly(pd.__version__):
        options["float_precision"] = "round_trip"
    try:
        return pd.read_csv(io.BytesIO(text), **options)
    except (ValueError, OverflowError):
        return None


def _pandas_reads_exactly(version: str) -> bool:
    """Whether pandas rounds floats correctly by default: 3.1 does, and deprecates the option."""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (3, 1)
