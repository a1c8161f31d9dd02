"""`ParquetDataset` and `ArrowDataset`: rows of Parquet and Arrow (Feather) files.

pyarrow (extra `arrow`) reads one row group (or record batch) at a time and converts it in slices. A
position is a file, a row group and a row.
"""

from __future__ import annotations

import functools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes
from estimatorkit.core.errors import (
    DataLossError,
    InvalidArgumentError,
    UnimplementedError,
    did_you_mean,
    type_error,
    value_error,
)
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator, State
from estimatorkit.data.execution.buffers import Columns, slice_rows
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.list_cells import MalformedCell, filler, lists_of_arrow, pad
from estimatorkit.data.parameters import Pending, integer
from estimatorkit.data.plan import UNKNOWN, Plan
from estimatorkit.data.readers.arrow_columns import arrow_spec, arrow_values, first_null
from estimatorkit.data.readers.record_files import RecordFilesIterator, file_names, names_iterator
from estimatorkit.data.spec import TensorSpec
from estimatorkit.storage.filesystem import file_errors, open_file

Missing: TypeAlias = Mapping[str, Any] | Literal["default"] | None
"""Replacements of nulls by column; "default": NaN for floats, b"" for strings; None: errors."""


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise UnimplementedError.explained(
            f"{what} needs pyarrow", received=str(error), hint="pip install 'estimatorkit[arrow]'"
        ) from error
    return pyarrow


# -- one open file


class _Groups(ABC):
    """An open file as a sequence of row groups."""

    what: str

    def __init__(self, name: str) -> None:
        arrow = _pyarrow(self.what)
        self._name = name
        self._file = open_file(name)
        self._finalizer = weakref.finalize(self, self._file.close)
        try:
            with self.reading():
                self._table = self._opened(arrow)
                _ = self.schema.names  # text in UTF-8, or an error
        except DataLossError:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Converts pyarrow's errors to the package's."""
        arrow = _pyarrow(self.what)
        try:
            with file_errors("read", self._name):
                try:
                    yield
                except OSError as error:  # of damaged pages pyarrow's have no number
                    if error.errno is None and "://" not in self._name:
                        raise self._damaged(error) from error
                    raise
        except (arrow.ArrowException, UnicodeDecodeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DataLossError:
        return DataLossError.explained(
            f"{self._name} is damaged, or not a file that {self.what} reads",
            received=str(error)[:500],
        )

    @abstractmethod
    def _opened(self, arrow: Any) -> Any:
        """Opens the table in `_file`."""

    @property
    @abstractmethod
    def schema(self) -> Any:
        """The Arrow schema of the columns."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of groups."""

    @abstractmethod
    def rows(self, group: int) -> int:
        """The number of rows of a group."""

    @abstractmethod
    def batches(self, group: int, columns: list[str], size: int) -> Iterator[Any]:
        """The rows of a group as Arrow record batches of at most `size` rows."""

    def close(self) -> None:
        """Closes the file; idempotent."""
        self._finalizer()


class _Parquet(_Groups):
    what = "ParquetDataset()"

    def _opened(self, arrow: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self._file)

    @property
    def schema(self) -> Any:
        return self._table.schema_arrow

    @property
    def count(self) -> int:
        return int(self._table.num_row_groups)

    def rows(self, group: int) -> int:
        return int(self._table.metadata.row_group(group).num_rows)

    def batches(self, group: int, columns: list[str], size: int) -> Iterator[Any]:
        return iter(self._table.iter_batches(size, row_groups=[group], columns=columns))


class _Arrow(_Groups):
    what = "ArrowDataset()"

    def _opened(self, arrow: Any) -> Any:
        return arrow.ipc.open_file(self._file)

    @property
    def schema(self) -> Any:
        return self._table.schema

    @property
    def count(self) -> int:
        return int(self._table.num_record_batches)

    def rows(self, group: int) -> int:
        return int(self._table.get_batch(group).num_rows)

    def batches(self, group: int, columns: list[str], size: int) -> Iterator[Any]:
        batch = self._table.get_batch(group).select(columns)
        # pyarrow does not validate offsets, which may point outside the memory.
        batch.validate(full=True)
        starts = range(0, batch.num_rows, size)
        return (batch.slice(start, size) for start in starts)


