"""Trainings by monitored sessions, as functions of the module used as `tf` and of a folder.

`SNIPPETS`: each gives facts that JSON can hold: the order in which hooks are called, the names of
the files that are written, steps. `ERRORS`: each fails.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from typing import Any


def recorder(tf: Any, calls: list[str], name: str, stop_at: int | None = None) -> Any:
    """A hook that notes each call; it asks to stop after so many runs."""

    class Recorder(tf.train.SessionRunHook):  # type: ignore[misc]
        runs = 0

        def begin(self) -> None:
            calls.append(f"{name} begin, finalized {tf.get_default_graph().finalized}")

        def after_create_session(self, session: Any, coord: Any) -> None:
            finalized = session.graph.finalized
            calls.append(f"{name} after_create_session, finalized {finalized}")

        def before_run(self, run_context: Any) -> Any:
            calls.append(f"{name} before_run")
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.runs += 1
            calls.append(f"{name} after_run")
            if self.runs == stop_at:
                run_context.request_stop()

        def end(self, session: Any) -> None:
            step = session.run(tf.train.get_global_step())
            calls.append(f"{name} end at {step}")

    return Recorder()


def count(tf: Any) -> Any:
    """An operation that counts the global step, with a summary of a variable."""
    step = tf.train.get_or_create_global_step()
    x = tf.get_variable("x", [], initializer=tf.zeros_initializer())
    tf.summary.scalar("shown", x)
    with tf.control_dependencies([tf.assign_add(x, 2.0)]):
        return tf.assign_add(step, 1)


def files(folder: str, pattern: str) -> list[str]:
    """Names of files, by number."""
    found = {os.path.basename(each) for each in glob.glob(os.path.join(folder, pattern))}
    stems = {re.sub(r"^(model\.ckpt-\d+).*", r"\1", each) for each in found}
    return sorted(stems, key=lambda each: int(re.findall(r"\d+", each)[-1]))


def summary_steps(tf: Any, folder: str, tag: str) -> list[int]:
    """The steps at which a folder's event files have a tag."""
    steps = []
    for path in glob.glob(os.path.join(folder, "events.out.tfevents.*")):
        for event in tf.train.summary_iterator(path):
            steps += [event.step for value in event.summary.value if value.tag == tag]
    return sorted(steps)


def train(tf: Any, folder: str | None, last_step: int, **arguments: Any) -> list[int]:
    """Trains up to a step in a new graph; gives the numbers that the runs gave."""
    with tf.Graph().as_default():
        op = count(tf)
        hooks = [*arguments.pop("hooks", []), tf.train.StopAtStepHook(last_step=last_step)]
        found = []
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, **arguments
        ) as session:
            while not session.should_stop():
                found.append(int(session.run(op)))
        return found


def _order(tf: Any, folder: str) -> Any:
    calls: list[str] = []
    with tf.Graph().as_default() as graph:
        op = count(tf)
        hooks = [recorder(tf, calls, "a"), recorder(tf, calls, "b", stop_at=2)]
        with tf.train.MonitoredSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(op)
        return [*calls, f"finalized {graph.finalized}"]


def _chief_hooks(tf: Any, folder: str) -> Any:
    calls: list[str] = []
    with tf.Graph().as_default():
        op = count(tf)
        with tf.train.MonitoredTrainingSession(
            hooks=[recorder(tf, calls, "all", stop_at=1)],
            chief_only_hooks=[recorder(tf, calls, "chief")],
        ) as session:
            session.run(op)
    return calls


def _error_in_the_block(tf: Any, folder: str) -> Any:
    calls: list[str] = []
    with tf.Graph().as_default():
        op = count(tf)
        try:
            with tf.train.MonitoredSession(hooks=[recorder(tf, calls, "a")]) as session:
                session.run(op)
                raise KeyError("mine")
        except KeyError:
            calls.append("KeyError")
    return calls


def _end_of_input(tf: Any, folder: str) -> Any:
    calls: list[str] = []
    with tf.Graph().as_default():
        element = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
        with tf.control_dependencies([element]):
            op = tf.group(tf.assign_add(tf.train.get_or_create_global_step(), 1))
        found = []
        with tf.train.MonitoredSession(hooks=[recorder(tf, calls, "a")]) as session:
            while not session.should_stop():
                found.append(int(session.run([element, op])[0]))
    return [found, calls]


