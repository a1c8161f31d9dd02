"""Data sources as data: one class per kind of source, and the section `data`.

`tables` reads them. File names are relative to the folder of the YAML file and may contain
wildcards (`day-*.csv`); lists are allowed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from estimatorkit.experiment.sections import (
    Count,
    FileNames,
    Model,
    Number,
    Share,
    Switch,
    Text,
    Texts,
    Whole,
    Word,
    wrong,
)

_Rows = Annotated[Count | None, Field(description="the first rows only; null: all")]
_Value = Annotated[
    Annotated[str, Tag("text")] | Annotated[Number, Tag("number")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "number"),
]


class CsvSource(Model):
    """CSV files, also compressed (.gz, .bz2, .xz)."""

    csv: Annotated[FileNames, Field(description="files; relative to the folder of the YAML file")]
    columns: Annotated[
        tuple[Text, ...] | None,
        Field(description="the columns' names, where the first line does not say them"),
    ] = None
    header: Annotated[
        bool | None,
        Field(strict=True, description="is the first line no data? null: yes without columns"),
    ] = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    encoding: Annotated[Text, Field(description="such as latin-1 or utf-16")] = "utf-8"
    skip_initial_space: Annotated[
        Switch, Field(description="leave out spaces after a delimiter")
    ] = False
    na_values: Annotated[tuple[str, ...], Field(description="cells that mean: missing")] = ("",)
    defaults: Annotated[
        dict[str, _Value] | None, Field(description="by column, what stands for a missing value")
    ] = None
    on_bad_rows: Literal["error", "skip"] = "error"
    rows: _Rows = None


class ParquetSource(Model):
    """Parquet files (needs pyarrow, the extra `arrow`)."""

    parquet: Annotated[
        FileNames, Field(description="files; relative to the folder of the YAML file")
    ]
    columns: Annotated[tuple[Text, ...] | None, Field(description="those that are read")] = None
    rows: _Rows = None


class RecordFeature(Model):
    """A feature of fixed length of the `Example`s in a TFRecord file."""

    dtype: Literal["float32", "int64", "string"] = "float32"
    shape: tuple[Count, ...] = ()
    default: Annotated[_Value | None, Field(description="where an Example has none")] = None


class TFRecordSource(Model):
    """TFRecord files of `tf.train.Example`s."""

    tfrecord: Annotated[
        FileNames, Field(description="files; relative to the folder of the YAML file")
    ]
    features: Annotated[
        dict[str, RecordFeature], Field(min_length=1, description="by name: dtype, shape, default")
    ]
    compression: Literal["GZIP", "ZLIB"] | None = None
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
]


class DataSetSource(Model):
    """A data set of `estimatorkit.datasets`; its name alone means all of its rows."""

    dataset: Annotated[DataSetName, Field(description="a data set, or a part of one")]
    rows: _Rows = None


FILE_SOURCES: dict[str, type[Model]] = {
    "csv": CsvSource,
    "parquet": ParquetSource,
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
    | Annotated[TFRecordSource, Tag("TFRecordSource")]
    | Annotated[DataSetSource, Tag("DataSetSource")],
    Discriminator(_kind),
]


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
    stream: Annotated[
        Switch, Field(description="read files in chunks, for tables larger than memory")
    ] = False
    also_evaluate: Annotated[
        dict[Word, Source] | None, Field(description="more examples to measure with, by name")
    ] = None
    label: Annotated[
        Texts | None, Field(description="the column to predict (or a list of columns)")
    ] = None
    missing_labels: Annotated[
        Literal["error", "skip"], Field(description="what to do with rows without a label")
    ] = "error"
    class_names: Annotated[
        tuple[Text, ...] | None, Field(description="what to print for class 0, 1, ...")
    ] = None

    @model_validator(mode="after")
    def _one_to_measure_with(self) -> Self:
        if (self.evaluate is None) == (self.holdout is None):
            neither = self.evaluate is None
            raise wrong(
                f"gives {'neither' if neither else 'both'} evaluate "
                f"{'nor' if neither else 'and'} holdout",
                expected="evaluate: {csv: test.csv}, or holdout: 0.3 to keep a part of train",
            )
        return self
