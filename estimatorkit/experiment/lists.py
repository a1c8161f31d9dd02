"""Columns of lists: cells such as `a|b|c`, or lists in the file itself.

They become padded arrays `(rows, width)` (see `data.list_cells`), and weights a column of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.data.list_cells import Lists, MalformedCell, as_bytes, filler, pad, split
from estimatorkit.experiment.document import suggestion
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.sources import WEIGHTS, ListCells

Columns = Mapping[str, NDArray[Any]]
_IN_FILE = ListCells()


def split_columns(
    source: Any, columns: Columns, place: Callable[[int], str], origin: str
) -> dict[str, NDArray[Any]]:
    """The columns, those that the source describes by separators split.

    Args:
        place: describes where a row is.
        origin: names the table in messages.

    Raises:
        DataError: there is no such column, or a cell is malformed.
    """
    described: Mapping[str, ListCells] = getattr(source, "lists", {})
    for name in described:
        if name not in columns:
            raise DataError.explained(
                f"{origin}: there is no column {name!r} of lists",
                expected=f"one of {', '.join(columns)}",
                hint=suggestion(name, list(columns)),
            )
    found: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        given = described.get(name, _IN_FILE)
        if given.separator is None:
            found[name] = column
            continue
        with located(name, place, origin):
            values, weights = split(_texts(name, column, origin), given.separator, given.weights)
        found[name] = pad(values, b"", given.length)
        if weights is not None:
            found[name + WEIGHTS] = pad(weights, 0.0, given.length)
    return found


def _texts(name: str, column: NDArray[Any], origin: str) -> NDArray[Any]:
    if column.ndim > 1 or column.dtype.kind not in "OSU":
        raise DataError.explained(
            f"{origin}: the column {name!r} has no text to split",
            expected="cells such as 'a|b|c'",
            received=f"{column.dtype} of shape {column.shape}",
            hint="leave out its separator under `lists`.",
        )
    return as_bytes(column)


@contextmanager
def located(name: str, place: Callable[[int], str], origin: str) -> Iterator[None]:
    """Converts errors of the lists of a column to those of a table."""
    try:
        yield
    except MalformedCell as error:
        raise DataError.explained(
            f"{origin}: the column {name!r} holds a malformed list",
            expected=error.expected,
            received=f"{error.received} in {place(error.row)}",
        ) from error


def padded(source: Any, name: str, lists: Lists) -> NDArray[Any]:
    """The lists of a file's column as an array, of the width that the source gives, if any."""
    length = source.lists.get(name, _IN_FILE).length
    return pad(lists, filler(lists.values.dtype), length)


def joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenates rows; arrays of lists are widened to the widest."""
    if len({part.shape[1:] for part in parts}) > 1 and all(part.ndim == 2 for part in parts):
        width = max(part.shape[1] for part in parts)
        parts = [
            np.pad(
                part,
                ((0, 0), (0, width - part.shape[1])),
                constant_values=filler(part.dtype),
            )
            for part in parts
        ]
    return np.concatenate(parts)
