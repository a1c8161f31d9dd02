"""`dynamically_sharded`: a dataset whose shards workers take from a shared queue.

The queue lives on the first parameter server. It hands out units, (epoch, index), in a seeded
random order. Units that a lost worker took but did not train are handed out again, so every unit is
trained at least once, and exactly once if no worker dies. The queue is saved with the model's
checkpoints and rolls back with the model.

`ShardQueue` is one queue, `ShardQueues` all of a training's: pure state without I/O.
`data.sharded_dataset` is the dataset's side.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from estimatorkit.core.errors import FailedPreconditionError, value_error
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.parameters import integer
from estimatorkit.data.plan import INFINITE
from estimatorkit.data.sharded_dataset import LocalShards, Order, ShardedDataset, ShardSource, Unit
from estimatorkit.data.tracing import trace_function
from estimatorkit.data.transformations import check_dataset
from estimatorkit.distribute.tasks import rpc
from estimatorkit.distribute.tasks.cluster_run import ClusterState
from estimatorkit.logger import logger


def dynamically_sharded(
    units: Dataset,
    dataset_of: Callable[..., Dataset],
    epochs: int | None = 1,
    seed: int | None = None,
    name: str = "data",
) -> Dataset:
    """A dataset whose shards are assigned dynamically to the workers of a cluster.

    When an estimator trains on parameter servers, workers take shards from a shared queue as
    needed: slow workers get fewer, and the shards of a lost worker are reassigned. The input ends
    when all shards have been trained on. Checkpoints record them, and the chief logs a report. In
    any other setting the process reads all shards itself.

    Args:
        units: a finite dataset of shard descriptions, such as file names; identical in all
            processes.
        dataset_of: maps a unit to the shard's dataset, traced as in `Dataset.flat_map`; each of its
            elements, usually a batch, is used by one training step.
        epochs: the number of passes over all units; None for no limit.
        seed: shuffles units, differently in each epoch; None keeps their order.
        name: distinguishes several such datasets of one input.

    Returns:
        The dataset, to be returned by an `input_fn` without further transformations.

    Raises:
        TypeError: `dataset_of` does not return a dataset, or `epochs` is not an integer.
        ValueError: `units` is infinite.
        InvalidArgumentError: `epochs` is negative.
    """
    if units._plan.cardinality == INFINITE:
        raise value_error(
            "dynamically_sharded(): the dataset of units is infinite",
            expected="a finite dataset; epochs=None repeats it forever",
            received="an infinite dataset, for example from repeat()",
        )
    traced = trace_function(dataset_of, units.element_spec)
    check_dataset("dynamically_sharded", traced.output_spec)
    times = None if epochs is None else integer("dynamically_sharded(): epochs", epochs, least=0)
    return Dataset(ShardedDataset(units._plan, traced, times, seed, name, shards_for))


def shards_for(order: Order, state: Any) -> ShardSource:
    """The source of units for a session: the training's queue, or its own.

    Args:
        order: the order of units.
        state: the session's state; None without a session.
    """
    cluster = state.cluster if isinstance(state, ClusterState) else None
    if getattr(cluster, "shard_server", None) is None:
        return LocalShards(order)
    return ClusterShards(order, cluster, state.raise_if_cancelled)


# -- the state of a queue


class ShardQueue:
    """A queue of units: which workers hold which, and what is left.

    Args:
        order: of the units.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self._begin()

    def _begin(self) -> None:
        self._assigned = 0  # the number of units that were assigned at least once, in order
        self._returned: deque[Unit] = deque()
        self._returned_by: dict[Unit, str] = {}
        self._in_progress: dict[str, dict[Unit, None]] = {}
        self._reassigned: Counter[Unit] = Counter()

    def take(self, worker: str) -> Unit | None:
        """Takes the next unit; None if there is none at present."""
        if self._returned:
            unit = self._returned.popleft()
            self._returned_by.pop(unit, None)
            self._reassigned[unit] += 1
        elif self._assigned < self.order.total:
            unit = self.order.unit(self._assigned)
            self._assigned += 1
        else:
            return None
        self._in_progress.setdefault(worker, {})[unit] = None
        return unit

    def trained(self, worker: str, units: Iterable[Unit]) -> None:
        """Records that a worker trained units. If it was presumed lost, units that no other worker
        has taken since are not handed out again.
        """
        held = self._in_progress.get(worker, {})
        for unit in units:
            if unit in held:
                del held[unit]
            elif self._returned_by.get(unit) == worker:
                del self._returned_by[unit]
                self._returned.remove(unit)

    def left(self, worker: str) -> None:
        """Returns the units of a lost worker to the queue."""
        held = self._in_progress.pop(worker, {})
        self._returned.extend(held)
        self._returned_by.update(dict.fromkeys(held, worker))

    @property
    def workers(self) -> list[str]:
        """The workers that hold or have held units."""
        return list(self._in_progress)

    @property
    def has_more(self) -> bool | None:
        """True if a unit is available, None if all remaining ones are held, False if all are
        trained.
        """
        if self._returned or self._assigned < self.order.total:
            return True
        return None if any(self._in_progress.values()) else False

    @property
    def _open(self) -> list[Unit]:
        """The units handed out and not trained."""
        return [*self._returned, *(unit for held in self._in_progress.values() for unit in held)]

    def state(self) -> rpc.ShardQueueState:
        """The state; units in progress count as not trained."""
        return rpc.ShardQueueState(
            count=self.order.count,
            seed=self.order.seed,
            dealt=self._assigned,
            open=tuple(self._open),
            again=tuple((*unit, times) for unit, times in self._reassigned.items()),
        )

    def restore(self, state: rpc.ShardQueueState) -> bool:
        """Restores a state from `state()`, with no units in progress.

        Returns:
            Whether it was restored: not if the state is of other units, or all were trained.
        """
        self._begin()
        known = (state.count, state.seed) == (self.order.count, self.order.seed)
        if not known or (state.dealt >= self.order.total and not state.open):
            return False
        self._assigned = state.dealt
        self._returned.extend(state.open)
        self._reassigned.update({(epoch, index): times for epoch, index, times in state.again})
        return True

    def report(self) -> list[str]:
        """A report of the units handed out and trained, a line per epoch or group of epochs."""
        count = self.order.count
        begun = range(-(-self._assigned // count) if count else 0)
        left = Counter(epoch for epoch, _ in self._open)
        lines = []
        for text, epochs in groupby(begun, lambda epoch: self._described(epoch, left[epoch])):
            first, *rest = epochs
            lines.append(f"epoch{f's {first} to {rest[-1]}' if rest else f' {first}'}: {text}")
        return lines

    def _described(self, epoch: int, left: int) -> str:
        count = self.order.count
        dealt = min(self._assigned - epoch * count, count)
        text = f"{dealt - left} of {count} units"
        times = Counter(again for unit, again in self._reassigned.items() if unit[0] == epoch)
        twice = times.pop(1, 0)
        more = times.total()
        return (
            text
            + (f", {twice} given out twice" if twice else "")
            + (f", {more} three times or more" if more else "")
        )


class ShardQueues:
    """The queues of a training, by name."""

    def __init__(self) -> None:
        self._queues: dict[str, ShardQueue] = {}

    def execute(self, request: rpc.ShardRequest[Any]) -> rpc.Message:
        """Executes a request of a `ClusterShards`.

        Raises:
            FailedPreconditionError: other workers use this name for other units.
        """
        order = request.order
        queue = self._queues.setdefault(order.name, ShardQueue(order))
        if queue.order != order:
            raise _other_units(order, queue.order)
        match request:
            case rpc.TakeShard():
                return rpc.Shard(queue.take(request.worker))
            case rpc.CompleteShards():
                queue.trained(request.worker, request.units)
                return rpc.Done()
            case rpc.HasShards():
                return rpc.ShardsLeft(queue.has_more)
            case rpc.SaveShards():
                return rpc.SavedShards(queue.state())
            case rpc.RestoreShards():
                return rpc.Restored(queue.restore(request.state))
        raise TypeError(f"a request for shards is not handled: {request}")

    def left(self, worker: str) -> None:
        """Returns the units of a lost worker."""
        for queue in self._queues.values():
            queue.left(worker)

    def process_left(self, name: str) -> None:
        """Returns the units of all workers of a lost process."""
        for queue in self._queues.values():
            for worker in queue.workers:
                if process_of(worker) == name:
                    queue.left(worker)

    def clear(self) -> None:
        """Clears all queues, as the training rolls back to a checkpoint."""
        self._queues.clear()

    def report(self) -> list[str]:
        """A report of the units trained."""
        several = len(self._queues) > 1
        return [
            f"{name}, {line}" if several else line
            for name, queue in self._queues.items()
            for line in queue.report()
        ]


def _other_units(wanted: Order, known: Order) -> FailedPreconditionError:
    return FailedPreconditionError.explained(
        f"this process describes the sharded dataset {wanted.name!r} differently than the others",
        expected=f"{known.count} units, {known.epochs} epochs, seed {known.seed}",
        received=f"{wanted.count} units, {wanted.epochs} epochs, seed {wanted.seed}",
        hint="do all processes see the same files? Two datasets of one input need two names: "
        "dynamically_sharded(..., name=...)",
    )


# -- the side of a worker


def worker_name(process: str) -> str:
    """A unique name for a worker of a process."""
    return f"{process} {uuid.uuid4().hex}"


def process_of(worker: str) -> str:
    """The process of a name from `worker_name`."""
    return worker.partition(" ")[0]


class ClusterShards:
    """Takes units from the queue on a training's parameter server (a `ShardSource`).

    Its units are returned to the queue when its channel closes, even if it reconnects.

    Args:
        order: the order of units.
        cluster: the training's `TaskCluster`.
        raise_if_cancelled: called while waiting for the parameter server; may raise to cancel.
    """

    is_shared = True

    def __init__(self, order: Order, cluster: Any, raise_if_cancelled: Callable[[], None]) -> None:
        self._order = order
        self._cluster = cluster
        self._raise_if_cancelled = raise_if_cancelled
        self._worker = ""  # a name for each channel: one before it may be dropped later
        self._channel: Any = None
        self._lock = threading.Lock()  # elements are prefetched by a thread

    def take(self) -> Unit | None:
        """See `ShardSource`."""
        return self._call(rpc.TakeShard).unit

    def trained(self, units: Sequence[Unit]) -> None:
        """See `ShardSource`."""
        self._call(rpc.CompleteShards, units=tuple(units))

    def has_more(self) -> bool | None:
        """See `ShardSource`."""
        return self._call(rpc.HasShards).has_more

    def get_state(self) -> Any:
        """See `ShardSource`: the units that no process has trained yet."""
        return self._call(rpc.SaveShards).state.as_json()

    def set_state(self, state: Any) -> None:
        """See `ShardSource`: for all processes."""
        if not self._call(rpc.RestoreShards, state=rpc.ShardQueueState.of_json(state)).is_restored:
            logger.info(
                "Dynamic sharding starts over: all units were trained, or the units have changed."
            )

    def _call(self, kind: type[rpc.ShardRequest[rpc.R]], **fields: Any) -> rpc.R:
        with self._lock:
            if self._channel is None:
                self._worker = worker_name(self._cluster.worker)
                server = self._cluster.shard_server
                self._channel = self._cluster.channel(server, self._raise_if_cancelled)
            try:
                request = kind(worker=self._worker, order=self._order, **fields)
                reply: rpc.R = self._channel.call(request, self._raise_if_cancelled)
                return reply
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """See `ShardSource`."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.end()
