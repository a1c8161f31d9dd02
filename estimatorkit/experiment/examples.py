"""Examples: the features and labels of an experiment, extracted from a table and typed.

Numbers are cast to the dtype that the columns read; missing ones are NaN, which the graph replaces
(`preprocessing`), or the default of an id. Text becomes bytes. A numeric column that is read as
text (a vocabulary of "1", "2", a cross) is formatted as 3, not 3.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import other_form
from estimatorkit.data.cell_formats import as_cells
from estimatorkit.data.list_cells import as_bytes, filler
from estimatorkit.estimator.explanations import BACKGROUND
from estimatorkit.experiment.columns import Read
from estimatorkit.experiment.date_parts import ISO_DATE as _ISO_DATE, NUMBERS
from estimatorkit.experiment.document import suggestion
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.estimators import ESMM, Baseline, Classifier, Regressor, Supervised
from estimatorkit.experiment.preprocessing import is_filled, preprocessed
from estimatorkit.experiment.row_sets import training_table
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tables import (
    Table,
    formatted,
    missing,
    require,
    row_count,
)
from estimatorkit.premade.folds import FOLD

CLASS_WEIGHT = "class weight"
"""The feature with the weight of an example by its class, where there are such weights."""


_ROWS_TO_CHOOSE_FROM = 100


GROUP = "metric group "
"""Before the name of a column, its key among features: the values as text, for metrics."""

_DATE = re.compile(_ISO_DATE.encode())


def text(value: object) -> str:
    """Decodes a word that may be bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def used_columns(experiment: Experiment) -> tuple[str, ...]:
    """The columns that the listed features and the weight read, in order."""
    weight = experiment.weight_column
    return tuple(dict.fromkeys((*experiment.feature_keys, *([weight] if weight else []))))


def unused_columns(experiment: Experiment, table: Table) -> list[str]:
    """The columns of a table that neither features nor labels read."""
    labels = experiment.data.label or ()
    used = {*used_columns(experiment), *labels, *experiment.groups, *experiment.negatives}
    ignored = isinstance(experiment.estimator, Baseline)
    return [] if ignored else [name for name in table if name not in used]


def features_of(
    experiment: Experiment, table: Table, origin: str, *, weighted: bool = True
) -> dict[str, NDArray[Any]]:
    """Extracts the features from a table.

    Args:
        origin: names the table in messages.
        weighted: whether weights, groups of metrics and negatives are among them, which no
            prediction needs.

    Raises:
        DataError: a column is missing, holds text, or lacks a value without a default.
    """
    weight = experiment.weight_column if weighted else None
    groups = experiment.groups if weighted else ()
    reads = experiment.reads | (experiment.negatives if weighted else {})
    names = [*reads, *([weight] if weight else []), *groups]
    require(table, names, origin, lambda table: unused_columns(experiment, table))
    lists = [each.history for each in experiment.sequences]
    _check_lists(table, [*lists, *(experiment.negatives if weighted else ())], origin)
    features = {
        key: as_cells(table[key])
        if key in experiment.formats
        else column_of(table[key], read, origin, table.place)
        for key, read in reads.items()
    }
    _check_numbers(experiment, features, origin, table.place)
    _check_years(experiment, features, origin, table.place)
    if isinstance(experiment.estimator, Baseline) and not features:
        labels = experiment.data.label or ()
        features = {name: table[name] for name in table if name not in labels}
    if weight is not None:
        column = formatted(experiment, table, [weight])[weight]
        features[weight] = column_of(column, Read(weight, "float32"), origin, table.place)
    for group in groups:
        features[GROUP + group] = _as_text(table[group])
    if table.fold is not None:
        features[FOLD] = np.full(row_count(table), table.fold, np.int32)
    return features


def _check_lists(table: Table, keys: Iterable[str], origin: str) -> None:
    """Raises DataError if the behaviours of a sequence are not lists."""
    for key in keys:
        if table[key].ndim == 1:
            raise DataError.explained(
                f"{origin}: the history {key!r} is no column of lists",
                expected="several ids in a cell, the newest last",
                received=f"{text(table[key][0])!r} in {table.place(0)}",
                hint="describe the cells beside the file: "
                f'lists: {{{key}: {{separator: "|", length: 50}}}}.',
            )


