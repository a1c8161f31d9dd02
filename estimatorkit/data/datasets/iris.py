"""Fisher's iris flowers: 120 training and 30 test rows, four measurements in cm, three species.

The files are those of TensorFlow's tutorials (their first line: rows, features, species).
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, TypeAlias

from estimatorkit.data.csv import read_csv
from estimatorkit.data.datasets.files import DataSet
from estimatorkit.lazy import listing

if TYPE_CHECKING:
    import pandas as pd

    Part: TypeAlias = tuple[pd.DataFrame, pd.Series]

CSV_COLUMN_NAMES = ["SepalLength", "SepalWidth", "PetalLength", "PetalWidth", "Species"]
SPECIES = ["Setosa", "Versicolor", "Virginica"]


def load_data(label_name: str = "Species") -> tuple[Part, Part]:
    """Loads the bundled files.

    Args:
        label_name: the label column.

    Returns:
        `(train_x, train_y), (test_x, test_y)`: DataFrames of the float32 features, 120 and 30 rows,
        and Series of the labels (Species: int64, 0 to 2).

    Raises:
        KeyError: there is no column `label_name`.
    """
    return _load("iris_training.csv", label_name), _load("iris_test.csv", label_name)


def _load(file_name: str, label_name: str) -> Part:
    import pandas as pd

    dtypes = dict.fromkeys(CSV_COLUMN_NAMES, "float32") | {"Species": "int64"}
    with resources.as_file(resources.files("estimatorkit.data") / "files" / file_name) as path:
        table = pd.DataFrame(read_csv(path, columns=CSV_COLUMN_NAMES, header=True, dtypes=dtypes))
    return table, table.pop(label_name)


DATA_SET = DataSet(
    name="iris",
    title="iris flowers, four measures and the species",
    licence="CC BY 4.0 (UCI Machine Learning Repository)",
    folder="",
    files=(),
    load=load_data,
)

__dir__ = listing(__name__)
