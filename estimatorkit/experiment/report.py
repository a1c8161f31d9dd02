"""Formats the command's output: metrics, predictions as sentences, tables, CSV files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from estimatorkit.experiment.runner import Prediction
from estimatorkit.experiment.tables import Table

INTEGERS = ("global_step",)


def number(value: float) -> str:
    """Formats a number with four decimals, in scientific notation if very small or large."""
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e6 else f"{value:.4g}"


def metrics_lines(metrics: Mapping[str, float]) -> list[str]:
    """One aligned line per metric, sorted by name, the step last."""
    width = max(map(len, metrics), default=0)
    order = sorted(metrics, key=lambda name: (name in INTEGERS, name))
    return [
        f"  {name:<{width}}  {int(metrics[name]) if name in INTEGERS else number(metrics[name])}"
        for name in order
    ]


_LOWER_IS_BETTER = ("rmse", "mae")


def baseline_lines(metrics: Mapping[str, float], baseline: Mapping[str, float]) -> list[str]:
    """What a model without features scores, and whether this one is no better."""
    if not baseline:
        return []
    kind = "majority" if "accuracy" in baseline else "mean"
    shown = ", ".join(f"{name} {number(value)}" for name, value in baseline.items())
    name, value = next(iter(baseline.items()))
    found = metrics.get(name, value)
    worse = found >= value if name in _LOWER_IS_BETTER else found <= value
    line = f"  the {kind} of the training labels has {shown}"
    return [line, "  The model is no better than that: it has learnt nothing."] if worse else [line]


def value_text(value: str | tuple[float, ...]) -> str:
    """A class's name in quotes, or the number(s) of a regressor."""
    return f'"{value}"' if isinstance(value, str) else ", ".join(number(part) for part in value)


def sentence(prediction: Prediction, expected: str | tuple[float, ...] | None) -> str:
    """`Prediction is "Setosa" (99.6%), expected "Setosa"`; without the latter part if None."""
    sure = f" ({_probability(prediction)})" if prediction.probabilities else ""
    told = "" if expected is None else f", expected {value_text(expected)}"
    return f"Prediction is {value_text(prediction.value)}{sure}{told}"


def _probability(prediction: Prediction) -> str:
    return f"{prediction.probabilities[str(prediction.value)]:.1%}"


def table_lines(predictions: Sequence[Prediction]) -> list[str]:
    """A table with one line per example: index, prediction and probability."""
    rows = [["example", "prediction", *(["probability"] if _with_classes(predictions) else [])]]
    for index, prediction in enumerate(predictions, start=1):
        row = [str(index), value_text(prediction.value).strip('"')]
        if prediction.probabilities:
            row.append(_probability(prediction))
        rows.append(row)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for example, value, *rest in rows:
        cells = [example.rjust(widths[0]), value.ljust(widths[1])]
        lines.append("  ".join([*cells, *(cell.rjust(widths[2]) for cell in rest)]).rstrip())
    return lines


def _with_classes(predictions: Sequence[Prediction]) -> bool:
    return bool(predictions) and bool(predictions[0].probabilities)


def write_predictions(stream: IO[str], predictions: Sequence[Prediction]) -> None:
    """Writes predictions as CSV, one line per example in the input's order.

    The columns are `prediction`, and for a classifier `probability` (of that class) and
    `probability_<class>`; for a regressor with several outputs `prediction_0`, `prediction_1`, ...
    """
    writer = csv.writer(stream, lineterminator="\n")
    first = predictions[0]
    if first.probabilities:
        names = [f"probability_{name}" for name in first.probabilities]
        writer.writerow(["prediction", "probability", *names])
    elif isinstance(first.value, str) or len(first.value) == 1:
        writer.writerow(["prediction"])
    else:
        writer.writerow([f"prediction_{index}" for index in range(len(first.value))])
    for prediction in predictions:
        if isinstance(prediction.value, str):
            shares = prediction.probabilities
            cells = [shares[prediction.value], *shares.values()] if shares else []
            writer.writerow([prediction.value, *(f"{cell:.6g}" for cell in cells)])
        else:
            writer.writerow([f"{part:.6g}" for part in prediction.value])


def write_table(path: Path, table: Table) -> None:
    """Writes a table as a CSV file with a header."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table)
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        writer.writerows(
            [each.decode() if isinstance(each, bytes) else each for each in row] for row in rows
        )
