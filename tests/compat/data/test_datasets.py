"""The tests of `tests/data/test_datasets.py` that need names of TensorFlow 1."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.compat import mnist_input_data
from estimatorkit.data.datasets import mnist
from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from tests.data.test_datasets import LOCAL, Server, folders, idx, named, server, shared

__all__ = ["folders", "named", "server", "shared"]


def test_mnist_reads_downloaded_files(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The whole way, with four small files in the form of MNIST's."""
    images = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 256
    contents = {
        "train-images-idx3-ubyte.gz": idx(images),
        "train-labels-idx1-ubyte.gz": idx(np.array([3, 7])),
        "t10k-images-idx3-ubyte.gz": idx(images[:1]),
        "t10k-labels-idx1-ubyte.gz": idx(np.array([9])),
    }
    server.answer = lambda handler: server.send(handler, 200, contents[handler.path[1:]])
    base = server.url.removesuffix("file")
    small = DataSet(
        *("mnist", "small", "none", "mnist"),
        tuple(
            DataFile(name, len(each), hashlib.sha256(each).hexdigest(), (base + name,))
            for name, each in contents.items()
        ),
        mnist.load_data,
    )
    for name in contents:
        small.path(name, LOCAL)
    monkeypatch.setattr(mnist, "DATA_SET", small)
    (x, y), (test_x, test_y) = tf.datasets.mnist.load_data()
    np.testing.assert_array_equal(x, images)
    assert x.dtype == y.dtype == np.uint8
    assert y.tolist() == [3, 7]
    assert test_x.shape == (1, 28, 28)
    assert test_y.tolist() == [9]
    sets = mnist_input_data.read_data_sets(str(tmp_path), one_hot=True, validation_size=1)
    assert sets.train.images.shape == (1, 784)
    assert sets.test.labels.tolist() == [[0.0] * 9 + [1.0]]
    assert len(server.requests) == 4
