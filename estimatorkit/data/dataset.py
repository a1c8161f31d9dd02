"""`Dataset`: the public interface of input pipelines (`tf.data.Dataset`).

A Dataset is immutable and has no position: each transformation returns a new one with a new `Plan`.
Iterators have positions: `make_block_iterator` yields blocks of columns for the training loop,
`iter(dataset)` single elements. Scalar arguments of transformations may be tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import as_dtype, int64
from estimatorkit.core.errors import OutOfRangeError, type_error, value_error
from estimatorkit.core.nest import packer
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.data import plan as plans, ports
from estimatorkit.data.dataset_methods import Transformable, with_options_of
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.execution.buffers import Columns, count_rows
from estimatorkit.data.execution.checksums import PipelineChecksums
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.options import Options
from estimatorkit.data.parameters import collect, integer, parameter, then
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan
from estimatorkit.data.sources import columns_of_one, columns_of_slices, range_of
from estimatorkit.data.spec import (
    DatasetSpec,
    SparseTensorSpec,
    flatten,
    leaf_names,
    map_leaves,
    of_types,
)
from estimatorkit.html import html_table

if TYPE_CHECKING:
    from estimatorkit.data.iterator_ops import Iterator as GraphIterator


def value_class(spec: Any) -> type:
    """The class of a leaf's values in a graph."""
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor
    return Dataset if isinstance(spec, DatasetSpec) else Tensor


# Host iteration asks for blocks of 1, 2, 4, ... elements up to this number: the first element comes
# at once, and the cost of a block is soon shared.
_HOST_BLOCK = 64
_HOST_BYTES = 4 << 20  # per block: gathered rows are still in the caches when returned


