"""Queue-based input pipelines, part two: batching of examples.

`batch` and `shuffle_batch` fill a queue with examples from threads (`QueueRunner`s in the
QUEUE_RUNNERS collection) and dequeue batches. The `_join` functions have several sources of
examples, the `maybe_` functions filter them. All use `Pipeline`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.compat.train.queues.input_producers import summarize_queue
from estimatorkit.compat.train.queues.sparse_batches import box, open_boxes
from estimatorkit.core.builtin_ops import group
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import bool_, int32
from estimatorkit.core.errors import (
    CancelledError,
    OutOfRangeError,
    type_error,
    value_error,
)
from estimatorkit.core.graph import name_scope
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.math.elementwise import equal, logical_and
from estimatorkit.ops.queues.queue_kinds import (
    FIFOQueue,
    PaddingFIFOQueue,
    RandomShuffleQueue,
)
from estimatorkit.ops.queues.queues import QueueBase
from estimatorkit.ops.sparse.sparse import convert_to_tensor_or_sparse_tensor
from estimatorkit.train.queues.queue_runner import QueueRunner, add_queue_runner


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches examples through a queue.

    Args:
        tensors: an example: a list or dict of tensors, dense or sparse, or one tensor.
        batch_size: the number of examples per batch.
        num_threads: the number of threads that produce examples.
        capacity: the queue's capacity in examples.
        enqueue_many: whether `tensors` are several examples, along the first dimension.
        shapes: the shapes of an example's tensors, if they are unknown.
        dynamic_pad: whether to pad tensors of different shapes with zeros or empty strings.
        allow_smaller_final_batch: whether to return an incomplete last batch; otherwise it is
            dropped.
        shared_name: see `FIFOQueue`.

    Returns:
        Tensors in the structure of `tensors`, with an additional first dimension.

    Raises:
        ValueError: a shape is unknown, or there are no tensors.
    """
    return maybe_batch(
        tensors,
        None,
        batch_size,
        num_threads,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Same as `batch`, but only for examples for which `keep_input` is true.

    Args:
        keep_input: a scalar bool, or with `enqueue_many` one per example.
        tensors, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
            allow_smaller_final_batch, shared_name, name: see `batch`.
    """
    pipeline = Pipeline([tensors] * num_threads, keep_input, enqueue_many, shapes, dynamic_pad)
    with name_scope(name, "batch") as scope:
        queue = pipeline.first_in_first_out(capacity, shared_name)
        return pipeline.batches(queue, batch_size, allow_smaller_final_batch, scope)


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Same as `batch`, with several sources of examples: one thread per item of `tensors_list`."""
    return maybe_batch_join(
        tensors_list,
        None,
        batch_size,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Same as `batch_join`, but only for examples with a true `keep_input` (see `maybe_batch`)."""
    pipeline = Pipeline(tensors_list, keep_input, enqueue_many, shapes, dynamic_pad)
    with name_scope(name, "batch_join") as scope:
        queue = pipeline.first_in_first_out(capacity, shared_name)
        return pipeline.batches(queue, batch_size, allow_smaller_final_batch, scope)


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Same as `batch`, with the examples in random order.

    Args:
        capacity: the queue's capacity in examples.
        min_after_dequeue: the minimum number of examples left in the queue, for shuffling.
        seed: see `set_random_seed`.
        tensors, batch_size, num_threads, enqueue_many, shapes, allow_smaller_final_batch,
            shared_name, name: see `batch`.

    Raises:
        ValueError: as `batch`; or `min_after_dequeue` leaves no room.
    """
    return maybe_shuffle_batch(
        tensors,
        batch_size,
        capacity,
        min_after_dequeue,
        None,
        num_threads,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Same as `shuffle_batch`, but only for examples for which `keep_input` is true.

    See `maybe_batch`.
    """
    pipeline = Pipeline([tensors] * num_threads, keep_input, enqueue_many, shapes)
    with name_scope(name, "shuffle_batch") as scope:
        queue = pipeline.shuffled(capacity, min_after_dequeue, seed, shared_name)
        return pipeline.batches(queue, batch_size, allow_smaller_final_batch, scope)


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Same as `shuffle_batch`, with one thread per item of `tensors_list`."""
    return maybe_shuffle_batch_join(
        tensors_list,
        batch_size,
        capacity,
        min_after_dequeue,
        None,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Same as `shuffle_batch_join`, but only for examples for which `keep_input` is true."""
    pipeline = Pipeline(tensors_list, keep_input, enqueue_many, shapes)
    with name_scope(name, "shuffle_batch_join") as scope:
        queue = pipeline.shuffled(capacity, min_after_dequeue, seed, shared_name)
        return pipeline.batches(queue, batch_size, allow_smaller_final_batch, scope)


class Pipeline:
    """The implementation shared by the functions above.

    `sources` are each thread's example, all of the same structure; threads with the same example
    share one operation. With `many`, a source is several examples. `keep` is a bool tensor, or None
    to keep all. `shapes` of None infers an example's shapes, which may differ if `pad`.
    """

    def __init__(
        self, sources: Sequence[Any], keep: Any, many: bool, shapes: Any, pad: bool = False
    ) -> None:
        if not sources:
            raise ValueError("Expected at least one set of tensors")
        self._form = sources[0]
        examples = [_as_list(source, self._form) for source in sources]
        self._first = examples[0]
        # Identical sources stay identical, so that their threads share one operation.
        boxed: dict[SparseTensor, Tensor] = {}
        for each in (each for example in examples for each in example):
            if isinstance(each, SparseTensor) and each not in boxed:
                boxed[each] = box(each, many)
        self._sources = [[boxed.get(each, each) for each in example] for example in examples]
        if not self._sources[0]:
            raise ValueError("Expected at least one tensor in batch().")
        self._keep = None if keep is None else self._checked_keep(keep, many)
        self._many = many
        self._pad = pad
        self._dtypes = [tensor.dtype for tensor in self._sources[0]]
        for source in self._sources:
            dtypes = [tensor.dtype for tensor in source]
            if dtypes != self._dtypes:
                raise type_error(
                    "Expected types to be consistent",
                    expected=", ".join(dtype.name for dtype in self._dtypes),
                    received=", ".join(dtype.name for dtype in dtypes),
                )
        self._shapes = self._known_shapes() if shapes is None else shapes

    @staticmethod
    def _checked_keep(keep: Any, many: bool) -> Tensor:
        tensor = convert_to_tensor(keep, bool_, "keep_input")
        rank = tensor.shape.rank
        if rank is None:
            raise ValueError("`keep_input` dimensions must be known at graph construction.")
        if rank == 1 and not many:
            raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
        if rank > 1:
            raise ValueError("`keep_input` must be 0 or 1 dimensions.")
        return tensor

    def _known_shapes(self) -> list[TensorShape]:
        """Returns the shapes common to all sources, for each tensor of an example."""
        found = []
        for tensors in zip(*self._sources, strict=True):
            for tensor in tensors:
                if tensor.shape.rank is None or (self._many and tensor.shape.rank == 0):
                    raise value_error(
                        f"Cannot infer Tensor's rank: {tensor}",
                        expected="tensors of known rank"
                        + (", at least 1 with enqueue_many" if self._many else ""),
                        made_at=tensor.op.source,
                        hint="give shapes=, or use set_shape",
                    )
            rows = [tensor.shape[1:] if self._many else tensor.shape for tensor in tensors]
            dims = [
                each[0] if all(dim == each[0] for dim in each) else None
                for each in zip(*rows, strict=True)
            ]
            found.append(TensorShape(dims))
        return found

    def first_in_first_out(self, capacity: int, shared_name: str | None) -> QueueBase:
        """Returns the queue of `batch`."""
        make_queue = PaddingFIFOQueue if self._pad else FIFOQueue
        queue = make_queue(capacity, self._dtypes, self._shapes, shared_name=shared_name)
        summarize_queue(f"fraction_of_{capacity}_full", queue, 0, capacity)
        return queue

    def shuffled(
        self, capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None
    ) -> QueueBase:
        """Returns the queue of `shuffle_batch`."""
        if capacity <= min_after_dequeue:
            raise ValueError(
                f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}."
            )
        queue = RandomShuffleQueue(
            capacity,
            min_after_dequeue,
            self._dtypes,
            self._shapes,
            seed=seed,
            shared_name=shared_name,
        )
        tag = f"fraction_over_{min_after_dequeue}_of_{capacity - min_after_dequeue}_full"
        summarize_queue(tag, queue, min_after_dequeue, capacity)
        return queue

    def batches(self, queue: QueueBase, batch_size: Any, up_to: bool, name: str) -> Any:
        """Fills the queue from threads, and dequeues batches."""
        made: dict[tuple[int, ...], Operation] = {}
        operations = []
        for source in self._sources:
            key = tuple(map(id, source))
            if key not in made:
                made[key] = queue.enqueue_where(self._keep, source, many=self._many)
            operations.append(made[key])
        add_queue_runner(QueueRunner(queue, operations))
        dequeue = queue.dequeue_up_to if up_to else queue.dequeue_many
        taken = dequeue(batch_size, name=name)
        return self.restored(taken if isinstance(taken, list) else [taken])

    def restored(self, taken: Sequence[Tensor]) -> Any:
        """Returns a batch in the structure of the examples."""
        tensors = [
            open_boxes(tensor, like, self._many) if isinstance(like, SparseTensor) else tensor
            for tensor, like in zip(taken, self._first, strict=True)
        ]
        if isinstance(self._form, Mapping):
            return dict(zip(sorted(self._form), tensors, strict=True))
        return tensors if len(tensors) > 1 else tensors[0]

    def bucketed(
        self,
        which: Tensor,
        sizes: Sequence[Any],
        capacity: int,
        capacities: Sequence[int],
        up_to: bool,
        shared_name: str | None,
    ) -> tuple[Tensor, Any]:
        """Batches examples by bucket; returns the bucket's number and a batch.

        Each bucket has a queue, whose batches are moved into one more queue of `capacity` batches.
        `which` is an example's bucket, an int32 scalar; `sizes` and `capacities` are each bucket's
        batch size and capacity in examples; `up_to` allows smaller last batches.
        """
        kind = PaddingFIFOQueue if self._pad else FIFOQueue
        own = [f"{shared_name}_{at}" if shared_name else None for at in range(len(sizes))]
        queues: list[QueueBase] = [
            kind(size, self._dtypes, self._shapes, shared_name=shared, name=f"bucket_queue_{at}")
            for at, (size, shared) in enumerate(zip(capacities, own, strict=True))
        ]
        same = not up_to and len(set(map(id, sizes))) == 1 and isinstance(sizes[0], int)
        rows = TensorShape([sizes[0] if same else None])
        shapes = [TensorShape([]), *[rows.concatenate(shape) for shape in self._shapes]]
        batches = PaddingFIFOQueue(
            capacity, [int32, *self._dtypes], shapes, shared_name=shared_name, name="top_queue"
        )
        into = [
            queue.enqueue_where(
                equal(which, at)
                if self._keep is None
                else logical_and(equal(which, at), self._keep),
                source,
                many=False,
            )
            for source in self._sources[:1]
            for at, queue in enumerate(queues)
        ]
        moves = []
        for at, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
            dequeue = queue.dequeue_up_to if up_to else queue.dequeue_many
            taken = dequeue(size, name=f"read_bucket_{at}")
            parts = taken if isinstance(taken, list) else [taken]
            moves.append(batches.enqueue([constant(at), *parts], name=f"enqueue_from_bucket_{at}"))
        ended = (OutOfRangeError, CancelledError)
        add_queue_runner(
            QueueRunner(
                queues[0],
                moves,
                batches.close(),
                batches.close(cancel_pending_enqueues=True),
                ended,
            )
        )
        add_queue_runner(
            QueueRunner(
                batches,
                [group(*into, name="group_enqueues")] * len(self._sources),
                group(*[queue.close() for queue in queues]),
                group(*[queue.close(cancel_pending_enqueues=True) for queue in queues]),
                ended,
            )
        )
        summarize_queue(f"bucket/{batches.name}/fraction_of_{capacity}_full", batches, 0, capacity)
        bucket, *found = batches.dequeue(name="dequeue_top")
        return bucket, self.restored(found)


def _as_list(example: Any, form: Any) -> list[Any]:
    """Returns the tensors of an example, in the order of `form`."""
    if isinstance(form, Mapping):
        if set(example) != set(form):
            raise ValueError("All dictionaries in tensors_list must have the same keys")
        parts = [example[key] for key in sorted(form)]
    else:
        parts = list(example) if isinstance(example, (list, tuple)) else [example]
    return [convert_to_tensor_or_sparse_tensor(part) for part in parts]
