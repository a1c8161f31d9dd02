"""California housing: 20,640 districts of the 1990 census (Pace and Barry 1997)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    import pandas as pd


def load_data() -> pd.DataFrame:
    """Loads the data set.

    Returns:
        A DataFrame of ten columns: longitude, latitude, housing_median_age, total_rooms,
        total_bedrooms (207 missing), population, households, median_income (10,000 dollars),
        median_house_value (dollars; capped at 500,001) and ocean_proximity. `split_rows` makes
        training and test parts.

    Raises:
        UnavailableError: the file is missing and cannot be downloaded; the message says where to
            put it.
    """
    import pandas as pd

    return pd.read_csv(DATA_SET.path("housing.csv"))


# The checksum of the file itself; other public libraries pin the same one at this address.
DATA_SET = DataSet(
    name="california_housing",
    title="districts of California in 1990, eight features, position and house value",
    licence="from StatLib, no terms stated",
    folder="california",
    files=(
        DataFile(
            "housing.csv",
            1423529,
            "8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e",
            (
                "https://raw.githubusercontent.com/ageron/handson-ml2/master/datasets/housing/"
                "housing.csv",
            ),
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
