"""Version 1's heads: `contrib.estimator`'s and the private `estimator.canned.head`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.testing.head_test_utils import (
    _assert_simple_summaries,
    _initialize_variables,
)
from estimatorkit.compat.v1.python.estimator import model_fn
from estimatorkit.compat.v1.python.estimator.canned import head as head_lib

LOGITS = np.array([[10, 0, 0], [0, 10, 0], [0, 0, 10]], np.float32)
LABELS = np.array([1, 2, 2])
FEATURES = {"w": np.array([1.0, 2.0, 3.0])}
TRAIN, EVAL = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL


def test_create_loss_returns_loss_and_parts() -> None:
    contrib = tf.contrib.estimator.multi_class_head(3, weight_column="w")
    private = head_lib._multi_class_head_with_softmax_cross_entropy_loss(3, weight_column="w")
    with tf.Graph().as_default(), tf.Session() as session:
        mean, total = (
            head.create_loss(features=FEATURES, mode=TRAIN, logits=LOGITS, labels=LABELS)
            for head in (contrib, private)
        )
        assert isinstance(total, head_lib.LossSpec)
        loss, unreduced, weights, labels = session.run(tuple(total))
        np.testing.assert_allclose(loss, 30.0, atol=1e-2)
        np.testing.assert_allclose(session.run(mean.training_loss), 10.0, atol=1e-2)
    np.testing.assert_allclose(unreduced, [[10.0], [10.0], [0.0]], atol=1e-3)
    np.testing.assert_allclose(weights, [[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(labels, [[1], [2], [2]])


def test_default_weights_are_1() -> None:
    with tf.Graph().as_default():
        head = tf.contrib.estimator.regression_head(None, 2)
        spec = head.create_loss({}, TRAIN, np.ones([3, 2], np.float32), np.zeros([3, 2]))
        assert spec.weights == 1.0
        assert head.logits_dimension == 2  # version 1's order of arguments


def test_multi_head_losses_by_name() -> None:
    contrib = tf.contrib.estimator
    heads = [
        contrib.binary_classification_head(name="yes"),
        contrib.poisson_regression_head(name="count"),
    ]
    head = contrib.multi_head(heads, [1.0, 2.0])
    logits = {"yes": [[0.0], [0.0]], "count": [[0.0], [0.0]]}
    labels = {"yes": [[0], [1]], "count": [[0.0], [1.0]]}
    with tf.Graph().as_default(), tf.Session() as session:
        spec = head.create_loss({}, TRAIN, logits, labels)
        found = session.run(spec._asdict())
    half = np.log(2.0)
    np.testing.assert_allclose(found["unreduced_loss"]["yes"], [[half], [half]], rtol=1e-6)
    np.testing.assert_allclose(found["unreduced_loss"]["count"], [[2.0], [2.0]], rtol=1e-6)
    np.testing.assert_allclose(found["training_loss"], half + 2.0, rtol=1e-6)
    assert found["weights"] == {"yes": 1.0, "count": 2.0}
    np.testing.assert_array_equal(found["processed_labels"]["yes"], [[0.0], [1.0]])


class Minimizer:
    """All that version 1 asks of an optimizer."""

    def minimize(self, loss: Any, global_step: Any) -> Any:
        return tf.strings.join(["step ", tf.strings.as_string(loss, precision=1)])


def test_optimizer_needs_only_minimize() -> None:
    class Case(tf.test.TestCase):  # type: ignore[misc]
        def runTest(self) -> None:
            head = head_lib._multi_class_head_with_softmax_cross_entropy_loss(3, name="kind")
            spec = head.create_estimator_spec({}, TRAIN, LOGITS, LABELS, Minimizer())
            with self.session() as session:
                _initialize_variables(self, spec.scaffold)
                fetches = (spec.train_op, spec.scaffold.summary_op)
                step, summary = session.run(fetches)
            assert step == b"step 20.0"
            expected = {"loss/kind": 20.0, "average_loss/kind": 20 / 3}
            _assert_simple_summaries(self, expected, summary, tol=1e-4)

    Case().debug()


def test_label_range_errors_match_version_1() -> None:
    head = tf.contrib.estimator.multi_class_head(3)
    with tf.Graph().as_default(), tf.Session() as session:
        loss = head.create_loss({}, EVAL, LOGITS, tf.constant([0, 1, 3])).training_loss
        with pytest.raises(tf.errors.InvalidArgumentError, match="Labels must <= n_classes - 1"):
            session.run(loss)


class Bare(head_lib._Head):  # type: ignore[misc]
    name = "bare"
    logits_dimension = 1

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        raise NotImplementedError


class OnTpu(Bare):
    def _create_tpu_estimator_spec(self, features: Any, mode: str, *rest: Any) -> Any:
        return model_fn._TPUEstimatorSpec(mode, loss=tf.constant(2.0))


def test_custom_head_may_define_spec_in_two_ways() -> None:
    with pytest.raises(NotImplementedError, match=r"Subclasses of _Head must implement `create_"):
        Bare().create_estimator_spec({}, EVAL, None)
    with pytest.raises(NotImplementedError, match="TPUEstimatorSpec not available"):
        Bare()._create_tpu_estimator_spec({}, EVAL, None)
    with tf.Graph().as_default():
        spec = OnTpu().create_estimator_spec({}, EVAL, None)
        assert isinstance(spec, tf.estimator.EstimatorSpec)


def test_multi_label_auc_uses_trapezoids() -> None:
    """As in TensorFlow 1.15; version 2's head interpolates: 0.6023."""
    tf.train.get_or_create_global_step()
    head = tf.contrib.estimator.multi_label_head(2)
    logits, labels = np.array([[-1, 1], [-1.5, 1]], np.float32), np.array([[1, 0], [1, 1]])
    spec = head.create_estimator_spec({}, EVAL, logits, labels)
    value, update = spec.eval_metric_ops["auc_precision_recall"]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        np.testing.assert_allclose(session.run(value), 0.6806, atol=1e-4)
