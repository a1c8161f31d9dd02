"""Parts of ISO dates in the graph: numbers, NaN where there is no date, and ids, -1 there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import estimatorkit as ek

ISO_DATE = r"\d{4}-\d{2}-\d{2}.*"
_NO_DATE = "0000-00-00T00:00"


def _part(start: int, length: int) -> Callable[[Any], Any]:
    """The number in a place of ISO dates; -1 where there is no date."""

    def of(text: Any) -> Any:
        dated = ek.strings.regex_full_match(text, ISO_DATE)
        whole = ek.where(dated, text + "T00:00", ek.fill(ek.shape(text), _NO_DATE))
        number = ek.strings.to_number(ek.strings.substr(whole, start, length), ek.int64)
        return ek.where(dated, number, -ek.ones_like(number))

    return of


_year, _month, _day, _hour = _part(0, 4), _part(5, 2), _part(8, 2), _part(11, 2)
_minute = _part(14, 2)


def _number(of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part as float32; NaN where there is no date."""

    def part(text: Any) -> Any:
        number = ek.cast(of(text), ek.float32)
        return ek.where(_year(text) < 0, ek.fill(ek.shape(number), float("nan")), number)

    return part


def _days_of(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970-01-01 (Hinnant's days_from_civil, for years from 0 on)."""
    early = ek.cast(month < 3, ek.int64)
    year, month = year - early, month - 3 + 12 * early
    return (
        365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719469
    )


def _days(text: Any) -> Any:
    return _days_of(_year(text), _month(text), _day(text))


def _of_year(text: Any) -> Any:
    """How many days of the year have passed."""
    first = ek.ones_like(_month(text))
    return _days(text) - _days_of(_year(text), first, first)


def _of_day(text: Any) -> Any:
    """How many minutes of the day have passed."""
    return 60 * _hour(text) + _minute(text)


def _on_circle(
    of: Callable[[Any], Any], count: int, period: float, wave: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """A cyclic encoding, looked up in a table that is rounded to 6 decimals.

    Computed, those of 9:12 and 14:48 would differ in their last bits, other ones in other programs,
    and trees would split between them.
    """
    table = wave(2 * math.pi / period * np.arange(count)).round(6).astype(np.float32)

    def part(text: Any) -> Any:
        return ek.gather(ek.constant(table), ek.clip_by_value(of(text), 0, count - 1))

    return _number(part)


def _weekday(text: Any) -> Any:
    """Days since Monday; -1 where there is no date."""
    days = _days(text)
    return ek.where(_day(text) < 0, -ek.ones_like(days), (days + 3) % 7)  # 1970 began on a Thursday


def _weekend(text: Any) -> Any:
    return ek.cast(_weekday(text) > 4, ek.int64)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "year": _number(_year),
    "days": _number(_days),
    "season_sin": _on_circle(_of_year, 366, 365.25, np.sin),
    "season_cos": _on_circle(_of_year, 366, 365.25, np.cos),
    "clock_sin": _on_circle(_of_day, 1440, 1440, np.sin),
    "clock_cos": _on_circle(_of_day, 1440, 1440, np.cos),
    "weekend": _number(_weekend),
}
"""The parts that are numbers, by kind of `derive`."""

PARTS: dict[str, Callable[[Any], Any]] = {
    **NUMBERS,
    "month": _month,
    "day": _day,
    "weekday": _weekday,
    "hour": _hour,
}
"""All parts, of tensors of strings."""
