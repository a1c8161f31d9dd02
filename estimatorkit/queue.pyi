from estimatorkit.ops.queues.queues import QueueBase as QueueBase
from estimatorkit.ops.queues.queue_kinds import (
    FIFOQueue as FIFOQueue, PaddingFIFOQueue as PaddingFIFOQueue, PriorityQueue as PriorityQueue,
    RandomShuffleQueue as RandomShuffleQueue,
)
