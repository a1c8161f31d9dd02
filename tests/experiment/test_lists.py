"""List columns: equal arrays from CSV, Parquet and TFRecord, and vocabularies."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

import estimatorkit as ek
from estimatorkit.experiment import (
    examples,
    inferred,
    inputs,
    predicting,
    runner,
    tables,
    vocabularies,
)
from estimatorkit.experiment.columns import Read
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.sources import Source

ROWS: list[tuple[list[str], list[int], list[tuple[str, float]]]] = [
    (["a", "b", "a"], [3, 1], [("x", 0.5), ("y:z", 2.0)]),
    ([], [7], []),
    (["é"], [], [("x", 1.0)]),
]
ITEMS = [[b"a", b"b", b"a", b""], [b""] * 4, ["é".encode(), b"", b"", b""]]
TAGS = [[b"x", b"y:z"], [b"", b""], [b"x", b""]]
WEIGHTS = [[0.5, 2.0], [0.0, 0.0], [1.0, 0.0]]
NUMBERS = [[3, 1], [7, -1], [-1, -1]]
CSV = "items,numbers,tags,label\n" + "".join(
    f"{'|'.join(items)},{' '.join(map(str, numbers))},"
    f"{'|'.join(f'{tag}:{weight}' for tag, weight in tags)},{row % 2}\n"
    for row, (items, numbers, tags) in enumerate(ROWS)
)
DESCRIBED = {
    "items": "|",
    "numbers": {"separator": " "},
    "tags": {"separator": "|", "weights": ":"},
}


def source(folder: Path, **given: Any) -> Any:
    return TypeAdapter(Source).validate_python(given, context={"folder": folder})


def check(table: tables.Table) -> None:
    assert table["items"].tolist() == ITEMS
    assert table["tags"].tolist() == TAGS
    assert np.array_equal(table["tags_weights"], WEIGHTS)
    assert table["tags_weights"].dtype == np.float32


def test_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV, encoding="utf-8")
    table = tables.read_source(source(tmp_path, csv="a.csv", lists=DESCRIBED))
    check(table)
    assert list(table) == ["items", "numbers", "tags", "tags_weights", "label"]
    assert table["numbers"].tolist() == [[b"3", b"1"], [b"7", b""], [b"", b""]]
    two = tables.read_source(
        source(
            tmp_path,
            csv=["a.csv", "a.csv"],
            lists=DESCRIBED | {"items": {"separator": "|", "length": 2}},
        )
    )
    assert two["items"].tolist()[:3] == [[b"b", b"a"], [b"", b""], ["é".encode(), b""]]
    (chunk,) = tables.read_chunks(source(tmp_path, csv="a.csv", lists=DESCRIBED))
    check(chunk)


def test_parquet_with_lists_and_with_text(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = arrow.table(
        {
            "items": arrow.array([items or None for items, _, _ in ROWS]),
            "numbers": arrow.array(
                [numbers for _, numbers, _ in ROWS], arrow.large_list(arrow.int32())
            ),
            "fixed": arrow.array([[0.5, 1.5]] * 3, arrow.list_(arrow.float32(), 2)),
            "tags": ["|".join(f"{tag}:{weight}" for tag, weight in tags) for _, _, tags in ROWS],
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    parquet.write_table(table.slice(1), tmp_path / "b.parquet")
    described = {"tags": DESCRIBED["tags"]}
    found = tables.read_source(source(tmp_path, parquet="a.parquet", lists=described))
    check(found)
    assert found["numbers"].tolist() == NUMBERS
    assert found["fixed"].tolist() == [[0.5, 1.5]] * 3
    as_words = examples.column_of(found["numbers"], Read("numbers", "string"), "", found.place)
    assert as_words.tolist() == [[b"3", b"1"], [b"7", b""], [b"", b""]]
    both = tables.read_source(source(tmp_path, parquet=["b.parquet", "a.parquet"], lists=described))
    assert both["items"].tolist() == [*[[*row] for row in ITEMS[1:]], *ITEMS]
    short = source(tmp_path, parquet="a.parquet", lists=described | {"items": {"length": 1}})
    assert tables.read_source(short)["items"].tolist() == [[b"a"], [b""], ["é".encode()]]
    parquet.write_table(arrow.table({"items": [["a"], ["b", None]]}), tmp_path / "null.parquet")
    with pytest.raises(DataError, match=r"(?s)'items' holds a malformed list.*null in example 2"):
        tables.read_source(source(tmp_path, parquet="null.parquet"))


def test_records(tmp_path: Path) -> None:
    def feature(**values: Any) -> Any:
        kinds = {"bytes_list": ek.train.BytesList, "int64_list": ek.train.Int64List}
        ((kind, value),) = values.items()
        return ek.train.Feature(**{kind: kinds[kind](value=value)})

    with ek.python_io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for items, numbers, tags in ROWS:
            text = "|".join(f"{tag}:{weight}" for tag, weight in tags)
            features = {
                "items": feature(bytes_list=[item.encode() for item in items]),
                "numbers": feature(int64_list=numbers),
                "tags": feature(bytes_list=[text.encode()]),
            }
            example = ek.train.Example(features=ek.train.Features(feature=features))
            writer.write(example.SerializeToString())
    spec = {
        "items": {"dtype": "string"},
        "numbers": {"dtype": "int64"},
        "tags": {"dtype": "string"},
    }
    described = {"items": {}, "numbers": {"length": 2}, "tags": DESCRIBED["tags"]}
    table = tables.read_source(
        source(tmp_path, tfrecord="a.tfrecord", features=spec, lists=described)
    )
    check(table)
    assert table["numbers"].tolist() == NUMBERS


@pytest.mark.parametrize(
    ("cell", "expected", "received"),
    [
        ("x:1|y", "value:weight, with '|' between them", "'x:1|y' in a.csv:3"),
        ("x:one", "finite numbers", "'x:one' in a.csv:3"),
        ("x:1||y:2", "values between each '|'", "'x:1||y:2' in a.csv:3"),
        ("x:nan", "finite numbers", "'x:nan' in a.csv:3"),
    ],
)
def test_malformed_cells(
    cell: str, expected: str, received: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(f"tags,label\nx:1,0\n{cell},1\n")
    with pytest.raises(DataError, match="the column 'tags' holds a malformed list") as caught:
        tables.read_source(source(tmp_path, csv="a.csv", lists={"tags": DESCRIBED["tags"]}))
    assert expected in str(caught.value)
    assert received in str(caught.value)


def test_unsplittable_columns_raise(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("items,label\na|b,0\n")
    with pytest.raises(DataError, match=r"(?s)items.*mean 'items'|names a column"):
        tables.read_source(source(tmp_path, csv="a.csv", lists={"item": "|"}))
    for wrong in ({"weights": ":"}, {"separator": ":", "weights": ":"}, {"separator": "||"}):
        with pytest.raises(ValidationError):
            source(tmp_path, csv="a.csv", lists={"items": wrong})


MODEL = """\
name: lists
seed: 1
data:
  train:
    csv: train.csv
    lists: {items: "|", numbers: " ", tags: {separator: "|", weights: ":"}}
  evaluate:
    csv: train.csv
    lists: {items: "|", numbers: " ", tags: {separator: "|", weights: ":"}}
  label: label
