"""Sentence polarity: 10,662 sentences of film reviews, half of them positive (Pang, Lee 2005)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.data.datasets.splits import split_indices
from estimatorkit.lazy import listing

Part: TypeAlias = tuple[list[str], NDArray[Any]]

_SOURCE = (
    "https://raw.githubusercontent.com/dennybritz/cnn-text-classification-tf/master/data/"
    "rt-polaritydata/"
)


def load_data(test_fraction: float = 0.1, seed: int = 0) -> tuple[Part, Part]:
    """Loads the data set.

    Args:
        test_fraction: the fraction of sentences in the test part.
        seed: of the split, which is the same on all machines.

    Returns:
        `(train_sentences, train_labels), (test_sentences, test_labels)`: lists of tokenised
        lower-case sentences, and int64 labels, 1 positive and 0 negative.

    Raises:
        UnavailableError: the files are missing and cannot be downloaded; the message says where to
            put them.
    """
    positive, negative = (_lines(f"rt-polarity.{kind}") for kind in ("pos", "neg"))
    sentences = positive + negative
    labels = np.repeat(np.array([1, 0]), [len(positive), len(negative)])

    def part(rows: NDArray[np.int64]) -> Part:
        return [sentences[row] for row in rows.tolist()], labels[rows]

    train, test = split_indices(len(sentences), 1.0 - test_fraction, seed)
    return part(train), part(test)


def _lines(name: str) -> list[str]:
    text = DATA_SET.path(name).read_text("utf-8")
    return [line.strip() for line in text.split("\n") if line.strip()]


# Checksums of the files themselves, downloaded from this repository.
DATA_SET = DataSet(
    name="movie_reviews",
    title="sentences of film reviews, positive and negative",
    licence="no terms stated (Bo Pang and Lillian Lee)",
    folder="rt-polarity",
    files=(
        DataFile(
            "rt-polarity.pos",
            626395,
            "4134882974a28d0c7b5151256f0e33a6169984ee7372c279e673f1114f475d58",
            (_SOURCE + "rt-polarity.pos",),
        ),
        DataFile(
            "rt-polarity.neg",
            612506,
            "2d11cfbc790f1cd96d78339f41ce53ced1efa83cd22d37d6788fa3fe3d17e2fd",
            (_SOURCE + "rt-polarity.neg",),
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
