"""Formats the command's output: metrics, predictions as sentences, tables, CSV files."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.predicting import BASELINE, CONTRIBUTION, Columns, Prediction
from estimatorkit.storage.atomic_files import os_errors, plain, temporary_beside

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


_MOST_CONTRIBUTIONS = 8
"""Columns of an explanation that are printed."""

_LOWER_IS_BETTER = ("rmse", "mae")


def baseline_lines(
    metrics: Mapping[str, float], baseline: Mapping[str, float], chosen_by: str | None = None
) -> list[str]:
    """The scores of a model without features, and whether this one is no better.

    Args:
        metrics: of the model.
        baseline: see `scores.baseline`.
        chosen_by: the metric that selects the model, and judges it. Where the baseline lacks it,
            as it does the loss, a model that is better by any score has learnt something: one that
            ranks rows of a rare class well may never predict it.
    """
    if not baseline:
        return []
    kind = "majority" if "accuracy" in baseline else "mean"
    shown = ", ".join(f"{name} {number(value)}" for name, value in baseline.items())
    line = f"  the {kind} of the training labels has {shown}"
    judges = [name for name in baseline if name == chosen_by] or list(baseline)
    if any(_is_better(name, metrics, baseline[name]) for name in judges):
        return [line]
    return [line, "  The model is no better than that: it has learnt nothing."]


def _is_better(name: str, metrics: Mapping[str, float], baseline: float) -> bool:
    found = metrics.get(name, baseline)
    return found < baseline if name in _LOWER_IS_BETTER else found > baseline


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


def table_lines(predictions: Columns, first: int = 1) -> list[str]:
    """A line per example: index, prediction and probability; of the first examples, with a head.

    Args:
        predictions: columns (see `predicting`).
        first: the index of the first example.
    """
    names = [name for name in predictions if not name.startswith("probability_")]
    cells = {name: [_cell(name, each) for each in predictions[name]] for name in names}
    widths = {name: max(len(name), *map(len, cells[name])) for name in names}
    lines = ["  ".join(["example", *(name.ljust(widths[name]) for name in names)]).rstrip()]
    for row in range(len(cells[names[0]])):
        shown = [
            each[row].rjust(widths[name])
            if name == "probability"
            else each[row].ljust(widths[name])
            for name, each in cells.items()
        ]
        lines.append("  ".join([f"{first + row:>7}", *shown]).rstrip())
    return lines if first == 1 else lines[1:]


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bytes):  # a kept column
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    if np.ndim(value):
        return ", ".join(_cell("", each) for each in value if each not in (b"", ""))
    return f"{value:.1%}" if name == "probability" else number(float(value))


def explanation_lines(predictions: Columns, table: Columns, first: int = 1) -> list[str]:
    """For each example its baseline and the columns that add most to it, with their values.

    Args:
        predictions: columns with explanations (see `predicting`).
        table: the columns of the data.
        first: the index of the first example.
    """
    keys = [name for name in predictions if name.startswith(CONTRIBUTION)]
    lines = []
    for row, baseline in enumerate(predictions[BASELINE]):
        added = {name: float(predictions[name][row]) for name in keys}
        order = sorted(keys, key=lambda name: -abs(added[name]))
        total = number(float(baseline) + sum(added.values()))
        shown = f"{explained_number(predictions, row)} {total} = baseline"
        lines += ["", f"example {first + row}: {shown} {number(float(baseline))}, and"]
        for name in order[:_MOST_CONTRIBUTIONS]:
            key = name.removeprefix(CONTRIBUTION)
            lines.append(f"  {added[name]:+.4f}  {key} = {cell_text(table[key][row])}")
        rest = order[_MOST_CONTRIBUTIONS:]
        if rest:
            lines.append(f"  {sum(added[name] for name in rest):+.4f}  {len(rest)} more columns")
    return lines


def cell_text(cell: Any) -> str:
    """A cell of the data, for display."""
    found = f"{cell:g}" if isinstance(cell, np.number) else _cell("", cell)
    return "(missing)" if found in ("", "nan") else found


def explained_number(predictions: Columns, row: int) -> str:
    """The number that is explained."""
    classes = [name for name in predictions if name.startswith("probability_")]
    if len(classes) == 2:
        return f"the probability of {classes[1].removeprefix('probability_')},"
    return f"the probability of {predictions['prediction'][row]}," if classes else "prediction"


class PredictionFile:
    """Writes predictions to a CSV or Parquet file, by its name; a context manager.

    Numbers have the digits that float32 has.

    Raises:
        DataError: Parquet files need pyarrow, which is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = ExitStack()
        self._is_parquet = path.suffix in (".parquet", ".pq")
        self._writer: Any = None
        self.rows = 0

    def __enter__(self) -> Self:
        self._temporary = self._opened.enter_context(temporary_beside(self._path))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._opened:
            if self._writer is not None:
                self._writer.close()
                if kind is None:
                    self._temporary.replace(self._path)

    def write(self, columns: Columns) -> None:
        """Appends rows."""
        import pandas as pd

        frame = pd.DataFrame({name: _written(column) for name, column in columns.items()})
        if self._is_parquet:
            self._write_parquet(frame)
        else:
            self._writer = self._writer or self._temporary.open("w", encoding="utf-8", newline="")
            frame.to_csv(self._writer, header=self.rows == 0, index=False, lineterminator="\n")
        self.rows += len(frame)

    def _write_parquet(self, frame: Any) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise DataError.explained(
                "writing Parquet files needs pyarrow", hint="pip install pyarrow."
            ) from error
        schema = None if self._writer is None else self._writer.schema
        rows = pa.Table.from_pandas(frame, schema, preserve_index=False)
        self._writer = self._writer or pq.ParquetWriter(self._temporary, rows.schema)
        self._writer.write_table(rows)


def _written(column: NDArray[Any]) -> Any:
    """A column as it is written: words as text."""
    if column.dtype.kind != "O":
        return column
    return [each.decode() if isinstance(each, bytes) else each for each in column]


def write_table(path: Path, table: Columns) -> None:
    """Writes a table as a CSV file with a header."""
    with (
        os_errors("write the table", path),
        open(path, "w", encoding="utf-8", newline="", opener=plain) as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table)
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        writer.writerows(
            [each.decode() if isinstance(each, bytes) else each for each in row] for row in rows
        )
