"""Automobiles of 1985: 205 cars, 26 columns, the price last (Ward's Automotive Yearbook)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    import pandas as pd

CSV_COLUMNS = (
    "symboling",
    "normalized-losses",
    "make",
    "fuel-type",
    "aspiration",
    "num-of-doors",
    "body-style",
    "drive-wheels",
    "engine-location",
    "wheel-base",
    "length",
    "width",
    "height",
    "curb-weight",
    "engine-type",
    "num-of-cylinders",
    "engine-size",
    "fuel-system",
    "bore",
    "stroke",
    "compression-ratio",
    "horsepower",
    "peak-rpm",
    "city-mpg",
    "highway-mpg",
    "price",
)


def load_data() -> pd.DataFrame:
    """Loads the data set.

    Returns:
        A DataFrame of the columns `CSV_COLUMNS`; unknown values are NaN, including the price of
        four cars. `split_rows` makes training and test parts.

    Raises:
        UnavailableError: the file is missing and cannot be downloaded; the message says where to
            put it.
    """
    import pandas as pd

    path = DATA_SET.path("imports-85.data")
    return pd.read_csv(path, names=list(CSV_COLUMNS), na_values="?", keep_default_na=False)


# The checksum of the file itself; another public library pins the same one at this address.
DATA_SET = DataSet(
    name="automobile",
    title="cars imported in 1985, 25 features and the price",
    licence="CC BY 4.0 (UCI Machine Learning Repository)",
    folder="automobile",
    files=(
        DataFile(
            "imports-85.data",
            25936,
            "125db8bd36a84801f7223faf54071d15f85f26c13a9a7aee63375ac46098fb7f",
            ("https://archive.ics.uci.edu/ml/machine-learning-databases/autos/imports-85.data",),
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
