"""`Dataset`: the public face of plans (`tf.data.Dataset`).

A Dataset is immutable: each transformation returns a new one over a new `Plan`, and holds no
position. Iterators hold positions: `make_block_iterator` gives blocks of columns to the training
loop, `iter(dataset)` single elements. Numbers and names that a transformation takes may be tensors.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from estimatorkit.core import nest
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import as_dtype, string
from estimatorkit.core.errors import OutOfRangeError, explain
from estimatorkit.core.shapes import as_shape
from estimatorkit.data import plan as plans
from estimatorkit.data.block_iterator import BlockIterator
from estimatorkit.data.buffers import count_rows
from estimatorkit.data.caching import Cache, FileCache
from estimatorkit.data.errors_ignored import IgnoreErrors
from estimatorkit.data.nesting import Interleave, Window
from estimatorkit.data.options import Options
from estimatorkit.data.parameters import choice, integer, parameter, then
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan
from estimatorkit.data.randomness import Seeds
from estimatorkit.data.sources import collect, columns_of_one, columns_of_slices, range_of
from estimatorkit.data.spec import DatasetSpec, TensorSpec, compatible, flatten, flatten_as, pack
from estimatorkit.data.tracing import trace_function
from estimatorkit.data.transformations import (
    bucketed,
    check_dataset,
    group_plan,
    padding,
    scan_plan,
    unbatched,
    value_class,
)

if TYPE_CHECKING:
    from estimatorkit.data.iterator_ops import Iterator as GraphIterator

AUTOTUNE = -1

# How many elements of a finished pipeline are ready ahead when the user leaves the number to us.
_AUTOTUNED_PREFETCH = 2

# Host iteration asks for blocks of 1, 2, 4, ... elements up to this number: the first element comes
# at once, and the cost of a block is soon shared.
_HOST_BLOCK = 64
_HOST_BYTES = 4 << 20  # of a block: what is gathered is still in the caches when it is handed out


class Dataset:
    """A sequence of elements, each a nest of dicts and tuples of arrays, and how to make it.

    Args:
        plan: what is to be done. Use the static methods (`from_tensor_slices`, ...) instead.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._options: Options | None = None

    # Sources

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """A dataset of the rows of arrays.

        Arrays are referred to, not copied, where they are C-contiguous; do not change them while
        they are read.

        Args:
            tensors: nested arrays, Series or lists, equal in their first dimension; a DataFrame
                counts as the dict of its columns (TensorFlow: as one matrix). Lists become int32 or
                float32, arrays keep their dtype.

        Raises:
            ValueError: empty structure, scalar leaf, first dimensions differ, ragged or missing
                values.
            TypeError: a leaf holds dates or Python objects.
        """
        spec, columns = columns_of_slices(tensors)
        return Dataset(plans.Slices(spec, tuple(columns)))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """A dataset of one element, `tensors` (see `from_tensor_slices` for what it may hold)."""
        spec, columns = columns_of_one(tensors)
        return Dataset(plans.Slices(spec, tuple(columns)))

    @staticmethod
    def range(*args: int) -> Dataset:
        """The int64 numbers of Python's `range` with the same arguments."""
        given = tuple(integer("range(): an argument", arg) for arg in args)
        return Dataset(plans.Range(collect(given, range_of)))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] = (),
        output_signature: Any = None,
    ) -> Dataset:
        """A dataset of what a Python generator yields.

        A position saved within a pass is restored by running a new generator up to it.

        Args:
            generator: a callable that returns an iterable of elements, called once a pass.
            output_types: the nest of dtypes of an element.
            output_shapes: the nest of shapes; default: unknown.
            args: what to call `generator` with.
            output_signature: the nest of `TensorSpec`s, instead of the two before.

        Raises:
            TypeError: `generator` is not callable, or neither types nor signature are given.
        """
        if not callable(generator):
            raise TypeError(
                explain(
                    "from_generator() needs a function that makes the generator",
                    expected="a callable",
                    received=repr(generator),
                    hint="pass the function itself, without calling it",
                )
            )
        if (output_signature is None) == (output_types is None):
            raise TypeError("from_generator() takes either output_signature or output_types.")
        if output_signature is None:
            dtypes = flatten(output_types)
            shapes = (
                [None] * len(dtypes)
                if output_shapes is None
                else flatten_as(output_types, output_shapes)
            )
            output_signature = pack(
                output_types,
                [
                    TensorSpec(as_shape(shape), as_dtype(dtype))
                    for shape, dtype in zip(shapes, dtypes, strict=True)
                ],
            )
        return Dataset(plans.Generated(functools.partial(generator, *args), output_signature))

    @staticmethod
    def zip(datasets: Any, *more: Dataset) -> Dataset:
        """Elements of several datasets side by side, until the shortest ends.

        Args:
            datasets: a nest of datasets; the elements are nested alike.
            more: further datasets, where `datasets` is a single one.
        """
        structure = (datasets, *more) if more or isinstance(datasets, Dataset) else datasets
        leaves = flatten(structure)
        for leaf in leaves:
            if not isinstance(leaf, Dataset):
                raise TypeError(
                    explain(
                        "zip() takes a nest of datasets",
                        expected="dicts and tuples of Dataset (a list is no nest)",
                        received=repr(leaf),
                    )
                )
        return Dataset(plans.Zip(structure, tuple(leaf._plan for leaf in leaves)))

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The names of the files that match a pattern, or any of several.

        Args:
            file_pattern: as `gfile.glob` takes them.
            shuffle: whether each pass has an order of its own; default True.
            seed: of the order.
            name: has no effect.

        Raises:
            InvalidArgumentError: no file matches.
        """
        from estimatorkit.data.list_files import list_files

        return list_files(file_pattern, shuffle, seed)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """A dataset of the rows of a sparse tensor (`from_tensor_slices` takes it, too)."""
        return Dataset.from_tensor_slices(sparse_tensor)

    @staticmethod
    def random(seed: int | None = None, name: str | None = None) -> Dataset:
        """Random int64 numbers without end, uniform in [0, 2**32)."""
        from estimatorkit.data.mixing import RandomNumbers

        return Dataset(RandomNumbers(seed=seed))

    @staticmethod
    def sample_from_datasets(
        datasets: Any,
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
    ) -> Dataset:
        """At each step an element of a random dataset: see `experimental`."""
        from estimatorkit.data.experimental import sample_from_datasets

        return sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)

    @staticmethod
    def choose_from_datasets(
        datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """At each step an element of the dataset of a number: see `experimental`."""
        from estimatorkit.data.experimental import choose_from_datasets

        return choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)

    # Transformations

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements in random order.

        A buffer of `buffer_size` elements gives a random one, which the next element replaces; so a
        buffer as large as the dataset makes each order equally probable. Over arrays in memory only
        row numbers are shuffled.

        Args:
            buffer_size: elements in the buffer, >= 1.
            seed: with it, or with a seed of the graph, the order is the same in each run.
            reshuffle_each_iteration: whether each epoch has an order of its own; default True.
        """
        size = integer("shuffle(): buffer_size", buffer_size, least=1)
        reshuffle = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        given = None if seed is None else integer("shuffle(): seed", seed)
        return Dataset(plans.Shuffle(self._plan, size, given, reshuffle))

    def repeat(self, count: int | None = None) -> Dataset:
        """The elements `count` times; None or a negative number: for ever."""
        times = None if count is None else integer("repeat(): count", count)
        times = then(times, lambda found: None if found is None or found < 0 else found)
        return Dataset(plans.Repeat(self._plan, times))

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all of them where `count` is negative."""
        return Dataset(plans.Take(self._plan, integer("take(): count", count)))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; none where `count` is negative."""
        return Dataset(plans.Skip(self._plan, integer("skip(): count", count)))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """The elements whose number, modulo `num_shards`, is `index`."""
        shards = integer("shard(): num_shards", num_shards, least=1)
        number = integer("shard(): index", index, least=0)
        return Dataset(plans.Shard(self._plan, shards, number))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Batches of consecutive elements.

        Args:
            batch_size: elements a batch, >= 1.
            drop_remainder: leave out a last batch of fewer elements; the first dimension is then
                known.
        """
        size = integer("batch(): batch_size", batch_size, least=1)
        return Dataset(plans.Batch(self._plan, size, choice(drop_remainder)))

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Applies a function to each element.

        Args:
            map_func: takes the element (a tuple is unpacked) as tensors, returns a nest of tensors.
                It is traced once.
            num_parallel_calls, deterministic: have no effect: the function runs on whole blocks,
                in order.
            name: has no effect.
        """
        return Dataset(plans.Map(self._plan, trace_function(map_func, self.element_spec)))

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
        cycle = integer(f"{what}(): cycle_length", cycle_length, least=1)
        block = integer(f"{what}(): block_length", block_length, least=1)
        return Dataset(Interleave(self._plan, traced, cycle, block))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Keeps the elements for which `predicate` (traced, as in `map`) gives true."""
        return Dataset(plans.Filter(self._plan, self._predicate("filter", predicate)))

    filter_with_legacy_function = filter

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first for which `predicate` does not give true."""
        return Dataset(plans.TakeWhile(self._plan, self._predicate("take_while", predicate)))

    def _predicate(self, what: str, predicate: Callable[..., Any]) -> Any:
        traced = trace_function(predicate, self.element_spec)
        spec = traced.output_spec
        if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(TensorSpec((), bool)):
            raise ValueError(
                explain(
                    f"{what}(): the predicate does not return a scalar boolean",
                    expected=TensorSpec((), bool),
                    received=spec,
                )
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
        size = integer("padded_batch(): batch_size", batch_size, least=1)
        shapes, paddings = padding(self.element_spec, padded_shapes, padding_values)
        drop = choice(drop_remainder)
        return Dataset(plans.PaddedBatch(self._plan, size, drop, shapes, paddings))

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows along the first dimension of each element."""
        specs = [unbatched(leaf) for leaf in flatten(self.element_spec)]
        return Dataset(plans.Unbatch(self._plan, pack(self.element_spec, specs)))

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
        length = integer("window(): size", size, least=1)
        step = length if shift is None else integer("window(): shift", shift, least=1)
        apart = integer("window(): stride", stride, least=1)
        return Dataset(Window(self._plan, length, step, apart, choice(drop_remainder)))

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
        return Dataset(group_plan(self._plan, key_func, reduce_func, window_size, window_size_func))

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
            self,
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
        return Dataset(scan_plan(self._plan, initial_state, scan_func))

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """The last state, where `reduce_func(state, element)` gives the next one: tensors."""
        from estimatorkit.data.dataset_values import reduce_dataset

        return reduce_dataset(self, initial_state, reduce_func)

    def get_single_element(self, name: str | None = None) -> Any:
        """The element of a dataset that has exactly one: tensors."""
        from estimatorkit.data.dataset_values import single_element

        return single_element(self)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Leaves out elements that cannot be made, and logs how many at the end of a pass.

        Args:
            log_warning: log each of them.
            name: has no effect.
        """
        return Dataset(IgnoreErrors(self._plan, bool(log_warning)))

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same dataset with options, which `options()` gives; they change no element."""
        made = Dataset(self._plan)
        made._options = options if self._options is None else self._options.merge(options)
        return made

    def options(self) -> Options:
        """The options of this dataset."""
        return self._options or Options()

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another of the same structure and dtypes."""
        mine, other = self.element_spec, dataset.element_spec
        if not compatible(mine, other):
            raise TypeError(
                explain(
                    "concatenate(): the elements of the two datasets differ in structure or dtypes",
                    expected=mine,
                    received=other,
                )
            )
        return Dataset(plans.Concatenate(self._plan, dataset._plan))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Keeps the elements of the first pass; later passes give the same again.

        Args:
            filename: the file is `filename` + '.cache', written during the first whole pass and
                read by later ones, of other programs too; by default the memory holds them.
            name: has no effect.
        """
        if isinstance(filename, str) and not filename:
            return Dataset(Cache(self._plan))
        path = parameter(
            os.fspath(filename) if hasattr(filename, "__fspath__") else filename,
            string,
            "cache(): filename",
        )
        return Dataset(FileCache(self._plan, path))

    def prefetch(self, buffer_size: Any = None, name: str | None = None) -> Dataset:
        """Reads ahead on a thread.

        Args:
            buffer_size: elements to hold ready; None or AUTOTUNE leaves the number to the library;
                0: no thread.
            name: has no effect.
        """
        size = AUTOTUNE if buffer_size is None else integer("prefetch(): buffer_size", buffer_size)
        return Dataset(plans.Prefetch(self._plan, then(size, _prefetched)))

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """Pairs (number, element), the int64 numbers counting from `start`."""
        first = integer("enumerate(): start", start)
        numbers = then(first, lambda found: range(found, 2**63 - 1))
        return Dataset.zip((Dataset(plans.Range(numbers)), self))

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns `transformation_func(self)`."""
        return transformation_func(self)

    # What it is

    @property
    def element_spec(self) -> Any:
        """The nest of `TensorSpec`s that describes an element."""
        return self._plan.element_spec

    @property
    def output_types(self) -> Any:
        """The nest of dtypes of an element."""
        return self._map_spec(lambda spec: spec.dtype)

    @property
    def output_shapes(self) -> Any:
        """The nest of `TensorShape`s of an element."""
        return self._map_spec(lambda spec: spec.shape)

    @property
    def output_classes(self) -> Any:
        """The nest of the classes of an element's leaves: `Tensor`, `SparseTensor`, `Dataset`."""
        return self._map_spec(value_class)

    def _map_spec(self, function: Callable[[Any], Any]) -> Any:
        return nest.map_structure(function, self.element_spec, lists_are_leaves=True)

    def cardinality(self) -> int:
        """The number of elements; INFINITE (-1), or UNKNOWN (-2) where only a run can tell."""
        return self._plan.cardinality

    def __len__(self) -> int:
        count = self.cardinality()
        if count == INFINITE:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self) -> bool:
        return True  # as an object, whatever its length

    def __repr__(self) -> str:
        return f"<{type(self._plan).__name__}Dataset element_spec={self.element_spec}>"

    # Execution

    def make_block_iterator(self, seed: int | None = None, state: Any = None) -> BlockIterator:
        """Makes an iterator over blocks of columns: see `BlockIterator`.

        Args:
            seed: the seed of the graph; shuffles without a seed of their own draw from it.
            state: the state of the session whose tables and variables functions use; default:
                that of the default session, if there is one.
        """
        plan = self._plan
        if state is None:
            session = get_default_session()
            state = None if session is None else session.state
        tensors = plan.tensors()
        if tensors:
            from estimatorkit.data.traced_functions import value_of

            plan = plan.bind({tensor: value_of(tensor, state) for tensor in tensors})
        return plan.iterator(Seeds(seed, state))

    def make_one_shot_iterator(self) -> GraphIterator:
        """Makes an iterator in the graph that needs no initialization (TensorFlow 1)."""
        from estimatorkit.data.iterator_ops import make_one_shot_iterator

        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> GraphIterator:
        """Makes an iterator in the graph that starts when its `initializer` is run."""
        from estimatorkit.data.iterator_ops import make_initializable_iterator

        return make_initializable_iterator(self, shared_name)

    def __iter__(self) -> Iterator[Any]:
        """Iterates on the host: elements as nests of NumPy values (strings: `bytes`)."""
        spec = self.element_spec
        nested = [isinstance(leaf, DatasetSpec) for leaf in flatten(spec)]
        iterator = self.make_block_iterator()
        rows = 1
        try:
            while True:
                try:
                    block = iterator.next_block(rows)
                except OutOfRangeError:
                    return
                for row in range(count_rows(block)):
                    leaves = [column[row] for column in block]
                    if any(nested):
                        pairs = zip(leaves, nested, strict=True)
                        leaves = [Dataset(leaf) if inner else leaf for leaf, inner in pairs]
                    yield pack(spec, leaves)
                size = sum(column.nbytes for column in block) // count_rows(block)
                rows = max(1, min(2 * rows, _HOST_BLOCK, _HOST_BYTES // max(1, size)))
        finally:
            iterator.close()

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The same as `iter(dataset)`."""
        return iter(self)


def _prefetched(size: int) -> int:
    if size == AUTOTUNE:
        return _AUTOTUNED_PREFETCH
    checked: int = integer("prefetch(): buffer_size", size, least=0)
    return checked
