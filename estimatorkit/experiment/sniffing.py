"""How a CSV file or an Excel sheet is written, found by looking at its beginning: encoding,
delimiter, lines of notes, header, names.

What is found becomes settings of the source (`sources.CsvSource`), so that a run does not look
again.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimatorkit.experiment import frame_files, sources, tables

_BYTES = 1 << 20
_LINES = 200
_MOST_NOTES = 40
_AGREED = 0.9
"""The share of the lines that have as many cells as the first one of a table."""

_DELIMITERS = ("\t", ";", "|", ",")
_NUMBER = re.compile(r"[-+(\s]*[$\u20ac\u00a3]?\s*[\d.,]*\d[\d.,]*([eE][-+]?\d+)?\s*[%)\u20ac]?\s*")
_DATE = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?")
_NAMED = {",": "a comma", ";": "';'", "\t": "a tab", "|": "'|'"}


@dataclass(frozen=True)
class Given:
    """What the user says of a file; None is found by looking.

    Attributes:
        delimiter: between cells.
        encoding: of the text, such as 'latin-1'.
        decimal: the decimal sign, '.' or ','.
        header: whether the first line holds names.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    header: bool | None = None


NOTHING = Given()
"""No setting is given: all are found by looking."""


def source_of(path: Path, given: Given = NOTHING) -> tuple[Any, dict[str, Any], list[str]]:
    """Detects the source settings with which a file can be read.

    Args:
        path: the file of a table.
        given: what is known of a CSV file.

    Returns:
        It, its settings beside the file's name, and a line on each assumption.

    Raises:
        DataError: see `settings`.
    """
    source = tables.source_of(path)
    if isinstance(source, sources.CsvSource):
        key, (written, assumed) = "csv", settings(path, given)
    elif isinstance(source, sources.ExcelSource):
        key, (written, assumed) = "excel", _sheet_settings(source, path)
    else:
        return source, {}, []
    return type(source).model_validate({key: str(path), **written}), written, assumed


def _sheet_settings(source: Any, path: Path) -> tuple[dict[str, Any], list[str]]:
    if not path.is_file():
        return {}, []
    cells = frame_files.first_rows(source, str(path), _MOST_NOTES + _LINES)
    notes = _sparse_rows(cells)
    return ({"skip_rows": notes}, [_told(notes)]) if notes else ({}, [])


def settings(path: Path, given: Given = NOTHING) -> tuple[dict[str, Any], list[str]]:
    """Returns how a file is written.

    Args:
        path: a CSV file, maybe compressed.
        given: what is known of it.

    Returns:
        Keys of `CsvSource` that are not its defaults, and a line on each assumption.

    Raises:
        DataError: it cannot be read.
    """
    if not path.is_file():
        return {}, []  # which reading it tells
    with tables.decompressed(str(path)) as unpacked, open(unpacked, "rb") as stream:
        data = stream.read(_BYTES)
        whole = not stream.read(1)
    encoding = given.encoding or _encoding(data, whole)
    text = data.decode(encoding, "replace").removeprefix("\ufeff")
    if not whole:
        text = text[: text.rfind("\n") + 1]
    lines = list(itertools.islice(io.StringIO(text, newline=""), _LINES))
    skipped, delimiter = _beginning(lines, given)
    rows = _rows(lines[skipped:], delimiter)
    if not rows:
        return {}, []
    found: dict[str, Any] = {}
    notes = []
    if skipped:
        found["skip_rows"] = skipped
        notes.append(_told(skipped))
    if encoding.lower() not in ("utf-8", "utf8", "utf-8-sig"):
        found["encoding"] = encoding
        notes.append(f"the encoding is {encoding}")
    if delimiter != ",":
        found["delimiter"] = delimiter
        notes.append(f"{_NAMED.get(delimiter, repr(delimiter))} is between cells")
    widths = _other_widths(text, skipped, delimiter, len(rows[0]))
    if widths:
        found["on_bad_rows"] = "skip"
        lines_are = "1 line is" if len(widths) == 1 else f"{len(widths)} lines are"
        notes.append(f"{lines_are} no row of {len(rows[0])} cells, and left out: {widths[0]!r}")
    if _has_spaces(rows):
        found["skip_initial_space"] = True
        notes.append("spaces after it are left out")
    header = _is_header(rows) if given.header is None else given.header
    if not header:
        found |= {"header": False, "columns": [f"column_{n + 1}" for n in range(len(rows[0]))]}
        notes.append(f"the first line is data, and columns are column_1 to column_{len(rows[0])}")
        return found, notes
    names = mended(rows[0])
    if names != rows[0]:
        found |= {"header": True, "columns": names}
        pairs = zip(rows[0], names, strict=True)
        changed = ", ".join(f"{old!r} is {new}" for old, new in pairs if old != new)
        notes.append(f"blank and repeated names of columns are changed: {changed}")
    return found, notes


