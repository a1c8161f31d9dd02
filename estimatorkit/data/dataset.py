"""`Dataset`: the public face of plans (`tf.data.Dataset`).

A Dataset is immutable: each transformation returns a new one over a new `Plan`, and holds no
position. Iterators hold
positions: `make_block_iterator` gives blocks of columns to the training loop, `iter(dataset)`
    single elements.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from estimatorkit.core import nest
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError, explain
from estimatorkit.core.shapes import as_shape
from estimatorkit.data import plan as plans
from estimatorkit.data.block_iterator import BlockIterator
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan, TracedFunction
from estimatorkit.data.randomness import Seeds
from estimatorkit.data.spec import TensorSpec, flatten, leaf_names, pack, to_columns

if TYPE_CHECKING:
    from estimatorkit.data.iterator_ops import Iterator as GraphIterator

AUTOTUNE = -1

# How many elements of a finished pipeline are ready ahead when the user leaves the number to us.
_AUTOTUNED_PREFETCH = 2

# Host iteration asks for blocks of 1, 2, 4, ... elements up to this number: the first element comes
# at once, and the cost of a block is soon shared.
_HOST_BLOCK = 64

# Traces a function of one argument, the element as a nest of symbolic tensors as `element_spec`
# describes it. Set by the module that ties datasets to graphs, which lies above this one.
Tracer: TypeAlias = Callable[[Callable[[Any], Any], Any], TracedFunction]
function_tracer: Tracer | None = None


def trace_function(function: Callable[..., Any], element_spec: Any) -> TracedFunction:
    """Traces the function given to `map` or `filter`.

    As in tf.data, a plain tuple is unpacked into several arguments; a dict or a named tuple is one
    argument.

    Raises:
        ValueError: `function` is not callable.
    """
    if not callable(function):
        raise ValueError(
            explain(
                "map() and filter() take a function of an element",
                expected="a callable",
                received=repr(function),
            )
        )
    if function_tracer is None:
        # Sets the tracer. Not at the top: it lies above this module, and brings in the graph core.
        importlib.import_module("estimatorkit.data.iterator_ops")
    tracer = cast("Tracer", function_tracer)

    @functools.wraps(function)
    def of_element(element: Any) -> Any:
        return function(*element) if type(element) is tuple else function(element)

    return tracer(of_element, element_spec)


class Dataset:
    """A sequence of elements, each a nest of dicts and tuples of arrays, and how to make it.

    Args:
        plan: what is to be done. Use the static methods (`from_tensor_slices`, ...) instead.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

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
        structure, columns = to_columns(tensors, "from_tensor_slices()")
        names = leaf_names(structure)
        for name, column in zip(names, columns, strict=True):
            if column.ndim == 0:
                raise ValueError(
                    explain(
                        f"from_tensor_slices(): {name} is a scalar",
                        expected="arrays of rank 1 or more, to be cut along the first dimension",
                        received=repr(column[()]),
                        hint="from_tensors() makes a dataset of one element",
                    )
                )
            if len(column) != len(columns[0]):
                raise ValueError(
                    explain(
                        "from_tensor_slices(): the first dimensions differ",
                        expected=f"{len(columns[0])} rows, as {names[0]} has",
                        received=f"{len(column)} rows in {name}",
                    )
                )
        return Dataset(plans.Slices(structure, tuple(columns)))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """A dataset of one element, `tensors` (see `from_tensor_slices` for what it may hold)."""
        structure, columns = to_columns(tensors, "from_tensors()")
        return Dataset(plans.Slices(structure, tuple(column[None] for column in columns)))

    @staticmethod
    def range(*args: int) -> Dataset:
        """The int64 numbers of Python's `range` with the same arguments."""
        try:
            numbers = range(*(_integer("range(): an argument", arg) for arg in args))
        except ValueError as error:
            raise _invalid("range(): the step is zero", "a non-zero step", args) from error
        return Dataset(plans.Range(numbers))

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
                else _like(output_types, output_shapes)
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

    # Transformations

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
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
        size = _integer("shuffle(): buffer_size", buffer_size, least=1)
        reshuffle = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return Dataset(plans.Shuffle(self._plan, size, seed, reshuffle))

    def repeat(self, count: int | None = None) -> Dataset:
        """The elements `count` times; None or a negative number: for ever."""
        times = None if count is None else _integer("repeat(): count", count)
        return Dataset(plans.Repeat(self._plan, None if times is None or times < 0 else times))

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all of them where `count` is negative."""
        count = _integer("take(): count", count)
        return self if count < 0 else Dataset(plans.Take(self._plan, count))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; none where `count` is negative."""
        count = _integer("skip(): count", count)
        return self.take(0) if count < 0 else Dataset(plans.Skip(self._plan, count))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """The elements whose number, modulo `num_shards`, is `index`."""
        num_shards = _integer("shard(): num_shards", num_shards, least=1)
        index = _integer("shard(): index", index, least=0)
        if index >= num_shards:
            raise _invalid("shard(): index is out of range", f"0 <= index < {num_shards}", index)
        return Dataset(plans.Shard(self._plan, num_shards, index))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Batches of consecutive elements.

        Args:
            batch_size: elements a batch, >= 1.
            drop_remainder: leave out a last batch of fewer elements; the first dimension is then
                known.
        """
        size = _integer("batch(): batch_size", batch_size, least=1)
        return Dataset(plans.Batch(self._plan, size, bool(drop_remainder)))

    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """Applies a function to each element.

        Args:
            map_func: takes the element (a tuple is unpacked) as tensors, returns a nest of tensors.
                It is traced once.
            num_parallel_calls: has no effect: the function runs on whole blocks.
        """
        return Dataset(plans.Map(self._plan, trace_function(map_func, self.element_spec)))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Keeps the elements for which `predicate` (traced, as in `map`) gives true."""
        traced = trace_function(predicate, self.element_spec)
        spec = traced.output_spec
        if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(TensorSpec((), bool)):
            raise ValueError(
                explain(
                    "filter(): the predicate does not return a scalar boolean",
                    expected=TensorSpec((), bool),
                    received=spec,
                )
            )
        return Dataset(plans.Filter(self._plan, traced))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another of the same structure and dtypes."""
        mine, other = self.element_spec, dataset.element_spec
        try:
            nest.assert_same_structure(mine, other, lists_are_leaves=True)
            alike = self.output_types == dataset.output_types
        except ValueError:
            alike = False
        if not alike:
            raise TypeError(
                explain(
                    "concatenate(): the elements of the two datasets differ in structure or dtypes",
                    expected=mine,
                    received=other,
                )
            )
        return Dataset(plans.Concatenate(self._plan, dataset._plan))

    def cache(self) -> Dataset:
        """Keeps the elements of the first pass in memory; later passes give the same again."""
        return Dataset(plans.Cache(self._plan))

    def prefetch(self, buffer_size: int | None) -> Dataset:
        """Reads ahead on a thread.

        Args:
            buffer_size: elements to hold ready; None or AUTOTUNE leaves the number to the library;
                0: no thread.
        """
        if buffer_size is None or buffer_size == AUTOTUNE:
            buffer_size = _AUTOTUNED_PREFETCH
        size = _integer("prefetch(): buffer_size", buffer_size, least=0)
        return Dataset(plans.Prefetch(self._plan, size)) if size else self

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs (number, element), the int64 numbers counting from `start`."""
        first = _integer("enumerate(): start", start)
        numbers = Dataset(plans.Range(range(first, 2**63 - 1)))
        return Dataset.zip((numbers, self))

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
        """The nest of the classes of an element's leaves: `Tensor`."""
        from estimatorkit.core.tensor import Tensor

        return self._map_spec(lambda spec: Tensor)

    def _map_spec(self, function: Callable[[TensorSpec], Any]) -> Any:
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

    def make_block_iterator(self, seed: int | None = None) -> BlockIterator:
        """Makes an iterator over blocks of columns: see `BlockIterator`.

        Args:
            seed: the seed of the graph; shuffles without a seed of their own draw from it.
        """
        return self._plan.iterator(Seeds(seed))

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
        iterator = self.make_block_iterator()
        rows = 1
        try:
            while True:
                try:
                    block = iterator.next_block(rows)
                except OutOfRangeError:
                    return
                for row in zip(*block, strict=True):
                    yield pack(spec, list(row))
                rows = min(2 * rows, _HOST_BLOCK)
        finally:
            iterator.close()

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The same as `iter(dataset)`."""
        return iter(self)


def _invalid(problem: str, expected: object, received: object) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, explain(problem, expected=expected, received=received))


def _integer(name: str, value: Any, *, least: int | None = None) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(
            explain(f"{name} is no integer", expected="an int", received=repr(value))
        ) from error
    if least is not None and number < least:
        raise _invalid(f"{name} is too small", f">= {least}", number)
    return number


def _like(structure: Any, shapes: Any) -> list[Any]:
    """Flattens shapes as far as `structure` is nested: a shape may itself be a tuple."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in _like(structure[key], shapes[key])]
    if isinstance(structure, tuple):
        pairs = zip(structure, shapes, strict=True)
        return [leaf for part, shape in pairs for leaf in _like(part, shape)]
    return [shapes]
