"""Runs that several tasks take part in: `ClusterState` and `ClusterRunner`.

The session's process drives: it sends each part of a run to its task, with what the task needs for
it, runs its own parts meanwhile, and passes on what parts give to others. What a task needs of
itself stays there.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.core.checkpoint_format import Elsewhere
from estimatorkit.core.errors import OpError
from estimatorkit.core.executor import PlanRunner, Runner, State, to_numpy, uninitialized
from estimatorkit.core.graph import Graph
from estimatorkit.core.part_graph import PartGraph
from estimatorkit.core.placement import Placer
from estimatorkit.core.plan import Plan, make_plan
from estimatorkit.core.targets import Channel, Cluster, Held
from estimatorkit.core.task_parts import TaskPart, TaskParts, cut_by_task
from estimatorkit.core.task_placement import HERE, named_operation
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.timeline import Trace


class ClusterState(State):
    """What a session of a cluster holds: its own task's part here, the rest with the others."""

    def __init__(self, graph: Graph, placer: Placer, held: Held, cluster: Cluster) -> None:
        super().__init__(graph, placer, held)
        self.cluster = cluster
        self._in_use: set[Channel] = set()

    def cancel(self) -> None:
        """Ends what waits in runs, also with other tasks."""
        super().cancel()
        for channel in list(self._in_use):
            channel.close()

    @contextmanager
    def channels(self) -> Iterator[Callable[[str], Channel]]:
        """Inside, a function gives the channel to a task; all end where an error leaves the block,
        where the session closes, and where the run's time is over.
        """
        used: dict[str, Channel] = {}

        def channel(task: str) -> Channel:
            if task not in used:
                used[task] = self.cluster.channel(task)
                self._in_use.add(used[task])
            return used[task]

        def close() -> None:
            for each in list(used.values()):
                each.close()

        left = self.time_left
        timer = None if left is None else threading.Timer(left, close)
        try:
            if timer is not None:
                timer.start()
            self.raise_if_cancelled()
            yield channel
        except BaseException:
            close()
            raise
        else:
            for task, each in used.items():
                self.cluster.give_back(task, each)
        finally:
            self._in_use.difference_update(used.values())
            if timer is not None:
                timer.cancel()

    def is_initialized(self, name: str) -> bool:
        """Whether the variable has a value, wherever it is."""
        task = self._task_of(name)
        if task == HERE:
            return super().is_initialized(name)
        (found,) = self._ask(task, "initialized", {"names": [name]})
        return bool(found[0])

    def put(self, name: str, value: Any) -> None:
        """Gives a variable a value, wherever it is."""
        task = self._task_of(name)
        if task == HERE:
            super().put(name, value)
        else:
            self._ask(task, "write", {"names": [name]}, [value])

    def runner(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        optimize: bool = True,
        elsewhere: Collection[Operation] = frozenset(),
    ) -> Runner:
        """Cuts a run by task, and makes what runs it."""
        parts = cut_by_task(self.graph, fetches, targets, feeds, self.cluster.placer, elsewhere)
        return ClusterRunner(parts, self, optimize)

    def own_plan(self, part: TaskPart, whole: TaskParts, optimize: bool = True) -> Plan:
        """The plan of a part of this process."""
        every = {op for level in whole.levels for each in level for op in each.ops}
        return make_plan(
            self.graph,
            part.outputs,
            part.targets,
            part.inputs,
            self.placer,
            optimize,
            elsewhere=every.difference(part.ops),
        )

    def _value_or_counter(self, name: str) -> Any:
        task = self._task_of(name)
        if task == HERE:
            return super()._value_or_counter(name)
        if not self.is_initialized(name):
            raise uninitialized(self.graph.get_operation_by_name(name))
        (value,) = self._ask(task, "read", {"names": [name]})
        return value

    def to_save(self, names: Sequence[str]) -> list[Any]:
        """What a checkpoint takes for these variables: their values, or who writes them."""
        writers: dict[str, Any] = {}
        found = []
        for name in names:
            task = self._task_of(name)
            if task == HERE:
                found += self.take([name])
            else:
                writer = writers.setdefault(task, partial(self._save, task))
                found.append(Elsewhere(writer, name))
        return found

    def _save(
        self, task: str, path: Path, names: Mapping[str, str]
    ) -> Mapping[str, tuple[str, list[int]]]:
        header = {"path": str(path.absolute()), "names": dict(names)}
        found = self._ask(task, "save", header)
        written: dict[str, tuple[str, list[int]]] = json.loads(bytes(found[0]))
        return written

    def restore(self, path: str, keys: Mapping[str, str]) -> set[str]:
        """Lets the tasks that hold variables read them from a checkpoint."""
        by_task: dict[str, dict[str, str]] = {}
        for name, key in keys.items():
            if task := self._task_of(name):
                by_task.setdefault(task, {})[name] = key
        for task, wanted in by_task.items():
            self._ask(task, "restore", {"path": os.path.abspath(path), "keys": wanted})
        return {name for wanted in by_task.values() for name in wanted}

    def _task_of(self, name: str) -> str:
        op = named_operation(self.graph, name)
        is_variable = op is not None and op.type == "VarHandleOp"
        return self.cluster.placer(op) if op is not None and is_variable else HERE

    def _ask(
        self, task: str, question: str, header: dict[str, Any], arrays: Sequence[Any] = ()
    ) -> list[Any]:
        with self.channels() as channel:
            channel(task).ask(question, header, arrays)
            return channel(task).answer(self.raise_if_cancelled)


