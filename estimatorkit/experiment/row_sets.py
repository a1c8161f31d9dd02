"""The rows of an experiment: which train, which choose a checkpoint or settings, which measure.

They are of `data.train` and of other sources; `data.holdout`, `data.part` and `data.select` split
the training data, in this order.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.data.datasets.splits import split_indices, split_latest, split_stratified
from estimatorkit.experiment import sources, tables
from estimatorkit.experiment.date_parts import ISO_DATE
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.estimators import Classifier
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tables import Table

_DATE = re.compile(ISO_DATE)

MAIN = "eval"
SELECT = "select"
TRAINING = "train"


def training_chunks(experiment: Experiment) -> Iterator[Table]:
    """The training rows: one table, or several that are read one after another if streamed."""
    return _chunks(experiment, experiment.data.train, TRAINING)


def evaluation_chunks(experiment: Experiment, name: str = MAIN) -> Iterator[Table]:
    """The evaluation rows, as `training_chunks`.

    Args:
        name: 'eval' for `data.evaluate` (or the holdout), 'select' for the rows that choose the
            best checkpoint, 'train' for the training rows, or a name of `data.also_evaluate`.
    """
    source = _evaluation_source(experiment, name)
    if source is not None:
        return _chunks(experiment, source, None)
    return _chunks(experiment, experiment.data.train, name)


def _chunks(experiment: Experiment, source: Any, name: str | None) -> Iterator[Table]:
    """The rows of a source, or of a part of each chunk of the training data, by its name."""
    source = experiment.data.as_read(source)
    parts = (
        tables.read_chunks(source)
        if experiment.data.stream
        else iter((tables.read_source(source),))
    )
    for table in parts:
        chunk = _with_labels(experiment, table)
        yield chunk if name is None else _parts(experiment, chunk)[name]


def _parts(experiment: Experiment, table: Table) -> dict[str, Table]:
    """What the training data are split into, by the name of the evaluation.

    The rows that select the weights of an ensemble with folds are its first fold.
    """
    data, found = experiment.data, dict[str, Table]()
    rest = table
    if data.holdout is not None:
        rest, found[MAIN] = _split(experiment, rest, data.holdout)
    if data.part is not None:
        rest, found[MAIN] = (
            _fold(experiment, rest, data.part.fold)
            if data.part.fold is not None
            else _split(experiment, rest, data.part.value)
        )
    if data.select is not None:
        rest, found[SELECT] = _split(experiment, rest, data.select)
    if trains_on_choice(experiment):
        found[chosen_by(experiment)].fold = 0
    return {MAIN: rest, **found, TRAINING: rest}  # without others, the training rows measure


def chosen_by(experiment: Experiment) -> str:
    """The name of the evaluation that selects the checkpoint, or an ensemble's weights."""
    selection = experiment.selection
    return (selection and selection.evaluation) or MAIN


def trains_on_choice(experiment: Experiment) -> bool:
    """Whether the selection rows are a fold of an ensemble, and thus train it, too."""
    folds = getattr(experiment.estimator, "folds", 1)
    if folds == 1 or experiment.selection is None:
        return False
    name = chosen_by(experiment)
    return name in _shares(experiment.data) and _evaluation_source(experiment, name) is None


def selects_weights(experiment: Experiment) -> bool:
    """Whether an ensemble's weights are selected by rows of an evaluation.

    With folds only if they are a part of the training data: other rows must not train it.
    """
    if experiment.selection is None:
        return False
    return getattr(experiment.estimator, "folds", 1) == 1 or trains_on_choice(experiment)


def _fold(experiment: Experiment, table: Table, fold: tuple[int, int]) -> tuple[Table, Table]:
    """All rows but those of a fold, and these; each fold has the same share of each class."""
    from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

    number, folds = fold
    data, rows = experiment.data, tables.row_count(table)
    if rows < folds + (data.holdout_latest is not None):
        raise DataError.explained(
            f"{tables.source_name(data.train)}: there are fewer rows than folds",
            expected=f"at least {folds}",
            received=f"{rows} rows",
        )
    if data.holdout_latest is not None:  # each fold is later than what it is trained on
        order = np.argsort(_times(experiment, table, data.holdout_latest), kind="stable")
        past = TimeSeriesSplit(folds).split(order)
        earlier, later = next(itertools.islice(past, number - 1, None))
        return table.take(order[earlier]), table.take(order[later])
    labels = table.get((data.label or ("",))[0])
    kinds = np.zeros(rows, np.int64)
    if isinstance(experiment.estimator, Classifier) and labels is not None:
        _, kinds, counts = np.unique(labels, return_inverse=True, return_counts=True)
        kinds = np.where(counts[kinds] < folds, counts.argmax(), kinds)  # too rare for each fold
    split = StratifiedKFold if kinds.any() else KFold
    parts = split(folds, shuffle=True, random_state=data.holdout_seed).split(kinds, kinds)
    others, held = next(itertools.islice(parts, number - 1, None))
    return table.take(others), table.take(held)


