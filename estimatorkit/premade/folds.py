"""Cross-validation folds: a model has a part for each, trained on the rows of the others (bagging).

Rows in a fold are predicted by the part that has not seen them, and new rows by the mean of all
parts (Parmanto et al. 1996; AutoGluon, Erickson et al.
2020, arXiv:2003.06505). So all rows train the model, and all of them measure it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import float32
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.array.indexing import one_hot

FOLD = "ensemble fold"
"""The key of the fold of each row among the features, int32 `(batch,)`."""


def of_rows(features: Any, folds: int) -> Tensor | None:
    """The weights of the parts for each row: its fold as one-hot float32 `(batch, folds)`.

    None if there is one part, or if the rows are in no folds: all weights are equal.
    """
    if folds == 1 or not isinstance(features, Mapping) or FOLD not in features:
        return None
    found: Tensor = one_hot(features[FOLD], folds, dtype=float32)
    return found


def repeated(given: Tensor, count: int, axis: int) -> Tensor:
    """Repeats each entry of an axis, by nodes that TensorFlow has (there is none for `repeat`).

    Args:
        given: one of its dimensions may be unknown, that of another axis.
        count: the number of repetitions.
        axis: at least 0.
    """
    shape = [-1 if size is None else size for size in given.shape.as_list()]
    multiples = [1] * (len(shape) + 1)
    multiples[axis + 1] = count
    shape[axis] *= count
    found: Tensor = array.reshape(
        filling.tile(array.expand_dims(given, axis + 1), multiples), shape
    )
    return found


def divided(labels: NDArray[Any], folds: int, seed: int) -> NDArray[np.int32]:
    """Stratified random folds, `(rows,)`: labels in each are distributed as in all rows."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels.reshape(len(labels), -1)[order, 0], kind="stable")]
    found = np.empty(len(labels), np.int32)
    found[order] = np.arange(len(labels)) % folds
    return found
