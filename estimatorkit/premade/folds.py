"""Folds: parts of the rows. A model has a part for each, which is trained on all other rows.

Rows that are in a fold are then predicted by the part that has not seen them, as in
cross-validation, and new rows by all parts: a bag (Parmanto et al. 1996; AutoGluon, Erickson et al.
2020, arXiv:2003.06505). So all rows train the model, and all of them say how well it predicts.
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
    """What each part counts for each row, float32 `(batch, folds)`: 1 for that of its fold, else 0.

    None if there is one part, or if the rows are in no folds: all parts count alike.
    """
    if folds == 1 or not isinstance(features, Mapping) or FOLD not in features:
        return None
    found: Tensor = one_hot(features[FOLD], folds, dtype=float32)
    return found


def repeated(given: Tensor, count: int, axis: int) -> Tensor:
    """Each entry of an axis so many times, by nodes that TensorFlow has.

    Args:
        given: one of its dimensions may be unknown, that of another axis.
        count: how many times.
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
    """The fold of each row, `(rows,)`: at random, but each has labels like those of all rows."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels.reshape(len(labels), -1)[order, 0], kind="stable")]
    found = np.empty(len(labels), np.int32)
    found[order] = np.arange(len(labels)) % folds
    return found
