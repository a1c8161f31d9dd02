"""Input functions for arrays and DataFrames: `tf.estimator.inputs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core.errors import type_error, value_error
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import make_one_shot_iterator
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    import pandas as pd


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """Makes an input function of arrays in memory.

    Rows repeat `num_epochs` times; a batch may span two epochs, and only the very last may be
    smaller.

    Difference from TensorFlow: each epoch is fully shuffled instead of within a queue of
    `queue_capacity` rows; without a queue, `queue_capacity` and `num_threads` have no effect.

    Args:
        x: features: a dict of arrays, or an array; with equal first dimensions.
        y: labels: an array or a dict of arrays; None for none.
        batch_size: rows per batch.
        num_epochs: the number of epochs; None repeats indefinitely.
        shuffle: whether to shuffle, True for training; required.

    Returns:
        A function without arguments that adds an iterator to the default graph and returns the
        tensors of the next batch: `(features, labels)`, or features alone.

    Raises:
        ValueError: `shuffle` is not a bool; lengths differ; something is empty; a key is in both
            dicts.
        TypeError: `x` or `y` is not an array or dict.
    """
    _check_shuffle(shuffle)
    for name, value in (("x", x), ("y", y)):
        if isinstance(value, Mapping) and not value:
            raise ValueError(
                "x cannot be an empty dict"
                if name == "x"
                else "y cannot be empty dict, use None instead."
            )
        if not isinstance(value, (Mapping, np.ndarray)) and (name == "x" or value is not None):
            raise type_error(
                f"{name} must be a dict or array",
                expected="a NumPy array, or a dict of them",
                received=type(value).__name__,
            )
    if isinstance(x, np.ndarray) and x.size == 0:
        raise ValueError("x cannot be an empty array")
    if isinstance(x, Mapping) and isinstance(y, Mapping) and x.keys() & y.keys():
        raise value_error(
            f"{len(x.keys() & y.keys())} duplicate keys are found in both x and y",
            expected="features and labels with different names",
            received=sorted(x.keys() & y.keys()),
        )
    of_x, of_y = _lengths(x), _lengths(y)
    if len({*of_x.values(), *of_y.values()}) != 1:
        raise value_error(
            "Length of tensors in x and y is mismatched. All elements in x and y must have "
            "the same length",
            received=f"lengths {of_x} in x, {of_y} in y",
        )
    return _input_fn(x, y, batch_size, num_epochs, bool(shuffle))


def _lengths(value: Any) -> dict[Any, int]:
    """The number of rows of each array of a dict; of a single array under an empty name."""
    named = value if isinstance(value, Mapping) else {} if value is None else {"": value}
    return {name: len(each) for name, each in named.items()}


def pandas_input_fn(
    x: pd.DataFrame,
    y: pd.Series | pd.DataFrame | None = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """Makes an input function of a DataFrame; see `numpy_input_fn`, also for differences.

    Args:
        x: features, one per column.
        y: labels: a Series, or a DataFrame for a dict of labels; with the index of `x`.
        batch_size: rows per batch.
        num_epochs: the number of epochs; None repeats indefinitely.
        shuffle: whether to shuffle, True for training; required.
        target_column: TensorFlow's name of the labels among the columns; no feature may have it.

    Raises:
        TypeError: `x` is not a DataFrame, or `target_column` not a string.
        ValueError: `shuffle` is not a bool; the indices differ; a feature is named `target_column`.
    """
    import pandas as pd

    _check_shuffle(shuffle)
    if not isinstance(x, pd.DataFrame):
        raise type_error(
            "x must be a DataFrame", expected="pandas.DataFrame", received=type(x).__name__
        )
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    if y is not None:
        if target_column in x:
            raise value_error(
                f"Cannot use name {target_column} for target column: DataFrame already has a "
                f"column with that name: {x.columns}",
                hint="use another target_column=",
            )
        if not np.array_equal(x.index, y.index):
            raise value_error(
                "Index for x and y are mismatched",
                expected=f"the index of x: {x.index}",
                received=f"the index of y: {y.index}",
                hint="reorder y with y.loc[x.index]",
            )
    # A snapshot of the columns: the frame may change later.
    return _input_fn(
        x.copy(), None if y is None else y.copy(), batch_size, num_epochs, bool(shuffle)
    )


def _check_shuffle(shuffle: bool | None) -> None:
    if not isinstance(shuffle, bool):
        raise value_error(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set "
            f"it as True for training); got {shuffle}",
            expected="True or False",
            received=shuffle,
        )


def _input_fn(
    features: Any, labels: Any, batch_size: int, num_epochs: int | None, shuffle: bool
) -> Callable[[], Any]:
    rows = Dataset.from_tensor_slices(features if labels is None else (features, labels))

    def input_fn() -> Any:
        dataset = rows.shuffle(max(1, len(rows))) if shuffle else rows
        # With infinite epochs every batch is full; this makes its size static.
        batches = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
        return make_one_shot_iterator(batches).get_next()

    return input_fn


__dir__ = listing(__name__)
