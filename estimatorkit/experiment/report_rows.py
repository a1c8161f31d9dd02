"""Explanations of single rows in the report: which rows are shown, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.estimator.explanations import BACKGROUND_FILE
from estimatorkit.experiment import examples, predicting, report, report_plots as plots, tables
from estimatorkit.experiment.estimators import Classifier, Regressor
from estimatorkit.experiment.predicting import BASELINE, CONTRIBUTION, Columns
from estimatorkit.experiment.schema import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BARS = 8


def chosen_rows(predictions: Columns, labels: NDArray[Any]) -> dict[int, str]:
    """The rows to explain, and what makes each of them one to look at; at most five.

    Args:
        predictions: columns (see `predicting`).
        labels: names of classes, or numbers, `(rows,)`.
    """
    found = predictions["prediction"]
    if "probability" in predictions:
        sure, right = predictions["probability"], found.astype(str) == labels.astype(str)
        places = {
            "the most certain of those that are wrong": np.where(right, -1.0, sure),
            "the most certain of those that are right": np.where(right, sure, -1.0),
            "the second most certain of those that are wrong": _without_best(~right, sure),
            "the least certain": -sure,
            "the least certain of those that are right": np.where(right, -sure, -2.0),
        }
        fits = {text: (right, ~right)["wrong" in text] for text in places}
        fits["the least certain"] = np.ones(len(sure), bool)
    else:
        errors = found.astype(float) - labels.astype(float)
        places = {
            "the most overestimated": errors,
            "the most underestimated": -errors,
            "of the median error": -abs(abs(errors) - np.median(abs(errors))),
            "the largest prediction": found,
            "the smallest prediction": -found,
        }
        fits = dict.fromkeys(places, np.ones(len(errors), bool))
        fits["the most overestimated"], fits["the most underestimated"] = errors > 0, errors < 0
    chosen: dict[int, str] = {}
    for text, score in places.items():
        row = int(np.argmax(score))
        if fits[text][row]:
            chosen.setdefault(row, text)
    return chosen


def _without_best(some: NDArray[np.bool_], scores: NDArray[Any]) -> NDArray[Any]:
    """Scores of some rows but the one of the highest; -1 for the others."""
    left = np.where(some, scores, -1.0)
    left[int(np.argmax(left))] = -1.0
    return left


def explained_rows(
    experiment: Experiment, table: tables.Table, origin: str
) -> Iterator[tuple[Figure, str]]:
    """Pictures of what columns add to the predictions of single rows, with their captions.

    None without the background rows that a training keeps, and for models of other than classes or
    one number.

    Args:
        experiment: with its columns listed (`inferred.resolve`).
        table: the rows to choose from.
        origin: their name in messages.
    """
    kind, background = experiment.estimator, Path(experiment.model_dir) / BACKGROUND_FILE
    labels = examples.labels_of(experiment, table, origin)
    of_one = isinstance(kind, Classifier | Regressor) and labels is not None and labels.ndim == 1
    if labels is None or not of_one or not background.is_file():
        return
    model = predicting.of_experiment(experiment)
    names = np.array(examples.label_names(experiment, labels), object)
    truth = names if isinstance(kind, Classifier) else labels
    rows = chosen_rows(model(table, origin), truth)
    some = table.take(list(rows))
    found = model.explained(some, origin)
    for place, (row, why) in enumerate(rows.items()):
        figure = _picture(found, some, place, f"{table.place(row)}: {why}")
        yield figure, f"{_told(found, place)}, expected {report.value_text(names[row])}."


def _told(found: Columns, row: int) -> str:
    value = found["prediction"][row]
    if "probability" in found:
        return f'"{value}" is predicted ({found["probability"][row]:.1%})'
    return f"{report.number(float(value))} is predicted"


def _picture(found: Columns, table: Mapping[str, NDArray[Any]], row: int, title: str) -> Figure:
    added = {
        name.removeprefix(CONTRIBUTION): float(found[name][row])
        for name in found
        if name.startswith(CONTRIBUTION)
    }
    order = sorted(added, key=lambda name: -abs(added[name]))
    shown, rest = order[:_MOST_BARS], order[_MOST_BARS:]
    bars = {f"{name} = {report.cell_text(table[name][row])}": added[name] for name in shown}
    if rest:
        bars[f"{len(rest)} more columns"] = sum(added[name] for name in rest)
    what = report.explained_number(found, row).rstrip(",")
    across = f"what is added to {report.number(float(found[BASELINE][row]))}: {what}"
    return plots.bars(list(bars), list(bars.values()), None, across, title)


__all__ = ["chosen_rows", "explained_rows"]
