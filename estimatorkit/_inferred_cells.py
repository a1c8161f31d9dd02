"""The formats of text in a table's cells, and the step that parses them (private).

Text in frames is read as `data.cell_looks` reads cells of CSV files: there is one mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from estimatorkit._inferred_code import Step
from estimatorkit.data.cell_formats import CellFormat
from estimatorkit.data.cell_looks import Look, look

if TYPE_CHECKING:
    import pandas as pd


_READ = "tf.feature_columns.read_cells"


def read_cells(
    series: pd.Series[Any],
    kind: Literal["number", "date", "boolean", "word", "trimmed"],
    decimal: Literal[".", ","] = ".",
    units: Sequence[str] = (),
    day_first: bool = False,
) -> pd.Series[Any]:
    """Reads cells as people write them: `$1,234.50`, `12%`, `31/01/2024`, `YES`.

    Args:
        series: a pandas Series of any values, `(rows,)`.
        kind: 'number'; 'date' in any usual form; 'boolean': yes, TRUE, 0, N; 'word': of any case;
            'trimmed': words whose case counts.
        decimal: the decimal sign of numbers; the other one may stand between thousands.
        units: what may stand beside numbers, in any case, such as '$', 'kg' or '%': 12% is 12.
        day_first: whether 01/02/2024 is the first of February.

    Returns:
        A Series with the same index: float64 numbers, NaN where there is none; or text (ISO dates,
        'true' and 'false', words), None where there is none.
    """
    import pandas as pd

    made = CellFormat(kind, decimal, tuple(units), day_first)
    values = made.values(_cells(series))
    if kind != "number":
        values = np.array([each.decode("utf-8", "replace") or None for each in values], object)
    return pd.Series(values, series.index, name=series.name)


def reading(made: CellFormat) -> Step:
    """The step that reads cells of a format."""
    given: list[tuple[str, Any]] = [("kind", made.kind)]
    if made.decimal != ".":
        given.append(("decimal", made.decimal))
    if made.units:
        given.append(("units", made.units))
    if made.day_first:
        given.append(("day_first", True))
    return Step(_READ, (), tuple(given))


def reads_cells(steps: Sequence[Step]) -> bool:
    """Whether a column's cells are read as they are written."""
    return any(step.path == _READ for step in steps)


def looks(columns: Mapping[str, pd.Series[Any]]) -> dict[str, Look]:
    """How columns of text are written, by name; without those that are to stay as they are.

    The decimal sign is a comma in all of them if it is one in any.
    """
    kinds = {name: _kind(each) for name, each in columns.items()}
    texts = {name: _cells(columns[name]) for name, kind in kinds.items() if kind}
    found = {name: look(each, plain=kinds[name] == "text") for name, each in texts.items()}
    if any(each is not None and each.format.decimal == "," for each in found.values()):
        found = {name: look(each, ",", plain=kinds[name] == "text") for name, each in texts.items()}
    return {name: each for name, each in found.items() if each is not None}


def _kind(series: pd.Series[Any]) -> str:
    """'text' for strings, or objects of which some are; 'category' for categories of words; ''."""
    import pandas as pd

    dtype: Any = series.dtype
    of_categories = isinstance(dtype, pd.CategoricalDtype)
    values: Any = dtype.categories if of_categories else series
    if values.dtype.kind not in "OSUT":
        return ""
    inside = pd.api.types.infer_dtype(values, skipna=True)
    mixed = inside in ("mixed", "mixed-integer")
    if inside in ("string", "bytes") or (mixed and any(isinstance(each, str) for each in values)):
        return "category" if of_categories else "text"
    return ""


def _cells(series: pd.Series[Any]) -> Any:
    """The values as objects; None where one is missing."""
    return np.asarray(series.astype(object).where(series.notna(), None), object)
