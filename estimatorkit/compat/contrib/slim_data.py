"""`slim.prefetch_queue`: prefetches batches into a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import name_scope
from estimatorkit.ops.files.summary import scalar
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.queues.queue_kinds import FIFOQueue, PaddingFIFOQueue
from estimatorkit.train.queues.queue_runner import QueueRunner, add_queue_runner


def prefetch_queue(
    tensors: Mapping[str, Any] | Sequence[Any],
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """A queue that threads fill with tensors (`tf.contrib.slim.prefetch_queue.prefetch_queue`).

    Args:
        tensors: a list, or a dict, of tensors.
        capacity: the maximum number of elements.
        num_threads: the number of enqueuing threads of the queue's runner.
        dynamic_pad: whether shapes may have unknown dimensions, which `dequeue_many` pads.
        shared_name: shares the queue between sessions.
        name: the name scope.

    Returns:
        The queue; `dequeue` returns a list or dict like `tensors`. Its runner is in the collection
        QUEUE_RUNNERS, and a summary reports how full it is.
    """
    names: list[str] | None = None
    if isinstance(tensors, Mapping):
        names = sorted(tensors)
        parts = [tensors[each] for each in names]
    else:
        parts = list(tensors)
    with name_scope(name, "prefetch_queue", parts) as scope:
        queue: Any = (PaddingFIFOQueue if dynamic_pad else FIFOQueue)(
            capacity=capacity,
            dtypes=[each.dtype for each in parts],
            shapes=[each.shape for each in parts],
            names=names,
            shared_name=shared_name,
            name=scope,
        )
        enqueue = queue.enqueue(tensors)
        add_queue_runner(QueueRunner(queue, [enqueue] * num_threads))
        full = elementwise.cast(queue.size(), float32) * (1.0 / capacity)
        scalar(f"fraction_of_{capacity}_full", full)
        return queue
