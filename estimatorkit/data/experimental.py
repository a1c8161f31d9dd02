"""`tf.data.experimental`: transformations for `Dataset.apply`, and combinations of datasets.

A transformation takes its arguments and returns a function of a dataset:
`dataset.apply(shuffle_and_repeat(1000))`. Most are also methods of `Dataset`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from estimatorkit.core.dtypes import as_dtype, int64
from estimatorkit.core.errors import (
    DataLossError,
    InvalidArgumentError,
    type_error,
    value_error,
)
from estimatorkit.core.graph import control_dependencies
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.dataset_methods import AUTOTUNE, with_options_of
from estimatorkit.data.execution.counted import AssertCardinality
from estimatorkit.data.execution.mixing import Choices, Choose
from estimatorkit.data.optional import Optional, get_next_as_optional
from estimatorkit.data.options import (
    DistributeOptions,
    OptimizationOptions,
    Options,
    ThreadingOptions,
)
from estimatorkit.data.parameters import parameter
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan, Range
from estimatorkit.data.readers.csv_dataset import CsvDataset, make_csv_dataset
from estimatorkit.data.readers.example_datasets import (
    make_batched_features_dataset,
    parse_example_dataset,
)
from estimatorkit.data.readers.record_writing import TFRecordWriter
from estimatorkit.data.spec import TensorSpec, compatible
from estimatorkit.data.transformations import reducer_plan
from estimatorkit.lazy import listing

Transformation: TypeAlias = Callable[[Dataset], Dataset]
"""An argument of `Dataset.apply`."""

INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN


def _method(name: str, doc: str) -> Callable[..., Transformation]:
    """Makes `dataset.<name>(...)` a transformation."""

    def made(*args: Any, **kwargs: Any) -> Transformation:
        def apply(dataset: Dataset) -> Dataset:
            result: Dataset = getattr(dataset, name)(*args, **kwargs)
            return result

        return apply

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"{doc}, for `Dataset.apply`; see `Dataset.{name}`."
    return made


bucket_by_sequence_length = _method(
    "bucket_by_sequence_length", "Batches elements of similar length"
)
group_by_window = _method("group_by_window", "Groups elements by key and reduces windows of them")
ignore_errors = _method("ignore_errors", "Drops elements whose computation fails")
scan = _method("scan", "Maps elements with a state that is carried along")
take_while = _method("take_while", "Ends at the first element that fails a predicate")
unique = _method("unique", "Drops repeated elements")
unbatch = _method("unbatch", "Splits elements into their rows")


def enumerate_dataset(start: int = 0) -> Transformation:
    """Pairs elements with their index; see `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def shuffle_and_repeat(
    buffer_size: Any, count: int | None = None, seed: int | None = None
) -> Transformation:
    """Shuffles and repeats, each epoch in another order; see `Dataset.shuffle` and `repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


@dataclass(frozen=True)
class Reducer:
    """The functions of `group_by_reducer`.

    Attributes:
        init_func: maps a key, a scalar int64, to the first state.
        reduce_func: maps a state and an element to the next state.
        finalize_func: maps the last state to an element.
    """

    init_func: Callable[..., Any]
    reduce_func: Callable[..., Any]
    finalize_func: Callable[..., Any]


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """Reduces the elements of each key to one element; keys come in ascending order.

    Args:
        key_func: maps an element to a scalar int64.
        reducer: the functions of the states, nested structures.

    Raises:
        ValueError: `key_func` returns something else.
        TypeError: `reduce_func` returns a state that differs from its argument.
    """
    return lambda dataset: Dataset(reducer_plan(dataset._plan, key_func, reducer))


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """`map` followed by `batch`.

    Args:
        map_func: a function of an element.
        batch_size: elements per batch.
        num_parallel_batches, num_parallel_calls: have no effect.
        drop_remainder: drop a smaller last batch.

    Raises:
        ValueError: both are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "`map_and_batch` allows only one of `num_parallel_batches` and `num_parallel_calls` to "
            f"be set, but `num_parallel_batches` was set to {num_parallel_batches} and "
            f"`num_parallel_calls` as set to {num_parallel_calls}."
        )
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


map_and_batch_with_legacy_function = map_and_batch


def parallel_interleave(
    map_func: Callable[..., Dataset],
    cycle_length: Any,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """`Dataset.interleave`; the order is deterministic even if `sloppy` is True."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def prefetch_to_device(device: str, buffer_size: int | None = None) -> Transformation:
    """Prefetches elements.

    Training sends the next block of elements to the accelerator while the steps of the block before
    run there, for every dataset.

    Args:
        device: has no effect: the one that trains.
        buffer_size: elements to prefetch.
    """
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """Returns the dataset unchanged (see `prefetch_to_device`)."""
    return lambda dataset: dataset


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """Batches elements of different shapes as sparse tensors.

    Args:
        batch_size: elements per batch.
        row_shape: the dense shape of an element in a batch, which each must fit; a None or -1
            dimension is that of the longest element of the batch.
    """
    from estimatorkit.core.shapes import as_shape
    from estimatorkit.core.sparse_tensor import SparseTensor
    from estimatorkit.ops.sparse.sparse import from_dense

    known = as_shape([None if dim in (None, -1) else dim for dim in row_shape])

    def to_sparse(*elements: Any) -> Any:
        from estimatorkit.core.registry import output
        from estimatorkit.ops.array.array import shape
        from estimatorkit.ops.array.filling import ones_like
        from estimatorkit.ops.array.gather_nd import gather_nd

        if len(elements) != 1:
            raise TypeError(
                "`dense_to_sparse_batch` requires an input dataset whose elements have a single "
                f"component, but the given dataset has {len(elements)} components."
            )
        (element,) = elements
        size = output("SparseRowShape", [shape(element, out_type=int64)], {"row_shape": known})
        with control_dependencies([size]):
            places = from_dense(ones_like(element)).indices
        made = SparseTensor(places, gather_nd(element, places), size)
        if known.rank == element.shape.rank:
            made.set_shape(known)
        return made

    return lambda dataset: dataset.map(to_sparse).batch(batch_size)


