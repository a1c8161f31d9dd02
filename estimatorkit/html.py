"""Tables in HTML, for notebooks and reports; every text in them is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_NUMBER = re.compile(r"[-+]?(\d[\d,]*(\.\d*)?|\.\d+|inf|nan)(e[-+]?\d+)?( ?%|( x \d+)*)")


def html_table(
    head: Sequence[object], rows: Iterable[Sequence[object]], caption: str | None = None
) -> str:
    """A table in HTML, everything escaped. Below a head, numbers stand at the right.

    Args:
        head: the columns' names; empty for none.
        rows: the cells.
        caption: what stands above it.
    """
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption>{escape(caption)}</caption>")
    if head:
        cells = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for row in rows:
        parts.append("<tr>" + "".join(_cell(str(cell), bool(head)) for cell in row) + "</tr>")
    return "\n".join([*parts, "</tbody></table>"])


def _cell(text: str, aligned: bool) -> str:
    style = ' style="text-align: right"' if aligned and _NUMBER.fullmatch(text) else ""
    return f"<td{style}>{escape(text)}</td>"


__all__ = ["html_table"]
