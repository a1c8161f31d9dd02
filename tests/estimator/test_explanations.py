"""Explanations of rows: contributions add up, and are right where the right ones are known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.estimator import explanations
from estimatorkit.estimator.explanations import explained, score_of
from estimatorkit.inspection import predict_table

Table = dict[str, Any]


def table(rows: int, seed: int) -> Table:
    random = np.random.default_rng(seed)
    numbers = {key: random.normal(size=rows).astype(np.float32) for key in ("b", "a", "c")}
    return {**numbers, "word": np.array([b"x", b"y"], object)[random.integers(0, 2, rows)]}


def product(features: Mapping[str, Any], _: Any = None) -> Any:
    return features["a"] * features["b"] + 3 * features["c"] + 2.0 * (features["word"] == b"x")


def test_contributions_add_up_to_predictions() -> None:
    rows, background = table(70, 1), table(32, 2)
    found = explained(product, rows, background)
    assert list(found.contributions) == list(rows)
    np.testing.assert_allclose(found.predictions, product(rows), atol=1e-6)
    np.testing.assert_allclose(found.baseline, product(background).mean(), atol=1e-6)


def test_functions_without_interactions_are_explained_exactly() -> None:
    rows, background = table(9, 1), table(8, 2)

    def linear(features: Mapping[str, Any], _: Any) -> Any:
        return 2 * features["a"] - np.exp(features["b"])

    found = explained(linear, rows, background).contributions
    np.testing.assert_allclose(found["a"], 2 * (rows["a"] - background["a"].mean()), atol=1e-5)
    away = np.exp(background["b"]).mean() - np.exp(rows["b"])
    np.testing.assert_allclose(found["b"], away, atol=1e-5)
    assert not found["c"].any()
    assert not found["word"].any()


def test_an_interaction_of_two_is_shared_equally() -> None:
    one = {key: np.zeros(1) for key in "ab"}
    rows = {"a": np.array([3.0]), "b": np.array([4.0])}
    found = explained(lambda features, _: features["a"] * features["b"], rows, one)
    assert found.contributions["a"] == found.contributions["b"] == 6.0


def test_a_row_is_explained_alike_among_others_and_in_any_order_of_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, background = table(12, 3), table(4, 4)
    whole = explained(product, rows, background).contributions
    monkeypatch.setattr(explanations, "_ROWS", 50)  # many calls
    last = {key: rows[key][-1:] for key in sorted(rows)}
    alone = explained(product, last, background).contributions
    for key in rows:
        np.testing.assert_allclose(alone[key], whole[key][-1:], atol=1e-6)


def test_probabilities_of_the_class_that_is_predicted() -> None:
    def predict(features: Mapping[str, Any]) -> Table:
        shares = np.stack([features["a"], 2 * features["a"], 1 - 3 * features["a"]], 1)
        return {"probabilities": shares, "class_ids": shares.argmax(1)[:, None]}

    rows = {"a": np.array([0.1, 0.3])}
    found = explained(score_of(predict, rows), rows, {"a": np.zeros(1)})
    np.testing.assert_allclose(found.baseline, [1.0, 0.0])
    np.testing.assert_allclose(found.contributions["a"], [-0.3, 0.6])


@pytest.mark.slow
def test_linear_models_have_the_contributions_of_their_weights(tmp_path: Path) -> None:
    rows, background = table(20, 5), table(16, 6)
    word = tf.feature_column.categorical_column_with_vocabulary_list("word", ["x", "y"])
    columns = [*map(tf.feature_column.numeric_column, "abc"), word]
    dataset = tf.data.Dataset.from_tensors((rows, product(rows).astype(np.float32))).repeat(50)
    model = tf.estimator.LinearRegressor(columns, str(tmp_path)).train(lambda: dataset)
    weights = tf.inspection.linear_weights(model).set_index("column")["weight"]
    found = tf.inspection.explain(model, rows, background)
    for key in "abc":
        expected = weights[key] * (rows[key] - background[key].mean())
        np.testing.assert_allclose(found[key], expected, atol=1e-4)
    predictions = predict_table(model, rows)["predictions"][:, 0]
    np.testing.assert_allclose(found.sum(axis=1), predictions, atol=1e-4)
    one = tf.inspection.explain(model, rows, {key: each[:1] for key, each in background.items()})
    np.testing.assert_allclose(one["a"], weights["a"] * (rows["a"] - background["a"][0]), atol=1e-4)


def test_what_cannot_be_explained(tmp_path: Path) -> None:
    rows = table(3, 1)
    with pytest.raises(ValueError, match="lacks the feature 'c'"):
        explained(product, rows, {key: rows[key] for key in ("a", "b", "word")})
    with pytest.raises(ValueError, match="another shape in the background"):
        explained(product, rows, {**rows, "c": rows["c"][:, None]})
    with pytest.raises(ValueError, match="there is no prediction 'logit'"):
        score_of(lambda features: {"logits": features["a"][:, None]}, rows, "logit")
    with pytest.raises(ValueError, match="several numbers are predicted"):
        score_of(lambda features: {"predictions": np.zeros((3, 2))}, rows)
    with pytest.raises(ValueError, match="need background rows"):
        explanations.read_background(tmp_path / "none.json")


def test_background_rows_are_kept_as_json(tmp_path: Path) -> None:
    rows = {
        **table(3, 1),
        "missing": np.array([1.0, np.nan, 2.0]),
        "ids": np.arange(6).reshape(3, 2),
    }
    rows["word"][0] = b"\xff\xe9"
    path = tmp_path / explanations.BACKGROUND_FILE
    path.write_text(explanations.background_json(rows))
    found = explanations.read_background(path)
    for key, column in rows.items():
        np.testing.assert_array_equal(found[key], column)


# -- integrated gradients


def trained(kind: str, folder: Path) -> Any:
    """A small trained model of the columns of `table`."""
    rows = table(64, 7)
    numbers = [tf.feature_column.numeric_column(key) for key in "abc"]
    word = tf.feature_column.categorical_column_with_vocabulary_list("word", ["x", "y"])
    make = {
        "DNNRegressor": lambda: tf.estimator.DNNRegressor(
            [8], [*numbers, tf.feature_column.indicator_column(word)], str(folder)
        ),
        "LinearClassifier": lambda: tf.estimator.LinearClassifier([*numbers, word], str(folder)),
        "DNNLinearCombinedClassifier": lambda: tf.estimator.DNNLinearCombinedClassifier(
            str(folder),
            linear_feature_columns=[word],
            dnn_feature_columns=numbers,
            dnn_hidden_units=[8],
        ),
        "TabularClassifier": lambda: tf.estimator.TabularClassifier(
            [*numbers, word], str(folder), hidden_units=[8], members=2, train_steps=20
        ),
    }[kind]
    values = product(rows).astype(np.float32)
    labels = values if kind.endswith("Regressor") else (values > 1).astype(np.int64)
    dataset = tf.data.Dataset.from_tensors((rows, labels)).repeat(20)
    return make().train(lambda: dataset)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["DNNRegressor", "LinearClassifier", "DNNLinearCombinedClassifier", "TabularClassifier"],
)
def test_integrated_gradients_add_up(kind: str, tmp_path: Path) -> None:
    model, rows, background = trained(kind, tmp_path), table(3, 1), table(2, 2)
    found = tf.inspection.explain(model, rows, background, method="integrated_gradients")
    assert set(found) == {"baseline", *rows}
    predictions = predict_table(model, rows)
    expected = predictions.get("predictions", predictions.get("probabilities"))[:, -1]
    np.testing.assert_allclose(found.sum(axis=1), expected, atol=1e-4)
    moved = np.abs(found.drop(columns="baseline")).to_numpy().max()
    assert moved > 1e-3
    shapley = tf.inspection.explain(model, rows, background)
    assert np.abs(found - shapley).to_numpy().max() < 0.35 * moved  # another measure of the same


@pytest.mark.slow
def test_integrated_gradients_of_linear_logits_are_exact(tmp_path: Path) -> None:
    model, rows, background = trained("LinearClassifier", tmp_path), table(4, 1), table(2, 2)
    found = tf.inspection.explain(model, rows, background, "logits", method="integrated_gradients")
    weights = tf.inspection.linear_weights(model).set_index("column")["weight"]
    for key in "abc":
        expected = weights[key] * (rows[key] - background[key].mean())
        np.testing.assert_allclose(found[key], expected, atol=1e-4)


@pytest.mark.slow
def test_what_has_no_gradients(tmp_path: Path) -> None:
    rows = table(16, 1)
    model = trained("DNNRegressor", tmp_path)
    gaps = {**rows, "a": np.full(16, np.nan, np.float32)}
    with pytest.raises(ValueError, match="'a' has missing values"):
        tf.inspection.explain(model, gaps, rows, method="integrated_gradients")
    with pytest.raises(ValueError, match="are of an estimator"):
        tf.inspection.explain(model.as_predictor(), rows, rows, method="integrated_gradients")

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        tf.train.get_or_create_global_step()
        sums = features["a"][:, None] + features["b"][:, None]
        step = tf.train.get_global_step().assign_add(1)
        loss = tf.reduce_mean(sums)
        return tf.estimator.EstimatorSpec(mode, {"predictions": sums}, loss, step)

    other = tf.estimator.Estimator(model_fn, str(tmp_path / "other"))
    other.train(lambda: tf.data.Dataset.from_tensors((rows, rows["c"])))
    with pytest.raises(ValueError, match="no function of the tensors of feature columns"):
        tf.inspection.explain(other, rows, rows, method="integrated_gradients")
    found = tf.inspection.explain(other, rows, rows)
    np.testing.assert_allclose(found["a"], rows["a"] - rows["a"].mean(), atol=1e-5)
