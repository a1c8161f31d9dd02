"""`read_csv`: a CSV file as a dict of columns, with errors that name file, line and column."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes as types
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.data.readers.csv_layout import Cells, CsvColumn, CsvLayout, column_values
from estimatorkit.data.readers.csv_parsing import Parser, wrong_cell
from estimatorkit.data.readers.csv_records import (
    BYTE_ORDER_MARK,
    LINE_END,
    Ints,
    end_of_records,
    records,
)
from estimatorkit.storage.filesystem import file_errors, open_file

_CHUNK_BYTES = 1 << 24


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

    Cells may be quoted and then contain delimiters and line ends; lines end in LF or CRLF; a byte
    order mark and blank lines are skipped.

    Args:
        path: the file; may be a URL (`gs://...`).
        columns: the names of all columns, in file order; by default those of the header.
        dtypes: dtypes by column name; other columns become int64 or float32 if all their cells are
            numbers, else string.
        header: whether the first line holds names ("infer": unless `columns` are given). With
            `columns`, a header is skipped whatever it contains.
        skip_rows: lines to skip first.
        na_values: cells that mean "missing": NaN in float columns, b"" in string columns, an error
            in others.
        delimiter: one character.
        skip_initial_space: ignore spaces after a delimiter.
        on_bad_rows: "skip" drops rows with a wrong number of cells or a cell that does not fit its
            column's dtype, and logs a warning with their number.

    Returns:
        The columns in file order, each `(rows,)`; strings are objects of `bytes` (UTF-8).

    Raises:
        NotFoundError: the file does not exist.
        ValueError: the file is empty, names are repeated or unknown, bytes cannot be decoded,
            quotes are malformed, or a row is malformed and `on_bad_rows` is "error".
    """
    name = os.fspath(path)
    return _read(
        name,
        _text(name, encoding),
        1,
        columns,
        dtypes,
        header,
        skip_rows,
        na_values,
        delimiter,
        skip_initial_space,
        on_bad_rows,
    )[0]


def read_csv_chunks(
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
    chunk_bytes: int | None = None,
    compression: str | None = None,
    texts: Collection[str] = (),
) -> Iterator[tuple[dict[str, NDArray[Any]], Ints]]:
    """Reads a CSV file in chunks of whole rows (see `read_csv`).

    Args:
        chunk_bytes: the size of chunks; None reads the whole file as one. Dtypes that are not given
            are those of the chunk's cells.
        compression: 'GZIP' or 'ZLIB' of a file that is read in chunks; None for neither.
        texts: columns that are strings, whatever their cells; the file may lack them.

    Yields:
        The columns, and the line on which each row begins, from 1.
    """
    name = os.fspath(path)
    layout = CsvLayout((), None, delimiter.encode(), na_values=frozenset(), encoding="utf-8")
    with ExitStack() as closing:
        if chunk_bytes is None or not _is_utf8(encoding):
            file: Any = io.BytesIO(_text(name, encoding))
        else:
            file = closing.enter_context(_opened(name, compression))
        waiting, line, ended = b"", 1, False
        while not ended:
            data = file.read(-1 if chunk_bytes is None else chunk_bytes)
            ended = chunk_bytes is None or not data
            waiting += data if line > 1 or waiting else data.removeprefix(BYTE_ORDER_MARK)
            size = len(waiting) if ended else end_of_records(layout, waiting)
            text, waiting = waiting[:size], waiting[size:]
            if text or (line == 1 and ended):
                yield (
                    found := _read(
                        name,
                        text,
                        line,
                        columns,
                        dtypes,
                        header,
                        skip_rows,
                        na_values,
                        delimiter,
                        skip_initial_space,
                        on_bad_rows,
                        texts,
                    )
                )
                columns, header, skip_rows = list(found[0]), False, 0
            line += len(LINE_END.findall(text))


def _opened(name: str, compression: str | None) -> Any:
    with file_errors("read", name):
        return open_file(name, "rb", compression)


