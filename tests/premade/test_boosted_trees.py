"""Boosted trees: training, explanations, exports, columns, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset

fc = tf.feature_column
RANDOM = np.random.default_rng(0)
ROWS = 240
AGE = RANDOM.normal(40, 10, ROWS).astype(np.float32)
AGE[::7] = np.nan
CITY = np.array(["oslo", "rome", "", "lima"], object)[RANDOM.integers(0, 4, ROWS)]
GRADE = RANDOM.integers(0, 9, ROWS)
LABELS = ((np.nan_to_num(AGE) > 38) ^ (CITY == "rome") ^ (GRADE > 6)).astype(np.int64)
FEATURES = {"age": AGE, "city": CITY, "grade": GRADE, "weight": 1.0 + (GRADE % 2)}
CITIES = fc.categorical_column_with_vocabulary_list("city", ["oslo", "rome"])
COLUMNS = [
    fc.numeric_column("age"),
    CITIES,
    fc.indicator_column(fc.categorical_column_with_identity("grade", 9)),
]
FEW: dict[str, Any] = {"n_trees": 8, "max_depth": 3}


def batches(labels: Any = LABELS, size: int = 50) -> Callable[[], Dataset]:
    return lambda: Dataset.from_tensor_slices((FEATURES, labels)).batch(size)


def classifier(folder: Path, **options: Any) -> tf.estimator.BoostedTreesClassifier:
    config = tf.estimator.RunConfig(tf_random_seed=3)
    return tf.estimator.BoostedTreesClassifier(
        COLUMNS, model_dir=folder, config=config, **{**FEW, **options}
    )


def probabilities(model: Any) -> Any:
    rows = model.predict(batches(), "probabilities", yield_single_examples=False)
    return np.concatenate([row["probabilities"] for row in rows])


def forest_of(model: Any) -> dict[str, Any]:
    names = [name for name in model.get_variable_names() if name.startswith("boosted_trees/")]
    return {name: model.get_variable_value(name) for name in names}


def check_same(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name])


@pytest.mark.slow
def test_classifier_learns_saves_once_and_resumes_to_nothing(tmp_path: Path) -> None:
    model = classifier(tmp_path).train(batches())
    assert model.evaluate(batches())["accuracy"] > 0.8
    assert {path.suffix for path in tmp_path.glob("model.ckpt-*")} == {".ckpt-5", ".meta"}
    trained = forest_of(model)
    model.train(batches(1 - LABELS))
    again = classifier(tmp_path)
    again.train(batches(1 - LABELS), steps=1)
    check_same(forest_of(again), trained)
    assert model.get_variable_value("global_step") == 5
    with pytest.raises(ValueError, match="does not grow further"):
        classifier(tmp_path, n_trees=9).train(batches())


def test_same_rows_and_seed_give_the_same_trees(tmp_path: Path) -> None:
    first, second = (
        forest_of(classifier(tmp_path / name, early_stopping_fraction=0.2).train(batches()))
        for name in "ab"
    )
    check_same(first, second)


def test_repetitions_are_read_once(tmp_path: Path) -> None:
    want = forest_of(classifier(tmp_path / "once").train(batches()))
    endless = Dataset.from_tensor_slices((FEATURES, LABELS)).repeat().batch(50).repeat(3)
    for name, steps in ("all", None), ("most", 100):
        model = classifier(tmp_path / name).train(lambda: endless.prefetch(1), steps=steps)
        assert model.get_variable_value("global_step") == 5
        check_same(forest_of(model), want)


def test_endless_inputs_need_steps(tmp_path: Path) -> None:
    rows = Dataset.from_tensor_slices((FEATURES, LABELS)).batch(50)
    zipped = Dataset.zip((rows.map(lambda x, _: x).repeat(), rows.map(lambda _, y: y).repeat()))
    with pytest.raises(ValueError, match="never ends"):
        classifier(tmp_path).train(lambda: zipped)
    model = classifier(tmp_path).train(lambda: zipped, steps=4)
    assert model.get_variable_value("global_step") == 4

    def tensors() -> Any:
        return {key: tf.constant(value) for key, value in FEATURES.items()}, tf.constant(LABELS)

    one = classifier(tmp_path / "one").train(tensors)
    assert one.get_variable_value("global_step") == 1


def test_failed_training_leaves_no_checkpoint(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Labels must"):
        model.train(batches(LABELS + 1))
    with pytest.raises(ValueError, match="two classes"):
        model.train(batches(LABELS * 0))
    with pytest.raises(ValueError, match="fractions"):
        model.train(batches(LABELS * 0.5))
    with pytest.raises(ValueError, match="no elements"):
        model.train(lambda: batches()().take(0))
    assert model.latest_checkpoint() is None


class Interrupt(tf.train.SessionRunHook):
    """Sends this process SIGINT after the first steps."""

    def after_steps(self, steps: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)


def test_interrupted_training_leaves_no_checkpoint(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            classifier(tmp_path).train(batches(), hooks=[Interrupt()])
    finally:
        signal.signal(signal.SIGINT, before)
    assert classifier(tmp_path).latest_checkpoint() is None
    assert classifier(tmp_path).train(batches()).get_variable_value("global_step") == 5


def test_explanations_add_up(tmp_path: Path) -> None:
    model = classifier(tmp_path).train(batches())
    rows = list(model.experimental_predict_with_explanations(batches(), "probabilities"))
    assert rows[0].keys() == {"probabilities", "bias", "dfc"}
    for row in rows:
        sizes = np.abs(list(row["dfc"].values()))
        assert (np.diff(sizes) <= 0).all()
        total = row["bias"] + sum(row["dfc"].values())
        assert total == pytest.approx(row["probabilities"][1], abs=2e-6)
    assert rows[0]["bias"] == pytest.approx(LABELS.mean(), abs=1e-5)
    importances = model.experimental_feature_importances(normalize=True)
    assert set(importances) == {"age", "city", "grade_indicator"}
    assert sum(importances.values()) == pytest.approx(1.0)
    assert list(importances.values()) == sorted(importances.values(), reverse=True)


@pytest.mark.slow
def test_regressor_weights_and_explanations(tmp_path: Path) -> None:
    labels = np.where(CITY == "rome", 100.0, 50.0) + GRADE
    options = dict(FEW, weight_column="weight", learning_rate=0.5)
    model = tf.estimator.BoostedTreesRegressor(COLUMNS, model_dir=tmp_path, **options)
    model.train(batches(labels))
    assert model.evaluate(batches(labels))["average_loss"] < 10.0
    bias = np.average(labels, weights=FEATURES["weight"])
    for row in model.experimental_predict_with_explanations(batches(labels)):
        assert row["bias"] == pytest.approx(bias, rel=1e-5)
        total = row["bias"] + sum(row["dfc"].values())
        assert total == pytest.approx(row["predictions"][0], rel=1e-5)


def test_estimator_under_heads(tmp_path: Path) -> None:
    make = tf.estimator.BoostedTreesEstimator
    counts = make(COLUMNS, 1, tf.estimator.PoissonRegressionHead(), tmp_path / "p", **FEW)
    counts.train(batches(GRADE))
    found = np.array([row["predictions"][0] for row in counts.predict(batches())])
    assert (found > 0).all()
    assert np.corrcoef(found, GRADE)[0, 1] > 0.9
    with pytest.raises(ValueError, match="are sums of"):
        next(counts.experimental_predict_with_explanations(batches()))
    scaled = tf.estimator.RegressionHead(inverse_link_fn=tf.exp)
    for head in scaled, tf.estimator.LogisticRegressionHead(), tf.estimator.MultiLabelHead(3):
        with pytest.raises(ValueError, match="cannot learn the loss"):
            make(COLUMNS, 1, head)


@pytest.mark.slow
def test_export_and_train_and_evaluate(tmp_path: Path) -> None:
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(COLUMNS)
    best = tf.estimator.BestExporter("best", receiver, metric="auc", mode="max")
    model = classifier(tmp_path)
    _, exports = tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(batches(), max_steps=1000),
        tf.estimator.EvalSpec(batches(), exporters=best, throttle_secs=0),
    )
    predict = tf.estimator.load_predictor(exports[0])
    features = {key: FEATURES[key] for key in ("age", "city", "grade")}
    np.testing.assert_allclose(predict(features)["probabilities"], probabilities(model), atol=1e-6)
    step = model.get_variable_value("global_step")
    assert step == 5
    tf.estimator.train_and_evaluate(
        model, tf.estimator.TrainSpec(batches(), max_steps=1000), tf.estimator.EvalSpec(batches())
    )
    assert model.get_variable_value("global_step") == step


@pytest.mark.slow
def test_numbers_of_all_columns(tmp_path: Path) -> None:
    age, grade = fc.numeric_column("age"), fc.numeric_column("grade")
    columns = [
        fc.numeric_column("pair", shape=2),
        fc.bucketized_column(age, [30, 40]),
        fc.indicator_column(fc.bucketized_column(grade, [4])),
        fc.categorical_column_with_hash_bucket("city", 50),
        fc.crossed_column(["city", "grade"], 100),
        fc.categorical_column_with_vocabulary_list("tags", ["a", "b"]),
    ]
    tags = [["a"] if each else [] for each in LABELS]
    features = dict(FEATURES, pair=np.stack([AGE, GRADE], 1))
    text = [",".join(each) for each in tags]

    def input_fn() -> Dataset:
        rows = Dataset.from_tensor_slices((dict(features, tags=text), LABELS)).batch(50)
        return rows.map(lambda x, y: (dict(x, tags=tf.string_split(x["tags"], ",")), y))

    model = tf.estimator.BoostedTreesClassifier(columns, model_dir=tmp_path, **FEW)
    model.train(input_fn)
    assert model.evaluate(input_fn)["accuracy"] == 1.0
    assert next(iter(model.experimental_feature_importances())) == "tags"
    assert model.get_variable_value("boosted_trees/inputs").tolist() == [0, 50, 100, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tree_complexity": 0.1}, "max_depth or min_examples"),
        ({"min_node_weight": 0.1}, "min_examples"),
        ({"pruning_mode": "post"}, "early_stopping_fraction"),
        ({"n_trees": 0}, "n_trees is out of range"),
        ({"learning_rate": 0.0}, r"\(0, 1\]"),
        ({"l2_regularization": -1.0}, ">= 0"),
        ({"feature_columns": [fc.embedding_column(CITIES, 2)]}, "categorical column itself"),
        ({"feature_columns": []}, "must not be empty"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.estimator.BoostedTreesClassifier(**{"feature_columns": COLUMNS, **options})


def test_refused_in_training(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="label_dimension=1"):
        tf.estimator.BoostedTreesRegressor(COLUMNS, label_dimension=2)
    strategy = tf.distribute.MirroredStrategy(["cpu:0"])
    config = tf.estimator.RunConfig(train_distribute=strategy)
    model = tf.estimator.BoostedTreesClassifier(COLUMNS, model_dir=tmp_path, config=config)
    with pytest.raises(ValueError, match="in one process"):
        model.train(batches())


def test_other_columns_or_depth_do_not_fit_the_checkpoint(tmp_path: Path) -> None:
    classifier(tmp_path).train(batches())
    fewer = tf.estimator.BoostedTreesClassifier(COLUMNS[:2], model_dir=tmp_path, **FEW)
    for model in fewer, classifier(tmp_path, max_depth=2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit this model"):
            model.evaluate(batches())


USES = """\
import sys
sys.modules["ydf"] = None
import estimatorkit as tf
fc = tf.feature_column
model = tf.estimator.BoostedTreesRegressor([fc.numeric_column("x")], model_dir=sys.argv[1])
rows = tf.data.Dataset.from_tensor_slices(({"x": [0.0, 1.0]}, [0.0, 1.0])).batch(2)
print([round(float(row["predictions"][0]), 1) for row in model.predict(lambda: rows)])
model.train(lambda: rows)
tf.estimator.BoostedTreesRegressor([fc.numeric_column("x")]).train(lambda: rows)
"""


@pytest.mark.slow
def test_only_training_needs_ydf(tmp_path: Path) -> None:
    x = np.arange(100) % 2
    rows = Dataset.from_tensor_slices(({"x": x}, x.astype(np.float32))).batch(10)
    model = tf.estimator.BoostedTreesRegressor([fc.numeric_column("x")], model_dir=tmp_path)
    model.train(lambda: rows)
    done = subprocess.run(
        [sys.executable, "-c", USES, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[0.0, 1.0]\n"
    assert "estimatorkit[trees]" in done.stderr
    assert list(tmp_path.glob("*ydf*")) == []