features:
  - embedding: {column: {hash_bucket: {key: items, hash_bucket_size: 50}}, dimension: 2}
  - indicator: {identity: {key: numbers, num_buckets: 10}}
  - indicator: {weighted: {column: {vocabulary: tags}, weight: tags_weights}}
estimator: {type: DNNClassifier, hidden_units: [4]}
train: {batch_size: 8, steps: 20}
export: [final]
"""


@pytest.mark.slow
def test_list_model_trains_exports_and_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    header, *lines = CSV.splitlines()
    Path("train.csv").write_text("\n".join([header, *lines * 10]) + "\n", encoding="utf-8")
    Path("a.yaml").write_text(MODEL)
    experiment = load_experiment("a.yaml")
    runner.train(experiment)
    table = tables.read_source(tables.source_of("train.csv", experiment.data.train)).take(slice(3))
    expected = predicting.of_experiment(experiment)(table, "train.csv")
    (exported,) = Path(experiment.model_dir, "export", "final").iterdir()
    assert np.allclose(
        predicting.of_export(exported)(table, "train.csv")["probability_1"],
        expected["probability_1"],
        atol=1e-6,
    )
    # Requests hold lists of any length, and need not be padded.
    predictor = ek.load_predictor(str(exported))
    for rows in (ROWS, ROWS[:1], ROWS[2:], [*ROWS, (["b"] * 9, [1] * 5, [("x", 0.25)] * 6)]):
        answer = predictor(
            {
                "items": [items for items, _, _ in rows],
                "numbers": [numbers for _, numbers, _ in rows],
                "tags": [[tag for tag, _ in tags] for _, _, tags in rows],
                "tags_weights": [[weight for _, weight in tags] for _, _, tags in rows],
            },
            "predict",
        )
        for row, found in zip(rows, answer["probabilities"][:, 1], strict=True):
            if row in ROWS:
                wanted = expected["probability_1"][ROWS.index(row)]
                assert np.isclose(found, wanted, atol=1e-5)


def test_streams_need_a_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text(CSV, encoding="utf-8")
    text = MODEL.replace("  label: label", "  label: label\n  stream: true")
    Path("a.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"(?s)items lacks a length, and streamed chunks"):
        load_experiment("a.yaml")
    long = '{separator: "|", length: 3}'
    text = text.replace('items: "|"', f"items: {long}")
    text = text.replace('numbers: " "', 'numbers: {separator: " ", length: 2}')
    text = text.replace('weights: ":"', 'weights: ":", length: 2').replace(
        "{vocabulary: tags}", "{hash_bucket: {key: tags, hash_bucket_size: 9}}"
    )
    Path("a.yaml").write_text(text)
    training = inputs.training(load_experiment("a.yaml"))
    batch, _ = next(iter(training.dataset().batch(3)))
    assert batch["items"].tolist() == [[b"a", b"b", b"a"], [b""] * 3, ["é".encode(), b"", b""]]
    assert batch["numbers"].tolist() == NUMBERS
    assert np.array_equal(batch["tags_weights"], WEIGHTS)


def test_compressed_files_are_streamed(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wt", encoding="utf-8") as stream:
        stream.write(CSV)
    (chunk,) = tables.read_chunks(source(tmp_path, csv="a.csv.gz", lists=DESCRIBED))
    check(chunk)
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "a.csv.gz").read_bytes()[:-9])
    with pytest.raises(DataError, match=r"cut\.csv\.gz"):
        list(tables.read_chunks(source(tmp_path, csv="cut.csv.gz")))


VOCABULARY = """\
name: words
data:
  train: {csv: a.csv, lists: {items: {separator: "|", length: 4}}}
  evaluate: {csv: a.csv}
  label: y%s
