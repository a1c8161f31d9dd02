"""Sessions used by several threads: state is exchanged under a lock, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from tests.threads import run_together


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_no_update_is_lost(session: tf.Session) -> None:
    count = tf.get_variable("count", (), tf.int64, initializer=tf.zeros_initializer())
    rows = tf.get_variable("rows", (4,), initializer=tf.zeros_initializer())
    add = tf.assign_add(count, 1, use_locking=True)
    scatter = tf.scatter_add(rows, [1, 3], [1.0, 2.0])
    session.run(tf.global_variables_initializer())

    def work() -> None:
        for _ in range(50):
            session.run([add, scatter])
            session.run(add)

    run_together([work] * 8)
    assert session.run(count) == 800
    assert session.run(rows).tolist() == [0, 400, 0, 800]


def test_concurrent_counts_are_unique(session: tf.Session) -> None:
    count = tf.get_variable("count", (), tf.int64, initializer=tf.zeros_initializer())
    add = tf.assign_add(count, 1)
    session.run(count.initializer)
    seen: list[int] = []
    run_together([lambda: seen.extend(int(session.run(add)) for _ in range(50))] * 8)
    assert sorted(seen) == list(range(1, 401))


@pytest.mark.slow
def test_concurrent_run_save_restore_and_assign(session: tf.Session, tmp_path: Path) -> None:
    weights = tf.get_variable("weights", (64, 64), initializer=tf.ones_initializer())
    same = tf.get_variable("same", (64,), initializer=tf.zeros_initializer())
    text = tf.get_variable("text", initializer=tf.constant("a"))
    mixed = tf.assign(weights, tf.matmul(weights, weights) / 64.0)
    counted = tf.assign_add(same, tf.ones(64))
    noise = tf.random_normal((64,))
    written = tf.assign(text, tf.strings.as_string(tf.reduce_sum(same)))
    queue = tf.FIFOQueue(5, tf.float32, [(64,)])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.random_uniform((64,)))] * 2)
    taken = queue.dequeue()
    session.run(tf.global_variables_initializer())
    first = tf.train.Saver().save(session, str(tmp_path / "first" / "model"))
    saver = tf.train.Saver(max_to_keep=2)
    coordinator = tf.train.Coordinator()
    threads = runner.create_threads(session, coordinator, start=True)

    def save() -> None:
        for number in range(8):
            path = saver.save(session, str(tmp_path / "model"), global_step=number)
            found = tf.train.load_checkpoint(path).get_tensor("same")
            assert (found == found[0]).all()  # of one moment

    def restore() -> None:
        for _ in range(8):
            saver.restore(session, first)

    def read() -> None:
        for _ in range(40):
            values = same.eval(session)
            assert (values == values[0]).all()
            assert np.isfinite(session.run(weights)).all()

    def load() -> None:
        for number in range(40):
            same.load(np.full(64, number, np.float32), session)

    def run(fetches: Any) -> Any:
        return lambda: [session.run(fetches) for _ in range(40)]

    run_together(
        [
            save,
            restore,
            read,
            load,
            run([mixed, noise]),
            run([counted, taken]),
            run([written, noise]),
            run([taken, mixed]),
        ]
    )
    coordinator.request_stop()
    coordinator.join(threads)


def test_fetched_values_do_not_change(session: tf.Session) -> None:
    variable = tf.get_variable("variable", (1000,), initializer=tf.ones_initializer())
    double = tf.assign(variable, variable * 2)
    session.run(variable.initializer)
    (before,) = session.state.read(["variable"])
    session.run(double)
    (after,) = session.state.read(["variable"])
    session.run(double)
    assert (before == 1).all()
    assert (after == 2).all()
    assert (session.run(variable) == 4).all()


def test_run_copies_values_read_elsewhere(session: tf.Session) -> None:
    variable = tf.get_variable("variable", (3,), initializer=tf.ones_initializer())
    double = tf.assign(variable, variable * 2)
    session.run([variable.initializer])
    session.run(double)

    class Slow:
        """A value that is still read when the next run begins."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            session.run(double)
            return np.array(held)

    (held,) = session.state.take(["variable"])
    found = session.state.held.read([], lambda _: [held, Slow()], lambda: None)
    assert found[1].tolist() == [2, 2, 2]
    assert session.run(variable).tolist() == [4, 4, 4]


def test_concurrent_equal_runs_compile_once(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, (3,))
    y = tf.tanh(x, name="once")
    session.state.executor = "xla"
    run_together([lambda: session.run(y, {x: [1, 2, 3]})] * 8)
    assert session.state.compilations["once"] == 1


def test_runs_while_graph_grows(session: tf.Session) -> None:
    x = tf.constant(2.0)
    results: list[float] = []

    def work() -> None:
        with session.graph.as_default():
            for number in range(5):
                results.append(float(session.run(x * float(number))))

    run_together([work] * 4)
    assert sorted(results) == sorted([0.0, 2.0, 4.0, 6.0, 8.0] * 4)


def test_close_interrupts_other_threads(session: tf.Session) -> None:
    variable = tf.get_variable("variable", initializer=0.0)
    add = tf.assign_add(variable, 1.0)
    queue = tf.FIFOQueue(3, tf.float32, [()])
    taken = queue.dequeue()
    session.run(variable.initializer)
    session.run(add)
    ends: list[str] = []
    begun = threading.Semaphore(0)

    def work(fetch: Any) -> None:
        try:
            while True:
                begun.release()
                session.run(fetch)
        except (RuntimeError, errors.CancelledError) as error:
            ends.append(type(error).__name__)

    def close() -> None:
        for _ in range(6):
            begun.acquire()
        session.close()

    run_together([lambda: work(add)] * 2 + [lambda: work(taken)] * 2 + [close])
    assert len(ends) == 4
    with pytest.raises(RuntimeError, match=r"Attempted to use a closed Session\."):
        session.run(add)
