"""`Scaffold` and `SessionManager`: defaults, arguments and errors.

What a training does with them is in `test_monitored_session.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from tests.golden.snippets_monitored import count


def test_defaults_are_created_once() -> None:
    with tf.Graph().as_default() as graph:
        count(tf)
        one = tf.train.Scaffold().finalize()
        assert graph.finalized
        other = tf.train.Scaffold().finalize()  # nothing is left to make
        for name in ("init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "saver"):
            assert getattr(one, name) is getattr(other, name)
            assert graph.get_collection(name if name != "saver" else "savers")
        assert one.summary_op is graph.get_collection("summary_op")[0]
        assert (one.init_fn, one.init_feed_dict, one.local_init_feed_dict) == (None, None, None)


def test_graph_without_variables_and_summaries() -> None:
    with tf.Graph().as_default():
        tf.constant(1.0)
        scaffold = tf.train.Scaffold().finalize()
        assert scaffold.summary_op is None
        with tf.Session() as session:
            session.run([scaffold.init_op, scaffold.local_init_op])
            assert session.run(scaffold.ready_op).size == 0


def test_ready_ops() -> None:
    with tf.Graph().as_default():
        count(tf)
        tf.get_local_variable("local", [], initializer=tf.zeros_initializer())
        scaffold = tf.train.Scaffold().finalize()
        with tf.Session() as session:
            assert list(session.run(scaffold.ready_op)) == [b"global_step", b"x", b"local"]
            assert list(session.run(scaffold.ready_for_local_init_op)) == [b"global_step", b"x"]
            session.run(scaffold.init_op)
            assert session.run(scaffold.ready_for_local_init_op).size == 0
            assert list(session.run(scaffold.ready_op)) == [b"local"]
            session.run(scaffold.local_init_op)
            assert session.run(scaffold.ready_op).size == 0


def test_copies_inherit_unset_values() -> None:
    with tf.Graph().as_default():
        first, second = tf.no_op(), tf.no_op()
        seen: list[Any] = []
        one = tf.train.Scaffold(
            init_op=first,
            local_init_op=second,
            init_feed_dict={"a": 1},
            local_init_feed_dict={"b": 2},
            init_fn=lambda scaffold, session: seen.append((scaffold, session)),
        )
        copy = tf.train.Scaffold(init_op=second, copy_from_scaffold=one)
        assert (copy.init_op, copy.local_init_op) == (second, second)
        assert (copy.init_feed_dict, copy.local_init_feed_dict) == ({"a": 1}, {"b": 2})
        assert copy.init_fn is not None
        copy.init_fn("the session")
        assert seen == [(copy, "the session")]


def test_estimator_with_object_checkpoint(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("w", initializer=1.0)
        step = tf.train.get_or_create_global_step()
        scaffold = tf.train.Scaffold(saver=tf.train.Checkpoint(w=weight, step=step))
        train = tf.group(weight.assign_add(features[0]), step.assign_add(1))
        return tf.estimator.EstimatorSpec(
            mode,
            loss=weight + 0.0,
            train_op=train,
            predictions=weight + features,
            scaffold=scaffold,
        )

    def inputs() -> Any:
        return tf.data.Dataset.from_tensors(np.ones([1], np.float32)).repeat(9)

    for steps, total in ((2, 3.0), (3, 6.0)):
        estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
        estimator.train(inputs, steps=steps)
        assert estimator.evaluate(inputs, steps=1)["loss"] == total
        assert next(iter(estimator.predict(inputs))) == total + 1.0
    assert estimator.train(inputs, max_steps=5) is estimator  # nothing is left to do
