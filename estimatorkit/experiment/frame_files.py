"""Files that are read as DataFrames: JSON lines, Excel, SQLite, DuckDB."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from typing import Any

from estimatorkit.experiment import sources
from estimatorkit.experiment.document import suggestion
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.sections import Model


def read(source: Any, name: str, path: str, **options: Any) -> Any:
    """Returns a file of a source as a DataFrame.

    Args:
        source: says how it is read.
        name: the file, for messages.
        path: the file, or its decompressed content.
        options: of `pandas.read_excel`.

    Raises:
        DataError: it cannot be read, has no rows, or no such table.
    """
    shown = os.path.relpath(name)
    try:
        frame = READERS[type(source)](source, path, **options)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile, sqlite3.Error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{shown} cannot be read: {error}") from error
    if not len(frame):
        raise DataError(f"{shown} has no rows.")
    return frame


def first_rows(source: sources.ExcelSource, path: str, count: int) -> list[list[str]]:
    """The first rows of a sheet as text, also those above its names; '' is an empty cell."""
    given = source.model_copy(update={"skip_rows": 0})
    frame = read(given, path, path, header=None, nrows=count, dtype=str)
    rows: list[list[str]] = frame.fillna("").astype(str).to_numpy().tolist()
    return rows


def _json(source: Any, name: str) -> Any:
    import pandas as pd

    with open(name, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is no object of names and values")
    nested = any(isinstance(value, dict) for row in rows for value in row.values())
    return pd.json_normalize(rows) if nested else pd.DataFrame(rows)


def _excel(source: Any, name: str, **options: Any) -> Any:
    import pandas as pd

    try:
        with pd.ExcelFile(name, engine="openpyxl") as book:
            sheet = _chosen(name, "sheet", source.sheet, [str(each) for each in book.sheet_names])
            frame = pd.read_excel(
                book,
                sheet_name=sheet,
                skiprows=source.skip_rows,
                keep_default_na=False,
                na_values=[""],
                **options,
            )
        return frame if options else frame.dropna(how="all")
    except ImportError as error:
        raise DataError.explained(
            "reading Excel files needs openpyxl", hint="pip install 'estimatorkit[excel]'."
        ) from error


def _sqlite(source: Any, name: str) -> Any:
    import pandas as pd

    listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    path = os.path.abspath(name)
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        names = [each for (each,) in connection.execute(listed)]
        table = _quoted(name, source, names)
        return pd.read_sql_query(f'SELECT * FROM "{table}"', connection)  # noqa: S608 (quoted)


def _duckdb(source: Any, name: str) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise DataError.explained(
            "reading DuckDB databases needs duckdb", hint="pip install 'estimatorkit[duckdb]'."
        ) from error
    listed = "SELECT table_name FROM information_schema.tables ORDER BY table_name"
    try:
        with duckdb.connect(name, read_only=True) as connection:
            names = [each for (each,) in connection.execute(listed).fetchall()]
            return connection.table(f'"{_quoted(name, source, names)}"').df()
    except duckdb.Error as error:
        raise ValueError(str(error).partition("\n")[0]) from error


def _quoted(file: str, source: Any, names: list[str]) -> str:
    """The table of a source, for use between quotes."""
    return _chosen(file, "table", source.table, names).replace('"', '""')


def _chosen(file: str, kind: str, given: str | None, names: list[str]) -> str:
    """The sheet or table that is named, or the only one; of sheets, the first."""
    if given in names or (given is None and names and (kind == "sheet" or len(names) == 1)):
        return given or names[0]
    raise DataError.explained(
        f"{os.path.relpath(file)}: which {kind}?"
        if given is None
        else f"{file}: no {kind} {given!r}",
        expected=f"{kind}: one of {', '.join(names)}",
        hint=suggestion(given or "", names),
    )


READERS: dict[type[Model], Callable[..., Any]] = {
    sources.JsonSource: _json,
    sources.ExcelSource: _excel,
    sources.SqliteSource: _sqlite,
    sources.DuckdbSource: _duckdb,
}

__all__ = ["READERS", "first_rows", "read"]
