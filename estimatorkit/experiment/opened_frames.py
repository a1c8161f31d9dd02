"""Files as DataFrames, read by pandas as experiments read them: for `feature_columns.infer`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimatorkit._inferred_cells import looks
from estimatorkit.experiment import frame_files, sniffing, sources, tables

if TYPE_CHECKING:
    import pandas as pd


def open_frame(
    path: str, rows: int | None, texts: Collection[str] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """The first rows of a file, whose kind is known by its name, as CSV unless that says another.

    Args:
        path: the file; CSV files may be URLs.
        rows: how many; None: all.
        texts: columns of a CSV file that are text, whatever their cells. None: those of numbers if
            others have decimal commas, since 1.234 is 1234 then.

    Returns:
        It, and a line on each assumption on how the file is written.

    Raises:
        DataError: it cannot be read, or has no rows.
        OSError: there is no such file.
    """
    import pandas as pd

    if "://" in path:
        return _read_csv(sources.CsvSource(csv=(path,)), path, rows, texts or ()), []
    with open(path, "rb"):  # or an OSError
        source, _, assumed = sniffing.source_of(Path(path))
    if not isinstance(source, sources.CsvSource):
        with tables.decompressed(path) as name:
            is_parquet = isinstance(source, sources.ParquetSource)
            frame = pd.read_parquet(name) if is_parquet else frame_files.read(source, path, name)
        return frame[:rows], assumed
    frame = _read_csv(source, path, rows, texts or ())
    if texts is None:
        found = looks({str(name): frame[name] for name in frame}).values()
        numbers = [str(name) for name in frame if frame[name].dtype.kind == "f"]
        if numbers and any(each.format.decimal == "," for each in found):
            frame = _read_csv(source, path, rows, numbers)
    return frame, assumed


def _read_csv(source: Any, path: str, rows: int | None, texts: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    named: dict[str, Any] = {"header": 0 if source.header is not False else None}
    if source.columns:
        named["names"] = list(source.columns)
    frame: pd.DataFrame = pd.read_csv(
        path,
        sep=source.delimiter,
        encoding=source.encoding,
        skiprows=source.skip_rows,
        skipinitialspace=source.skip_initial_space,
        keep_default_na=False,
        na_values=list(source.na_values),
        dtype=dict.fromkeys(texts, str),
        nrows=rows,
        low_memory=False,
        **named,
    )
    return frame


__all__ = ["open_frame"]
