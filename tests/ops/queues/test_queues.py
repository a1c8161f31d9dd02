"""Queues: order, batches, closing, and runs that wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import errors
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.dtypes import bool_, float32, int32, int64, string
from estimatorkit.core.graph import Graph, set_random_seed
from estimatorkit.ops.queues.queue_kinds import (
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    RandomShuffleQueue,
)
from estimatorkit.ops.queues.queues import QueueBase, host_queue
from estimatorkit.runtime.session import Session
from tests.threads import comes_true

# The types that no single call can show (see test_ops.py): FIFOQueueV2, RandomShuffleQueueV2,
# PaddingFIFOQueueV2, PriorityQueueV2, QueueEnqueueV2, QueueEnqueueManyV2, QueueDequeueV2,
# QueueDequeueManyV2, QueueCloseV2, QueueSizeV2, QueueIsClosedV2, QueueEnqueueWhere, QueueClear.


@pytest.fixture(autouse=True)
def session() -> Iterator[Session]:
    with Graph().as_default(), Session() as opened:
        yield opened


class Running:
    """Something that runs in a thread, which the test waits for."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except Exception as error:
            self.error = error

    def join(self) -> Any:
        """The result; raises what the call raised."""
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def waiting(session: Session, queue: QueueBase, call: Callable[[], Any]) -> Running:
    """Starts `call` in a thread, and returns when it stands in line at the queue."""
    held = host_queue(session.state, queue.name)
    before = held.waiting
    running = Running(call)
    assert comes_true(lambda: held.waiting > before)
    return running


def contents(session: Session, queue: QueueBase) -> list[Any]:
    taken = queue.dequeue()
    return [session.run(taken) for _ in range(session.run(queue.size()))]


# -- order and batches


def test_fifo_order(session: Session) -> None:
    queue = FIFOQueue(10, [float32, string])
    session.run(queue.enqueue([1.5, "a"]))
    session.run(queue.enqueue_many([[2.5, 3.5], ["b", "c"]]))
    assert session.run(queue.size()) == 3
    taken = queue.dequeue()
    assert [session.run(taken) for _ in range(3)] == [[1.5, b"a"], [2.5, b"b"], [3.5, b"c"]]


def test_names_match_tensorflow(session: Session) -> None:
    queue = FIFOQueue(10, int32, [()])
    assert queue.name == "fifo_queue"
    assert queue.enqueue(1).name == "fifo_queue_enqueue"
    assert queue.enqueue_many([[1]]).name == "fifo_queue_EnqueueMany"
    assert queue.dequeue().name == "fifo_queue_Dequeue:0"
    assert queue.dequeue_many(2).name == "fifo_queue_DequeueMany:0"
    assert queue.dequeue_up_to(2).name == "fifo_queue_DequeueUpTo:0"
    assert queue.close().name == "fifo_queue_Close"
    assert queue.size().name == "fifo_queue_Size:0"
    assert queue.is_closed().name == "fifo_queue_Is_Closed:0"


