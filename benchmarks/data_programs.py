"""Workloads that read data, one function each for every package with TensorFlow 1's names.

Each returns a call that takes the next batch. Data are those of `workloads`, or real files in the
folder that ESTIMATORKIT_DATA_DIR names.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import mnist_shaped_data

BATCH = 128
CLICKS = 100_000

CENSUS_NUMBERS = (
    "age",
    "fnlwgt",
    "education_num",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
)
CENSUS_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "gender", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income_bracket"),
)


def census_file() -> str:
    """Returns the path of the census training file.

    Raises:
        RuntimeError: it is not there.
    """
    folder = os.environ.get("ESTIMATORKIT_DATA_DIR", "")
    path = Path(folder) / "census" / "adult.data"
    if not folder or not path.is_file():
        raise RuntimeError("needs census/adult.data in the folder ESTIMATORKIT_DATA_DIR")
    return str(path)


def census_lines_file() -> str:
    """Returns the path of a copy of the file without the blank line at its end.

    TensorFlow's reader takes that for a row.
    """
    lines = [line for line in Path(census_file()).read_text().splitlines() if line]
    path = Path(tempfile.mkdtemp()) / "adult.csv"
    path.write_text("\n".join([*lines, ""]))
    return str(path)


def census() -> dict[str, Any]:
    """Returns the census training data: float32 and `bytes` arrays by column."""
    lines = Path(census_file()).read_text().splitlines()
    rows = [line.split(", ") for line in lines if line]
    columns = dict(zip(CENSUS_COLUMNS, zip(*rows, strict=True), strict=True))
    made: dict[str, Any] = {}
    for name, values in columns.items():
        if name in CENSUS_NUMBERS:
            made[name] = np.array(values, np.float32)
        else:
            made[name] = np.array([value.encode() for value in values], object)
    return made


def _batches(dataset: Any) -> Callable[[], object]:
    iterator = iter(dataset)

    def call() -> object:
        return next(iterator)

    call()
    return call


def shuffled_batches(v1: Any) -> Callable[[], object]:
    """Returns a call for the next of shuffled batches of 60,000 pictures in memory."""
    features, labels = mnist_shaped_data()
    rows = v1.data.Dataset.from_tensor_slices((features["x"], labels))
    return _batches(rows.shuffle(60_000).repeat().batch(BATCH, drop_remainder=True))


def mapped_batches(v1: Any) -> Callable[[], object]:
    """Returns a call for the next batch of pictures of bytes that a function scales."""
    features, labels = mnist_shaped_data()
    pixels = (features["x"] * 255).astype(np.uint8)
    rows = v1.data.Dataset.from_tensor_slices((pixels, labels)).repeat()

    def scale(image: Any, label: Any) -> Any:
        return v1.cast(image, v1.float32) / 255.0, label

    return _batches(rows.map(scale).batch(BATCH, drop_remainder=True))


def csv_batches(v1: Any) -> Callable[[], object]:
    """Returns a call for the next batch of the census file, by `make_csv_dataset`."""
    defaults = [0.0 if name in CENSUS_NUMBERS else "" for name in CENSUS_COLUMNS]
    return _batches(
        v1.data.experimental.make_csv_dataset(
            census_lines_file(),
            BATCH,
            column_names=list(CENSUS_COLUMNS),
            column_defaults=defaults,
            label_name="income_bracket",
            header=False,
            shuffle=False,
        )
    )


def _clicks_file() -> str:
    """100,000 rows in the format of Criteo's logs; the 26 categories have up to 80,000 values."""
    random = np.random.default_rng(0)
    path = Path(tempfile.mkdtemp()) / "day_0"
    columns = [random.integers(0, 2, CLICKS).astype(str)]
    for _ in range(13):
        counts = random.lognormal(2, 2, CLICKS).astype(np.int64).astype(str)
        columns.append(np.where(random.random(CLICKS) < 0.2, "", counts))
    for number in range(26):
        most = (3, 30, 600, 10_000, 80_000)[number % 5]
        words = np.array([f"{each:08x}" for each in random.integers(0, 1 << 32, most)])
        columns.append(words[random.zipf(1.2, CLICKS) % most])
    with path.open("w") as file:
        file.writelines("\t".join(row) + "\n" for row in zip(*columns, strict=True))
    return str(path)


