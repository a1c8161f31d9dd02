"""MovieLens 1M: 1,000,209 ratings of 3,706 films by 6,040 users (Harper and Konstan 2015)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.data.datasets.movielens import ML_1M, Split, parts_of
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
        (1 to 5), timestamp (seconds since 1970), age (1, 18, 25, ...: the least of a range), gender
        ('F' or 'M'), occupation, zip, title, year (float64, NaN if unknown), genres
        ('Action|Comedy'), history, liked and loved (see `movielens_100k.load_data`).

    Raises:
        UnavailableError: the file is missing and cannot be downloaded; the message says where to
            put it.
        DataLossError: the zip is damaged.
        NotFoundError: the folder lacks a file.
        ValueError: an argument is invalid.
    """
    return parts_of(ML_1M, path or DATA_SET.path("ml-1m.zip"), split, test_fraction)


# Pinned by several public projects at this address; not verified against the file itself.
DATA_SET = DataSet(
    name="movielens_1m",
    title="1,000,209 ratings of films, with age, gender and occupation of users, and genres",
    licence="GroupLens: research, no redistribution, no commercial use",
    folder="movielens",
    files=(
        DataFile(
            "ml-1m.zip",
            5917549,
            "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
            ("https://files.grouplens.org/datasets/movielens/ml-1m.zip",),
            md5="c4d9eecfca2ab87c1945afe126590906",
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