class TableFile:
    """An open table file as rows of columns (see `RecordFile`).

    Args:
        open_groups: opens a file.
        offset: where to begin: 0, or a previous value of the property.

    Raises:
        InvalidArgumentError: a column is missing or has another type.
    """

    def __init__(
        self, open_groups: Callable[[str], _Groups], layout: TableLayout, name: str, offset: Any = 0
    ) -> None:
        self._layout = layout
        self._name = name
        self._groups = open_groups(name)
        _check_schema(name, self._groups, layout)
        place = offset or {"group": 0, "row": 0}
        self._group = place["group"]
        self._begin(place["row"])

    def _begin(self, row: int) -> None:
        """Seeks to a row of the group."""
        self._row = row
        self._batches: Iterator[Any] | None = None
        self._block: Columns = []
        self._used = 0  # rows of the block

    @property
    def offset(self) -> State:
        """The position of the next row."""
        return {"group": self._group, "row": self._row}

    def read(self, n: int) -> Columns:
        """Returns columns of the next 1 to `n` rows; an empty list at the end."""
        while self._group < self._groups.count:
            if self._block and self._used < len(self._block[0]):
                used = self._used
                self._used = min(used + n, len(self._block[0]))
                self._row += self._used - used
                return slice_rows(self._block, used, self._used)
            if not self._load():
                self._group += 1
                self._begin(0)
        return []

    def skip(self, n: int) -> int:
        """Skips up to `n` rows; returns how many, 0 only at the end."""
        skipped = 0
        while skipped < n and self._group < self._groups.count:
            with self._groups.reading():
                left = self._groups.rows(self._group) - self._row
            count = min(left, n - skipped)
            skipped += count
            if count == left:
                self._group += 1
                self._begin(0)
            else:
                self._begin(self._row + count)
        return skipped

    def _load(self) -> bool:
        """Converts the next rows of the group."""
        layout, passed = self._layout, 0
        with self._groups.reading():
            if self._batches is None:
                self._batches = self._groups.batches(
                    self._group, list(layout.names), layout.batch_rows
                )
                passed = self._row
            for batch in self._batches:
                if passed < batch.num_rows:
                    rest = batch.slice(passed)
                    self._block = [
                        self._column(rest.column(name), name, spec) for name, spec in layout.pairs()
                    ]
                    self._used = 0
                    return True
                passed -= batch.num_rows
        return False

    def _column(self, values: Any, name: str, spec: TensorSpec) -> NDArray[Any]:
        if name in self._layout.lengths:
            return self._lists(values, name)
        row = first_null(values)
        if row is not None:
            values = self._filled(values, name, spec, self._row + row)
        return arrow_values(values, spec)

    def _lists(self, values: Any, name: str) -> NDArray[Any]:
        try:
            lists = lists_of_arrow(values)
        except MalformedCell as error:
            raise InvalidArgumentError.explained(
                f"{self._name}: column {name!r} has a list with a null in row "
                f"{self._row + error.row} of row group {self._group}",
                expected=error.expected,
                received=error.received,
            ) from error
        return pad(lists, filler(lists.values.dtype), self._layout.lengths[name])

    def _filled(self, values: Any, name: str, spec: TensorSpec, row: int) -> Any:
        missing = self._layout.missing
        default: Any = None
        if missing == "default" and not spec.shape.rank:
            default = np.nan if spec.dtype.is_floating else None
            default = b"" if spec.dtype is dtypes.string else default
        elif isinstance(missing, Mapping):
            default = missing.get(name)
        if default is None or spec.shape.rank:
            raise InvalidArgumentError.explained(
                f"{self._name}: column {name!r} has a null in row {row} of row group {self._group}",
                expected=spec.dtype.name,
                received="null",
                hint=f"give a replacement: missing={{{name!r}: ...}}",
            )
        import pyarrow as arrow

        kind = values.type.value_type if arrow.types.is_dictionary(values.type) else values.type
        values = values.cast(kind)
        if arrow.types.is_string(kind) or arrow.types.is_large_string(kind):
            default = default.decode() if isinstance(default, bytes) else default
        return values.fill_null(arrow.scalar(default, kind))

    def close(self) -> None:
        """Closes the file; idempotent."""
        self._begin(self._row)
        self._groups.close()


@dataclass(frozen=True)
class TableLayout:
    """The columns to read from each file.

    Attributes:
        names: column names, sorted.
        missing: the replacements of nulls.
        batch_rows: rows converted at a time.
        lengths: of columns of lists, by name.
    """

    names: tuple[str, ...]
    specs: tuple[TensorSpec, ...]
    missing: Missing
    batch_rows: int
    lengths: Mapping[str, int]

    def pairs(self) -> Iterator[tuple[str, TensorSpec]]:
        """Pairs of column name and spec."""
        return zip(self.names, self.specs, strict=True)


def _check_schema(name: str, groups: _Groups, layout: TableLayout) -> None:
    schema = groups.schema
    for column, spec in layout.pairs():
        _check_column(name, schema, column)
        kind = schema.field(column).type
        try:
            found = _spec(kind, column, layout.lengths.get(column))
        except TypeError:
            found = None
        if found != spec:
            raise InvalidArgumentError.explained(
                f"{name}: column {column!r} does not have the same type as in the first file",
                expected=spec,
                received=f"{found or 'no tensor'} ({kind})",
                hint="write all files with one schema: table.cast(schema)",
            )


