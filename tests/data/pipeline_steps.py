"""Steps of random pipelines: each adds a transformation to a dataset and to its model.

The steps' functions are NumPy functions of blocks, which `BlockFunction` runs.
"""

from __future__ import annotations

import copy
import itertools
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data import Dataset
from estimatorkit.data.execution.randomness import Seeds
from tests.data.models import (
    PLACE,
    Cached,
    Chosen,
    Concatenated,
    Drawn,
    Model,
    Numbered,
    Repeated,
    Shuffled,
    Source,
    Transformed,
    Unshuffled,
    Zipped,
    batched,
    grouped,
    in_turns,
    losing,
    noise,
    padded,
    windows,
)

GRAPH_SEED = 7
FOLDER = Path(tempfile.gettempdir()) / f"estimatorkit-caches-{uuid.uuid4().hex}"


def _sums(block: np.ndarray) -> Any:
    return block.reshape(len(block), -1).sum(axis=1)


@dataclass(frozen=True)
class Pair:
    """A dataset and the model that says what it must give."""

    made: Dataset
    model: Model
    rank: int = 0
    varying: int = 0  # so many dimensions, the first ones, may differ from row to row
    endless: bool = False
    repeatable: bool = True  # each pass gives the same rows

    @property
    def batchable(self) -> bool:
        """Whether all rows have one shape."""
        return not self.varying


def slices(count: int) -> Pair:
    rows = np.arange(2 * count).reshape(count, 2) * 10
    return Pair(Dataset.from_tensor_slices(rows), Source(list(rows)), rank=1)


def numbers(count: int) -> Pair:
    return Pair(Dataset.range(count), Source(list(np.arange(count))))


