"""Embedding tables on parameter servers: each row is sent once, and values are unchanged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.distribute.tasks.row_messages import rounded, widened
from estimatorkit.distribute.tasks.rpc import RunPrograms
from estimatorkit.distribute.tasks.task_channel import TaskChannel
from tests.distribute.test_step_leases import COUNTS, HERE, HOLDS, Servers, servers
from tests.sweep import sweep

__all__ = ["servers"]

IDS = np.array([[3] * 20 + [8] * 9 + [5, 3, 8], [2] * 31 + [3]], np.int64)
WIDTH = 64


def graph_of(optimizer: Any, place: str, shards: int) -> tuple[Any, Any, Any]:
    """The sum of rows seen, a step, and the counter; `place` holds the table."""
    with tf.device(place):
        step = tf.train.get_or_create_global_step()
        table = tf.get_variable(
            "table",
            [40, WIDTH],
            initializer=tf.ones_initializer(),
            partitioner=tf.fixed_size_partitioner(shards) if shards > 1 else None,
        )
    with tf.device(HERE):
        elements = tf.data.Dataset.from_tensor_slices(IDS).repeat()
        ids = tf.data.make_one_shot_iterator(elements).get_next()
        rows = tf.nn.embedding_lookup(table, ids)
        weights = tf.range(32, dtype=tf.float32)[:, None]
        loss = tf.reduce_sum(tf.square(rows) * weights)
    return loss, optimizer.minimize(loss, step), step


OPTIMIZERS = [tf.train.GradientDescentOptimizer, tf.train.AdagradOptimizer, tf.train.AdamOptimizer]


@pytest.mark.multiprocess
@sweep("optimizer", OPTIMIZERS, quick=1)
@sweep("shards", [4, 1], quick=1)
@pytest.mark.parametrize("rounds", [False, True])
def test_duplicate_ids_are_sent_once(
    servers: Servers,
    optimizer: Any,
    shards: int,
    rounds: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses = []
    moved: Counter[str] = Counter()
    send, receive = TaskChannel.send, TaskChannel.receive

    def sent(channel: Any, request: Any) -> None:
        if isinstance(request, RunPrograms):
            moved["out"] += sum(array.nbytes for array in request.arrays)
        send(channel, request)

    def received(channel: Any, *rest: Any) -> Any:
        reply = receive(channel, *rest)
        moved["in"] += sum(array.nbytes for array in reply.arrays)
        return reply

    with tf.Graph().as_default(), tf.Session() as session:
        loss, train, _ = graph_of(optimizer(1e-3), HERE, shards)
        session.run(tf.global_variables_initializer())
        expected = [session.run([loss, train])[0] for _ in range(6)]
    graph = graph_of(optimizer(1e-3), HOLDS, shards)
    _, loop = servers.loop("/job:worker/task:0", graph, bfloat16_rows=rounds)
    assert loop.one_round_trip
    losses += list(loop.run(2).every[0])
    monkeypatch.setattr(TaskChannel, "send", sent)
    monkeypatch.setattr(TaskChannel, "receive", received)
    losses += list(loop.run(4).every[0])
    if rounds:  # the rows' norms, whose steps are off by a 256th
        norms = np.sqrt(expected)
        np.testing.assert_allclose(np.sqrt(losses), norms, atol=norms.max() / 256)
        assert not np.allclose(losses, expected, 1e-5)
    else:
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
    # Of 32 rows a step, 4 at most are distinct, which travel as 16: ids, and 0 of those elsewhere.
    most = 16 * shards * ((2 if rounds else 4) * WIDTH + 8)
    assert 0 < moved["in"] <= 4 * most
    assert 0 < moved["out"] <= 4 * (most + 16 * 8 * shards + 64)


@pytest.mark.multiprocess
@pytest.mark.parametrize("ahead", [0, 1])
def test_task_without_a_row_of_the_step_is_not_asked(
    servers: Servers, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Odd ids are rows of the part beside the counter, even ones of the other task's."""
    ids = np.array([[1, 3, 3], [1, 7, 5], [2, 4, 4], [5, 5, 1], [2, 1, 6], [9, 9, 7]])
    asked: list[str] = []
    send = TaskChannel.send

    def sent(channel: Any, request: Any) -> None:
        if isinstance(request, RunPrograms):
            asked.append(channel.connection.task)
        send(channel, request)

    def graph_on(device: Any) -> tuple[Any, Any, Any]:
        with tf.device(device):
            step = tf.train.get_or_create_global_step()
            table = tf.get_variable(
                "table",
                [10, WIDTH],
                initializer=tf.random_uniform_initializer(seed=1),
                partitioner=tf.fixed_size_partitioner(2),
            )
        with tf.device(HERE):
            elements = tf.data.Dataset.from_tensor_slices(ids)
            rows = tf.nn.embedding_lookup(
                table, tf.data.make_one_shot_iterator(elements).get_next()
            )
            loss = tf.reduce_sum(tf.square(rows))
        return loss, tf.train.AdagradOptimizer(0.1).minimize(loss, step), step

    with tf.Graph().as_default(), tf.Session() as session:
        loss, train, _ = graph_on(HERE)
        session.run(tf.global_variables_initializer())
        expected = [session.run([loss, train])[0] for _ in ids]
    setter = tf.train.replica_device_setter(ps_tasks=2)
    _, loop = servers.loop("/job:worker/task:0", graph_on(setter), ahead=ahead)
    monkeypatch.setattr(TaskChannel, "send", sent)
    found = loop.run(len(ids)).every[0]
    if not ahead:
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    # The rows of two steps: with two in flight, one request updates those and reads these.
    assert asked.count(HOLDS) == 4 - ahead
    assert asked.count(COUNTS) >= len(ids)


@given(
    arrays(
        np.float32,
        (4, 3),
        elements=st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False),
    )
)
def test_rounded_rows_are_off_by_a_256th(rows: NDArray[np.float32]) -> None:
    sent = rounded(rows)
    assert 2 * sent.nbytes == rows.nbytes
    back = widened(sent, tf.float32)
    assert back.dtype == np.float32
    assert (np.abs(back.astype(np.float64) - rows) <= np.abs(rows.astype(np.float64)) / 256).all()
    whole = np.arange(3)
    assert rounded(whole) is whole
    assert widened(sent, tf.bfloat16) is sent