class ClusterRunner:
    """Runs a cut run on values of its feeds; what `PlanRunner` is for a plan.

    Args:
        plan: the cut run.
        state: the session's.
        optimize: whether this process's parts fold constants and share equal operations.
    """

    def __init__(self, plan: TaskParts, state: ClusterState, optimize: bool = True) -> None:
        self._state = state
        self._cluster = state.cluster
        self.plan = plan
        constants = [t for t in plan.fetches if t.op.type == "Const" and t not in plan.feeds]
        self._constants = {tensor: tensor.op.attrs["value"] for tensor in constants}
        self._own: dict[TaskPart, PlanRunner] = {}
        self._remote: dict[TaskPart, RemotePart] = {}
        for part in (part for level in plan.levels for part in level):
            if part.task == HERE:
                self._own[part] = PlanRunner(state.own_plan(part, plan, optimize), state)
            else:
                self._remote[part] = RemotePart(part, plan, self._cluster)

    def run(self, feeds: Sequence[Any], trace: Trace | None = None) -> list[Any]:
        """The values of the fetches, as NumPy arrays (scalars for 0-d).

        Args:
            feeds: the values of the feeds, in order.
            trace: measures each part.

        Raises:
            OpError: a part has failed; the others of its level have ended before.
        """
        values: dict[Any, Any] = dict(zip(self.plan.feeds, feeds, strict=True))
        values.update(self._constants)
        with self._state.channels() as channel:
            for level in self.plan.levels:
                self._run_level(level, values, channel, trace)
        return [to_numpy(values[tensor], tensor) for tensor in self.plan.fetches]

    def _run_level(
        self,
        level: Sequence[TaskPart],
        values: dict[Any, Any],
        channel: Callable[[str], Channel],
        trace: Trace | None,
    ) -> None:
        asked: list[tuple[RemotePart, Channel]] = []
        failed: list[OpError] = []
        for part in level:
            if part.task == HERE:
                continue
            remote, to = self._remote[part], channel(part.task)
            remote.ask(to, values)
            asked.append((remote, to))
        for part in level:
            if part.task == HERE:
                own = self._own[part]
                found = own.compute([values[tensor] for tensor in part.inputs], trace)
                values.update(zip(part.outputs, found, strict=True))
        for remote, to in asked:
            try:
                remote.answer(to, values, self._state)
            except OpError as error:
                failed.append(error)
        if failed:
            raise attributed(failed[0], self._state.graph)


class RemotePart:
    """A part that another task runs.

    Args:
        part: the part.
        whole: the run that it is of.
        cluster: the tasks.

    Attributes:
        takes: the tensors that are sent to the task, in order.
        gives: those that it sends back.
    """

    def __init__(self, part: TaskPart, whole: TaskParts, cluster: Cluster) -> None:
        self.takes = [tensor for tensor in part.inputs if tensor not in part.kept]
        self.gives = list(whole.sent[part])
        self._task = part.task
        self._graph = PartGraph.of(part, self.gives)
        self._cluster = cluster
        self._known = -1
        self._name = ""

    @property
    def name(self) -> str:
        """What the task calls it, which gets the graph where it does not have it."""
        if self._known != self._cluster.generation:
            self._known = self._cluster.generation
            self._name = self._cluster.program(self._task, self._graph)
        return self._name

    def ask(self, channel: Channel, values: dict[Any, Any]) -> None:
        """Asks for a run."""
        arrays = [np.asarray(values[tensor]) for tensor in self.takes]
        channel.ask("run", {"programs": [self.name]}, arrays)

    def answer(self, channel: Channel, values: dict[Any, Any], state: State) -> None:
        """Waits for what it gives."""
        found = channel.answer(state.raise_if_cancelled)
        values.update(zip(self.gives, found, strict=True))


def attributed(error: OpError, graph: Graph) -> OpError:
    """An error of another task, with the operation of this graph that it names."""
    if isinstance(error.op, str):
        error.op = named_operation(graph, error.op)
    return error