def _sparse_row_shape(given: Any, row_shape: TensorShape) -> Any:
    """The shape of an element in a sparse batch, checked against `row_shape`."""
    wanted = row_shape.as_list()
    if len(wanted) != len(given):
        raise InvalidArgumentError(
            None,
            None,
            f"Input element had shape ({given.tolist()}) that is incompatible with the row shape "
            f"({wanted}).",
        )
    if any(most is not None and dim > most for dim, most in zip(given, wanted, strict=True)):
        raise DataLossError(
            None,
            None,
            f"Input element had shape ({given.tolist()}) that is larger than the row shape "
            f"({wanted}).",
        )
    pairs = zip(given, wanted, strict=True)
    return np.array([dim if most is None else most for dim, most in pairs], np.int64)


register(
    "SparseRowShape",
    _sparse_row_shape,
    where="host",
    infer=lambda inputs, attrs: [Spec(int64, inputs[0].shape)],
    gradient=None,
    cases=lambda: [
        Case((np.array([2, 1]),), {"row_shape": TensorShape([3, 1])}, np.array([3, 1])),
        Case((np.array([2, 1]),), {"row_shape": TensorShape([None, 4])}, np.array([2, 4])),
    ],
)


def cardinality(dataset: Dataset) -> Any:
    """The number of elements, INFINITE (-1) or UNKNOWN (-2), int64; a session can fetch it."""
    return dataset.cardinality()


def get_single_element(dataset: Dataset) -> Any:
    """The only element of a dataset, as tensors.

    Raises:
        TypeError: `dataset` is not a dataset.
        InvalidArgumentError: (when run) it is empty or has several elements.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"Invalid `dataset`. Expected a `tf.data.Dataset` object but got {type(dataset)}."
        )
    return dataset.get_single_element()


def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """Draws each element from a randomly chosen dataset.

    Args:
        datasets: datasets with elements of the same structure and dtypes.
        weights: sampling weights, one per dataset; equal by default.
        seed: makes the choices reproducible, as does a seed of the graph.
        stop_on_empty_dataset: end with the first dataset that ends; otherwise the others continue.

    Raises:
        ValueError: there are no datasets, or not one weight per dataset.
        TypeError: the datasets have different elements, or the weights are not float32 or float64.
    """
    plans = _plans(datasets, "sample_from_datasets()")
    given = np.ones(len(plans)) if weights is None else parameter(weights, None, "weights")
    if not isinstance(given, np.ndarray):
        raise type_error(
            "sample_from_datasets(): tensors as weights are not supported",
            expected="numbers",
            received=weights,
        )
    if given.shape != (len(plans),):
        raise value_error(
            "Invalid `weights`. `weights` should have the same length as `datasets`: they must "
            "have the same length in sample_from_datasets()",
            expected=f"{len(plans)} numbers",
            received=weights,
        )
    if given.dtype not in (np.float32, np.float64):
        raise type_error(
            "Invalid `weights`. `weights` type must be either `tf.float32` or `tf.float64`",
            received=given.dtype,
        )
    if (given < 0).any() or not given.sum() > 0:
        raise value_error(
            "sample_from_datasets(): a weight is negative, or all are 0", received=weights
        )
    # A dataset with weight 0 would never end, and the others would be waited for indefinitely.
    drawn = np.flatnonzero(given)
    plans = tuple(plans[number] for number in drawn)
    if len(plans) == 1:
        return with_options_of(datasets, Dataset(plans[0]))
    chosen = Choose(Choices(given[drawn], seed), plans, stop_on_empty_dataset)
    return with_options_of(datasets, Dataset(chosen))


def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Draws each element from the dataset whose index another dataset gives.

    Args:
        datasets: datasets with elements of the same structure and dtypes.
        choice_dataset: a dataset of scalar int64 indices.
        stop_on_empty_dataset: end when a chosen dataset has ended; otherwise skip that choice.

    Raises:
        ValueError: there are no datasets.
        TypeError: the datasets have different elements, or the choices are not int64 scalars.
    """
    plans = _plans(datasets, "choose_from_datasets()")
    if not compatible(choice_dataset.element_spec, TensorSpec((), int64)):
        raise type_error(
            "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` "
            "tensors in choose_from_datasets()",
            expected=TensorSpec((), int64),
            received=choice_dataset.element_spec,
        )
    chosen = Choose(choice_dataset._plan, plans, stop_on_empty_dataset)
    return with_options_of(datasets, Dataset(chosen))


