"""Metrics against scikit-learn, NumPy and TensorFlow 2.15.1, over batches of unequal length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

import estimatorkit as tf
from estimatorkit.core import builtin_ops, registry
from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.layers import metrics
from estimatorkit.layers.metrics.classes import matrix_of
from estimatorkit.layers.metrics.streaming import Metric
from estimatorkit.layers.metrics.thresholds import counts_at, even_thresholds
from estimatorkit.ops.variables.variable_collections import local_variables
from estimatorkit.runtime.session import Session
from tests.golden.snippets_metrics import ARRAYS, V1, look_at

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "metrics.json").read_text("utf-8"))

LABELS = np.array([0, 1, 1, 0, 1, 1, 0, 0, 1, 0])
GUESSES = np.array([0.1, 0.4, 0.35, 0.8, 0.9, 0.65, 0.2, 0.5, 0.7, 0.3], np.float32)
WEIGHTS = np.array([1, 2, 0.5, 1, 1, 1, 3, 1, 1, 1], np.float32)
PARTS = (slice(0, 4), slice(4, 8), slice(8, 10))


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def stream(make: Any, arrays: Sequence[Any], batches: Sequence[slice] = PARTS) -> Any:
    """The values of metrics after all batches; asserts that they are those of the last update."""
    feeds = [builtin_ops.placeholder(each.dtype, [None, *each.shape[1:]]) for each in arrays]
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


@pytest.mark.slow
def test_metrics_match_scikit_learn_over_unequal_batches() -> None:
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


@pytest.mark.slow
def test_every_metric_matches_tensorflow_after_each_batch() -> None:
    golden = GOLDEN["v1"]
    found = look_at(tf, ARRAYS)
    assert set(found) == set(golden)
    for name, expected in golden.items():
        assert found[name]["variables"] == expected["variables"], name
        values = [*found[name]["updates"], found[name]["value"]]
        for value, wanted in zip(values, [*expected["updates"], expected["value"]], strict=True):
            assert value.dtype == wanted["dtype"], name
            numbers = np.array([float(each) for each in wanted["values"]])
            np.testing.assert_allclose(
                value, numbers.reshape(wanted["shape"]), 1e-6, 1e-7, err_msg=name
            )
        for one, other in zip(found[name]["names"], expected["names"], strict=True):
            if other.endswith(("/value:0", "/update_op:0")):
                assert one == other


def test_every_tensorflow_metric_is_covered() -> None:
    own = {  # see test_ranking_metrics
        *("group_auc", "ndcg_at_k", "mean_average_precision_at_k", "mean_reciprocal_rank"),
        *("list_recall_at_k", "hit_rate_at_k", "normalized_cross_entropy", "calibration"),
        "calibration_by_bucket",
    }
    # 'accuracy_baseline' is one of tf.estimator's heads.
    there = set(metrics.__all__) - {"accuracy_baseline"} - own
    assert there == {name.split(" ")[0] for name in V1}
    assert metrics.sparse_precision_at_k is metrics.precision_at_k


@pytest.mark.slow
def test_auc_with_many_thresholds_matches_scikit_learn() -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits", [np.linspace(0, 1, 6), [0.1, 0.15, 0.5, 0.99], [0.5], np.linspace(0, 1, 1100)]
)
def test_counting_op_agrees_in_numpy_and_xla(limits: Any) -> None:
    row = registry.lookup("ConfusionCounts")
    random = np.random.default_rng(0)
    drawn = [random.uniform(-0.2, 1.2, (50, 2)), random.integers(0, 2, (50, 2))]
    inputs = [each.astype(np.float32) for each in [*drawn, random.uniform(0, 2, (50, 2))]]
    thresholds = np.asarray(limits, np.float32)
    inputs[0][:7, 0] = [*thresholds[:1], np.nan, np.inf, -np.inf, 0.0, 1.0, 0.5]
    feeds = [builtin_ops.placeholder("float32", [None, 2]) for _ in inputs]
    output = registry.output(row.type, feeds, {"thresholds": thresholds})
    with Session() as session:
        found = session.run(output, dict(zip(feeds, inputs, strict=True)))
    assert output.shape == found.shape == (4, len(thresholds), 2)
    expected = row.numpy_kernel(*inputs, thresholds=thresholds)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    above = inputs[0] > thresholds[:, None, None]
    truth = inputs[1] != 0
    kinds = [above & truth, ~above & truth, ~above & ~truth, above & ~truth]
    sums = [(inputs[2] * each).sum(1) for each in kinds]
    np.testing.assert_allclose(found, sums, rtol=1e-5, atol=1e-5)
    for case in row.cases():
        np.testing.assert_array_equal(row.kernel(*case.inputs, **case.attrs), case.expected)


def test_predictions_on_threshold_count_as_below() -> None:
    points = np.array(even_thresholds(200), np.float32)
    guesses = np.concatenate([points, np.nextafter(points, 2, dtype=np.float32)])[1:-1]
    guesses = guesses[(guesses >= 0) & (guesses <= 1)]
    ones = np.ones(len(guesses), np.float32)
    counts = counts_at(
        builtin_ops.identity(ones), builtin_ops.identity(guesses), None, list(points)
    )
    with Session() as session:
        found = session.run(counts.true_positives)
    np.testing.assert_array_equal(found, (guesses[:, None] > points).sum(0))


def test_invalid_classes_count_nothing_without_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_CHECKS", "0")
    labels, guesses = np.array([0, 1, -1, 1, 7, 0]), np.array([0, 1, 1, -2, 0, 9])
    matrix = matrix_of(labels, guesses, 2, None, float32)
    with Session() as session:
        assert session.run(matrix).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_label_column_matches_prediction_vector() -> None:
    found = stream(
        lambda labels, guesses: {"accuracy": metrics.accuracy(labels, guesses)},
        [LABELS[:, None], LABELS],
    )
    assert found["accuracy"] == 1.0


def test_variables_are_local_and_in_given_collections() -> None:
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


def test_value_is_zero_before_first_example() -> None:
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
        {"num_thresholds": 1},
    ],
)
def test_auc_refuses_out_of_range_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="auc: an argument is out of its range"):
        metrics.auc([1], [0.5], **arguments)


def test_mismatched_weights_raise() -> None:
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        metrics.mean(np.zeros([4, 2]), np.ones(3))
