"""Smoothed labels: the loss of the training in NumPy, and evaluation with labels as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.premade.classification_heads import classification_head

LOGITS = {2: [[0.5], [-1.5], [2.0]], 3: [[1.0, -2.0, 0.5], [0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]]}
LABELS = np.array([1, 0, 1])
WEIGHTS = np.array([1.0, 2.0, 0.5], np.float32)


def cross_entropy(classes: int, smoothing: float) -> Any:
    """The weighted mean of -sum(target log softmax(logits))."""
    logits = np.array(LOGITS[classes])
    if classes == 2:
        logits = np.concatenate([np.zeros_like(logits), logits], 1)
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    targets = np.eye(classes)[LABELS] * (1 - smoothing) + smoothing / classes
    losses = -(targets * np.log(chances)).sum(1)
    return (losses * WEIGHTS).sum() / len(LABELS)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def losses_of(head: Any, logits: Any, labels: Any, **more: Any) -> dict[str, Any]:
    """The loss by mode, and the metrics."""
    features = {"weight": tf.constant(WEIGHTS)}
    found = {}
    for mode in (tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL):
        train = {"train_op_fn": lambda loss: loss.op} if mode == "train" else {}
        spec = head.create_estimator_spec(
            features, mode, logits=logits, labels=labels, **train, **more
        )
        found[mode] = spec.loss
    updates = [each[1] for each in spec.eval_metric_ops.values()]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        losses: dict[str, Any] = session.run(found)
        session.run(updates)
        values = {key: each[0] for key, each in spec.eval_metric_ops.items()}
        return losses | {"metrics": session.run(values)}


@pytest.mark.parametrize("classes", [2, 3])
def test_training_has_smoothed_labels_and_evaluation_has_not(classes: int) -> None:
    head = classification_head(classes, "weight", None, "sum_over_batch_size", label_smoothing=0.1)
    logits = tf.constant(LOGITS[classes])
    found = losses_of(head, logits, LABELS)
    hard = cross_entropy(classes, 0.0)
    assert found["train"] == pytest.approx(cross_entropy(classes, 0.1), rel=1e-5)
    assert found["train"] != pytest.approx(hard, rel=1e-2)
    assert found["eval"] == pytest.approx(hard, rel=1e-5)
    mean = hard * len(LABELS) / WEIGHTS.sum()
    assert found["metrics"]["average_loss"] == pytest.approx(mean, rel=1e-5)
    regularized = losses_of(head, logits, LABELS, regularization_losses=[tf.constant(7.0)])
    for mode in ("train", "eval"):
        assert regularized[mode] == pytest.approx(found[mode] + 7.0, rel=1e-6)


def test_heads_of_several_tasks_keep_their_smoothing() -> None:
    smooth = tf.estimator.BinaryClassHead("weight", name="smooth", label_smoothing=0.2)
    hard = tf.estimator.MultiClassHead(3, "weight", name="hard")
    head = tf.estimator.MultiHead([smooth, hard], [2.0, 1.0])
    logits = {"smooth": tf.constant(LOGITS[2]), "hard": tf.constant(LOGITS[3])}
    found = losses_of(head, logits, {"smooth": LABELS, "hard": LABELS})
    for mode, share in (("train", 0.2), ("eval", 0.0)):
        expected = 2 * cross_entropy(2, share) + cross_entropy(3, 0.0)
        assert found[mode] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"label_smoothing": 1.0},
        {"label_smoothing": -0.1},
        {"label_smoothing": 0.1, "loss_fn": lambda labels, logits: logits},
    ],
)
def test_impossible_smoothing_raises(arguments: Any) -> None:
    with pytest.raises(ValueError, match="label_smoothing cannot be used"):
        tf.estimator.MultiClassHead(3, **arguments)
