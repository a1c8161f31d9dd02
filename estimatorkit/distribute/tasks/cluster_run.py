"""Distributed runs: `ClusterState` and `ClusterRunner`.

The session's process is the driver: it sends the partitions of a run to their tasks with their
inputs, runs its own partitions meanwhile, and forwards outputs. Values that a task itself needs
stay there.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    OpError,
)
from estimatorkit.core.function_graph import GraphFunction, operations_within
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.distribute.tasks.partitions import Partition, Partitions, partition_by_task
from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.distribute.tasks.task_placement import HERE, holders
from estimatorkit.distribute.tasks.task_protocols import Channel, Tasks
from estimatorkit.runtime.executor import PlanRunner, to_numpy
from estimatorkit.runtime.loop import StepLoop, StepSpec
from estimatorkit.runtime.plan import Plan, make_plan
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.state import ProcessState, Runner
from estimatorkit.runtime.xla.placement import Placer, available
from estimatorkit.runtime.xla.timeline import Trace
from estimatorkit.storage.checkpoint_format import RemoteTensor
from estimatorkit.storage.tensor_slice import TensorSlice


class ClusterState(ProcessState):
    """The state of a session of a cluster; variables on other tasks are accessed remotely.

    Attributes:
        cluster: the tasks.
        begun: the random operations that have run on other tasks, where each session resets them;
            concurrent sessions share their counters.
    """

    def __init__(self, graph: Graph, placer: Placer, held: ResourceStore, cluster: Tasks) -> None:
        # Another session's values may be anywhere.
        super().__init__(graph, placer, held, len(available()) > 1)
        self.cluster = cluster
        self.begun: set[str] = set()
        self._began_with = [cluster.generation]  # one with the states of functions' bodies
        self._in_use: set[Channel] = set()

    def variables_set(self) -> None:
        """Records that all variables have values, including those that other tasks had lost."""
        self._began_with[0] = self.cluster.generation

    def cancel(self) -> None:
        """Cancels blocked runs, including those on other tasks."""
        super().cancel()
        for channel in list(self._in_use):
            channel.close()

    @contextmanager
    def channels(self) -> Iterator[Callable[[str], Channel]]:
        """A context manager that yields a function from tasks to channels, which are closed on
        error, when the session closes and at the run's deadline.
        """
        used: dict[str, Channel] = {}

        def channel(task: str) -> Channel:
            if task not in used:
                used[task] = self.cluster.channel(task, self.raise_if_cancelled)
                self._in_use.add(used[task])
                self.raise_if_cancelled()  # it may have been too late for the others
            return used[task]

        def close() -> None:
            for each in list(used.values()):
                each.close()

        left = self.cancellation.time_left
        timer = None if left is None else threading.Timer(left, close)
        if timer is not None:
            timer.start()
        try:
            self.raise_if_cancelled()
            yield channel
        except FailedPreconditionError as error:
            close()
            if self.cluster.generation == self._began_with[0]:
                raise
            # A variable without a value, since another session was told that it is lost.
            raise AbortedError.explained(
                "values were lost because a task was restarted", received=error, op=error.op
            ) from error
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
                # What it holds it lets go of at its end. Arrow's streams, let go of by a daemon
                # while Python ends, abort the process.
                timer.join()

    def uninitialized(self, names: Sequence[str]) -> list[str]:
        """The variables among `names` that have no value, on any task."""
        missing = set(super().uninitialized(self.own(names)))
        questions = {task: {"names": own} for task, own in self._by_task(names).items()}
        for task, (found,) in self._ask_all("initialized", questions).items():
            own = questions[task]["names"]
            missing.update(name for name, has in zip(own, found, strict=True) if not has)
        return [name for name in names if name in missing]

    def read(self, names: Sequence[str]) -> list[Any]:
        """The values of `names`, from any task."""
        by_task = self._by_task(names)
        own = self.own(names)
        values = dict(zip(own, super().read(own), strict=True))
        questions = {task: {"names": wanted} for task, wanted in by_task.items()}
        for task, found in self._ask_all("read", questions).items():
            values.update(zip(by_task[task], found, strict=True))
        return [values[name] for name in names]

    def put(self, name: str, value: Any) -> None:
        """Sets the value of a variable, on any task."""
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
        """Partitions a run by task, and returns its runner."""
        placer = self.cluster.placer
        parts = partition_by_task(self.graph, fetches, targets, feeds, placer, elsewhere)
        ops = (op for level in parts.levels for part in level for op in part.ops)
        self.placer.report(ops, placer.described)
        return ClusterRunner(parts, self, optimize)

    def step_loop(self, spec: StepSpec) -> StepLoop:
        """The loop of many steps."""
        return self.cluster.step_loop(self, spec)

    def own_plan(self, part: Partition, whole: Partitions, optimize: bool = True) -> Plan:
        """The plan of a partition of this process."""
        every = {op for level in whole.levels for each in level for op in each.ops}
        return make_plan(
            self.graph,
            part.outputs,
            part.targets,
            part.inputs,
            self.placer,
            optimize,
            elsewhere=every.difference(part.ops),
            on_host={op for op in part.ops if self.cluster.placer.is_spread(op)},
        )

    def body_of(self, function: GraphFunction) -> ClusterFunction | None:
        """The runner of a function's body that uses resources of other tasks; else None."""
        placer = self.cluster.placer
        held = (each for op in function.graph.get_operations() for each in holders(op))
        if all(placer(each) == HERE for each in held):
            return None
        return ClusterFunction(function, self._within(function.graph))

    def _within(self, graph: Graph) -> ClusterState:
        """The state for a function's body: the same variables, in the same run."""
        inner = ClusterState(graph, self.placer, self.held, self.cluster)
        inner.compilations, inner.begun = self.compilations, self.begun
        inner.cancellation, inner._in_use = self.cancellation, self._in_use
        inner._began_with = self._began_with
        return inner

    def to_save(self, names: Sequence[str]) -> list[Any]:
        """The values of variables for a checkpoint, or references to the tasks that save them."""
        writers: dict[str, Any] = {}
        found = []
        for name in names:
            task = self._task_of(name)
            if task == HERE:
                found += self.read([name])
            else:
                writer = writers.setdefault(task, partial(self._save, task))
                found.append(RemoteTensor(writer, name))
        return found

    def _save(
        self, task: str, path: Path, names: Mapping[str, str]
    ) -> Mapping[str, tuple[str, list[int]]]:
        header = {"path": str(path.absolute()), "names": dict(names)}
        found = self._ask(task, "save", header)
        written: dict[str, tuple[str, list[int]]] = json.loads(bytes(found[0]))
        return written

    def restore(self, path: str, parts: Mapping[str, TensorSlice]) -> set[str]:
        """Lets the tasks that hold variables restore them from a checkpoint."""
        by_task: dict[str, dict[str, Any]] = {}
        for name, part in parts.items():
            if task := self._task_of(name):
                by_task.setdefault(task, {})[name] = asdict(part)
        for task, wanted in by_task.items():
            self._ask(task, "restore", {"path": os.path.abspath(path), "parts": wanted})
        return {name for wanted in by_task.values() for name in wanted}

    def _task_of(self, name: str) -> str:
        op = self.graph.find_operation(name)
        is_variable = op is not None and role_of(op) is Role.VARIABLE
        return self.cluster.placer(op) if op is not None and is_variable else HERE

    def own(self, names: Sequence[str]) -> list[str]:
        """The variables among `names` that this process holds."""
        return [name for name in names if self._task_of(name) == HERE]

    def _by_task(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The names held by other tasks, by task."""
        found: dict[str, list[str]] = {}
        for name in names:
            task = self._task_of(name)
            if task != HERE:
                found.setdefault(task, []).append(name)
        return found

    def _ask(
        self, task: str, question: str, header: dict[str, Any], arrays: Sequence[Any] = ()
    ) -> list[Any]:
        return self._ask_all(question, {task: header}, arrays)[task]

    def _ask_all(
        self, question: str, headers: Mapping[str, dict[str, Any]], arrays: Sequence[Any] = ()
    ) -> dict[str, list[Any]]:
        """Sends requests to several tasks concurrently, and returns the replies."""
        if not headers:
            return {}
        with self.channels() as channel:
            for task, header in headers.items():
                channel(task).ask(question, header, arrays)
            try:
                return {task: channel(task).answer(self.raise_if_cancelled) for task in headers}
            except OpError as error:
                raise attributed(error, self.graph) from None


class ClusterRunner:
    """Runs a partitioned run, like `PlanRunner` a plan.

    Args:
        plan: the partitions.
        state: the session's state.
        optimize: whether to optimize this process's partitions.
        worker: for training steps, the worker's name.
    """

    def __init__(
        self,
        plan: Partitions,
        state: ClusterState,
        optimize: bool = True,
        worker: str | None = None,
    ) -> None:
        self._state = state
        self._header = {} if worker is None else {"worker": worker}
        self.plan = plan
        constants = [
            t for t in plan.fetches if role_of(t.op) is Role.CONSTANT and t not in plan.feeds
        ]
        self._constants = {tensor: tensor.op.attrs["value"] for tensor in constants}
        self._own: dict[Partition, PlanRunner] = {}
        self._remote: dict[Partition, RemotePart] = {}
        for part in (part for level in plan.levels for part in level):
            if part.task == HERE:
                self._own[part] = PlanRunner(state.own_plan(part, plan, optimize), state)
            else:
                self._remote[part] = RemotePart(part, plan, state, optimize)

    def run(self, feeds: Sequence[Any], trace: Trace | None = None) -> list[Any]:
        """The values of the fetches, as NumPy arrays (scalars for 0-d).

        Args:
            feeds: the values of the feeds, in order.
            trace: times each partition.

        Raises:
            OpError: a partition failed; the others of its level have ended.
        """
        values: dict[Any, Any] = dict(zip(self.plan.feeds, feeds, strict=True))
        values.update(self._constants)
        with self._state.channels() as channel:
            for level in self.plan.levels:
                self._run_level(level, values, channel, trace)
        return [to_numpy(values[tensor], tensor) for tensor in self.plan.fetches]

    def _run_level(
        self,
        level: Sequence[Partition],
        values: dict[Any, Any],
        channel: Callable[[str], Channel],
        trace: Trace | None,
    ) -> None:
        asked: list[tuple[RemotePart, Channel]] = []
        started = time.time_ns()
        for part in level:
            if part.task == HERE:
                continue
            remote, to = self._remote[part], channel(part.task)
            remote.ask(to, values, self._header)
            asked.append((remote, to))
        for part in level:
            if part.task == HERE:
                own = self._own[part]
                found = own.compute([values[tensor] for tensor in part.inputs], trace)
                values.update(zip(part.outputs, found, strict=True))

        def answer(remote: RemotePart, to: Channel) -> None:
            remote.answer(to, values, self._state)
            if trace is not None:
                trace.add(remote.last, remote.place, remote.label, started)

        with_waits = len(asked) > 1 and any(remote.waits for remote, _ in asked)
        failed = (_together if with_waits else _in_turn)(answer, asked)
        if failed:
            self._state.raise_if_cancelled()
            raise attributed(failed[0], self._state.graph)


def _in_turn(
    answer: Callable[[RemotePart, Channel], None], asked: Sequence[tuple[RemotePart, Channel]]
) -> list[OpError]:
    """Waits for all replies; returns the errors among them."""
    failed: list[OpError] = []
    for remote, to in asked:
        try:
            answer(remote, to)
        except OpError as error:
            failed.append(error)
    return failed


def _together(
    answer: Callable[[RemotePart, Channel], None], asked: Sequence[tuple[RemotePart, Channel]]
) -> list[OpError]:
    """Like `_in_turn`, but cancels the rest, which may block for ever, when one fails."""
    with ThreadPoolExecutor(len(asked)) as pool:
        answers = [pool.submit(answer, remote, to) for remote, to in asked]
        if any(each.exception() for each in wait(answers, None, FIRST_EXCEPTION).done):
            for _, to in asked:
                to.close()
        errors = [error for each in answers if isinstance(error := each.exception(), OpError)]
        for each in answers:
            if not isinstance(each.exception(), OpError):
                each.result()
    return sorted(errors, key=lambda error: isinstance(error, CancelledError))


class RemotePart:
    """A partition on another task.

    Args:
        part: the partition.
        whole: the partitions of the run.
        state: the session's state.
        optimize: whether the task optimizes it.

    Attributes:
        takes: the tensors sent to the task, in order.
        gives: the tensors sent back.
        waits: whether it may block on other tasks (queues).
        task: the task.
        place, last, label: for traces: the task's name, the last operation and a summary.
    """

    def __init__(
        self, part: Partition, whole: Partitions, state: ClusterState, optimize: bool = True
    ) -> None:
        self.takes = [tensor for tensor in part.inputs if tensor not in part.kept]
        self.gives = list(whole.sent[part])
        self.task = part.task
        every = [each for op in part.ops for each in (op, *operations_within(op))]
        rows = [registry.lookup(op.type) for op in every]
        self.waits = any(row.placement.holder for row in rows)
        self.place = state.cluster.placer.described(part.ops[-1])
        self.last = part.ops[-1].name
        types = Counter(op.type for op in part.ops)
        self.label = ", ".join(f"{count} {kind}" for kind, count in types.most_common())
        self._random = [
            op.name for op, row in zip(every, rows, strict=True) if row.semantics.random
        ]
        self._graph = SerializedPartition.of(part, self.gives, state.placer.soft, optimize)
        self._state = state
        self._known = -1
        self._name = ""

    def named(self, channel: Channel) -> str:
        """The task's name for it; sends the graph if the task does not have it."""
        generation = self._state.cluster.generation
        if self._known != generation:
            begun = self._state.begun
            fresh = [name for name in self._random if name not in begun]
            watch = self._state.raise_if_cancelled
            self._name = channel.program(self._graph, fresh, watch)
            begun.update(fresh)
            self._known = generation
        return self._name

    def ask(self, channel: Channel, values: dict[Any, Any], header: Mapping[str, Any]) -> None:
        """Sends a request to run it."""
        arrays = [np.asarray(values[tensor]) for tensor in self.takes]
        channel.ask("run", {**header, "programs": [self.named(channel)]}, arrays)

    def answer(self, channel: Channel, values: dict[Any, Any], state: ProcessState) -> None:
        """Waits for its outputs."""
        found = channel.answer(state.raise_if_cancelled)
        values.update(zip(self.gives, found, strict=True))


class ClusterFunction:
    """A function's body as a distributed run.

    Args:
        function: the function.
        state: the body's state.
    """

    def __init__(self, function: GraphFunction, state: ClusterState) -> None:
        self._tensors = [each.dtype is not resource for each in function.inputs]
        self._dtypes = [tensor.dtype.numpy_dtype for tensor in function.inputs]
        self._state = state
        self._updated = [function.inputs[at].op.name for at in function.updated]
        feeds = [tensor for tensor in function.inputs if tensor.dtype is not resource]
        outputs = list(dict.fromkeys(function.outputs))
        self._order = [outputs.index(tensor) for tensor in function.outputs]
        self._runner = state.runner(outputs, [], feeds)

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Runs the body (see `HostFunction`); other tasks update their own variables."""
        given = zip(inputs, self._dtypes, self._tensors, strict=True)
        feeds = [np.asarray(value, dtype) for value, dtype, is_tensor in given if is_tensor]
        results = self._runner.run(feeds)
        changed = [self._state.values.get(name) for name in self._updated]
        return changed, [results[at] for at in self._order]


def attributed(error: OpError, graph: Graph) -> OpError:
    """Attributes a remote error to the operation of this graph that it names."""
    if isinstance(error.op, str):
        error.op = graph.find_operation(error.op)
    return error
