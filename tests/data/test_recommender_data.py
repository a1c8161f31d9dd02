"""MovieLens and Criteo in their own formats, lists in cells, and generated histories."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import estimatorkit as tf
from estimatorkit.data.datasets import movielens_1m, movielens_100k
from estimatorkit.data.datasets.criteo import COUNTS, IDS, read_files
from estimatorkit.data.datasets.movielens import COLUMNS
from estimatorkit.data.list_cells import split_cells
from estimatorkit.experiment import tables
from estimatorkit.experiment.sources import CsvSource, DataSetSource
from tests.data.test_datasets import LOCAL, Server
from tests.test_examples import load_example

# In the formats of the archives' own README files.
FILES_100K = {
    "u.data": "1\t2\t3\t300\n2\t1\t5\t100\n1\t1\t4\t200\n2\t2\t1\t300\n",
    "u.user": "1|24|M|technician|85711\n2|53|F|other|T8H1N\n",
    "u.item": "1|Toy Story (1995)|01-Jan-1995||http://a?|0|0|0|1|1|1" + "|0" * 13 + "\n"
    "2|Café|||http://b|1" + "|0" * 18 + "\n",
}
FILES_1M = {
    "ratings.dat": "1::2::3::300\n2::1::5::100\n1::1::4::200\n2::2::1::300\n",
    "users.dat": "1::M::25::17::85711\n2::F::1::0::01234\n",
    "movies.dat": "1::Toy Story (1995)::Animation|Children's|Comedy\n2::Café: a: b (2000)::Drama\n",
}


def archive(folder: str, files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, text in files.items():
            packed.writestr(f"{folder}/{name}", text.encode("latin-1"))
    return content.getvalue()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("module", "folder", "files"),
    [(movielens_100k, "ml-100k", FILES_100K), (movielens_1m, "ml-1m", FILES_1M)],
)
def test_movielens_is_downloaded_and_read(
    module: Any,
    folder: str,
    files: dict[str, str],
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ESTIMATORKIT_DATA_DIR", raising=False)
    monkeypatch.setenv("ESTIMATORKIT_CACHE_DIR", str(tmp_path / "cache"))
    content = archive(folder, files)
    (file,) = module.DATA_SET.files
    assert file.urls == (f"https://files.grouplens.org/datasets/movielens/{folder}.zip",)
    served = dataclasses.replace(
        file,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        md5=hashlib.md5(content, usedforsecurity=False).hexdigest(),
        urls=(server.url,),
    )
    monkeypatch.setattr(module, "DATA_SET", dataclasses.replace(module.DATA_SET, files=(served,)))
    server.answer = lambda handler: server.send(handler, 200, content)
    path = module.DATA_SET.path(file.name, LOCAL)
    train, test = module.load_data(split="last")
    assert len(server.requests) == 1
    assert tuple(train) == COLUMNS
    assert train[["user_id", "item_id"]].to_numpy().tolist() == [[2, 1], [1, 1]]
    assert test[["user_id", "timestamp"]].to_numpy().tolist() == [[1, 300], [2, 300]]
    first, last = train.iloc[0], test.iloc[0]
    assert (first["gender"], first["rating"], first["year"]) == ("F", 5, 1995.0)
    assert first["genres"] == "Animation|Children's|Comedy"
    assert last["title"].startswith("Café")
    assert [*first[["history", "liked", "loved"]]] == ["", 1, 1]
    assert test[["history", "liked", "loved"]].to_numpy().tolist() == [["1", 0, 0], ["1", 0, 0]]
    assert last["zip"] == "85711"
    assert train["occupation"].iloc[0] == "other"
    early, late = module.load_data(path, split="time", test_fraction=0.25)
    assert early["timestamp"].tolist() == [100, 200, 300]
    assert late[["user_id", "timestamp"]].to_numpy().tolist() == [[2, 300]]
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "here")
    for place in (tmp_path / "here", tmp_path / "here" / folder):
        pd.testing.assert_frame_equal(module.load_data(place, "last")[0], train)
    with pytest.raises(ValueError, match="split"):
        module.load_data(path, split="random")
    with pytest.raises(tf.errors.NotFoundError, match="has no file"):
        module.load_data(tmp_path)
    with pytest.raises(ValueError, match="a part of the split is empty"):
        module.load_data(path, test_fraction=0.0)
    # As a source of an experiment.
    source = DataSetSource.model_validate(
        {
            "dataset": f"{module.DATA_SET.name}_train",
            "path": str(path),
            "split": "last",
            "lists": {"genres": "|"},
        }
    )
    table = tables.read_source(source)
    assert table["genres"][0].tolist() == [b"Animation", b"Children's", b"Comedy", b""]
    with pytest.raises(ValueError, match="iris_test has none"):
        DataSetSource.model_validate({"dataset": "iris_test", "split": "last"})


def test_users_with_one_row_are_training_data() -> None:
    table = pd.DataFrame({"user_id": [1, 2, 1, 1], "timestamp": [5, 1, 5, 2]})
    train, test = tf.datasets.split_last(table)
    assert (train.index.tolist(), test.index.tolist()) == ([1, 3, 0], [2])


# -- Criteo


def criteo_line(number: int) -> str:
    counts = ["", "-2", *map(str, range(number, number + 11))]
    return "\t".join([str(number % 2), *counts, *[f"{number:08x}"] * 25, ""]) + "\n"


@pytest.mark.parametrize("packed", [False, True])
def test_criteo_is_streamed(packed: bool, tmp_path: Path) -> None:
    for day in range(3):
        text = "".join(criteo_line(day * 10 + row) for row in range(4))
        opened: Callable[..., Any] = gzip.open if packed else open
        with opened(tmp_path / f"day_{day}{'.gz' if packed else ''}", "wt") as stream:
            stream.write(text)
    pattern = str(tmp_path / "day_*")

    def rows(**given: Any) -> list[int]:
        return [int(features["C1"], 16) for features, _ in read_files(pattern, **given)]

    assert rows(shuffle=False) == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    orders = {tuple(rows(seed=seed)) for seed in range(8)}
    assert len(orders) > 1
    assert all(sorted(order) == rows(shuffle=False) for order in orders)
    assert rows(seed=3) == rows(seed=3)
    shards = [rows(seed=1, shards=2, shard=shard) for shard in range(2)]
    assert sorted([*shards[0], *shards[1]]) == rows(shuffle=False)
    assert sorted(rows(files_at_once=2)) == rows(shuffle=False)
    features, label = next(iter(read_files(pattern, shuffle=False)))
    assert list(features) == [*COUNTS, *IDS]
    assert (features["I1"], features["I2"], features["I3"]) == (0.0, -2.0, 0.0)
    assert (features["C25"], features["C26"], label) == (b"00000000", b"", 0)
    # As a source of an experiment: ids of digits alone stay text, and missing counts are NaN.
    source = CsvSource.model_validate({"csv": pattern, "format": "criteo"})
    whole = tables.read_source(source)
    assert whole["C1"].tolist()[4] == b"0000000a"
    assert whole["C2"].tolist()[1] == b"00000001"
    assert np.isnan(whole["I1"]).all()
    for table in tables.read_chunks(source, 300):
        assert table["C1"].dtype == object
    (tmp_path / "other.gz").write_bytes(b"")
    (tmp_path / "other").write_bytes(b"")
    with pytest.raises(ValueError, match="some files are compressed"):
        read_files(str(tmp_path / "other*"))


# -- lists in cells


def test_split_cells() -> None:
    values = split_cells(["a|b|c", "", b"d"])
    assert values.tolist() == [[b"a", b"b", b"c", b""], [b""] * 4, [b"d", b"", b"", b""]]
    assert split_cells(["a|b|c", "d"], length=2).tolist() == [[b"b", b"c"], [b"d", b""]]
    words, weights = split_cells(["a:1 b:c:-0.5", ""], " ", ":")
    assert words.tolist() == [[b"a", b"b:c"], [b"", b""]]
    assert weights.tolist() == [[1.0, -0.5], [0.0, 0.0]]
    assert split_cells([]).shape == (0, 1)
    with pytest.raises(ValueError, match=r"(?s)row 1 is not such a list.*'a\|\|b'"):
        split_cells(["a", "a||b"])
    for wrong in ("", "||", "é"):
        with pytest.raises(ValueError, match="one ASCII character"):
            split_cells(["a"], wrong)


def test_splitting_matches_python() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        rows = [
            [(random.choice(["x", "yy", "z:é"]), float(random.integers(-9, 9))) for _ in range(n)]
            for n in random.integers(0, 5, random.integers(1, 7))
        ]
        cells = ["|".join(f"{word}:{weight}" for word, weight in row) for row in rows]
        words, weights = split_cells(cells, "|", ":")
        for row, some, numbers in zip(rows, words, weights, strict=True):
            assert [each.decode() for each in some if each] == [word for word, _ in row]
            assert numbers[: len(row)].tolist() == [weight for _, weight in row]
            assert not numbers[len(row) :].any()


def test_split_cells_feed_columns() -> None:
    words, weights = split_cells(["a:2|b:1", "", "b:3"], "|", ":")
    column = tf.feature_column.categorical_column_with_vocabulary_list("tags", ["a", "b"])
    weighted = tf.feature_column.weighted_categorical_column(column, "weights")
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.feature_column.input_layer(
            {"tags": words, "weights": weights}, [tf.feature_column.indicator_column(weighted)]
        )
        assert session.run(made).tolist() == [[2, 1], [0, 0], [0, 3]]


def test_parquet_lists_are_padded(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table(
        {
            "items": [["a", "b", "c"], [], None, ["d"]],
            "numbers": arrow.array([[1], [2, 3], [], [4, 5, 6]], arrow.large_list(arrow.int32())),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    path = str(tmp_path / "a.parquet")
    dataset = tf.data.ParquetDataset(path, batch_rows=2, lengths={"items": 2, "numbers": 3})
    batch = next(iter(dataset.batch(4)))
    assert batch["items"].tolist() == [[b"b", b"c"], [b"", b""], [b"", b""], [b"d", b""]]
    assert batch["numbers"].tolist() == [[1, -1, -1], [2, 3, -1], [-1, -1, -1], [4, 5, 6]]
    with pytest.raises(TypeError, match=r"lengths=\{"):
        tf.data.ParquetDataset(path)
    with pytest.raises(ValueError, match=r"(?s)lengths names a column.*'items'"):
        tf.data.ParquetDataset(path, lengths={"item": 2})
    parquet.write_table(arrow.table({"items": [["a"], ["b", None]], "n": [1, 2]}), path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="null in row 1 of row group 0"):
        list(tf.data.ParquetDataset(path, ["items"], lengths={"items": 2}))
    with pytest.raises(TypeError, match="holds no lists"):
        tf.data.ParquetDataset(path, lengths={"items": 2, "n": 2})


def test_text_dataset_is_split_in_graph() -> None:
    column = tf.feature_column.categorical_column_with_vocabulary_list("items", ["a", "b"])
    rows = tf.data.Dataset.from_tensor_slices({"items": ["a|b|a", "", "b"]}).batch(3)
    split = rows.map(lambda row: {"items": tf.string_split(row["items"], "|")})
    with tf.Session() as session:
        features = split.make_one_shot_iterator().get_next()
        made = tf.feature_column.input_layer(features, [tf.feature_column.indicator_column(column)])
        assert session.run(made).tolist() == [[2, 1], [0, 0], [0, 1]]


def test_split_cells_keep_order() -> None:
    column = tf.feature_column.sequence_categorical_column_with_vocabulary_list("items", ["a", "b"])
    with tf.Graph().as_default(), tf.Session() as session:
        features = {"items": split_cells(["b|a|b", "", "a"])}
        made, lengths = tf.feature_column.sequence_input_layer(
            features, [tf.feature_column.indicator_column(column)]
        )
        steps, counts = session.run([made, lengths])
    assert counts.tolist() == [3, 0, 1]
    assert steps[0, :3].tolist() == [[0, 1], [1, 0], [0, 1]]
    assert steps[2, 0].tolist() == [1, 0]


# -- the generator


def test_histories_agree_across_formats(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    example = load_example("sequences")
    flags = ["--users", "40", "--items", "60", "--formats", "csv", "parquet", "tfrecord"]
    found = example.main([str(tmp_path / "a"), *flags])
    assert 0.6 < found["the best possible"] < 1.0
    example.main([str(tmp_path / "b"), *flags])
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    names = ("history_items", "history_categories")
    split: Any = tables.sources.CsvSource.model_validate(
        {"csv": str(tmp_path / "a/test.csv"), "lists": dict.fromkeys(names, "|")}
    )
    listed: Any = tables.sources.ParquetSource.model_validate(
        {"parquet": str(tmp_path / "a/test.parquet")}
    )
    texts = ("user", "item", "category", *names)
    recorded: Any = tables.sources.TFRecordSource.model_validate(
        {
            "tfrecord": str(tmp_path / "a/test.tfrecord"),
            "features": {
                **{name: {"dtype": "string"} for name in texts},
                **{name: {"dtype": "int64"} for name in ("timestamp", "label")},
            },
            "lists": {name: {} for name in names},
        }
    )
    first, *others = map(tables.read_source, (split, listed, recorded))
    assert set(np.unique([len(row) for row in first["history_items"]])) == {32}
    for other in others:
        for name in (*names, "timestamp", "label"):
            assert other[name].tolist() == first[name].tolist()


def test_best_possible_score_is_auc() -> None:
    example = load_example("sequences")
    assert example.area_under_curve([0, 1, 1, 0], [0.1, 0.4, 0.35, 0.35]) == pytest.approx(0.875)
    table = example.generate(users=2000, items=200, seed=1)
    assert table["chance"].mean() == pytest.approx(table["label"].mean(), abs=0.02)
    # Zipf's law: the most popular tenth is bought most of the time.
    bought = table["history_items"].explode().value_counts(normalize=True)
    assert bought.iloc[:20].sum() > 0.5
    # Interests tell: who has just bought of a category clicks more on it.
    last = [
        row[-1] == now
        for row, now in zip(table["history_categories"], table["category"], strict=True)
    ]
    assert table["label"][last].mean() > table["label"].mean() + 0.1
