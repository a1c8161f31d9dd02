"""The tests of `tests/runtime/test_targets.py` that need names of TensorFlow 1."""

from __future__ import annotations

import threading
import time

import estimatorkit as tf


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
