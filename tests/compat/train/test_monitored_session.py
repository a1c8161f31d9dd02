"""Monitored sessions: TensorFlow's order of hooks, files and steps; recovery; errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import latest_checkpoint, list_variables, load_variable
from tests.golden.golden_files import error_of
from tests.golden.snippets_monitored import ERRORS, SNIPPETS, count, fail, recorder, train
from tests.threads import StartedThreads
from tests.train import toy

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "monitored.json").read_text("utf-8"))

# Messages that differ by intent, each with our words and the reason.
WORDS = {
    "two init ops": (
        'More than one item in the collection "init_op".',
        "TensorFlow forgets to put the values into its message",
    ),
    "ready without an operation": (
        "If you pass a ready_for_local_init_op you must also pass a local_init_op",
        "TensorFlow prints the operation as a NodeDef",
    ),
}


@pytest.mark.parametrize("name", sorted(SNIPPETS))
def test_training_matches_tensorflow(name: str, tmp_path: Path) -> None:
    found = json.loads(json.dumps(SNIPPETS[name](tf, str(tmp_path))))
    assert found == GOLDEN["snippets"][name]


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_match_tensorflow(name: str) -> None:
    found = error_of(lambda: fail(tf, name))
    expected = GOLDEN["errors"][name]
    assert found is not None
    assert found["class"] == expected["class"]
    words = WORDS[name][0] if name in WORDS else expected["first_line"]
    assert " ".join(found["first_line"].split()).startswith(" ".join(words.split()).rstrip("."))


# -- what TensorFlow's figures do not show


def toy_training(
    folder: Path, last_step: int, hooks: list[Any] | None = None
) -> tuple[list[float], dict[str, Any]]:
    """Trains the toy model on a shuffled input; gives the losses and the last weights."""
    with tf.Graph().as_default() as graph:
        graph.seed = 11
        features, labels = toy.dataset(seed=1).make_one_shot_iterator().get_next()
        model = toy.build(features, labels)
        losses = []
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder,
            save_checkpoint_steps=4,
            save_summaries_steps=None,
            log_step_count_steps=None,
            save_graph_def=False,
            hooks=[*(hooks or []), tf.train.StopAtStepHook(last_step=last_step)],
        ) as session:
            while not session.should_stop():
                losses.append(float(session.run([model.train_op, model.loss])[1]))
    path = latest_checkpoint(folder)
    return losses, {name: load_variable(path, name) for name, _ in list_variables(folder)}


class Interrupts(tf.train.SessionRunHook):
    """Raises after a run."""

    def __init__(self, after: int, error: Exception) -> None:
        self.left = after
        self.error = error

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.error


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The losses and the weights of a training of 14 steps."""
    return toy_training(tmp_path_factory.mktemp("whole"), 14)


@pytest.mark.slow
def test_interrupted_training_resumes_bit_for_bit(tmp_path: Path, uninterrupted: Any) -> None:
    whole, weights = uninterrupted
    with pytest.raises(KeyboardInterrupt):
        toy_training(tmp_path / "cut", 14, [Interrupts(11, KeyboardInterrupt())])  # type: ignore[arg-type]
    rest, resumed = toy_training(tmp_path / "cut", 14)
    assert rest == whole[8:]  # 8 is the last checkpoint before the interruption
    toy.assert_same_bits(weights, resumed)


@pytest.mark.slow
def test_recovery_repeats_steps_since_last_checkpoint(tmp_path: Path, uninterrupted: Any) -> None:
    whole, weights = uninterrupted
    lost = tf.errors.UnavailableError(None, None, "the task is gone")
    found, again = toy_training(tmp_path / "lost", 14, [Interrupts(11, lost)])
    assert found == [*whole[:10], *whole[8:]]
    toy.assert_same_bits(weights, again)


def test_singular_session_does_not_recover() -> None:
    with tf.Graph().as_default():
        op = count(tf)
        lost = tf.errors.AbortedError(None, None, "gone")
        with (
            pytest.raises(tf.errors.AbortedError),
            tf.train.SingularMonitoredSession([Interrupts(1, lost)]) as session,
        ):
            session.run(op)


def test_raw_session_of_singular_session() -> None:
    with tf.Graph().as_default() as graph:
        op = count(tf)
        with tf.train.SingularMonitoredSession() as session:
            raw = session.raw_session()
            assert isinstance(raw, Session)
            assert session.graph is raw.graph is graph
            assert raw.run(op) == session.run(op) - 1
        assert session.raw_session() is None
        assert session.should_stop()