def click_batches(v1: Any) -> Callable[[], object]:
    """Returns a call for the next 4,096 rows of a file like Criteo's: 13 counts, 26 categories."""
    defaults = [[0], *[[0.0]] * 13, *[[""]] * 26]
    clicks = v1.data.experimental.CsvDataset(_clicks_file(), defaults, field_delim="\t")
    return _batches(clicks.repeat().batch(4096))


def _census_records(v1: Any) -> str:
    """Writes the census as a file of TFRecords, and returns its path."""
    train = v1.train
    data = census()
    path = str(Path(tempfile.mkdtemp()) / "census.tfrecord")
    with v1.python_io.TFRecordWriter(path) as writer:
        for row in range(len(data["age"])):
            features = {}
            for name, values in data.items():
                if name in CENSUS_NUMBERS:
                    numbers = train.FloatList(value=[float(values[row])])
                    features[name] = train.Feature(float_list=numbers)
                else:
                    words = train.BytesList(value=[values[row]])
                    features[name] = train.Feature(bytes_list=words)
            example = train.Example(features=train.Features(feature=features))
            writer.write(example.SerializeToString())
    return path


def _census_features(v1: Any) -> dict[str, Any]:
    return {
        name: v1.FixedLenFeature([], v1.float32 if name in CENSUS_NUMBERS else v1.string)
        for name in CENSUS_COLUMNS
    }


def parsed_batches(v1: Any) -> Callable[[], object]:
    """Returns a call for the next batch of serialized examples, parsed a batch at a time."""
    features = _census_features(v1)
    records = v1.data.TFRecordDataset(_census_records(v1)).repeat().batch(BATCH, True)
    return _batches(records.map(lambda serialized: v1.parse_example(serialized, features)))


def parsed_examples(v1: Any) -> Callable[[], object]:
    """Returns a call for the next batch of serialized examples, parsed one at a time."""
    features = _census_features(v1)
    records = v1.data.TFRecordDataset(_census_records(v1)).repeat()
    parsed = records.map(lambda serialized: v1.parse_single_example(serialized, features))
    return _batches(parsed.batch(BATCH, True))


def census_columns(v1: Any) -> tuple[list[Any], list[Any]]:
    """Returns the columns of a wide-and-deep model of the census: the wide ones, the deep ones."""
    column = v1.feature_column
    data = census()
    words = {
        name: column.categorical_column_with_vocabulary_list(
            name, sorted({word.decode() for word in data[name]})
        )
        for name in ("workclass", "education", "marital_status", "relationship", "race", "gender")
    }
    hashed = {
        name: column.categorical_column_with_hash_bucket(name, 1000)
        for name in ("occupation", "native_country")
    }
    numbers = [column.numeric_column(name) for name in CENSUS_NUMBERS if name != "fnlwgt"]
    ages = column.bucketized_column(
        column.numeric_column("age"), [18, 25, 30, 35, 40, 45, 50, 55, 60, 65]
    )
    crosses = [
        column.crossed_column(["education", "occupation"], 1000),
        column.crossed_column([ages, "education", "occupation"], 1000),
    ]
    wide = [*words.values(), *hashed.values(), ages, *crosses]
    deep = [
        *numbers,
        *(column.indicator_column(each) for each in words.values()),
        *(column.embedding_column(each, 8) for each in hashed.values()),
    ]
    return wide, deep


def wide_and_deep_inputs(v1: Any) -> Callable[[], object]:
    """Returns a call for `input_layer` and `linear_model` of the next batch of the census."""
    graph = v1.Graph()
    with graph.as_default():
        wide, deep = census_columns(v1)
        rows = v1.data.Dataset.from_tensor_slices(census()).shuffle(40_000).repeat()
        features = v1.data.make_one_shot_iterator(rows.batch(BATCH, True)).get_next()
        inputs = v1.feature_column.input_layer(features, deep)
        sums = v1.feature_column.linear_model(features, wide)
        init = [v1.global_variables_initializer(), v1.tables_initializer()]
    session = v1.Session(graph=graph)
    session.run(init)

    def call() -> object:
        return session.run([inputs, sums])

    call()
    return call


PROGRAMS: dict[str, Callable[[Any], Callable[[], object]]] = {
    "data_shuffle": shuffled_batches,
    "data_map": mapped_batches,
    "data_csv": csv_batches,
    "data_clicks": click_batches,
    "data_parse_batches": parsed_batches,
    "data_parse_examples": parsed_examples,
    "input_layer": wide_and_deep_inputs,
}
