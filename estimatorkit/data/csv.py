"""`read_csv`: a CSV file as a dict of columns, whose errors name file, line and column."""

from __future__ import annotations

import csv
import itertools
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes as types
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import NotFoundError, did_you_mean, explain

Record: TypeAlias = tuple[int, list[str]]  # the line on which it begins, counted from 1; its cells

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def read_csv(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    header: bool | Literal["infer"] = "infer",
    skip_rows: int = 0,
    na_values: Collection[str] = ("",),
    delimiter: str = ",",
    skip_initial_space: bool = False,
    encoding: str = "utf-8",
    on_bad_rows: Literal["error", "skip"] = "error",
) -> dict[str, NDArray[Any]]:
    """Reads a CSV file into memory.

    Cells may be quoted and then hold delimiters and line ends; lines end in LF or CRLF; a byte
    order mark and blank lines are passed over.

    Args:
        path: the file.
        columns: names of all columns, in the file's order; default: those of the header.
        dtypes: dtypes by column name; a column without one becomes int64 or float32, if all its
            cells are numbers, else string.
        header: whether the first line holds names ("infer": it does unless `columns` are given).
            With `columns`, such a line is passed over whatever it holds.
        skip_rows: lines to pass over before everything else.
        na_values: cells that mean "missing": NaN in float columns, b"" in string columns, an
            error in other columns.
        delimiter: one character.
        skip_initial_space: leave out spaces after a delimiter.
        encoding: of the text.
        on_bad_rows: "skip" leaves out rows with a wrong number of cells or a cell that does not
            fit its column's dtype, and warns how many.

    Returns:
        The columns in the file's order, each `(rows,)`; strings are objects of `bytes` (UTF-8).

    Raises:
        NotFoundError: there is no such file.
        ValueError: an empty file, repeated or unknown names, undecodable bytes, broken quotes, or
            a bad row where rows are not to be skipped.
    """
    name = os.fspath(path)
    dialect = {"delimiter": delimiter, "skipinitialspace": skip_initial_space}
    records = _records(name, skip_rows, encoding, dialect)
    if header is True or (header == "infer" and columns is None):
        first = next(records, None)
        if first is not None and columns is None:
            columns = first[1]
    rows = list(records)
    if not rows:
        raise ValueError(
            explain(
                f"{name} holds no rows",
                expected="at least one line of data",
                hint="is this the right file, and header= as the file has it?",
            )
        )
    if columns is None:
        columns = [f"column_{index}" for index in range(len(rows[0][1]))]
    _check_names(name, columns, dtypes or {})
    bad: dict[int, str] = {}
    complete = []
    for line, cells in rows:
        if len(cells) == len(columns):
            complete.append((line, cells))
        else:
            bad[line] = _wrong_count(name, line, cells, columns)
            if on_bad_rows == "error":
                raise ValueError(bad[line])
    by_column = list(zip(*(cells for _, cells in complete), strict=True))
    read = {}
    for index, column in enumerate(columns):
        wanted = (dtypes or {}).get(column)
        texts = np.array(by_column[index] if complete else [], dtype=object)
        read[column] = _convert(texts, None if wanted is None else as_dtype(wanted), na_values)
        for row, reason in read[column].bad.items():
            line = complete[row][0]
            text = explain(
                f"{name}:{line}: column {column!r} ({index + 1} of {len(columns)}) {reason}",
                expected=as_dtype(wanted).name,
                received=repr(texts[row]),
            )
            if on_bad_rows == "error":
                raise ValueError(text)
            bad.setdefault(line, text)
    if bad:
        first_reason = bad[min(bad)]
        warnings.warn(
            f"{name}: {len(bad)} bad rows skipped; the first: {first_reason}", stacklevel=2
        )
    kept = [row for row, (line, _) in enumerate(complete) if line not in bad]
    return {
        column: converted.values if len(kept) == len(complete) else converted.values[kept]
        for column, converted in read.items()
    }


def _records(name: str, skip_rows: int, encoding: str, dialect: dict[str, Any]) -> Iterator[Record]:
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"
    try:
        with open(name, encoding=encoding, newline="") as file:
            skipped = sum(1 for _ in itertools.islice(file, skip_rows))
            reader = csv.reader(file, strict=True, **dialect)
            line = skipped + 1
            try:
                for cells in reader:
                    if cells:
                        yield line, cells
                    line = skipped + reader.line_num + 1
            except csv.Error as error:
                raise ValueError(
                    explain(
                        f"{name}:{line}: the row that begins here is no CSV",
                        received=str(error),
                        hint='a quote within a quoted cell is written twice: ""',
                    )
                ) from error
    except FileNotFoundError as error:
        raise NotFoundError(None, None, explain(f"there is no file {name}")) from error
    except UnicodeDecodeError as error:
        raise ValueError(_undecodable(name, encoding, error)) from error


