"""MovieLens 100K: 100,000 ratings of 1,682 films by 943 users (Harper and Konstan 2015)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.data.datasets.movielens import ML_100K, Split, parts_of
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    import pandas as pd


def load_data(
    path: str | os.PathLike[str] | None = None, split: Split = "time", test_fraction: float = 0.1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Loads the data set.

    Args:
        path: its zip file, or the folder with the unpacked files; by default it is downloaded.
        split: 'time' tests with the latest ratings, 'last' with the last rating of each user.
        test_fraction: the fraction of ratings in the test part, of 'time'.

    Returns:
        Training and test part: DataFrames in the order of time. Columns: user_id, item_id, rating
        (1 to 5), timestamp (seconds since 1970), age (years), gender ('F' or 'M'), occupation, zip,
        title, year (float64, NaN if unknown), genres ('Action|Comedy'), history (the last 50 items
        that the user rated at least 4 before, '12|7', the newest last), liked (1 for a rating of at
        least 4, else 0) and loved (1 for a rating of 5).

    Raises:
        UnavailableError: the file is missing and cannot be downloaded; the message says where to
            put it.
        DataLossError: the zip is damaged.
        NotFoundError: the folder lacks a file.
        ValueError: an argument is invalid.
    """
    return parts_of(ML_100K, path or DATA_SET.path("ml-100k.zip"), split, test_fraction)


# Pinned by several public projects at this address; not verified against the file itself.
DATA_SET = DataSet(
    name="movielens_100k",
    title="100,000 ratings of films, with age, gender and occupation of users, and genres",
    licence="GroupLens: research, no redistribution, no commercial use",
    folder="movielens",
    files=(
        DataFile(
            "ml-100k.zip",
            4924029,
            "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
            ("https://files.grouplens.org/datasets/movielens/ml-100k.zip",),
            md5="0e33842e24a9c977be4e0107933c0723",
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
