"""How the cells of a column are written, found by looking at them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.data.cell_formats import SIDES, CellFormat, as_cells

NEARLY_ALL = 0.9
"""Which part of the cells that are not empty must be readable."""

_MOST_DISTINCT = 10_000
"""So many distinct cells are looked at."""

_SHOWN = 5
_NOTHING = re.compile(
    r"[-\u2013\u2014.?*/]+|#?(?:n\s*[./]?\s*[ad]\.?|k\.\s?a\.?|nan|null|nil|none|missing|unknown|"
    r"unbekannt|inconnu|not (?:available|applicable|known|given)|keine angabe|ohne angabe|tb[acd])",
    re.IGNORECASE,
)
"""Placeholders for missing values."""

_SIDES = re.compile(r"(?<=[\d.,])\s*(?:cr|dr)$", re.IGNORECASE)
_SAME_UNITS = (
    ("$", "us$", "usd", "dollar"),
    ("\u20ac", "eur", "euro"),
    ("\u00a3", "gbp"),
    ("\u00a5", "jpy", "yen"),
    ("\u20b9", "inr", "rs"),
    ("%", "percent", "pct"),
)
_CODES = re.compile(
    "usd|eur|gbp|jpy|inr|chf|cny|aud|cad|sek|nok|dkk|pln|czk|huf|brl|mxn|zar|krw|sgd|hkd|nzd|try|"
    r"rub|ils|rs\.?|fr\.?|kr\.?",
    re.IGNORECASE,
)
_CURRENCY = "[$\u00a2-\u00a5\u20a0-\u20cf]"
_WITH_UNIT = re.compile(
    rf"[-+(\u2212\s]*(?P<before>(?:[A-Za-z]{{0,2}}{_CURRENCY}|[A-Za-z]{{2,3}}\.?)?)\s*[-+\u2212]?\s*"
    r"(?:\d[\d.,'\u2019_ \u00a0\u202f]*|[.,]\d+)(?:[eE][-+]?\d+)?\s*"
    r"(?P<after>[^\d\s()+-](?:[^()\d]{0,10}[^()\d\s])?)?[\s)-]*"
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?")
_NUMBERED = re.compile(r"(\d{1,2})\s*[-/. ]\s*(\d{1,2})\s*[-/. ]\s*(?:\d{4}|\d{2})\b")


@dataclass(frozen=True)
class Look:
    """How a column is written.

    Attributes:
        format: reads it.
        why: in words.
        lost: cells that are not read and become missing, the most frequent first.
        lost_rows: how many rows have one.
    """

    format: CellFormat
    why: str
    lost: tuple[str, ...] = ()
    lost_rows: int = 0

    def __str__(self) -> str:
        if not self.lost_rows:
            return self.why
        some = ", ".join(self.lost[:_SHOWN]) + (", ..." if len(self.lost) > _SHOWN else "")
        cells = "cell is none and counts" if self.lost_rows == 1 else "cells are none and count"
        return f"{self.why}; {self.lost_rows:,} {cells} as missing: {some}"


def look(column: NDArray[Any], decimal: str | None = None, plain: bool = False) -> Look | None:
    """Returns how the cells of a column of text are written; None if they are to stay as they are.

    Args:
        column: objects, `(rows,)`: bytes or str; None, NaN and '' are missing.
        decimal: the decimal sign, if it is known; else that which more cells have.
        plain: whether numbers as programs write them are to be read, too, in text that no reader of
            files has looked at. Codes such as 0123 are no numbers.
    """
    import pandas as pd

    if column.dtype.kind not in "OSU" or column.ndim > 1:
        return None
    counts = pd.Series(as_cells(column)).value_counts()[:_MOST_DISTINCT]
    texts = [each.decode("utf-8", "replace") for each in counts.index]
    words = Counter({text: int(each) for text, each in zip(texts, counts, strict=True)})
    for text in [each for each in words if not each.strip()]:
        del words[text]
    if not words:
        return None
    return _numbers(words, decimal, plain) or _dates(words, decimal) or _words(words)


def _read(words: Counter[str], made: CellFormat, what: str) -> Look | None:
    """The look of a format that reads nearly all cells."""
    cells = np.empty(len(words), object)
    cells[:] = [each.encode() for each in words]
    empty = [not each for each in made.texts(cells)]
    lost = sorted(
        (-count, text) for (text, count), none in zip(words.items(), empty, strict=True) if none
    )
    rows, total = -sum(count for count, _ in lost), words.total()
    absent = -sum(count for count, text in lost if _NOTHING.fullmatch(text.strip()))
    if rows - absent > (1 - NEARLY_ALL) * (total - absent) or rows == total:
        return None
    example = next(text for text, none in zip(words, empty, strict=True) if not none)
    return Look(made, f"{what} such as {example!r}", tuple(text for _, text in lost), rows)


# -- numbers


def _numbers(words: Counter[str], decimal: str | None, plain: bool) -> Look | None:
    if decimal in (None, ".") and all(map(_is_plain, words)):
        codes = any(map(re.compile(r"0\d").match, words))
        return _read(words, CellFormat("number"), "numbers") if plain and not codes else None
    units = _units(words)
    found = [
        each
        for sign in ((decimal,) if decimal else (".", ","))
        if (each := _read(words, CellFormat("number", sign, units), "numbers"))
    ]
    return min(found, key=lambda each: each.lost_rows) if found else None


def _is_plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text == text.strip()


def unit_key(unit: str) -> str:
    """What spellings of a unit have in common: 'EUR' is '\u20ac', and 'Months' 'month'."""
    key = unit.strip().lower().rstrip(".")
    key = key.removesuffix("s") if len(key) > 3 else key
    return next((same[0] for same in _SAME_UNITS if key in same), key)


def _units(words: Counter[str]) -> tuple[str, ...]:
    """The spellings of the unit that most cells have, and the sides of an account."""
    totals, spellings = Counter[str](), dict[str, set[str]]()
    sides: tuple[str, ...] = ()
    for text, count in words.items():
        if _SIDES.search(text.strip()):
            text, sides = _SIDES.sub("", text.strip()), SIDES
        found = _WITH_UNIT.fullmatch(text)
        before, after = (found["before"], found["after"]) if found else ("", "")
        is_code = _CODES.fullmatch(before) or re.search(_CURRENCY, before)
        for unit in {before if is_code else "", after or ""} - {""}:
            totals[unit_key(unit)] += count
            spellings.setdefault(unit_key(unit), set()).add(unit.strip().lower())
    if not totals:
        return sides
    most = spellings[max(totals, key=lambda each: (totals[each], each))]
    return tuple(sorted({*most, *sides}))


# -- dates


def _dates(words: Counter[str], decimal: str | None) -> Look | None:
    firsts, seconds, dotted = 0, 0, decimal == ","
    for text, count in words.items():
        found = _NUMBERED.match(text.strip())
        if found:
            firsts += count * (int(found[1]) > 12)
            seconds += count * (int(found[2]) > 12)
            dotted = dotted or "." in text
    day_first = firsts > seconds or (firsts == seconds and dotted)
    found_format = CellFormat("date", day_first=day_first)
    look = _read(words, found_format, "dates")
    if look is None or all(_ISO.fullmatch(each) or each in look.lost for each in words):
        return None  # which need no format
    if firsts or seconds or not any(map(_NUMBERED.match, words)):
        return look
    order = "day" if day_first else "month"
    return Look(found_format, f"{look.why}, the {order} first, though no cell says so", look.lost)


# -- words


def _words(words: Counter[str]) -> Look | None:
    trimmed = {" ".join(text.split()) for text in words}
    folded = {text.lower() for text in trimmed}
    if len(folded) > 2:
        found = _read(words, CellFormat("boolean"), "booleans")
        if found is not None and not found.lost:
            return found
    if len(folded) == len(words) and trimmed == words.keys():
        return None
    if len(folded) > 0.5 * words.total():
        return None
    told = f"{len(words)} spellings of {len(folded)} words, which differ in"
    if len(folded) == len(words):
        return Look(CellFormat("trimmed"), "words with spaces around them")
    if len(folded) == len(trimmed):
        return Look(CellFormat("trimmed"), f"{told} spaces")
    return Look(CellFormat("word"), f"{told} case or spaces")
