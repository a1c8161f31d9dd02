"""Coordinators and queue runners: threads stop together, and failures are reported."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.graph import Graph
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.queues.queue_kinds import FIFOQueue
from estimatorkit.runtime.session import Session
from estimatorkit.train.queues.queue_runner import (
    QueueRunner,
    add_queue_runner,
    start_queue_runners,
)
from estimatorkit.train.sessions.coordinator import Coordinator, LooperThread
from tests.threads import StartedThreads


@pytest.fixture(autouse=True)
def session(threads: StartedThreads) -> Iterator[Session]:
    with Graph().as_default(), Session() as opened:
        yield opened
    assert threads.have_ended("QueueRunner")


# -- coordinators


def test_threads_stop_together() -> None:
    coord = Coordinator()
    threads = [threading.Thread(target=coord.wait_for_stop) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert not coord.should_stop()
    coord.request_stop()
    coord.join(threads)
    assert coord.should_stop()
    assert coord.joined
    assert not any(thread.is_alive() for thread in threads)


def test_join_raises_first_exception() -> None:
    coord = Coordinator()

    def fail() -> None:
        with coord.stop_on_exception():
            raise KeyError("first")

    thread = threading.Thread(target=fail)
    coord.register_thread(thread)
    thread.start()
    thread.join()
    coord.request_stop(ValueError("second"))
    with pytest.raises(KeyError, match="first"):
        coord.join()
    with pytest.raises(KeyError, match="first"):
        coord.raise_requested_exception()
    with pytest.raises(ValueError, match="third"):
        coord.request_stop(ValueError("third"))  # after `join` it can be reported here only
    coord.clear_stop()
    assert not coord.should_stop()
    coord.join()


def test_clean_stop_is_no_error() -> None:
    coord = Coordinator()
    with coord.stop_on_exception():
        raise errors.OutOfRangeError(None, None, "the end")
    assert coord.should_stop()
    coord.join()
    coord = Coordinator(clean_stop_exception_types=(StopIteration,))
    with coord.stop_on_exception():
        next(iter([]))
    coord.join()


def test_threads_that_do_not_stop_are_named() -> None:
    coord = Coordinator()
    released = threading.Event()
    thread = threading.Thread(target=released.wait, name="laggard")
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="threads still running: laggard"):
        coord.join([thread], stop_grace_period_secs=0.01)
    coord.join([thread], stop_grace_period_secs=0.01, ignore_live_threads=True)
    released.set()
    thread.join()


def test_wait_with_timeout() -> None:
    coord = Coordinator()
    assert not coord.wait_for_stop(0.001)
    coord.request_stop()
    assert coord.wait_for_stop(0.001)


@pytest.mark.parametrize("interval", [None, 0.0001])
def test_looper_runs_until_failure(interval: float | None) -> None:
    coord = Coordinator()
    turns: list[int] = []

    def turn(limit: int) -> None:
        turns.append(len(turns))
        if len(turns) == limit:
            raise errors.AbortedError(None, None, "enough")

    LooperThread.loop(coord, interval, turn, args=(5,))
    with pytest.raises(errors.AbortedError, match="enough"):
        coord.join()
    assert turns == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="must be a Coordinator"):
        LooperThread(None, None)  # type: ignore[arg-type]


# -- queue runners


def counted(session: Session, queue: FIFOQueue, limit: int) -> Any:
    """An operation that puts 0, 1, ... into `queue`, and then says that the input has ended."""
    source = FIFOQueue(limit, int32, [()])
    session.run(source.enqueue_many([range(limit)]))
    session.run(source.close())
    return queue.enqueue(source.dequeue())


def test_queue_closes_when_all_input_has_ended(session: Session) -> None:
    queue = FIFOQueue(2, int32, [()])
    enqueue = counted(session, queue, 10)
    add_queue_runner(QueueRunner(queue, [enqueue] * 3))
    taken = queue.dequeue()
    coord = Coordinator()
    threads = start_queue_runners(session, coord)
    assert [thread.name for thread in threads] == [
        *["QueueRunnerThread-fifo_queue-fifo_queue_enqueue"] * 3,
        "QueueRunnerThread-fifo_queue-close_on_stop",
    ]
    assert sorted(session.run(taken) for _ in range(10)) == list(range(10))
    with pytest.raises(errors.OutOfRangeError, match="is closed and has insufficient"):
        session.run(taken)
    coord.request_stop()
    coord.join(threads)


def test_stop_cancels_waiting_enqueues(session: Session) -> None:
    queue = FIFOQueue(1, float32, [()])
    runner = QueueRunner(queue, [queue.enqueue(1.0)])
    coord = Coordinator()
    threads = runner.create_threads(session, coord, start=True)
    assert session.run(queue.dequeue()) == 1.0
    assert runner.create_threads(session, coord) == []  # they still run
    coord.request_stop()
    coord.join(threads)  # the cancelling is no error: it was asked for
    with pytest.raises(errors.CancelledError, match="is closed"):
        session.run(queue.enqueue(2.0))


def test_coordinator_gets_errors(session: Session) -> None:
    queue = FIFOQueue(5, float32, [[2]])
    vector = placeholder(float32, name="never_fed")
    coord = Coordinator()
    QueueRunner(queue, [queue.enqueue(vector)]).create_threads(session, coord, start=True)
    with pytest.raises(errors.InvalidArgumentError, match="You must feed a value for placeholder"):
        coord.join()


def test_errors_are_kept_without_coordinator(session: Session) -> None:
    queue = FIFOQueue(5, float32, [[2]])
    runner = QueueRunner(queue, [queue.enqueue(placeholder(float32))])
    (thread,) = runner.create_threads(session, start=True)
    thread.join()
    assert [type(error) for error in runner.exceptions_raised] == [errors.InvalidArgumentError]


def test_runners_end_with_session(session: Session) -> None:
    queue = FIFOQueue(1, float32, [()])
    runner = QueueRunner(queue, [queue.enqueue(1.0)])
    add_queue_runner(runner)
    taken = queue.dequeue()
    threads = start_queue_runners(session)
    session.run(taken)
    session.close()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    assert runner.exceptions_raised == []


def test_runner_argument_errors() -> None:
    queue = FIFOQueue(1, float32)
    with pytest.raises(ValueError, match="Must provide queue and enqueue_ops"):
        QueueRunner(queue, [])
    with pytest.raises(TypeError, match="must be a tuple of errors"):
        QueueRunner(
            queue,
            [queue.enqueue(1.0)],
            queue_closed_exception_types=(ValueError,),  # type: ignore[arg-type]
        )


def test_start_queue_runners_needs_session() -> None:
    with ThreadPoolExecutor(1) as other_thread:  # default sessions are a thread's own
        started = other_thread.submit(start_queue_runners)
        with pytest.raises(ValueError, match="No default session is registered"):
            started.result()


def test_session_in_many_threads(session: Session) -> None:
    """Training takes batches while runners fill the queue by device work."""
    queue = FIFOQueue(8, float32, [[3]])
    base = placeholder(float32, [3], name="base")
    source = FIFOQueue(50, int32, [()])
    session.run(source.enqueue_many([range(50)]))
    session.run(source.close())
    row = cast(source.dequeue(), float32) * np.ones(3, np.float32)
    add_queue_runner(QueueRunner(queue, [queue.enqueue(row)] * 2))
    batch = queue.dequeue_many(5)
    total = batch + base
    coord = Coordinator()
    threads = start_queue_runners(session, coord)
    seen = [session.run(total, {base: [1, 1, 1]})[:, 0] for _ in range(10)]
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(1.0, 51.0))
    coord.request_stop()
    coord.join(threads)


def test_monitored_sessions_start_queue_runners() -> None:
    with tf.Graph().as_default():
        value = tf.train.range_input_producer(3, shuffle=False, num_epochs=1).dequeue()
        with tf.train.SingularMonitoredSession() as session:
            assert tf.train.start_queue_runners(session, tf.train.Coordinator()) == []
            assert session.run(value) == 0
