"""Losses, metrics and heads of tensors whose shapes are not known before the graph runs.

`NUMBERS` are functions of the module `tf` (`tf.compat.v1`) and of placeholders without a rank:
labels, predictions and weights, fed with `FEEDS`. `look_at` runs them all, for labels `(batch,)`
and `(batch, 1)` and for each shape of weights. `MISTAKES` are functions of `tf` (and of `tf2`, the
module that has the heads) that must fail. `head_losses` gives heads' losses and metrics of steps
with weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CLASSES = np.array([2, 0, 1])
BITS = np.array([0, 1, 1])
DECISIONS = np.array([0, 1, 0])
CHANCES = np.array([0.2, 0.7, 0.9], np.float32)
LOGITS = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0], [-1.0, 0.5, 1.0]], np.float32)
WEIGHTS = np.array([1.0, 2.0, 0.5], np.float32)
EACH_WEIGHTS = {
    "none": None,
    "scalar": np.float32(2.0),
    "vector": WEIGHTS,
    "column": WEIGHTS[:, None],
}

Program = Callable[[Any, Any, Any, Any], Any]


def _loss(name: str) -> Program:
    def program(tf: Any, y: Any, p: Any, w: Any) -> Any:
        return getattr(tf.losses, name)(y, p, weights=1.0 if w is None else w)

    return program


def _metric(name: str, *arguments: Any) -> Program:
    def program(tf: Any, y: Any, p: Any, w: Any) -> Any:
        return getattr(tf.metrics, name)(y, p, *arguments, weights=w)

    return program


NUMBERS: dict[str, tuple[Any, Any, Program]] = {
    "sparse_softmax_cross_entropy": (CLASSES, LOGITS, _loss("sparse_softmax_cross_entropy")),
    "accuracy": (BITS, DECISIONS, _metric("accuracy")),
    "precision": (BITS, DECISIONS, _metric("precision")),
    "recall": (BITS, DECISIONS, _metric("recall")),
    "false_positives": (BITS, CHANCES, _metric("false_positives")),
    "auc": (BITS, CHANCES, _metric("auc")),
    "mean_squared_error": (BITS.astype(np.float32), CHANCES, _metric("mean_squared_error")),
    "true_positives_at_thresholds": (
        *(BITS, CHANCES),
        _metric("true_positives_at_thresholds", [0.3, 0.8]),
    ),
    "mean": (BITS, CHANCES, lambda tf, y, p, w: tf.metrics.mean(p, w)),
    "precision_at_k": (CLASSES, LOGITS, _metric("precision_at_k", 2)),
    "recall_at_k": (CLASSES, LOGITS, _metric("recall_at_k", 2)),
}
_NOT_WITH_COLUMNS = ("precision_at_k", "recall_at_k")


def look_at(tf: Any) -> dict[str, Any]:
    """The value of each program, by name, shape of labels and weights."""
    values, updates, feeds = {}, [], {}

    def unknown(value: Any) -> Any:
        given = tf.placeholder(value.dtype)
        feeds[given] = value
        return given

    for name, (labels, predictions, program) in NUMBERS.items():
        for form, y in (("vector", labels), ("column", labels[:, None])):
            for kind, w in EACH_WEIGHTS.items():
                if kind == "column" and name in _NOT_WITH_COLUMNS:
                    continue
                given = (unknown(y), unknown(predictions), None if w is None else unknown(w))
                made = program(tf, *given)
                value, update = made if isinstance(made, tuple) else (made, made)
                values[f"{name}/{form}/{kind}"] = value
                updates.append(update)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        # What is no metric has no state: its value is that of the feeds.
        session.run(updates, feeds)
        return session.run(values, feeds)  # type: ignore[no-any-return]


STEPS = np.array([[[1.0, -2.0, 0.5], [0.0, 1.0, 2.0]], [[-1.0, 0.5, 1.0], [2.0, 0.0, 1.5]]])
STEP_WEIGHTS = np.array([[1.0, 1.5], [2.0, 0.0]])
_IDS = np.array([[[1], [0]], [[0], [1]]])
HEADS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "binary": (lambda tf2, **k: tf2.estimator.BinaryClassHead(**k), STEPS[..., :1], _IDS),
    "multi": (lambda tf2, **k: tf2.estimator.MultiClassHead(3, **k), STEPS, _IDS + 1),
    "regression": (lambda tf2, **k: tf2.estimator.RegressionHead(3, **k), STEPS, 2 * STEPS - 1),
    "poisson": (lambda tf2, **k: tf2.estimator.PoissonRegressionHead(**k), STEPS[..., :1], _IDS),
    "logistic": (
        *(lambda tf2, **k: tf2.estimator.LogisticRegressionHead(**k), STEPS[..., :1]),
        _IDS.astype(np.float32),
    ),
    "multilabel": (
        *(lambda tf2, **k: tf2.estimator.MultiLabelHead(3, **k), STEPS),
        (STEPS > 0).astype(np.int64),
    ),
}


def head_losses(tf: Any, tf2: Any) -> dict[str, Any]:
    """Losses and metrics of heads of steps `(batch, steps, n)`, with a weight for each step."""
    values, updates = {}, []
    for name, (make, logits, labels) in HEADS.items():
        for kind, weights in (("vector", STEP_WEIGHTS), ("column", STEP_WEIGHTS[..., None])):
            features = {"w": tf.constant(weights, tf.float32)}
            head = make(tf2, weight_column="w")
            spec = head.create_estimator_spec(
                *(features, "eval", tf.constant(logits, tf.float32), labels),
                trainable_variables=[],
            )
            values[f"{name}/{kind}/loss"] = spec.loss
            for key, (value, update) in spec.eval_metric_ops.items():
                values[f"{name}/{kind}/{key}"] = value
                updates.append(update)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(updates)
        return session.run(values)  # type: ignore[no-any-return]


Mistake = Callable[[Any, Any], object]
MISTAKES: dict[str, Mistake] = {}


def mistake(function: Mistake) -> Mistake:
    """Registers a mistake under its function's name."""
    MISTAKES[function.__name__] = function
    return function


