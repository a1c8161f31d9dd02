"""Metrics against scikit-learn, NumPy and TensorFlow 2.15.1, over batches of unequal length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from estimatorkit.core import registry
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array
from estimatorkit.core.session import Session
from estimatorkit.core.variables import local_variables
from estimatorkit.layers import metrics
from estimatorkit.layers.metrics.streaming import Metric

LABELS = np.array([0, 1, 1, 0, 1, 1, 0, 0, 1, 0])
GUESSES = np.array([0.1, 0.4, 0.35, 0.8, 0.9, 0.65, 0.2, 0.5, 0.7, 0.3], np.float32)
WEIGHTS = np.array([1, 2, 0.5, 1, 1, 1, 3, 1, 1, 1], np.float32)
BATCHES = (slice(0, 4), slice(4, 8), slice(8, 10))


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def stream(make: Any, arrays: Sequence[Any], batches: Sequence[slice] = BATCHES) -> Any:
    """The values of metrics after all batches; asserts that they are those of the last update."""
    feeds = [array.placeholder(each.dtype, [None, *each.shape[1:]]) for each in arrays]
    made = make(*feeds)
    with Session() as session:
        session.run([variable.initializer for variable in local_variables()])
        updates = {key: update for key, (_, update) in made.items()}
        for batch in batches:
            fed = {feed: each[batch] for feed, each in zip(feeds, arrays, strict=True)}
            last = session.run(updates, fed)
        assert [segment.place for segment in session.plan(updates, feeds).segments] == ["device"]
        values = session.run({key: value for key, (value, _) in made.items()})
    for key, value in values.items():
        np.testing.assert_array_equal(value, last[key])
    return values


def test_metrics_agree_with_scikit_learn_over_batches_of_unequal_length() -> None:
    def make(labels: Any, guesses: Any, weights: Any) -> dict[str, Metric]:
        decided = guesses >= 0.5
        return {
            "accuracy": metrics.accuracy(labels, decided, weights),
            "precision": metrics.precision(labels, decided, weights),
            "recall": metrics.recall(labels, decided, weights),
            "mean": metrics.mean(guesses, weights),
            "plain": metrics.mean(guesses),
            "mse": metrics.mean_squared_error(labels, guesses, weights),
            "rmse": metrics.root_mean_squared_error(labels, guesses, weights),
            "mae": metrics.mean_absolute_error(labels, guesses, weights),
            "baseline": metrics.accuracy_baseline(labels, weights),
            "tp": metrics.true_positives(labels, decided, weights),
            "tn": metrics.true_negatives(labels, decided, weights),
            "fp": metrics.false_positives(labels, decided, weights),
            "fn": metrics.false_negatives(labels, decided, weights),
        }

    found = stream(make, [LABELS, GUESSES, WEIGHTS])
    decided = GUESSES >= 0.5
    rest = {"sample_weight": WEIGHTS}
    (tn, fp), (fn, tp) = sk.confusion_matrix(LABELS, decided, **rest)
    label_mean = np.average(LABELS, weights=WEIGHTS)
    expected = {
        "accuracy": sk.accuracy_score(LABELS, decided, **rest),
        "precision": sk.precision_score(LABELS, decided, **rest),
        "recall": sk.recall_score(LABELS, decided, **rest),
        "mean": np.average(GUESSES, weights=WEIGHTS),
        "plain": GUESSES.mean(),
        "mse": sk.mean_squared_error(LABELS, GUESSES, **rest),
        "rmse": sk.root_mean_squared_error(LABELS, GUESSES, **rest),
        "mae": sk.mean_absolute_error(LABELS, GUESSES, **rest),
        "baseline": max(label_mean, 1 - label_mean),
        **{"tp": tp, "tn": tn, "fp": fp, "fn": fn},
    }
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-6, err_msg=key)


def test_areas_under_curves_are_tensorflows() -> None:
    # What tf.compat.v1.metrics.auc gives for the same data.
    expected = {
        ("ROC", "trapezoidal"): 0.81818175,
        ("ROC", "minoring"): 0.81818175,
        ("ROC", "majoring"): 0.81818175,
        ("PR", "trapezoidal"): 0.72142845,
        ("PR", "minoring"): 0.67705619,
        ("PR", "majoring"): 0.76580077,
        ("PR", "careful_interpolation"): 0.72653139,
    }

    def make(labels: Any, guesses: Any, weights: Any) -> dict[Any, Metric]:
        return {
            (curve, method): metrics.auc(
                labels, guesses, weights, curve=curve, summation_method=method
            )
            for curve, method in expected
        }

    found = stream(make, [LABELS, GUESSES, WEIGHTS], [slice(0, 5), slice(5, 10)])
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, err_msg=str(key))
    assert abs(sk.roc_auc_score(LABELS, GUESSES, sample_weight=WEIGHTS) - value) < 0.1


def test_fine_thresholds_bring_the_area_to_scikit_learns() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 2000)
    guesses = np.clip(0.3 * labels + random.normal(0.35, 0.2, 2000), 0, 1).astype(np.float32)

    def make(labels: Any, guesses: Any) -> dict[str, Metric]:
        rest = {"num_thresholds": 5000, "summation_method": "interpolation"}
        return {
            "roc": metrics.auc(labels, guesses, **rest),
            "pr": metrics.auc(labels, guesses, curve="PR", **rest),
        }

    found = stream(make, [labels, guesses], [slice(0, 1500), slice(1500, 2000)])
    np.testing.assert_allclose(found["roc"], sk.roc_auc_score(labels, guesses), atol=5e-4)
    average = sk.average_precision_score(labels, guesses)
    np.testing.assert_allclose(found["pr"], average, atol=2e-3)


def test_the_histogram_op_is_the_same_in_numpy_and_xla() -> None:
    row = registry.lookup("ConfusionHistogram")
    random = np.random.default_rng(0)
    drawn = [random.uniform(-0.1, 1.1, 50), random.integers(0, 2, 50), random.uniform(0, 2, 50)]
    inputs = [each.astype(np.float32) for each in drawn]
    feeds = [array.placeholder("float32", [None]) for _ in inputs]
    output = registry.output(row.type, feeds, {"buckets": 7})
    with Session() as session:
        found = session.run(output, dict(zip(feeds, inputs, strict=True)))
    assert output.shape == found.shape == (2, 7)
    np.testing.assert_allclose(found, row.numpy_kernel(*inputs, buckets=7), rtol=1e-6)
    (case,) = row.cases()
    np.testing.assert_array_equal(row.kernel(*case.inputs, **case.attrs), case.expected)


def test_thresholds_are_tensorflows() -> None:
    def make(labels: Any, guesses: Any, weights: Any) -> dict[str, Metric]:
        at = [0.2, 0.5, 0.6]
        return {
            "precision": metrics.precision_at_thresholds(labels, guesses, at, weights),
            "recall": metrics.recall_at_thresholds(labels, guesses, at, weights),
        }

    found = stream(make, [LABELS, GUESSES, WEIGHTS])
    np.testing.assert_allclose(found["precision"], [0.64705884, 0.75, 0.75], rtol=1e-6)
    np.testing.assert_allclose(found["recall"], [1.0, 0.54545456, 0.54545456], rtol=1e-6)


def test_a_weight_of_two_counts_as_two_examples() -> None:
    weights = np.array([1, 2, 0, 1, 3, 1, 1, 2, 1, 1], np.float32)
    times = weights.astype(int)

    def make(labels: Any, guesses: Any, weights: Any) -> dict[str, Metric]:
        return {
            "auc": metrics.auc(labels, guesses, weights),
            "pr": metrics.auc(labels, guesses, weights, curve="PR"),
            "recall": metrics.recall(labels, guesses > 0.5, weights),
            "mean": metrics.mean(guesses, weights),
        }

    whole = [slice(None)]
    weighted = stream(make, [LABELS, GUESSES, weights], whole)
    repeated = [
        np.repeat(LABELS, times),
        np.repeat(GUESSES, times),
        np.ones(times.sum(), np.float32),
    ]
    with Graph().as_default():
        plain = stream(make, repeated, whole)
    for key, value in plain.items():
        np.testing.assert_allclose(weighted[key], value, rtol=1e-6, err_msg=key)


def test_a_column_of_labels_is_compared_with_a_vector_of_predictions() -> None:
    found = stream(
        lambda labels, guesses: {"accuracy": metrics.accuracy(labels, guesses)},
        [LABELS[:, None], LABELS],
    )
    assert found["accuracy"] == 1.0


def test_variables_are_local_and_the_collections_are_those_asked_for() -> None:
    value, update = metrics.mean(
        [1.0], name="m", metrics_collections=["v"], updates_collections=["u"]
    )
    graph = get_default_graph()
    assert [variable.op.name for variable in local_variables()] == ["m/total", "m/count"]
    assert graph.get_collection(GraphKeys.METRIC_VARIABLES) == local_variables()
    assert not graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    assert graph.get_collection("v") == [value]
    assert graph.get_collection("u") == [update]
    assert (value.name, update.name) == ("m/value:0", "m/update_op:0")


def test_before_any_example_the_value_is_zero() -> None:
    value, _ = metrics.mean([1.0])
    area, _ = metrics.auc([1], [0.5], summation_method="interpolation")
    with Session() as session:
        session.run([variable.initializer for variable in local_variables()])
        assert session.run([value, area]) == [0.0, 0.0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"curve": "ROCK"},
        {"summation_method": "careful"},
        {"summation_method": "careful_interpolation"},
        {"num_thresholds": 1},
    ],
)
def test_auc_refuses_arguments_out_of_range(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="auc: an argument is out of its range"):
        metrics.auc([1], [0.5], **arguments)


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        metrics.mean(np.zeros([4, 2]), np.ones(3))