def test_batches_have_static_shapes(session: Session) -> None:
    queue = FIFOQueue(10, [float32, int32], [[2], []])
    session.run(queue.enqueue_many([np.arange(8.0, dtype=np.float32).reshape(4, 2), range(4)]))
    pairs, numbers = queue.dequeue_many(3)
    assert (pairs.shape.as_list(), numbers.shape.as_list()) == ([3, 2], [3])
    got = session.run([pairs, numbers])
    np.testing.assert_array_equal(got[0], [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(got[1], [0, 1, 2])
    rest, _ = queue.dequeue_up_to(placeholder(int32, []))
    assert rest.shape.as_list() == [None, 2]
    assert session.run(queue.dequeue_many(0))[0].shape == (0, 2)


def test_enqueued_values_are_copied(session: Session) -> None:
    queue = FIFOQueue(2, float32)
    array = np.zeros(3, np.float32)
    session.run(queue.enqueue(placeholder(float32, [3], name="x")), {"x:0": array})
    array += 1.0
    np.testing.assert_array_equal(session.run(queue.dequeue()), [0, 0, 0])


def test_named_components(session: Session) -> None:
    queue = FIFOQueue(4, [float32, int32], [[], []], names=["x", "y"])
    session.run(queue.enqueue({"x": 1.0, "y": 2}))
    session.run(queue.enqueue_many({"y": [3], "x": [4.0]}))
    assert session.run(queue.dequeue()) == {"x": 1.0, "y": 2}
    assert session.run(queue.dequeue_many(1)) == {"x": [4.0], "y": [3]}
    with pytest.raises(ValueError, match="enqueue a dictionary in a Queue with names"):
        queue.enqueue([1.0, 2])
    with pytest.raises(ValueError, match="Keys in dictionary to enqueue do not match"):
        queue.enqueue({"x": 1.0, "z": 2})


def test_shuffling_follows_seed() -> None:
    orders = []
    for seed in (1, 1, 2):
        with Graph().as_default(), Session() as session:
            set_random_seed(seed)
            queue = RandomShuffleQueue(50, 0, int32, [()])
            session.run(queue.enqueue_many([range(50)]))
            orders.append(session.run(queue.dequeue_many(50)).tolist())
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[2]) == list(range(50)) != orders[2]


def test_shuffling_keeps_minimum_until_closed(session: Session) -> None:
    queue = RandomShuffleQueue(10, 3, int32, [()], seed=7)
    session.run(queue.enqueue_many([range(5)]))
    first = session.run(queue.dequeue_many(2)).tolist()
    third = queue.dequeue()
    running = waiting(session, queue, lambda: session.run(third))
    session.run(queue.close())
    rest = [int(running.join()), *contents(session, queue)]
    assert sorted([*first, *rest]) == list(range(5))


def test_padding_queue_fills_batch(session: Session) -> None:
    queue = PaddingFIFOQueue(10, [int32, string], [[None, 2], [None]])
    numbers, words = placeholder(int32, [None, 2]), placeholder(string, [None])
    put = queue.enqueue([numbers, words])
    session.run(put, {numbers: [[1, 2]], words: ["a", "b"]})
    session.run(put, {numbers: [[3, 4], [5, 6]], words: []})
    got = session.run(queue.dequeue_many(2))
    np.testing.assert_array_equal(got[0], [[[1, 2], [0, 0]], [[3, 4], [5, 6]]])
    assert got[1].tolist() == [[b"a", b"b"], [b"", b""]]


def test_lowest_priority_first(session: Session) -> None:
    queue = PriorityQueue(10, string, [()])
    session.run(queue.enqueue_many([np.array([5, 1, 3, 1]), ["five", "one", "three", "uno"]]))
    assert queue.dtypes == [int64, string]
    priorities, words = session.run(queue.dequeue_many(4))
    assert priorities.tolist() == [1, 1, 3, 5]
    assert words.tolist() == [b"one", b"uno", b"three", b"five"]


def test_queue_from_list(session: Session) -> None:
    queues = [FIFOQueue(3, int32, [()]), FIFOQueue(3, int32, [()])]
    index = placeholder(int32, [])
    chosen = QueueBase.from_list(index, queues)
    session.run(chosen.enqueue(5), {index: 1})
    assert [session.run(queue.size()) for queue in queues] == [0, 1]
    assert session.run(chosen.dequeue_many(1), {index: 1}).tolist() == [5]
    with pytest.raises(TypeError, match="do not have matching component dtypes"):
        QueueBase.from_list(index, [queues[0], FIFOQueue(3, float32)])


def test_enqueue_where(session: Session) -> None:
    queue = FIFOQueue(9, int32, [()])
    keep, several = placeholder(bool_, []), placeholder(bool_, [None])
    single = queue.enqueue_where(keep, 1, many=False)
    session.run(single, {keep: False})
    session.run(single, {keep: True})
    session.run(queue.enqueue_where(keep, [[2, 3]], many=True), {keep: True})
    session.run(queue.enqueue_where(several, [[4, 5, 6]], many=True), {several: [1, 0, 1]})
    session.run(queue.enqueue_where(None, [[7]], many=True))
    assert contents(session, queue) == [1, 2, 3, 4, 6, 7]


def test_shared_name_shares_queue(session: Session) -> None:
    one, other = (FIFOQueue(3, int32, shared_name="jobs") for _ in range(2))
    session.run(one.enqueue(7))
    assert session.run(other.dequeue()) == 7


def test_mismatched_elements_raise(session: Session) -> None:
    queue = FIFOQueue(3, [float32], [[2]])
    with pytest.raises(ValueError, match="incompatible"):
        queue.enqueue([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="wrong number of components"):
        queue.enqueue([[1.0, 2.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="fully defined"):
        FIFOQueue(3, float32, [[None]])
    with pytest.raises(ValueError, match=r"must be < capacity 3"):
        RandomShuffleQueue(3, 3, float32)
    vector = placeholder(float32)
    with pytest.raises(errors.InvalidArgumentError, match="Shape mismatch in tuple component 0"):
        session.run(queue.enqueue(vector), {vector: [1.0]})
    with pytest.raises(errors.InvalidArgumentError, match="require the components to have"):
        session.run(FIFOQueue(3, float32).dequeue_many(2))


# -- closing


def test_closed_queue_returns_remaining_elements(session: Session) -> None:
    queue = FIFOQueue(10, int32, [()])
    session.run(queue.enqueue_many([[1, 2, 3]]))
    assert not session.run(queue.is_closed())
    session.run(queue.close())
    assert session.run(queue.is_closed())
    with pytest.raises(errors.CancelledError, match=r"FIFOQueue 'fifo_queue' is closed\."):
        session.run(queue.enqueue(4))
    with pytest.raises(errors.CancelledError, match="already closed"):
        session.run(queue.close())
    insufficient = r"is closed and has insufficient elements \(requested 5, current size 3\)"
    with pytest.raises(errors.OutOfRangeError, match=insufficient) as raised:
        session.run(queue.dequeue_many(5))
    assert raised.value.op.name == "fifo_queue"
    assert session.run(queue.dequeue()) == 1
    assert session.run(queue.dequeue_up_to(5)).tolist() == [2, 3]
    with pytest.raises(errors.OutOfRangeError, match=r"\(requested 5, current size 0\)"):
        session.run(queue.dequeue_up_to(5))


def test_element_wakes_waiting_dequeue(session: Session) -> None:
    queue = FIFOQueue(10, int32, [()])
    taken, put = queue.dequeue(), queue.enqueue(6)
    running = waiting(session, queue, lambda: session.run(taken))
    session.run(put)
    assert running.join() == 6


def test_closing_wakes_waiting_dequeue(session: Session) -> None:
    queue = FIFOQueue(10, int32, [()])
    batch, put, close = queue.dequeue_many(3), queue.enqueue(6), queue.close()
    session.run(put)
    running = waiting(session, queue, lambda: session.run(batch))
    session.run(close)
    with pytest.raises(errors.OutOfRangeError, match=r"\(requested 3, current size 1\)"):
        running.join()
    assert contents(session, queue) == [6]


def test_batch_larger_than_capacity(session: Session) -> None:
    queue = FIFOQueue(2, int32, [()])
    batch, put = queue.dequeue_many(6), queue.enqueue_many([range(7)])
    running = waiting(session, queue, lambda: session.run(batch))
    session.run(put)
    assert running.join().tolist() == [0, 1, 2, 3, 4, 5]
    assert contents(session, queue) == [6]


def test_waiting_runs_are_served_in_order(session: Session) -> None:
    queue = FIFOQueue(10, int32, [()])
    batch, single, put = queue.dequeue_many(3), queue.dequeue(), queue.enqueue_many([range(4)])
    first = waiting(session, queue, lambda: session.run(batch))
    second = waiting(session, queue, lambda: session.run(single))
    session.run(put)
    assert first.join().tolist() == [0, 1, 2]
    assert second.join() == 3


def test_close_waits_for_pending_enqueues(session: Session) -> None:
    queue = FIFOQueue(1, int32, [()])
    put, close, taken = queue.enqueue_many([[1, 2]]), queue.close(), queue.dequeue()
    putting = waiting(session, queue, lambda: session.run(put))
    closing = waiting(session, queue, lambda: session.run(close))
    assert not session.run(queue.is_closed())
    assert session.run(taken) == 1
    putting.join()
    closing.join()
    assert session.run(taken) == 2
    with pytest.raises(errors.OutOfRangeError):
        session.run(taken)


def test_close_cancels_pending_enqueues(session: Session) -> None:
    queue = FIFOQueue(1, int32, [()])
    put, cancel = queue.enqueue_many([[1, 2]]), queue.close(cancel_pending_enqueues=True)
    putting = waiting(session, queue, lambda: session.run(put))
    session.run(cancel)
    with pytest.raises(errors.CancelledError, match="Enqueue operation was cancelled"):
        putting.join()
    session.run(cancel)  # closing once more is no error
    assert contents(session, queue) == [1]


@pytest.mark.parametrize("what", ["put", "take"])
def test_closing_session_cancels_waiting_runs(session: Session, what: str) -> None:
    queue = FIFOQueue(1, int32, [()])
    op = queue.enqueue_many([[1, 2]]) if what == "put" else queue.dequeue()
    running = waiting(session, queue, lambda: session.run(op))
    session.close()
    with pytest.raises(errors.CancelledError, match="operation was cancelled"):
        running.join()


def test_cancelled_run_stops_waiting(session: Session) -> None:
    queue = FIFOQueue(1, int32, [()])
    taken = queue.dequeue()
    running = waiting(session, queue, lambda: session.run(taken))
    session.state.cancel()
    with pytest.raises(errors.CancelledError):
        running.join()


def test_concurrent_producers_and_consumers_lose_nothing(session: Session) -> None:
    queue = FIFOQueue(3, int32, [()])
    value = placeholder(int32, [])
    put, batch = queue.enqueue(value), queue.dequeue_many(5)
    producers = [
        Running(lambda n=n: [session.run(put, {value: n * 10 + i}) for i in range(10)])
        for n in range(4)
    ]
    consumers = [
        Running(lambda: np.concatenate([session.run(batch) for _ in range(4)])) for _ in range(2)
    ]
    for producer in producers:
        producer.join()
    assert sorted(np.concatenate([consumer.join() for consumer in consumers])) == list(range(40))
