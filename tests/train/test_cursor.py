"""A session's position in a dataset: exact positions, prefetched blocks, threads that end."""

from __future__ import annotations

import gc
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution import cursor as cursors
from estimatorkit.data.execution.cursor import Cursor
from estimatorkit.data.execution.iterators import BatchIterator
from estimatorkit.runtime.steps.indexed_columns import materialize
from tests.sweep import sweep
from tests.threads import StartedThreads
from tests.train import toy

SEED = 11


def take(cursor: Cursor, most: int = 10_000) -> list[Any]:
    """Up to `most` elements, each as plain lists."""
    taken: list[Any] = []
    while len(taken) < most:
        try:
            taken.append([np.asarray(leaf).tolist() for leaf in cursor.next_element()])
        except OutOfRangeError:
            break
    return taken


def as_it_is(columns: Any, count: int) -> Any:
    """What a loop does that takes the elements themselves."""
    return [materialize(column) for column in columns]


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether `condition` comes true within ten seconds."""
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def small_blocks(monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    monkeypatch.setattr(cursors, "MAX_BLOCK", elements)


def counted(count: int) -> Dataset:
    def generator() -> Iterator[int]:
        yield from range(count)

    return Dataset.from_generator(generator, tf.int64, ())


PIPELINES = {
    "slices": lambda: Dataset.range(23),
    "shuffled": lambda: toy.dataset(20, 3, epochs=2),
    "mapped": lambda: Dataset.range(23).map(lambda x: x * 2).shuffle(5).batch(2),
    "filtered": lambda: Dataset.range(40).filter(lambda x: tf.equal(x % 2, 0)).shuffle(7),
    "prefetched": lambda: Dataset.range(23).shuffle(9).repeat(2).batch(4).prefetch(2),
    "generator": lambda: counted(23).batch(2),
    "strings": lambda: Dataset.from_tensor_slices([str(i) for i in range(9)]).shuffle(4),
}


@pytest.mark.parametrize("block", [1, 4, 1024])
@sweep("name", PIPELINES, quick=1)
def test_saved_position_is_exact_everywhere(
    name: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With blocks of 1024 there is no thread, with the small ones it is always ahead."""
    small_blocks(monkeypatch, block)
    expected = take(Cursor(PIPELINES[name](), SEED))
    assert len(expected) >= 9
    cursor, again = Cursor(PIPELINES[name](), SEED), PIPELINES[name]()
    for position in range(len(expected)):
        state = json.loads(json.dumps(cursor.get_state()))
        other = Cursor(again, SEED)
        assert other.set_state(state)
        assert take(other, 3) == expected[position : position + 3]
        other.close()
        take(cursor, 1)
    assert take(cursor) == []
    cursor.close()


