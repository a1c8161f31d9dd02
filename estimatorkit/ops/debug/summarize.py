"""Formatting of NumPy arrays as TensorFlow prints them: the older form of `Print` and `Assert`, and
the newer one of `print`. Strings are object arrays of `bytes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def format_number(value: Any) -> str:
    """A number in the shorter of two precisions that round-trips: 6 or 9 digits (float64: 15 or
    17).
    """
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    kind = value.dtype.kind
    if kind == "c":
        real, imaginary = format_number(value.real), format_number(value.imag)
        return f"({real}{'' if imaginary.startswith('-') else '+'}{imaginary}j)"
    if kind in "iu" and value.dtype.name not in ("bfloat16",):
        return str(int(value))
    double = value.dtype == np.float64
    number = float(value)
    if not np.isfinite(number):
        return "nan" if np.isnan(number) else "inf" if number > 0 else "-inf"
    short = f"{number:.{15 if double else 6}g}"
    read_back = float(short) if double else float(np.float32(short))
    exact = read_back == (number if double else float(np.float32(number)))
    return short if exact else f"{number:.{17 if double else 9}g}"


def _escaped(text: bytes) -> str:
    """Escapes text as in C."""
    return (
        text.decode("utf-8", "backslashreplace")
        .replace("\\", "\\\\")
        .replace("\n", "\\n")
        .replace("\r", "\\r")
        .replace("\t", "\\t")
        .replace('"', '\\"')
        .replace("'", "\\'")
    )


def format_element(value: Any) -> str:
    """One element: a number, or escaped text."""
    return _escaped(value) if isinstance(value, bytes) else format_number(value)


def summarize_first(array: NDArray[Any], limit: int) -> str:
    """The first `limit` elements (all if negative), in the older form: `[1 2 3...]` without the
    outer brackets.
    """
    flat = array.reshape(-1)
    count = flat.size if limit < 0 else min(limit, flat.size)
    more = "..." if flat.size > count else ""
    if array.ndim == 0:
        return (format_element(flat[0]) if count else "") + more
    shown = 0

    def rows(axis: int) -> str:
        nonlocal shown
        text = ""
        for position in range(array.shape[axis]):
            if axis < array.ndim - 1:
                if shown < count:
                    text += f"[{rows(axis + 1)}]"
            elif shown < count:
                text += " " * bool(position) + format_element(flat[shown])
                shown += 1
            else:
                return text + ("..." if axis else "")
        return text

    return rows(0) + more


def summarize_ends(array: NDArray[Any], edge: int) -> str:
    """The array with the first and last `edge` elements of each dimension (all if negative)."""
    if array.ndim == 0:
        value = array[()]
        return f'"{_escaped(value)}"' if isinstance(value, bytes) else format_number(value)

    def block(part: NDArray[Any], depth: int) -> str:
        if part.ndim == 0:
            return summarize_ends(part, edge)
        length = len(part)
        whole = edge < 0 or length <= 2 * edge
        places: list[int | None] = list(range(length))
        if not whole:
            places = [*range(edge), None, *range(length - edge, length)]
        between = " " if part.ndim == 1 else "\n" * (part.ndim - 1) + " " * (depth + 1)
        return f"[{between.join(shown(part, place, depth) for place in places)}]"

    def shown(part: NDArray[Any], place: int | None, depth: int) -> str:
        return "..." if place is None else block(part[place, ...], depth + 1)

    return block(array, 0)
