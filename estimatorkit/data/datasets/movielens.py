"""MovieLens: ratings of films, with what is known of users and films (Harper and Konstan 2015).

`read` reads the files of the 100K and the 1M edition, in a zip or a folder.
"""

from __future__ import annotations

import io
import os
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from estimatorkit.core.errors import DataLossError, NotFoundError, value_error
from estimatorkit.data.datasets.files import zip_member
from estimatorkit.data.datasets.splits import split_by_time, split_last
from estimatorkit.lazy import listing
from estimatorkit.storage.atomic_files import os_errors

if TYPE_CHECKING:
    import pandas as pd

    Parts: TypeAlias = tuple[pd.DataFrame, pd.DataFrame]

Split = Literal["time", "last"]

COLUMNS = (
    "user_id",
    "item_id",
    "rating",
    "timestamp",
    "age",
    "gender",
    "occupation",
    "zip",
    "title",
    "year",
    "genres",
    "history",
    "liked",
    "loved",
)
LIKED, LOVED = 4, 5
"""The least ratings of `liked` and `loved`."""
HISTORY = 50
"""The most items in `history`."""
_LARGEST = 1 << 26  # bytes of a file in the zip
_GENRES_100K = (
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)
_NUMBERS = {"user_id", "item_id", "rating", "timestamp", "age", *_GENRES_100K}
_OCCUPATIONS_1M = (
    "other",
    "academic/educator",
    "artist",
    "clerical/admin",
    "college/grad student",
    "customer service",
    "doctor/health care",
    "executive/managerial",
    "farmer",
    "homemaker",
    "K-12 student",
    "lawyer",
    "programmer",
    "retired",
    "sales/marketing",
    "scientist",
    "self-employed",
    "technician/engineer",
    "tradesman/craftsman",
    "unemployed",
    "writer",
)


@dataclass(frozen=True)
class Edition:
    """The files of an edition.

    Attributes:
        folder: their folder in the zip.
        ratings, users, items: their names.
        separator: between cells.
        rating_separator: between cells of ratings.
        user_columns, item_columns: the cells of a line.
    """

    folder: str
    ratings: str
    users: str
    items: str
    separator: str
    rating_separator: str
    user_columns: tuple[str, ...]
    item_columns: tuple[str, ...]


ML_100K = Edition(
    "ml-100k",
    "u.data",
    "u.user",
    "u.item",
    separator="|",
    rating_separator="\t",
    user_columns=("user_id", "age", "gender", "occupation", "zip"),
    item_columns=("item_id", "title", "released", "on_video", "address", *_GENRES_100K),
)
ML_1M = Edition(
    "ml-1m",
    "ratings.dat",
    "users.dat",
    "movies.dat",
    separator="::",
    rating_separator="::",
    user_columns=("user_id", "gender", "age", "occupation", "zip"),
    item_columns=("item_id", "title", "genres"),
)


def read(edition: Edition, path: str | os.PathLike[str]) -> pd.DataFrame:
    """All ratings, in the files' order, with the columns `COLUMNS`.

    Args:
        edition: describes the files.
        path: the zip, or the folder with its content (or that holds the folder of the zip).

    Raises:
        NotFoundError: the folder lacks a file.
        DataLossError: the zip is damaged or lacks a file, or a file has another format.
    """
    place = Path(path)

    def content(name: str) -> bytes:
        if not place.is_dir():
            return zip_member(place, f"{edition.folder}/{name}", _LARGEST)
        found = [each for each in (place / name, place / edition.folder / name) if each.is_file()]
        if not found:
            raise NotFoundError.explained(
                f"{place} has no file {name}", expected=f"the files of {edition.folder}.zip"
            )
        with os_errors("read", found[0]):
            return found[0].read_bytes()

    columns = ("user_id", "item_id", "rating", "timestamp")
    try:
        ratings = _lines(content(edition.ratings), edition.rating_separator, columns)
        users = _users(_lines(content(edition.users), edition.separator, edition.user_columns))
        items = _items(_lines(content(edition.items), edition.separator, edition.item_columns))
        rated = ratings.merge(users, "left", "user_id", validate="many_to_one")
        rated = rated.merge(items, "left", "item_id", validate="many_to_one")
    except (OverflowError, ValueError) as error:
        raise DataLossError.explained(
            f"the files in {place} are not those of {edition.folder}.zip", received=str(error)[:500]
        ) from error
    rated = rated.assign(
        history=_histories(rated),
        liked=(rated["rating"] >= LIKED).astype(np.int64),
        loved=(rated["rating"] >= LOVED).astype(np.int64),
    )
    return rated[list(COLUMNS)]


def _histories(ratings: pd.DataFrame) -> pd.Series:
    """What the user of each rating liked before, as text `12|7|9`, the newest last."""
    import pandas as pd

    liked: dict[int, deque[str]] = defaultdict(lambda: deque(maxlen=HISTORY))
    ordered = ratings.sort_values("timestamp", kind="stable")
    found = []
    for user, item, rating in ordered[["user_id", "item_id", "rating"]].to_numpy().tolist():
        found.append("|".join(liked[user]))
        if rating >= LIKED:
            liked[user].append(str(item))
    return pd.Series(found, ordered.index, dtype=object).reindex(ratings.index)


def _lines(content: bytes, separator: str, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    # The C parser takes one character, and no file has this one.
    text = content.decode("latin-1").replace(separator, "\x01")
    return pd.read_csv(
        io.StringIO(text),
        sep="\x01",
        names=list(names),
        header=None,
        quoting=3,
        keep_default_na=False,
        dtype={name: np.int64 if name in _NUMBERS else object for name in names},
    )


def _users(table: pd.DataFrame) -> pd.DataFrame:
    names = {str(number): name for number, name in enumerate(_OCCUPATIONS_1M)}
    return table.assign(occupation=table["occupation"].replace(names))


def _items(table: pd.DataFrame) -> pd.DataFrame:
    if "genres" not in table:
        flags = table[list(_GENRES_100K)].to_numpy(bool).astype(object)
        genres = flags.dot([f"{name}|" for name in _GENRES_100K])
        table = table.assign(genres=[each.removesuffix("|") for each in genres])
    years = table["title"].str.extract(r"\((\d{4})\)\s*$", expand=False)
    return table.assign(year=years.astype("float64"))


def parts_of(
    edition: Edition, path: str | os.PathLike[str], split: Split, test_fraction: float
) -> Parts:
    """The training and the test part of an edition (see `movielens_100k.load_data`)."""
    table = read(edition, path)
    if split == "last":
        return split_last(table)
    if split == "time":
        return split_by_time(table, test_fraction)
    raise value_error("split", expected="'time' or 'last'", received=repr(split))


__dir__ = listing(__name__)