def test_queue_runners_start_and_end(threads: StartedThreads) -> None:
    with tf.Graph().as_default():
        name = tf.train.string_input_producer(["a", "b"], num_epochs=2, shuffle=False).dequeue()
        found = []
        with tf.train.MonitoredSession() as session:
            assert threads.running()
            while not session.should_stop():
                found.append(session.run(name))
    assert found == [b"a", b"b"] * 2
    assert not threads.running()


def test_thread_errors_are_raised() -> None:
    def fails() -> Any:
        raise ZeroDivisionError("in the thread")

    with tf.Graph().as_default():
        queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
        bad = tf.py_func(fails, [], tf.float32)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(bad)]))
        value = queue.dequeue()
        with (  # noqa: PT012 - the end of the block raises
            pytest.raises(Exception, match=r"in the thread|closed"),
            tf.train.MonitoredSession() as session,
        ):
            while not session.should_stop():
                session.run(value)
            assert session.should_stop()


def test_steps_without_global_step() -> None:
    calls: list[Any] = []

    class Logs(tf.train.LoggingTensorHook):
        def _log(self, values: Any) -> None:
            calls.append(float(values["x"]))

    with tf.Graph().as_default():
        x = tf.get_variable("x", [], initializer=tf.zeros_initializer())
        add = tf.assign_add(x, 1.0)
        with tf.train.MonitoredSession(hooks=[Logs({"x": x}, every_n_iter=3)]) as session:
            for _ in range(8):
                session.run(add)
    assert calls == [0.0, 3.0, 6.0]


def test_step_hook_is_called_once_per_step() -> None:
    seen: list[int] = []

    class EveryFourth(tf.train.SessionRunHook):
        def next_control_step(self, global_step: int) -> int:
            return (global_step // 4 + 1) * 4

        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, run_context: Any, run_values: Any) -> None:
            seen.append(int(run_values.results))

    with tf.Graph().as_default():
        op = count(tf)
        look = tf.identity(tf.constant(1.0))
        with tf.train.MonitoredSession(hooks=[EveryFourth()]) as session:
            for _ in range(10):
                session.run(op)
                session.run(look)
    assert seen == [3, 7]


def test_nan_hook_watches_its_own_loss() -> None:
    with tf.Graph().as_default():
        op = count(tf)
        loss = tf.cast(tf.train.get_global_step(), tf.float32)
        loss = tf.where(loss >= 3, loss * float("nan"), loss)
        hook = tf.train.NanTensorHook(loss)
        with (  # noqa: PT012 - one of the runs raises
            pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN at step 4"),
            tf.train.MonitoredSession(hooks=[hook]) as session,
        ):
            for _ in range(9):
                session.run(op)
        quiet = tf.train.NanTensorHook(loss, fail_on_nan_loss=False)
        with tf.train.MonitoredSession(hooks=[quiet]) as session:
            runs = 0
            while not session.should_stop():
                session.run(op)
                runs += 1
    assert runs == 4


def test_accepts_every_keyword(tmp_path: Path) -> None:
    calls: list[str] = []
    with tf.Graph().as_default():
        op = count(tf)
        with tf.train.MonitoredTrainingSession(
            master="",
            is_chief=True,
            checkpoint_dir=str(tmp_path / "model"),
            scaffold=tf.train.Scaffold(),
            hooks=[recorder(tf, calls, "a", stop_at=2)],
            chief_only_hooks=[],
            save_checkpoint_secs=3600,
            save_summaries_steps=None,
            save_summaries_secs=3600,
            config=tf.ConfigProto(allow_soft_placement=True),
            stop_grace_period_secs=10,
            log_step_count_steps=None,
            max_wait_secs=5,
            summary_dir=str(tmp_path / "summaries"),
            save_graph_def=False,
        ) as session:
            while not session.should_stop():
                session.run(op, options=None, run_metadata=None)
    assert calls[-1] == "a end at 2"
    assert not list((tmp_path / "model").glob("*.meta"))
    assert list((tmp_path / "summaries").glob("events*"))


def test_graphs_are_written_beside_checkpoints(tmp_path: Path) -> None:
    train(tf, str(tmp_path), 2)
    with tf.Graph().as_default(), tf.Session() as session:
        path = latest_checkpoint(tmp_path)
        tf.train.import_meta_graph(f"{path}.meta").restore(session, path)
        assert session.run("x:0") == 4.0


def test_worker_without_master_does_not_wait() -> None:
    with tf.Graph().as_default():
        count(tf)
        with pytest.raises(tf.errors.DeadlineExceededError, match="is_chief=True"):
            tf.train.MonitoredTrainingSession(is_chief=False)


