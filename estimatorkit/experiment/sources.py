"""Data sources as data: one class per kind of source, and the section `data`.

`tables` reads them. File names are relative to the folder of the YAML file and may contain
wildcards (`day-*.csv`); lists are allowed.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from estimatorkit.data.datasets import criteo
from estimatorkit.experiment.formats import Formats, parsers
from estimatorkit.experiment.sections import (
    Count,
    FileName,
    FileNames,
    Model,
    Number,
    OneKey,
    Share,
    Switch,
    Text,
    Texts,
    Whole,
    Word,
    short,
    wrong,
)

_Files = Annotated[FileNames, Field(description="files; relative to the folder of the YAML file")]
_Rows = Annotated[Count | None, Field(description="the first rows only; null: all")]
_Notes = Annotated[Whole, Field(description="lines of notes before that of the columns' names")]
_Value = Annotated[
    Annotated[str, Tag("text")] | Annotated[Number, Tag("number")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "number"),
]


Mark = Annotated[str, Field(min_length=1, max_length=1, pattern=r"[\x01-\x7f]")]


class ListCells(Model):
    """A column whose cells are lists, such as `a|b|c`, in order; '' is an empty one."""

    separator: Annotated[
        Mark | None, Field(description="between values; null: the file itself has lists")
    ] = None
    weights: Annotated[
        Mark | None,
        Field(description="between a value and its weight, as in a:0.3|b:1: column <name>_weights"),
    ] = None
    length: Annotated[
        Count | None,
        Field(description="values per example, the last of longer lists; null: of the longest"),
    ] = None

    @model_validator(mode="after")
    def _of_text(self) -> Self:
        if self.weights is not None and self.separator in (None, self.weights):
            raise wrong(
                "is given without a separator, or is the same",
                at=("weights",),
                expected='two characters, such as separator: "|" and weights: ":"',
            )
        return self


Lists = Annotated[
    dict[
        str,
        Annotated[
            ListCells, BeforeValidator(short("separator"), json_schema_input_type=str | ListCells)
        ],
    ],
    Field(description='columns of lists: by name the separator, or {separator: "|", length: 50}'),
]
WEIGHTS = "_weights"
"""What the name of a column of weights ends with, after that of its values."""


class CsvSource(Model):
    """CSV files, also compressed (.gz, .bz2, .xz)."""

    csv: _Files
    format: Annotated[
        Literal["criteo"] | None,
        Field(description="criteo: columns, delimiter and dtypes of its train.txt and day_0, ..."),
    ] = None
    columns: Annotated[
        tuple[Text, ...] | None,
        Field(description="the columns' names, where the first line does not say them"),
    ] = None
    header: Annotated[
        bool | None,
        Field(strict=True, description="is the first line no data? null: yes without columns"),
    ] = None
    skip_rows: _Notes = 0
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    encoding: Annotated[Text, Field(description="such as latin-1 or utf-16")] = "utf-8"
    dtypes: Annotated[
        dict[str, Literal["float32", "float64", "int32", "int64", "string"]],
        Field(description="by column; of others it is inferred from the cells"),
    ] = {}  # noqa: RUF012
    texts: Annotated[
        tuple[Text, ...],
        Field(description="columns that are text, whatever their cells; a file may lack them"),
    ] = ()
    lists: Lists = {}  # noqa: RUF012
    skip_initial_space: Annotated[
        Switch, Field(description="leave out spaces after a delimiter")
    ] = False
    na_values: Annotated[tuple[str, ...], Field(description="cells that mean: missing")] = ("",)
    defaults: Annotated[
        dict[str, _Value] | None, Field(description="by column, what stands for a missing value")
    ] = None
    on_bad_rows: Literal["error", "skip"] = "error"
    rows: _Rows = None

    @model_validator(mode="before")
    @classmethod
    def _of_format(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("format") != "criteo":
            return value
        dtypes = dict.fromkeys(criteo.COUNTS, "float32") | dict.fromkeys(criteo.IDS, "string")
        return {"delimiter": "\t", "columns": criteo.COLUMNS, "dtypes": dtypes} | value


class ParquetSource(Model):
    """Parquet files (needs pyarrow, the extra `arrow`)."""

    parquet: _Files
    columns: Annotated[tuple[Text, ...] | None, Field(description="those that are read")] = None
    lists: Lists = {}  # noqa: RUF012
    rows: _Rows = None


class JsonSource(Model):
    """Files of JSON lines, an object of names and values each, also compressed; what is in an inner
    object is the column outer.inner.
    """

    jsonl: _Files
    lists: Lists = {}  # noqa: RUF012
    rows: _Rows = None


class ExcelSource(Model):
    """Excel files (needs openpyxl, the extra `excel`), with a line of names."""

    excel: _Files
    sheet: Annotated[Text | None, Field(description="null: the first one")] = None
    skip_rows: _Notes = 0
    lists: Lists = {}  # noqa: RUF012
    rows: _Rows = None


class SqliteSource(Model):
    """A table or a view of SQLite databases."""

    sqlite: _Files
    table: Annotated[Text | None, Field(description="null: the only one")] = None
    lists: Lists = {}  # noqa: RUF012
    rows: _Rows = None


class DuckdbSource(Model):
    """A table or a view of DuckDB databases (needs duckdb, the extra `duckdb`)."""

    duckdb: _Files
    table: Annotated[Text | None, Field(description="null: the only one")] = None
    lists: Lists = {}  # noqa: RUF012
    rows: _Rows = None


class RecordFeature(Model):
    """A feature of the `Example`s in a TFRecord file, of fixed length unless `lists` names it."""

    dtype: Literal["float32", "int64", "string"] = "float32"
    shape: tuple[Count, ...] = ()
    default: Annotated[_Value | None, Field(description="where an Example has none")] = None


class TFRecordSource(Model):
    """TFRecord files of `tf.train.Example`s."""

    tfrecord: _Files
    features: Annotated[
        dict[str, RecordFeature], Field(min_length=1, description="by name: dtype, shape, default")
    ]
    compression: Literal["GZIP", "ZLIB"] | None = None
    lists: Lists = {}  # noqa: RUF012
    rows: _Rows = None


DataSetName = Literal[
    "iris_training",
    "iris_test",
    "digits_train",
    "digits_test",
    "census_train",
    "census_test",
    "mnist_train",
    "mnist_test",
    "fashion_mnist_train",
    "fashion_mnist_test",
    "abalone",
    "automobile",
    "california_housing",
    "movielens_100k_train",
    "movielens_100k_test",
    "movielens_1m_train",
    "movielens_1m_test",
]


class DataSetSource(Model):
    """A data set of `estimatorkit.datasets`; its name alone means all of its rows."""

    dataset: Annotated[DataSetName, Field(description="a data set, or a part of one")]
    path: Annotated[
        FileName | None, Field(description="MovieLens: its zip file, or the unpacked folder")
    ] = None
    split: Annotated[
        Literal["time", "last"] | None,
        Field(description="MovieLens: test with the last 10%, or the last rating of each user"),
    ] = None
    lists: Lists = {}  # noqa: RUF012
    rows: _Rows = None

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the data set's loader."""
        given = {"path": self.path, "split": self.split}
        return {name: value for name, value in given.items() if value is not None}

    @model_validator(mode="after")
    def _takes(self) -> Self:
        if self.given and not self.dataset.startswith("movielens"):
            raise wrong(
                f"is given, and {self.dataset} has none",
                at=(next(iter(self.given)),),
                expected="path and split of MovieLens only",
            )
        return self


