"""Prefetching: the thread loses nothing and leaves nothing behind."""

from __future__ import annotations

import gc
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data import Dataset
from estimatorkit.data.execution.prefetching import THREAD_NAME
from tests.threads import StartedThreads


@pytest.fixture(autouse=True)
def _no_thread_is_left(threads: StartedThreads) -> Iterator[None]:
    yield
    gc.collect()
    assert threads.have_ended(THREAD_NAME)


@pytest.mark.slow
def test_thread_runs_ahead_by_buffer_size_at_most(threads: StartedThreads) -> None:
    made: list[int] = []
    asked = threading.Event()

    def generate() -> Iterator[int]:
        for i in range(1000):
            made.append(i)
            if i == 13:
                asked.set()
            yield i

    iterator = Dataset.from_generator(generate, "int64").prefetch(12).make_block_iterator()
    assert not made  # nothing runs before the first block is asked for
    assert iterator.next_block(2)[0].tolist() == [0, 1]
    assert asked.wait(5)
    time.sleep(0.05)
    assert len(made) == 14  # two handed out, twelve ready
    assert iterator.next_block(3)[0].tolist() == [2, 3, 4]
    # Its position is that of the caller.
    state = iterator.get_state()
    iterator.close()
    assert not threads.running(THREAD_NAME)
    again = Dataset.from_generator(generate, "int64").prefetch(12).make_block_iterator()
    again.set_state(state)
    assert again.next_block(2)[0].tolist() == [5, 6]
    again.close()


@pytest.mark.slow
def test_error_follows_earlier_rows_with_traceback(
    threads: StartedThreads,
) -> None:
    def breaks_in_the_middle() -> Iterator[int]:
        yield from range(5)
        raise KeyError("the reason")

    iterator = (
        Dataset.from_generator(breaks_in_the_middle, "int64").prefetch(2).make_block_iterator()
    )
    assert iterator.next_block(3)[0].tolist() == [0, 1, 2]
    assert iterator.next_block(3)[0].tolist() == [3, 4]
    with pytest.raises(KeyError, match="the reason") as caught:
        iterator.next_block(3)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "breaks_in_the_middle" in names
    assert not threads.running(THREAD_NAME)


@pytest.mark.slow
def test_end_of_input_ends_thread(threads: StartedThreads) -> None:
    iterator = Dataset.range(5).prefetch(2).make_block_iterator()
    assert iterator.next_block(10)[0].tolist() == [0, 1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(OutOfRangeError):
            iterator.next_block(10)
    assert not threads.running(THREAD_NAME)


@pytest.mark.slow
def test_dropped_iterator_ends_thread(threads: StartedThreads) -> None:
    iterator = Dataset.range(5).repeat().batch(2).prefetch(2).make_block_iterator()
    iterator.next_block(1)
    assert len(threads.running(THREAD_NAME)) == 1
    del iterator
    assert threads.have_ended(THREAD_NAME)


@pytest.mark.slow
def test_closing_outermost_iterator_stops_all_threads(threads: StartedThreads) -> None:
    inner = Dataset.range(5).repeat().prefetch(2)
    iterator = Dataset.zip((inner, inner.batch(2).prefetch(1))).prefetch(3).make_block_iterator()
    iterator.next_block(4)
    assert len(threads.running(THREAD_NAME)) == 4
    iterator.close()
    assert not threads.running(THREAD_NAME)


@pytest.mark.slow
def test_leaving_loop_stops_thread(threads: StartedThreads) -> None:
    for number in Dataset.range(100).repeat().prefetch(4):
        if number == 7:
            break
    del number
    gc.collect()
    assert threads.have_ended(THREAD_NAME)


@pytest.mark.slow
def test_pass_can_restart_while_thread_reads(threads: StartedThreads) -> None:
    made = Dataset.range(20).shuffle(20).prefetch(3).take(5).repeat(4)
    assert len(list(made)) == 20
    assert threads.have_ended(THREAD_NAME)


def test_block_sizes_may_change() -> None:
    iterator = Dataset.range(300).prefetch(8).make_block_iterator()
    rows: list[Any] = []
    for size in [1, 1, 50, 3, 100, 1, 144]:
        block = iterator.next_block(size)[0]
        assert len(block) == size
        rows.append(block)
    assert np.concatenate(rows).tolist() == list(range(300))
    iterator.close()