def test_blocks_and_single_elements_share_position(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_blocks(monkeypatch, 5)
    cursor = Cursor(Dataset.range(12), SEED)
    assert take(cursor, 2) == [[0], [1]]
    block = cursor.block(as_it_is)
    assert block.ready[0][block.offset : block.count].tolist()[0] == 2
    block.offset = block.count
    first = 2 + block.count
    assert take(cursor) == [[n] for n in range(first, 12)]


def test_position_ignores_prefetching(
    threads: StartedThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, 2)
    cursor = Cursor(Dataset.range(100), SEED)
    take(cursor, 6)
    states = [cursor.get_state()]
    assert threads.have_ended("estimatorkit")
    states.append(cursor.get_state())
    assert states[0] == states[1]
    other = Cursor(Dataset.range(100), SEED)
    other.set_state(states[0])
    assert take(other, 1) == [[6]]


def test_random_shuffle_resumes_in_another_session() -> None:
    """Without any seed the order is drawn once; the saved position holds what was drawn."""
    cursor = Cursor(Dataset.range(50).shuffle(50), None)
    seen = take(cursor, 20)
    other = Cursor(Dataset.range(50).shuffle(50), None)
    assert other.set_state(cursor.get_state())
    rest = take(other)
    assert rest == take(cursor)
    assert sorted(seen + rest) == [[n] for n in range(50)]


# -- positions that are not gone to


def test_ended_dataset_restarts() -> None:
    cursor = Cursor(Dataset.range(3), SEED)
    assert take(cursor) == [[0], [1], [2]]
    other = Cursor(Dataset.range(3), SEED)
    assert not other.set_state(cursor.get_state())
    assert take(other) == [[0], [1], [2]]


@pytest.mark.parametrize("name", ["slices", "generator", "prefetched", "shuffled"])
def test_exhausted_dataset_restarts(name: str) -> None:
    cursor = Cursor(PIPELINES[name](), SEED)
    every = take(Cursor(PIPELINES[name](), SEED))
    take(cursor, len(every))
    state = cursor.get_state()
    assert not state["ended"]
    other = Cursor(PIPELINES[name](), SEED)
    assert not other.set_state(state)
    assert take(other) == every


@pytest.mark.parametrize(
    "other",
    [
        Dataset.range(31),
        Dataset.range(30).batch(1),
        Dataset.range(30).map(lambda x: x + 0),
        Dataset.range(30).repeat(2),
        Dataset.from_tensor_slices(np.arange(30.0)),
    ],
)
def test_position_of_other_dataset_is_ignored(other: Dataset) -> None:
    cursor = Cursor(Dataset.range(30), SEED)
    take(cursor, 7)
    new = Cursor(other, SEED)
    assert not new.set_state(cursor.get_state())
    assert take(new, 1) == take(Cursor(other, SEED), 1)


def test_other_batch_or_buffer_size_is_another_dataset() -> None:
    cursor = Cursor(Dataset.range(30).shuffle(5).batch(2), SEED)
    take(cursor, 2)
    state = cursor.get_state()
    assert Cursor(Dataset.range(30).shuffle(5).batch(2), SEED).set_state(state)
    assert not Cursor(Dataset.range(30).shuffle(5).batch(3), SEED).set_state(state)
    assert not Cursor(Dataset.range(30).shuffle(6).batch(2), SEED).set_state(state)


def test_other_values_are_another_dataset() -> None:
    cursor = Cursor(Dataset.from_tensor_slices(np.arange(9)), SEED)
    take(cursor, 4)
    other = Cursor(Dataset.from_tensor_slices(np.arange(9) * 10), SEED)
    assert not other.set_state(cursor.get_state())
    assert take(other, 1) == [[0]]


def test_saved_position_is_small() -> None:
    cursor = Cursor(toy.dataset(5000, 8), SEED)
    take(cursor, 700)
    assert len(json.dumps(cursor.get_state())) < 3000


# -- blocks


def test_block_size_is_bounded_by_bytes_and_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "READ_SECS", 1e9)
    assert Cursor(Dataset.range(5000), SEED).block(as_it_is).count == 1024
    rows = np.zeros((40, 1 << 18), np.float32)  # 1 MiB each
    assert Cursor(Dataset.from_tensor_slices(rows), SEED).block(as_it_is).count == 8
    monkeypatch.setattr(cursors, "BLOCK_BYTES", 1000)
    assert Cursor(Dataset.from_tensor_slices(rows), SEED).block(as_it_is).count == 1


