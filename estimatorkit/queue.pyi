from estimatorkit.ops.queues.queues import QueueBase as QueueBase
from estimatorkit.compat.names.queue import *
