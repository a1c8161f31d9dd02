"""`contrib.metrics` and `contrib.losses`: predictions come before labels."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_curve

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.contrib.metrics import STREAMING
from estimatorkit.core.graph import Graph
from estimatorkit.layers import metrics
from estimatorkit.runtime.session import Session

LABELS = np.array([0, 1, 1, 0, 1, 0])
CHANCES = np.array([0.2, 0.8, 0.4, 0.45, 0.9, 0.1], np.float32)
WEIGHTS = np.array([1, 2, 1, 0.5, 1, 3], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def updated(made: dict[str, Any]) -> dict[str, Any]:
    with Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([update for _, update in made.values()])
        values: dict[str, Any] = session.run({name: value for name, (value, _) in made.items()})
        return values


@pytest.mark.slow
def test_legacy_metrics_take_predictions_first() -> None:
    older, now = tf.contrib.metrics, tf.metrics
    decided = CHANCES > 0.5
    scores = np.eye(4, dtype=np.float32)[[0, 1, 2, 3, 0, 1]] + 0.1
    classes = np.array([[0], [1], [1], [3], [2], [2]])
    found = updated(
        {
            "auc": older.streaming_auc(CHANCES, LABELS, WEIGHTS, 100, curve="PR"),
            "auc now": now.auc(LABELS, CHANCES, WEIGHTS, 100, curve="PR"),
            "precision": older.streaming_precision(decided, LABELS, weights=WEIGHTS),
            "precision now": now.precision(LABELS, decided, weights=WEIGHTS),
            "recall": older.streaming_recall_at_thresholds(CHANCES, LABELS, [0.3, 0.5]),
            "recall now": now.recall_at_thresholds(LABELS, CHANCES, [0.3, 0.5]),
            "best": older.streaming_sparse_recall_at_k(scores, classes, 2, class_id=1),
            "best now": now.recall_at_k(classes, scores, 2, class_id=1),
            "top": older.streaming_sparse_precision_at_top_k(
                top_k_predictions=classes, labels=classes
            ),
            "top now": now.precision_at_top_k(classes, classes),
            "mean": older.streaming_mean(CHANCES, WEIGHTS),
            "mean now": now.mean(CHANCES, WEIGHTS),
            "less": older.streaming_percentage_less(CHANCES, 0.5),
            "less now": now.percentage_below(CHANCES, 0.5),
            "count": older.count(CHANCES, WEIGHTS),
            "count now": (tf.constant(WEIGHTS.sum()), tf.no_op()),
        }
    )
    for name in [name for name in found if not name.endswith(" now")]:
        np.testing.assert_allclose(found[name], found[f"{name} now"], rtol=1e-6, err_msg=name)


def test_legacy_signatures_begin_with_predictions() -> None:
    for name, function in STREAMING.items():
        parameters = list(inspect.signature(function).parameters)
        first = {"values", "predictions", "top_k_predictions"}
        assert parameters[0] in first or name == "sparse_recall_at_top_k", name
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        tf.contrib.metrics.streaming_accuracy(LABELS, LABELS, weight=1)


@pytest.mark.slow
def test_f1_score_is_maximum_over_thresholds() -> None:
    found = updated(
        {
            "f1": tf.contrib.metrics.f1_score(LABELS, CHANCES),
            "weighted": tf.contrib.metrics.f1_score(LABELS, CHANCES, WEIGHTS, 50),
        }
    )
    precisions, recalls, _ = precision_recall_curve(LABELS, CHANCES)
    best = (2 * precisions * recalls / (precisions + recalls)).max()
    np.testing.assert_allclose(found["f1"], best, rtol=1e-5)
    scores = [
        f1_score(LABELS, limit < CHANCES, sample_weight=WEIGHTS) for limit in np.linspace(0, 1, 50)
    ]
    np.testing.assert_allclose(found["weighted"], max(scores), rtol=1e-5)


def test_aggregate_metric_map() -> None:
    accuracy, mean = metrics.accuracy(LABELS, LABELS), metrics.mean(CHANCES)
    values, updates = tf.contrib.metrics.aggregate_metric_map({"a": accuracy, "m": mean})
    assert values == {"a": accuracy[0], "m": mean[0]}
    assert updates == {"a": accuracy[1], "m": mean[1]}
    assert tf.contrib.metrics.aggregate_metrics(accuracy, mean) == (
        [accuracy[0], mean[0]],
        [accuracy[1], mean[1]],
    )
    with pytest.raises(ValueError, match="at least one"):
        tf.contrib.metrics.aggregate_metrics()


def test_legacy_losses_take_predictions_first() -> None:
    one_hot, logits = np.eye(3, dtype=np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)
    older = tf.contrib.losses
    pairs = [
        (older.mean_squared_error(logits, one_hot), tf.losses.mean_squared_error(one_hot, logits)),
        (
            older.softmax_cross_entropy(logits, one_hot, [1.0, 0.0, 2.0], 0.1, scope="x"),
            tf.losses.softmax_cross_entropy(one_hot, logits, [1.0, 0.0, 2.0], 0.1),
        ),
        (
            tf.contrib.slim.losses.sparse_softmax_cross_entropy(logits, [0, 1, 2]),
            tf.losses.sparse_softmax_cross_entropy([0, 1, 2], logits),
        ),
        (older.hinge_loss(logits, one_hot), tf.losses.hinge_loss(one_hot, logits)),
        # Weights of examples are those of rows, not of columns.
        (
            older.mean_squared_error(logits, one_hot, [1.0, 0.0, 2.0]),
            tf.losses.mean_squared_error(one_hot, logits, [[1.0], [0.0], [2.0]]),
        ),
        (
            older.compute_weighted_loss(logits, [1.0, 0.0, 2.0]),
            tf.losses.compute_weighted_loss(logits, [[1.0], [0.0], [2.0]]),
        ),
    ]
    assert len(older.get_losses()) == 2 * len(pairs)
    accuracy = tf.contrib.metrics.accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]), [1.0, 1.0, 2])
    with Session() as session:
        for one, other in session.run(pairs):
            assert one == other
        assert session.run(accuracy) == 0.5


def test_removed_names_suggest_replacements() -> None:
    with pytest.raises(AttributeError, match="scikit-learn"):
        tf.contrib.metrics.streaming_pearson_correlation  # noqa: B018
    assert callable(tf.contrib.metrics.set_difference)
    assert tf.keras.metrics.AUC.__name__ == "AUC"
    assert tf.contrib.keras.losses.mse is tf.keras.losses.mean_squared_error
