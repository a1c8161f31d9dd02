r"""Cells as people write them: `$1,234.50`, `1.234,50 EUR`, `12%`, `(1,200)`, `31/01/2024`, `YES `.

A format is data: regular expressions of RE2 that rewrite a cell, one that a readable cell then
matches in full, and more that bring it into one form. NumPy columns are read here, and a graph runs
the same expressions by string operations, so that both read alike. What cannot be read is missing.

Forms: a number as `-1234.5`, a date as in `2024-01-31T09:05:00` or `2024-01-31`, `true` and
`false`, and words without superfluous spaces, in lower case or as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from estimatorkit.ops.text.regular_expressions import compiled, decode, replacer

Rewrites = tuple[tuple[str, str], ...]

_TRIM: Rewrites = (
    ("[\u00a0\u2007\u2009\u202f\ufeff]", " "),  # spaces that no line is broken at, thin ones
    (r"^\s+|\s+$", ""),
)
_SIGNS: Rewrites = (("[\u2212\u2012\u2013]", "-"),)
_CANONICAL = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d+"
_TRUE = "true|t|yes|y|on|1|1[.]0"
_FALSE = "false|f|no|n|off|0|0[.]0"
SIDES = ("cr", "dr")
"""Units behind amounts of bank statements: those of the second are negative."""

_MONTHS = tuple(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"))


@dataclass(frozen=True)
class CellFormat:
    """How the cells of a column are written.

    Attributes:
        kind: 'number', 'date', 'boolean', 'word', or 'trimmed': a word in any case.
        decimal: the decimal sign of numbers; the other of '.' and ',' may stand between thousands,
            as may spaces, apostrophes and underscores.
        units: what may stand before or after a number, such as '$' or 'kg', in any case; with 'cr'
            and 'dr', what is marked with the latter is negative.
        day_first: whether 01/02/2024 is the first of February, not the second of January.
    """

    kind: Literal["number", "date", "boolean", "word", "trimmed"]
    decimal: str = "."
    units: tuple[str, ...] = ()
    day_first: bool = False

    @property
    def before(self) -> Rewrites:
        """What is rewritten first: patterns and replacements, everywhere in a cell."""
        if self.kind == "number":
            return (*_TRIM, *_SIGNS, *_bare_number(self.units))
        if self.kind == "date":
            return (*_TRIM, *_lower(_date_rewrites(self.day_first)))
        return (*_TRIM, (r"\s+", " "))

    @property
    def readable(self) -> str:
        """What a cell then matches in full."""
        if self.kind == "number":
            return f"{_local_number(self.decimal)}|{_CANONICAL}"
        if self.kind == "date":
            return rf"(?i)\d{{4}}-{_MONTH}-{_DAY}(?:T{_TIME}(?:\.\d+)?(?:z|[-+]\d\d:?\d\d)?)?"
        return f"(?i)(?:{_TRUE}|{_FALSE})" if self.kind == "boolean" else "(?s).*"

    @property
    def after(self) -> Rewrites:
        """What is rewritten in readable cells."""
        if self.kind == "number" and self.decimal == ",":
            # Numbers that programs write (1.5e0) have a point, which is none between thousands.
            canonical = (r"^([-+]?\d*)\.(\d*)[eE]", r"\1,\2e")
            return (canonical, ("[. '\u2019_]", ""), (",", "."))
        if self.kind == "number":
            return (("[, '\u2019_]", ""),)
        if self.kind == "boolean":
            return ((f"(?i)^(?:{_TRUE})$", "true"), (f"(?i)^(?:{_FALSE})$", "false"))
        return ((r"(T[\d:]+).*$", r"\1"),) if self.kind == "date" else ()

    def texts(self, column: NDArray[Any]) -> NDArray[Any]:
        """Cells in their form.

        Args:
            column: any values, `(rows,)`; NaN and None are missing.

        Returns:
            Objects of bytes; b'' is a cell that is missing or cannot be read.
        """
        import pandas as pd

        codes, distinct = pd.factorize(as_cells(column))
        return self._texts(distinct.tolist())[codes] if len(distinct) else np.array([], object)

    def numbers(self, column: NDArray[Any]) -> NDArray[Any]:
        """The numbers of cells, float64; NaN where there is none."""
        import pandas as pd

        codes, distinct = pd.factorize(self.texts(column))
        found = [float(each) if each else math.nan for each in distinct.tolist()]
        return np.array(found, np.float64)[codes]

    def values(self, column: NDArray[Any]) -> NDArray[Any]:
        """`numbers` of numbers, else `texts`."""
        return self.numbers(column) if self.kind == "number" else self.texts(column)

    def _texts(self, cells: list[bytes]) -> NDArray[Any]:
        first = [_replacer(*each) for each in self.before]
        last = [_replacer(*each) for each in self.after]
        matches = compiled(self.readable.encode()).fullmatch
        found = []
        for cell in cells:
            for rewrite in first:
                cell = rewrite(cell)
            readable = bool(cell) and matches(decode(cell)) is not None
            for rewrite in last if readable else ():
                cell = rewrite(cell)
            found.append(cell if readable else b"")
        if self.kind == "word":
            found = [decode(each).lower().encode("utf-8", "surrogateescape") for each in found]
        made = np.empty(len(found), object)
        made[:] = found
        return made


def _replacer(pattern: str, rewrite: str) -> Any:
    return replacer(pattern.encode(), rewrite.encode(), True)


def as_cells(column: NDArray[Any]) -> NDArray[Any]:
    """Values as cells: numbers in a form that every number format reads alike, missing ones b''."""
    if column.dtype.kind == "O" and set(map(type, column)) <= {bytes}:
        return column
    made = np.empty(len(column), object)
    made[:] = [_cell(each) for each in column.tolist()]
    return made


def _cell(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return number_cell(value)
    return b"" if value is None or value != value else str(value).encode()


def number_cell(value: float) -> bytes:
    """A number as a cell: whole ones as digits, others with an exponent, as in 1.5e0."""
    if isinstance(value, int):
        return str(value).encode()
    if not math.isfinite(value):
        return b""
    if value == math.floor(value) and abs(value) < 1e15:
        return str(int(value)).encode()
    text = f"{Decimal(repr(value)):f}" if 1e-5 < abs(value) < 1e15 else repr(value)
    return (text if "e" in text else f"{text}e0").encode()


# -- numbers


def _bare_number(units: Iterable[str]) -> Rewrites:
    """Takes units, parentheses (of negative numbers) and spaces behind a sign away."""
    found: list[tuple[str, str]] = [(r"^\((.*)\)$", r"-\1"), (r"^([-+]?)\s+", r"\1")]
    if set(SIDES) <= set(units):
        found += [(r"(?i)\s*cr$", ""), (r"(?i)^([^-].*?)\s*dr$", r"-\1")]
    listed = sorted(set(units) - set(SIDES), key=lambda each: (-len(each), each))
    if listed:
        some = "|".join(map(re.escape, listed))
        found += [(rf"(?i)^([-+]?)(?:{some})\s*", r"\1"), (rf"(?i)\s*(?:{some})(-?)$", r"\1")]
    return (*found, (r"^([-+])\s+", r"\1"), (r"^([\d.,' ]+)-$", r"-\1"))


def _local_number(decimal: str) -> str:
    """Digits, in groups or not, and a fraction."""
    groups = [re.escape("." if decimal == "," else ","), " ", "['\u2019]", "_"]
    grouped = "|".join(rf"\d{{1,3}}(?:{each}\d{{3}})+" for each in groups)
    lakhs = r"|\d{1,2}(?:,\d{2})+,\d{3}" if decimal == "." else ""
    point = re.escape(decimal)
    return rf"[-+]?(?:(?:{grouped}{lakhs}|\d+)(?:{point}\d*)?|{point}\d+)"


# -- dates

_MONTH, _DAY = r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?"
_M, _D, _Y = r"(0?[1-9]|1[0-2])", r"(0?[1-9]|[12]\d|3[01])", r"(\d{4})"
_SEPARATOR, _END = r"\s*[-/. ]\s*", r"(T|$)"


def _lower(rewrites: Rewrites) -> Rewrites:
    """The expressions for text in any case."""
    return tuple((f"(?i){pattern}", rewrite) for pattern, rewrite in rewrites)


def _date_rewrites(day_first: bool) -> Rewrites:
    """Brings dates into the order of ISO 8601; names of months are tried before numbers."""
    clock = (
        (r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[.,]?\s+", ""),
        (r"^([^:]*?)[t,]?\s*(\d{1,2}:\d\d)", r"\1T\2"),
        (r"T(\d):", r"T0\1:"),
        (r"T12(:[\d:.]+)\s*am", r"T00\1"),
        (r"T(\d\d:[\d:.]+)\s*am", r"T\1"),
        *((rf"T{hour:02}(:[\d:.]+)\s*pm", rf"T{hour + 12}\1") for hour in range(1, 12)),
        (r"T12(:[\d:.]+)\s*pm", r"T12\1"),
        (r"\s+(z|utc|[-+]\d\d:?\d\d)$", r"\1"),
        ("utc$", "z"),
    )
    names = tuple(
        (rf"\b{name}[a-z]*\b\.?", f"m{number:02}") for number, name in enumerate(_MONTHS, 1)
    )
    ends, numbered = r"(?:st|nd|rd|th)?(?: of)?[-/., ]*", (_D, _M) if day_first else (_M, _D)
    other, two = (_M, _D) if day_first else (_D, _M), r"\3-\2-\1" if day_first else r"\3-\1-\2"
    swapped = r"\3-\1-\2" if day_first else r"\3-\2-\1"
    dates = [
        (rf"^m(\d\d)[-/. ]*{_D}{ends}{_Y}{_END}", r"\3-\1-\2\4"),
        (rf"^{_Y}[-/., ]*m(\d\d)[-/. ]*{_D}{_END}", r"\1-\2-\3\4"),
        (rf"^m(\d\d)[-/., ]*{_Y}$", r"\2-\1-01"),
        (rf"^{_Y}{_SEPARATOR}{_M}{_SEPARATOR}{_D}{_END}", r"\1-\2-\3\4"),
        (rf"^(\d{{4}})(\d\d)(\d\d){_END}", r"\1-\2-\3\4"),
        (rf"^{_Y}[-/.]{_M}$", r"\1-\2-01"),
    ]
    for year, century in ((_Y, ""), (r"([0-6]\d)", "20"), (r"([7-9]\d)", "19")):
        dates.append((rf"^{_D}{ends}m(\d\d)[-/., ]*{year}{_END}", rf"{century}\3-\2-\1\4"))
        for (one, next_), order in ((numbered, two), (other, swapped)):
            pattern = rf"^{one}{_SEPARATOR}{next_}{_SEPARATOR}{year}{_END}"
            dates.append((pattern, rf"{century}{order}\4"))
    padded = ((r"^(\d{4})-(\d)-", r"\1-0\2-"), (r"^(\d{4}-\d\d)-(\d)(T|$)", r"\1-0\2\3"))
    return (*clock, *names, *dates, *padded)
