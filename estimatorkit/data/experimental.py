"""`tf.data.experimental`: transformations for `Dataset.apply`, and combinations of datasets.

A transformation takes its arguments and returns a function of a dataset:
`dataset.apply(shuffle_and_repeat(1000))`. Most are also methods of `Dataset`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from estimatorkit.core.dtypes import as_dtype, int64
from estimatorkit.core.errors import (
    type_error,
    value_error,
)
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.dataset_methods import AUTOTUNE, with_options_of
from estimatorkit.data.execution.mixing import Choices, Choose
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


def _one(element: tuple[Any, ...]) -> Any:
    """Unpacks a 1-tuple element."""
    return element[0] if len(element) == 1 else element


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
    "Options",
    "TFRecordWriter",
    "ThreadingOptions",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "parallel_interleave",
    "parse_example_dataset",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]
__dir__ = listing(__name__)
