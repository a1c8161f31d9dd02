"""Bucketing and sampling queues of `tf.contrib.training`: `bucket`, `bucket_by_sequence_length`,
`rejection_sample` and `stratified_sample`.

The equivalents for datasets are `data.experimental.bucket_by_sequence_length` and
`rejection_resample`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.compat.train.queues.batching import Pipeline, batch, maybe_batch
from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import control_dependencies, name_scope
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.lazy import listing
from estimatorkit.ops.array.array import expand_dims, shape, squeeze
from estimatorkit.ops.array.indexing import gather, one_hot, where
from estimatorkit.ops.array.selection import searchsorted
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.ops.debug import checks
from estimatorkit.ops.debug.debug import Assert, Print
from estimatorkit.ops.math.elementwise import cast, equal, less, logical_or, not_equal, truediv
from estimatorkit.ops.math.random import random_uniform
from estimatorkit.ops.math.reduce import reduce_all, reduce_max, reduce_sum

# -- buckets


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of examples from the same bucket (`tf.contrib.training.bucket`).

    Args:
        tensors: an example: a list or a dict of tensors, dense or sparse.
        which_bucket: its bucket, an int32 scalar in [0, num_buckets).
        batch_size: the batch size, or a list with one per bucket.
        num_buckets: the number of buckets.
        num_threads: the number of threads that produce examples.
        capacity: the maximum number of queued batches, and of examples per bucket.
        bucket_capacities: the capacity of each bucket, instead of `capacity`.
        shapes: the shapes of an example's tensors, if not static.
        dynamic_pad: pad tensors of different shapes with zeros or empty strings.
        allow_smaller_final_batch: emit a smaller last batch for each bucket; otherwise the
            remainder is dropped.
        keep_input: a bool scalar: whether to use the example.
        shared_name: see `FIFOQueue`.
        name: the name scope.

    Returns:
        The bucket, an int32 scalar, and the batch in the structure of `tensors`.

    Raises:
        ValueError: a shape is unknown; `batch_size` or `bucket_capacities` has a length other than
            `num_buckets`.
    """
    sizes = (
        list(batch_size) if isinstance(batch_size, (list, tuple)) else [batch_size] * num_buckets
    )
    if len(sizes) != num_buckets:
        raise ValueError("If batch_size is a list it must have num_buckets elements")
    capacities = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    if len(capacities) != num_buckets:
        raise ValueError(
            f"The list bucket_capacities ({capacities}) must have exactly num_buckets "
            f"({num_buckets}) elements."
        )
    keep = None if keep_input is True else keep_input
    with name_scope(name, "bucket"):
        pipeline = Pipeline([tensors] * num_threads, keep, False, shapes, dynamic_pad)
        which = convert_to_tensor(which_bucket, int32, "which_bucket")
        return pipeline.bucketed(
            which, sizes, capacity, capacities, allow_smaller_final_batch, shared_name
        )


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of examples of similar lengths (`tf.contrib.training.bucket_by_sequence_length`).

    Args:
        input_length: the example's length, an int32 scalar.
        batch_size: see `bucket`; a list has one entry more than `bucket_boundaries`.
        bucket_boundaries: increasing ints. The first bucket contains lengths below the first
            boundary, the last one lengths from the last boundary on.
        tensors, num_threads, capacity, bucket_capacities, shapes, dynamic_pad,
            allow_smaller_final_batch, keep_input, shared_name, name: see `bucket`.

    Returns:
        The lengths, int32 `(batch,)`, and the batch in the structure of `tensors`.

    Raises:
        TypeError: the boundaries are not a list of ints.
        ValueError: there are none, or they do not increase; or as for `bucket`.
    """
    if not isinstance(bucket_boundaries, (list, tuple)):
        raise TypeError(
            f"bucket_boundaries must be a list or tuple, but received: {bucket_boundaries}"
        )
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for low, high in itertools.pairwise(bucket_boundaries):
        if not isinstance(low, int) or not isinstance(high, int):
            raise TypeError(f"bucket boundaries must be integers, but saw: {low} and {high}")
        if low >= high:
            raise ValueError(
                f"Buckets must contain sequential increasing lengths, but saw: {low} before {high}"
            )
    with name_scope(name, "bucket_by_sequence_length"):
        length = convert_to_tensor(input_length, int32, "input_length")
        which = searchsorted(np.asarray(bucket_boundaries, np.int32), length[None], "right")[0]
        keys = sorted(tensors) if isinstance(tensors, Mapping) else None
        given = [tensors[key] for key in keys] if keys else tensors
        given = list(given) if isinstance(given, (list, tuple)) else [given]
        _, (lengths, *found) = bucket(
            [length, *given],
            which,
            batch_size,
            len(bucket_boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [TensorShape([]), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        if keys:
            return lengths, dict(zip(keys, found, strict=True))
        return lengths, found if len(found) > 1 else found[0]


# -- samples


def rejection_sample(
    tensors: Sequence[Any],
    accept_prob_fn: Callable[[list[Tensor]], Any],
    batch_size: Any,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """Batches of examples, each accepted with its own probability
    (`tf.contrib.training.rejection_sample`).

    Args:
        tensors: the tensors of an example.
        accept_prob_fn: returns the probability, a float scalar, from the tensors of an example.
        batch_size: examples per batch.
        queue_threads: the number of threads that produce batches.
        enqueue_many: whether `tensors` are batches, along their first dimension.
        prebatch_capacity, prebatch_threads: those of the queue that splits batches.
        runtime_checks: raise an error for probabilities outside [0, 1].
        name: the name scope.

    Returns:
        A list of tensors with a first dimension of `batch_size`.

    Raises:
        ValueError: with `enqueue_many`: the tensors differ in their first dimension.
    """
    with name_scope(name, "rejection_sample"):
        given = [convert_to_tensor(each) for each in tensors]
        if enqueue_many:
            _check_rows(given, given[0])
            given = _single(given, prebatch_threads, prebatch_capacity)
        probability = accept_prob_fn(given)
        if runtime_checks:
            steps = [
                checks.assert_less_equal(0.0, probability),
                checks.assert_less_equal(probability, 1.0),
            ]
            with control_dependencies(steps):
                probability = identity(probability, name="prob_with_checks")
        keep = less(random_uniform([]), probability)
        found = maybe_batch(given, keep, batch_size, queue_threads)
        return found if isinstance(found, list) else [found]


def stratified_sample(
    tensors: Iterable[Any],
    labels: Any,
    target_probs: Any,
    batch_size: Any,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Batches with a given class distribution (`tf.contrib.training.stratified_sample`).

    Args:
        tensors: the tensors of an example.
        labels: its class, an integer scalar.
        target_probs: the distribution in the batches, float32 `(classes,)`.
        batch_size: examples per batch.
        init_probs: the distribution in the data; None to estimate it from the labels.
        enqueue_many: whether `tensors` and `labels` are batches, along their first dimension.
        queue_capacity: the maximum number of queued examples.
        threads_per_queue: the number of threads that fill each queue.
        name: the name scope.

    Returns:
        A list of tensors with a first dimension of `batch_size`, and their labels.

    Raises:
        ValueError: a distribution has the wrong rank or length; tensors and labels differ in their
            first dimension.
        InvalidArgumentError: when run: a distribution does not sum to 1, a target class does not
            occur in the data, a label is not a class.
    """
    with name_scope(name, "stratified_sample"):
        given = [convert_to_tensor(each) for each in tensors]
        classes = convert_to_tensor(labels)
        target = convert_to_tensor(target_probs, float32)
        if not enqueue_many:
            given = [expand_dims(each, 0) for each in given]
            classes = expand_dims(classes, 0)
        if init_probs is None:
            target.shape.assert_is_fully_defined()
            initial = _estimated(classes, target.shape.num_elements() or 0)
        else:
            initial = convert_to_tensor(init_probs, float32)
        initial, target = (_checked_shares(each) for each in (initial, target))
        if initial.shape.num_elements() != target.shape.num_elements():
            raise value_error(
                "Probability parameters must have the same length",
                received=f"{initial.shape} and {target.shape}",
            )
        given, classes = _checked_examples(given, classes, target.shape.num_elements() or 0)
        possible = Assert(
            reduce_all(logical_or(not_equal(initial, 0.0), equal(target, 0.0))),
            [
                "All classes with zero initial probability must also have zero target "
                "probability: ",
                initial,
                target,
            ],
        )
        with control_dependencies([possible]):
            initial = identity(initial)
        accepted = _acceptance(initial, target)
        *rows, label = _single([*given, classes], threads_per_queue, queue_capacity)
        keep = less(random_uniform([]), gather(accepted, label))
        found = maybe_batch([*rows, label], keep, batch_size, threads_per_queue)
        return found[:-1], found[-1]


