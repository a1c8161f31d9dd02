"""Files that pandas reads: JSON lines, Excel, SQLite."""

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


def read(source: Any, name: str, path: str) -> Any:
    """Returns a file of a source as a DataFrame.

    Args:
        source: says how it is read.
        name: the file, for messages.
        path: the file, or its decompressed content.

    Raises:
        DataError: it cannot be read, has no rows, or no such table.
    """
    shown = os.path.relpath(name)
    try:
        frame = READERS[type(source)](source, path)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile, sqlite3.Error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{shown} cannot be read: {error}") from error
    if not len(frame):
        raise DataError(f"{shown} has no rows.")
    return frame


def _json(source: Any, name: str) -> Any:
    import pandas as pd

    with open(name, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is no object of names and values")
    return pd.DataFrame(rows)


def _excel(source: Any, name: str) -> Any:
    import pandas as pd

    try:
        with pd.ExcelFile(name, engine="openpyxl") as book:
            sheet = _chosen(name, "sheet", source.sheet, [str(each) for each in book.sheet_names])
            return pd.read_excel(book, sheet_name=sheet, keep_default_na=False, na_values=[""])
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
        table = _chosen(name, "table", source.table, names).replace('"', '""')
        return pd.read_sql_query(f'SELECT * FROM "{table}"', connection)  # noqa: S608 (quoted)


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


READERS: dict[type[Model], Callable[[Any, str], Any]] = {
    sources.JsonSource: _json,
    sources.ExcelSource: _excel,
    sources.SqliteSource: _sqlite,
}

__all__ = ["READERS", "read"]
