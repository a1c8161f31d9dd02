"""`tf.contrib.learn.datasets.base`: CSV files as arrays, as in the first Iris tutorial."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from estimatorkit.gfile import GFile
from estimatorkit.lazy import listing

__dir__ = listing(__name__, "DATASETS", "load_iris")


class Dataset(NamedTuple):
    """Features and labels of a data set.

    Attributes:
        data: (examples, features).
        target: (examples,).
    """

    data: Any
    target: Any


class Datasets(NamedTuple):
    """The parts of a data set."""

    train: Any
    validation: Any
    test: Any


def load_csv_with_header(
    filename: str | os.PathLike[str],
    target_dtype: DTypeLike,
    features_dtype: DTypeLike,
    target_column: int = -1,
) -> Dataset:
    """Reads a CSV file whose first line has the numbers of examples and features.

    Args:
        filename: the file.
        target_dtype, features_dtype: of the labels and of the features.
        target_column: the label column.
    """
    rows = _rows(filename)
    header = next(rows)
    found = _dataset(rows, target_dtype, features_dtype, target_column)
    size, features = int(header[0]), int(header[1])
    return Dataset(found.data[:size].reshape(-1, features), found.target[:size])


def load_csv_without_header(
    filename: str | os.PathLike[str],
    target_dtype: DTypeLike,
    features_dtype: DTypeLike,
    target_column: int = -1,
) -> Dataset:
    """Reads a CSV file of examples only; see `load_csv_with_header`."""
    return _dataset(_rows(filename), target_dtype, features_dtype, target_column)


def load_iris() -> Dataset:
    """The bundled iris flowers, float64 `(150, 4)` and int64 `(150,)`: the 120 of the training file
    come first (TensorFlow sorts them by species).
    """
    folder = resources.files("estimatorkit.data") / "files"
    parts = []
    for name in ("iris_training.csv", "iris_test.csv"):
        with resources.as_file(folder / name) as path:
            parts.append(load_csv_with_header(path, np.int64, np.float64))
    return Dataset(*map(np.concatenate, zip(*parts, strict=True)))


def _load_mnist(train_dir: str = "MNIST-data") -> Any:
    from estimatorkit.compat.mnist_input_data import read_data_sets

    return read_data_sets(train_dir)


DATASETS: dict[str, Callable[..., Any]] = {"iris": load_iris, "mnist": _load_mnist}
"""The functions that load data sets, by name (`tf.contrib.learn.datasets.DATASETS`)."""


def _rows(filename: str | os.PathLike[str]) -> Iterator[list[str]]:
    with GFile(filename, "r") as file:
        yield from filter(None, csv.reader(file))


def _dataset(
    rows: Iterator[Sequence[str]], target: DTypeLike, features: DTypeLike, column: int
) -> Dataset:
    data, labels = [], []
    for row in rows:
        values = list(row)
        labels.append(values.pop(column))
        data.append(_array(values, features))
    return Dataset(np.array(data), _array(labels, target))


def _array(texts: Sequence[str], dtype: DTypeLike) -> NDArray[Any]:
    """Parses numbers; '1.0' is also accepted as an integer."""
    wanted = np.dtype(dtype)
    if wanted.kind in "iu":
        return np.array(texts, np.float64).astype(wanted)
    return np.array(texts, wanted)
