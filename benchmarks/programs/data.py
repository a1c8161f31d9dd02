"""MNIST, census and CIFAR-10 for the programs beside this file; NumPy and the standard library
only.

The files lie in the folder ``ESTIMATORKIT_DATA_DIR``.
"""

import gzip
import os
from pathlib import Path

import numpy as np

FOLDER = Path(os.environ["ESTIMATORKIT_DATA_DIR"])


def mnist():
    """Returns training and test pictures, each ``(images, labels)``: float32 rows of 784 in
    [0, 1], and int32 numbers."""
    return _mnist_part("train"), _mnist_part("t10k")


def _mnist_part(name):
    with gzip.open(FOLDER / "mnist" / f"{name}-images-idx3-ubyte.gz") as stream:
        images = np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FOLDER / "mnist" / f"{name}-labels-idx1-ubyte.gz") as stream:
        labels = np.frombuffer(stream.read(), np.uint8, offset=8).astype(np.int32)
    return images.astype(np.float32) / 255, labels
