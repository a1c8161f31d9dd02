"""`estimatorkit init`: a commented experiment for a table."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.data.cell_looks import Look
from estimatorkit.experiment import (
    formats as formatting,
    inferred,
    looking,
    sniffing,
    sources,
    tables,
)
from estimatorkit.experiment.document import dump, suggestion
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.examples import text
from estimatorkit.experiment.schema import Experiment
from estimatorkit.premade import tabular

_MOST_CLASSES = 20
"""Integer labels of more values are numbers to predict."""

_HOLDOUT = 0.2

_TEMPLATE = """\
# Predicts {label} from the other columns of {file}.
#
#   estimatorkit run {config}                        train, evaluate, export, predict three examples
#   estimatorkit tune {config}                       search for better settings
#   estimatorkit predict runs/{name} --input FILE    predict for another file
#   estimatorkit report runs/{name}                  curves, errors, importance of columns
#   estimatorkit serve runs/{name}/export/best       answer requests

name: {name}
seed: 1                     # the same seed gives the same model; null: another at each run

data:
  train: {source}
  holdout: {holdout:<17}# the share of the rows to measure with; or evaluate: {{csv: test.csv}}
  label: {label}
{missing}{formats}
infer: true                 # these columns, chosen from the data; or paste and change them
{columns}
estimator:
{estimator}
  # type: {ensemble}  # with boosted trees: better on many tables; one evaluation
  # hidden_units: [128, 128, 128]
  # members: 4              # networks whose predictions are averaged
  # dropout: 0.15

train:
  batch_size: {batch_size}
  epochs: {epochs}
  early_stopping: {{metric: {metric}, patience: 64}}   # evaluations, one an epoch

# evaluate: {{training: true}}  # the training rows, too: curves of both show overfitting

export: [best]              # the best of the evaluated models

tune:                       # what estimatorkit tune {config} searches
  estimator.hidden_units: {{choice: [[64, 64], [128, 128, 128], [256, 256, 256]]}}
  estimator.learning_rate: {{log_uniform: [0.005, 0.2]}}
  estimator.weight_decay: {{log_uniform: [0.005, 0.5]}}
  estimator.dropout: {{choice: [0.0, 0.15, 0.3]}}
"""


def starter(
    path: Path,
    label: str | None,
    config: Path,
    given: sniffing.Given = sniffing.NOTHING,
    tell: Callable[[str], None] = lambda line: None,
) -> str:
    """Returns the text of an experiment that learns a column of a file.

    Args:
        path: a CSV or Parquet file.
        label: the column to predict.
        config: where the text will be.
        given: what is known of how the file is written.
        tell: gets lines on what is assumed of the file, and on each column.

    Raises:
        DataError: the file cannot be read, or has no such column.
    """
    source, written, assumed = tables.source_of(path), dict[str, Any](), list[str]()
    if isinstance(source, sources.CsvSource):
        written, assumed = sniffing.settings(path, given)
        source = sources.CsvSource.model_validate({"csv": str(path), **written})
    table = tables.read_source(source)
    if label is not None and label not in table and f"column_{label}" in table:
        label = f"column_{label}"
    if label is None or label not in table:
        raise DataError.explained(
            f"{path}: which column is to be predicted?"
            if label is None
            else f"{path}: there is no column {label!r}",
            expected=f"--label with one of {', '.join(table)}",
            hint=suggestion(label or "", list(table)),
        )
    seen = looking.looks(source, table, given.decimal)
    formats = {name: formatting.setting(each.format) for name, each in seen.items()}
    labels = seen[label].format.values(table[label]) if label in seen else table[label]
    kind, arguments, metric = _task(labels)
    absent = int(tables.missing(labels).sum())
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name.split(".")[0]).strip("-._") or "model"
    described = {"parquet" if path.suffix in (".parquet", ".pq") else "csv": path.name}
    if path.parent.resolve() != config.parent.resolve():
        described = {next(iter(described)): str(path.resolve())}
    described |= written
    estimator = {"type": kind, **arguments}
    data = {"train": described, "holdout": _HOLDOUT, "label": label, "missing_labels": "skip"}
    data["formats"] = formats or None
    experiment = Experiment.model_validate(
        {
            "name": name,
            "data": data,
            "infer": True,
            "estimator": estimator,
            "train": {"epochs": 1},
        },
        context={"folder": config.parent.resolve()},
    )
    settings, notes = inferred.examined(experiment)
    chosen = dump(settings)
    notes = {
        name: f"{seen[name]}: {note}" if name in seen else note for name, note in notes.items()
    }
    for line in assumed:
        tell(f"Assumed of {path}: {line}.")
    tell(f"The columns of {path}:")
    if label in seen:
        notes = {label: f"the label: {seen[label]}", **notes}
    for line in looking.note_lines(notes):
        tell(line)
    skipped = f"  missing_labels: skip      # {absent:,} rows have no {label}\n" if absent else ""
    rows = round(tables.row_count(table) * (1 - _HOLDOUT))
    return _TEMPLATE.format(
        label=dump(label, flow=True),
        file=path.name,
        config=config,
        name=name,
        source=f"{{{', '.join(_lines(described))}}}",
        missing=skipped,
        formats=_formats(formats, seen),
        columns=textwrap.indent(chosen, "# ", lambda line: True),
        estimator=textwrap.indent("\n".join(_lines(estimator)), "  "),
        batch_size=tabular.usual_batch_size(rows),
        epochs=tabular.usual_epochs(rows),
        ensemble=kind.replace("Tabular", "Ensemble"),
        holdout=_HOLDOUT,
        metric=metric,
    )


def _formats(formats: dict[str, Any], seen: dict[str, Look]) -> str:
    """The key `formats` of the data, with what was seen."""
    if not formats:
        return ""
    lines = ["  formats:                  # how cells are written; text: as they are"]
    for name, each in formats.items():
        line = f"    {dump(name, flow=True)}: {dump(each, flow=True)}"
        lines += [
            *textwrap.wrap(
                f"# {seen[name]}", 90, initial_indent="    ", subsequent_indent="    # "
            ),
            line,
        ]
    return "\n".join(lines) + "\n"


def _lines(settings: dict[str, Any]) -> list[str]:
    return [f"{key}: {dump(value, flow=True)}" for key, value in settings.items()]


def _task(column: Any) -> tuple[str, dict[str, Any], str]:
    """The estimator of a label, its arguments, and the metric to stop by."""
    present = column[~tables.missing(column)]
    if column.dtype.kind in "OUSb":
        words = sorted({text(each) for each in present})
        given: dict[str, Any] = {"label_vocabulary": words}
        if len(words) != 2:
            given = {"n_classes": len(words), **given}
        return "TabularClassifier", given, _metric(len(words))
    values = np.unique(present)
    whole = bool((values == np.floor(values)).all())
    if whole and len(values) <= _MOST_CLASSES and values.tolist() == [*range(len(values))]:
        return "TabularClassifier", {"n_classes": len(values)}, _metric(len(values))
    return "TabularRegressor", {}, "rmse"


def _metric(classes: int) -> str:
    """The metric of a classifier: of two classes, one of which may be rare, the ranking."""
    return "auc" if classes == 2 else "accuracy"
