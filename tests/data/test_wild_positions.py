"""Impossible saved positions raise errors, and the input remains usable."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import DataLossError, OpError
from estimatorkit.data.iterator_ops import iterator_states, restore_iterators
from estimatorkit.storage.checkpoint import Checkpoint
from estimatorkit.train.saving.saver import restore_input
from tests.sweep import sweep

WILD = [2**70, 2**63, -1, -(2**70), 1e308, "x", None, True, [], {}, [2**70], {"used": 2**70}]


def numbers() -> Any:
    return tf.data.Dataset.range(100)


def files() -> Any:
    return tf.data.TextLineDataset(["rows"]).map(tf.string_to_number).batch(2)


def generated() -> Any:
    return tf.data.Dataset.from_generator(lambda: iter(range(50)), tf.int64).repeat(3)


PIPELINES: dict[str, Callable[[], Any]] = {
    "range": numbers,
    "shuffled": lambda: numbers().shuffle(10, seed=1).batch(4).repeat(5),
    "zipped": lambda: tf.data.Dataset.zip((numbers(), numbers().skip(1).take(40))),
    "interleaved": lambda: numbers().interleave(
        lambda n: tf.data.Dataset.from_tensors(n).repeat(3), cycle_length=3
    ),
    "prefetched": lambda: numbers().batch(3).prefetch(2),
    "cached": lambda: numbers().cache().repeat(2),
    "files": files,
    "generated": generated,
}


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*place, key))


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    made = copy.deepcopy(value)
    if not place:
        return new
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = new
    return made


@sweep("name", PIPELINES, quick=4)
def test_impossible_positions(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").write_text("".join(f"{n}\n" for n in range(20)))
    with tf.Graph().as_default(), tf.Session() as sess:
        element = PIPELINES[name]().make_one_shot_iterator().get_next()
        first = sess.run(element)
        sess.run(element)
        [(iterator, state)] = json.loads(json.dumps(iterator_states(sess.state))).items()
        third = sess.run(element)
    refused = 0
    for place in leaves(state):
        for wild in WILD:
            with tf.Graph().as_default(), tf.Session() as sess:
                element = PIPELINES[name]().make_one_shot_iterator().get_next()
                try:
                    moved = restore_iterators(sess.state, {iterator: replaced(state, place, wild)})
                except OpError:
                    refused += 1
                    moved = {}
                if not any(moved.values()):
                    np.testing.assert_array_equal(sess.run(element), first)
    assert refused > 5
    with tf.Graph().as_default(), tf.Session() as sess:
        element = PIPELINES[name]().make_one_shot_iterator().get_next()
        restore_iterators(sess.state, {iterator: state})
        np.testing.assert_array_equal(sess.run(element), third)


@pytest.mark.parametrize(
    "state",
    [
        {"random": []},
        {"random": {"draw/RandomUniform": [1, 2]}},
        {"random": {"draw/RandomUniform": [1, 2, 2**32]}},
        {"random": {"draw/RandomUniform": [1, 2, -1]}},
        {"random": {"draw/RandomUniform": "abc"}},
        {"random": {"draw/RandomUniform": {}}},
        {"iterators": 3},
        {"dealt": "x"},
    ],
)
def test_impossible_states(state: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        draw = tf.random_uniform([], name="draw")
        with pytest.raises(DataLossError, match="state of the checkpoint is malformed"):
            restore_input(sess, Checkpoint("path", {}, state))
        assert 0 <= sess.run(draw) < 1
