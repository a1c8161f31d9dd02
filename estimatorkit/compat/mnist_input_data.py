"""`tensorflow.examples.tutorials.mnist.input_data`: MNIST as arrays, in batches.

The four files (`train-images-idx3-ubyte.gz` and so on) may be present; otherwise they are looked up
or downloaded as in `datasets.mnist`.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype, float32, uint8
from estimatorkit.data.datasets import mnist
from estimatorkit.data.readers.idx import read_idx

_FILES = {
    "train_images": "train-images-idx3-ubyte.gz",
    "train_labels": "train-labels-idx1-ubyte.gz",
    "test_images": "t10k-images-idx3-ubyte.gz",
    "test_labels": "t10k-labels-idx1-ubyte.gz",
}


class DataSet:
    """Images and labels in shuffled batches.

    Args:
        images: uint8 `(n, 28, 28, 1)`, or any array with that many rows.
        labels: `(n,)`, or `(n, 10)` one-hot.
        dtype: uint8 for [0, 255], float32 for [0, 1].
        reshape: whether to flatten images to rows of pixels.
        seed: of the shuffling.
    """

    def __init__(
        self,
        images: NDArray[Any],
        labels: NDArray[Any],
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        if as_dtype(dtype) not in (uint8, float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        if len(images) != len(labels):
            raise ValueError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
        if reshape:
            images = images.reshape(len(images), -1)
        if as_dtype(dtype) is float32:
            images = images.astype(np.float32) * np.float32(1.0 / 255.0)
        self.images = images
        self.labels = labels
        self.num_examples = len(images)
        self.epochs_completed = 0
        self._random = np.random.default_rng(seed)
        self._order = np.arange(len(images))
        self._position = 0

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The next images and labels; a batch may extend into the next epoch."""
        if self._position == 0 and self.epochs_completed == 0 and shuffle:
            self._random.shuffle(self._order)
        end = self._position + batch_size
        chosen = self._order[self._position : end]
        self._position = end
        if end > self.num_examples:
            self.epochs_completed += 1
            if shuffle:
                self._random.shuffle(self._order)
            self._position = end - self.num_examples
            chosen = np.concatenate([chosen, self._order[: self._position]])
        return self.images[chosen], self.labels[chosen]


class Datasets(NamedTuple):
    """The three parts of the data."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = "",
) -> Datasets:
    """Loads MNIST from a folder.

    Args:
        train_dir: the folder with the four gzipped IDX files; missing ones are looked up or
            downloaded as in `datasets.mnist`.
        fake_data, source_url: accepted for compatibility only.
        one_hot: whether labels are one-hot rows.
        dtype, reshape, seed: see `DataSet`.
        validation_size: how many training images to set aside for validation.

    Raises:
        UnavailableError: the files are not found and cannot be downloaded.
        ValueError: validation_size is out of range.
    """
    arrays = {name: read_idx(_find(train_dir, file)) for name, file in _FILES.items()}
    images, labels = arrays["train_images"][..., None], arrays["train_labels"]
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"Validation size should be between 0 and {len(images)}. Received: {validation_size}."
        )
    test_labels = arrays["test_labels"]
    if one_hot:
        labels, test_labels = np.eye(10)[labels], np.eye(10)[test_labels]
    rest: dict[str, Any] = {"dtype": dtype, "reshape": reshape, "seed": seed}
    return Datasets(
        DataSet(images[validation_size:], labels[validation_size:], **rest),
        DataSet(images[:validation_size], labels[:validation_size], **rest),
        DataSet(arrays["test_images"][..., None], test_labels, **rest),
    )


def _find(folder: str, file: str) -> str:
    for name in (file, file.removesuffix(".gz")):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return str(mnist.DATA_SET.path(file))
