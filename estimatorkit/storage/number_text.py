"""Parsing and formatting of numbers as C and TensorFlow do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType

_INTEGER = re.compile(rb"\s*-?[0-9]+\s*")


def to_number(dtype: DType) -> Callable[[bytes], Any]:
    """Returns a parser for numbers of a dtype, which raises ValueError on malformed text.

    Integers must not have a `+`, as in TensorFlow.
    """
    if dtype.is_floating:
        return _to_float
    limits = np.iinfo(dtype.numpy_dtype)

    def to_integer(text: bytes) -> int:
        if (
            _INTEGER.fullmatch(text) is not None
            and limits.min <= (value := int(text)) <= limits.max
        ):
            return value
        raise ValueError(text)

    return to_integer


def to_numbers(texts: Sequence[bytes], dtype: DType) -> list[Any]:
    """Parses texts as numbers of a dtype; raises ValueError if one is malformed."""
    if dtype.is_floating and not _UNCOMMON.search(b" ".join(texts)):
        return list(map(float, texts))  # twice as fast as `to_number`
    return list(map(to_number(dtype), texts))


_UNCOMMON = re.compile(rb"[_xXyY]")
_HEXADECIMAL = re.compile(rb"\s*([-+]?0[xX][0-9a-fA-F]+)\s*")


def _to_float(text: bytes) -> float:
    if not _UNCOMMON.search(text):
        return float(text)
    whole = _HEXADECIMAL.fullmatch(text)
    if whole is None:  # Python also accepts digit groups and 'infinity'
        raise ValueError(text)
    return float(int(whole[1], 16))


def number_text(
    values: NDArray[Any], precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> NDArray[Any]:
    """Formats each value as C's `printf` does; returns an object array of bytes.

    Args:
        precision: the digits after the point; 6 if negative.
        scientific: whether to use `%e`.
        shortest: whether to use `%g`.
        width: the minimum width; none if negative.
        fill: a flag of `printf`: '', ' ', '0', '-' or '+'.
    """
    kind = values.dtype.kind
    start = "%" + fill + (str(width) if width >= 0 else "")
    if kind == "b":
        write = {True: b"true", False: b"false"}.__getitem__
    elif kind in "OS":
        template = f"{start}s".encode()
        write = template.__mod__
    elif kind in "iu" and values.dtype.name != "bfloat16":
        template = f"{start}d".encode()
        write = template.__mod__
    else:
        digits = f".{precision}" if precision >= 0 else ""
        letter = "e" if scientific else "g" if shortest else "f"
        template = f"{start}{digits}{letter}".encode()
        write = template.__mod__
        if kind == "c":
            template = b"(%s,%s)" % (template, template)
            write = lambda value: template % (value.real, value.imag)  # noqa: E731
    result = np.empty(values.shape, object)
    plain = values.astype(np.float64) if values.dtype.name == "bfloat16" else values
    result.reshape(-1)[:] = [write(value) for value in plain.reshape(-1).tolist()]
    return result