def _checkpoints(tf: Any, folder: str) -> Any:
    first = train(tf, folder, 7, save_checkpoint_steps=3)
    there = files(folder, "model.ckpt-*")
    second = train(tf, folder, 12, save_checkpoint_steps=3)
    again = train(tf, folder, 12, save_checkpoint_steps=3)
    return [first, there, second, again, files(folder, "model.ckpt-*")]


def _last_checkpoint_by_default(tf: Any, folder: str) -> Any:
    train(tf, folder, 4)
    return files(folder, "model.ckpt-*")


def _no_checkpoints(tf: Any, folder: str) -> Any:
    train(tf, folder, 4, save_checkpoint_secs=None)
    return files(folder, "model.ckpt-*")


def _summaries(tf: Any, folder: str) -> Any:
    train(tf, folder, 12, save_summaries_steps=5, log_step_count_steps=4)
    return [summary_steps(tf, folder, "shown"), summary_steps(tf, folder, "global_step/sec")]


def _summaries_elsewhere(tf: Any, folder: str) -> Any:
    other = os.path.join(folder, "other")
    train(tf, None, 3, summary_dir=other, save_summaries_steps=1)
    return [summary_steps(tf, other, "shown"), os.listdir(folder)]


def _profiles(tf: Any, folder: str) -> Any:
    hook = tf.train.ProfilerHook(save_steps=4, output_dir=folder)
    train(tf, None, 13, hooks=[hook])
    return files(folder, "timeline-*.json")


def _step_function(tf: Any, folder: str) -> Any:
    calls: list[str] = []
    with tf.Graph().as_default():
        op = count(tf)

        def step_fn(step_context: Any) -> Any:
            before = int(step_context.session.run(tf.train.get_global_step()))
            if before == 2:
                step_context.request_stop()
            return [before, int(step_context.run_with_hooks(op))]

        found = []
        with tf.train.MonitoredSession(hooks=[recorder(tf, calls, "a")]) as session:
            while not session.should_stop():
                found.append(session.run_step_fn(step_fn))
    return [found, calls]


def _recovery(tf: Any, folder: str) -> Any:
    calls: list[str] = []
    with tf.Graph().as_default():
        op = count(tf)
        failed = []

        class Fails(tf.train.SessionRunHook):  # type: ignore[misc]
            def after_run(self, run_context: Any, run_values: Any) -> None:
                if len(calls) > 10 and not failed:
                    failed.append(True)
                    raise tf.errors.AbortedError(None, None, "gone")

        hooks = [
            tf.train.CheckpointSaverHook(folder, save_steps=2),
            recorder(tf, calls, "a"),
            Fails(),
            tf.train.StopAtStepHook(last_step=9),
        ]
        creator = tf.train.ChiefSessionCreator(checkpoint_dir=folder)
        found = []
        with tf.train.MonitoredSession(creator, hooks) as session:
            while not session.should_stop():
                found.append(int(session.run(op)))
    return [found, calls]


def _scaffold(tf: Any, folder: str) -> Any:
    calls: list[str] = []
    with tf.Graph().as_default() as graph:
        step = tf.train.get_or_create_global_step()
        x = tf.get_variable("x", [], initializer=tf.zeros_initializer())
        fed = tf.placeholder(tf.float32, [])
        local = tf.get_local_variable("local", [], initializer=tf.zeros_initializer())
        scaffold = tf.train.Scaffold(
            init_op=tf.group(tf.assign(x, fed), step.initializer),
            init_feed_dict={fed: 7.0},
            init_fn=lambda scaffold, session: calls.append(
                f"init_fn with {float(session.run(x))} and {type(scaffold).__name__}"
            ),
        )
        for _ in range(2):
            creator = tf.train.ChiefSessionCreator(scaffold, checkpoint_dir=folder)
            saver = tf.train.CheckpointSaverHook(folder, save_steps=10, scaffold=scaffold)
            with tf.train.MonitoredSession(creator, [saver]) as session:
                calls.append(f"values {[float(each) for each in session.run([x, local])]}")
        parts = {
            key: len(graph.get_collection(key))
            for key in ("init_op", "ready_op", "local_init_op", "savers", "ready_for_local_init_op")
        }
    return [calls, parts]


