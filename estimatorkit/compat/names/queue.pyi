from estimatorkit.compat.ops.queues.queue_kinds import (
    FIFOQueue as FIFOQueue, PaddingFIFOQueue as PaddingFIFOQueue, PriorityQueue as PriorityQueue,
    RandomShuffleQueue as RandomShuffleQueue,
)
