"""One iterator in several threads: each element reaches exactly one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data import Dataset
from tests.threads import run_together

COUNT = 600


def _generate() -> Iterator[int]:
    yield from range(COUNT)


def _host(x: Any) -> Any:
    return tf.py_func(lambda value: value, [x], tf.int64)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "mapped": lambda: Dataset.range(COUNT).map(lambda x: x * 1),
    "slices": lambda: Dataset.from_tensor_slices(np.arange(COUNT)),
    "prefetched": lambda: Dataset.range(COUNT).prefetch(3),
    "shuffled": lambda: Dataset.range(COUNT).shuffle(50),
    "generated": lambda: Dataset.from_generator(_generate, tf.int64, ()).shuffle(9).prefetch(2),
    "batched": lambda: Dataset.range(COUNT).batch(7),
    "mapped on the host": lambda: Dataset.range(COUNT).map(_host),
    "nested": lambda: Dataset.range(COUNT // 5).flat_map(lambda x: Dataset.range(x * 5, x * 5 + 5)),
}


def _one_shot(dataset: Dataset, session: tf.Session) -> tuple[Any, dict[Any, Any]]:
    return tf.data.make_one_shot_iterator(dataset).get_next(), {}


def _initializable(dataset: Dataset, session: tf.Session) -> tuple[Any, dict[Any, Any]]:
    iterator = tf.data.make_initializable_iterator(dataset)
    session.run(iterator.initializer)
    return iterator.get_next(), {}


def _reinitializable(dataset: Dataset, session: tf.Session) -> tuple[Any, dict[Any, Any]]:
    iterator = tf.data.Iterator.from_structure(dataset.output_types, dataset.output_shapes)
    session.run(iterator.make_initializer(dataset))
    return iterator.get_next(), {}


def _fed(dataset: Dataset, session: tf.Session) -> tuple[Any, dict[Any, Any]]:
    handle = tf.placeholder(tf.string, ())
    chosen = session.run(tf.data.make_one_shot_iterator(dataset).string_handle())
    iterator = tf.data.Iterator.from_string_handle(
        handle, dataset.output_types, dataset.output_shapes
    )
    return iterator.get_next(), {handle: chosen}


@pytest.mark.parametrize("kind", [_one_shot, _initializable, _reinitializable, _fed])
@pytest.mark.parametrize("name", DATASETS)
def test_every_element_comes_once(name: str, kind: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        element, feeds = kind(DATASETS[name](), session)
        taken: list[int] = []

        def take() -> None:
            try:
                while True:
                    taken.extend(np.ravel(session.run(element, feeds)).tolist())
            except OutOfRangeError:
                pass

        run_together([take] * 8)
        assert sorted(taken) == list(range(COUNT))


def test_initialization_while_others_read() -> None:
    """They go on with one dataset or the other."""
    with tf.Graph().as_default(), tf.Session() as session:
        first = tf.placeholder(tf.int64, ())
        iterator = tf.data.make_initializable_iterator(Dataset.range(first, first + 10**6))
        element = iterator.get_next()
        session.run(iterator.initializer, {first: 0})
        taken: list[int] = []

        def take() -> None:
            taken.extend(int(session.run(element)) for _ in range(100))

        def initialize() -> None:
            for number in range(1, 20):
                session.run(iterator.initializer, {first: number * 10**6})

        run_together([take, take, take, initialize])
        assert len(taken) == len(set(taken)) == 300
        rest = int(session.run(element))
        assert 19 * 10**6 <= rest < 19 * 10**6 + 301


def test_positions_are_saved_while_others_read() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.make_one_shot_iterator(Dataset.range(10**6).map(lambda x: x + 0))
        element = iterator.get_next()
        session.run(element)
        cursor = session.state.resources[iterator.resource_name]
        positions: list[int] = []
        done = threading.Event()

        def take() -> None:
            for _ in range(300):
                session.run(element)

        def look() -> None:
            while not done.is_set():
                positions.append(cursor.get_state()["taken"])

        watcher = threading.Thread(target=look)
        watcher.start()
        run_together([take] * 4)
        done.set()
        watcher.join()
        assert positions == sorted(positions)
        assert cursor.get_state()["taken"] == 1201
