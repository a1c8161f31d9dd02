"""Lists in cells: `a|b|c`, weights `a:0.3|b:1`, and lists of different lengths as padded arrays.

A list column is an array `(rows, width)`: the values of a row in order, then padding that feature
columns ignore ('' among strings, -1 among integers). The width is a power of two, or given, so that
new rows are seldom new compilations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import explain, value_error
from estimatorkit.ops.tables.feature_ids import power_of_two

Ints = NDArray[np.int64]


class MalformedCell(ValueError):
    """A cell is not a list of the described form.

    Attributes:
        row: its index.
        expected, received: for messages.
    """

    def __init__(self, row: int, expected: str, received: str) -> None:
        super().__init__(
            explain(f"row {row} is not such a list", expected=expected, received=received)
        )
        self.row, self.expected, self.received = row, expected, received


class Lists(NamedTuple):
    """The lists of a column, one after another.

    Attributes:
        values: of all rows.
        counts: int64 `(rows,)`, how many belong to each row.
    """

    values: NDArray[Any]
    counts: Ints


@overload
def split_cells(
    cells: Any, separator: str = "|", weights: None = None, length: int | None = None
) -> NDArray[Any]: ...
@overload
def split_cells(
    cells: Any, separator: str, weights: str, length: int | None = None
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def split_cells(
    cells: Any, separator: str = "|", weights: str | None = None, length: int | None = None
) -> Any:
    """Splits cells like `a|b|c`, or with weights `a:0.3|b:1`, into padded arrays.

    Args:
        cells: strings or bytes `(rows,)`; an empty one is an empty list.
        separator: the character between values.
        weights: the character between a value and its weight; None: there are no weights.
        length: values per row; of longer lists the last ones are kept. By default those of the
            longest, rounded up to a power of two.

    Returns:
        The values as objects of `bytes` (UTF-8), `(rows, width)`, padded with b"" at the end. With
        `weights` a pair of these and the weights, float32 of the same shape, padded with 0.

    Raises:
        ValueError: a value is empty, or its weight is missing or not a finite number; `separator`
            or `weights` is not one ASCII character, or `length` is less than 1.
    """
    array = as_bytes(np.asarray(cells, object).reshape(-1))
    values, numbers = split(array, separator, weights)
    padded = pad(values, b"", length)
    return padded if numbers is None else (padded, pad(numbers, 0.0, length))


def as_bytes(cells: NDArray[Any]) -> NDArray[Any]:
    """Strings as objects of UTF-8 `bytes`."""
    if set(map(type, cells.flat)) <= {bytes}:
        return cells
    encoded = [each if isinstance(each, bytes) else str(each).encode() for each in cells.flat]
    found = np.empty(len(encoded), object)
    found[:] = encoded
    return found.reshape(cells.shape)


def split(
    cells: NDArray[Any], separator: str, weights: str | None = None
) -> tuple[Lists, Lists | None]:
    """The values of cells, and their float32 weights, where there are any.

    All cells are split as one text: 10 million values take seconds.

    Args:
        cells: `bytes`, `(rows,)`.

    Raises:
        MalformedCell: a value is empty, or its weight is missing or not a finite number.
        ValueError: `separator` or `weights` is not one ASCII character.
    """
    mark = _mark("separator", separator)
    text = mark.join(cells.tolist())
    starts, row = _pieces(cells, text, mark)
    sizes = np.diff(np.append(starts, len(text) + 1)) - 1
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    kept = lengths[row] > 0
    empty = np.flatnonzero(kept & (sizes == 0))
    if len(empty):
        raise _malformed(cells, int(row[empty[0]]), f"values between each {separator!r}")
    counts = np.bincount(row[kept], minlength=len(cells))
    if weights is None:
        return Lists(_objects(text.split(mark))[kept], counts), None
    expected = f"value{weights}weight, with {separator!r} between them and finite numbers"
    symbol = _mark("weights", weights)
    symbols = np.flatnonzero(np.frombuffer(text, np.uint8) == symbol[0])
    last = np.searchsorted(symbols, starts + sizes) - 1  # the last in each value
    places = np.append(symbols, -1)[last]
    lacking = np.flatnonzero(kept & ((last < 0) | (places <= starts)))
    if len(lacking):
        raise _malformed(cells, int(row[lacking[0]]), expected)
    parted = bytearray(text)
    np.frombuffer(parted, np.uint8)[places[kept]] = mark[0]
    pieces = _objects(bytes(parted).split(mark))
    # An empty cell is one piece; others are two per value.
    ends = np.cumsum(1 + kept)[kept]
    texts, row = pieces[ends - 1], row[kept]
    numbers = _numbers(texts)
    unfit = np.flatnonzero(~np.isfinite(numbers))
    if len(unfit):
        raise _malformed(cells, int(row[unfit[0]]), expected)
    return Lists(pieces[ends - 2], counts), Lists(numbers, counts)


def _mark(name: str, given: str) -> bytes:
    if len(given) != 1 or not given.isascii():
        raise value_error(name, expected="one ASCII character", received=repr(given))
    return given.encode()


def _pieces(cells: NDArray[Any], text: bytes, mark: bytes) -> tuple[Ints, Ints]:
    """Where the pieces of the joined cells begin, and the row of each."""
    if not len(cells):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    marks = np.flatnonzero(np.frombuffer(text, np.uint8) == mark[0])
    starts = np.concatenate([[0], marks + 1])
    return starts, np.searchsorted(np.cumsum(lengths + 1) - 1, starts)


def _objects(pieces: Sequence[bytes]) -> NDArray[Any]:
    found = np.empty(len(pieces), object)
    found[:] = pieces
    return found


def _numbers(texts: NDArray[Any]) -> NDArray[np.float32]:
    """Parses numbers; NaN for invalid ones."""
    import pandas as pd

    decoded = pd.Series(
        [each.decode("utf-8", "replace") for each in pd.unique(texts)], dtype=object
    )
    distinct = pd.to_numeric(decoded, errors="coerce").to_numpy(np.float64)
    return distinct.astype(np.float32)[pd.factorize(texts)[0]] if len(texts) else np.empty(0, "f4")


def _malformed(cells: NDArray[Any], row: int, expected: str) -> MalformedCell:
    return MalformedCell(row, expected, repr(cells[row].decode("utf-8", "replace"))[:200])


def pad(lists: Lists, fill: Any, length: int | None = None) -> NDArray[Any]:
    """Lists as an array `(rows, width)`.

    Args:
        fill: the padding.
        length: the width; the last values of longer lists are kept. None: the longest list's,
            rounded up to a power of two.
    """
    values, counts = lists
    if length is not None and length < 1:
        raise value_error("length", expected="an integer >= 1", received=repr(length))
    width = power_of_two(int(counts.max(initial=1))) if length is None else length
    row = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    place -= np.repeat(np.maximum(counts - width, 0), counts)
    kept = place >= 0
    padded = np.full((len(counts), width), fill, values.dtype)
    padded[row[kept], place[kept]] = values[kept]
    return padded


def lists_of_arrow(column: Any) -> Lists:
    """The lists of an Arrow array of lists or fixed-size lists; a null is an empty list.

    Raises:
        MalformedCell: a value in a list is null.
        TypeError: the values are neither numbers nor strings.
    """
    import pyarrow.compute as pc

    from estimatorkit.data.readers.arrow_columns import arrow_spec, arrow_values

    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    flat = pc.list_flatten(column)
    if flat.null_count:
        place = int(np.argmax(np.asarray(flat.is_null())))
        row = int(np.searchsorted(np.cumsum(counts), place, "right"))
        raise MalformedCell(row, "a value in each place of the list", "null")
    values = arrow_values(flat, arrow_spec(flat.type, "a list"))
    return Lists(values, np.asarray(counts, np.int64))


def filler(dtype: np.dtype[Any]) -> Any:
    """The padding of a dtype: '' among strings, -1 among integers, 0 among floats."""
    return b"" if dtype.kind in "OSU" else 0 if dtype.kind in "fb" else -1


__all__ = ["split_cells"]
