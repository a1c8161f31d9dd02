"""Fashion-MNIST: 70,000 pictures of clothes of 28 x 28 pixels (Xiao, Rasul, Vollgraf 2017)."""

from __future__ import annotations

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.data.datasets.mnist import Part, read_parts
from estimatorkit.lazy import listing

CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_MIRRORS = (
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
)


def load_data() -> tuple[Part, Part]:
    """Loads the data set (`tf.keras.datasets.fashion_mnist.load_data`).

    Returns:
        As `mnist.load_data`; the labels index `CLASSES`.

    Raises:
        UnavailableError: the files are missing and cannot be downloaded; the message says where to
            put them.
    """
    return read_parts(DATA_SET)


def _file(name: str, size: int, sha256: str) -> DataFile:
    return DataFile(name, size, sha256, tuple(mirror + name for mirror in _MIRRORS))


# Checksums pinned by several public libraries, and the MD5 that the authors publish; not verified
# against the files themselves.
DATA_SET = DataSet(
    name="fashion_mnist",
    title="pictures of clothes, 28 x 28 pixels",
    licence="MIT (Zalando SE)",
    folder="fashion_mnist",
    files=(
        _file(
            "train-images-idx3-ubyte.gz",
            26421880,
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        ),
        _file(
            "train-labels-idx1-ubyte.gz",
            29515,
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        ),
        _file(
            "t10k-images-idx3-ubyte.gz",
            4422102,
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        ),
        _file(
            "t10k-labels-idx1-ubyte.gz",
            5148,
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
