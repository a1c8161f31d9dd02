"""The transformations of a `Dataset`: its methods that return another one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from estimatorkit.core.dtypes import int32, int64, string
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.data import late_bound
from estimatorkit.data import plan as plans
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
    scan_plan,
    unbatched,
)

if TYPE_CHECKING:
    from estimatorkit.data.dataset import Dataset

AUTOTUNE = -1

# How many elements of a finished pipeline are ready ahead when the user leaves the number to us.
_AUTOTUNED_PREFETCH = 2


class Transformable:
    """What can be transformed: the base of `Dataset`."""

    _plan: Plan
    _options: Options | None

    @property
    def element_spec(self) -> Any:
        """The nest of specs that describes an element."""
        return self._plan.element_spec

    def _made(self, plan: Plan) -> Dataset:
        return late_bound.dataset.Dataset(plan)

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
        """The first `count` elements; all of them where `count` is negative."""
        return self._made(plans.Take(self._plan, integer("take(): count", count)))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """All but the first `count` elements; none where `count` is negative."""
        return self._made(plans.Skip(self._plan, integer("skip(): count", count)))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """The elements whose number, modulo `num_shards`, is `index`."""
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
            drop_remainder: drop a smaller last batch, so that the batch dimension is static.
            num_parallel_calls, deterministic, name: have no effect.
        """
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
        return self._made(plans.Map(self._plan, trace_function(map_func, self.element_spec)))

    map_with_legacy_function = map

    def flat_map(self, map_func: Callable[..., Dataset], name: str | None = None) -> Dataset:
        """The elements of the datasets that `map_func` makes of elements, one after the other."""
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
        """The elements of the datasets that `map_func` makes of elements, in turns.

        Args:
            map_func: takes an element, returns a dataset; for example the lines of a file.
            cycle_length: datasets that are read at the same time; default: as many as there are
                processors.
            block_length: elements that each gives in its turn; default 1.
            num_parallel_calls, deterministic: have no effect: the order is that of the turns.
            name: has no effect.
        """
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
        """Keeps the elements for which `predicate` (traced, as in `map`) gives true."""
        return self._made(plans.Filter(self._plan, self._predicate("filter", predicate)))

    filter_with_legacy_function = filter

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first for which `predicate` does not give true."""
        return self._made(plans.TakeWhile(self._plan, self._predicate("take_while", predicate)))

    def unique(self, name: str | None = None) -> Dataset:
        """Each element once, where it comes first.

        Raises:
            TypeError: elements are no scalars of int32, int64 or string.
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
                f"{what}() takes no other",
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
        """Batches of consecutive elements, padded to one shape.

        Args:
            batch_size: elements a batch, >= 1.
            padded_shapes: the nest of shapes of a padded element; None (or -1) for a dimension:
                as long as the longest of the batch. Default: the elements' static shapes.
            padding_values: the nest of scalars that fill up; default 0, or b"" for strings.
            drop_remainder: leave out a last batch of fewer elements.
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
        """The rows along the first dimension of each element."""
        specs = [unbatched(leaf) for leaf in flatten(self.element_spec)]
        return self._made(plans.Unbatch(self._plan, pack(self.element_spec, specs)))

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Datasets of consecutive elements; a component of the elements becomes a dataset.

        Args:
            size: elements a window.
            shift: how much further on the next one begins; default: `size`.
            stride: from one element of a window to the next.
            drop_remainder: leave out windows of fewer elements at the end.
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
        """Gathers elements with one key, and makes datasets of them.

        Args:
            key_func: takes an element, returns a scalar int64.
            reduce_func: takes a key and a dataset of up to `window_size` elements with that key,
                returns a dataset.
            window_size: elements a group; or
            window_size_func: takes a key, returns this number.
            name: has no effect.

        Raises:
            ValueError: both or none of the last two are given, or the key is no scalar int64.
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
        """Batches of elements of similar length, padded.

        Args:
            element_length_func: takes an element, returns its length, int32.
            bucket_boundaries: upper bounds (not included) of the buckets' lengths; the last bucket
                has none.
            bucket_batch_sizes: the batch size of each bucket, one more than boundaries.
            padded_shapes, padding_values: as of `padded_batch`.
            pad_to_bucket_boundary: pad to the boundary less 1 rather than to the longest.
            no_padding: elements of a batch have one shape already.
            drop_remainder: leave out batches of fewer elements at the end.
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
        """What `scan_func(state, element)` makes: the next state, and an element.

        Args:
            initial_state: the first state, a nest of values.
            scan_func: returns (state, element); states keep their dtypes and shapes.
            name: has no effect.
        """
        return self._made(scan_plan(self._plan, initial_state, scan_func))

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """The last state, where `reduce_func(state, element)` gives the next one: tensors."""
        return late_bound.dataset_values.reduce_dataset(self._itself(), initial_state, reduce_func)

    def get_single_element(self, name: str | None = None) -> Any:
        """The element of a dataset that has exactly one: tensors."""
        return late_bound.dataset_values.single_element(self._itself())

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Leaves out elements that cannot be made, and logs how many at the end of a pass.

        Args:
            log_warning: log each of them.
            name: has no effect.
        """
        return self._made(IgnoreErrors(self._plan, bool(log_warning)))

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same dataset with options, which `options()` gives; they change no element."""
        made = self._made(self._plan)
        made._options = options if self._options is None else self._options.merge(options)
        return made

    def options(self) -> Options:
        """The options of this dataset."""
        return self._options or Options()

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """The elements of this dataset, then those of another of the same structure and dtypes."""
        mine, other = self.element_spec, dataset.element_spec
        if not compatible(mine, other):
            raise type_error(
                "concatenate(): the elements of the two datasets differ in structure or dtypes",
                expected=mine,
                received=other,
            )
        return self._made(plans.Concatenate(self._plan, dataset._plan))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Keeps the elements of the first pass; later passes give the same again.

        Args:
            filename: the file is `filename` + '.cache', written during the first whole pass and
                read by later ones, of other programs too; by default the memory holds them.
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
        """Pairs (number, element), the int64 numbers counting from `start`."""
        first = integer("enumerate(): start", start)
        numbers = then(first, lambda found: range(found, 2**63 - 1))
        pair = plans.Zip((0, 1), (plans.Range(numbers), self._plan))
        return self._made(pair)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns `transformation_func(self)`."""
        return transformation_func(self._itself())


def _prefetched(size: int) -> int:
    if size == AUTOTUNE:
        return _AUTOTUNED_PREFETCH
    checked: int = integer(
        "prefetch(): buffer_size", size, least=0, rule="buffer_size must be >= 0"
    )
    return checked