def _plans(datasets: Sequence[Dataset], what: str) -> tuple[Plan, ...]:
    if not datasets:
        raise value_error(
            f"Invalid `datasets`. `datasets` should not be empty in {what}", received=datasets
        )
    for dataset in datasets:
        if not compatible(dataset.element_spec, datasets[0].element_spec):
            raise type_error(
                "Invalid `datasets`. `datasets` must have compatible element specs, of one "
                f"structure and with the same dtypes, in {what}",
                expected=datasets[0].element_spec,
                received=dataset.element_spec,
            )
    return tuple(dataset._plan for dataset in datasets)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = int64) -> Dataset:
    """The infinite sequence `start`, `start + step`, ... of `dtype`."""
    from estimatorkit.ops.math.elementwise import cast

    largest, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    if as_dtype(dtype) is int64:
        return Dataset(Range(range(start, largest if step > 0 else least, step)))
    numbers = Dataset(Range(range(largest)))
    return numbers.map(lambda x: cast(start, dtype) + cast(x, dtype) * cast(step, dtype))


def assert_cardinality(expected_cardinality: int) -> Transformation:
    """Checks the number of elements; -1 for infinite.

    When run, fewer or more elements raise `FailedPreconditionError`.
    """
    return lambda dataset: dataset._made(
        AssertCardinality(dataset._plan, int(expected_cardinality))
    )


def rejection_resample(
    class_func: Callable[..., Any],
    target_dist: Any,
    initial_dist: Any = None,
    seed: int | None = None,
) -> Transformation:
    """Drops elements at random to reach a target distribution of classes.

    Args:
        class_func: maps an element to its class, an integer scalar.
        target_dist: the target class distribution, `(classes,)`.
        initial_dist: the input's class distribution; None estimates it while running, starting from
            16 elements per class.
        seed: the seed of the random draws; see `set_random_seed`.

    Returns:
        A transformation to a dataset of pairs (class, element).
    """
    from estimatorkit.core.conversion import convert_to_tensor
    from estimatorkit.core.dtypes import float32
    from estimatorkit.ops.array.indexing import gather, one_hot, where
    from estimatorkit.ops.math.elementwise import cast, equal, less
    from estimatorkit.ops.math.random import random_uniform
    from estimatorkit.ops.math.reduce import reduce_max, reduce_sum

    def accepted(initial: Any, label: Any) -> Any:
        target = convert_to_tensor(target_dist, float32)
        ratio = where(equal(initial, 0.0), initial, target / initial)
        return less(random_uniform([], seed=seed), gather(ratio / reduce_max(ratio), label))

    def known(*element: Any) -> Any:
        label = class_func(*element)
        initial = convert_to_tensor(initial_dist, float32)
        return accepted(initial, label), (label, _one(element))

    def counted(counts: Any, element: Any) -> Any:
        given = element if isinstance(element, tuple) else (element,)
        label = class_func(*given)
        counts = counts + cast(one_hot(label, int(counts.shape[0])), float32)
        return counts, (accepted(counts / reduce_sum(counts), label), (label, element))

    def resampled(dataset: Dataset) -> Dataset:
        if initial_dist is None:
            start = np.full(np.shape(target_dist), 16, np.float32)
            drawn = dataset.scan(start, counted)
        else:
            drawn = dataset.map(known)
        return drawn.filter(lambda keep, _: keep).map(lambda _, pair: pair)

    return resampled


def _one(element: tuple[Any, ...]) -> Any:
    """Unpacks a 1-tuple element."""
    return element[0] if len(element) == 1 else element


def get_structure(dataset_or_iterator: Any) -> Any:
    """The nested spec of an element."""
    return dataset_or_iterator.element_spec


class AutoShardPolicy:
    """How to shard data among workers (`tf.data.experimental.AutoShardPolicy`)."""

    OFF, AUTO, FILE, DATA, HINT = -1, 0, 1, 2, 3


__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "OptimizationOptions",
    "Optional",
    "Options",
    "Reducer",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]
__dir__ = listing(__name__)
