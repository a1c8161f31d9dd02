"""Abalone: 4,177 shellfish, eight measurements, and the rings of the shell (Nash et al. 1994)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    import pandas as pd

CSV_COLUMNS = (
    "sex",
    "length",
    "diameter",
    "height",
    "whole_weight",
    "shucked_weight",
    "viscera_weight",
    "shell_weight",
    "rings",
)


def load_data() -> pd.DataFrame:
    """Loads the data set.

    Returns:
        A DataFrame of the columns `CSV_COLUMNS`: sex 'M', 'F' or 'I' (infant), lengths and weights
            in
        units of 200 mm and 200 g, rings int64 (the age in years minus 1.5). `split_rows` makes
        training and test parts.

    Raises:
        UnavailableError: the file is missing and cannot be downloaded; the message says where to
            put it.
    """
    import pandas as pd

    return pd.read_csv(DATA_SET.path("abalone.data"), names=list(CSV_COLUMNS))


# The checksum of the file itself; other public libraries pin the same one at this address.
DATA_SET = DataSet(
    name="abalone",
    title="shellfish, eight measures and the rings",
    licence="CC BY 4.0 (UCI Machine Learning Repository)",
    folder="abalone",
    files=(
        DataFile(
            "abalone.data",
            191873,
            "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
            ("https://archive.ics.uci.edu/ml/machine-learning-databases/abalone/abalone.data",),
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
