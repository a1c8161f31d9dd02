"""`Supervisor`: a session and its services, ended together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.interop.protos import MetaGraphDef
from estimatorkit.storage.checkpoint import latest_checkpoint
from tests.golden.snippets_monitored import count, summary_steps
from tests.threads import StartedThreads


def until(condition: Any) -> None:
    """Waits for what a thread does."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_training_is_saved_and_resumed(tmp_path: Path, threads: StartedThreads) -> None:
    for expected in (3, 6):
        with tf.Graph().as_default():
            op = count(tf)
            supervisor = tf.train.Supervisor(
                logdir=str(tmp_path), save_model_secs=0.05, save_summaries_secs=0.05
            )
            with supervisor.managed_session() as session:
                for _ in range(3):
                    assert not supervisor.should_stop()
                    session.run(op)
                assert session.run(supervisor.global_step) == expected
                path = str(tmp_path / f"model.ckpt-{expected}")
                until(lambda path=path: latest_checkpoint(tmp_path) == path)
                until(lambda: summary_steps(tf, str(tmp_path), "shown"))
            with pytest.raises(RuntimeError, match="closed Session"):
                session.run(op)
            assert supervisor.should_stop()
    assert not threads.running()
    assert summary_steps(tf, str(tmp_path), "global_step/sec")
    assert "global_step" in (tmp_path / "graph.pbtxt").read_text("utf-8")


def test_exception_of_block_is_raised_at_exit() -> None:
    with tf.Graph().as_default():
        op = count(tf)
        supervisor = tf.train.Supervisor()
        with (  # noqa: PT012 - the end of the block raises
            pytest.raises(KeyError, match="mine"),
            supervisor.managed_session() as session,
        ):
            session.run(op)
            raise KeyError("mine")
        with supervisor.managed_session() as session:  # a second time
            assert session.run(op) == 1


def test_end_of_input_is_silent() -> None:
    with tf.Graph().as_default():
        count(tf)
        name = tf.train.string_input_producer(["a", "b"], num_epochs=1, shuffle=False).dequeue()
        supervisor = tf.train.Supervisor(saver=None, summary_op=None)
        found = []
        with supervisor.managed_session() as session:
            while not supervisor.should_stop():
                found.append(session.run(name))
    assert found == [b"a", b"b"]


def test_service_error_ends_training(tmp_path: Path) -> None:
    class Broken(tf.train.Saver):  # type: ignore[misc]
        def save(self, *_: Any, **__: Any) -> Any:
            raise OSError("the disk is full")

    with tf.Graph().as_default():
        op = count(tf)
        supervisor = tf.train.Supervisor(logdir=tmp_path, saver=Broken())
        with (  # noqa: PT012 - the end of the block raises
            pytest.raises(OSError, match="the disk is full"),
            supervisor.managed_session() as session,
        ):
            until(supervisor.should_stop)
            session.run(op)


def test_given_operations_are_used(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        op = count(tf)
        fed = tf.placeholder(tf.float32, [])
        x = graph.get_collection("trainable_variables")[0]
        init = tf.group(tf.assign(x, fed), tf.train.get_global_step().initializer)
        called: list[Any] = []
        supervisor = tf.train.Supervisor(
            graph=graph,
            is_chief=True,
            logdir=str(tmp_path),
            init_op=init,
            init_feed_dict={fed: 7.0},
            init_fn=called.append,
            summary_op=None,
            saver=tf.train.Saver(),
            global_step=tf.train.get_global_step(),
            save_model_secs=0,
            save_summaries_secs=0,
        )
        session = supervisor.prepare_or_wait_for_session(
            config=tf.ConfigProto(allow_soft_placement=True)
        )
        assert called == [session]
        assert session.run([op, x])[1] == 7.0
        (summary,) = graph.get_collection("summaries")
        supervisor.summary_computed(session, session.run(summary))
        supervisor.saver.save(session, supervisor.save_path, supervisor.global_step)
        supervisor.stop()
        session.close()
    assert summary_steps(tf, str(tmp_path), "shown") == [1]
    assert latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-1")


def test_custom_loops_and_queue_runners() -> None:
    turns: list[int] = []
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(3, [tf.int32], shapes=[[]])
        runner = tf.train.QueueRunner(queue, [queue.enqueue(5)])
        taken = queue.dequeue()
        supervisor = tf.train.Supervisor(saver=None)
        with supervisor.managed_session() as session:
            supervisor.start_queue_runners(session, [runner])
            supervisor.loop(0.001, turns.append, [1])
            assert session.run(taken) == 5
            until(lambda: len(turns) > 2)
            supervisor.request_stop()
            supervisor.wait_for_stop()
    assert supervisor.coord.joined


def test_errors() -> None:
    with tf.Graph().as_default():
        count(tf)
        with pytest.raises(ValueError, match="must have their device set: global_step"):
            tf.train.Supervisor(is_chief=False)
    with tf.Graph().as_default(), tf.device("/job:localhost"):
        count(tf)
        chief = tf.train.Supervisor(summary_op=None)
        worker = tf.train.Supervisor(is_chief=False, summary_op=None)
        session = chief.prepare_or_wait_for_session()
        with pytest.raises(RuntimeError, match="requires a summary writer"):
            chief.summary_computed(session, b"")
        with pytest.raises(RuntimeError, match="Only chief supervisor"):
            worker.start_standard_services(session)
        with pytest.raises(tf.errors.DeadlineExceededError):
            worker.prepare_or_wait_for_session()
        chief.stop()
        session.close()


@pytest.mark.slow
def test_each_event_file_begins_with_graph(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        tf.Variable([7], name="global_step")
        supervisor = tf.train.Supervisor(logdir=str(tmp_path), summary_op=None)
        for _ in range(2):
            with supervisor.managed_session(start_standard_services=False) as session:
                assert session.run(supervisor.global_step).tolist() == [7]
            events = list(tf.train.summary_iterator(str(next(tmp_path.glob("*tfevents*")))))
            assert events[1].graph_def == graph.as_graph_def(add_shapes=True).SerializeToString()
            assert MetaGraphDef.FromString(events[2].meta_graph_def).saver_def.max_to_keep == 5
            for path in tmp_path.glob("*tfevents*"):
                path.unlink()


def test_variable_named_global_step_is_global_step(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        step = tf.Variable(0, name="global_step", trainable=False)
        add = tf.assign_add(step, 1)
        assert tf.train.get_global_step() is step
        hooks = [tf.train.StopAtStepHook(last_step=3)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), hooks=hooks
        ) as session:
            while not session.should_stop():
                session.run(add)
    assert latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-3")
    with tf.Graph().as_default():
        tf.Variable(0.0, name="global_step")
        with pytest.raises(TypeError, match="does not have integer type"):
            tf.train.get_global_step()


def test_global_step_value() -> None:
    import estimatorkit.compat.v1 as compat

    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        session.run(tf.assign_add(step, 5))
        assert compat.train.global_step(session, step) == 5