@sweep(("size", "elements"), [(1, 1024), (1024, 1024), (1 << 18, 4), (1 << 22, 1)], quick=1)
def test_first_block_requests_few_row_numbers(
    size: int, elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 MB of them: a batch may take the rows of a small array many times."""
    asked: list[int] = []
    next_block = BatchIterator.next_block

    def noting(self: BatchIterator, n: int) -> Any:
        asked.append(n)
        return next_block(self, min(n, 2))

    monkeypatch.setattr(BatchIterator, "next_block", noting)
    Cursor(Dataset.from_tensor_slices(np.arange(10)).repeat().batch(size), SEED).next_element()
    assert asked[0] == elements


def test_blocks_of_one_shape_have_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each would be a compilation: however slowly they come, and at the end too."""
    small_blocks(monkeypatch, 16)
    monkeypatch.setattr(cursors, "READ_SECS", 0.0)
    cursor = Cursor(Dataset.range(37), SEED)
    lengths, counts = set(), []
    for _ in range(30):
        block = cursor.block(as_it_is)
        lengths.add(len(block.ready[0]))
        counts.append(block.count)
        block.offset = block.count
        if len(counts) == 5:
            monkeypatch.setattr(cursors, "READ_SECS", 1e9)
        if sum(counts) == 37:
            break
    assert lengths == {16}
    assert counts[:5] == [1] * 5
    assert max(counts) > 4


def test_slow_elements_are_returned_at_once() -> None:
    """Not after a whole block of them; one is read ahead."""
    asked = []

    def generator() -> Iterator[int]:
        for number in range(1000):
            asked.append(number)
            time.sleep(0.06)
            yield number

    cursor = Cursor(Dataset.from_generator(generator, tf.int64, ()), SEED)
    take(cursor, 1)
    assert len(asked) <= 3
    cursor.close()


def test_generator_starts_once() -> None:
    starts = []

    def generator() -> Iterator[int]:
        starts.append(1)
        yield from range(10)

    cursor = Cursor(Dataset.from_generator(generator, tf.int64, ()), SEED)
    assert len(take(cursor)) == 10
    assert starts == [1]


# -- threads


@pytest.mark.parametrize("name", ["slices", "prefetched", "generator"])
@sweep("end", ["closed", "dropped", "read out"], quick=1)
def test_threads_end(
    name: str, end: str, threads: StartedThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, 2)
    cursor: Cursor | None = Cursor(PIPELINES[name](), SEED)
    assert cursor is not None
    take(cursor, 10_000 if end == "read out" else 5)
    if end == "closed":
        cursor.close()
        cursor.close()
        assert threads.have_ended("estimatorkit")
    elif end == "dropped":
        cursor = None
        gc.collect()
    assert threads.have_ended("estimatorkit")


@pytest.mark.slow
def test_generator_is_closed_with_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 2)
    closed = []

    def generator() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.append(True)

    cursor = Cursor(Dataset.from_generator(generator, tf.int64, ()), SEED)
    take(cursor, 5)
    cursor.close()
    gc.collect()
    assert closed == [True]


def test_blocked_generator_does_not_delay_exit(
    threads: StartedThreads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cursors, "CLOSE_SECS", 0.05)
    released = threading.Event()

    def generator() -> Iterator[int]:
        yield from range(4)
        released.wait(20)
        yield 4

    small_blocks(monkeypatch, 2)
    cursor = Cursor(Dataset.from_generator(generator, tf.int64, ()), SEED)
    take(cursor, 4)
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        cursor.close()
    assert "Abandoning the input" in caplog.text
    released.set()
    assert threads.have_ended("estimatorkit")


class TestErrors:
    @staticmethod
    def failing(after: int) -> Iterator[int]:
        yield from range(after)
        raise RuntimeError(f"element {after} cannot be made")

    @pytest.mark.parametrize("after", [0, 1, 2, 3, 7, 8])
    @pytest.mark.parametrize("batch", [False, True])
    def test_come_after_earlier_elements(
        self, threads: StartedThreads, after: int, batch: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small_blocks(monkeypatch, 2)
        data = Dataset.from_generator(lambda: self.failing(after), tf.int64, ())
        cursor = Cursor(data.batch(1) if batch else data, SEED)
        assert [row[0] for row in take(cursor, after)] == [
            [n] if batch else n for n in range(after)
        ]
        with pytest.raises(RuntimeError, match=f"element {after} cannot be made") as caught:
            cursor.next_element()
        assert "failing" in [frame.name for frame in caught.traceback]
        cursor.close()
        assert threads.have_ended("estimatorkit")

    def test_of_prefetching_thread(
        self, threads: StartedThreads, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small_blocks(monkeypatch, 2)
        data = Dataset.from_generator(lambda: self.failing(5), tf.int64, ()).prefetch(3)
        cursor = Cursor(data, SEED)
        assert take(cursor, 5) == [[n] for n in range(5)]
        with pytest.raises(RuntimeError, match="element 5") as caught:
            cursor.next_element()
        assert "failing" in [frame.name for frame in caught.traceback]
        cursor.close()
        assert threads.have_ended("estimatorkit")

    def test_base_exceptions_propagate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A thread that ended without a word would leave the caller waiting."""
        small_blocks(monkeypatch, 2)

        def generator() -> Iterator[int]:
            yield from range(4)
            raise SystemExit(3)

        cursor = Cursor(Dataset.from_generator(generator, tf.int64, ()), SEED)
        assert take(cursor, 4) == [[n] for n in range(4)]
        with pytest.raises(SystemExit):
            cursor.next_element()