def ragged(count: int) -> Pair:
    rows = [np.arange(1 + (i // 3) % 2) + i for i in range(count)]
    made = Dataset.from_generator(lambda: iter(rows), output_types="int64", output_shapes=(None,))
    return Pair(made, Source(rows), rank=1, varying=1)


Step: TypeAlias = Callable[[Pair], Pair]


def _step(make: Callable[[Dataset], Dataset], model: Callable[[Model], Model]) -> Step:
    return lambda pair: replace(pair, made=make(pair.made), model=model(pair.model))


def shuffle(size: int, seed: int, reshuffle: bool) -> Step:
    key = Seeds(GRAPH_SEED).stream(seed).key
    step = _step(
        lambda d: d.shuffle(size, seed, reshuffle), lambda m: Shuffled(m, size, key, reshuffle)
    )
    return lambda pair: replace(step(pair), repeatable=pair.repeatable and not reshuffle)


def take(count: int) -> Step:
    return _step(
        lambda d: d.take(count),
        lambda m: Transformed(m, lambda rows: itertools.islice(rows, count)),
    )


def skip(count: int) -> Step:
    return _step(
        lambda d: d.skip(count),
        lambda m: Transformed(m, lambda rows: itertools.islice(rows, count, None)),
    )


def shard(count: int, index: int) -> Step:
    return _step(
        lambda d: d.shard(count, index % count),
        lambda m: Transformed(m, lambda rows: itertools.islice(rows, index % count, None, count)),
    )


def repeat(count: int | None) -> Step:
    step = _step(lambda d: d.repeat(count), lambda m: Repeated(m, count))
    return lambda pair: replace(step(pair), endless=pair.endless or count is None)


def batch(size: int, drop: bool) -> Step:
    step = _step(lambda d: d.batch(size, drop), lambda m: Transformed(m, batched(size, drop)))
    # The last batch may have another shape, and then be within a batch of batches: an error.
    return lambda pair: (
        replace(step(pair), rank=pair.rank + 1, varying=1) if pair.batchable else pair
    )


def concatenate(count: int) -> Step:
    def step(pair: Pair) -> Pair:
        # The same plan on both sides: two iterators of one input, which do not disturb each other.
        tail = Transformed(copy.deepcopy(pair.model), lambda rows: itertools.islice(rows, count))
        return replace(
            pair,
            made=pair.made.concatenate(pair.made.take(count)),
            model=Concatenated(pair.model, tail),
        )

    return step


def zip_with_numbers(count: int) -> Step:
    """Zips with numbers that come in longer blocks than rows that change shape, and adds them."""

    def add(x: np.ndarray, y: np.ndarray) -> Any:
        return x + y.reshape(-1, *[1] * (x.ndim - 1))

    def model(source: Model) -> Model:
        def rows(given: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
            return (x + y for y, x in zip(range(count), given, strict=False))

        return Transformed(source, rows)

    step = _step(lambda d: Dataset.zip((d, Dataset.range(count))).map(add), model)
    return lambda pair: replace(step(pair), endless=False)


def filter_step(pair: Pair) -> Pair:
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


def file_cache(pair: Pair) -> Pair:
    # Which pass fills the file depends on how far it was read: rows must be the same in each.
    path = str(FOLDER / uuid.uuid4().hex)
    return (
        replace(
            pair,
            made=pair.made.map(lambda block: block).cache(path),
            model=Unshuffled(pair.model),
        )
        if pair.repeatable
        else pair
    )


def random_step(pair: Pair) -> Pair:
    """A function with a random operation: a stand-in that draws by the same two numbers."""

    def function(block: np.ndarray) -> Any:
        numbers = np.arange(PLACE.first, PLACE.first + len(block))
        return block + noise(numbers, PLACE.epoch).reshape(-1, *[1] * (block.ndim - 1))

    return replace(pair, made=pair.made.map(function), model=Numbered(pair.model), repeatable=False)


def padded_batch(size: int, drop: bool) -> Step:
    step = _step(
        lambda d: d.padded_batch(size, padding_values=np.int64(-1), drop_remainder=drop),
        lambda m: Transformed(m, padded(size, drop, -1)),
    )
    return lambda pair: replace(step(pair), rank=pair.rank + 1, varying=pair.varying + 1)


def unbatch(pair: Pair) -> Pair:
    if not pair.rank:
        return pair
    return replace(
        pair,
        made=pair.made.unbatch(),
        model=Transformed(pair.model, lambda rows: (part for row in rows for part in row)),
        rank=pair.rank - 1,
        varying=max(0, pair.varying - 1),
    )


def window(size: int, shift: int, stride: int, drop: bool) -> Step:
    def batches(pair: Pair) -> Pair:
        made = pair.made.window(size, shift, stride, drop)
        cut = windows(size, shift, stride, drop)
        if pair.batchable:
            return replace(
                pair,
                made=made.flat_map(lambda window: window.batch(size)),
                model=Transformed(pair.model, lambda rows: map(np.stack, cut(rows))),
                rank=pair.rank + 1,
                varying=1,
            )
        return replace(
            pair,
            made=made.flat_map(lambda window: window),
            model=Transformed(pair.model, lambda rows: (row for each in cut(rows) for row in each)),
        )

    return batches


def flat_map(cycle: int | None, block: int) -> Step:
    """Interleaves short datasets; `cycle` None: flat_map."""

    def step(pair: Pair) -> Pair:
        least = 1 if pair.endless else 0  # nothing, for ever, would never return

        def inner(rows: np.ndarray) -> Dataset:
            total = int(np.sum(rows))
            return Dataset.range(least + total % 4).map(lambda x: x + total).repeat(2)

        def plain(row: Any) -> list[Any]:
            total = np.sum(row)
            return [total + x for x in range(least + int(total) % 4)] * 2

        made = (
            pair.made.flat_map(inner)
            if cycle is None
            else pair.made.interleave(inner, cycle, block)
        )
        turns = in_turns(plain, cycle or 1, block if cycle else 10**6)
        return replace(pair, made=made, model=Transformed(pair.model, turns), rank=0, varying=0)

    return step


def group(size: int) -> Step:
    def step(pair: Pair) -> Pair:
        gather = grouped(lambda row: int(np.sum(row)) % 3, size)
        made = pair.made.group_by_window(
            lambda block: _sums(block) % 3,
            lambda key, window: window.batch(size) if pair.batchable else window,
            window_size=size,
        )
        if not pair.batchable:
            return replace(
                pair,
                made=made,
                model=Transformed(
                    pair.model, lambda rows: (row for group in gather(rows) for row in group)
                ),
            )
        model = Transformed(pair.model, lambda rows: map(np.stack, gather(rows)))
        return replace(pair, made=made, model=model, rank=pair.rank + 1, varying=1)

    return step


def scan(pair: Pair) -> Pair:
    def model(rows: Iterator[np.ndarray]) -> Iterator[Any]:
        return itertools.islice(
            itertools.accumulate(
                rows, lambda state, row: (state * 2 + np.sum(row)) % 101, initial=np.int64(5)
            ),
            1,
            None,
        )

    def function(state: np.ndarray, block: np.ndarray) -> Any:
        after = (state * 2 + _sums(block)) % 101
        return after, after

    return replace(
        pair,
        made=pair.made.scan(np.int64(5), function),
        model=Transformed(pair.model, model),
        rank=0,
        varying=0,
    )


def take_while(limit: int) -> Step:
    return _step(
        lambda d: d.take_while(lambda block: _sums(block) < limit),
        lambda m: Transformed(
            m, lambda rows: itertools.takewhile(lambda row: np.sum(row) < limit, rows)
        ),
    )


def choose(choices: list[int], stop: bool) -> Step:
    def step(pair: Pair) -> Pair:
        numbers = Dataset.from_tensor_slices(np.array(choices, np.int64))
        inputs = [pair.made, pair.made.take(4)]
        other = Transformed(copy.deepcopy(pair.model), lambda rows: itertools.islice(rows, 4))
        chosen = Source([np.int64(choice) for choice in choices])
        return replace(
            pair,
            made=Dataset.choose_from_datasets(inputs, numbers, stop),
            model=Chosen(chosen, pair.model, other, stop_on_empty=stop),
            endless=False,
        )

    return step


def sample(seed: int, stop: bool) -> Step:
    weights = [0.6, 0.4]

    def step(pair: Pair) -> Pair:
        inputs = [pair.made.skip(2), pair.made]
        other = Transformed(copy.deepcopy(pair.model), lambda rows: itertools.islice(rows, 2, None))
        drawn = Drawn(weights, Seeds(GRAPH_SEED).stream(seed).key)
        return replace(
            pair,
            made=Dataset.sample_from_datasets(inputs, weights, seed, stop),
            model=Chosen(drawn, other, pair.model, stop_on_empty=stop),
            repeatable=False,
        )

    return step


def _is_bad(row: Any) -> bool:
    return bool(np.sum(row) % 5 == 3)


def _fails(block: np.ndarray) -> np.ndarray:
    if (_sums(block) % 5 == 3).any():
        raise InvalidArgumentError(None, None, "a bad row")
    return block


def failing_step(pair: Pair) -> Pair:
    """A function that fails for some rows, which no step ignores: there is no model of that."""
    return replace(pair, made=pair.made.map(_fails), repeatable=False)


def ignore_errors(pair: Pair) -> Pair:
    if pair.endless:  # it might drop all rows
        return pair
    return replace(
        pair,
        made=pair.made.map(_fails).ignore_errors(),
        model=Transformed(pair.model, lambda rows: (row for row in rows if not _is_bad(row))),
    )


def ignore_batches(size: int, drop: bool) -> Step:
    def step(pair: Pair) -> Pair:
        if pair.endless or not pair.batchable:
            return pair
        return replace(
            pair,
            made=pair.made.map(_fails).batch(size, drop).ignore_errors(),
            model=Transformed(pair.model, losing(size, drop, _is_bad)),
            rank=pair.rank + 1,
            varying=1,
        )

    return step


def zip_with_itself(count: int) -> Step:
    def step(pair: Pair) -> Pair:
        if not pair.batchable:
            return pair
        other = Transformed(
            copy.deepcopy(pair.model), lambda rows: itertools.islice(rows, count, None)
        )
        return replace(
            pair,
            made=Dataset.zip((pair.made, pair.made.skip(count))).map(lambda x, y: x * 2 + y),
            model=Zipped(pair.model, other),
        )

    return step


def prefetch(size: int) -> Step:
    return _step(lambda d: d.prefetch(size), lambda m: m)
