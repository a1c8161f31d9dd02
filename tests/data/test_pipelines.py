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

from estimatorkit.data import Dataset
from estimatorkit.data.randomness import Seeds
from estimatorkit.data.traced_functions import DatasetFunction
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
        patch.setattr(DatasetFunction, "of", BlockFunction)
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


def _zip(count: int) -> Step:
    """Zips with numbers that come in longer blocks than rows that change shape, and adds them."""

    def add(x: np.ndarray, y: np.ndarray) -> Any:
        return x + y.reshape(-1, *[1] * (x.ndim - 1))

    def model(source: Model) -> Model:
        def rows(given: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
            return (x + y for y, x in zip(range(count), given, strict=False))

        return Transformed(source, rows)

    step = _step(lambda d: Dataset.zip((d, Dataset.range(count))).map(add), model)
    return lambda pair: replace(step(pair), endless=False)


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


# Mostly so that rows are left.
counts = st.sampled_from([1, 2, 3, 5, 5, 7, 7, 9, 0])
positive = st.integers(1, 9)
sources = st.one_of(
    st.builds(_slices, st.sampled_from([19, 12, 7, 1, 0])),
    st.builds(_range, st.sampled_from([23, 13, 8, 1, 0])),
    st.builds(_ragged, st.sampled_from([17, 12, 5, 1, 0])),
)
steps = st.one_of(
    st.builds(_shuffle, positive, st.integers(0, 3), st.booleans()),
    st.builds(_take, st.sampled_from([11, 8, 6, 3, 0])),
    st.builds(_skip, counts),
    st.builds(_shard, st.integers(1, 3), counts),
    st.builds(_repeat, st.sampled_from([2, 3, 4, None, 1, 0])),
    st.builds(_batch, st.integers(1, 4), st.booleans()),
    st.builds(_concatenate, counts),
    st.builds(_zip, st.sampled_from([14, 9, 40, 3, 0])),
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


# One of each kind and the pairs in which shapes change or rows are held back, checked at every
# position with every small size; the random ones look for what nobody thought of.
CHAINS: list[tuple[Pair, list[Step]]] = [
    (_slices(19), [_batch(4, False)]),
    (_slices(19), [_batch(4, True)]),
    (_range(13), [_batch(3, False), _repeat(3)]),
    (_range(13), [_batch(3, False), _shuffle(2, 0, True), _repeat(2)]),
    (_range(13), [_repeat(2), _batch(4, False)]),
    (_range(13), [_shuffle(5, 0, True), _repeat(None), _take(50), _batch(4, False)]),
    (_range(13), [map_step, _shuffle(5, 0, True), _repeat(3)]),
    (_range(13), [_repeat(3), _shuffle(20, 1, True)]),
    (_range(5), [_shuffle(5, 0, True), _repeat(2), _repeat(3), _batch(2, False)]),
    (_range(23), [_shard(3, 2), _repeat(2)]),
    (_range(23), [map_step, _shard(3, 1)]),
    (_range(23), [_take(10), _repeat(2), _skip(3)]),
    (_range(23), [_skip(4), _repeat(2), _take(25)]),
    (_range(23), [_filter, _repeat(2)]),
    (_range(23), [_filter, _batch(4, False), _prefetch(2)]),
    (_range(13), [_concatenate(5), _batch(4, False)]),
    (_range(13), [_batch(4, False), _concatenate(3), _repeat(2)]),
    (_range(13), [_shuffle(4, 0, True), cache_step, _repeat(3)]),
    (_range(13), [_batch(4, False), cache_step, _repeat(3)]),
    (_range(13), [_batch(5, False), _zip(9)]),
    # The shuffled side is read ahead into its next epoch before the other one ends.
    (_range(13), [_shuffle(3, 0, True), _repeat(2), _zip(12), _repeat(3)]),
    (_range(13), [_shuffle(3, 0, True), _repeat(None), _prefetch(9), _take(12), _repeat(3)]),
    (_ragged(17), [_zip(14), _repeat(2)]),
    (_ragged(17), [_shard(4, 1), _repeat(2)]),
    (_ragged(17), [_shuffle(4, 0, True), _repeat(2)]),
    (_ragged(17), [_filter, cache_step, _repeat(2)]),
    (_ragged(17), [_prefetch(3), _take(11), _repeat(2)]),
]


@pytest.mark.parametrize(("source", "chain"), CHAINS, ids=range(len(CHAINS)))
def test_one_of_each_kind_at_every_position(source: Pair, chain: list[Step]) -> None:
    for step in chain:
        source = step(source)
    expected = _expected(source)
    assert len(expected) >= 3
    spare = source.made.make_block_iterator(GRAPH_SEED + 1)
    for size in (1, 2, 3, 5, 8):
        iterator = source.made.make_block_iterator(GRAPH_SEED)
        done = 0
        while done < len(expected):
            for skip in (0, 1, 4):
                spare.set_state(json.loads(json.dumps(iterator.get_state())))
                assert spare.skip(skip) == min(skip, len(expected) - done)
                spare.set_state(spare.get_state())
                rows = read(spare, [2, 3], min(6, max(0, LIMIT - done - skip)))
                assert same(rows, expected[done + skip : done + skip + 6])
            block = iterator.next_block(min(size, LIMIT - done))
            rows = [[column[i] for column in block] for i in range(len(block[0]))]
            assert same(rows, expected[done : done + len(rows)])
            done += len(rows)
        iterator.close()
    spare.close()


@settings(deadline=None, max_examples=600)
@given(pipelines(), st.lists(st.integers(1, 11), min_size=1, max_size=4))
def test_rows_are_those_of_plain_python_whatever_the_block_sizes(
    pair: Pair, sizes: list[int]
) -> None:
    iterator = pair.made.make_block_iterator(GRAPH_SEED)
    try:
        assert same(read(iterator, sizes, LIMIT), _expected(pair))
    finally:
        iterator.close()


@settings(deadline=None, max_examples=400)
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


@settings(deadline=None, max_examples=400)
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
