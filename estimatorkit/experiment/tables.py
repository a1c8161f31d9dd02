"""Tables: the data of sources.

A table is a dict of columns, NumPy arrays of equal length (floats, integers, or text objects), that
knows where its rows are in their files. `read_source` reads one with the table `READERS`;
`examples` extracts features and labels.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import functools
import glob
import gzip
import itertools
import json
import lzma
import os
import re
import shutil
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as ek
from estimatorkit.core.errors import DataLossError, InvalidArgumentError, NotFoundError
from estimatorkit.data.csv import read_csv_chunks
from estimatorkit.data.list_cells import Lists, lists_of_arrow
from estimatorkit.experiment import frame_files, lists, sources
from estimatorkit.experiment.document import suggestion
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.formats import parsers
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.sections import Model
from estimatorkit.storage.checkpoint_state import warn_once


class Table(dict[str, NDArray[Any]]):
    """Columns of equal length.

    Args:
        columns: arrays by name.
        place: describes where a row is in its file, for messages; by default by its number.
        fold: the fold of an ensemble that all rows are (see `premade.folds`); None: they are new.
    """

    def __init__(
        self,
        columns: Mapping[str, NDArray[Any]] = {},
        place: Callable[[int], str] | None = None,
        fold: int | None = None,
    ) -> None:
        super().__init__(columns)
        self.fold = fold
        self.place = place or (lambda row: f"example {row + 1}")

    def take(self, rows: Any) -> Table:
        """The rows of an index array, a mask or a slice."""
        numbers = np.arange(row_count(self))[rows]
        return Table(
            {name: column[rows] for name, column in self.items()},
            lambda row: self.place(int(numbers[row])),
            self.fold,
        )


def source_name(source: Any) -> str:
    """A data set's name, or the first file, relative to the working directory."""
    if isinstance(source, str):
        return source
    if isinstance(source, sources.DataSetSource):
        return source.dataset
    names = _files_of(source)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (names[0] if "://" in names[0] else os.path.relpath(names[0])) + more


def row_count(table: Table) -> int:
    """The number of rows of a table."""
    return len(next(iter(table.values()))) if table else 0


def read_source(source: Any) -> Table:
    """Reads a data set or files; the last table is cached until its files change.

    Raises:
        DataError: a file is missing, has no rows, or is not a table.
    """
    if isinstance(source, str):
        return _data_set(source)
    kind: Any = type(source)  # not Hashable for mypy
    table = _read(kind, source.model_dump_json(), file_versions(source))
    rows = source.rows
    return table if rows is None else table.take(slice(rows))


@functools.lru_cache(maxsize=1)
def _read(kind: type[Model], text: str, versions: Hashable) -> Table:
    """A table, cached since training, evaluation and column inference share it."""
    source = kind.model_validate_json(text)
    table = _split_lists(source, READERS[kind](source))
    for column in table.values():
        column.setflags(write=False)
    return table


def _split_lists(source: Any, table: Table) -> Table:
    return Table(lists.split_columns(source, table, table.place, source_name(source)), table.place)


def file_versions(source: Any) -> Hashable:
    """A cache key of a source's files: names, sizes, times; never equal for URLs."""
    if isinstance(source, str | sources.DataSetSource):
        return None
    names = _files_of(source)
    if any("://" in name for name in names):
        return object()
    there = [(name, os.stat(name)) for name in names if os.path.exists(name)]
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in there)


# -- data sets


def _frame(frame: Any) -> Table:
    """A DataFrame as a table: missing values are NaN among numbers and '' among text."""
    table = Table()
    for name in frame.columns:
        column = frame[name]
        numbers = column.dtype.kind in "biuf"
        table[str(name)] = np.asarray(
            column if numbers else column.astype(object).where(column.notna(), "")
        )
    return table


def _labelled(part: tuple[Any, Any], label: str, name: str | None = None) -> Table:
    values, labels = part
    features = {name: np.asarray(values)} if name else _frame(values)
    return Table({**features, label: np.asarray(labels)})


