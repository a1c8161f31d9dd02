"""The transformations of a `Dataset`."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core.dtypes import int32, int64, string
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.data import plan as plans, ports
from estimatorkit.data.execution.caching import Cache, FileCache
from estimatorkit.data.execution.counted import Unique
from estimatorkit.data.execution.errors_ignored import IgnoreErrors
from estimatorkit.data.execution.nesting import Interleave, Window
from estimatorkit.data.options import Options
from estimatorkit.data.parameters import choice, integer, parameter, then
from estimatorkit.data.plan import Plan
from estimatorkit.data.spec import TensorSpec, compatible, flatten, pack
from estimatorkit.data.tracing import trace_function
from estimatorkit.data.transformations import (
    bucketed,
    check_dataset,
    group_plan,
    padding,
    rebatched,
    scan_plan,
    unbatched,
)

if TYPE_CHECKING:
    from estimatorkit.data.dataset import Dataset

AUTOTUNE = -1

# Elements of a finished pipeline that AUTOTUNE prefetches.
_AUTOTUNED_PREFETCH = 2


class Transformable:
    """The base class of `Dataset`, with its transformations."""

    _plan: Plan
    _options: Options | None

    @property
    def element_spec(self) -> Any:
        """The nested structure of an element's specs."""
        return self._plan.element_spec

    def _made(self, plan: Plan) -> Dataset:
        """The dataset of a plan, with the options of this one."""
        raise NotImplementedError

    def _itself(self) -> Dataset:
        return self  # type: ignore[return-value]

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Shuffles the elements.

        Each element is drawn at random from a buffer of `buffer_size`, and replaced by the next
        one; only a buffer as large as the dataset shuffles uniformly. For arrays in memory only
        row indices are buffered.

        Args:
            buffer_size: elements in the buffer, >= 1.
            seed: makes the order reproducible, as does a seed of the graph.
            reshuffle_each_iteration: whether each epoch has a different order; True by default.
        """
        size = integer(
            "shuffle(): buffer_size",
            buffer_size,
            least=1,
            rule="buffer_size must be greater than zero",
        )
        reshuffle = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        given = None if seed is None else integer("shuffle(): seed", seed)
        return self._made(plans.Shuffle(self._plan, size, given, reshuffle))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Repeats the dataset `count` times; indefinitely if None or negative."""
        times = None if count is None else integer("repeat(): count", count)
        times = then(times, lambda found: None if found is None or found < 0 else found)
        return self._made(plans.Repeat(self._plan, times))

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """Takes the first `count` elements; all if negative."""
        return self._made(plans.Take(self._plan, integer("take(): count", count)))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Skips the first `count` elements; all if negative."""
        return self._made(plans.Skip(self._plan, integer("skip(): count", count)))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Takes every `num_shards`-th element, beginning with element `index`."""
        shards = integer(
            "shard(): num_shards",
            num_shards,
            least=1,
            rule="Number of shards must be greater than zero",
        )
        number = integer(
            "shard(): index", index, least=0, rule="Index must be between 0 and num_shards - 1"
        )
        return self._made(plans.Shard(self._plan, shards, number))

    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Combines consecutive elements into batches.

        Args:
            batch_size: elements per batch, >= 1.
            drop_remainder: drop a smaller last batch, making the batch dimension static.
            num_parallel_calls, deterministic, name: have no effect.
        """
        _check_calls("batch", num_parallel_calls)
        size = integer(
            "batch(): batch_size", batch_size, least=1, rule="Batch size must be greater than zero"
        )
        return self._made(plans.Batch(self._plan, size, choice(drop_remainder)))

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Applies a function to each element.

        Args:
            map_func: takes an element as tensors (a tuple as several arguments) and returns a
                nested structure of tensors; it is traced once.
            num_parallel_calls, deterministic: have no effect: the function runs on whole blocks,
                in order.
            name: has no effect.
        """
        _check_calls("map", num_parallel_calls)
        return self._made(plans.Map(self._plan, trace_function(map_func, self.element_spec)))

    map_with_legacy_function = map

    def flat_map(self, map_func: Callable[..., Dataset], name: str | None = None) -> Dataset:
        """Maps elements to datasets by `map_func`, and concatenates these."""
        return self._interleaved("flat_map", map_func, 1, sys.maxsize)

    def interleave(
        self,
        map_func: Callable[..., Dataset],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Maps elements to datasets by `map_func`, and interleaves these.

        Args:
            map_func: maps an element to a dataset, such as a file name to its lines.
            cycle_length: the number of datasets to interleave; by default the number of CPU cores.
            block_length: the number of consecutive elements from each; 1 by default.
            num_parallel_calls, deterministic, name: have no effect: the order is deterministic.
        """
        _check_calls("interleave", num_parallel_calls)
        if cycle_length is None or (isinstance(cycle_length, int) and cycle_length == AUTOTUNE):
            cycle_length = os.cpu_count() or 1
        block_length = 1 if block_length is None else block_length
        return self._interleaved("interleave", map_func, cycle_length, block_length)

    def _interleaved(
        self, what: str, map_func: Callable[..., Dataset], cycle_length: Any, block_length: Any
    ) -> Dataset:
        traced = trace_function(map_func, self.element_spec)
        check_dataset(what, traced.output_spec)
        cycle = integer(
            f"{what}(): cycle_length",
            cycle_length,
            least=1,
            rule="cycle_length must be greater than zero",
        )
        block = integer(
            f"{what}(): block_length",
            block_length,
            least=1,
            rule="block_length must be greater than zero",
        )
        return self._made(Interleave(self._plan, traced, cycle, block))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Keeps the elements for which `predicate` (traced as in `map`) is true."""
        return self._made(plans.Filter(self._plan, self._predicate("filter", predicate)))

    filter_with_legacy_function = filter

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Takes elements while `predicate` is true."""
        return self._made(plans.TakeWhile(self._plan, self._predicate("take_while", predicate)))

    def unique(self, name: str | None = None) -> Dataset:
        """Removes duplicate elements.

        Raises:
            TypeError: elements are not scalars of int32, int64 or string.
        """
        spec = self.element_spec
        if (
            not isinstance(spec, TensorSpec)
            or spec.shape.rank not in (0, None)
            or spec.dtype not in (int32, int64, string)
        ):
            raise type_error(
                "`tf.data.Dataset.unique()` does not support the elements: only `tf.int32`, "
                "`tf.int64` and `tf.string` are supported",
                received=spec,
            )
        return self._made(Unique(self._plan))

    def _predicate(self, what: str, predicate: Callable[..., Any]) -> Any:
        traced = trace_function(predicate, self.element_spec)
        spec = traced.output_spec
        if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(TensorSpec((), bool)):
            raise value_error(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor: "
                f"{what}() accepts no other",
                expected=TensorSpec((), bool),
                received=spec,
            )
        return traced

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Combines consecutive elements into batches, padded to one shape.

        Args:
            batch_size: elements per batch, >= 1.
            padded_shapes: the nested structure of padded shapes; None or -1 pads a dimension to the
                longest in the batch. By default the elements' static shapes.
            padding_values: the nested structure of padding scalars; 0 or b"" by default.
            drop_remainder: drop a smaller last batch.
            name: has no effect.
        """
        size = integer(
            "padded_batch(): batch_size",
            batch_size,
            least=1,
            rule="Batch size must be greater than zero",
        )
        shapes, paddings = padding(self.element_spec, padded_shapes, padding_values)
        drop = choice(drop_remainder)
        return self._made(plans.PaddedBatch(self._plan, size, drop, shapes, paddings))

    def unbatch(self, name: str | None = None) -> Dataset:
        """Splits elements along their first dimension."""
        specs = [unbatched(leaf) for leaf in flatten(self.element_spec)]
        return self._made(plans.Unbatch(self._plan, pack(self.element_spec, specs)))

    def rebatch(
        self, batch_size: Any, drop_remainder: Any = False, name: str | None = None
    ) -> Dataset:
        """Divides batches into rows, and combines these into batches of another size.

        Args:
            batch_size: rows per batch, >= 1; a vector gives the sizes of consecutive batches, again
                from its first one after the last.
            drop_remainder: drop a smaller last batch.
            name: has no effect.

        Raises:
            ValueError: the elements are scalars.
        """
        return rebatched(self._itself(), batch_size, drop_remainder)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Drops elements at random to reach a target distribution of classes.

        See `experimental.rejection_resample`.
        """
        resampled = ports.experimental.rejection_resample(
            class_func, target_dist, initial_dist, seed
        )
        return self.apply(resampled)

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Groups consecutive elements into windows: datasets, one per component.

        Args:
            size: elements per window.
            shift: the distance between the starts of windows; `size` by default.
            stride: the distance between elements of a window.
            drop_remainder: drop smaller windows at the end.
            name: has no effect.
        """
        length = integer(
            "window(): size", size, least=1, rule="Window size must be greater than zero"
        )
        step = (
            length
            if shift is None
            else integer(
                "window(): shift", shift, least=1, rule="Window shift must be greater than zero"
            )
        )
        apart = integer(
            "window(): stride", stride, least=1, rule="Window stride must be greater than zero"
        )
        return self._made(Window(self._plan, length, step, apart, choice(drop_remainder)))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Dataset], Dataset],
        window_size: Any = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Groups elements by key, and reduces windows of each group to datasets.

        Args:
            key_func: maps an element to a scalar int64 key.
            reduce_func: maps a key and a dataset of up to `window_size` elements to a dataset.
            window_size: elements per window, or
            window_size_func: maps a key to this number.
            name: has no effect.

        Raises:
            ValueError: not exactly one of the last two is given, or the key is not a scalar int64.
        """
        return self._made(
            group_plan(self._plan, key_func, reduce_func, window_size, window_size_func)
        )

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Any,
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Batches elements of similar length, with padding.

        Args:
            element_length_func: maps an element to its length, int32.
            bucket_boundaries: the exclusive upper length bounds of all buckets but the last.
            bucket_batch_sizes: the batch size of each bucket, one more than boundaries.
            padded_shapes, padding_values: as for `padded_batch`.
            pad_to_bucket_boundary: pad to the boundary - 1 rather than to the longest element.
            no_padding: the elements of a batch have the same shape already.
            drop_remainder: drop smaller batches at the end.
            name: has no effect.
        """
        return bucketed(
            self._itself(),
            element_length_func,
            bucket_boundaries,
            bucket_batch_sizes,
            padded_shapes,
            padding_values,
            pad_to_bucket_boundary,
            no_padding,
            drop_remainder,
        )

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> Dataset:
        """Maps elements by a stateful function.

        Args:
            initial_state: the initial state, a nested structure of values.
            scan_func: maps (state, element) to the next state and an element; the state's dtypes
                and shapes are fixed.
            name: has no effect.
        """
        return self._made(scan_plan(self._plan, initial_state, scan_func))

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """Folds elements by `reduce_func(state, element)`; returns the final state as tensors."""
        return ports.dataset_values.reduce_dataset(self._itself(), initial_state, reduce_func)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element of the dataset, as tensors."""
        return ports.dataset_values.single_element(self._itself())

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Drops elements that raise errors, and logs their number at the end of an epoch.

        Args:
            log_warning: log each error.
            name: has no effect.
        """
        return self._made(IgnoreErrors(self._plan, bool(log_warning)))

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Sets options, which do not change elements."""
        made = self._made(self._plan)
        made._options = (self._options or Options()).merge(options)
        return made

    def options(self) -> Options:
        """The options of this dataset, and of those that it is made of; they cannot be changed."""
        return (self._options or Options()).fixed()

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Appends another dataset with elements of the same structure and dtypes."""
        mine, other = self.element_spec, dataset.element_spec
        if not compatible(mine, other):
            raise type_error(
                "Incompatible dataset elements: those of the two datasets of concatenate() "
                "differ in structure or dtypes",
                expected=mine,
                received=other,
            )
        return with_options_of(
            (self, dataset), self._made(plans.Concatenate(self._plan, dataset._plan))
        )

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Caches the elements of the first epoch for later ones.

        Args:
            filename: the prefix of the file, `filename` + '.cache', which is written during the
                first complete epoch, and may be shared by programs; by default in memory.
            name: has no effect.
        """
        if isinstance(filename, str) and not filename:
            return self._made(Cache(self._plan))
        path = parameter(
            os.fspath(filename) if hasattr(filename, "__fspath__") else filename,
            string,
            "cache(): filename",
        )
        return self._made(FileCache(self._plan, path))

    def prefetch(self, buffer_size: Any = None, name: str | None = None) -> Dataset:
        """Prefetches elements on a background thread.

        Args:
            buffer_size: the most elements to prefetch; None or AUTOTUNE chooses automatically, 0
                disables prefetching.
            name: has no effect.
        """
        size = AUTOTUNE if buffer_size is None else integer("prefetch(): buffer_size", buffer_size)
        return self._made(plans.Prefetch(self._plan, then(size, _prefetched)))

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """Pairs elements with their int64 index, counting from `start`."""
        first = integer("enumerate(): start", start)
        numbers = then(first, lambda found: range(found, 2**63 - 1))
        pair = plans.Zip((0, 1), (plans.Range(numbers), self._plan))
        return self._made(pair)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns `transformation_func(self)`."""
        return transformation_func(self._itself())


def _check_calls(what: str, calls: Any) -> None:
    if isinstance(calls, (int, np.integer)) and calls != AUTOTUNE:
        rule = "num_parallel_calls must be greater than zero"
        integer(f"{what}(): num_parallel_calls", calls, least=1, rule=rule)


def with_options_of(datasets: Iterable[Transformable], made: Dataset) -> Dataset:
    """Gives a dataset that is made of several ones the options of all."""
    given = [each._options for each in datasets if each._options is not None]
    made._options = functools.reduce(Options.merge, given) if given else None
    return made


def _prefetched(size: int) -> int:
    if size == AUTOTUNE:
        return _AUTOTUNED_PREFETCH
    checked: int = integer(
        "prefetch(): buffer_size", size, least=0, rule="buffer_size must be >= 0"
    )
    return checked