def _spec(kind: Any, where: str, length: int | None) -> TensorSpec:
    """The spec of a value; `length`: of padded lists.

    Raises:
        TypeError: the type has no tensor equivalent.
    """
    if length is None:
        return arrow_spec(kind, where)
    if not hasattr(kind, "value_field"):
        raise type_error(
            f"{where} has a length, but holds no lists", expected="lists", received=str(kind)
        )
    inner = arrow_spec(kind.value_type, where)
    return TensorSpec([length, *inner.shape.as_list()], inner.dtype)


def _check_column(name: str, schema: Any, column: str) -> None:
    if column not in schema.names:
        raise InvalidArgumentError.explained(
            f"{name}: there is no column {column!r}",
            expected=f"one of {schema.names}",
            received=repr(column),
            hint=did_you_mean(column, schema.names),
        )


# -- datasets


class TableIterator(RecordFilesIterator):
    """Rows of table files."""

    def _columns(self, records: list[Any]) -> Columns:
        return records


@dataclass(frozen=True, eq=False)
class TableRows(Plan):
    """Rows of table files as dicts.

    Args:
        filenames: strings `(n,)`.
        kind: opens a file.
    """

    filenames: Any
    layout: TableLayout
    kind: type[_Groups]

    @property
    def element_spec(self) -> dict[str, TensorSpec]:
        return dict(self.layout.pairs())

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        open_file = functools.partial(TableFile, self.kind, self.layout)
        return TableIterator(names_iterator(self.filenames, seeds), open_file)


def _plan(
    kind: type[_Groups],
    filenames: Any,
    columns: Sequence[str] | None,
    batch_rows: int,
    missing: Missing,
    lengths: Mapping[str, int] | None,
) -> TableRows:
    _pyarrow(kind.what)
    names = file_names(filenames, kind.what)
    if isinstance(names, (Pending, Plan)):
        raise type_error(
            f"{kind.what} reads the first file when called",
            expected="file names as Python strings",
            received=filenames,
        )
    if not len(names):
        raise value_error(f"{kind.what} needs at least one file", received=filenames)
    first = names[0].decode("utf-8", "surrogateescape")
    groups = kind(first)
    schema = groups.schema
    groups.close()
    chosen = list(schema.names if columns is None else columns)
    repeated = sorted({name for name in chosen if chosen.count(name) > 1})
    if repeated or not chosen:
        raise value_error(f"{kind.what}: columns", expected="unique names", received=chosen)
    for name in chosen:
        _check_column(first, schema, name)
    if not isinstance(missing, Mapping) and missing not in (None, "default"):
        raise value_error(
            f"{kind.what}: missing",
            expected="None, 'default', or a dict by column name",
            received=repr(missing),
        )
    for argument, given in (("missing", missing), ("lengths", lengths)):
        for name in given if isinstance(given, Mapping) else ():
            if name not in chosen:
                raise value_error(
                    f"{kind.what}: {argument} names a column that is not read",
                    expected=f"one of {chosen}",
                    received=repr(name),
                    hint=did_you_mean(name, chosen),
                )
    chosen.sort()
    sizes = {
        name: integer(f"{kind.what}: lengths[{name!r}]", length, least=1)
        for name, length in (lengths or {}).items()
    }
    specs = [
        _spec(schema.field(name).type, f"{first}: column {name!r}", sizes.get(name))
        for name in chosen
    ]
    size = integer(f"{kind.what}: batch_rows", batch_rows, least=1)
    layout = TableLayout(tuple(chosen), tuple(specs), missing, size, sizes)
    return TableRows(names, layout, kind)


class ParquetDataset(Dataset):
    """Rows of Parquet files as dicts by column name, one file after the other.

    Strings are `bytes`; fixed-size lists of numbers are vectors. Needs pyarrow (extra `arrow`).

    Args:
        filenames: a name or a list of names; may be URLs (`gs://...`).
        columns: the columns to read; None for all.
        batch_rows: rows decoded at a time; bounds memory and does not affect the elements.
        missing: replacements of nulls: a dict by column name, or "default": NaN for floats and b""
            for strings. A null in any other column is an error.
        lengths: values per row of columns of lists, by name: shorter rows are padded with b"", -1
            or 0.0, of longer ones the last values are kept. Columns of lists need one.

    Raises:
        NotFoundError: a file does not exist.
        InvalidArgumentError: a column is missing, has another type than in the first file, or holds
            a null; the message names file, column and row.
        TypeError: a column's type has no tensor equivalent.
        DataLossError: a file is damaged.
    """

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        missing: Missing = None,
        lengths: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(_plan(_Parquet, filenames, columns, batch_rows, missing, lengths))


class ArrowDataset(Dataset):
    """Rows of Arrow files (IPC file format, Feather version 2); see `ParquetDataset`."""

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        missing: Missing = None,
        lengths: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(_plan(_Arrow, filenames, columns, batch_rows, missing, lengths))
