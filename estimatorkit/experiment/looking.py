"""`infer` looks at cells: how the columns of the training data are written (`data.formats`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.data.cell_formats import CellFormat
from estimatorkit.data.cell_looks import Look, look
from estimatorkit.experiment import sources, tables
from estimatorkit.experiment.examples import used_columns
from estimatorkit.experiment.formats import setting
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tables import Table


def looks(source: Any, table: Table, decimal: str | None = None) -> dict[str, Look]:
    """How the columns of a source are written; without those that are read as they are.

    Args:
        source: where the table is from, to see the cells of numbers.
        table: its columns.
        decimal: the decimal sign, if it is known.
    """
    found = _looks(table, decimal)
    if decimal is None and any(each.format.decimal == "," for each in found.values()):
        decimal = ","
    if decimal == "," and isinstance(source, sources.CsvSource):
        numbers = [name for name, column in table.items() if column.dtype.kind == "f"]
        cells = tables.read_source(source.model_copy(update={"texts": tuple(numbers)}))
        found |= _looks({name: cells[name] for name in numbers}, ",")
    return found


def _looks(table: Mapping[str, NDArray[Any]], decimal: str | None) -> dict[str, Look]:
    made = {name: look(column, decimal) for name, column in table.items() if column.ndim == 1}
    return {name: each for name, each in made.items() if each is not None}


def with_formats(
    experiment: Experiment, table: Table
) -> tuple[Experiment, dict[str, Any], dict[str, Look]]:
    """The experiment with the formats of columns that no feature reads and that have none.

    Returns:
        It, these formats as settings, and the looks they are from.
    """
    without = experiment.infer.without if experiment.infer else ()
    known = {*used_columns(experiment), *(experiment.data.label or ()), *without}
    known |= (experiment.data.formats or {}).keys()
    source = experiment.data.as_read(experiment.data.train)
    given = Table({name: each for name, each in table.items() if name not in known})
    found = looks(source, given)
    made = {name: setting(each.format) for name, each in found.items()}
    return with_settings(experiment, made), made, found


def with_settings(experiment: Experiment, formats: Mapping[str, Any]) -> Experiment:
    """The experiment with more `data.formats`."""
    if not formats:
        return experiment
    data = experiment.model_dump(mode="json")
    data["data"]["formats"] = {**formats, **(data["data"]["formats"] or {})}
    return Experiment.model_validate(data)


def values(made: CellFormat | None, column: NDArray[Any]) -> NDArray[Any]:
    """A column for `infer`: words are text, and a missing one None."""
    if made is not None:
        column = made.values(column)
    if column.dtype.kind != "O":
        return column
    words = np.empty(len(column), object)
    words[:] = [_word(each) for each in column]
    return words


def _word(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value or None if isinstance(value, str) else value


def with_looks(notes: Mapping[str, str], seen: Mapping[str, Look]) -> dict[str, str]:
    """Notes on columns, after how they are written."""
    return {name: f"{seen[name]}: {note}" if name in seen else note for name, note in notes.items()}


_MOST_NOTES = 100


def note_lines(notes: Mapping[str, str]) -> list[str]:
    """Notes for the terminal, a line for each column, and how to get back what is left out."""
    lines = [f"  {name}: {note}" for name, note in notes.items()]
    if len(lines) > _MOST_NOTES:
        lines = [*lines[:_MOST_NOTES], f"  ... and {len(lines) - _MOST_NOTES} more columns"]
    left_out = [name for name, note in notes.items() if " left out: " in note]
    if left_out:
        example = f"{{hash_bucket: {{key: {left_out[0]}, hash_bucket_size: 1000}}}}"
        lines.append(f"  To use what is left out, list it under features, such as {example}.")
    if any(" count" in note and " as missing: " in note for note in notes.values()):
        lines.append("  A column stays text by data: {formats: {<column>: text}}.")
    return lines
