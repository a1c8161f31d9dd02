"""Infers names and dtypes of CSV columns from the first lines, as TensorFlow does."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from estimatorkit.core import dtypes
from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import value_error
from estimatorkit.data.readers.chunks import Chunks
from estimatorkit.data.readers.csv_layout import CsvLayout
from estimatorkit.data.readers.csv_records import BYTE_ORDER_MARK, end_of_records, records

_CHUNK_BYTES = 1 << 16

# In order of preference.
_ORDER = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


@dataclass(frozen=True)
class CsvText:
    """The format of the files.

    Attributes:
        delimiter: one byte.
        na_value: a text that marks a missing cell.
        header: whether the first record of each file holds names.
        compression: '', 'GZIP' or 'ZLIB'.
    """

    delimiter: bytes
    quotes: bool
    na_value: str
    header: bool
    compression: str
    encoding: str

    def records(self, name: str) -> Iterator[list[str]]:
        """Yields the cells of the records of a file, including the header."""
        layout = CsvLayout((), None, self.delimiter, self.quotes)
        cut = functools.partial(end_of_records, layout)
        chunks = Chunks(name, self.compression, _CHUNK_BYTES, cut)
        try:
            chunk = chunks.read().removeprefix(BYTE_ORDER_MARK)
            while chunk:
                # Malformed or undecodable text is reported when it is read, with its line.
                for record in records(chunk, layout):
                    if record.problem is None:
                        yield [cell.decode(self.encoding, "replace") for cell in record.cells]
                chunk = chunks.read()
        finally:
            chunks.close()


def infer_names(files: Sequence[str], text: CsvText) -> list[str]:
    """The names in the headers.

    Raises:
        ValueError: the headers differ, or a file is empty.
    """
    names: list[str] | None = None
    for name in files:
        header = next(text.records(name), None)
        if header is None:
            raise value_error(
                f"Received empty header in file {name}",
                expected="a first line with the names of the columns",
                received="an empty file",
            )
        if names is None:
            names = header
        elif names != header:
            raise value_error(
                "All input CSV files should have the same column names in the header row. File "
                f"{name} has different column names",
                expected=f"{names}, as in {files[0]}",
                received=header,
            )
    return names or []


def infer_dtypes(
    files: Sequence[str],
    text: CsvText,
    width: int,
    indices: Sequence[int],
    rows: int | None,
) -> list[DType]:
    """The dtypes of columns; string for empty ones.

    Rows with a wrong number of cells are ignored here; reading them raises.

    Args:
        width: cells per record.
        indices: the columns.
        rows: the number of rows to inspect; None for all.
    """
    found: list[DType | None] = [None] * len(indices)
    bodies = (itertools.islice(text.records(name), int(text.header), None) for name in files)
    for cells in itertools.islice(itertools.chain.from_iterable(bodies), rows):
        if len(cells) == width:
            found = [
                _fitting(cells[index], text.na_value, dtype)
                for index, dtype in zip(indices, found, strict=True)
            ]
    return [dtype or dtypes.string for dtype in found]


def _fitting(cell: str, na_value: str, dtype: DType | None) -> DType | None:
    """The first dtype, starting from `dtype`, that fits a cell."""
    if cell in ("", na_value):
        return dtype
    start = 0 if dtype is None else _ORDER.index(dtype)
    return next(each for each in _ORDER[start:] if each is dtypes.string or _fits(cell, each))


def _fits(cell: str, dtype: DType) -> bool:
    try:
        if dtype.is_integer:
            return bool(dtype.min <= int(cell) <= dtype.max)
        with np.errstate(over="ignore"):
            return bool(dtype.numpy_dtype.type(float(cell)) < np.inf)
    except ValueError:
        return False
