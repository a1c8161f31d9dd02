"""MNIST: 70,000 handwritten digits of 28 x 28 pixels (LeCun, Cortes, Burges 1998)."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.data.readers.idx import read_idx
from estimatorkit.lazy import listing

Part: TypeAlias = tuple[NDArray[Any], NDArray[Any]]

_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)


def load_data() -> tuple[Part, Part]:
    """Loads the data set (`tf.keras.datasets.mnist.load_data`).

    Returns:
        `(train_images, train_labels), (test_images, test_labels)`: uint8 `(60000, 28, 28)` and
        `(10000, 28, 28)`, 0 white to 255 black, and uint8 labels 0 to 9.

    Raises:
        UnavailableError: the files are missing and cannot be downloaded; the message says where to
            put them.
    """
    return read_parts(DATA_SET)


def read_parts(data_set: DataSet) -> tuple[Part, Part]:
    """Training and test part of a data set in MNIST's four-file format."""
    arrays = [read_idx(data_set.path(file.name)) for file in data_set.files]
    return (arrays[0], arrays[1]), (arrays[2], arrays[3])


def _file(name: str, size: int, sha256: str) -> DataFile:
    return DataFile(name, size, sha256, tuple(mirror + name for mirror in _MIRRORS))


# Sizes and checksums of the files themselves; their MD5 are those that other libraries publish with
# the two mirrors.
DATA_SET = DataSet(
    name="mnist",
    title="handwritten digits, 28 x 28 pixels",
    licence="CC BY-SA 3.0 (Yann LeCun and Corinna Cortes)",
    folder="mnist",
    files=(
        _file(
            "train-images-idx3-ubyte.gz",
            9912422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _file(
            "train-labels-idx1-ubyte.gz",
            28881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        _file(
            "t10k-images-idx3-ubyte.gz",
            1648877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        _file(
            "t10k-labels-idx1-ubyte.gz",
            4542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