class Dataset(Transformable):
    """A sequence of elements, each a nested structure of dicts and tuples of arrays.

    Args:
        plan: internal; use the static methods (`from_tensor_slices`, ...) instead.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._options: Options | None = None

    # Sources

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """A dataset of the rows of arrays.

        C-contiguous arrays are referenced, not copied; do not modify them while the dataset is in
        use.

        Args:
            tensors: a nested structure of arrays, Series or lists with equal first dimensions; a
                DataFrame is treated as a dict of its columns (in TensorFlow, as a matrix). Lists
                become int32 or float32; arrays keep their dtype.

        Raises:
            ValueError: the structure is empty, a leaf is a scalar, ragged or has missing values,
                or first dimensions differ.
            TypeError: a leaf holds dates or Python objects.
        """
        spec, columns = columns_of_slices(tensors)
        return Dataset(plans.Slices(spec, tuple(columns)))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """A dataset of a single element, with the types of `from_tensor_slices`."""
        spec, columns = columns_of_one(tensors)
        return Dataset(plans.Slices(spec, tuple(columns)))

    @staticmethod
    def range(*args: Any, output_type: Any = None, name: str | None = None) -> Dataset:
        """A dataset of the numbers of Python's `range`, int64 or `output_type`."""
        given = tuple(integer("range(): an argument", arg) for arg in args)
        numbers = Dataset(plans.Range(collect(given, range_of)))
        if output_type is None or as_dtype(output_type) is int64:
            return numbers
        from estimatorkit.ops.math.elementwise import cast

        return numbers.map(lambda number: cast(number, output_type))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] = (),
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """A dataset of the values of a Python generator.

        A position within an epoch is restored by advancing a new generator to it.

        Args:
            generator: a callable that returns an iterable of elements, called once per epoch.
            output_types: the nested structure of an element's dtypes.
            output_shapes: the nested structure of its shapes; unknown by default.
            args: values or tensors to pass to `generator`, as NumPy arrays and scalars.
            output_signature: the nested structure of `TensorSpec`s, instead of types and shapes.

        Raises:
            TypeError: `generator` is not callable, or neither types nor signature are given, or
                both.
        """
        if not callable(generator):
            raise type_error(
                "`generator` must be a Python callable: from_generator() calls it for each pass",
                expected="a callable",
                received=repr(generator),
                hint="pass the function itself, without calling it",
            )
        if output_signature is None and output_types is None:
            raise TypeError(
                "To specify the output signature you need to provide either the "
                "`output_signature` argument or the `output_types` argument."
            )
        for kind, given in (("output_types", output_types), ("output_shapes", output_shapes)):
            if output_signature is not None and given is not None:
                raise TypeError(
                    f"The `{kind}` argument can not be used together with the "
                    "`output_signature` argument."
                )
        if output_signature is None:
            output_signature = of_types(output_types, output_shapes)
        arguments = tuple(
            then(parameter(arg, None, "from_generator(): args"), lambda value: value[()])
            for arg in args
        )
        return Dataset(plans.Generated(generator, output_signature, arguments))

    @staticmethod
    def zip(datasets: Any, *more: Dataset) -> Dataset:
        """Zips datasets, until the shortest ends.

        Args:
            datasets: a nested structure of datasets, which elements will have.
            more: further datasets, if `datasets` is a single one.

        Raises:
            TypeError: something is not a dataset.
            ValueError: there is no dataset.
        """
        structure = (datasets, *more) if more else datasets
        leaves = flatten(structure)
        if not leaves:
            raise value_error("zip(): there are no datasets", received=repr(datasets))
        for leaf in leaves:
            if not isinstance(leaf, Dataset):
                raise type_error(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                    "`tf.data.Dataset` objects",
                    expected="dicts and tuples of Dataset (lists are not nests)",
                    received=repr(leaf),
                )
        zipped = Dataset(plans.Zip(structure, tuple(leaf._plan for leaf in leaves)))
        return with_options_of(leaves, zipped)

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """A dataset of the names of files that match one or several patterns.

        Args:
            file_pattern: as for `gfile.glob`.
            shuffle: whether to shuffle, differently in each epoch; True by default.
            seed: the seed for shuffling.
            name: has no effect.

        Raises:
            InvalidArgumentError: no file matches.
        """
        return ports.list_files.list_files(file_pattern, shuffle, seed)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """A dataset of the rows of a sparse tensor as (indices, values, dense shape).

        `from_tensor_slices` returns them as sparse tensors.

        Raises:
            TypeError: the value is not sparse.
        """
        if not isinstance(sparse_tensor, (SparseTensor, SparseTensorValue)):
            raise type_error(
                "Invalid `sparse_tensor`. `sparse_tensor` must be a `tf.sparse.SparseTensor`",
                received=repr(sparse_tensor),
            )
        rows = Dataset.from_tensor_slices(sparse_tensor)
        return rows.map(lambda row: (row.indices, row.values, row.dense_shape))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: Any = int64, name: str | None = None
    ) -> Dataset:
        """The infinite sequence `start`, `start + step`, ... of `dtype`."""
        return ports.experimental.Counter(start, step, dtype)

    @staticmethod
    def random(seed: int | None = None, name: str | None = None) -> Dataset:
        """An infinite dataset of random int64 numbers, uniform in [0, 2**32)."""
        from estimatorkit.data.execution.mixing import RandomNumbers

        return Dataset(RandomNumbers(seed=seed))

    @staticmethod
    def sample_from_datasets(
        datasets: Any,
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
    ) -> Dataset:
        """Samples elements from datasets at random (see `experimental`)."""
        return ports.experimental.sample_from_datasets(
            datasets, weights, seed, stop_on_empty_dataset
        )

    @staticmethod
    def choose_from_datasets(
        datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """Takes elements from the datasets chosen by another (see `experimental`)."""
        return ports.experimental.choose_from_datasets(
            datasets, choice_dataset, stop_on_empty_dataset
        )

    # What it is

    @property
    def output_types(self) -> Any:
        """The nested structure of an element's dtypes."""
        return self._map_spec(lambda spec: spec.dtype)

    @property
    def output_shapes(self) -> Any:
        """The nested structure of an element's `TensorShape`s."""
        return self._map_spec(lambda spec: spec.shape)

    @property
    def output_classes(self) -> Any:
        """The nested structure of an element's classes: `Tensor`, `SparseTensor`, `Dataset`."""
        return self._map_spec(value_class)

    def _map_spec(self, function: Callable[[Any], Any]) -> Any:
        return map_leaves(function, self.element_spec)

    def cardinality(self) -> Any:
        """The number of elements, INFINITE (-1) or UNKNOWN (-2), int64; a session can fetch it."""
        return ports.dataset_values.Cardinality(self._plan.cardinality)

    def __len__(self) -> int:
        count = self._plan.cardinality
        if count == INFINITE:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self) -> bool:
        return True  # as an object, so that any length fits

    def __repr__(self) -> str:
        return f"<{type(self._plan).__name__}Dataset element_spec={self.element_spec}>"

    def _repr_html_(self) -> str:
        """The HTML representation, for notebooks."""
        spec = self.element_spec
        rows = [
            (name, getattr(leaf, "shape", ""), getattr(getattr(leaf, "dtype", leaf), "name", leaf))
            for name, leaf in zip(leaf_names(spec), flatten(spec), strict=True)
        ]
        return html_table(("", "shape", "dtype"), rows, f"{type(self._plan).__name__}Dataset")

    # Execution

    def make_block_iterator(
        self, seed: int | None = None, state: Any = None, checksums: PipelineChecksums | None = None
    ) -> BlockIterator:
        """Creates an iterator over blocks of columns (see `BlockIterator`).

        Args:
            seed: the graph's seed, for shuffles without their own.
            state: the state of the session whose tables and variables functions use; by default
                that of the default session, if any.
            checksums: record the elements of generators.
        """
        plan, state = self._bound(state)
        return plan.iterator(Seeds(seed, state, checksums=checksums))

    def make_number_iterator(
        self, seed: int | None = None, state: Any = None
    ) -> tuple[Columns, BlockIterator, int] | None:
        """Creates an iterator over row indices in place of the rows of arrays.

        Args:
            seed, state: see `make_block_iterator`.

        Returns:
            The arrays, the iterator, and the maximum number of rows per element; None if elements
            are not rows, or batches of rows, of arrays in memory.
        """
        plan, state = self._bound(state)
        form = plan.as_numbers()
        if form is None:
            return None
        columns, numbers = form
        return columns, numbers.iterator(Seeds(seed, state)), numbers.batch_rows

    def _made(self, plan: Plan) -> Dataset:
        made = Dataset(plan)
        made._options = self._options
        return made

    def _bound(self, state: Any) -> tuple[Plan, Any]:
        """The plan with its tensor arguments evaluated, and the session's state."""
        if state is None:
            session = get_default_session()
            state = None if session is None else session.state
        if not self._plan.tensors():
            return self._plan, state
        return ports.traced_functions.bound(self._plan, state), state

    def make_one_shot_iterator(self) -> GraphIterator:
        """Creates an iterator that needs no initialization, in the graph (TensorFlow 1)."""
        return ports.iterator_ops.make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> GraphIterator:
        """Creates an iterator in the graph that starts when its `initializer` is run."""
        return ports.iterator_ops.make_initializable_iterator(self, shared_name)

    def __iter__(self) -> Iterator[Any]:
        """Iterates over elements as nested structures of NumPy values; strings are `bytes`."""
        spec = self.element_spec
        nested = [isinstance(leaf, DatasetSpec) for leaf in flatten(spec)]
        pack = packer(spec, lists_are_leaves=True)
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
                    yield pack(leaves)
                size = sum(column.nbytes for column in block) // count_rows(block)
                rows = max(1, min(2 * rows, _HOST_BLOCK, _HOST_BYTES // max(1, size)))
        finally:
            iterator.close()

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The same as `iter(dataset)`."""
        return iter(self)