# How the parts of a data set, (training, test) or one frame, become tables.
_PARTS: dict[str, Callable[[Any], Table]] = {
    "iris": lambda part: _labelled(part, "Species"),
    "digits": lambda part: _labelled(part, "label", "image"),
    "mnist": lambda part: _labelled(part, "label", "image"),
    "fashion_mnist": lambda part: _labelled(part, "label", "image"),
}
_SUFFIXES = {"_training": 0, "_train": 0, "_test": 1}


def _data_set(name: str, **given: Any) -> Table:
    ending = next((each for each in _SUFFIXES if name.endswith(each)), "")
    base = name.removesuffix(ending)
    loaded = ek.datasets.catalogue()[base].load(**given)
    return _PARTS.get(base, _frame)(loaded[_SUFFIXES[ending]] if ending else loaded)


# -- files


def _files_of(source: Any) -> list[str]:
    """The files of a source, with wildcards expanded."""
    kind = next(name for name, each in sources.FILE_SOURCES.items() if isinstance(source, each))
    found: list[str] = []
    for name in getattr(source, kind):
        if "://" in name or not glob.has_magic(name):
            found.append(name)
            continue
        matching = sorted(glob.glob(name, recursive=True))
        if not matching:
            raise DataError.explained(
                f"{os.path.relpath(name)}: no file matches",
                expected="at least one; paths are relative to the YAML file's folder",
            )
        found += matching
    return found


def _missing_file(name: str, kind: str) -> DataError:
    shown, path = os.path.relpath(name), Path(name)
    near = sorted(os.path.relpath(each) for each in path.parent.glob(f"*{path.suffix}"))
    return DataError.explained(
        f"{shown}: no such file",
        expected=f"a {kind} file; in a configuration, relative to the YAML file's folder",
        hint=suggestion(shown, near) or (f"there is {', '.join(near[:5])}." if near else None),
    )


def _joined(parts: Sequence[Table], names: Sequence[str]) -> Table:
    """Concatenates the rows of several files."""
    for name, part in zip(names, parts, strict=True):
        if list(part) != list(parts[0]):
            raise DataError.explained(
                f"{os.path.relpath(name)}: other columns than in {os.path.relpath(names[0])}",
                expected=", ".join(parts[0]),
                received=", ".join(part),
            )
    ends = np.cumsum([row_count(part) for part in parts])

    def place(row: int) -> str:
        part = int(np.searchsorted(ends, row, "right"))
        return parts[part].place(row - int(ends[part]) + row_count(parts[part]))

    return Table({name: lists.joined([part[name] for part in parts]) for name in parts[0]}, place)


def read_chunks(source: Any, size: int = 1 << 24) -> Iterator[Table]:
    """Reads files in chunks.

    Args:
        size: bytes of CSV files; of other files rows of about 256 bytes.

    Raises:
        DataError: a file is missing or damaged, or has no rows.
    """
    if isinstance(source, sources.CsvSource):
        for name in _files_of(source):
            for table in _csv_chunks(source, name, _dtypes(source), size):
                yield _split_lists(source, _with_defaults(source, table))
    elif isinstance(source, sources.ParquetSource):
        for name in _files_of(source):
            with _parquet_errors(name):
                for batch in _parquet_file(name).iter_batches(size >> 8, columns=source.columns):
                    yield _split_lists(source, _of_arrow(source, name, batch))
    else:
        table = read_source(source)
        for start in range(0, row_count(table), size >> 8):
            yield table.take(slice(start, start + (size >> 8)))


def read_file(path: str | os.PathLike[str], like: Any = None) -> Table:
    """Reads a file (see `source_of`)."""
    return read_source(source_of(path, like))