def _single(tensors: list[Tensor], threads: int, capacity: int) -> list[Tensor]:
    """Single examples from batches."""
    found = batch(tensors, 1, threads, capacity, enqueue_many=True)
    rows = found if isinstance(found, list) else [found]
    return [squeeze(each, [0]) for each in rows]


def _check_rows(tensors: Sequence[Tensor], like: Tensor) -> None:
    """Checks that tensors have as many rows as `like`, if known."""
    for tensor in tensors:
        rows = tensor.shape.with_rank_at_least(1)[:1]
        rows.assert_is_compatible_with(like.shape.with_rank_at_least(1)[:1])


def _estimated(labels: Tensor, classes: int) -> Tensor:
    """The class distribution of the labels so far, starting from 10 counts per class."""
    initial = np.full(classes, 10, np.int64)
    seen = Variable(initial, trainable=False, name="class_count", dtype=int64)
    counts = seen.assign_add(reduce_sum(one_hot(labels, classes, dtype=int64), 0))
    return cast(truediv(counts, reduce_sum(counts)), float32)


def _checked_shares(shares: Tensor) -> Tensor:
    shares.shape.assert_is_fully_defined()
    shares.shape.assert_has_rank(1)
    total, near = reduce_sum(shares), 1e-6
    steps = [
        checks.assert_non_negative(shares),
        checks.assert_less(total, 1.0 + near),
        checks.assert_less(1.0 - near, total),
    ]
    with control_dependencies(steps):
        return identity(shares)


