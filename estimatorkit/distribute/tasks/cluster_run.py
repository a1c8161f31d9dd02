"""Distributed runs: `ClusterState` and `ClusterRunner`.

The session's process is the driver: it sends the partitions of a run to their tasks with their
inputs, runs its own partitions meanwhile, and forwards outputs. Values that a task itself needs
stay there.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from estimatorkit.distribute.tasks import rpc
from estimatorkit.distribute.tasks.partitions import Partition, Partitions, partition_by_task
from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.distribute.tasks.task_placement import HERE, holders
from estimatorkit.distribute.tasks.task_program import load_request
from estimatorkit.runtime.executor import PlanRunner, to_numpy
from estimatorkit.runtime.loop import StepLoop, StepSpec
from estimatorkit.runtime.plan import Plan, make_plan
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.state import ProcessState, Runner
from estimatorkit.runtime.xla.placement import Placer, available
from estimatorkit.runtime.xla.timeline import Trace
from estimatorkit.storage.checkpoint_format import RemoteTensor
from estimatorkit.storage.tensor_slice import TensorSlice

if TYPE_CHECKING:
    from estimatorkit.distribute.tasks.task_channel import TaskChannel
    from estimatorkit.distribute.tasks.task_cluster import TaskCluster


class ClusterState(ProcessState):
    """The state of a session of a cluster; variables on other tasks are accessed remotely.

    Attributes:
        cluster: the tasks.
        begun: the random operations that have run on other tasks, where each session resets them;
            concurrent sessions share their counters.
    """

    def __init__(
        self, graph: Graph, placer: Placer, held: ResourceStore, cluster: TaskCluster
    ) -> None:
        # Another session's values may be anywhere.
        super().__init__(graph, placer, held, len(available()) > 1)
        self.cluster = cluster
        self.begun: set[str] = set()
        self._began_with = [cluster.generation]  # shared with the states of functions' bodies
        self._in_use: set[TaskChannel] = set()

    def variables_set(self) -> None:
        """Records that all variables have values, including those that other tasks had lost."""
        self._began_with[0] = self.cluster.generation

    def cancel(self) -> None:
        """Cancels blocked runs, including those on other tasks."""
        super().cancel()
        for channel in list(self._in_use):
            channel.close()

    @contextmanager
    def channels(self) -> Iterator[Callable[[str], TaskChannel]]:
        """A context manager that yields a function from tasks to channels, which are closed on
        error, when the session closes and at the run's deadline.
        """
        used: dict[str, TaskChannel] = {}

        def channel(task: str) -> TaskChannel:
            if task not in used:
                used[task] = self.cluster.channel(task, self.raise_if_cancelled)
                self._in_use.add(used[task])
                self.raise_if_cancelled()  # it may have been cancelled while connecting
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
            # Another session has noticed the restart, so only the missing value tells of it.
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
                # The timer refers to streams. If a daemon thread frees Arrow's streams while Python
                # shuts down, the process aborts.
                timer.join()

    def uninitialized(self, names: Sequence[str]) -> list[str]:
        """The variables among `names` that have no value, on any task."""
        missing = set(super().uninitialized(self.own(names)))
        by_task = self._by_task(names)
        requests = {task: rpc.AreInitialized(tuple(own)) for task, own in by_task.items()}
        for task, reply in self._call_all(requests).items():
            flags = zip(by_task[task], reply.flags, strict=True)
            missing.update(name for name, is_initialized in flags if not is_initialized)
        return [name for name in names if name in missing]

    def read(self, names: Sequence[str]) -> list[Any]:
        """The values of `names`, from any task."""
        by_task = self._by_task(names)
        own = self.own(names)
        values = dict(zip(own, super().read(own), strict=True))
        requests = {task: rpc.ReadVariables(tuple(names)) for task, names in by_task.items()}
        for task, reply in self._call_all(requests).items():
            values.update(zip(by_task[task], reply.arrays, strict=True))
        return [values[name] for name in names]

    def put(self, name: str, value: Any) -> None:
        """Sets the value of a variable, on any task."""
        task = self._task_of(name)
        if task == HERE:
            super().put(name, value)
        else:
            self.call(task, rpc.WriteVariables((name,), arrays=[value]))

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
        inner._began_with, inner.executor = self._began_with, self.executor
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
        return self.call(task, rpc.SaveVariables(str(path.absolute()), dict(names))).tensors

    def restore(self, path: str, parts: Mapping[str, TensorSlice]) -> set[str]:
        """Lets the tasks that hold variables restore them from a checkpoint."""
        by_task = self._by_task(parts)
        for task, names in by_task.items():
            slices = {name: parts[name] for name in names}
            self.call(task, rpc.RestoreVariables(os.path.abspath(path), slices))
        return {name for names in by_task.values() for name in names}

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

    def call(self, task: str, request: rpc.Request[rpc.R]) -> rpc.R:
        """Sends a request to a task, and returns the reply."""
        return self._call_all({task: request})[task]

    def _call_all(self, requests: Mapping[str, rpc.Request[rpc.R]]) -> dict[str, rpc.R]:
        """Sends requests to several tasks concurrently, and returns the replies."""
        if not requests:
            return {}
        with self.channels() as channel:
            for task, request in requests.items():
                channel(task).send(request)
            try:
                return {task: channel(task).receive(self.raise_if_cancelled) for task in requests}
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
        self._worker = worker
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
        channel: Callable[[str], TaskChannel],
        trace: Trace | None,
    ) -> None:
        sent: list[tuple[RemotePart, TaskChannel]] = []
        started = time.time_ns()
        for part in level:
            if part.task == HERE:
                continue
            remote, to = self._remote[part], channel(part.task)
            remote.send(to, values, self._worker)
            sent.append((remote, to))
        for part in level:
            if part.task == HERE:
                own = self._own[part]
                found = own.compute([values[tensor] for tensor in part.inputs], trace)
                values.update(zip(part.outputs, found, strict=True))

        def receive(remote: RemotePart, to: TaskChannel) -> None:
            remote.receive(to, values)
            if trace is not None:
                trace.add(remote.last, remote.place, remote.label, started)

        may_block = len(sent) > 1 and any(remote.waits for remote, _ in sent)
        failed = (_concurrently if may_block else _in_turn)(receive, sent)
        if failed:
            self._state.raise_if_cancelled()
            raise attributed(failed[0], self._state.graph)


def _in_turn(
    receive: Callable[[RemotePart, TaskChannel], None],
    sent: Sequence[tuple[RemotePart, TaskChannel]],
) -> list[OpError]:
    """Waits for all replies; returns the errors among them."""
    failed: list[OpError] = []
    for remote, to in sent:
        try:
            receive(remote, to)
        except OpError as error:
            failed.append(error)
    return failed


def _concurrently(
    receive: Callable[[RemotePart, TaskChannel], None],
    sent: Sequence[tuple[RemotePart, TaskChannel]],
) -> list[OpError]:
    """Like `_in_turn`, but cancels the rest, which may block for ever, when one fails."""
    with ThreadPoolExecutor(len(sent)) as pool:
        replies = [pool.submit(receive, remote, to) for remote, to in sent]
        if any(each.exception() for each in wait(replies, None, FIRST_EXCEPTION).done):
            for _, to in sent:
                to.close()
        errors = [error for each in replies if isinstance(error := each.exception(), OpError)]
        for each in replies:
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

    def named(self, channel: TaskChannel) -> str:
        """The task's name for it; sends the graph if the task does not have it."""
        generation = self._state.cluster.generation
        if self._known != generation:
            begun = self._state.begun
            fresh = [name for name in self._random if name not in begun]
            request = load_request(self._graph, fresh)
            channel.call(request, self._state.raise_if_cancelled)
            self._name = request.name
            begun.update(fresh)
            self._known = generation
        return self._name

    def send(self, channel: TaskChannel, values: dict[Any, Any], worker: str | None) -> None:
        """Sends a request to run it; `worker` is that of a training step."""
        arrays = [np.asarray(values[tensor]) for tensor in self.takes]
        channel.send(rpc.RunPrograms((self.named(channel),), worker, arrays=arrays))

    def receive(self, channel: TaskChannel, values: dict[Any, Any]) -> None:
        """Waits for its outputs."""
        found = channel.receive(self._state.raise_if_cancelled).arrays
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
