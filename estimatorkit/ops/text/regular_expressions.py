"""RE2 regular expressions on Python's `re`, for the string operations.

Strings are matched as UTF-8 text (invalid bytes are preserved); `\\d`, `\\w`, `\\s` and `\\b` are
ASCII-only, `$` is the end of the text, and POSIX classes (`[[:alpha:]]`) are supported. RE2's
`\\pN`, `\\C` and `\\Q...\\E` are not; Python's lookaround and backreferences, which RE2 rejects,
are accepted. Unlike RE2, nested repetition may take exponential time: do not use untrusted
patterns.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from estimatorkit.core.errors import InvalidArgumentError

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\$|.", re.DOTALL)
_IN_CLASS = re.compile(r"\\.|\[:(\^?\w+):\]|[\[&~|]")
_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
_REWRITE = re.compile(rb"\\(.?)", re.DOTALL)


def decode(text: bytes) -> str:
    """Decodes bytes to text, losslessly: `encode` is the inverse."""
    return text.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Encodes text that `decode` returned."""
    return text.encode("utf-8", "surrogateescape")


@functools.lru_cache(maxsize=256)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """Compiles a pattern in RE2's syntax; raises InvalidArgumentError if it is invalid."""
    multiline = _MULTILINE.search(decode(pattern)) is not None

    def in_class(token: re.Match[str]) -> str:
        if token[1]:
            if token[1] not in _POSIX:
                raise re.error(f"invalid character class: {token[0]}")
            return _POSIX[token[1]]
        # A literal character in RE2; Python reserves it and warns.
        return token[0] if len(token[0]) > 1 else f"\\{token[0]}"

    def translated(token: re.Match[str]) -> str:
        text = token[0]
        if text == r"\z" or (text == "$" and not multiline):
            return r"\Z"
        if text[0] == "[" and len(text) > 1:
            return f"[{_IN_CLASS.sub(in_class, text[1:-1])}]"
        return text

    try:
        return re.compile(_TOKEN.sub(translated, decode(pattern)), re.ASCII)
    except re.error as error:
        raise InvalidArgumentError.explained(
            f"Invalid pattern: {decode(pattern)}, error: {error}",
            expected="a regular expression in RE2's syntax",
            received=decode(pattern),
        ) from error


def replacer(pattern: bytes, rewrite: bytes, replace_global: bool) -> Callable[[bytes], bytes]:
    """Returns a function that replaces matches, as RE2's `GlobalReplace` (or `Replace`).

    In `rewrite`, `\\\\1` is the first group and `\\\\0` the whole match. Raises
    InvalidArgumentError if the pattern or the rewrite is invalid.
    """
    expression = compiled(pattern)
    parts = _rewrite_parts(rewrite, expression)
    count = 0 if replace_global else 1

    def replace(text: bytes) -> bytes:
        end = -1

        def written(match: re.Match[str]) -> str:
            nonlocal end
            if match.end() == match.start() == end:
                return ""  # RE2 allows no empty match right after another match
            end = match.end()
            return "".join(part if isinstance(part, str) else match[part] or "" for part in parts)

        return encode(expression.sub(written, decode(text), count))

    return replace


def _rewrite_parts(rewrite: bytes, expression: re.Pattern[str]) -> list[str | int]:
    parts: list[str | int] = []
    for index, piece in enumerate(_REWRITE.split(rewrite)):
        if index % 2 == 0 or piece == b"\\":
            parts.append(decode(piece))
        elif piece.isdigit() and int(piece) <= expression.groups:
            parts.append(int(piece))
        else:
            raise InvalidArgumentError.explained(
                f"Invalid rewrite: {decode(rewrite)}",
                expected=f"\\0 to \\{expression.groups} for groups, \\\\ for a backslash",
                received=f"\\{decode(piece)}",
            )
    return parts
