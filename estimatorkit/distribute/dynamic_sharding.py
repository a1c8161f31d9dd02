"""`dynamically_sharded`: a dataset whose shards workers take from a shared queue.

The queue lives on the first parameter server. It hands out units, (epoch, index), in a seeded
random order. Units that a lost worker took but did not train are handed out again, so every unit is
trained at least once, and exactly once if no worker dies. The queue is saved with the model's
checkpoints and rolls back with the model.

`ShardQueue` is one queue, `Deals` all of a training's: pure state without I/O.
`data.sharded_dataset` is the dataset's side.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from estimatorkit.core.errors import FailedPreconditionError, value_error
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.parameters import integer
from estimatorkit.data.plan import INFINITE
from estimatorkit.data.sharded_dataset import Dealer, LocalShards, Order, ShardedDataset, Unit
from estimatorkit.data.tracing import trace_function
from estimatorkit.data.transformations import check_dataset
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
    return Dataset(ShardedDataset(units._plan, traced, times, seed, name, dealer_for))


def dealer_for(order: Order, state: Any) -> Dealer:
    """The source of units for a session: the training's queue, or its own.

    Args:
        order: the order of units.
        state: the session's state; None without a session.
    """
    cluster = state.cluster if isinstance(state, ClusterState) else None
    if getattr(cluster, "dealer", None) is None:
        return LocalShards(order)
    return ClusterDealer(order, cluster, state.raise_if_cancelled)


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
        self._dealt = 0  # so many, in order, have been given out at least once
        self._back: deque[Unit] = deque()
        self._left_by: dict[Unit, str] = {}
        self._held: dict[str, dict[Unit, None]] = {}
        self._again: Counter[Unit] = Counter()

    def take(self, worker: str) -> Unit | None:
        """Takes the next unit; None if there is none at present."""
        if self._back:
            unit = self._back.popleft()
            self._left_by.pop(unit, None)
            self._again[unit] += 1
        elif self._dealt < self.order.total:
            unit = self.order.unit(self._dealt)
            self._dealt += 1
        else:
            return None
        self._held.setdefault(worker, {})[unit] = None
        return unit

    def trained(self, worker: str, units: Iterable[Unit]) -> None:
        """Records that a worker trained units. If it was presumed lost, units that nobody has taken
        since are not handed out again.
        """
        held = self._held.get(worker, {})
        for unit in units:
            if unit in held:
                del held[unit]
            elif self._left_by.get(unit) == worker:
                del self._left_by[unit]
                self._back.remove(unit)

    def left(self, worker: str) -> None:
        """Returns the units of a lost worker to the queue."""
        held = self._held.pop(worker, {})
        self._back.extend(held)
        self._left_by.update(dict.fromkeys(held, worker))

    @property
    def workers(self) -> list[str]:
        """The workers that hold or have held units."""
        return list(self._held)

    @property
    def has_more(self) -> bool | None:
        """True if a unit is available, None if all remaining ones are held, False if all are
        trained.
        """
        if self._back or self._dealt < self.order.total:
            return True
        return None if any(self._held.values()) else False

    @property
    def _open(self) -> list[Unit]:
        """The units handed out and not trained."""
        return [*self._back, *(unit for held in self._held.values() for unit in held)]

    def state(self) -> dict[str, Any]:
        """The state as JSON; units in progress count as not trained."""
        return {
            "count": self.order.count,
            "seed": self.order.seed,
            "dealt": self._dealt,
            "open": [list(unit) for unit in self._open],
            "again": [[*unit, times] for unit, times in self._again.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Restores a state from `state()`, with no units in progress.

        Returns:
            Whether it was restored: not if the state is of other units, or all were trained.
        """
        self._begin()
        known = (state["count"], state["seed"]) == (self.order.count, self.order.seed)
        if not known or (state["dealt"] >= self.order.total and not state["open"]):
            return False
        self._dealt = state["dealt"]
        self._back.extend((epoch, index) for epoch, index in state["open"])
        self._again.update({(epoch, index): times for epoch, index, times in state["again"]})
        return True

    def report(self) -> list[str]:
        """A report of the units handed out and trained, a line per epoch or group of epochs."""
        count = self.order.count
        begun = range(-(-self._dealt // count) if count else 0)
        left = Counter(epoch for epoch, _ in self._open)
        lines = []
        for text, epochs in groupby(begun, lambda epoch: self._described(epoch, left[epoch])):
            first, *rest = epochs
            lines.append(f"epoch{f's {first} to {rest[-1]}' if rest else f' {first}'}: {text}")
        return lines

    def _described(self, epoch: int, left: int) -> str:
        count = self.order.count
        dealt = min(self._dealt - epoch * count, count)
        text = f"{dealt - left} of {count} units"
        times = Counter(again for unit, again in self._again.items() if unit[0] == epoch)
        twice = times.pop(1, 0)
        more = times.total()
        return (
            text
            + (f", {twice} given out twice" if twice else "")
            + (f", {more} three times or more" if more else "")
        )


class Deals:
    """The queues of a training, by name."""

    def __init__(self) -> None:
        self._dealings: dict[str, ShardQueue] = {}

    def answer(self, worker: str, question: Mapping[str, Any]) -> Any:
        """Answers a request of a `ClusterDealer`, in JSON.

        Args:
            worker: the requester.
            question: the request: 'do' is the action, 'order' the order of units.

        Raises:
            FailedPreconditionError: other workers use this name for other units.
        """
        order = Order(**question["order"])
        dealing = self._dealings.setdefault(order.name, ShardQueue(order))
        if dealing.order != order:
            raise _other_units(order, dealing.order)
        match question["do"]:
            case "take":
                return dealing.take(worker)
            case "trained":
                return dealing.trained(worker, map(_as_unit, question["units"]))
            case "more":
                return dealing.has_more
            case "save":
                return dealing.state()
            case other:
                assert other == "restore"  # noqa: S101  (there is no more)
                return dealing.restore(question["state"])

    def left(self, worker: str) -> None:
        """Returns the units of a lost worker."""
        for dealing in self._dealings.values():
            dealing.left(worker)

    def process_left(self, name: str) -> None:
        """Returns the units of all workers of a lost process."""
        for dealing in self._dealings.values():
            for worker in dealing.workers:
                if process_of(worker) == name:
                    dealing.left(worker)

    def clear(self) -> None:
        """Clears all queues, as the training rolls back to a checkpoint."""
        self._dealings.clear()

    def report(self) -> list[str]:
        """A report of the units trained."""
        several = len(self._dealings) > 1
        return [
            f"{name}, {line}" if several else line
            for name, dealing in self._dealings.items()
            for line in dealing.report()
        ]


def _as_unit(unit: Sequence[int]) -> Unit:
    epoch, index = unit
    return epoch, index


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


class ClusterDealer:
    """Takes units from the queue on a training's parameter server (see `data.Dealer`).

    Its units are returned to the queue when its channel closes, even if it reconnects.

    Args:
        order: the order of units.
        cluster: the training's `TaskCluster`.
        raise_if_over: called while waiting for the parameter server; may raise to cancel.
    """

    is_shared = True

    def __init__(self, order: Order, cluster: Any, raise_if_over: Callable[[], None]) -> None:
        self._order = asdict(order)
        self._cluster = cluster
        self._raise_if_over = raise_if_over
        self._worker = ""  # a name for each channel: one before it may be given up later
        self._channel: Any = None
        self._lock = threading.Lock()  # elements are read ahead by a thread

    def take(self) -> Unit | None:
        """See `Dealer`."""
        unit = self._ask("take")
        return None if unit is None else _as_unit(unit)

    def trained(self, units: Sequence[Unit]) -> None:
        """See `Dealer`."""
        self._ask("trained", units=units)

    def has_more(self) -> bool | None:
        """See `Dealer`."""
        found: bool | None = self._ask("more")
        return found

    def get_state(self) -> Any:
        """See `Dealer`: the units that no process has trained yet."""
        return self._ask("save")

    def set_state(self, state: Any) -> None:
        """See `Dealer`: for all processes."""
        if not self._ask("restore", state=state):
            logger.info(
                "Dynamic sharding starts over: all units were trained, or the units have changed."
            )

    def _ask(self, do: str, **more: Any) -> Any:
        question = {"do": do, "order": self._order, **more}
        with self._lock:
            if self._channel is None:
                self._worker = worker_name(self._cluster.worker)
                self._channel = self._cluster.channel(self._cluster.dealer, self._raise_if_over)
            try:
                self._channel.ask("deal", {"worker": self._worker, "deal": question})
                (found,) = self._channel.answer(self._raise_if_over)
            except BaseException:
                self.close()
                raise
        return json.loads(bytes(found))

    def close(self) -> None:
        """See `Dealer`."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.end()
