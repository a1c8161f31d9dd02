"""Digits: 1,797 handwritten digits of 8 x 8 pixels, bundled with scikit-learn."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.data.datasets.files import DataSet
from estimatorkit.data.datasets.splits import split_indices
from estimatorkit.lazy import listing

Part: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


def load_data(test_fraction: float = 0.2, seed: int = 0) -> tuple[Part, Part]:
    """Loads the data set.

    Args:
        test_fraction: the fraction of digits in the test part.
        seed: of the split, which is the same on all machines.

    Returns:
        `(train_images, train_labels), (test_images, test_labels)`: uint8 `(n, 8, 8)`, 0 white to 16
        black, and uint8 labels 0 to 9.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = digits.images.astype(np.uint8), digits.target.astype(np.uint8)
    train, test = split_indices(len(labels), 1.0 - test_fraction, seed)
    return (images[train], labels[train]), (images[test], labels[test])


DATA_SET = DataSet(
    name="digits",
    title="handwritten digits, 8 x 8 pixels",
    licence="CC BY 4.0 (UCI Machine Learning Repository)",
    folder="",
    files=(),
    load=load_data,
)

__dir__ = listing(__name__)