def _fed(tf: Any, program: Callable[..., Any], *values: Any) -> object:
    given = [tf.placeholder(np.asarray(value).dtype) for value in values]
    made = program(*given)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(made, dict(zip(given, values, strict=True)))


_ZEROS, _ONES = np.zeros([3, 2], np.float32), np.ones([3, 2], np.float32)


@mistake
def weights_of_columns_for_rows(tf: Any, tf2: Any) -> object:
    return tf.losses.mean_squared_error(_ZEROS, _ONES, weights=[1.0, 2.0, 3.0])


@mistake
def weights_of_less_dimensions(tf: Any, tf2: Any) -> object:
    cubes = np.ones([3, 2, 4], np.float32)
    return tf.losses.absolute_difference(cubes, cubes, weights=np.ones([3, 1], np.float32))


@mistake
def weights_of_another_batch(tf: Any, tf2: Any) -> object:
    return tf.losses.huber_loss(_ZEROS, _ONES, weights=np.ones([2, 1], np.float32))


@mistake
def weights_of_pairs(tf: Any, tf2: Any) -> object:
    return tf.losses.mean_pairwise_squared_error(_ZEROS, _ONES, weights=[1.0, 2.0, 3.0])


@mistake
def fed_weights_of_columns_for_rows(tf: Any, tf2: Any) -> object:
    return _fed(tf, tf.losses.mean_squared_error, _ZEROS, _ONES, WEIGHTS)


@mistake
def fed_weights_of_another_batch(tf: Any, tf2: Any) -> object:
    return _fed(tf, tf.losses.log_loss, _ZEROS, _ONES, np.ones([2, 1], np.float32))


@mistake
def fed_weights_of_a_metric(tf: Any, tf2: Any) -> object:
    return _fed(tf, lambda v, w: tf.metrics.mean(v, w), _ONES, np.ones([2, 1], np.float32))


@mistake
def weights_of_columns_of_best_classes(tf: Any, tf2: Any) -> object:
    program = NUMBERS["precision_at_k"][2]
    return _fed(tf, lambda y, p, w: program(tf, y, p, w), CLASSES, LOGITS, WEIGHTS[:, None])


def _head(tf2: Any, name: str, **arguments: Any) -> Any:
    return HEADS[name][0](tf2, **arguments)


def _head_loss(head: Any) -> Callable[..., Any]:
    return lambda logits, labels: head.loss(labels, logits, features={}, mode="eval")


@mistake
def fed_logits_of_two_columns(tf: Any, tf2: Any) -> object:
    return _fed(tf, _head_loss(_head(tf2, "binary")), _ONES[:2], _ONES[:2, :1])


@mistake
def predictions_of_two_columns(tf: Any, tf2: Any) -> object:
    return _fed(tf, lambda logits: _head(tf2, "binary").predictions(logits)["logits"], _ONES[:2])


@mistake
def fed_labels_of_two_columns(tf: Any, tf2: Any) -> object:
    return _fed(tf, _head_loss(_head(tf2, "regression")), LOGITS, _ONES)


@mistake
def fed_labels_of_another_batch(tf: Any, tf2: Any) -> object:
    return _fed(tf, _head_loss(_head(tf2, "multi")), LOGITS, _IDS[0])


@mistake
def losses_of_another_shape(tf: Any, tf2: Any) -> object:
    head = _head(tf2, "regression", loss_fn=lambda labels, logits: logits[:, :1])
    return _fed(tf, _head_loss(head), LOGITS, LOGITS)


@mistake
def weights_of_examples_for_steps(tf: Any, tf2: Any) -> object:
    head = _head(tf2, "multi", weight_column="w")
    weights = np.ones([2, 1], np.float32)

    def program(logits: Any, labels: Any) -> Any:
        return head.loss(labels, logits, features={"w": tf.constant(weights)}, mode="eval")

    return _fed(tf, program, STEPS.astype(np.float32), _IDS)


@mistake
def fed_weights_of_three_columns(tf: Any, tf2: Any) -> object:
    head = _head(tf2, "regression", weight_column="w")

    def program(weights: Any) -> Any:
        logits = tf.constant(STEPS, tf.float32)
        return head.loss(logits, logits, features={"w": weights}, mode="eval")

    return _fed(tf, program, np.ones([2, 2, 2], np.float32))
