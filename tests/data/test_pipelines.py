"""Random pipelines against plain Python: any block sizes, any restored position."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimatorkit.data import Dataset, dataset
from estimatorkit.data.randomness import Seeds
from tests.data.models import (
    BlockFunction,
    Cached,
    Concatenated,
    Model,
    Repeated,
    Shuffled,
    Source,
    Transformed,
    batched,
    read,
    same,
)

GRAPH_SEED = 7
LIMIT = 45  # rows compared, of pipelines that may be endless


@pytest.fixture(autouse=True, scope="module")
def _tracer() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "function_tracer", BlockFunction)
        yield


def _sums(block: np.ndarray) -> Any:
    return block.reshape(len(block), -1).sum(axis=1)


@dataclass(frozen=True)
class Pair:
    """A dataset and the model that says what it must give."""

    made: Dataset
    model: Model
    batchable: bool = True  # all rows have one shape
    endless: bool = False


def _slices(count: int) -> Pair:
    rows = np.arange(2 * count).reshape(count, 2) * 10
    return Pair(Dataset.from_tensor_slices(rows), Source(list(rows)))


def _range(count: int) -> Pair:
    return Pair(Dataset.range(count), Source(list(np.arange(count))))


def _ragged(count: int) -> Pair:
    rows = [np.arange(1 + (i // 3) % 2) + i for i in range(count)]
    made = Dataset.from_generator(lambda: iter(rows), output_types="int64", output_shapes=(None,))
    return Pair(made, Source(rows), batchable=False)


Step: TypeAlias = Callable[[Pair], Pair]


def _step(make: Callable[[Dataset], Dataset], model: Callable[[Model], Model]) -> Step:
    return lambda pair: replace(pair, made=make(pair.made), model=model(pair.model))


def _shuffle(size: int, seed: int, reshuffle: bool) -> Step:
    key = Seeds(GRAPH_SEED).stream(seed).key
    return _step(
        lambda d: d.shuffle(size, seed, reshuffle), lambda m: Shuffled(m, size, key, reshuffle)
    )


def _take(count: int) -> Step:
    return _step(
        lambda d: d.take(count),
        lambda m: Transformed(m, lambda rows: itertools.islice(rows, count)),
    )


def _skip(count: int) -> Step:
    return _step(
        lambda d: d.skip(count),
        lambda m: Transformed(m, lambda rows: itertools.islice(rows, count, None)),
    )


def _shard(count: int, index: int) -> Step:
    return _step(
        lambda d: d.shard(count, index % count),
        lambda m: Transformed(m, lambda rows: itertools.islice(rows, index % count, None, count)),
    )


def _repeat(count: int | None) -> Step:
    step = _step(lambda d: d.repeat(count), lambda m: Repeated(m, count))
    return lambda pair: replace(step(pair), endless=pair.endless or count is None)


def _batch(size: int, drop: bool) -> Step:
    step = _step(lambda d: d.batch(size, drop), lambda m: Transformed(m, batched(size, drop)))
    # The last batch may have another shape, and then be within a batch of batches: an error.
    return lambda pair: replace(step(pair), batchable=False) if pair.batchable else pair


def _concatenate(count: int) -> Step:
    def step(pair: Pair) -> Pair:
        # The same plan on both sides: two iterators of one input, which do not disturb each other.
        tail = Transformed(copy.deepcopy(pair.model), lambda rows: itertools.islice(rows, count))
        return replace(
            pair,
            made=pair.made.concatenate(pair.made.take(count)),
            model=Concatenated(pair.model, tail),
        )

    return step


def _filter(pair: Pair) -> Pair:
    if pair.endless:  # it might drop all rows, and never return: as in tf.data
        return pair
    return replace(
        pair,
        made=pair.made.filter(lambda block: _sums(block) % 3 != 0),
        model=Transformed(pair.model, lambda rows: (row for row in rows if np.sum(row) % 3)),
    )


map_step = _step(
    lambda d: d.map(lambda block: block * 3 + 1),
    lambda m: Transformed(m, lambda rows: (row * 3 + 1 for row in rows)),
)
cache_step = _step(lambda d: d.cache(), Cached)


def _prefetch(size: int) -> Step:
    return _step(lambda d: d.prefetch(size), lambda m: m)


counts = st.integers(0, 9)
positive = st.integers(1, 9)
sources = st.one_of(
    st.builds(_slices, st.integers(0, 20)),
    st.builds(_range, st.integers(0, 20)),
    st.builds(_ragged, st.integers(0, 12)),
)
steps = st.one_of(
    st.builds(_shuffle, positive, st.integers(0, 3), st.booleans()),
    st.builds(_take, counts),
    st.builds(_skip, counts),
    st.builds(_shard, st.integers(1, 4), counts),
    st.builds(_repeat, st.one_of(st.none(), st.integers(0, 4))),
    st.builds(_batch, st.integers(1, 4), st.booleans()),
    st.builds(_concatenate, counts),
    st.builds(_prefetch, positive),
    st.sampled_from([map_step, _filter, cache_step]),
)


@st.composite
def pipelines(draw: st.DrawFn) -> Pair:
    pair: Pair = draw(sources)
    for step in draw(st.lists(steps, max_size=5)):
        pair = step(pair)
    return pair


def _expected(pair: Pair) -> list[list[np.ndarray]]:
    return [[row] for row in itertools.islice(pair.model.start(), LIMIT)]


@settings(deadline=None, max_examples=250)
@given(pipelines(), st.lists(st.integers(1, 11), min_size=1, max_size=4))
def test_rows_are_those_of_plain_python_whatever_the_block_sizes(
    pair: Pair, sizes: list[int]
) -> None:
    iterator = pair.made.make_block_iterator(GRAPH_SEED)
    try:
        assert same(read(iterator, sizes, LIMIT), _expected(pair))
    finally:
        iterator.close()


@settings(deadline=None, max_examples=120)
@given(pipelines(), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_every_position_can_be_saved_and_restored(pair: Pair, sizes: list[int]) -> None:
    expected = _expected(pair)
    iterator = pair.made.make_block_iterator(GRAPH_SEED)
    # Another seed: the restored order comes from the saved position.
    other = pair.made.make_block_iterator(GRAPH_SEED + 1)
    done = 0
    try:
        for size in itertools.cycle(sizes):
            other.set_state(json.loads(json.dumps(iterator.get_state())))
            assert same(read(other, [3, 1], min(7, LIMIT - done)), expected[done : done + 7])
            rows = read(iterator, [size], min(size, LIMIT - done))
            assert same(rows, expected[done : done + len(rows)])
            done += len(rows)
            if len(rows) < size:
                break
    finally:
        iterator.close()
        other.close()
    assert done == len(expected)


@settings(deadline=None, max_examples=120)
@given(pipelines(), st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), max_size=8))
def test_skipping_passes_over_the_rows_that_would_have_come(
    pair: Pair, moves: list[tuple[int, int]]
) -> None:
    expected = _expected(pair)
    iterator = pair.made.make_block_iterator(GRAPH_SEED)
    done = 0
    try:
        for skip, size in moves:
            if done + skip + size > LIMIT:
                break
            assert iterator.skip(skip) == min(skip, len(expected) - done)
            done = min(done + skip, len(expected))
            rows = read(iterator, [size], size)
            assert same(rows, expected[done : done + size])
            done += len(rows)
    finally:
        iterator.close()
