"""CSV layouts (`CsvLayout`), and the conversion of cell texts to values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes
from estimatorkit.core.dtypes import DType
from estimatorkit.storage.number_text import to_number, to_numbers

_BOOLEANS = {b"true": True, b"1": True, b"false": False, b"0": False}


@dataclass(frozen=True)
class CsvColumn:
    """A column to read.

    Attributes:
        index: its 0-based index in a record.
        dtype: string, bool, or numeric.
        default: the value of missing cells; None if cells are required.
        name: for messages, or None.
    """

    index: int
    dtype: DType
    default: Any = None
    name: str | None = None


@dataclass(frozen=True)
class CsvLayout:
    """How records are read.

    Attributes:
        columns: the columns to read, in file order.
        width: cells per record; None accepts any number that includes these columns.
        delimiter: one byte.
        na_values: cells that count as missing.
        skip_initial_space: ignore spaces after a delimiter.
        encoding: of the text, whose strings are converted to UTF-8; None keeps bytes.
        missing_hint: advice about missing cells, for messages.
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


class Cells(NamedTuple):
    """A column's cells: numbers, or texts, selected per row by `codes` (None: in order)."""

    texts: Any
    codes: NDArray[Any] | None


def column_values(
    layout: CsvLayout, column: CsvColumn, cells: Cells
) -> tuple[NDArray[Any], Mapping[int, bytes]]:
    """A column's values, and by row the texts that are not valid for its dtype."""
    dtype = column.dtype.numpy_dtype
    if isinstance(cells.texts, np.ndarray):
        with np.errstate(over="ignore"):  # 1e39 is infinite, as in TensorFlow
            narrow = cells.texts.astype(dtype)
        if column.dtype.is_integer and (narrow != cells.texts).any():
            rows = np.flatnonzero(narrow != cells.texts)
            return narrow, {int(row): b"%d" % cells.texts[row] for row in rows}
        return narrow, {}
    values: list[Any] = list(cells.texts)
    is_string = column.dtype is dtypes.string
    unfit = _recode(values, layout.encoding) if is_string else _numbers(values, column.dtype)
    missing = {code for code, text in enumerate(cells.texts) if text in layout.na_values}
    unfit = unfit - missing if column.default is not None else unfit | missing
    for code in missing | unfit:
        values[code] = column.default if code not in unfit else b"" if is_string else 0
    distinct = np.empty(len(values), dtype)
    with np.errstate(over="ignore"):
        distinct[:] = values
    if cells.codes is None:
        return distinct, {code: cells.texts[code] for code in sorted(unfit)}
    wrong: dict[int, bytes] = {}
    if unfit:
        bad = np.flatnonzero(np.isin(cells.codes, list(unfit)))
        wrong = {int(row): cells.texts[cells.codes[row]] for row in bad}
    return distinct.take(cells.codes), wrong


def _recode(values: list[Any], encoding: str | None) -> set[int]:
    """Converts texts to UTF-8 in place; returns the indices of those that cannot be decoded."""
    if encoding is None or all(map(bytes.isascii, values)):
        return set()
    unfit = set()
    for code, text in enumerate(values):
        try:
            values[code] = text.decode(encoding).encode()
        except UnicodeDecodeError:
            unfit.add(code)
    return unfit


def _numbers(values: list[Any], dtype: DType) -> set[int]:
    """Converts texts to numbers in place; returns the indices of invalid ones."""
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
