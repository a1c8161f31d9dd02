"""`CsvDataset` and `make_csv_dataset`: CSV files as datasets of rows or of batches of columns."""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from estimatorkit.core import dtypes
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import (
    InvalidArgumentError,
    did_you_mean,
    type_error,
    value_error,
)
from estimatorkit.core.tensor import Tensor
from estimatorkit.data import plan as plans
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.parameters import Pending, parameter
from estimatorkit.data.readers.csv_files import CsvFormat, CsvRows, SkippedRows
from estimatorkit.data.readers.csv_inference import CsvText, infer_dtypes, infer_names
from estimatorkit.data.readers.csv_layout import CsvColumn, CsvLayout
from estimatorkit.data.readers.list_files import matching
from estimatorkit.data.readers.record_files import byte_count, compression, file_names
from estimatorkit.data.spec import TensorSpec, flatten, pack

OnBadRows = Literal["error", "skip"]

_ALLOWED = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


class CsvDataset(Dataset):
    """Rows of CSV files as tuples of scalars (`tf.data.experimental.CsvDataset`, RFC 4180).

    Blank lines and a byte order mark are skipped. A position is a file, a byte and a row, so
    resuming mid-epoch is a seek.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names. Names may be
            URLs (`gs://...`).
        record_defaults: one entry per column to read: a dtype (float32, float64, int32, int64 or
            string) if the cell is required, or the default for missing cells, possibly as a
            single-element list or tensor.
        compression_type: None, '', 'GZIP' or 'ZLIB'.
        buffer_size: has no effect: chunks are 1 MiB.
        header: whether to skip the first record of each file.
        field_delim: the character between cells.
        use_quote_delim: whether cells may be quoted.
        na_value: a text that marks a missing cell, in addition to the empty one.
        select_cols: increasing indices of the columns to read; all by default.
        exclude_cols: indices of the columns not to read, instead of `select_cols`.
        on_bad_rows: "skip" drops malformed rows, counts them in `skipped_rows` and logs a warning
            at the end of each epoch.

    Raises:
        InvalidArgumentError: a row is malformed (when it is read); the message names file, line and
            column, and reading may continue after it.
        NotFoundError: a file does not exist (when it is read).
        ValueError, TypeError: the arguments are inconsistent.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
        *,
        on_bad_rows: OnBadRows = "error",
    ) -> None:
        what = "CsvDataset()"
        if not len(record_defaults):
            raise value_error(
                "CsvDataset(): record_defaults is empty", expected="an entry for each column"
            )
        byte_count("CsvDataset(): buffer_size", buffer_size)
        if na_value is None:
            raise ValueError("None values not supported.")
        chosen = _chosen(what, len(record_defaults), select_cols, exclude_cols)
        columns = [
            CsvColumn(index, *_default(what, place, default))
            for place, (index, default) in enumerate(zip(chosen, record_defaults, strict=True))
        ]
        layout = CsvLayout(
            tuple(columns),
            None if select_cols is not None or exclude_cols is not None else len(columns),
            _delimiter(field_delim),
            bool(use_quote_delim),
            frozenset({b"", na_value.encode()}),
            missing_hint="give record_defaults a value for this column, such as [0.0]",
        )
        self._skipped = SkippedRows()
        super().__init__(
            CsvRows(
                file_names(filenames, what),
                tuple(TensorSpec((), column.dtype) for column in columns),
                tuple(range(len(columns))),
                CsvFormat(layout, bool(header), _skips(on_bad_rows)),
                compression(compression_type, what),
                self._skipped,
            )
        )

    @property
    def skipped_rows(self) -> int:
        """The number of malformed rows dropped in all epochs of this process."""
        return self._skipped.count


class CsvBatches(Dataset):
    """The result of `make_csv_dataset`."""

    def __init__(self, plan: plans.Plan, skipped: SkippedRows) -> None:
        super().__init__(plan)
        self._skipped = skipped

    @property
    def skipped_rows(self) -> int:
        """The number of malformed rows dropped in all epochs of this process."""
        return self._skipped.count


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[int | str] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
    *,
    on_bad_rows: OnBadRows = "error",
) -> CsvBatches:
    """CSV files as batches of columns (`tf.data.experimental.make_csv_dataset`).

    Elements are OrderedDicts of `(batch,)` tensors by column name, or pairs of that and the label.
    Names default to those of the header. Dtypes default to the first of int32, int64, float32,
    float64 and string that fits the first rows; missing cells are then 0 or ''.

    Args:
        file_pattern: a name, a pattern (see `gfile.glob`) or a list of them; may be URLs.
        batch_size: rows per batch.
        column_names: the names of all columns, in file order; None reads the header.
        column_defaults: one entry per column to read: a dtype if the cell is required, or the
            default for missing cells, possibly as a single-element list or tensor.
        label_name: the label column.
        select_columns: names or indices of the columns to read, in any order.
        field_delim: the character between cells.
        use_quote_delim: whether cells may be quoted.
        na_value: a text that marks a missing cell, in addition to the empty one.
        header: whether the first record of each file holds names.
        num_epochs: the number of epochs; None repeats indefinitely, and every batch is full.
        shuffle: whether to shuffle files and rows.
        shuffle_buffer_size: rows in the shuffle buffer.
        shuffle_seed: the shuffle's seed.
        prefetch_buffer_size: batches to prefetch; None chooses automatically.
        num_parallel_reads, sloppy: have no effect: files are read sequentially.
        num_rows_for_inference: rows to infer dtypes from; None for all.
        compression_type: None, '', 'GZIP' or 'ZLIB'.
        ignore_errors: equivalent to `on_bad_rows="skip"`.
        encoding: the files' encoding; strings are converted to UTF-8.
        on_bad_rows: "skip" drops malformed rows, counts them in the result's `skipped_rows` and
            logs a warning at the end of each epoch.

    Raises:
        InvalidArgumentError: a row is malformed (when it is read); the message names file, line and
            column.
        ValueError: no file matches, or the arguments are inconsistent with each other or the files.
    """
    what = "make_csv_dataset()"
    files = _files(file_pattern)
    text = CsvText(
        _delimiter(field_delim),
        bool(use_quote_delim),
        na_value,
        bool(header),
        str(compression(compression_type, what)),
        encoding,
    )
    if column_names is None:
        if not header:
            raise value_error(
                "Expected `column_names` or `header` arguments. Neither is provided",
                hint="name the columns of the files with column_names=[...]",
            )
        column_names = infer_names(files, text)
    names = list(column_names)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise value_error(
            "Cannot have duplicate column names",
            expected="unique names",
            received=f"{repeated} more than once, of {names} in {files[0]}",
            hint="give names with column_names=, and header=True to skip the file's own",
        )
    indices = _indices(select_columns, names)
    if column_defaults is None:
        kinds = infer_dtypes(files, text, len(names), indices, num_rows_for_inference)
        given = [(kind, b"" if kind is dtypes.string else 0) for kind in kinds]
    elif len(column_defaults) == len(indices):
        given = [_default(what, place, each) for place, each in enumerate(column_defaults)]
    else:
        raise value_error(
            "If specified, `column_defaults` and `select_columns` must have the same length: "
            f"`column_defaults` has length {len(column_defaults)}, `select_columns` has length "
            f"{len(indices)}",
            expected=f"{len(indices)} defaults, for {[names[index] for index in indices]}",
            received=len(column_defaults),
        )
    chosen = [names[index] for index in indices]
    if label_name is not None and label_name not in chosen:
        raise value_error(
            f"`label_name` provided must be one of the columns: {chosen}. Received: {label_name}",
            hint=did_you_mean(label_name, chosen),
        )
    layout = CsvLayout(
        tuple(
            CsvColumn(index, *pair, name)
            for index, pair, name in zip(indices, given, chosen, strict=True)
        ),
        len(names),
        text.delimiter,
        text.quotes,
        frozenset({b"", na_value.encode()}),
        encoding=encoding,
        missing_hint="give column_defaults a value for this column, such as [0.0]",
    )
    spec, order = _structure(layout, label_name)
    skipped = SkippedRows()
    rows = CsvRows(
        _sources(files, shuffle, shuffle_seed),
        spec,
        order,
        CsvFormat(layout, bool(header), ignore_errors or _skips(on_bad_rows)),
        text.compression,
        skipped,
    )
    dataset = Dataset(rows)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    return CsvBatches(dataset.prefetch(prefetch_buffer_size)._plan, skipped)


def _files(file_pattern: Any) -> list[str]:
    patterns = file_names(file_pattern, "make_csv_dataset(): file_pattern")
    if isinstance(patterns, (Pending, plans.Plan)):
        raise type_error(
            "make_csv_dataset() reads the files when called",
            expected="names or patterns as Python strings",
            received=file_pattern,
            hint="use CsvDataset for tensors of names",
        )
    files = [os.fsdecode(name) for name in matching(patterns)]
    if not files:
        raise value_error(
            f"No files match `file_pattern` {file_pattern}", hint="* does not match '/'"
        )
    return files


def _sources(files: Sequence[str], shuffle: bool, seed: int | None) -> Any:
    names = np.array([os.fsencode(name) for name in files], object)
    if not shuffle or len(files) == 1:
        return names
    return Dataset.from_tensor_slices(names).shuffle(len(files), seed)._plan


def _structure(layout: CsvLayout, label_name: str | None) -> tuple[Any, tuple[int, ...]]:
    """The spec of a row, and for each of its leaves the index of its column."""
    places: Any = OrderedDict((column.name, i) for i, column in enumerate(layout.columns))
    if label_name is not None:
        label = places.pop(label_name)
        places = (places, label)
    order = flatten(places)
    specs = [TensorSpec((), layout.columns[place].dtype) for place in order]
    return pack(places, specs), tuple(order)


def _indices(select_columns: Sequence[int | str] | None, names: Sequence[str]) -> list[int]:
    if select_columns is None:
        return list(range(len(names)))
    indices = []
    for column in select_columns:
        if column in names:
            indices.append(names.index(column))
        elif isinstance(column, str) or not 0 <= column < len(names):
            raise value_error(
                f"Column {column} specified in `select_columns` must be of one of the columns",
                expected=f"one of {list(names)}, or 0 to {len(names) - 1}",
                received=repr(column),
                hint=did_you_mean(str(column), names),
            )
        else:
            indices.append(int(column))
    if len(set(indices)) < len(indices):
        raise value_error(
            "`select_columns` contains duplicate columns", received=list(select_columns)
        )
    return sorted(indices)


def _chosen(
    what: str, count: int, select: Sequence[int] | None, exclude: Sequence[int] | None
) -> list[int]:
    """The indices of the columns to read."""
    if select is not None and exclude is not None:
        raise InvalidArgumentError.explained(
            "Either select_cols or exclude_cols should be empty",
            received=f"select_cols={list(select)}, exclude_cols={list(exclude)}",
        )
    for argument, columns in (("select_cols", select), ("exclude_cols", exclude)):
        given = list(columns or ())
        problem = None
        if any(one >= two for one, two in itertools.pairwise(given)):
            problem = f"{argument} should be strictly increasing indices"
        elif given and given[0] < 0:
            problem = f"{argument} should be non-negative indices"
        if problem:
            raise InvalidArgumentError.explained(f"{what}: {problem}", received=given)
    if select is not None:
        if len(select) != count:
            raise InvalidArgumentError.explained(
                f"{what}: select_cols should match output size",
                expected=f"{count} columns, as record_defaults has",
                received=list(select),
            )
        return [int(column) for column in select]
    left = (index for index in itertools.count() if index not in set(exclude or ()))
    return list(itertools.islice(left, count))


def _default(what: str, place: int, given: Any) -> tuple[DType, Any]:
    """The dtype of a column and the default of missing cells, None if cells are required."""
    name = f"{what}: the default of column {place}"
    if isinstance(given, (DType, type, np.dtype)):
        dtype, values = as_dtype(given), []
    else:
        array = parameter(given, None, name)
        if isinstance(array, Pending):
            raise type_error(f"{name} is not known yet", expected="a constant", received=given)
        dtype, values = as_dtype(array.dtype), array.reshape(-1).tolist()
        if array.ndim > 1 or array.size > 1:
            raise value_error(
                f"{name}: Shape must be that of a length-0 or length-1 vector, or a scalar",
                received=repr(given),
            )
    if dtype not in _ALLOWED:
        raise type_error(
            f"{name} cannot be used",
            expected="a dtype, or one value or none of it, of "
            + ", ".join(each.name for each in _ALLOWED),
            received=given if isinstance(given, Tensor) else repr(given),
        )
    return dtype, values[0] if values else None


def _delimiter(field_delim: str) -> bytes:
    if len(field_delim.encode()) != 1:
        raise InvalidArgumentError.explained(
            "field_delim should be only 1 char", received=repr(field_delim)
        )
    return field_delim.encode()


def _skips(on_bad_rows: str) -> bool:
    if on_bad_rows not in ("error", "skip"):
        raise value_error("on_bad_rows", expected="'error' or 'skip'", received=repr(on_bad_rows))
    return on_bad_rows == "skip"