features:
  - indicator: {vocabulary: {key: items, min_count: 2}}
  - indicator: {vocabulary: {key: n, min_count: 3, num_oov_buckets: 2}}
  - embedding: {column: {vocabulary: {key: n, max_size: 1}}, dimension: 2}
estimator: {type: DNNClassifier, hidden_units: [2]}
train: {steps: 2}
"""


@pytest.mark.parametrize("streamed", [False, True])
def test_word_counts(streamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["a|b|b,1,0", "c,2,1", "b|a,1,0", ",,1", "d|c|c,1,0"]
    Path("a.csv").write_text("items,n,y\n" + "\n".join(rows) + "\n")
    Path("a.yaml").write_text(VOCABULARY % ("\n  stream: true" if streamed else ""))
    experiment = load_experiment("a.yaml")
    if streamed:  # small chunks: sums of several
        whole = tables.read_chunks
        monkeypatch.setattr(tables, "read_chunks", lambda source: whole(source, 20))
    told: list[str] = []
    found = inferred.resolve(experiment, told.append)
    assert told[0].startswith("items: 3 of 4 words are seen at least 2 times")
    files = [each.arguments for each in found.features]
    first = files[0].column.arguments
    assert Path(first.file).read_bytes() == b"b\nc\na\n"
    assert first.num_oov_buckets == 1
    second = files[1].column.arguments
    assert (Path(second.file).read_bytes(), second.num_oov_buckets) == (b"1\n", 2)
    assert Path(files[2].column.arguments.file).read_bytes() == b"1\n"
    # Without anybody to tell, what is kept counts.
    Path(first.file).write_text("b\n")
    assert inferred.resolve(experiment) == found
    assert Path(first.file).read_text() == "b\n"
    Path("a.yaml").write_text((VOCABULARY % "").replace("min_count: 2", "min_count: 9"))
    with pytest.raises(DataError, match=r"(?s)'items' is frequent enough.*seen 3 times at most"):
        vocabularies.resolve(load_experiment("a.yaml"))