def source_of(path: str | os.PathLike[str], like: Any = None, without: Collection[str] = ()) -> Any:
    """The source of a file: its kind by its name, read as another of that kind.

    Args:
        like: a source whose delimiter, names of columns, features and so on apply; of one of
            another kind only the separators of lists.
        without: columns that the file may lack, such as labels.

    Raises:
        DataError: the file has no columns that are known.
    """
    name = os.fspath(path)
    suffixes = Path(name).suffixes
    key = next(
        (key for each, key in _KINDS.items() if each in suffixes),
        "csv",
    )
    kind = sources.FILE_SOURCES[key]
    if isinstance(like, kind):
        found: Any = like.model_copy(update={key: (name,), "rows": None})
        if not isinstance(found, sources.CsvSource):
            return found
        there = {
            key: {
                column: each
                for column, each in getattr(found, key).items()
                if column not in without
            }
            for key in ("dtypes", "lists")
        }
        found = found.model_copy(update=there)
        if found.columns and os.path.isfile(name):
            return _without_columns(found, name, without)
        return found
    if key == "tfrecord":
        raise DataError.explained(
            f"{name}: the features of the records are unknown",
            expected="a model that was trained on TFRecord files",
        )
    separated = {
        column: each
        for column, each in getattr(like, "lists", {}).items()
        if each.separator is not None and column not in without
    }
    return kind.model_validate({key: (name,), "lists": separated})


def _without_columns(source: sources.CsvSource, name: str, some: Collection[str]) -> Any:
    """Drops columns from the source if the file's first line has only as many as the others."""
    columns = source.columns or ()
    others = tuple(column for column in columns if column not in some)
    with decompressed(name) as path, open(path, encoding=source.encoding, newline="") as stream:
        told = itertools.islice(stream, source.skip_rows, None)
        first = next(csv.reader(told, delimiter=source.delimiter), [])
    fits = len(first) == len(others) < len(columns)
    return source.model_copy(update={"columns": others}) if fits else source


_KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".xlsx": "excel",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}


def _csv(source: Any) -> Table:
    names = _files_of(source)
    texts = _dtypes(source)
    parts = [_csv_file(source, name, texts) for name in names]
    mixed = {
        column
        for column in parts[0]
        if len({part[column].dtype.kind == "O" for part in parts if column in part}) > 1
    }
    if mixed:  # numbers in one file, text in another: read as text, unchanged
        texts |= dict.fromkeys(mixed, ek.string)
        parts = [_csv_file(source, name, texts) for name in names]
    return _with_defaults(source, _joined(parts, names))


def _dtypes(source: Any) -> dict[str, Any]:
    """The dtypes of columns that are known; cells of lists are text, though all are one number."""
    return dict(source.dtypes) | dict.fromkeys(source.lists, ek.string)


def _with_defaults(source: Any, table: Table) -> Table:
    for column, value in (source.defaults or {}).items():
        if column not in table:
            raise DataError.explained(
                f"{source_name(source)}: there is no column {column!r} to have a default",
                expected=f"one of {', '.join(table)}",
                hint=suggestion(column, list(table)),
            )
        table[column] = _filled(table[column], value)
    return table


def _csv_file(source: Any, name: str, dtypes: dict[str, Any]) -> Table:
    (table,) = _csv_chunks(source, name, dtypes, None)
    return table