def _undecodable(name: str, encoding: str, error: UnicodeDecodeError) -> str:
    # The decoder reads in chunks: where in the file it stopped must be found again.
    with Path(name).open("rb") as file:
        for line, content in enumerate(file, start=1):
            try:
                content.decode(encoding)
            except UnicodeDecodeError as found:
                return explain(
                    f"{name}:{line}: byte {found.start + 1} of the line is no {encoding} text",
                    received=repr(content[found.start : found.end]),
                    hint="give the file's encoding, for example encoding='latin-1'",
                )
    return explain(f"{name} is no {encoding} text", received=str(error))


def _check_names(name: str, columns: Sequence[str], dtypes: Mapping[str, Any]) -> None:
    repeated = sorted({column for column in columns if list(columns).count(column) > 1})
    if repeated:
        raise ValueError(
            explain(
                f"{name}: column names are repeated",
                expected="names that differ",
                received=repeated,
                hint="give names with columns=, and header=True to pass over the file's own",
            )
        )
    for column in dtypes:
        if column not in columns:
            raise ValueError(
                explain(
                    f"{name}: dtypes names a column that the file does not have",
                    expected=list(columns),
                    received=repr(column),
                    hint=did_you_mean(column, columns),
                )
            )


def _wrong_count(name: str, line: int, cells: list[str], columns: Sequence[str]) -> str:
    if len(cells) < len(columns):
        where = f"column {columns[len(cells)]!r} ({len(cells) + 1} of {len(columns)}) is missing"
    else:
        where = f"cell {len(columns) + 1} is one too many"
    return explain(
        f"{name}:{line}: {where}",
        expected=f"{len(columns)} cells",
        received=f"{len(cells)}: {cells!r}"[:200],
    )


@dataclass
class _Converted:
    values: NDArray[Any]
    bad: dict[int, str]  # row: what is wrong with its cell


def _convert(cells: NDArray[Any], dtype: DType | None, na_values: Collection[str]) -> _Converted:
    missing = np.isin(cells, list(na_values)) if len(cells) else np.zeros(0, bool)
    if dtype is types.string:
        return _strings(cells, missing)
    if dtype is types.bool_:
        return _booleans(cells)
    import pandas as pd

    numbers = np.asarray(pd.to_numeric(pd.Series(cells), errors="coerce"))
    unread = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(len(numbers), bool)
    unread &= ~missing
    for row in np.flatnonzero(unread):
        unread[row] = cells[row].strip().lower().lstrip("+-") != "nan"
    if dtype is None:
        if unread.any():
            return _strings(cells, missing)
        dtype = as_dtype(numbers.dtype) if numbers.dtype.kind in "iu" else types.float32
    bad = {int(row): "is not a number" for row in np.flatnonzero(unread)}
    if dtype.is_integer:
        fits = numbers.dtype.kind in "iu" or np.isfinite(numbers) & (np.floor(numbers) == numbers)
        fits = fits & (numbers >= dtype.min) & (numbers <= dtype.max)
        for row in np.flatnonzero(~fits):
            reason = "is missing" if missing[row] else f"does not fit {dtype.name}"
            bad.setdefault(int(row), reason)
        if not fits.all():
            # Among floats (NaN for what is missing) large integers have lost their last digits.
            exact = np.zeros(len(cells), object)
            exact[fits] = np.asarray(pd.to_numeric(pd.Series(cells[fits])))
            numbers = exact
    return _Converted(numbers.astype(dtype.numpy_dtype), dict(sorted(bad.items())))


def _strings(cells: NDArray[Any], missing: NDArray[np.bool_]) -> _Converted:
    values = np.empty(len(cells), object)
    for row, cell in enumerate(cells):
        values[row] = b"" if missing[row] else cell.encode()
    return _Converted(values, {})


def _booleans(cells: NDArray[Any]) -> _Converted:
    values = [_BOOLEANS.get(cell.strip().lower()) for cell in cells]
    bad = {row: "is not true, false, 1 or 0" for row, value in enumerate(values) if value is None}
    return _Converted(np.array([bool(value) for value in values]), bad)
