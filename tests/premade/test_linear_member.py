"""The linear member of ensembles: what is fitted, gaps, rare ids, absent classes, exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.premade.linear_member import LEAST_ROWS, LinearMember

ROWS = 200
WORDS = ["a", "b", "c", "d", "e"]
NUMBER = tf.feature_column.numeric_column("x")
WORD = tf.feature_column.categorical_column_with_vocabulary_list("word", WORDS)

Rows = tuple[dict[str, Any], Any]


def people(rows: int = ROWS, seed: int = 0) -> Rows:
    """Rows with gaps whose label is linear, but for some noise."""
    random = np.random.default_rng(seed)
    x = random.normal(3, 5, rows).astype(np.float32)
    word = random.choice(np.array(WORDS[:3], object), rows)
    absent = np.arange(rows) % 7 == 3
    noise = random.normal(0, 0.1, rows)
    labels = np.where(absent, 3.0, 0.2 * x) + 2 * (word == "a") + noise
    x[absent] = np.nan
    return {"x": x, "word": word}, labels.astype(np.float32)


def read(rows: Rows) -> Any:
    return lambda: tf.data.Dataset.from_tensor_slices(rows).batch(64)


def member(folder: Path, head: Any, columns: Any = (NUMBER, WORD), seed: int = 1) -> LinearMember:
    config = tf.estimator.RunConfig(
        model_dir=str(folder), tf_random_seed=seed, log_step_count_steps=None
    )
    return LinearMember(head, columns, config=config)


def predicted(model: Any, rows: Rows, key: str = "predictions") -> Any:
    return np.stack([each[key] for each in model.predict(read(rows))])


@pytest.fixture(scope="module")
def regressor(tmp_path_factory: pytest.TempPathFactory) -> LinearMember:
    folder = tmp_path_factory.mktemp("linear") / "model"
    return member(folder, tf.estimator.RegressionHead()).train(read(people()))


@pytest.mark.slow
def test_numbers_gaps_and_words_add_up(regressor: LinearMember) -> None:
    features, labels = people(seed=1)
    found = predicted(regressor, (features, labels))
    assert 1 - ((found[:, 0] - labels) ** 2).mean() / labels.var() > 0.98
    metrics = regressor.evaluate(read((features, labels)))
    assert metrics["average_loss"] == pytest.approx(((found[:, 0] - labels) ** 2).mean(), rel=1e-4)


def test_words_that_are_rare_or_unknown(tmp_path: Path) -> None:
    features, labels = people()
    features["word"][:LEAST_ROWS] = ["d", "d", "e"]  # both are rare
    model = member(tmp_path, tf.estimator.RegressionHead()).train(read((features, labels)))
    table = model.get_variable_value("linear_member/table")[:, 0]
    assert table[3] == table[4]  # they share an indicator
    assert len(set(table[:4].tolist())) == 4
    asked = {"x": np.zeros(3, np.float32), "word": np.array(["d", "e", "new"], object)}
    found = predicted(model, (asked, labels[:3]))[:, 0]
    assert found[0] == found[1]
    assert np.isfinite(found).all()


def test_infinite_numbers_count_as_missing(regressor: LinearMember) -> None:
    words = np.array(["a"] * 3, object)
    asked = {"x": np.array([np.nan, np.inf, -np.inf], np.float32), "word": words}
    found = predicted(regressor, (asked, np.zeros(3, np.float32)))[:, 0]
    np.testing.assert_array_equal(found, found[:1].repeat(3))
    assert found[0] == pytest.approx(5.0, abs=0.5)


def test_the_same_seed_gives_the_same_coefficients(regressor: LinearMember, tmp_path: Path) -> None:
    again = member(tmp_path, tf.estimator.RegressionHead()).train(read(people()))
    for name in regressor.get_variable_names():
        np.testing.assert_array_equal(
            again.get_variable_value(name), regressor.get_variable_value(name)
        )


@pytest.mark.slow
@pytest.mark.parametrize("columns", [[NUMBER], [WORD]], ids=["numbers", "words"])
def test_columns_of_one_kind(tmp_path: Path, columns: Any) -> None:
    rows = people()
    model = member(tmp_path, tf.estimator.RegressionHead(), columns).train(read(rows))
    assert model.evaluate(read(rows))["average_loss"] < rows[1].var()


def test_a_number_that_does_not_change(tmp_path: Path) -> None:
    features, labels = people()
    features["x"][:] = np.nan
    model = member(tmp_path, tf.estimator.RegressionHead()).train(read((features, labels)))
    assert np.isfinite(predicted(model, (features, labels))).all()


@pytest.mark.slow
def test_export_predicts_as_the_member(regressor: LinearMember, tmp_path: Path) -> None:
    spec = {
        "x": tf.placeholder(tf.float32, [None]),
        "word": tf.placeholder(tf.string, [None]),
    }
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(spec)
    path = regressor.export_saved_model(str(tmp_path), receiver)
    rows = people(seed=1)
    rows[0]["x"][0] = np.inf
    rows[0]["word"][1] = "new"
    with tf.estimator.load_predictor(path) as predictor:
        served = predictor(rows[0], "predict")["predictions"]
    np.testing.assert_allclose(served, predicted(regressor, rows), atol=1e-5)


@pytest.mark.parametrize("label", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["no", "yes"])
def test_one_class_of_two(tmp_path: Path, label: int) -> None:
    features, _ = people()
    rows = features, np.full(ROWS, label)
    model = member(tmp_path, tf.estimator.BinaryClassHead()).train(read(rows))
    found = predicted(model, rows, "probabilities")
    np.testing.assert_allclose(found[:, label], (ROWS + 1) / (ROWS + 2), rtol=1e-5)


@pytest.mark.parametrize(
    "present",
    [(0, 2), *(pytest.param(each, marks=pytest.mark.slow) for each in [(3,), (0, 1, 3)])],
    ids=str,
)
def test_classes_that_do_not_occur_are_unlikely(tmp_path: Path, present: tuple[int, ...]) -> None:
    features, numbers = people()
    edges = np.quantile(numbers, np.arange(1, len(present)) / len(present))
    labels = np.array(present)[np.searchsorted(edges, numbers)]
    model = member(tmp_path, tf.estimator.MultiClassHead(4)).train(read((features, labels)))
    found = predicted(model, (features, labels), "probabilities")
    assert (found.argmax(1) == labels).mean() > 0.9
    absent = [each for each in range(4) if each not in present]
    assert (found[:, absent].mean(0) < 0.02).all()
    assert (found > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_row_of_weight_two_counts_as_two_rows(tmp_path: Path, kind: str) -> None:
    # Too many rows for the penalty's choice, which holds out other rows, to be another.
    features, numbers = people(2000)
    labels = numbers if kind == "numbers" else (numbers > 1).astype(np.int64)
    heavy = features["word"] == "a"
    twice = np.concatenate([np.arange(len(labels)), np.flatnonzero(heavy)])

    def fitted(name: str, rows: Rows, weight: str | None) -> Any:
        head = (
            tf.estimator.RegressionHead(weight_column=weight)
            if kind == "numbers"
            else tf.estimator.BinaryClassHead(weight_column=weight)
        )
        model = member(tmp_path / name, head).train(read(rows))
        key = "predictions" if kind == "numbers" else "logits"
        asked = {**features, "weight": np.ones(len(labels), np.float32)}
        return predicted(model, (asked, labels), key)

    repeated = {key: each[twice] for key, each in features.items()}, labels[twice]
    weights = np.where(heavy, 2, 1).astype(np.float32)
    weighted = {**features, "weight": weights}, labels
    want = fitted("repeated", repeated, None)
    plain = fitted("plain", (features, labels), None)
    found = fitted("weighted", weighted, "weight")
    assert np.abs(found - want).mean() < 0.2 * np.abs(plain - want).mean()