def _csv_chunks(
    source: Any, name: str, dtypes: dict[str, Any], chunk_bytes: int | None
) -> Iterator[Table]:
    if "://" not in name and not Path(name).is_file():
        raise _missing_file(name, "CSV")

    def place(lines: Any, row: int) -> str:
        return f"{os.path.relpath(name)}:{lines[row]}"

    unpacked = chunk_bytes is not None and Path(name).suffix == ".gz"  # as it is read
    with contextlib.nullcontext(name) if unpacked else decompressed(name) as path:
        try:
            chunks = read_csv_chunks(
                path,
                compression="GZIP" if unpacked else None,
                columns=source.columns,
                dtypes=dtypes,
                header="infer" if source.header is None else source.header,
                skip_rows=source.skip_rows,
                na_values=source.na_values,
                delimiter=source.delimiter,
                skip_initial_space=source.skip_initial_space,
                texts=source.texts,
                encoding=source.encoding,
                on_bad_rows=source.on_bad_rows,
                chunk_bytes=chunk_bytes,
            )
            skips = source.on_bad_rows == "skip"
            for columns, lines in _with_notes(chunks) if skips else chunks:
                yield Table(columns, functools.partial(place, lines))
        except (ValueError, InvalidArgumentError, NotFoundError, DataLossError) as error:
            told = re.sub(r"\b(encoding|columns|header)=('[^']*'|True)?", r"\1: \2", str(error))
            told = told.replace(path, name)
            raise DataError(told if name in told else f"{name}: {told}") from error


def _with_notes(chunks: Iterator[Any]) -> Iterator[Any]:
    """The chunks of a file; what is said of rows that are skipped is logged, once."""
    while True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = next(chunks, None)
        for each in caught:
            warn_once(str(each.message).splitlines()[0])
        if found is None:
            return
        yield found


_COMPRESSED: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}


@contextmanager
def decompressed(name: str) -> Iterator[str]:
    """The path of a file, or of its decompressed content if its name has a compression suffix."""
    opened = _COMPRESSED.get(Path(name).suffix)
    if opened is None or "://" in name:
        yield name
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).stem
        try:
            with opened(name) as packed, path.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise DataError(f"{os.path.relpath(name)} cannot be decompressed: {error}") from error
        yield str(path)


def _filled(column: NDArray[Any], value: float | str) -> NDArray[Any]:
    if column.dtype.kind == "f":
        return np.where(np.isnan(column), value, column)
    if column.dtype.kind != "O":
        return column
    filled = column.copy()
    text = value if isinstance(value, str) else f"{value:.15g}"  # 3, not 3.0
    filled[[each in (b"", "") for each in column]] = text.encode()
    return filled


def _parquet(source: Any) -> Table:
    names = _files_of(source)
    parts = []
    for name in names:
        columns = source.columns and list(source.columns)
        with _parquet_errors(name):
            parts.append(_of_arrow(source, name, _parquet_file(name).read(columns)))
    return _joined(parts, names)


def _of_arrow(source: Any, name: str, columns: Any) -> Table:
    """An Arrow table or batch as a table, without what pandas noted about it but for its index."""
    columns = columns.drop_columns(_index_columns(columns.schema))
    for column, count in Counter(columns.schema.names).items():
        if count > 1:
            raise DataError(f"{os.path.relpath(name)} has {count} columns {column!r}.")
    columns = columns.replace_schema_metadata(None)
    listed = [field.name for field in columns.schema if _is_list(field.type)]
    table = _frame(columns.drop_columns(listed).to_pandas())
    for column in listed:
        with lists.located(column, table.place, os.path.relpath(name)):
            table[column] = lists.padded(source, column, lists_of_arrow(columns[column]))
    return Table({column: table[column] for column in columns.schema.names}, table.place)


def _is_list(kind: Any) -> bool:
    import pyarrow

    return any(
        is_list(kind)
        for is_list in (
            pyarrow.types.is_list,
            pyarrow.types.is_large_list,
            pyarrow.types.is_fixed_size_list,
        )
    )


