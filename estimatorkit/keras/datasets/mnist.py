"""`tf.keras.datasets.mnist`."""

from __future__ import annotations

from pathlib import Path

from estimatorkit.data.datasets import mnist
from estimatorkit.keras.datasets.npz import Part, read_npz
from estimatorkit.lazy import listing


def load_data(path: str | Path | None = None) -> tuple[Part, Part]:
    """`data.datasets.mnist.load_data`, or the data set in a file.

    Args:
        path: an `.npz` file as Keras keeps it; by default the data set's own files, which are
            fetched where they are not here yet. `'mnist.npz'` means these, too, unless there is
            such a file: it is Keras's default.

    Returns:
        `(train_images, train_labels), (test_images, test_labels)`: uint8 `(60000, 28, 28)`,
        `(60000,)`, `(10000, 28, 28)`, `(10000,)`.
    """
    if path is None or (str(path) == "mnist.npz" and not Path(path).exists()):
        return mnist.load_data()
    return read_npz(path)


__all__ = ["load_data"]
__dir__ = listing(__name__)
