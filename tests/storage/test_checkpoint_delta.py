"""Deltas of checkpoints: rows that changed, tables that grew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.storage.checkpoint import read_checkpoint, write_checkpoint


def folder_bytes(path: Any) -> int:
    return sum(each.stat().st_size for each in Path(path).iterdir())


def checkpoints(folder: Path) -> tuple[str, str, dict[str, Any]]:
    table = np.random.default_rng(0).normal(size=(50_000, 8)).astype(np.float32)
    base = {
        "table": table,
        "grown": table[:100],
        "same": table[:9],
        "gone": np.ones(3),
        "step": np.int64(5),
        "words": np.array([b"a", b"b"], object),
        "bias": np.zeros(4, np.float32),
    }
    latest = {name: value.copy() for name, value in base.items() if name != "gone"}
    latest["table"][[3, 40_000]] += 1
    latest["grown"] = np.concatenate([latest["grown"], table[:20]])
    latest["grown"][7] = 0
    latest["step"] = np.int64(6)
    latest["words"] = np.array([b"a", b"c"], object)
    latest["bias"] += 1
    latest["new"] = np.arange(3)
    paths = [
        str(
            write_checkpoint(folder, f"model.ckpt-{step}", tensors, {"random": {"x": [1, 2, step]}})
        )
        for step, tensors in ((5, base), (6, latest))
    ]
    return paths[0], paths[1], latest


def test_delta_is_small_and_restores_checkpoint(tmp_path: Path) -> None:
    base, latest, expected = checkpoints(tmp_path)
    delta = tf.train.write_checkpoint_delta(base, latest, tmp_path / "delta-6")
    assert folder_bytes(delta) < folder_bytes(latest) / 100
    again = tf.train.apply_checkpoint_delta(base, delta, tmp_path / "other" / "model.ckpt-6")
    found = read_checkpoint(again)
    assert found.tensors.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found.tensors[name], value)
        assert found.tensors[name].dtype == value.dtype
    assert found.state == {"random": {"x": [1, 2, 6]}}


def test_wrong_base_is_refused(tmp_path: Path) -> None:
    base, latest, _ = checkpoints(tmp_path)
    delta = tf.train.write_checkpoint_delta(base, latest, tmp_path / "delta")
    with pytest.raises(tf.errors.FailedPreconditionError, match="against another checkpoint"):
        tf.train.apply_checkpoint_delta(latest, delta, tmp_path / "x")
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a delta"):
        tf.train.apply_checkpoint_delta(base, latest, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("broken", ["rows", "shapes", "values"])
def test_malformed_delta_is_refused(broken: str, tmp_path: Path) -> None:
    base, latest, _ = checkpoints(tmp_path)
    delta = read_checkpoint(tf.train.write_checkpoint_delta(base, latest, tmp_path / "delta"))
    if broken == "rows":
        delta.tensors["table:rows"][0] = 50_000
    elif broken == "values":
        del delta.tensors["table:values"]
    else:
        delta.state["delta"]["shapes"]["grown"] = [5]
    write_checkpoint(tmp_path, "bad", delta.tensors, delta.state)
    with pytest.raises(tf.errors.DataLossError, match="malformed"):
        tf.train.apply_checkpoint_delta(base, tmp_path / "bad", tmp_path / "x")


@pytest.mark.slow
def test_training_continues_from_delta(tmp_path: Path) -> None:
    """A dynamic table: new ids come with the delta."""
    table = tf.feature_column.EmbeddingTable(dynamic=True)
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_hash_bucket("user", 2**62), 2, table=table
    )

    def train(folder: Path, first: int, last: int) -> Any:
        users = np.array([f"u{number}" for number in range(first, last)])
        config = tf.estimator.RunConfig(str(folder), tf_random_seed=1)
        model = tf.estimator.DNNClassifier([4], [column], config=config)
        data = ({"user": users}, np.arange(len(users)) % 2)
        model.train(lambda: tf.data.Dataset.from_tensor_slices(data).batch(50))
        return model

    today, tomorrow = tmp_path / "today", tmp_path / "tomorrow"
    base = train(today, 0, 2000).latest_checkpoint()
    trained = train(today, 1900, 2300)
    latest = trained.latest_checkpoint()
    delta = tf.train.write_checkpoint_delta(base, latest, tmp_path / "delta")
    assert folder_bytes(delta) < folder_bytes(latest)
    tf.train.apply_checkpoint_delta(base, delta, tomorrow / Path(latest).name)
    config = tf.estimator.RunConfig(str(tomorrow))
    served = tf.estimator.DNNClassifier([4], [column], config=config)
    asked = {"user": np.array(["u3", "u2299", "nobody"])}
    found, expected = (
        [each["logits"] for each in model.predict(lambda: tf.data.Dataset.from_tensors(asked))]
        for model in (served, trained)
    )
    np.testing.assert_array_equal(found, expected)