def _check_numbers(
    experiment: Experiment,
    features: dict[str, NDArray[Any]],
    origin: str,
    place: Callable[[int], str],
) -> None:
    """Raises DataError if a cell is no number, and no default replaces it."""
    for key, read in experiment.column_reads.items():
        each = experiment.formats.get(key)
        needed = read.dtype.startswith("float") and read.default is None
        if each is None or each.kind != "number" or not needed:
            continue
        absent = np.isnan(each.numbers(features[key]))
        if absent.any():
            row = int(absent.argmax())
            raise DataError.explained(
                f"{origin}: the column {key!r} lacks {int(absent.sum())} of {len(absent)} numbers",
                expected="a number in every row, as its format says",
                received=f"{text(features[key][row])!r} in {place(row)}",
                hint=f"give a default: - numeric: {{key: {key}, default: 0}}",
            )


def _check_years(
    experiment: Experiment,
    features: dict[str, NDArray[Any]],
    origin: str,
    place: Callable[[int], str],
) -> None:
    """Raises DataError if a part that is a number has neither a date nor a default."""
    reads = experiment.column_reads
    for key, each in experiment.derived.items():
        if each.kind not in NUMBERS or key not in reads or reads[key].default is not None:
            continue
        written = experiment.formats.get(each.source)
        texts = features[each.source] if written is None else written.texts(features[each.source])
        dated = [_DATE.match(value) is not None for value in texts]
        if not all(dated):
            row = dated.index(False)
            raise DataError.explained(
                f"{origin}: the column {each.source!r} lacks {dated.count(False)} of "
                f"{len(dated)} dates",
                expected="a date as in 2024-01-31 in every row",
                received=f"{text(features[each.source][row])!r} in {place(row)}",
                hint=f"give a default: - numeric: {{key: {key}, default: 2000}}",
            )


def column_of(
    column: NDArray[Any], read: Read, origin: str, place: Callable[[int], str]
) -> NDArray[Any]:
    """Converts a column to the type that is read; `origin` and `place` name the table and its rows
    in messages.

    Raises:
        DataError: it holds text but is read as numbers, or lacks a value without a default.
    """
    dtype = read.dtype
    if column.ndim > 1 and (column.dtype.kind == "O" or dtype in ("string", "any")):
        return _lists_of(column, read, origin, place)
    if dtype in ("string", "any"):
        return _as_text(column)
    if column.dtype.kind in "OUS":
        column = _numbers_in(column, read.key, origin, place)
    absent = missing(column)
    if absent.any():
        if read.default is None:
            raise DataError.explained(
                f"{origin}: the column {read.key!r} lacks {int(absent.sum())} of "
                f"{len(column)} values",
                expected="a number in every row",
                received=f"nothing in {place(int(absent.argmax()))}",
                hint=f"give a default: - numeric: {{key: {read.key}, default: 0}}",
            )
        if not is_filled(read):
            column = np.where(np.isnan(column), read.default, column)
    if dtype.startswith("int") and column.dtype.kind == "f":
        broken = column != np.floor(column)
        if broken.any():
            raise DataError.explained(
                f"{origin}: the column {read.key!r} is read as ids",
                expected="an integer in every row",
                received=f"{column[broken][0]} in {place(int(broken.argmax()))}",
            )
    return column.astype(dtype)