def training_table(experiment: Experiment) -> Table:
    """The training rows; if they are streamed, the first chunk."""
    return next(training_chunks(experiment))


def evaluation_table(experiment: Experiment, name: str = MAIN) -> tuple[Table, str]:
    """The evaluation rows (if they are streamed, the first chunk), and their name for display.

    Args:
        name: as for `evaluation_chunks`.
    """
    return next(evaluation_chunks(experiment, name)), evaluation_source(experiment, name)


def evaluation_source(experiment: Experiment, name: str = MAIN) -> str:
    """The name of the evaluation rows for display."""
    source = _evaluation_source(experiment, name)
    if source is not None:
        return tables.source_name(source)
    data = experiment.data
    share = _shares(data)[name]
    which = ""
    if data.holdout_latest is not None and share < 1.0:
        which = "the first " if name == TRAINING else "the latest "
    return f"{which}{share:.0%} of {tables.source_name(data.train)}"


def _shares(data: sources.Data) -> dict[str, float]:
    """The share of the training data that each of `_parts` is."""
    found, rest = dict[str, float](), 1.0
    part = None if data.part is None else data.part.share or 1 / data.part.value[1]
    for name, share in ((MAIN, data.holdout), (MAIN, part), (SELECT, data.select)):
        if share is not None:
            found[name] = rest * share
            rest -= found[name]
    if data.evaluate is None:
        found.setdefault(MAIN, rest)
    return {**found, TRAINING: rest}


def training_source(experiment: Experiment) -> str:
    """The name of the training rows for display."""
    return evaluation_source(experiment, TRAINING)


def _evaluation_source(experiment: Experiment, name: str) -> Any:
    """Where the evaluation examples come from; None if they are a part of `data.train`."""
    data = experiment.data
    if name in _shares(data):
        return data.train if _shares(data)[name] == 1.0 else None
    return data.evaluate if name == MAIN else (data.also_evaluate or {})[name]


def evaluation_names(experiment: Experiment) -> tuple[str, ...]:
    """The names of the evaluation sets, the main one first."""
    selecting = (SELECT,) if experiment.data.select else ()
    training = (TRAINING,) if experiment.evaluate.training else ()
    return (MAIN, *selecting, *(experiment.data.also_evaluate or ()), *training)


def _split(experiment: Experiment, table: Table, share: float) -> tuple[Table, Table]:
    """All but a share of the rows, and that share."""
    data = experiment.data
    try:
        if data.holdout_latest is not None:
            times = _times(experiment, table, data.holdout_latest)
            rows = split_latest(times, 1.0 - share, data.holdout_seed)
        elif data.holdout_stratified:
            (label,) = data.label or ()
            tables.require(table, [label], tables.source_name(data.train), lambda table: table)
            rows = split_stratified(table[label].astype(str), 1.0 - share, data.holdout_seed)
        else:
            rows = split_indices(tables.row_count(table), 1.0 - share, data.holdout_seed)
    except ValueError as error:
        raise DataError(f"{tables.source_name(data.train)}: {error}") from error
    first, second = map(table.take, rows)
    return first, second


def _times(experiment: Experiment, table: Table, name: str) -> NDArray[Any]:
    """A column that rows are ordered by: numbers or ISO dates; missing ones come first."""
    origin = tables.source_name(experiment.data.train)
    tables.require(table, [name], origin, lambda table: table)
    column = tables.formatted(experiment, table, [name])[name]
    if column.dtype.kind != "O":
        return np.where(tables.missing(column), -np.inf, column)
    texts = np.array([each.decode() if isinstance(each, bytes) else each for each in column])
    wrong = [row for row, each in enumerate(texts) if each and not _DATE.match(each)]
    if wrong:
        raise DataError.explained(
            f"{origin}: rows cannot be ordered by the column {name!r}",
            expected="numbers, or dates as in 2024-01-31",
            received=f"{texts[wrong[0]]!r} in {table.place(wrong[0])}",
            hint=f"data: {{formats: {{{name}: {{type: date, day_first: true}}}}}} reads others.",
        )
    return texts


def _with_labels(experiment: Experiment, table: Table) -> Table:
    """Reads labels as they are written, and drops rows without if the experiment says so."""
    kept = np.ones(tables.row_count(table), bool)
    table = tables.formatted(experiment, table, experiment.data.label or ())
    if experiment.data.missing_labels == "skip":
        for name in experiment.data.label or ():
            if name in table:
                kept &= ~tables.missing(table[name])
    return table if kept.all() else table.take(kept)