def _checked_examples(
    tensors: list[Tensor], labels: Tensor, classes: int
) -> tuple[list[Tensor], Tensor]:
    labels.shape.assert_has_rank(1)
    _check_rows(tensors, labels)
    rows = shape(labels)[0]
    some = checks.assert_positive(rows)
    found = []
    for tensor in tensors:
        with control_dependencies([some, checks.assert_equal(shape(tensor)[0], rows)]):
            found.append(identity(tensor))
    steps = [
        some,
        checks.assert_integer(labels),
        checks.assert_non_negative(labels),
        checks.assert_less(labels, cast(classes, labels.dtype)),
    ]
    with control_dependencies(steps):
        return found, identity(labels)


def _acceptance(initial: Tensor, target: Tensor) -> Tensor:
    """The acceptance probability of each class: `(t / p) / max(t / p)`."""
    ratio = where(equal(initial, 0.0), initial, target / initial)
    accepted = ratio / reduce_max(ratio)
    rejected = reduce_sum((1.0 - accepted) * initial)
    taken: Tensor = cond(
        less(rejected, 0.5),
        lambda: accepted,
        lambda: Print(
            accepted,
            [accepted],
            message="Proportion of examples rejected by sampler is high.",
            first_n=10,
        ),
    )
    return taken


__dir__ = listing(__name__)