def _lists_of(
    column: NDArray[Any], read: Read, origin: str, place: Callable[[int], str]
) -> NDArray[Any]:
    """Lists read as another type; padding is '' among words, and the default among numbers."""
    if read.dtype in ("string", "any"):
        if column.dtype.kind == "O":
            return as_bytes(column)
        distinct, codes = np.unique(column, return_inverse=True)
        words = np.where(distinct == filler(column.dtype), b"", _as_text(distinct))
        return words.take(codes).reshape(column.shape)
    width = column.shape[1]
    default = -1 if read.default is None else read.default
    flat = column_of(
        column.reshape(-1),
        Read(read.key, read.dtype, default),
        origin,
        lambda number: place(number // width),
    )
    return flat.reshape(column.shape)


def _as_text(column: NDArray[Any]) -> NDArray[Any]:
    """Formats values as bytes; missing numbers are empty, and 3.0 is 3, as if none were missing."""
    if column.dtype.kind == "O" and set(map(type, column)) <= {bytes}:
        return column
    if column.dtype.kind == "f" and not (column != np.floor(column))[~np.isnan(column)].any():
        shown = ["" if np.isnan(value) else str(int(value)) for value in column]
    else:
        shown = [text(value) for value in column]
    return np.array([each.encode() for each in shown], dtype=object)


def _numbers_in(
    column: NDArray[Any], name: str, origin: str, place: Callable[[int], str]
) -> NDArray[Any]:
    """Parses numbers that were read as text; NaN if empty."""
    for row, value in enumerate(column):
        if value and not _is_number(value):
            raise DataError.explained(
                f"{origin}: the column {name!r} holds text",
                expected="a number in every row",
                received=f"{text(value)!r} in {place(row)}",
            )
    return np.array([float(value) if value else np.nan for value in column])


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def labels_of(experiment: Experiment, table: Table, origin: str) -> Any:
    """Extracts the labels: classes, or float32 `(examples,)` or `(examples, labels)`.

    Returns:
        The labels; those of several tasks by the names of their heads, int64 `(examples,)`; None
        for an estimator without.

    Raises:
        DataError: a label is missing, is not a class, or is text without a `label_vocabulary`.
    """
    estimator, names = experiment.estimator, experiment.data.label or ()
    if not isinstance(estimator, Supervised):
        return None
    require(table, names, origin, lambda table: unused_columns(experiment, table))
    table = formatted(experiment, table, names)
    _check_labels(table, names, origin, "number" if isinstance(estimator, Regressor) else "class")

    def classes(name: str, count: int, vocabulary: tuple[str, ...] | None) -> NDArray[Any]:
        where = f"{origin}: the label {name!r}"
        return _classes(count, vocabulary, table[name], where, table.place)

    if isinstance(estimator, Classifier):
        return classes(names[0], estimator.n_classes, estimator.label_vocabulary)
    if experiment.tasks:
        found = {task: classes(name, 2, None) for task, name in experiment.tasks.items()}
        if isinstance(estimator, ESMM):
            _check_conversions(experiment, found, origin, table.place)
        return found
    columns = [column_of(table[name], Read(name, "float32"), origin, table.place) for name in names]
    return np.stack(columns, axis=1) if len(columns) > 1 else columns[0]


def _check_labels(table: Table, names: Iterable[str], origin: str, what: str) -> None:
    """Raises DataError if a label is missing."""
    for name in names:
        absent = missing(table[name])
        if absent.any():
            raise DataError.explained(
                f"{origin}: the label {name!r} lacks {int(absent.sum())} of {len(absent)} values",
                expected=f"a {what} in every row",
                received=f"nothing in {table.place(int(absent.argmax()))}",
                hint="data.missing_labels: skip leaves these rows out.",
            )


def _check_conversions(
    experiment: Experiment,
    labels: dict[str, NDArray[Any]],
    origin: str,
    place: Callable[[int], str],
) -> None:
    """Raises DataError if a conversion is without a click."""
    broken = labels["ctcvr"] > labels["ctr"]
    if broken.any():
        click, conversion = experiment.tasks.values()
        raise DataError.explained(
            f"{origin}: {int(broken.sum())} rows have the label {conversion!r}, a click with "
            f"conversion, but not {click!r}, the click",
            expected=f"{conversion!r} of 1 only where {click!r} is 1",
            received=f"0 and 1 in {place(int(broken.argmax()))}",
            hint="data.label of ESMM names the click first: [click, conversion].",
        )


def _classes(
    count: int,
    vocabulary: tuple[str, ...] | None,
    column: NDArray[Any],
    where: str,
    place: Callable[[int], str],
) -> NDArray[Any]:
    if vocabulary is not None:
        found = [word.decode() for word in _as_text(column)]
        there = sorted(set(found))
        unknown = [word for word in there if word not in vocabulary]
        if unknown:
            hint = suggestion(unknown[0], vocabulary)
            if len(there) == count and other_form(unknown[0], vocabulary) is None:
                hint = f"the data has the classes label_vocabulary: [{', '.join(there)}]"
            raise DataError.explained(
                f"{where} is not in label_vocabulary",
                expected=f"one of {', '.join(vocabulary)}",
                received=f"{', '.join(unknown[:5])}, in {place(found.index(unknown[0]))}",
                hint=hint,
            )
        return np.array(found, dtype=object)
    if column.dtype.kind in "OUS":
        classes = sorted({text(value) for value in column})
        raise DataError.explained(
            f"{where} is text",
            expected=f"a class number from 0 to {count - 1}",
            received=", ".join(classes[:5]),
            hint=f"name the classes: estimator.label_vocabulary: [{', '.join(classes[:10])}]",
        )
    wrong = ~np.isin(column, np.arange(count))
    if wrong.any():
        raise DataError.explained(
            f"{where} is not a class",
            expected=f"a class number from 0 to {count - 1} (n_classes - 1)",
            received=f"{column[wrong][0]} in {place(int(wrong.argmax()))}",
        )
    return column.astype(np.int64)


def examples_of(
    experiment: Experiment, table: Table, origin: str, *, training: bool = False
) -> Any:
    """Features and labels, or the features alone (see `features_of` and `labels_of`), preprocessed.

    Args:
        training: whether the weights of classes count.
    """
    features = preprocessed(experiment, features_of(experiment, table, origin))
    labels = labels_of(experiment, table, origin)
    if labels is None:
        return features
    if experiment.train.class_weights is not None:
        weights = _class_weights(experiment, labels) if training else np.ones(len(labels))
        if experiment.weight_column is not None:
            weights = weights * features[experiment.weight_column]
        features[CLASS_WEIGHT] = weights.astype(np.float32)
    return features, labels


def _class_weights(experiment: Experiment, labels: NDArray[Any]) -> NDArray[Any]:
    """The weight of each label; balanced ones are as scikit-learn's."""
    given = experiment.train.class_weights
    classes, places = np.unique(labels.astype(str), return_inverse=True)
    if isinstance(given, dict):
        return np.array([given.get(each, 1.0) for each in classes])[places]
    counts = np.bincount(places)
    return np.asarray((len(labels) / (len(classes) * counts))[places])


def example_rows(experiment: Experiment, count: int = 3) -> dict[str, NDArray[Any]]:
    """The features of the first training rows that lack no number, for example requests; empty if
    there is no such row.
    """
    table = training_table(experiment).take(slice(_ROWS_TO_CHOOSE_FROM))
    features = features_of(experiment, table, "", weighted=False)
    whole = np.ones(row_count(table), bool)
    for column in features.values():
        if column.dtype.kind == "f":
            whole &= np.isfinite(column.reshape(len(whole), -1)).all(1)
    return {key: column[whole][:count] for key, column in features.items() if whole.any()}


def background_rows(experiment: Experiment) -> dict[str, NDArray[Any]]:
    """The features of some training rows, that stand for unknown values in explanations."""
    table = training_table(experiment)
    random = np.random.default_rng(experiment.data.holdout_seed)
    chosen = random.permutation(row_count(table))[:BACKGROUND]
    return features_of(experiment, table.take(chosen), "", weighted=False)


def class_names(experiment: Experiment) -> tuple[str, ...]:
    """The display names of classes 0, 1, ...; empty for a regressor."""
    estimator = experiment.estimator
    if not isinstance(estimator, Classifier):
        return ()
    numbers = tuple(str(number) for number in range(estimator.n_classes))
    return experiment.data.class_names or estimator.label_vocabulary or numbers


def label_names(experiment: Experiment, labels: Any) -> list[str | tuple[float, ...]]:
    """Labels in the form of `Prediction.value`."""
    if experiment.tasks:
        columns = [labels[name] for name in sorted(labels)]  # like the columns of predictions
        return [tuple(map(float, row)) for row in zip(*columns, strict=True)]
    if isinstance(experiment.estimator, Regressor):
        return [tuple(float(number) for number in np.atleast_1d(label)) for label in labels]
    vocabulary = getattr(experiment.estimator, "label_vocabulary", None)
    names = class_names(experiment)
    return [names[vocabulary.index(label) if vocabulary else int(label)] for label in labels]