FILE_SOURCES: dict[str, type[Model]] = {
    "csv": CsvSource,
    "parquet": ParquetSource,
    "jsonl": JsonSource,
    "excel": ExcelSource,
    "sqlite": SqliteSource,
    "duckdb": DuckdbSource,
    "tfrecord": TFRecordSource,
    "dataset": DataSetSource,
}


def _kind(value: Any) -> str:
    """The tag of a source: its class, determined by its distinctive key."""
    if isinstance(value, Model):
        return type(value).__name__
    if not isinstance(value, dict):
        return "a name"
    return next((each for kind, each in FILE_SOURCES.items() if kind in value), CsvSource).__name__


Source = Annotated[
    Annotated[DataSetName, Tag("a name")]
    | Annotated[CsvSource, Tag("CsvSource")]
    | Annotated[ParquetSource, Tag("ParquetSource")]
    | Annotated[JsonSource, Tag("JsonSource")]
    | Annotated[ExcelSource, Tag("ExcelSource")]
    | Annotated[SqliteSource, Tag("SqliteSource")]
    | Annotated[DuckdbSource, Tag("DuckdbSource")]
    | Annotated[TFRecordSource, Tag("TFRecordSource")]
    | Annotated[DataSetSource, Tag("DataSetSource")],
    Discriminator(_kind),
]


MEASURES = "evaluate: {csv: test.csv}, or holdout: 0.3 to keep a part of train"
"""What says which rows measure a model."""


