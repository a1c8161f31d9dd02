"""Random pipelines against plain Python models: any block size, any restored position."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.data import traced_functions
from tests.data.models import BlockFunction, read, same
from tests.data.pipeline_steps import (
    FOLDER,
    GRAPH_SEED,
    Pair,
    Step,
    batch,
    cache_step,
    choose,
    concatenate,
    failing_step,
    file_cache,
    filter_step,
    flat_map,
    group,
    ignore_batches,
    ignore_errors,
    map_step,
    numbers,
    padded_batch,
    prefetch,
    ragged,
    random_step,
    repeat,
    sample,
    scan,
    shard,
    shuffle,
    skip,
    slices,
    take,
    take_while,
    unbatch,
    window,
    zip_with_itself,
    zip_with_numbers,
)
from tests.sweep import sweep

LIMIT = 45  # rows compared, of pipelines that may be endless


@pytest.fixture(autouse=True, scope="module")
def _tracer() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traced_functions, "dataset_function", BlockFunction)
        FOLDER.mkdir(exist_ok=True)
        yield
    assert not list(FOLDER.glob("*.tmp"))  # iterators that were closed leave nothing
    shutil.rmtree(FOLDER)


# Mostly so that rows are left.
counts = st.sampled_from([1, 2, 3, 5, 5, 7, 7, 9, 0])
positive = st.integers(1, 9)
sources = st.one_of(
    st.builds(slices, st.sampled_from([19, 12, 7, 1, 0])),
    st.builds(numbers, st.sampled_from([23, 13, 8, 1, 0])),
    st.builds(ragged, st.sampled_from([17, 12, 5, 1, 0])),
)
steps = st.one_of(
    st.builds(shuffle, positive, st.integers(0, 3), st.booleans()),
    st.builds(take, st.sampled_from([11, 8, 6, 3, 0])),
    st.builds(skip, counts),
    st.builds(shard, st.integers(1, 3), counts),
    st.builds(repeat, st.sampled_from([2, 3, 4, None, 1, 0])),
    st.builds(batch, st.integers(1, 4), st.booleans()),
    st.builds(concatenate, counts),
    st.builds(zip_with_numbers, st.sampled_from([14, 9, 40, 3, 0])),
    st.builds(prefetch, positive),
    st.sampled_from([map_step, filter_step, cache_step]),
    # Those that others are made of, and what holds rows or other datasets.
    st.sampled_from([unbatch, unbatch, scan, random_step, file_cache, ignore_errors]),
    st.builds(padded_batch, st.integers(1, 4), st.booleans()),
    st.builds(window, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.booleans()),
    st.builds(flat_map, st.sampled_from([None, 1, 2, 3]), st.integers(1, 3)),
    st.builds(group, st.integers(1, 4)),
    st.builds(take_while, st.sampled_from([20, 60, 300, 1])),
    st.builds(choose, st.lists(st.integers(0, 1), min_size=6, max_size=40), st.booleans()),
    st.builds(sample, st.integers(0, 3), st.booleans()),
    st.builds(ignore_batches, st.integers(1, 4), st.booleans()),
    st.builds(zip_with_itself, st.integers(0, 3)),
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
    (slices(19), [batch(4, False)]),
    (slices(19), [batch(4, True)]),
    (numbers(13), [batch(3, False), repeat(3)]),
    (numbers(13), [batch(3, False), shuffle(2, 0, True), repeat(2)]),
    (numbers(13), [repeat(2), batch(4, False)]),
    (numbers(13), [shuffle(5, 0, True), repeat(None), take(50), batch(4, False)]),
    (numbers(13), [map_step, shuffle(5, 0, True), repeat(3)]),
    (numbers(13), [repeat(3), shuffle(20, 1, True)]),
    (numbers(5), [shuffle(5, 0, True), repeat(2), repeat(3), batch(2, False)]),
    (numbers(23), [shard(3, 2), repeat(2)]),
    (numbers(23), [map_step, shard(3, 1)]),
    (numbers(23), [take(10), repeat(2), skip(3)]),
    (numbers(23), [skip(4), repeat(2), take(25)]),
    (numbers(23), [filter_step, repeat(2)]),
    (numbers(23), [filter_step, batch(4, False), prefetch(2)]),
    (numbers(13), [concatenate(5), batch(4, False)]),
    (numbers(13), [batch(4, False), concatenate(3), repeat(2)]),
    (numbers(13), [shuffle(4, 0, True), cache_step, repeat(3)]),
    (numbers(13), [batch(4, False), cache_step, repeat(3)]),
    (numbers(13), [batch(5, False), zip_with_numbers(9)]),
    # The shuffled side is read ahead into its next epoch before the other one ends.
    (numbers(13), [shuffle(3, 0, True), repeat(2), zip_with_numbers(12), repeat(3)]),
    (numbers(13), [shuffle(3, 0, True), repeat(None), prefetch(9), take(12), repeat(3)]),
    (ragged(17), [zip_with_numbers(14), repeat(2)]),
    (ragged(17), [shard(4, 1), repeat(2)]),
    (ragged(17), [shuffle(4, 0, True), repeat(2)]),
    (ragged(17), [filter_step, cache_step, repeat(2)]),
    (ragged(17), [prefetch(3), take(11), repeat(2)]),
    (ragged(17), [padded_batch(4, False), repeat(2), unbatch]),
    (ragged(17), [unbatch, batch(3, False), unbatch]),
    (ragged(17), [window(3, 2, 1, False), group(3), repeat(2)]),
    (numbers(13), [window(3, 2, 2, False), padded_batch(2, True), repeat(2)]),
    (numbers(13), [window(2, 4, 1, True), repeat(3)]),
    (numbers(13), [flat_map(None, 1), batch(4, False), repeat(2)]),
    (numbers(13), [repeat(2), flat_map(3, 2), shuffle(4, 0, True), repeat(2)]),
    (numbers(23), [shuffle(5, 0, True), group(3), repeat(2)]),
    (numbers(23), [random_step, scan, repeat(2), prefetch(3)]),
    (numbers(23), [random_step, shuffle(4, 1, True), take_while(19), repeat(3)]),
    (numbers(9), [shuffle(9, 0, True), choose([0, 1, 1, 0, 1, 1, 0, 0, 1, 0], False), repeat(2)]),
    (numbers(9), [choose([0, 1, 1, 0, 1, 1, 0, 1, 1, 0], True), batch(2, False), repeat(2)]),
    (numbers(9), [random_step, sample(1, False), repeat(3)]),
    (numbers(9), [shuffle(3, 2, True), sample(0, True), repeat(3)]),
    (numbers(23), [ignore_errors, repeat(2), batch(4, False)]),
    (numbers(23), [ignore_batches(3, False), shuffle(2, 0, True), repeat(2)]),
    (numbers(23), [shuffle(4, 0, True), ignore_batches(3, True), repeat(2)]),
    (slices(12), [file_cache, repeat(3), batch(5, False)]),
    (ragged(12), [file_cache, shuffle(4, 0, True), repeat(3)]),
    (slices(12), [shuffle(4, 0, True), zip_with_itself(2), repeat(2)]),
]


@sweep(("source", "chain"), CHAINS, ids=range(len(CHAINS)), quick=5)
def test_every_kind_at_every_position(source: Pair, chain: list[Step]) -> None:
    for step in chain:
        source = step(source)
    expected = _expected(source)
    assert len(expected) >= 3
    spare = source.made.make_block_iterator(GRAPH_SEED + 1)
    for size in (1, 2, 3, 5, 8):
        iterator = source.made.make_block_iterator(GRAPH_SEED)
        done = 0
        while done < len(expected):
            for passed in (each for each in (0, 1, 4) if done + each <= LIMIT):
                spare.set_state(json.loads(json.dumps(iterator.get_state())))
                assert spare.skip(passed) == min(passed, len(expected) - done)
                spare.set_state(spare.get_state())
                rows = read(spare, [2, 3], min(6, max(0, LIMIT - done - passed)))
                assert same(rows, expected[done + passed : done + passed + 6])
            block = iterator.next_block(min(size, LIMIT - done))
            rows = [[column[i] for column in block] for i in range(len(block[0]))]
            assert same(rows, expected[done : done + len(rows)])
            done += len(rows)
        iterator.close()
    spare.close()


@pytest.mark.slow
@settings(deadline=None, max_examples=600)
@given(pipelines(), st.lists(st.integers(1, 11), min_size=1, max_size=4))
def test_rows_match_plain_python_for_all_block_sizes(pair: Pair, sizes: list[int]) -> None:
    iterator = pair.made.make_block_iterator(GRAPH_SEED)
    try:
        assert same(read(iterator, sizes, LIMIT), _expected(pair))
    finally:
        iterator.close()


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
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


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(pipelines(), st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), max_size=8))
def test_skip_drops_expected_rows(pair: Pair, moves: list[tuple[int, int]]) -> None:
    expected = _expected(pair)
    iterator = pair.made.make_block_iterator(GRAPH_SEED)
    done = 0
    try:
        for passed, size in moves:
            if done + passed + size > LIMIT:
                break
            assert iterator.skip(passed) == min(passed, len(expected) - done)
            done = min(done + passed, len(expected))
            rows = read(iterator, [size], size)
            assert same(rows, expected[done : done + size])
            done += len(rows)
    finally:
        iterator.close()


def _events(pair: Pair, sizes: list[int], saving: bool) -> list[str]:
    """Rows and errors in their order, of a pipeline that is saved and restored after each block."""
    iterator = pair.made.make_block_iterator(GRAPH_SEED)
    found: list[str] = []
    try:
        for size in itertools.cycle(sizes):
            try:
                block = iterator.next_block(min(size, LIMIT - len(found)))
                found.extend(str([column[i] for column in block]) for i in range(len(block[0])))
            except InvalidArgumentError:
                found.append("error")
            except OutOfRangeError:
                return found
            if len(found) == LIMIT:
                return found
            if saving:
                state = json.loads(json.dumps(iterator.get_state()))
                iterator.close()
                iterator = pair.made.make_block_iterator(GRAPH_SEED + 1)
                iterator.set_state(state)
    finally:
        iterator.close()
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(
    sources,
    st.lists(steps, max_size=1),
    st.lists(steps, max_size=3),
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.booleans(),
)
@example(numbers(23), [], [skip(3), zip_with_numbers(14), concatenate(1)], [1], True)
def test_errors_keep_their_place_for_all_block_sizes(
    pair: Pair, before: list[Step], after: list[Step], sizes: list[int], saving: bool
) -> None:
    for step in [*before, failing_step, *after]:
        pair = step(pair)
    assert _events(pair, sizes, saving) == _events(pair, [1], False)
