"""Splits of rows into training and test parts, the same on all machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import did_you_mean, explain, value_error

if TYPE_CHECKING:
    import pandas as pd

    Part: TypeAlias = tuple[pd.DataFrame, pd.Series]
    Parts: TypeAlias = tuple[pd.DataFrame, pd.DataFrame]


Positions = tuple[NDArray[np.int64], NDArray[np.int64]]


def split_indices(count: int, train_fraction: float, seed: int) -> Positions:
    """The indices 0 to `count` - 1 in random order, split in two.

    Raises:
        ValueError: a part would be empty.
    """
    first = round(count * train_fraction)
    _check_parts(count, first, train_fraction)
    order = np.random.Generator(np.random.PCG64(seed)).permutation(count)
    return order[:first], order[first:]


def split_stratified(classes: NDArray[Any], train_fraction: float, seed: int) -> Positions:
    """The indices in random order, split in two parts with the same share of each class.

    Of a class with several rows, each part has at least one.

    Args:
        classes: `(rows,)`.
        train_fraction: the fraction of rows in the first part.
        seed: the seed of the order.

    Raises:
        ValueError: a part would be empty.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(classes))
    places = np.unique(classes[order], return_inverse=True)[1]
    rank = np.empty(len(order), np.int64)  # of a row among those of its class
    by_class = np.argsort(places, kind="stable")
    counts = np.bincount(places)
    rank[by_class] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.clip(np.rint(counts * train_fraction), 1, np.maximum(counts - 1, 1))
    first = rank < kept[places]
    _check_parts(len(order), int(first.sum()), train_fraction)
    return order[first], order[~first]


def split_latest(times: NDArray[Any], train_fraction: float, seed: int) -> Positions:
    """The indices of the earlier rows, in random order, and of the latest, in the order of time.

    Rows of one time are in one part.

    Args:
        times: `(rows,)`, what can be sorted.
        train_fraction: the fraction of rows in the first part, about.
        seed: the seed of its order.

    Raises:
        ValueError: a part would be empty.
    """
    order = np.argsort(times, kind="stable")
    ends = np.flatnonzero(np.append(times[order][1:] != times[order][:-1], True)) + 1
    wanted = len(order) * train_fraction
    first = int(ends[np.abs(ends - wanted).argmin()])
    _check_parts(len(order), first, train_fraction)
    random = np.random.Generator(np.random.PCG64(seed))
    return random.permutation(order[:first]), order[first:]


def _check_parts(count: int, first: int, train_fraction: float) -> None:
    if not 0 < first < count:
        raise value_error(
            "a part of the split is empty",
            expected="at least one row to train and one to test with",
            received=f"{count} rows, {train_fraction} of them to train with",
        )


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


def split_by_time(table: pd.DataFrame, test_fraction: float = 0.1) -> Parts:
    """Splits rows by their column `timestamp`: the latest are the test part.

    Args:
        table: a DataFrame; rows of one time stay in their order.
        test_fraction: the fraction of rows in the test part.

    Returns:
        The training and the test part, each in the order of time.

    Raises:
        ValueError: a part would be empty.
    """
    count = len(table)
    first = count - round(count * test_fraction)
    if not 0 < first < count:
        raise value_error(
            "a part of the split is empty",
            expected="at least one row to train and one to test with",
            received=f"{count} rows, {test_fraction} of them to test with",
        )
    ordered = table.sort_values("timestamp", kind="stable")
    return ordered.iloc[:first], ordered.iloc[first:]


def split_last(table: pd.DataFrame, by: str = "user_id") -> Parts:
    """Splits off the last row of each user, by `timestamp` (of one time, the last in the table).

    Args:
        table: a DataFrame.
        by: the column of users; those with one row stay in the training part.

    Returns:
        The training and the test part, each in the order of time.
    """
    ordered = table.sort_values("timestamp", kind="stable")
    groups = ordered.groupby(by, sort=False)
    last = (groups.cumcount(ascending=False) == 0) & (groups.cumcount() > 0)
    return ordered[~last], ordered[last]
