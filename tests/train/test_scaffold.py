"""`Scaffold` and `SessionManager`: defaults, arguments and errors.

What a training does with them is in `test_monitored_session.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def test_local_init_covers_tables() -> None:
    with tf.Graph().as_default():
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [7]), -1)
        found = table.lookup(tf.constant(["a", "b"]))
        with tf.train.MonitoredSession() as session:
            assert session.run(found).tolist() == [7, -1]


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


def test_saver_of_some_variables_is_used(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        op = count(tf)
        saver = tf.train.Saver([tf.train.get_global_step()], max_to_keep=1)
        scaffold = tf.train.Scaffold(saver=saver)
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=tmp_path, scaffold=scaffold, save_checkpoint_steps=1
        ) as session:
            session.run(op)
            session.run(op)
    assert [name for name, _ in tf.train.list_variables(tmp_path)] == ["global_step"]
    assert [path.name for path in tmp_path.glob("model.ckpt-*") if path.is_dir()] == [
        "model.ckpt-2"
    ]


def managed(**arguments: Any) -> Any:
    """A manager with the default graph's own operations."""
    return tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.01, **arguments
    )


def test_prepare_initializes_and_recover_restores(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        op = count(tf)
        saver, init = tf.train.Saver(), tf.global_variables_initializer()
        manager = managed()
        session, ready = manager.recover_session("", saver, tmp_path)
        assert not ready
        session.close()
        with manager.prepare_session("", init, saver, tmp_path) as session:
            session.run(op)
            saver.save(session, tmp_path / "model.ckpt", 1)
        session, ready = manager.recover_session("", saver, tmp_path)
        assert ready
        with session:
            assert session.run("x:0") == 2.0
        path = tmp_path / "model.ckpt-1"
        with manager.prepare_session(
            "", saver=saver, checkpoint_filename_with_path=path
        ) as session:
            assert session.run("x:0") == 2.0


def test_waiting_for_checkpoint_ends(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        count(tf)
        manager = managed()
        session, ready = manager.recover_session(
            "", tf.train.Saver(), tmp_path, wait_for_checkpoint=True, max_wait_secs=0.03
        )
        session.close()
        assert not ready


def test_checkpoint_without_a_variable_is_not_enough(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        count(tf)
        saver = tf.train.Saver([tf.train.get_global_step()])
        init = tf.global_variables_initializer()
        with managed().prepare_session("", init) as session:
            saver.save(session, tmp_path / "model.ckpt", 0)
        with pytest.raises(RuntimeError, match=r"not initialized: x\.\n.*checkpoint has no values"):
            managed().prepare_session("", init, saver, tmp_path)


def test_local_init_gets_feed_dict() -> None:
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [])
        local = tf.get_local_variable("local", [], initializer=tf.zeros_initializer())
        scaffold = tf.train.Scaffold(
            local_init_op=tf.assign(local, fed).op, local_init_feed_dict={fed: 5.0}
        )
        creator = tf.train.ChiefSessionCreator(scaffold)
        with tf.train.MonitoredSession(creator) as session:
            assert session.run(local) == 5.0


def test_waiting_for_session_ends_when_ready() -> None:
    with tf.Graph().as_default():
        two = tf.constant(2)
        with tf.train.SessionManager().wait_for_session("", max_wait_secs=1) as session:
            assert session.run(two) == 2
        tf.get_variable("v", [])
        with pytest.raises(tf.errors.DeadlineExceededError, match="Session was not ready"):
            managed().wait_for_session("")


def test_object_checkpoint_as_saver(tmp_path: Path) -> None:
    for total in (3.0, 5.0):  # the second session continues
        with tf.Graph().as_default():
            value = tf.get_variable("v", initializer=1.0)
            step = tf.train.get_or_create_global_step()
            change = tf.group(value.assign_add(2.0), step.assign_add(1))
            saver = tf.train.Checkpoint(value=value, step=step)
            scaffold = tf.train.Scaffold(saver=saver)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), scaffold=scaffold, save_checkpoint_steps=1
            ) as session:
                session.run(change)
                assert session.run(value) == total
    names = [name for name, _ in tf.train.list_variables(str(tmp_path))]
    keys = [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("step", "value")]
    assert names == ["_CHECKPOINTABLE_OBJECT_GRAPH", *keys]  # as TensorFlow
    with tf.Graph().as_default(), tf.Session() as session:
        other = tf.get_variable("other", initializer=0.0)
        status = tf.train.Checkpoint(value=other).restore(tf.train.latest_checkpoint(str(tmp_path)))
        status.run_restore_ops(session)
        assert session.run(other) == 5.0


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
