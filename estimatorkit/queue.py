"""`tf.queue`: queues."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.ops.queues.queues", "QueueBase"),
    **names(
        "estimatorkit.ops.queues.queue_kinds",
        "FIFOQueue PaddingFIFOQueue PriorityQueue RandomShuffleQueue",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
