"""`ReplicatedState`: the variables of a session whose graph is run by replicas."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import jax
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.errors import UnimplementedError
from estimatorkit.core.graph import Graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.distribute.replicas.replica_loop import ReplicaLoop
from estimatorkit.distribute.replicas.replica_run import ReplicaRunner, cut_plan, exchanges_of
from estimatorkit.distribute.replicas.replicas import Replicas, different_programs
from estimatorkit.runtime.local_state import LocalState
from estimatorkit.runtime.loop import StepLoop, StepSpec
from estimatorkit.runtime.resource_store import ResourceStore, finished
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.state import Runner, State
from estimatorkit.runtime.targets import Target
from estimatorkit.runtime.xla.placement import Placer
from estimatorkit.storage.checkpoint import read_checkpoint_parts
from estimatorkit.storage.checkpoint_format import ShardedTensor
from estimatorkit.storage.tensor_slice import TensorSlice


class ReplicatedState(LocalState):
    """The state of a session whose graph is run by replicas.

    Args:
        graph, placer, held: as for a `LocalState`.
        replicas: the replicas.
        shard_rows_above: see `MirroredStrategy`.

    Attributes:
        sharded: the shapes of the variables that are sharded by rows, by name.
    """

    def __init__(
        self,
        graph: Graph,
        placer: Placer,
        held: ResourceStore,
        replicas: Replicas,
        shard_rows_above: int | None = None,
    ) -> None:
        super().__init__(graph, placer, held)
        self.replicas = replicas
        self.sharded = sharded_shapes(graph, shard_rows_above)
        if self.sharded:  # XLA would initialize them on a single device
            self.largest_interpreted = sys.maxsize

    def take(self, names: Sequence[str]) -> list[Any]:
        """The values of `names`, on this process's first device; sharded ones are gathered."""
        return [
            self._whole(name, value) if name in self.sharded else self.replicas.here(value)
            for name, value in zip(names, super().take(names), strict=True)
        ]

    def take_everywhere(self, names: Sequence[str]) -> list[Any]:
        """The values of `names`, replicated on all devices, or sharded by rows over them."""
        found = [
            self._by_rows(name, value) if name in self.sharded else self.replicas.everywhere(value)
            for name, value in zip(names, super().take(names), strict=True)
        ]
        self.values.update(zip(names, found, strict=True))
        return found

    def _by_rows(self, name: str, value: Any) -> Any:
        if self._is_by_rows(value):
            return value
        array = np.asarray(finished(value))
        return self.replicas.row_sharded(lambda start, stop: array[start:stop], array.shape)

    def _is_by_rows(self, value: Any) -> bool:
        return isinstance(value, jax.Array) and value.sharding == self.replicas.by_rows

    def _whole(self, name: str, value: Any) -> Any:
        if not self._is_by_rows(value):
            return value
        return np.concatenate(self._blocks(name))

    def _blocks(self, name: str) -> list[NDArray[Any]]:
        """The rows of a sharded variable, by device; those of other processes are gathered."""
        number = list(self.sharded).index(name)
        if self.replicas.processes == 1:
            return self._gathered(number)
        return self.replicas.gather_variable(number, self._gathered)

    def _gathered(self, number: int) -> list[NDArray[Any]]:
        """The rows of a sharded variable, by device; a collective that moves one device's rows at a
        time.
        """
        name, shape = list(self.sharded.items())[number]
        replicas = self.replicas
        own = replicas.own_rows(self._by_rows(name, super().take([name])[0]), shape[0])
        if replicas.processes == 1:
            return own
        size = -(-shape[0] // replicas.count)
        found = []
        for at in range(replicas.count):
            length = max(min(shape[0] - at * size, size), 0)
            is_own = 0 <= at - replicas.first < len(own)
            part = (
                own[at - replicas.first] if is_own else np.zeros((length, *shape[1:]), own[0].dtype)
            )
            found.append(np.asarray(replicas.all_reduce([part])[0]) if length else part)
        return found

    def initial(self, name: str, value: NDArray[Any], device: Any) -> Any:
        """Transfers a variable's first value to its devices (see `State.initial`)."""
        if name in self.sharded:
            return self._by_rows(name, value)
        return super().initial(name, value, device)

    def put(self, name: str, value: Any) -> None:
        """Sets the value of a variable."""
        super().put(name, self._by_rows(name, value) if name in self.sharded else value)

    def to_save(self, names: Sequence[str]) -> list[Any]:
        """The values of variables, for a checkpoint: sharded ones as the rows of each device."""
        sharded = [name for name in names if name in self.sharded]
        others = [name for name in names if name not in self.sharded]
        found = dict(zip(others, super().to_save(others), strict=True))
        with self.lock:
            for name in sharded:
                parts = [part for part in self._blocks(name) if len(part)]
                numbered = {f"{name}[{number}]": part for number, part in enumerate(parts)}
                found[name] = ShardedTensor(0, numbered)
        return [found[name] for name in names]

    def restore(self, path: str, parts: Mapping[str, TensorSlice]) -> set[str]:
        """Restores the sharded variables, each device's rows alone (see `State.restore`)."""
        restored = {name: part for name, part in parts.items() if name in self.sharded}
        for name, each in restored.items():

            def rows(start: int, stop: int, key: str = each.name) -> Any:
                return read_checkpoint_parts(path, [TensorSlice(key, 0, start, stop - start)])[0]

            self.put(name, self.replicas.row_sharded(rows, self.sharded[name]))
        return set(restored)

    def variables_set(self) -> None:
        """Broadcasts the chief's variables, random counters and input position.

        A collective: all processes must call it, with the same variables initialized. Each process
        keeps its own rows of sharded variables.

        Raises:
            UnimplementedError: the graph trains a dynamic embedding table.
        """
        self.replicas.gather = self._gathered
        if self.replicas.processes == 1:
            return
        _check_dynamic_tables(self.graph)
        inputs = {str(name): each for name, each in self.resources.items() if _is_input(each)}
        own = {op.name for op in self.graph.get_operations() if role_of(op) is Role.VARIABLE}
        own.difference_update(self.sharded)
        counters = {
            name: np.asarray(each).tolist() for name, each in self.random_counters().items()
        }
        numbers = {
            name: [np.dtype(value.dtype).name, list(value.shape)]
            for name, value in self.values.items()
            if name in own and np.dtype(value.dtype).kind not in "OSU"
        }
        own_state = [numbers, counters, {name: each.taken for name, each in inputs.items()}]
        wanted, counters, taken = json.loads(self.replicas.broadcast_text(json.dumps(own_state)))
        for name, kind in wanted.items():
            if numbers.get(name) != kind:
                raise different_programs(f"variable {name}: {kind} and {numbers.get(name)}")
        for name, each in inputs.items():
            if not each.taken:
                each.skip_elements(taken.get(name, 0))
        with x64():
            found = self.replicas.broadcast(dict(zip(wanted, self.take(list(wanted)), strict=True)))
        self.values.update(found)
        self.values.update((name, np.array(each, np.uint32)) for name, each in counters.items())

    def runner(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        optimize: bool = True,
        elsewhere: Collection[Operation] = frozenset(),
    ) -> Runner:
        """The runner of a plan: for all replicas if it has collectives, else local."""
        plan = cut_plan(self, fetches, targets, feeds, optimize)
        if elsewhere or not exchanges_of(plan):
            return super().runner(fetches, targets, feeds, optimize, elsewhere)
        return ReplicaRunner(plan, self)

    def step_loop(self, spec: StepSpec) -> StepLoop:
        """The loop of many steps of all replicas."""
        return ReplicaLoop(self, spec)


class ReplicaSession(Session):
    """A session whose graph is run by replicas.

    Args:
        target, graph, config: as for a `Session`.
        replicas: the replicas.
        shard_rows_above: see `MirroredStrategy`.
    """

    def __init__(
        self,
        target: str,
        graph: Graph,
        config: Any,
        replicas: Replicas,
        shard_rows_above: int | None = None,
    ) -> None:
        self._replicas = replicas, shard_rows_above
        super().__init__(target, graph, config)

    def _open_state(self, target: Target, placer: Placer) -> State:
        return ReplicatedState(self.graph, placer, target.held, *self._replicas)


def sharded_shapes(graph: Graph, above: int | None) -> dict[str, tuple[int, ...]]:
    """The shapes of the variables of a graph that replicas shard by rows, by name.

    Args:
        graph: the graph.
        above: the least number of bytes; None for none.
    """
    found: dict[str, tuple[int, ...]] = {}
    for variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        primary = variable
        while primary.slot_of is not None:
            primary = primary.slot_of
        if all(
            each.shape.rank and each.shape.is_fully_defined() and not each.dtype.on_host
            for each in (variable, primary)
        ):
            size = primary.shape.num_elements() * primary.dtype.size
            is_chosen = primary.shard_rows
            if is_chosen is None:
                is_chosen = above is not None and size >= above
            is_part = primary.save_slice_info is not None
            if is_chosen and not is_part and variable.shape[0] == primary.shape[0]:
                found[variable.op.name] = tuple(variable.shape.as_list())
    return found


class Elements(Protocol):
    """The interface of an input for replicas (`data.execution.cursor.Cursor`)."""

    @property
    def taken(self) -> int:
        """The number of elements consumed."""

    def skip_elements(self, count: int) -> None:
        """Skips elements."""

    def unread(self) -> None:
        """Returns the last element to the input."""


def _is_input(resource: Any) -> TypeGuard[Elements]:
    return hasattr(resource, "skip_elements")


def _check_dynamic_tables(graph: Graph) -> None:
    """Raises UnimplementedError if the graph trains a dynamic embedding table."""
    for op in graph.get_operations():
        if op.type != "EmbeddingRows":
            continue
        is_training = registry.constant_value(op.inputs[1])
        if is_training is None or is_training:
            raise UnimplementedError.explained(
                f"the dynamic embedding table {op.attrs['weights']!r} is trained by several "
                "processes in step, each of which would number new ids in its own order",
                expected="parameter servers, or several devices of one process",
                made_at=op.source,
                hint="a table with rows and hashes needs no numbering: "
                "EmbeddingTable(rows=1_000_000, hashes=2)",
                op=op,
            )
