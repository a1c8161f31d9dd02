"""`dynamically_sharded` in one process, and the data side of a shared queue."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.cursor import Cursor
from estimatorkit.data.sharded_dataset import (
    Order,
    ShardedDataset,
    Unit,
    has_more,
    report_trained,
    restore_shards,
    return_shards,
    shard_states,
)
from estimatorkit.distribute import dynamically_sharded
from estimatorkit.distribute.dynamic_sharding import ShardQueue
from estimatorkit.distribute.tasks.rpc import ShardQueueState
from estimatorkit.runtime.state import ProcessState


def three_of(unit: Any) -> Dataset:
    """Three elements of a unit: 20, 21, 22 of 2."""
    return Dataset.range(3).map(lambda number: 10 * unit + number)


def numbers(dataset: Dataset) -> list[int]:
    return [int(each) for each in dataset]


# -- one process


def test_shards_are_ordered_without_seed() -> None:
    found = numbers(dynamically_sharded(Dataset.range(3), three_of, epochs=2))
    assert found == [0, 1, 2, 10, 11, 12, 20, 21, 22] * 2


@pytest.mark.slow
def test_seed_shuffles_each_epoch_differently() -> None:
    data = dynamically_sharded(Dataset.range(20), three_of, epochs=2, seed=3)
    found = np.array(numbers(data)).reshape(2, 20, 3)
    assert (found % 10 == [0, 1, 2]).all()
    first, second = (epoch[:, 0] // 10 for epoch in found)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first.tolist() != second.tolist()
    assert first.tolist() != sorted(first)
    assert numbers(data) == found.ravel().tolist()


def test_shards_of_any_type_and_size() -> None:
    units = Dataset.from_tensor_slices({"name": ["a", "b", "c"], "count": [2, 0, 1]})
    data = dynamically_sharded(
        units, lambda unit: Dataset.from_tensors(unit["name"]).repeat(unit["count"])
    )
    assert list(data) == [b"a", b"a", b"c"]


def test_unknown_number_of_shards() -> None:
    units = Dataset.range(10).filter(lambda number: tf.equal(number % 3, 0))
    assert numbers(dynamically_sharded(units, three_of))[::3] == [0, 30, 60, 90]
    assert numbers(dynamically_sharded(Dataset.range(0), three_of)) == []


def test_shard_shuffle_is_equal_in_all_processes() -> None:
    data = dynamically_sharded(Dataset.range(50).shuffle(50), Dataset.from_tensors)
    first, second = numbers(data), numbers(data)
    assert first == second
    assert sorted(first) == list(range(50))
    assert first != sorted(first)


def test_shuffle_within_shard_differs_between_epochs() -> None:
    data = dynamically_sharded(
        Dataset.range(1), lambda unit: Dataset.range(30).shuffle(30, seed=1), epochs=2
    )
    found = numbers(data)
    assert sorted(found[:30]) == sorted(found[30:]) == list(range(30))
    assert found[:30] != found[30:]


def test_endless_repeat() -> None:
    data = dynamically_sharded(Dataset.range(2), three_of, epochs=None)
    assert numbers(data.take(20)) == ([0, 1, 2, 10, 11, 12] * 4)[:20]


def test_transformations_afterwards_in_one_process() -> None:
    data = dynamically_sharded(Dataset.range(4), three_of).batch(5).prefetch(1).repeat(2)
    found = [each.tolist() for each in data]
    assert found == [[0, 1, 2, 10, 11], [12, 20, 21, 22, 30], [31, 32]] * 2


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 27), st.integers(1, 9), st.integers(1, 9))
def test_saved_position_resumes(read: int, one: int, other: int) -> None:
    data = dynamically_sharded(Dataset.range(4), three_of, epochs=2, seed=1)
    expected = numbers(data)
    iterator = data.make_block_iterator(0)
    for _ in range(min(read, len(expected)) // one):
        iterator.next_block(one)
    state = json.loads(json.dumps(iterator.get_state()))
    again = data.make_block_iterator(0)
    again.set_state(state)
    rest = expected[min(read, len(expected)) // one * one :]
    found: list[int] = []
    while len(found) < len(rest):
        found += again.next_block(other)[0].tolist()
    assert found == rest
    with pytest.raises(OutOfRangeError):
        again.next_block(1)


@pytest.mark.slow
def test_training_resumes(tmp_path: Path) -> None:
    def data() -> Dataset:
        return dynamically_sharded(
            Dataset.range(8), lambda unit: three_of(unit).map(lambda x: x % 16), epochs=3, seed=2
        )

    def model_fn(features: Any, mode: str) -> Any:
        counts = tf.get_variable("counts", [16], initializer=tf.zeros_initializer())
        step = tf.train.get_global_step()
        with tf.control_dependencies([tf.scatter_add(counts, tf.reshape(features, [1]), [1.0])]):
            train_op = step.assign_add(1)
        loss = tf.reduce_sum(tf.cast(features, tf.float32))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    for steps in (10, 11, None):
        config = tf.estimator.RunConfig(str(tmp_path), save_summary_steps=None)
        estimator = tf.estimator.Estimator(model_fn, config=config).train(data, steps=steps)
    assert estimator.get_variable_value("global_step") == 8 * 3 * 3
    expected = Counter(numbers(data()))
    assert estimator.get_variable_value("counts").tolist() == [expected[n] for n in range(16)]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: dynamically_sharded(Dataset.range(2).repeat(), three_of),
            ValueError,
            "is infinite",
        ),
        (
            lambda: dynamically_sharded(Dataset.range(2), lambda unit: unit),
            TypeError,
            "must return a",
        ),
        (
            lambda: dynamically_sharded(Dataset.range(2), three_of, epochs=-1),
            InvalidArgumentError,
            "epochs",
        ),
        (lambda: dynamically_sharded(Dataset.range(2), three_of, epochs=1.5), TypeError, "epochs"),  # type: ignore[arg-type]
    ],
)
def test_errors(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


# -- several


class Worker:
    """A worker of a queue that several share; the queue is in this process.

    Args:
        dealing: the queue.
        name: the worker's.
    """

    is_shared = True

    def __init__(self, dealing: ShardQueue, name: str) -> None:
        self._dealing, self._name = dealing, name

    def take(self) -> Unit | None:
        return self._dealing.take(self._name)

    def trained(self, units: Sequence[Unit]) -> None:
        self._dealing.trained(self._name, units)

    def has_more(self) -> bool | None:
        return self._dealing.has_more

    def get_state(self) -> Any:
        return self._dealing.state().as_json()

    def set_state(self, state: Any) -> None:
        self._dealing.restore(ShardQueueState.of_json(state))

    def close(self) -> None:
        self._dealing.left(self._name)


class Session(ProcessState):
    """The state of a worker's session: its input.

    Args:
        dealing: the queue.
        name: the worker's.
        units: how many there are.
    """

    def __init__(self, dealing: ShardQueue, name: str, units: int) -> None:
        super().__init__(tf.Graph())

        def find(order: Order, state: Any) -> Worker:
            assert order == dealing.order
            return Worker(dealing, name)

        source = dynamically_sharded(Dataset.range(units), three_of, 1)._plan
        assert isinstance(source, ShardedDataset)
        plan = ShardedDataset(
            source.source, source.function, dealing.order.epochs, dealing.order.seed, "data", find
        )
        self.resources["input"] = Cursor(Dataset(plan), 0, self)

    @property
    def cursor(self) -> Cursor:
        found: Cursor = self.resources["input"]
        return found

    def elements(self, count: int) -> list[int]:
        """The next elements, fewer at the end."""
        found: list[int] = []
        try:
            for _ in range(count):
                found.append(int(self.cursor.next_element()[0]))
        except OutOfRangeError:
            pass
        return found


@pytest.fixture
def dealing() -> ShardQueue:
    return ShardQueue(Order("data", 5, 1, None))


def test_shard_is_taken_when_previous_is_used(dealing: ShardQueue) -> None:
    one, other = Session(dealing, "one", 5), Session(dealing, "other", 5)
    assert one.elements(3) == [0, 1, 2]
    assert other.elements(2) == [10, 11]
    assert one.elements(4) == [20, 21, 22, 30]
    assert other.elements(9) == [12, 40, 41, 42]
    assert one.elements(9) == [31, 32]


def test_shard_is_done_after_steps_with_its_elements(dealing: ShardQueue) -> None:
    session = Session(dealing, "one", 5)
    session.elements(4)  # the last one shows that the first unit has ended
    assert dealing.report() == ["epoch 0: 0 of 5 units"]
    report_trained(session)
    assert dealing.report() == ["epoch 0: 1 of 5 units"]
    session.elements(1)  # one is left of the second unit
    report_trained(session)
    assert dealing.report() == ["epoch 0: 1 of 5 units"]
    assert len(session.elements(99)) == 10
    report_trained(session)
    assert dealing.report() == ["epoch 0: 5 of 5 units"]
    assert has_more(session) is False


def test_finished_process_waits_for_shards_held_by_others(dealing: ShardQueue) -> None:
    one, other = Session(dealing, "one", 5), Session(dealing, "other", 5)
    other.elements(1)
    assert len(one.elements(99)) == 12
    report_trained(one)
    assert has_more(one) is None
    other.cursor.close()  # its process has died
    assert has_more(one) is True
    assert one.elements(99) == [0, 1, 2]
    report_trained(one)
    assert has_more(one) is False
    assert dealing.report() == ["epoch 0: 5 of 5 units, 1 given out twice"]


def test_restart_returns_read_shards(dealing: ShardQueue) -> None:
    session = Session(dealing, "one", 5)
    session.elements(4)
    report_trained(session)
    return_shards(session)
    assert session.elements(99) == [10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42]
    report_trained(session)
    assert dealing.report() == ["epoch 0: 5 of 5 units, 1 given out twice"]


@pytest.mark.slow
def test_checkpoint_holds_remaining_shards(dealing: ShardQueue) -> None:
    one, other = Session(dealing, "one", 5), Session(dealing, "other", 5)
    one.elements(4)
    other.elements(1)
    report_trained(one)
    saved = json.loads(json.dumps([shard_states(one), one.cursor.get_state()]))
    one.elements(99)
    report_trained(one)
    again = Session(dealing, "again", 5)
    restore_shards(again, saved[0], dict.fromkeys(saved[0], saved[1]))
    assert again.cursor.set_state(saved[1])
    assert sorted(again.elements(99)) == [
        *range(10, 13),
        *range(20, 23),
        *range(30, 33),
        40,
        41,
        42,
    ]
    report_trained(again)
    assert has_more(again) is False


def test_transformations_after_sharing_are_refused(dealing: ShardQueue) -> None:
    session = Session(dealing, "one", 5)
    for data in (lambda plan: plan.batch(2), lambda plan: plan.prefetch(1)):
        with pytest.raises(InvalidArgumentError, match="as the last step of the input"):
            Cursor(data(Dataset(session.cursor._plan)), 0, None).next_element()


@pytest.mark.slow
def test_position_of_several_processes_is_restarted_by_one(dealing: ShardQueue) -> None:
    session = Session(dealing, "one", 5)
    session.elements(5)
    alone = Cursor(dynamically_sharded(Dataset.range(5), three_of), 0, None)
    assert alone.set_state(json.loads(json.dumps(session.cursor.get_state())))
    assert [int(alone.next_element()[0]) for _ in range(15)] == numbers(
        dynamically_sharded(Dataset.range(5), three_of)
    )
