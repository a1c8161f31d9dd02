"""`tf.compat`: strings as bytes or text."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Converts a string to bytes.

    Raises:
        TypeError: it is neither text nor bytes.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Converts a string to text.

    Raises:
        TypeError: it is neither text nor bytes.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any) -> str:
    """Converts bytes to text, and any other value with `str`."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """Converts a path object to a string; returns other values unchanged."""
    return as_str_any(path.__fspath__()) if hasattr(path, "__fspath__") else path


bytes_or_text_types = (bytes, str)
integral_types = (int, np.integer)
real_types = (int, float, np.integer, np.floating)
complex_types = (int, float, complex, np.number)
