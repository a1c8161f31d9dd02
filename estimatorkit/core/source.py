"""`SourceLine`: the line of user code that created an object, the first outside this package."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import NamedTuple

_PASSED_OVER = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    contextlib.contextmanager.__code__.co_filename,  # between context managers and their users
)


class SourceLine(NamedTuple):
    """A line of user code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


_line = functools.lru_cache(maxsize=4096)(SourceLine)
"""Operations created on one line share a `SourceLine`: the garbage collector has less to scan."""


@functools.cache
def _passed_over(file: str) -> bool:
    return file.startswith(_PASSED_OVER)


def user_line() -> SourceLine:
    """Returns the innermost line on the stack outside this package, without reading files."""
    frame = sys._getframe(1)
    code = frame.f_code
    while frame.f_back is not None and _passed_over(code.co_filename):
        frame = frame.f_back
        code = frame.f_code
    return _line(code.co_filename, frame.f_lineno, code.co_name)
