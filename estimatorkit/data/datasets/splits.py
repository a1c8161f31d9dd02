"""Splits of rows into a part to train and one to test with; the same on all machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import did_you_mean, explain, value_error

if TYPE_CHECKING:
    import pandas as pd

    Part: TypeAlias = tuple[pd.DataFrame, pd.Series]


def split_indices(
    count: int, train_fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers 0 to `count` - 1 in random order, cut in two.

    Raises:
        ValueError: a part would be empty.
    """
    first = round(count * train_fraction)
    if not 0 < first < count:
        raise value_error(
            "a part of the split is empty",
            expected="at least one row to train and one to test with",
            received=f"{count} rows, {train_fraction} of them to train with",
        )
    order = np.random.Generator(np.random.PCG64(seed)).permutation(count)
    return order[:first], order[first:]


def split_rows(
    table: pd.DataFrame, label_name: str, train_fraction: float = 0.7, seed: int = 0
) -> tuple[Part, Part]:
    """Cuts a table into features and labels to train and to test with.

    Rows without a label are left out.

    Args:
        table: a DataFrame.
        label_name: the column that becomes the labels.
        train_fraction: which part of the rows is to train with.
        seed: of the order of the rows; one seed gives one split, on all machines.

    Returns:
        `(train_x, train_y), (test_x, test_y)`.

    Raises:
        KeyError: there is no such column.
        ValueError: a part would be empty.
    """
    if label_name not in table.columns:
        raise KeyError(
            explain(
                f"there is no column {label_name!r}",
                expected=f"one of {list(table.columns)}",
                hint=did_you_mean(label_name, map(str, table.columns)),
            )
        )
    table = table.dropna(subset=[label_name])
    parts = []
    for rows in split_indices(len(table), train_fraction, seed):
        part = table.iloc[rows]
        parts.append((part.drop(columns=label_name), part[label_name]))
    return parts[0], parts[1]
