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

    Rows come `num_epochs` times; a batch may hold the end of one epoch and the start of the next;
    only the very last may have fewer rows.

    Difference from TensorFlow: each epoch is shuffled as a whole rather than within a queue of
    `queue_capacity` rows, which mixes better; and as there is no queue, that argument and
    `num_threads` have no effect.

    Args:
        x: features: a dict of arrays, or an array; equal in their first dimension.
        y: labels: an array or a dict of arrays; None: no labels.
        batch_size: rows per batch.
        num_epochs: passes over the rows; None: for ever.
        shuffle: True to train; must be given.
        queue_capacity: accepted for TensorFlow's signature.
        num_threads: accepted for TensorFlow's signature.

    Returns:
        A function without arguments. It adds an iterator to the default graph and returns the
        tensors of the next batch: `(features, labels)`, or features alone.

    Raises:
        ValueError: `shuffle` is not a bool; lengths differ; something is empty; a key in both
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
            expected="features and labels of different names",
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
    """The number of rows of each of a dict of arrays; of one array under an empty name."""
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
    """Makes an input function of a DataFrame: see `numpy_input_fn`, also for what differs.

    Args:
        x: features, a column each.
        y: labels: a Series, or a DataFrame, which gives a dict of labels; indexed as `x` is.
        batch_size: rows per batch.
        num_epochs: passes over the rows; None: for ever.
        shuffle: True to train; must be given.
        queue_capacity: accepted for TensorFlow's signature.
        num_threads: accepted for TensorFlow's signature.
        target_column: TensorFlow's name for the labels among the columns; no feature may have it.

    Raises:
        TypeError: `x` is no DataFrame, or `target_column` no string.
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
                hint="give another target_column=",
            )
        if not np.array_equal(x.index, y.index):
            raise value_error(
                "Index for x and y are mismatched",
                expected=f"the index of x: {x.index}",
                received=f"the index of y: {y.index}",
                hint="bring y into the order of x with y.loc[x.index]",
            )
    # The columns as they are now: the frame may change afterwards.
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
        # Without an end every batch is full; saying so makes its size known to the graph.
        batches = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
        return make_one_shot_iterator(batches).get_next()

    return input_fn


__dir__ = listing(__name__)