def test_hooks_are_closed_if_session_creation_fails() -> None:
    closed: list[str] = []

    class Held(tf.train.SessionRunHook):
        def close(self) -> None:
            closed.append("closed")

    with tf.Graph().as_default() as graph:
        count(tf)
        scaffold = tf.train.Scaffold(init_op=tf.no_op())
        with pytest.raises(RuntimeError, match="global_step, x"):
            tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold), [Held()])
        tf.constant(1.0)  # the graph is open again
        assert not graph.finalized
    assert closed == ["closed"]


def test_runs_of_other_structures() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        more, twice = x + 1, x * 2
        with tf.train.MonitoredSession(hooks=[tf.train.SessionRunHook()]) as session:
            found = session.run({"a": x, "b": [more, (twice,)]}, feed_dict={x: [1.0, 2.0]})
    np.testing.assert_array_equal(found["a"], [1, 2])
    np.testing.assert_array_equal(found["b"][1][0], [2, 4])


def test_hooks_feed_wait_and_compute_at_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.int64, [])
        add = step.assign_add(x)
        fed = iter([3, 4, 5])
        last = tf.train.FinalOpsHook({"step": step, "more": step + x}, {x: 100})

        class Others(tf.train.SessionRunHook):
            """Moves the step while the waiter waits."""

            def after_create_session(self, session: Any, coord: Any) -> None:
                def sleep(seconds: float) -> None:
                    looks.append(seconds)
                    session.run(add, {x: 1})

                monkeypatch.setattr("estimatorkit.train.hooks.session_hooks.time.sleep", sleep)

        feeder = tf.train.FeedFnHook(lambda: {x: next(fed)})
        hooks = [Others(), tf.train.GlobalStepWaiterHook(2), feeder, last]
        with tf.train.SingularMonitoredSession(hooks) as session:
            assert last.final_ops_values is None
            assert [int(session.run(add)) for _ in range(3)] == [5, 9, 14]
    assert looks == [0.5, 0.5]
    assert last.final_ops_values == {"step": 14, "more": 114}
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="Global step should be"):
        tf.train.GlobalStepWaiterHook(2).begin()


def test_final_ops_that_read_ended_input(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default(), caplog.at_level("WARNING", "estimatorkit"):
        value = tf.data.Dataset.range(1).make_one_shot_iterator().get_next()
        hooks = [tf.train.FinalOpsHook(value)]
        with (
            pytest.raises(tf.errors.OutOfRangeError),
            tf.train.SingularMonitoredSession(hooks, None) as session,
        ):
            session.raw_session().run(value)
    assert "read an input that has ended" in caplog.text


class TestHookedSession:
    """`monitored_session._HookedSession`: hooks around a session that is there."""

    def test_hooks_see_assigned_global_step(self) -> None:
        from estimatorkit.compat.v1.python.training import monitored_session, training_util

        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.train.get_or_create_global_step()
            nothing = tf.no_op()
            session.run(step.initializer)
            hook = tf.train.StopAtStepHook(last_step=10)
            hooked = monitored_session._HookedSession(session, [hook])
            stops = []
            for value in (5, 9, 10):
                session.run(step.assign(value))
                hooked.run(nothing)
                stops.append(hooked.should_stop())
            assert stops == [False, False, True]
            with pytest.raises(RuntimeError, match="Run called even after should_stop requested"):
                hooked.run(nothing)
            hooked._should_stop = False
            hooked.run(training_util._increment_global_step(2))
            assert session.run(step) == 12
            assert hooked.should_stop()

    def test_saver_hook_without_session_creation_saves_first_step(self, tmp_path: Path) -> None:
        from estimatorkit.compat.v1.python.training import monitored_session, training_util

        with tf.Graph().as_default(), tf.Session() as session:
            tf.train.get_or_create_global_step()
            train_op = training_util._increment_global_step(1)
            hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2)
            hook.begin()
            session.run(tf.global_variables_initializer())
            hooked = monitored_session._HookedSession(session, [hook])
            saved = []
            for _ in range(5):
                hooked.run(train_op)
                saved.append(tf.train.load_variable(str(tmp_path), "global_step"))
            assert saved == [1, 1, 3, 3, 5]

    def test_missing_global_step_raises(self) -> None:
        from estimatorkit.compat.v1.python.training import training_util

        with tf.Graph().as_default(), pytest.raises(ValueError, match="should be created"):
            training_util._increment_global_step(1)
