"""Endless runs: timeouts, closed sessions and Ctrl-C end loops on device and host."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.xla import cancellation


def endless(step: Callable[[Any], Any] | None = None) -> tuple[tf.Variable, tf.Tensor]:
    """A variable that counts, and a loop that never ends; on the host it calls `step`."""
    v = tf.get_variable("v", initializer=0.0)

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i * 1 if step is None else tf.py_func(step, [i], tf.int32)

    shapes = [tf.TensorShape(None)]
    return v, tf.while_loop(lambda i: tf.reduce_sum(i) < 1, body, [tf.constant(0)], shapes)


def in_a_loop() -> None:
    """Returns when a compiled loop runs."""
    while not cancellation._running:
        threading.Event().wait(0.001)


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt: a shell's background jobs start with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_timeout_interrupts_loop() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v, result = endless()
        session.run(v.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(result, options=tf.RunOptions(timeout_in_ms=100))
        assert session.run(v) > 0
        assert session.run(v.assign(7.0)) == 7


def test_other_runs_proceed_during_loop() -> None:
    with tf.Graph().as_default():
        session = tf.Session()
        v, result = endless()
        other = tf.get_variable("other", initializer=1.0)
        x = tf.placeholder(tf.float32)
        session.run([v.initializer, other.initializer])
        ends: list[str] = []

        def loop() -> None:
            try:
                session.run(result)
            except tf.errors.CancelledError as error:
                ends.append(type(error).__name__)

        thread = threading.Thread(target=loop)
        thread.start()
        in_a_loop()
        assert session.run(x * 2, {x: 3}) == 6
        assert session.run(other.assign_add(1.0)) == 2
        assert session.run(other) == 2
        for op in (v, v.assign(1.0)):  # it is the loop's
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(op, options=tf.RunOptions(timeout_in_ms=100))
        assert thread.is_alive()
        session.close()
        thread.join()
        assert ends == ["CancelledError"]


def test_timeout_interrupts_host_loop() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v, result = endless(lambda x: x)
        session.run(v.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(result, options=tf.RunOptions(timeout_in_ms=100))


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_interrupts_loop() -> None:
    before = signal.getsignal(signal.SIGINT)
    with tf.Graph().as_default(), tf.Session() as session:
        v, result = endless()
        session.run(v.initializer)
        thread = threading.Thread(target=lambda: (in_a_loop(), interrupt()))
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            session.run(result)
        thread.join()
        assert session.run(v) > 0
        assert session.run(v.assign(7.0)) == 7
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_interrupts_host_loop() -> None:
    calls: list[int] = []

    def step(x: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            interrupt()
        return x

    with tf.Graph().as_default(), tf.Session() as session:
        v, result = endless(step)
        session.run(v.initializer)
        with pytest.raises(KeyboardInterrupt):
            session.run(result)
        assert session.run(v.assign(7.0)) == 7


def test_config_timeout_applies_to_every_run() -> None:
    config = tf.ConfigProto(operation_timeout_in_ms=100)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        v, result = endless()
        session.run(v.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError, match="Timed out"):
            session.run(result)


def test_closing_session_interrupts_loop_of_another_thread() -> None:
    with tf.Graph().as_default():
        v, result = endless()
        session = tf.Session()
        session.run(v.initializer)
        found: list[Exception] = []

        def run() -> None:
            try:
                session.run(result)
            except tf.errors.CancelledError as error:
                found.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        in_a_loop()
        session.close()
        thread.join()
    assert "the session was closed" in str(found[0])


@pytest.mark.slow
def test_timeout_interrupts_gradients_and_function_loops() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder_with_default(1.5, [])

        def loop() -> Any:
            return tf.while_loop(lambda i, _: i < 1, lambda i, y: (i * 1, y * x + 1), [0, x])[1]

        chosen = tf.cond(x > 0, loop, lambda: x)
        mapped = tf.map_fn(lambda y: y + loop(), tf.constant([1.0, 2.0]))
        options = tf.RunOptions(timeout_in_ms=100)
        for fetch in (tf.gradients(loop(), x), chosen, mapped):
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(fetch, options=options)


def test_cancellation_checks_are_rare_and_keep_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = cancellation.LoopWatch.iterations

    def counted(self: cancellation.LoopWatch, done: int) -> int:
        asked.append(done)
        return answer(self, done)

    monkeypatch.setattr(cancellation.LoopWatch, "iterations", counted)
    with tf.Graph().as_default(), tf.Session() as session:
        n = tf.placeholder(tf.int32, [])
        start = [0, tf.zeros([100])]
        result = tf.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, x + 1.0), start)[1]
        for count, questions in ((255, 0), (256, 1), (1000, 3)):
            asked.clear()
            np.testing.assert_array_equal(session.run(result, {n: count}), np.full(100, count))
            assert len(asked) <= questions