def _read(
    name: str,
    text: bytes,
    first_line: int,
    columns: Sequence[str] | None,
    dtypes: Mapping[str, Any] | None,
    header: bool | Literal["infer"],
    skip_rows: int,
    na_values: Collection[str],
    delimiter: str,
    skip_initial_space: bool,
    on_bad_rows: Literal["error", "skip"],
    texts: Collection[str] = (),
) -> tuple[dict[str, NDArray[Any]], Ints]:
    """The columns of a text, and the line on which each row begins."""
    layout = CsvLayout(
        (),
        None,
        delimiter.encode(),
        na_values=frozenset(),
        skip_initial_space=skip_initial_space,
        encoding="utf-8",
    )
    start = 0
    for found, _ in zip(LINE_END.finditer(text), range(skip_rows), strict=False):
        start = found.end()
    first = next(records(text, layout, start), None)
    if first is not None:
        if header is True or (header == "infer" and columns is None):
            start = first.end
        if columns is None:
            words = [cell.decode("utf-8", "replace") for cell in first.cells]
            columns = words if header else [f"column_{index}" for index in range(len(words))]
    names = list(columns or ())
    _check_names(name, names, dtypes or {})
    layout = replace(
        layout,
        columns=tuple(
            CsvColumn(index, types.string, b"", each) for index, each in enumerate(names)
        ),
        width=len(names),
    )
    cells, lines, bad = _parsed(name, text, start, layout, first_line)
    wanted = dict.fromkeys(texts, types.string) | dict(dtypes or {})
    if not len(lines) and not bad:
        raise value_error(
            f"{name} has no rows",
            expected="at least one line of data",
            hint="is this the right file, and does header= match it?",
        )
    layout = replace(
        layout,
        na_values=frozenset(each.encode() for each in na_values),
        missing_hint="fill the cell, or read the column as float32: missing is NaN then",
    )
    read = {}
    for each, column, values in zip(names, layout.columns, cells, strict=True):
        read[each], wrong = _converted(layout, column, values, wanted.get(each))
        for row, (typed, cell) in wrong.items():
            line = int(lines[row])
            bad.setdefault(line, wrong_cell(name, line, layout, typed, cell))
    if bad:
        reason = bad[min(bad)]
        if on_bad_rows == "error":
            raise ValueError(reason)
        warnings.warn(f"{name}: {len(bad)} bad rows skipped; the first: {reason}", stacklevel=3)
    kept = ~np.isin(lines, list(bad))
    return {each: values if kept.all() else values[kept] for each, values in read.items()}, lines[
        kept
    ]


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def _text(name: str, encoding: str) -> bytes:
    """A file's content as UTF-8."""
    with file_errors("read", name), open_file(name) as file:
        content: bytes = file.read()
    if _is_utf8(encoding):
        return content.removeprefix(BYTE_ORDER_MARK)  # parsing reports undecodable bytes
    try:
        return content.decode(encoding).encode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = 1 + len(LINE_END.findall(content, 0, error.start))
        raise value_error(
            f"{name}:{line}: byte {error.start} of the file is not valid {encoding}",
            received=repr(content[error.start : error.end]),
            hint="give the file's encoding, for example encoding='latin-1'",
        ) from error


def _parsed(
    name: str, text: bytes, start: int, layout: CsvLayout, first_line: int
) -> tuple[list[NDArray[Any]], Ints, dict[int, str]]:
    """The cells of each column as UTF-8, the line of each row, and errors by line."""
    parser, line = Parser(layout, name), first_line + len(LINE_END.findall(text, 0, start))
    parts: list[list[NDArray[Any]]] = [[np.empty(0, object)] * len(layout.columns)]
    lines = [np.empty(0, np.int64)]
    bad: dict[int, str] = {}
    while start < len(text):
        chunk = text[start : start + _CHUNK_BYTES]
        if start + len(chunk) < len(text):
            chunk = chunk[: end_of_records(layout, chunk)] or _whole_records(layout, text, start)
        parsed = parser.parse(chunk, line)
        parts.append(parsed.columns)
        lines.append(parsed.row_lines)
        bad.update((each.line, each.message) for each in parsed.bad)
        start += len(chunk)
        line += parsed.lines
    return [np.concatenate(each) for each in zip(*parts, strict=True)], np.concatenate(lines), bad


def _whole_records(layout: CsvLayout, text: bytes, start: int) -> bytes:
    """Whole records from `start` on; the first one is longer than a chunk."""
    size = _CHUNK_BYTES
    while start + size < len(text):
        size *= 2
        chunk = text[start : start + size]
        if end := end_of_records(layout, chunk):
            return chunk[:end]
    return text[start:]


def _converted(
    layout: CsvLayout, column: CsvColumn, texts: NDArray[Any], wanted: Any
) -> tuple[NDArray[Any], dict[int, tuple[CsvColumn, bytes]]]:
    """A column's values, and by row the cells that do not fit, with their column."""
    import pandas as pd

    is_text = wanted is not None and as_dtype(wanted) is types.string
    if is_text and layout.na_values <= {b""} and all(map(bytes.isascii, texts)):
        return texts, {}  # takes a fifth of the time on files like Criteo's
    codes, distinct = pd.factorize(texts)
    cells = Cells(distinct.tolist(), codes)
    candidates: list[Any] = [types.int64, types.float32, types.string]
    for dtype in candidates if wanted is None else [as_dtype(wanted)]:
        default = b"" if dtype is types.string else np.nan if dtype.is_floating else None
        typed = replace(column, dtype=dtype, default=default)
        values, wrong = column_values(layout, typed, cells)
        if not wrong:
            break
    return values, {row: (typed, cell) for row, cell in wrong.items()}


def _check_names(name: str, columns: Sequence[str], dtypes: Mapping[str, Any]) -> None:
    repeated = sorted({column for column in columns if list(columns).count(column) > 1})
    if repeated:
        raise value_error(
            f"{name}: duplicate column names",
            expected="unique names",
            received=repeated,
            hint="give names with columns=, and header=True to skip the file's own",
        )
    for column in dtypes:
        if column not in columns:
            raise value_error(
                f"{name}: dtypes names a column that the file does not have",
                expected=list(columns),
                received=repr(column),
                hint=did_you_mean(column, columns),
            )