def _other_widths(text: str, skipped: int, delimiter: str, width: int) -> list[str]:
    """The lines of a table that rule it off or sum it up; none where they are many, or rows.

    These have few cells that are not blank. Rows that lack one or have one too many are errors.
    """
    lines = itertools.islice(io.StringIO(text, newline=""), skipped, None)
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if any(map(str.strip, row))]
    found = [row for row in rows if len(row) != width]
    are_rows = any(sum(map(bool, map(str.strip, row))) > 0.5 * width for row in found)
    if are_rows or len(found) > max(3, (1 - _AGREED) * len(rows)):
        return []
    return [delimiter.join(row).strip()[:40] for row in found]


def mended(names: Sequence[str]) -> list[str]:
    """Names without blanks around them, none empty and none repeated: a, a_2, column_3."""
    plain = [" ".join(each.split()) for each in names]
    found: list[str] = []
    for place, name in enumerate(plain):
        made, count = name or f"column_{place + 1}", 1
        while made in found or (made in plain and made != name):
            count += 1
            made = f"{name or f'column_{place + 1}'}_{count}"
        found.append(made)
    return found


def _encoding(data: bytes, whole: bool) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = data[:4096]
    if sample and sample.count(0) > len(sample) / 4:
        return "utf-16-le" if sample[1::2].count(0) > sample[::2].count(0) else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, whole)
    except UnicodeDecodeError:
        return "cp1252" if re.search(rb"[\x80-\x9f]", data) else "latin-1"
    return "utf-8"


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []


def _told(skipped: int) -> str:
    which = "the first line is a note" if skipped == 1 else f"the first {skipped} lines are notes"
    return f"{which}, and names of columns are in line {skipped + 1}"


def _beginning(lines: Sequence[str], given: Given) -> tuple[int, str]:
    """How many lines of notes there are before that of the names, and the delimiter.

    What is not followed by names is no note, but a row.
    """
    delimiter, _ = _delimiter(lines, given.delimiter)
    if given.header is False:
        return 0, delimiter
    for start in range(min(len(lines) - 1, _MOST_NOTES)):
        mark, share = _delimiter(lines[start:], given.delimiter)
        if share >= _AGREED:
            rows = _rows(lines[start:], mark)
            sparse = _sparse_rows(rows)
            if start and not sparse and not _is_header(rows):
                break
            ends = [0, *_ends(lines[start:], mark)]
            return start + ends[sparse], mark
    return 0, delimiter


def _sparse_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many rows of a table are titles and merged cells above the names of its columns."""
    width = max(map(len, rows), default=0)
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows[:_MOST_NOTES]]
    count = next((place for place, each in enumerate(filled) if each > 0.5 * width), 0)
    rest = rows[count:]
    if not count or width < 3 or not _is_header(rest):
        return 0
    are_titles = max(filled[:count]) <= 1
    return count if are_titles or _has_numbers_below(rest) else 0


def _has_numbers_below(rows: Sequence[Sequence[str]]) -> bool:
    """Whether there is a column of numbers below a name."""
    for place, cell in enumerate(rows[0]):
        below = [row[place].strip() for row in rows[1:] if place < len(row)]
        filled = [each for each in below if each]
        if filled and not _is_number(cell) and all(map(_is_number, filled)):
            return True
    return False


def _delimiter(lines: Sequence[str], given: str | None) -> tuple[str, float]:
    """The one that gives the lines the most nearly the width of the first, and how nearly."""
    best, agreed = given or ",", 0.0
    for each in (given,) if given else _DELIMITERS:
        rows = _rows(lines, each)
        if not rows or len(rows[0]) == 1:
            continue
        share = Counter(len(row) == len(rows[0]) for row in rows)[True] / len(rows)
        if share > agreed + 0.02:
            best, agreed = each, share
    return best, agreed


def _ends(lines: Sequence[str], delimiter: str) -> list[int]:
    """After how many lines each row that is not blank ends."""
    reader = csv.reader(lines, delimiter=delimiter)
    return [reader.line_num for row in reader if row]


def _has_spaces(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a space follows each delimiter."""
    cells = [cell for row in rows for cell in row[1:] if cell]
    return bool(cells) and sum(cell[0] == " " for cell in cells) > 0.9 * len(cells)


def _is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first cells look like names: not like the cells below them."""
    first = [cell.strip() for cell in rows[0]]
    names, data = 0, 0
    for place, cell in enumerate(first):
        below = [row[place].strip() for row in rows[1:] if place < len(row)]
        filled = [each for each in below if each]
        numbers = sum(map(_is_number, filled)) > 0.8 * len(filled)
        names += bool(cell and filled and numbers and not _is_number(cell))
        data += _is_number(cell) if not filled or numbers else cell in filled
    digits = [int(cell) for cell in first if cell.isdecimal()]
    counted = all(later == each + 1 for each, later in itertools.pairwise(digits))
    if len(digits) > 2 and counted and len(digits) == sum(map(_is_number, first)):
        return True  # years, say
    return data <= len(first) / 3 if names else not data


def _is_number(cell: str) -> bool:
    """Whether a cell is a number or a date."""
    return bool(_NUMBER.fullmatch(cell) or _DATE.fullmatch(cell))