@contextmanager
def _parquet_errors(name: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{os.path.relpath(name)} cannot be read: {error}") from error


def _index_columns(schema: Any) -> list[str]:
    """The columns that pandas wrote for a DataFrame's index."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except (ValueError, RecursionError):
        return []
    listed = noted.get("index_columns") if isinstance(noted, dict) else None
    named = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    return [name for name in schema.names if name in named]


def _parquet_file(name: str) -> Any:
    if "://" not in name and not Path(name).is_file():
        raise _missing_file(name, "Parquet")
    try:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(name)
    except ImportError as error:
        raise DataError.explained(
            "reading Parquet files needs pyarrow", hint="pip install pyarrow."
        ) from error
    except ValueError as error:
        raise DataError(f"{os.path.relpath(name)}: {error}") from error


def _tfrecord(source: Any) -> Table:
    names = _files_of(source)
    serialized: list[bytes] = []
    for name in names:
        if "://" not in name and not Path(name).is_file():
            raise _missing_file(name, "TFRecord")
        serialized += ek.python_io.tf_record_iterator(name, source.compression)
        if source.rows is not None and len(serialized) >= source.rows:
            break
    if not serialized:
        raise DataError(f"{source_name(source)} holds no records.")
    spec = {
        name: ek.io.VarLenFeature(getattr(ek, each.dtype))
        if name in source.lists and source.lists[name].separator is None
        else ek.io.FixedLenFeature(each.shape, getattr(ek, each.dtype), each.default)
        for name, each in source.features.items()
    }
    with ek.Graph().as_default(), ek.Session() as session:
        records = ek.placeholder(ek.string, [None])
        parsed = ek.io.parse_example(records, spec)
        columns = session.run(parsed, {records: np.array(serialized, dtype=object)})
    table = Table()
    for name, column in columns.items():
        if name in source.lists and source.lists[name].separator is None:
            counts = np.bincount(column.indices[:, 0], minlength=len(serialized))
            table[name] = lists.padded(source, name, Lists(column.values, counts))
        else:
            table[name] = column
    return table


def _by_pandas(source: Any) -> Table:
    names = _files_of(source)
    parts = []
    for name in names:
        if not Path(name).is_file():
            raise _missing_file(name, type(source).__name__.removesuffix("Source"))
        with decompressed(name) as path:
            parts.append(_frame(frame_files.read(source, name, path)))
    return _joined(parts, names)


READERS: dict[type[Model], Callable[[Any], Table]] = {
    **dict.fromkeys(frame_files.READERS, _by_pandas),
    sources.CsvSource: _csv,
    sources.ParquetSource: _parquet,
    sources.TFRecordSource: _tfrecord,
    sources.DataSetSource: lambda source: _data_set(source.dataset, **source.given),
}


# -- columns


def formatted(experiment: Experiment, table: Table, names: Iterable[str]) -> Table:
    """The table with some columns read as `data.formats` says."""
    known = parsers(experiment.data.formats)
    read = {
        name: known[name].values(table[name]) for name in names if name in known and name in table
    }
    return Table({**table, **read}, table.place) if read else table


def missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of missing values: NaN among numbers, '' among text."""
    if column.dtype.kind == "f":
        found: NDArray[np.bool_] = np.isnan(column.reshape(len(column), -1)).any(axis=1)
        return found
    if column.dtype.kind in "OUS" and column.ndim == 1:
        return np.array([each in (b"", "") for each in column], bool)
    return np.zeros(len(column), bool)


def require(
    table: Table, names: Iterable[str], origin: str, unused: Callable[[Table], Iterable[str]]
) -> None:
    """Checks that a table has the named columns.

    Raises:
        DataError: one is missing.
    """
    names = list(names)
    absent = [name for name in names if name not in table]
    if absent:
        others = list(unused(table))
        mark = next(
            (each for each in ";\t|" if len(table) == 1 and each in next(iter(table))), None
        )
        if mark is not None:
            raise DataError.explained(
                f"{origin}: the first line has no delimiter",
                expected="names with commas between them",
                received=next(iter(table)),
                hint=f"give it beside csv: {{csv: ..., delimiter: {json.dumps(mark)}}}.",
            )
        hints = [f"{name}: {near}" for name in absent if (near := suggestion(name, others))]
        raise DataError.explained(
            f"{origin}: no column {', '.join(repr(name) for name in absent)}",
            expected=f"the columns {', '.join(names)}",
            received=f"the columns {', '.join(table)}",
            hint="; ".join(hints) or "the first line of a CSV file names its columns.",
        )
