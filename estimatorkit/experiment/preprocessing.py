"""Preprocessing in the graph, and so in exported models: missing numbers, and derived features.

`features` maps the data columns to what feature columns read. Receivers of exports call it, and
`preprocessed` runs it on tables, so that a server predicts what `estimatorkit predict` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

import estimatorkit as ek
from estimatorkit.data.cell_formats import CellFormat
from estimatorkit.experiment import date_parts
from estimatorkit.experiment.columns import Read
from estimatorkit.experiment.schema import Experiment

Tensors = dict[str, Any]
Columns = dict[str, NDArray[Any]]


def preprocessed(experiment: Experiment, data: Mapping[str, NDArray[Any]]) -> Columns:
    """The features of the rows of a table, `(rows, ...)`; columns that stay are not copied."""
    cells = data.keys() & experiment.reads.keys()  # a weight that is no feature was read before
    formats = {key: each for key, each in experiment.formats.items() if key in cells}
    data = {**data, **{key: each.values(data[key]) for key, each in formats.items()}}
    if (
        not formats
        and not experiment.derived
        and not any(map(is_filled, experiment.column_reads.values()))
    ):
        return data
    with ek.Graph().as_default(), ek.Session() as session:
        fed = {
            key: ek.placeholder(ek.as_dtype(each.dtype), [None, *each.shape[1:]])
            for key, each in data.items()
        }
        found = _made(experiment, fed)
        made = {key: each for key, each in found.items() if each is not fed.get(key)}
        return {**data, **session.run(made, {fed[key]: each for key, each in data.items()})}


def is_filled(read: Read | None) -> bool:
    """Whether a missing value is NaN until the graph replaces it by a default."""
    return read is not None and read.default is not None and read.dtype.startswith("float")


def features(experiment: Experiment, data: Mapping[str, Any]) -> Tensors:
    """The features of the data columns: missing numbers are replaced, derived features added.

    Args:
        data: tensors by column, `(batch, ...)`; a missing number is NaN or infinite, a missing id
            -1, and a missing word ''. Columns with a format are cells.
    """
    read = {
        key: cells_read(each, data[key]) for key, each in experiment.formats.items() if key in data
    }
    return _made(experiment, {**data, **read})


def cells_read(given: CellFormat, cells: Any) -> Any:
    """What a format reads in a tensor of strings: float64 numbers, or texts (see `CellFormat`)."""
    for pattern, rewrite in given.before:
        cells = ek.strings.regex_replace(cells, pattern, rewrite)
    readable = ek.strings.regex_full_match(cells, given.readable)
    for pattern, rewrite in given.after:
        cells = ek.strings.regex_replace(cells, pattern, rewrite)
    if given.kind == "word":
        cells = ek.strings.lower(cells, encoding="utf-8")
    if given.kind != "number":
        return ek.where(readable, cells, ek.fill(ek.shape(cells), ""))
    digits = ek.where(readable, cells, ek.fill(ek.shape(cells), "0"))
    numbers = ek.strings.to_number(digits, ek.float64)
    return ek.where(readable, numbers, ek.fill(ek.shape(numbers), _like(numbers, float("nan"))))


def _made(experiment: Experiment, data: Mapping[str, Any]) -> Tensors:
    """The features of data whose cells are read."""
    found = dict(data)
    for key, each in experiment.derived.items():
        found[key] = _DERIVED[each.kind](_dense(data[each.source]))
    for key, read in experiment.column_reads.items():
        if key in experiment.formats and key in data and read.dtype.startswith("int"):
            default = -1 if read.default is None else read.default
            found[key] = ek.cast(_replaced(data[key], default), getattr(ek, read.dtype))
            continue
        if key in experiment.formats and key in data and read.dtype.startswith("float"):
            found[key] = ek.cast(found[key], getattr(ek, read.dtype))
        if key in found and is_filled(read):
            x = found[key]
            found[key] = _replaced(x, read.default)
    return found


def _dense(x: Any) -> Any:
    """A tensor; sparse words of parsed `Example`s are padded by ''."""
    if not isinstance(x, ek.SparseTensor):
        return x
    return ek.sparse_tensor_to_dense(x, default_value="" if x.dtype is ek.string else -1)


def _replaced(x: Any, default: Any) -> Any:
    return ek.where(ek.math.is_finite(x), x, ek.fill(ek.shape(x), _like(x, default)))


def _like(x: Any, value: Any) -> Any:
    return ek.constant(value, x.dtype)


def _is_missing(x: Any) -> Any:
    if x.dtype is ek.string:
        missing = ek.equal(x, "")
    elif x.dtype.is_floating:
        missing = ek.logical_not(ek.math.is_finite(x))
    else:
        missing = ek.equal(x, _like(x, -1))
    return ek.cast(missing, ek.int64)


_DERIVED: dict[str, Callable[[Any], Any]] = {"missing": _is_missing, **date_parts.PARTS}
