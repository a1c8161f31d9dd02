"""Two steps in flight: each lacks one update of its own, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.distribute.tasks.rpc import RunPrograms
from estimatorkit.distribute.tasks.task_channel import TaskChannel
from tests.distribute.test_step_leases import HERE, HOLDS, Servers, servers

__all__ = ["servers"]

WORKER = "/job:worker/task:0"
ROWS, WIDTH, RATE = 3000, 64, 0.25
pytestmark = pytest.mark.multiprocess


def counting(elements: int = 100, keeps: bool = False) -> tuple[Any, Any, Any]:
    """The weight that a step sees, a step that adds one to it, and the counter."""
    with tf.device(HOLDS):
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        twice = weight.read_value() * 2.0
    with tf.device(HERE):
        data = tf.data.Dataset.from_tensor_slices(np.ones(elements, np.float32))
        one = tf.data.make_one_shot_iterator(data).get_next() + 0.0 * twice
    with tf.device(HOLDS):
        more = one + 0.0 * twice if keeps else one
        with tf.control_dependencies([tf.assign_add(weight, more)]):
            train = tf.assign_add(step, 1)
    return twice / 2.0, train.op, step


def test_step_reads_before_update_of_step_before(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, loop = servers.loop(WORKER, counting(), ahead=1)
    sent: Counter[type] = Counter()
    send = TaskChannel.send

    def counted(channel: Any, request: Any) -> None:
        sent[type(request)] += 1
        send(channel, request)

    monkeypatch.setattr(TaskChannel, "send", counted)
    done = loop.run(6)
    assert done.every[0].tolist() == [0, 0, 1, 2, 3, 4]
    assert sent[RunPrograms] == 6 + 2 + 1  # the first two only read; one reads the count
    assert int(done.after[0]) == 6
    assert loop.run(2).every[0].tolist() == [6, 6]  # nothing is in flight between calls


def test_all_steps_until_the_end_of_the_input_update(servers: Servers) -> None:
    session, loop = servers.loop(WORKER, counting(elements=5), ahead=1)
    done = loop.run(9)
    assert (done.count, done.ended, int(done.after[0])) == (5, True, 5)
    with tf.variable_scope("", reuse=True):
        assert session.run(tf.get_variable("weight", [])) == 5.0


@pytest.mark.parametrize("ahead", [0, 1])
def test_count_ends_where_it_is_told(servers: Servers, ahead: int) -> None:
    _, loop = servers.loop(WORKER, counting(), ahead=ahead)
    count = 0
    while count < 7:
        count = int(loop.run(50, 7).after[0])
    assert count == 7


def test_values_that_a_task_keeps_are_those_of_one_step(servers: Servers) -> None:
    _, loop = servers.loop(WORKER, counting(keeps=True), ahead=1)
    assert loop.run(4).every[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("ahead", [0, 1])
def test_large_arrays_are_of_their_step(servers: Servers, ahead: int) -> None:
    """Rows and parameters in shared memory, which the next reply overwrites."""
    random = np.random.default_rng(1)
    ids = random.integers(0, ROWS, (8, 700))
    initial = random.normal(size=(ROWS, WIDTH)).astype(np.float32)
    scale = random.normal(size=(WIDTH, 512)).astype(np.float32)
    with tf.device(HOLDS):
        step = tf.train.get_or_create_global_step()
        table = tf.get_variable("table", initializer=initial)
        dense = tf.get_variable("dense", initializer=scale)
    with tf.device(HERE):
        data = tf.data.Dataset.from_tensor_slices(ids)
        rows = tf.nn.embedding_lookup(table, tf.data.make_one_shot_iterator(data).get_next())
        loss = tf.reduce_sum(rows**2) / 2.0 + tf.reduce_sum(dense**2) / 2.0
        total = tf.reduce_sum(rows) + tf.reduce_sum(dense)
    train = tf.train.GradientDescentOptimizer(RATE).minimize(loss, step)
    _, loop = servers.loop(WORKER, (total, train, step), ahead=ahead)
    found = loop.run(8).every[0]

    expected = []
    states = [(initial.astype(np.float64), scale.astype(np.float64))]
    for number, chosen in enumerate(ids):
        read_table, read_dense = states[max(0, number - ahead)]
        expected.append(read_table[chosen].sum() + read_dense.sum())
        new = states[-1][0].copy()
        np.subtract.at(new, chosen, RATE * read_table[chosen])
        states.append((new, states[-1][1] - RATE * read_dense))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=0.05)


def test_config() -> None:
    assert tf.estimator.RunConfig().steps_in_flight == 1
    assert tf.estimator.RunConfig(steps_in_flight=2, max_steps_ahead=1).steps_in_flight == 2
    for wrong in ({"steps_in_flight": 3}, {"steps_in_flight": 0}):
        with pytest.raises(ValueError, match="steps_in_flight"):
            tf.estimator.RunConfig(**wrong)
    with pytest.raises(ValueError, match="1 with max_steps_ahead=0"):
        tf.estimator.RunConfig(steps_in_flight=2, max_steps_ahead=0)
