"""Splits of rows into training and test parts, the same on all machines."""

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
    """The indices 0 to `count` - 1 in random order, split in two.

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
    """Splits a table into training and test features and labels; drops rows without a label.

    Args:
        table: a DataFrame.
        label_name: the label column.
        train_fraction: the fraction of rows in the training part.
        seed: the seed of the split; the same seed yields the same split on all machines.

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
