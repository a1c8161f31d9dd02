"""Keras metrics against TensorFlow 2.15.1: values, variables, names and custom metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.keras import losses, metrics
from estimatorkit.runtime.session import Session
from tests.golden.snippets_metrics import (
    ARRAYS,
    FUNCTIONS,
    KERAS,
    look_at_keras,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "metrics.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def start(session: Any) -> None:
    session.run(tf.local_variables_initializer())


def check(found: dict[str, Any], golden: dict[str, Any]) -> None:
    assert sorted(found) == sorted(golden)
    for name, expected in golden.items():
        assert found[name].dtype == expected["dtype"], name
        values = np.array([float(each) for each in expected["values"]])
        np.testing.assert_allclose(
            found[name], values.reshape(expected["shape"]), 1e-5, 1e-6, err_msg=name
        )


@pytest.mark.slow
def test_every_metric_matches_tensorflow() -> None:
    check(look_at_keras(tf, metrics, ARRAYS), GOLDEN["keras"])


def test_functions_match_tensorflow() -> None:
    with Session() as session:
        found = session.run({name: make(metrics) for name, make in FUNCTIONS.items()})
    check(found, GOLDEN["functions"])
    losses_too = ("mse", "mean_absolute_error", "binary_crossentropy", "hinge", "kld", "poisson")
    assert all(getattr(metrics, each) is getattr(losses, each) for each in losses_too)


def test_every_tensorflow_class_is_covered() -> None:
    seen = {name.split(" ")[0] for name in KERAS} | {"Mean", "Sum"}
    there = {each for each in metrics.__all__ if isinstance(getattr(metrics, each), type)}
    elsewhere = {"Metric", "StreamingMetric", "MeanTensor", "MeanRelativeError"}
    elsewhere |= {  # not in TensorFlow: see test_ranking_metrics
        *("GroupAUC", "NDCG", "MeanAveragePrecision", "MeanReciprocalRank", "ListRecall"),
        *("HitRate", "NormalizedCrossEntropy", "Calibration", "CalibrationByBucket"),
        "AveragePrecision",  # see test_odds_curves
    }
    assert there - elsewhere == seen - {"SparseTopK"}


@pytest.mark.parametrize("name", sorted(set(KERAS) - {"MeanMetricWrapper"}))
def test_configs_match_tensorflow_and_round_trip(name: str) -> None:
    metric = KERAS[name][1](metrics)
    golden = dict(GOLDEN["configs"][name])
    numbered = golden.pop("name").rstrip("0123456789").rstrip("_")
    config = metric.get_config()
    assert {key: each for key, each in config.items() if key != "name"} == golden
    assert config["name"] == numbered
    written = json.loads(json.dumps(metrics.serialize(metric)))
    again = metrics.deserialize(written)
    assert type(again) is type(metric)
    assert again.get_config() == config
    assert again.name == metric.name


def test_names_resolve_in_fixed_table() -> None:
    assert metrics.get("mse") is losses.mean_squared_error
    assert isinstance(metrics.get("AUC"), metrics.AUC)
    assert metrics.get({"class_name": "AUC", "config": {"curve": "PR"}}).curve == "PR"
    metric = metrics.Mean()
    assert metrics.get(metric) is metric
    assert metrics.get("cosine_proximity") is metrics.cosine_similarity
    assert metrics.get("acc") is metrics.accuracy
    assert metrics.get(None) is None
    with pytest.raises(ValueError, match="Unknown metric function: 'auc_roc'"):
        metrics.get("auc_roc")
    with pytest.raises(ValueError, match="Could not interpret metric function identifier"):
        metrics.get(3)


@pytest.mark.parametrize(
    ("labels", "guesses", "accuracy", "crossentropy"),
    [
        ([None, 1], [None, 1], "binary_accuracy", "binary_crossentropy"),
        ([None], [None, 3], "sparse_categorical_accuracy", "sparse_categorical_crossentropy"),
        ([None, 1], [None, 3], "sparse_categorical_accuracy", "sparse_categorical_crossentropy"),
        ([None, 3], [None, 3], "categorical_accuracy", "categorical_crossentropy"),
    ],
)
def test_accuracy_depends_on_labels(
    labels: Any, guesses: Any, accuracy: str, crossentropy: str
) -> None:
    for short, function in (("acc", accuracy), ("accuracy", accuracy), ("ce", crossentropy)):
        metric = metrics.as_metric(short, labels, guesses)
        assert metric.name == short
        assert metric._fn is getattr(metrics, function)
    assert metrics.as_metric("mae", labels, guesses).name == "mae"
    assert metrics.as_metric(losses.Huber(), labels, guesses).name == "huber_loss"
    assert isinstance(metrics.as_metric("AUC", labels, guesses), metrics.AUC)


def test_metric_names_are_numbered() -> None:
    made = [metrics.AUC(), metrics.AUC(), metrics.TruePositives(), metrics.MeanIoU(2)]
    assert [each.name for each in made] == ["auc", "auc_1", "true_positives", "mean_io_u"]


def test_variable_names_match_tensorflow() -> None:
    made = [metrics.Mean(), metrics.Mean(name="other"), metrics.AUC(num_thresholds=3)]
    made[0].update_state([1.0])
    with tf.name_scope("outer"):
        made[1].update_state([1.0])
    made[2].update_state([0.0, 1.0], [0.2, 0.3])
    counts = ["true_positives", "true_negatives", "false_positives", "false_negatives"]
    assert [[each.op.name for each in metric.variables] for metric in made] == [
        ["total", "count"],
        ["outer/total", "outer/count"],
        counts,
    ]


def test_variables_are_local_and_reinitialized() -> None:
    metric = metrics.Mean("m")
    update = metric.update_state([1.0, 3.0])
    result = metric.result()
    graph = get_default_graph()
    assert [each.name for each in metric.variables] == ["total:0", "count:0"]
    assert (
        metric.weights
        == metric.non_trainable_weights
        == graph.get_collection(GraphKeys.METRIC_VARIABLES)
    )
    assert graph.get_collection(GraphKeys.LOCAL_VARIABLES) == metric.variables
    assert not metric.trainable_weights
    assert not graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    assert metric.updates == [update]
    with Session() as session:
        for _ in range(2):
            start(session)
            session.run(update)
            session.run(update)
            assert session.run([result, metric.count]) == [2.0, 4.0]
        session.run(metric.reset_state())
        assert session.run(result) == 0.0
        session.run(update)
        metric.reset_states()  # there is a default session
        assert session.run(result) == 0.0


def test_metric_has_variables_per_graph() -> None:
    metric = metrics.Precision(name="p")
    found = []
    for labels in ([1, 1], [1, 0]):
        with Graph().as_default(), Session() as session:
            update = metric.update_state(labels, [0.9, 0.8])
            start(session)
            session.run(update)
            found.append(session.run(metric.result()))
            assert len(metric.variables) == 2
            assert len(metric.updates) == 1
    np.testing.assert_allclose(found, [1.0, 0.5])
    assert metric.updates == []


def test_call_updates_before_result() -> None:
    metric = metrics.Sum()
    value = metric(tf.constant([1.0, 2.0]))
    with Session() as session:
        start(session)
        assert [session.run(value) for _ in range(3)] == [3.0, 6.0, 9.0]


class Largest(metrics.Metric):  # type: ignore[misc]
    """A metric as users write them: nothing is returned, a variable is the result."""

    def __init__(self, name: str = "largest", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.largest = self.add_weight("value", initializer="zeros")
        self.seen = self.add_weight(name="seen", shape=(2,), initializer=tf.ones_initializer())

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.largest.assign(tf.maximum(self.largest, tf.reduce_max(y_pred)))
        self.seen.assign_add([1.0, 2.0])

    def result(self) -> Any:
        return {"largest": self.largest, "seen": self.seen}


def test_custom_metrics_need_not_return_updates() -> None:
    metric = Largest()
    feed = tf.placeholder("float32", [None])
    update, result = metric.update_state([0.0], feed), metric.result()
    with Session() as session:
        start(session)
        for batch in ([1.0, 4.0], [3.0]):
            session.run(update, {feed: batch})
        found = session.run(result)
        assert found["largest"] == 4.0
        assert found["seen"].tolist() == [3.0, 5.0]
        session.run(metric.reset_state())
        assert session.run(metric.result()["seen"]).tolist() == [1.0, 1.0]
    assert [each.op.name for each in metric.variables] == ["value", "seen"]
    assert metric.get_config() == {"name": "largest", "dtype": "float32"}


def test_nested_metrics_update_once() -> None:
    class Doubled(metrics.Mean):  # type: ignore[misc]
        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            return super().update_state(2 * tf.abs(y_pred - y_true), sample_weight)

    metric = Doubled("d")
    update = metric.update_state(tf.constant([1.0, 2.0]), tf.constant([2.0, 5.0]), [1.0, 0.5])
    assert len(metric.updates) == 1
    with Session() as session:
        start(session)
        session.run(update)
        np.testing.assert_allclose(session.run(metric.result()), (2 + 3) / 1.5)


def test_metrics_in_estimator_spec() -> None:
    labels = tf.constant([[0.0], [1.0], [1.0]])
    chances = tf.constant([[0.2], [0.9], [0.4]])
    accuracy, area = metrics.BinaryAccuracy(), metrics.AUC()
    accuracy.update_state(labels, chances)
    area.update_state(labels, chances)
    spec = EstimatorSpec(
        ModeKeys.EVAL,
        loss=tf.reduce_mean(chances),
        eval_metric_ops={"accuracy": accuracy, "area": area},
    )
    with Session() as session:
        start(session)
        session.run([update for _, update in spec.eval_metric_ops.values()])
        values = {name: value for name, (value, _) in spec.eval_metric_ops.items()}
        found = session.run(values)
    np.testing.assert_allclose([found["accuracy"], found["area"]], [2 / 3, 1.0], rtol=1e-6)


@pytest.mark.slow
def test_metric_created_outside_model_fn(tmp_path: Path) -> None:
    accuracy = metrics.BinaryAccuracy(threshold=0.5)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        guesses = tf.expand_dims(features["x"], -1) * tf.get_variable("w", [], initializer=tf.ones)
        loss = losses.MeanSquaredError()(labels, guesses)
        accuracy.update_state(labels, guesses, features["weight"])
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, guesses, loss, step, eval_metric_ops={"accuracy": accuracy})

    features = {
        "x": np.array([0.1, 0.9, 0.8, 0.2, 0.7], np.float32),
        "weight": np.array([1, 1, 2, 0, 1], np.float32),
    }
    labels = np.array([0, 1, 0, 1, 1], np.float32)
    data = tf.estimator.inputs.numpy_input_fn(features, labels, batch_size=2, shuffle=False)
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(data, steps=1)
    found = [estimator.evaluate(data, steps=steps)["accuracy"] for steps in (None, 1, None)]
    np.testing.assert_allclose(found, [0.6, 1.0, 0.6], rtol=1e-6)


def test_vectors_count_by_example() -> None:
    labels = np.array([0.0, 1.0, 2.0, 3.0, 4.0], np.float32)
    guesses, weights = (
        labels + np.arange(1, 6, dtype=np.float32),
        np.array([1, 2, 0, 1, 3], np.float32),
    )
    feeds = [tf.placeholder("float32", [None]) for _ in range(3)]
    metric = metrics.MeanSquaredError()
    update = metric.update_state(*feeds[:2], sample_weight=feeds[2])
    with Session() as session:
        start(session)
        for part in (slice(0, 3), slice(3, 5)):
            fed = [each[part] for each in (labels, guesses, weights)]
            session.run(update, dict(zip(feeds, fed, strict=True)))
        found = session.run(metric.result())
    np.testing.assert_allclose(found, np.average([1, 4, 9, 16, 25], weights=weights), rtol=1e-6)


def test_integer_labels_compare_exactly() -> None:
    ids = np.array([2**53, 2**53 + 1], np.int64)
    metric = metrics.Accuracy()
    update = metric.update_state(ids, ids[::-1].copy())
    with Session() as session:
        start(session)
        session.run(update)
        assert session.run(metric.result()) == 0.0


def test_masked_steps_are_excluded() -> None:
    guesses = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    guesses._keras_mask = tf.constant([[True, True, False], [True, False, False]])
    metric = metrics.MeanMetricWrapper(lambda y_true, y_pred: y_pred - y_true, "kept")
    update = metric.update_state(tf.zeros([2, 3]), guesses)
    with Session() as session:
        start(session)
        session.run(update)
        np.testing.assert_allclose(session.run(metric.result()), (1 + 2 + 4) / 3)


@pytest.mark.slow
def test_mean_tensor_relative_error_and_merge() -> None:
    tensor, known = metrics.MeanTensor(), metrics.MeanTensor(shape=[2])
    with pytest.raises(ValueError, match="MeanTensor does not have any value yet"):
        tensor.result()
    relative = metrics.MeanRelativeError([1.0, 0.0, 2.0])
    unseen = known.result()
    ones, others = metrics.Mean("one"), metrics.Mean("other")
    updates = [
        tensor.update_state([[1.0, 2.0], [3.0, 4.0]], [[1.0], [0.0]]),
        relative.update_state([1.0, 2.0, 3.0], [2.0, 2.5, 7.0], [1.0, 1.0, 2.0]),
        ones.update_state([1.0, 2.0]),
        others.update_state([6.0]),
    ]
    with Session() as session:
        start(session)
        session.run(updates)
        found = session.run([tensor.result(), unseen, relative.result()])
        assert found[0].tolist() == [[1.0, 2.0], [0.0, 0.0]]
        assert found[1].tolist() == [0.0, 0.0]
        np.testing.assert_allclose(found[2], (1 + 0 + 2 * 2) / 4)
        session.run(ones.merge_state([others]))
        assert session.run(ones.result()) == 3.0
    with pytest.raises(ValueError, match="is not compatible with"):
        ones.merge_state([metrics.Sum()])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.AUC(curve="ROCK"), "AUC: an argument is out of its range"),
        (lambda: metrics.AUC(num_labels=3), "`num_labels` is needed only when"),
        (lambda: metrics.Precision(thresholds=[0.5, 2]), r"Threshold values must be in \[0, 1\]"),
        (lambda: metrics.SensitivityAtSpecificity(2), "`specificity` must be in the range"),
        (lambda: metrics.RecallAtPrecision(0.5, 0), "`num_thresholds` must be an integer > 0"),
        (lambda: metrics.IoU(2, [2]), "Target class id 2 is out of range"),
        (lambda: metrics.F1Score("mean"), "Invalid `average`"),
        (lambda: metrics.FBetaScore(beta=0.0), "Invalid `beta`"),
        (lambda: metrics.R2Score("mean"), "Invalid value for argument `class_aggregation`"),
        (lambda: metrics.R2Score().update_state([1.0], [1.0]), "R2Score expects 2D inputs"),
        (lambda: metrics.Metric().update_state(), "Must be implemented"),
    ],
)
def test_out_of_range_arguments_raise(make: Any, message: str) -> None:
    with pytest.raises((ValueError, NotImplementedError), match=message):
        make()


@pytest.mark.parametrize("ignored", [None, -1])
def test_out_of_range_classes_raise_unless_ignored(ignored: int | None) -> None:
    metric = metrics.MeanIoU(3, ignore_class=ignored)
    labels, predictions = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.int32, [3])
    update = metric.update_state(labels, predictions)
    with Session() as session:
        start(session)
        bad = [([0, 1, 3], [0, 1, 2]), ([0, 1, 2], [0, -1, 2])]
        if ignored is None:
            bad.append(([0, -1, 2], [0, 7, 2]))
        else:
            session.run(update, {labels: [0, -1, 2], predictions: [0, 7, 2]})
            assert session.run(metric.result()) == 1.0
        for wrong in bad:
            with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed: "):
                session.run(update, dict(zip((labels, predictions), wrong, strict=True)))


def test_reset_in_keras_session() -> None:
    mean = metrics.Mean()
    update = mean.update_state([1.0, 3.0])
    session = tf.keras.backend.get_session()
    session.run(update)
    assert tf.keras.backend.get_value(mean.result()) == 2.0
    mean.reset_state()
    assert tf.keras.backend.get_value(mean.result()) == 0.0
