"""Census income ("Adult"): does a person earn more than 50,000 dollars a year? (Kohavi 1996)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    import pandas as pd

CSV_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "gender",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income_bracket",
)
LABEL = "income_bracket"
_SOURCE = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"


def load_data(question_marks: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Loads the data set.

    Args:
        question_marks: whether unknown values stay '?', as in the files and in TensorFlow's
            tutorials, instead of NaN.

    Returns:
        Training part (32,561 rows) and test part (16,281 rows): DataFrames of the 15 columns
        `CSV_COLUMNS`, six of them int64, the others strings. `income_bracket` is '<=50K' or '>50K'
        in both (the test file's trailing full stop is removed).

    Raises:
        UnavailableError: the files are missing and cannot be downloaded; the message says where to
            put them.
    """
    return _read("adult.data", 0, question_marks), _read("adult.test", 1, question_marks)


def _read(name: str, header_lines: int, question_marks: bool) -> pd.DataFrame:
    import pandas as pd

    table = pd.read_csv(
        DATA_SET.path(name),
        names=list(CSV_COLUMNS),
        skiprows=header_lines,
        skipinitialspace=True,
        keep_default_na=False,
        na_values=[] if question_marks else ["?"],
    )
    table[LABEL] = table[LABEL].str.removesuffix(".")
    return table


# Checksums of the files themselves; other public libraries pin the same ones at these addresses.
DATA_SET = DataSet(
    name="census",
    title="census income (Adult), 48,842 persons, 14 features",
    licence="CC BY 4.0 (UCI Machine Learning Repository)",
    folder="census",
    files=(
        DataFile(
            "adult.data",
            3974305,
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            (_SOURCE + "adult.data",),
        ),
        DataFile(
            "adult.test",
            2003153,
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            (_SOURCE + "adult.test",),
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