class Part(OneKey):
    """The part of the training rows that measures a model, in place of `evaluate` or `holdout`."""

    example: ClassVar[str] = "{share: 0.2}"

    share: Share | None = None
    fold: Annotated[
        tuple[Count, Count] | None,
        Field(description="[number, folds]: one of so many equal parts, as in cross-validation"),
    ] = None

    @model_validator(mode="after")
    def _is_one_of_the_folds(self) -> Self:
        if self.fold is not None and not self.fold[0] <= self.fold[1] >= 2:
            raise wrong("is no fold", at=("fold",), expected="[1, 5] to [5, 5] of five")
        return self


class Data(Model):
    """The sources of examples."""

    train: Annotated[
        Source, Field(description="a data set's name, or {csv: file}: the training examples")
    ]
    evaluate: Annotated[
        Source | None,
        Field(description="the examples that measure the model; null takes holdout of train"),
    ] = None
    holdout: Annotated[
        Share | None, Field(description="the share of train to measure with, such as 0.3")
    ] = None
    holdout_seed: Annotated[Whole, Field(description="which rows these are")] = 0
    holdout_stratified: Annotated[
        Switch, Field(description="hold out the same share of each class")
    ] = False
    holdout_latest: Annotated[
        Text | None,
        Field(description="hold out the rows with the latest dates or numbers in this column"),
    ] = None
    select: Annotated[
        Share | None,
        Field(
            description="the share of the other rows that chooses the best checkpoint, which then"
            " evaluate or holdout measures: rows that chose nothing"
        ),
    ] = None
    part: Annotated[
        Part | None,
        Field(description="measure with a part of the training rows; tune and folds set it"),
    ] = None
    stream: Annotated[
        Switch, Field(description="read files in chunks, for tables larger than memory")
    ] = False
    also_evaluate: Annotated[
        dict[Word, Source] | None, Field(description="more examples to measure with, by name")
    ] = None
    candidates: Annotated[
        Source | None,
        Field(description="rows of all items, for recall_at_<k> and export (TwoTower)"),
    ] = None
    label: Annotated[
        Texts | None, Field(description="the column to predict (or a list of columns)")
    ] = None
    missing_labels: Annotated[
        Literal["error", "skip"], Field(description="what to do with rows without a label")
    ] = "error"
    formats: Formats | None = None
    class_names: Annotated[
        tuple[Text, ...] | None, Field(description="what to print for class 0, 1, ...")
    ] = None

    @property
    def measures_apart(self) -> bool:
        """Whether other rows than those of the training measure the model."""
        return any(each is not None for each in (self.evaluate, self.holdout, self.part))

    def as_read(self, source: Any) -> Any:
        """A source whose columns with a format are read as text, as they are written."""
        if not isinstance(source, CsvSource) or self.formats is None:
            return source
        texts = dict.fromkeys((*source.texts, *parsers(self.formats)))
        return source.model_copy(update={"texts": tuple(texts)})

    @model_validator(mode="after")
    def _one_way_to_hold_out(self) -> Self:
        ways = {
            "holdout_stratified": self.holdout_stratified,
            "holdout_latest": self.holdout_latest,
        }
        given = [key for key, value in ways.items() if value]
        splits = self.evaluate is None or self.select is not None  # or folds do
        if given and self.holdout is None and not splits:
            raise wrong(
                "is given, and no rows are held out",
                at=(given[0],),
                expected="holdout: 0.2, in place of evaluate",
            )
        if len(given) > 1:
            raise wrong(
                "is given beside holdout_latest",
                at=(given[0],),
                expected="one of them: the latest rows have the classes that they have",
            )
        if self.holdout_latest is not None and self.stream:
            raise wrong(
                "cannot be told from chunks of a stream",
                at=("holdout_latest",),
                expected="stream: false, or evaluate: {csv: later.csv}",
            )
        return self

    @model_validator(mode="after")
    def _one_to_measure_with(self) -> Self:
        if self.stream:
            self._check_lists()
        if self.evaluate is not None and self.holdout is not None:
            raise wrong("gives both evaluate and holdout", expected=MEASURES)
        return self

    def _check_lists(self) -> None:
        """Raises an error if chunks of lists would differ in their widths."""
        named = {"train": self.train, "evaluate": self.evaluate, **(self.also_evaluate or {})}
        for key, source in named.items():
            for name, each in getattr(source, "lists", {}).items():
                if each.length is None:
                    raise wrong(
                        "lacks a length, and streamed chunks have one width",
                        at=(key, "lists", name),
                        expected="how many values of an example count, such as length: 50",
                    )