SNIPPETS: dict[str, Callable[[Any, str], Any]] = {
    "order of hooks": _order,
    "chief hooks": _chief_hooks,
    "an error in the block": _error_in_the_block,
    "end of the input": _end_of_input,
    "checkpoints": _checkpoints,
    "the last checkpoint": _last_checkpoint_by_default,
    "no checkpoints": _no_checkpoints,
    "summaries": _summaries,
    "summaries elsewhere": _summaries_elsewhere,
    "profiles": _profiles,
    "step function": _step_function,
    "recovery": _recovery,
    "scaffold": _scaffold,
}


def _run_after_stop(tf: Any) -> None:
    op = count(tf)
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=1)]) as session:
        for _ in range(2):
            session.run(op)


def _run_after_close(tf: Any, singular: bool) -> None:
    op = count(tf)
    kind = tf.train.SingularMonitoredSession if singular else tf.train.MonitoredSession
    with kind() as session:
        raw = session.raw_session() if singular else session
    raw.run(op)


def _close_twice(tf: Any) -> None:
    count(tf)
    session = tf.train.MonitoredSession()
    session.close()
    session.close()


def _op_after_making(tf: Any) -> None:
    count(tf)
    with tf.train.MonitoredSession():
        tf.constant(1.0)


def _two_feeds(tf: Any, by_user: bool) -> None:
    fed = tf.placeholder_with_default(1.0, [])

    class Feeds(tf.train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(None, {fed: 2.0})

    hooks = [Feeds()] if by_user else [Feeds(), Feeds()]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        session.run(fed, {fed: 3.0} if by_user else None)


def _not_ready(tf: Any) -> None:
    count(tf)
    scaffold = tf.train.Scaffold(init_op=tf.no_op())
    tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold))


def _wrong_step_function(tf: Any) -> None:
    count(tf)
    with tf.train.MonitoredSession() as session:
        session.run_step_fn(lambda context: context)


ERRORS: dict[str, Callable[[Any], Any]] = {
    "run after a stop": _run_after_stop,
    "run of the plain session after the end": lambda tf: _run_after_close(tf, True),
    "close twice": _close_twice,
    "an operation made in the block": _op_after_making,
    "two hooks feed a tensor": lambda tf: _two_feeds(tf, False),
    "a hook and the caller feed a tensor": lambda tf: _two_feeds(tf, True),
    "two init ops": lambda tf: [
        tf.add_to_collection("init_op", tf.no_op()),
        tf.add_to_collection("init_op", tf.no_op()),
        tf.train.Scaffold().finalize(),
    ],
    "copy from something else": lambda tf: tf.train.Scaffold(copy_from_scaffold=3),
    "variables without values": _not_ready,
    "ready without an operation": lambda tf: tf.train.SessionManager(
        ready_for_local_init_op=tf.no_op()
    ),
    "a folder and a checkpoint": lambda tf: tf.train.SessionManager().prepare_session(
        "", checkpoint_dir="a", checkpoint_filename_with_path="b"
    ),
    "nothing to initialize by": lambda tf: [
        count(tf),
        tf.train.SessionManager().prepare_session(""),
    ],
    "step function of other arguments": _wrong_step_function,
    "no timing": lambda tf: tf.train.ProfilerHook(),
    "two timings": lambda tf: tf.train.ProfilerHook(1, 2),
    "profile without a step": lambda tf: tf.train.ProfilerHook(1).begin(),
    "summaries of nothing": lambda tf: tf.train.SummarySaverHook(1),
    "counter without timing": lambda tf: tf.train.StepCounterHook(None),
    "counter without a step": lambda tf: tf.train.StepCounterHook().begin(),
    "saver and scaffold": lambda tf: tf.train.CheckpointSaverHook(
        "d", 1, saver=tf.train.Saver(allow_empty=True), scaffold=tf.train.Scaffold()
    ),
}


def fail(tf: Any, name: str) -> None:
    """Runs what fails, in a fresh graph."""
    with tf.Graph().as_default():
        ERRORS[name](tf)
