"""Pictures of text in DOT, by pygraphviz (extra `plot`), whose wheels bring Graphviz along."""

from __future__ import annotations

import threading

from estimatorkit.core.errors import explain, value_error

_KINDS = ("gif", "jpg", "pdf", "png", "ps", "svg")
_lock = threading.Lock()
"""Graphviz's C library keeps global state."""


def render(dot: str, kind: str) -> bytes:
    """Draws text in DOT.

    Args:
        dot: the text.
        kind: `gif`, `jpg`, `pdf`, `png`, `ps` or `svg`.

    Raises:
        ImportError: pygraphviz is not installed.
        ValueError: the format is unknown, or the text is not in DOT.
    """
    if kind not in _KINDS:
        raise value_error("unknown format of a picture", expected=f"one of {_KINDS}", received=kind)
    try:
        import pygraphviz
    except ImportError as error:
        raise ImportError(
            explain(
                f"a picture in {kind} needs pygraphviz, which is not installed",
                hint="pip install 'estimatorkit[plot]', or write the text in DOT",
            )
        ) from error
    try:
        with _lock:
            drawn: bytes = pygraphviz.AGraph(string=dot).draw(format=kind, prog="dot")
    except ValueError as error:
        raise value_error(
            "Graphviz could not draw the graph",
            expected="text in DOT",
            received=f"{dot[:100]!r} ({error})",
        ) from error
    return drawn


__all__ = ["render"]
