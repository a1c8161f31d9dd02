"""`estimatorkit.inspection` on models whose weights are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.inspection import linear_weights, permutation_importance, predict_table
from estimatorkit.storage.checkpoint import read_checkpoint, write_checkpoint

fc = tf.feature_column
ROWS = 97
WORDS = ("red", "green", "blue")


def table() -> tuple[dict[str, Any], Any]:
    random = np.random.default_rng(3)
    features = {
        "x": random.normal(size=ROWS).astype(np.float32),
        "color": np.array(WORDS, object)[random.integers(0, 3, ROWS)],
        "unused": random.normal(size=ROWS).astype(np.float32),
        "weightless": random.normal(size=ROWS).astype(np.float32),
    }
    return features, (features["x"] + (features["color"] == "green") > 0).astype(np.int64)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A linear model whose weights are set: 2 for x, 3 for green, 0 for 'weightless'."""
    number = fc.numeric_column("x")
    color = fc.categorical_column_with_vocabulary_list("color", WORDS)
    ranges = fc.bucketized_column(number, [-1.0, 0.5])
    columns = [
        *(number, color, ranges, fc.numeric_column("weightless")),
        fc.crossed_column([color, ranges], 40),
    ]
    estimator = tf.estimator.LinearClassifier(columns, str(tmp_path_factory.mktemp("model")))
    features, labels = table()
    estimator.train(
        lambda: tf.data.Dataset.from_tensor_slices((features, labels)).batch(ROWS), steps=1
    )
    saved = read_checkpoint(estimator.latest_checkpoint())
    for name, value in saved.tensors.items():
        if name.endswith("weights"):
            value[...] = 0
    prefix = "linear/linear_model/"
    saved.tensors[f"{prefix}x/weights"][0, 0] = 2
    saved.tensors[f"{prefix}color/weights"][1, 0] = 3
    saved.tensors[f"{prefix}color_X_x_bucketized/weights"][:, 0] = np.arange(40) / 1000
    write_checkpoint(estimator.model_dir, "model.ckpt-1", saved.tensors, saved.state)
    estimator.forget_models()
    return estimator


@pytest.mark.slow
def test_weight_names_of_words_buckets_and_crosses(model: Any) -> None:
    frame = linear_weights(model)
    assert list(frame.columns) == ["column", "value", "weight"]
    by_name = {(row.column, row.value): row.weight for row in frame.itertuples()}
    assert by_name["x", ""] == 2
    assert by_name["color", "green"] == 3
    assert by_name["bias", ""] == 0
    assert [value for column, value in by_name if column == "x_bucketized"] == [
        "below -1",
        "-1 to 0.5",
        "from 0.5",
    ]
    crossed = [row for row in frame.itertuples() if row.column == "color_X_x_bucketized"]
    assert len(crossed) == 40
    names = [name for row in crossed for name in row.value.split(" | ") if " & " in name]
    assert sorted(names) == sorted(
        f"{color} & {each}" for color in WORDS for each in ("below -1", "-1 to 0.5", "from 0.5")
    )


@pytest.mark.slow
def test_cross_names_of_used_buckets(model: Any) -> None:
    # The logit of a row, less what its number and word give, is the weight of its combination.
    weights = linear_weights(model)
    crossed = weights[weights["column"] == "color_X_x_bucketized"]
    features = {
        "x": np.array([-2.0, 0.0, 3.0] * 3, np.float32),
        "color": np.array(np.repeat(WORDS, 3), object),
        "weightless": np.zeros(9, np.float32),
    }
    logits = predict_table(model, features)["logits"][:, 0]
    for x, color, logit in zip(features["x"], features["color"], logits, strict=True):
        where = "below -1" if x < -1 else "-1 to 0.5" if x < 0.5 else "from 0.5"
        own = crossed[crossed["value"].str.contains(f"{color} & {where}", regex=False)]
        rest = logit - 2 * x - (3 if color == "green" else 0)
        np.testing.assert_allclose(rest, own["weight"], atol=1e-5)


@pytest.mark.slow
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**31),
    repeats=st.sampled_from([1, 40]),  # each is a compilation
    metric=st.sampled_from(["accuracy", "log_loss", "auc"]),
)
def test_irrelevant_feature_has_importance_0(
    model: Any, seed: int, repeats: int, metric: str
) -> None:
    features, labels = table()
    frame = permutation_importance(model, features, labels, metric, repeats, seed)
    for name in ("unused", "weightless"):
        assert (frame.loc[name] == 0).all()
    assert (frame.loc[["x", "color"], "importance"] > 0).all()
    assert list(frame["importance"]) == sorted(frame["importance"], reverse=True)
    assert frame.filter(like="repeat_").shape == (4, repeats)


@pytest.mark.slow
def test_features_of_a_rare_class_have_importance(model: Any) -> None:
    """Few shuffles change a class, and all of them change probabilities."""
    random = np.random.default_rng(0)
    features = {key: each[random.integers(0, ROWS, 400)] for key, each in table()[0].items()}
    features["x"] -= 8.0  # the model's classes are all 0
    odds = 2 * features["x"] + 3 * (features["color"] == "green")
    labels = (odds > np.quantile(odds, 0.97)).astype(np.int64)
    given = (model, features, labels)
    assert (permutation_importance(*given, "accuracy", 2)["importance"] == 0).all()
    for metric in (None, "average_precision"):
        found = permutation_importance(*given, metric, 2)["importance"]
        assert (found[["x", "color"]] > 0).all()
        assert (found[["unused", "weightless"]] == 0).all()


@pytest.mark.slow
def test_importance_matches_manual_shuffling_in_few_calls(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, labels = table()
    calls = counted(monkeypatch)
    frame = permutation_importance(
        model, pd.DataFrame(features), labels, accuracy, repeats=3, seed=9, keys=["x", "color"]
    )
    assert calls == [6 * ROWS] * 2  # as it is, and all six shuffles
    random = np.random.default_rng(9)
    orders = [random.permutation(ROWS) for _ in range(3)]
    before = accuracy(labels, predict_table(model, features))
    after = [
        accuracy(labels, predict_table(model, {**features, "x": features["x"][order]}))
        for order in orders
    ]
    np.testing.assert_allclose(
        frame.loc["x", ["repeat_0", "repeat_1", "repeat_2"]], before - np.array(after)
    )
    with pytest.raises(ValueError, match="there is no feature 'colour'"):
        permutation_importance(model, features, labels, keys=["colour"])


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes the rows of each call of a predictor."""
    from estimatorkit.estimator.prediction import LivePredictor

    rows: list[int] = []
    inner: Callable[..., Any] = LivePredictor.batch

    def batch(self: LivePredictor, features: Any) -> Any:
        rows.append(len(features["x"]))
        return inner(self, features)

    monkeypatch.setattr(LivePredictor, "batch", batch)
    return rows


def accuracy(labels: Any, predictions: Any) -> float:
    return float(np.mean(predictions["class_ids"][:, 0] == labels))


def test_model_without_linear_part_raises(tmp_path: Path) -> None:
    deep = tf.estimator.DNNClassifier([2], [fc.numeric_column("x")], str(tmp_path))
    with pytest.raises(ValueError, match="no linear part"):
        linear_weights(deep)
