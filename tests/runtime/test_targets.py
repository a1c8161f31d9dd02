"""Sessions of one target share variables, tables and queues; other sessions do not."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import estimatorkit as tf


def _counting() -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
    graph = tf.Graph()
    with graph.as_default():
        count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer())
        return graph, tf.assign_add(count, 1), count.initializer


def test_sessions_share_variables() -> None:
    server = tf.train.Server.create_local_server()
    graph, more, initial = _counting()
    with tf.Session(server.target, graph) as first:
        assert first.sess_str == server.target
        first.run(initial)
        assert first.run(more) == 1
        with tf.Session(server.target, graph) as second:
            assert second.run(more) == 2
        assert first.run(more) == 3  # the other one's end took nothing
    other_graph, other_more, _ = _counting()
    with tf.Session(server.target, other_graph) as third:
        assert third.run(other_more) == 4
    with (
        tf.Session(tf.train.Server.create_local_server().target, graph) as apart,
        pytest.raises(tf.errors.FailedPreconditionError, match="count"),
    ):
        apart.run(more)
    with (
        tf.Session(graph=graph) as alone,
        pytest.raises(tf.errors.FailedPreconditionError, match="count"),
    ):
        alone.run(more)


def test_reset_clears_target() -> None:
    target = tf.train.Server.create_local_server().target
    graph, more, initial = _counting()
    with tf.Session(target, graph) as session:
        session.run(initial)
        tf.Session.reset(target)
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value count"):
            session.run(more)


def test_sessions_share_queues_and_tables() -> None:
    target = tf.train.Server.create_local_server().target
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, tf.int32, [[]], name="numbers")
        enter = queue.enqueue_many([[1, 2, 3]])
        leave = queue.dequeue()
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a"], [7], tf.string, tf.int64), -1, name="table"
        )
        found = table.lookup(tf.constant(["a"]))
        with tf.Session(target) as session:
            session.run([tf.tables_initializer(), enter])
            assert session.run(leave) == 1
        with tf.Session(target) as session:
            assert session.run(leave) == 2
            assert session.run(found).tolist() == [7]


def test_sessions_of_one_target_train_concurrently() -> None:
    target = tf.train.Server.create_local_server().target
    graph = tf.Graph()
    with graph.as_default():
        weights = tf.get_variable("weights", [1000], initializer=tf.zeros_initializer())
        step = tf.assign_add(weights, tf.ones([1000])).op
        initial = weights.initializer
    with tf.Session(target, graph) as session:
        session.run(initial)

        def work() -> None:
            with tf.Session(target, graph) as own:
                for _ in range(50):
                    own.run(step)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(session.run(weights), np.full(1000, 150, np.float32))


def test_closing_session_cancels_only_its_own_waits() -> None:
    target = tf.train.Server.create_local_server().target
    with tf.Graph().as_default() as graph:
        queue = tf.FIFOQueue(10, tf.int32, [[]], name="numbers")
        leave, enter = queue.dequeue(), queue.enqueue(5)
        waiting, other = tf.Session(target, graph), tf.Session(target, graph)
        ended: list[type] = []

        def wait() -> None:
            try:
                waiting.run(leave)
            except (tf.errors.CancelledError, RuntimeError) as error:
                ended.append(type(error))

        thread = threading.Thread(target=wait)
        thread.start()
        waiting.close()
        thread.join(120)
        assert not thread.is_alive()
        assert ended
        other.run(enter)
        assert other.run(leave) == 5
        other.close()


def test_unknown_target_raises() -> None:
    with pytest.raises(tf.errors.NotFoundError, match="No session factory") as caught:
        tf.Session("nowhere://localhost:2222")
    assert "train.Server" in str(caught.value)
    with pytest.raises(ValueError, match=r"No such (job|task)"):
        tf.train.Server({"ps": ["localhost:1"]}, "worker", 0)
    with pytest.raises(ValueError, match=r"No such (job|task)"):
        tf.train.Server({"ps": ["localhost:1"]}, "ps", 1)


def test_monitored_session_of_target() -> None:
    target = tf.train.Server.create_local_server().target
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        more = tf.assign_add(step, 1)
        with tf.train.MonitoredTrainingSession(
            target, hooks=[tf.train.StopAtStepHook(3)]
        ) as session:
            while not session.should_stop():
                session.run(more)
        with tf.Session(target) as session:
            assert session.run(step) == 3


def test_chief_and_worker_train_one_model() -> None:
    """Each with a graph of its own, as processes of a cluster have."""
    target = tf.train.Server.create_local_server().target
    reached: dict[bool, list[float]] = {True: [], False: []}
    ready = threading.Event()

    def train(is_chief: bool) -> None:
        if not is_chief:
            ready.wait(60)  # else it would look again after 30 seconds
        with tf.Graph().as_default():
            weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(8.0))
            step = tf.train.get_or_create_global_step()
            loss = tf.square(weight - 3.0)
            update = tf.train.GradientDescentOptimizer(0.05).minimize(loss, step)
            with tf.train.MonitoredTrainingSession(
                target, is_chief, hooks=[tf.train.StopAtStepHook(100)], max_wait_secs=60
            ) as session:
                while not session.should_stop():
                    reached[is_chief].append(session.run([update, loss])[1])
                    ready.set()
                    while is_chief and not reached[False]:
                        time.sleep(0.01)

    threads = [threading.Thread(target=train, args=(chief,)) for chief in (False, True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert min(map(len, reached.values())) > 0
    assert sum(map(len, reached.values())) >= 100
    # Whoever made the last step; the other may have been off the processor for the last ones.
    assert min(values[-1] for values in reached.values()) < 1e-2
    with tf.Graph().as_default():
        steps = tf.train.get_or_create_global_step()
        with tf.Session(target) as session:
            assert 100 <= session.run(steps) <= 102
