"""`ClusterLoop`: steps with variables on parameter servers, one round trip per step.

A training step with parameter servers is partitioned into the worker's input, the servers' work
before the worker's (the *prologue*: send parameters, or the rows that the element needs), the
worker's own work, and the servers' work after it (the *epilogue*: update parameters). The epilogue
of a step and the prologue of the next are sent to each task in a single request. Epilogues on
different tasks are not synchronized: one may increment the step count before another updates its
parameters. Steps of any other shape run one at a time in the session (see `cluster_run`).

With two steps in flight, a request holds the epilogue of one step and the prologue of the next but
one, and the tasks execute it while this process computes the step between. Its parameters then lack
one update of its own.

A task of which steps use nothing but the global step gets no message from a step: a call leases its
steps there before it runs them, and reports them at its end (`StepLeases`). A call takes a fraction
of a second, and the steps of other workers appear in the count that much later. If staleness is
bounded, every step is counted immediately.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.core.registry import Role, role_of, takes_element
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.distribute.tasks import rpc
from estimatorkit.distribute.tasks.cluster_run import (
    ClusterRunner,
    ClusterState,
    RemotePart,
    attributed,
)
from estimatorkit.distribute.tasks.partitions import Partition, Partitions, partition_by_task
from estimatorkit.distribute.tasks.row_messages import Distinct, RowMessages
from estimatorkit.distribute.tasks.task_placement import HERE
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.loop import StepLoop, Steps, StepSpec

if TYPE_CHECKING:
    from estimatorkit.distribute.tasks.task_channel import TaskChannel
    from estimatorkit.distribute.tasks.task_cluster import TaskCluster

_QUICK_SECS = 1e-3
"""An element that takes less is read while waiting for replies; for a slower one it does not pay,
since the parameters would be older by as much.
"""


@dataclass
class StepShape:
    """The partitions of a step, by phase.

    Attributes:
        before: partitions of this process that depend on no other task.
        prologue: partitions of other tasks that only depend on `before`.
        own: this process's partitions.
        epilogue: partitions of other tasks that depend on `own`.
    """

    before: list[Partition] = field(default_factory=list)
    prologue: list[Partition] = field(default_factory=list)
    own: list[Partition] = field(default_factory=list)
    epilogue: list[Partition] = field(default_factory=list)

    @staticmethod
    def of(parts: Partitions) -> StepShape | None:
        """The phases of a step; None if it has another shape."""
        shape = StepShape()
        ordered = [part for level in parts.levels for part in level if not _only_waits(part)]
        last_own = max((at for at, part in enumerate(ordered) if part.task == HERE), default=-1)
        stage: dict[Tensor, list[Partition]] = {}
        for at, part in enumerate(ordered):
            foreign = [
                stage[tensor]
                for tensor in part.inputs
                if tensor in stage and tensor not in part.kept
            ]
            early = all(each is shape.before for each in foreign)
            if part.task == HERE:
                chosen = shape.before if early and at < last_own else shape.own
            else:
                chosen = shape.prologue if early and at < last_own else shape.epilogue
            if any(each is shape.epilogue for each in foreign):
                return None
            chosen.append(part)
            stage.update((tensor, chosen) for tensor in part.outputs)
        late = {tensor for part in shape.epilogue for tensor in part.outputs}
        if len(shape.own) != 1 or not shape.prologue or late.intersection(parts.fetches):
            return None
        return shape


def _counting_task(parts: Partitions, counter: Tensor, shape: StepShape) -> str | None:
    """The task that steps need for the global step alone: to read it, and to add one."""
    handle = counter.op.inputs[0] if role_of(counter.op) is Role.READ else None
    alone = [part for part in (*shape.prologue, *shape.epilogue) if handle in _handles(part)]
    if handle is None or not alone:
        return None
    task = alone[0].task
    every = [part for level in parts.levels for part in level if part.task == task]
    reads = [part for part in every if part in shape.prologue]
    counts = [op for part in every if part in shape.epilogue for op in part.ops]
    is_alone = (
        all(_only_reads(part) and _handles(part) == {handle} for part in reads)
        and len(counts) == 1
        and _adds_one(counts[0], handle)
        and not any(parts.sent[part] for part in every if part not in reads)
        and any(part.task != task for part in shape.prologue)
    )
    return task if is_alone else None


def _handles(part: Partition) -> set[Tensor]:
    return {tensor for op in part.ops for tensor in op.inputs if tensor.dtype is resource}


def _adds_one(op: Operation, handle: Tensor) -> bool:
    if op.type != "AssignAddVariableOp" or op.inputs[0] is not handle:
        return False
    added = op.inputs[1].op
    return role_of(added) is Role.CONSTANT and bool(np.all(added.attrs["value"] == 1))


def _only_reads(part: Partition) -> bool:
    return not part.inputs and all(role_of(op) is Role.READ for op in part.ops)


def _only_waits(part: Partition) -> bool:
    return part.task == HERE and all(role_of(op) is Role.NO_OP for op in part.ops)


class ClusterLoop(StepLoop):
    """Runs steps whose variables are on other tasks.

    Attributes:
        one_round_trip: whether each step needs one round trip per task.
        leases_at: the task that counts steps and that no step asks, or None.
    """

    def __init__(self, state: ClusterState, spec: StepSpec) -> None:
        every, after = spec.every, spec.after
        self._state = state
        self._every = list(every)
        placer = state.cluster.placer
        parts = partition_by_task(state.graph, list(dict.fromkeys(every)), spec.targets, [], placer)
        self.plan = parts
        self.operations = [op for level in parts.levels for part in level for op in part.ops]
        self._after = state.runner(list(after), [], [])
        self._shape = StepShape.of(parts)
        self.one_round_trip = self._shape is not None
        self.leases_at: str | None = None
        self._ahead = 0
        if self._shape is None:
            self._runner = ClusterRunner(parts, state, worker=state.cluster.worker)
            return
        self._own = _LocalPartitions(self._shape.own, parts, state)
        self._before = _LocalPartitions(self._shape.before, parts, state)
        self._counter = after[0]
        # Not with the step, in which the counter is read after its update.
        counting = partition_by_task(state.graph, [self._counter], [], [], placer)
        reading = [part for level in counting.levels for part in level if part.task != HERE]
        if state.cluster.bound is None:  # else a worker may wait for one that waits for its lease
            self.leases_at = _counting_task(parts, self._counter, self._shape)
        self._count = self._begun = self._done = 0
        self._counts_read: list[Tensor] = []
        if self.leases_at is not None:
            reading = []
            shape = self._shape
            read = [part for part in shape.prologue if part.task == self.leases_at]
            self._counts_read = [tensor for part in read for tensor in parts.sent[part]]
            shape.prologue = [part for part in shape.prologue if part not in read]
            shape.epilogue = [part for part in shape.epilogue if part.task != self.leases_at]
        # The prologue comes last: its task keeps what its last partition made for the epilogue.
        prologue = _remote(reading, counting, state) + _remote(self._shape.prologue, parts, state)
        epilogue = _remote(self._shape.epilogue, parts, state)
        # A reply is valid until the next request: what is needed longer is copied.
        taken = {tensor for each, _ in epilogue for tensor in each.takes}
        self._copied = taken.union(self._every)
        keeps = any(part.kept for part in self._shape.epilogue)  # for one step at a time
        self._ahead = 0 if keeps else state.cluster.ahead
        self._prologue_only_reads = all(map(_only_reads, self._shape.prologue))
        self._input_secs = math.inf  # that the last element took
        self._tasks = {
            task: _TaskStep(
                state.cluster.bound is None,  # else the task counts its steps
                [each for each in epilogue if each[0].task == task],
                [each for each in prologue if each[0].task == task],
            )
            for task in dict.fromkeys(each.task for each, _ in (*prologue, *epilogue))
        }

    def run(self, steps: int, until: float = math.inf) -> Steps:
        """Runs up to `steps` steps (see `StepLoop.run`).

        Steps of other workers during the last step may exceed `until`.
        """
        if self._input_error is not None:
            self._raise_input_error()
        if self.leases_at is not None:
            rows, ended = self._run_leased(steps, until)
        else:
            run = self._run_pipelined if self.one_round_trip else self._run_singly
            rows, ended = run(_StopCondition(steps, until, 1 + self._ahead))
        if not rows:
            self._raise_input_error()
        every = [np.stack([np.asarray(row[tensor]) for row in rows]) for tensor in self._every]
        after = [np.asarray(value) for value in self._after.run([])]
        return Steps(len(rows), every, after, ended)

    def describe(self) -> str:
        """A description (see `StepLoop.describe`)."""
        trips = "one round trip to each task a step" if self.one_round_trip else "a run a step"
        return f"loop of steps: {trips}\n{self.plan.describe()}"

    def _run_leased(self, steps: int, until: float) -> tuple[list[dict[Any, Any]], bool]:
        leased = self._lease(steps, until)
        try:
            found = self._run_pipelined(_StopCondition(leased))
        except BaseException:
            with suppress(OpError):  # then the task drops the lease itself
                self._lease(0, math.inf)
            raise
        self._lease(0, math.inf)
        return found

    def _lease(self, wanted: int, until: float) -> int:
        """Reports the steps done since the last lease, and leases up to `wanted`."""
        request = rpc.LeaseSteps(
            worker=self._state.cluster.worker,
            counter=self._counter.op.inputs[0].op.name,
            done=self._done,
            wanted=wanted,
            until=None if until == math.inf else int(until),
        )
        lease = self._state.call(str(self.leases_at), request)
        self._count, leased = lease.count, lease.leased
        self._begun = self._done = 0
        return leased

    def _run_singly(self, stop: _StopCondition) -> tuple[list[dict[Any, Any]], bool]:
        rows: list[dict[Any, Any]] = []
        while len(rows) < stop.steps:
            values = self._guarded(lambda: self._runner.run([]), not rows)
            if values is None:
                return rows, self._input_error is None
            rows.append(dict(zip(self._runner.plan.fetches, values, strict=True)))
        return rows, False

    def _guarded(self, call: Callable[[], Any], is_first: bool) -> Any:
        """Calls a function that reads the input; None if the input has ended or failed."""
        try:
            return call()
        except OutOfRangeError:
            if is_first:
                raise
        except OpError as error:
            if not takes_element(error.op):
                raise
            self._input_error = error
        return None

    def _run_ahead(self, stop: _StopCondition) -> tuple[list[dict[Any, Any]], bool]:
        """Like `_run_pipelined`, with two steps in flight."""
        rows: list[dict[Any, Any]] = []
        done: dict[Any, Any] = {}
        is_last = False
        values = self._next_input(True)
        if values is None:
            return rows, False
        with self._state.channels() as channel:
            self._exchange(channel, {}, values)
            while values is not None:
                is_last = stop.ends_with(len(rows) + 1, values.get(self._counter))
                following = None if is_last else self._next_input(False)
                sent = self._send(channel, done, following)
                ran = self._guarded(partial(self._own, values), not rows)
                self._receive(sent, following)
                self._done += bool(done)
                done = {}
                if ran is None:
                    break
                rows.append({tensor: values[tensor] for tensor in self._every})
                done, values = values, following
            self._exchange(channel, done, None)
            self._done += bool(done)
        return rows, not is_last and self._input_error is None

    def _run_pipelined(self, stop: _StopCondition) -> tuple[list[dict[Any, Any]], bool]:
        if self._ahead:
            return self._run_ahead(stop)
        rows: list[dict[Any, Any]] = []
        is_last = False
        values = self._next_input(True)
        if values is None:
            return rows, False
        with self._state.channels() as channel:
            self._exchange(channel, {}, values)
            while values is not None:
                waits: list[Callable[[], None]] = []
                if self._guarded(partial(self._own, values, waits), not rows) is None:
                    break
                is_last = stop.ends_with(len(rows) + 1, values.get(self._counter))
                if not is_last and self._prologue_only_reads and self._input_secs < _QUICK_SECS:
                    sent = self._send(channel, values, {}, waits)
                    following = self._next_input(False)
                else:  # while this step computes
                    following = None if is_last else self._next_input(False)
                    sent = self._send(channel, values, following, waits)
                self._receive(sent, following)
                self._done += 1
                rows.append({tensor: values[tensor] for tensor in self._every})
                values = following
        return rows, not is_last and self._input_error is None

    def _next_input(self, is_first: bool) -> dict[Any, Any] | None:
        started = time.perf_counter()
        found: dict[Any, Any] | None = self._guarded(lambda: self._before({}), is_first)
        self._input_secs = time.perf_counter() - started
        if found is not None:
            for tensor in self._counts_read:
                found[tensor] = np.array(self._count + self._begun, tensor.dtype.numpy_dtype)
            self._begun += 1
        return found

    def _exchange(
        self,
        channel: Callable[[str], TaskChannel],
        done: dict[Any, Any],
        following: dict[Any, Any] | None,
    ) -> None:
        """Sends the epilogue of a step and the prologue of the next, and receives the results."""
        self._receive(self._send(channel, done, following), following)

    def _send(
        self,
        channel: Callable[[str], TaskChannel],
        done: dict[Any, Any],
        following: dict[Any, Any] | None,
        waits: Sequence[Callable[[], None]] = (),
    ) -> _Sent:
        """Sends the requests, after the ids are made and `waits` have ended."""
        ids = {task: step.ids(following) for task, step in self._tasks.items()}
        for wait in waits:  # replies overwrite what a step reads
            wait()
        sent: _Sent = []
        for task, step in self._tasks.items():
            updates = step.updates(done)
            if ids[task] is not None or updates is not None:
                to = channel(task)
                to.send(step.request(to, self._state.cluster, self._ahead, updates, ids[task]))
                sent.append((step, to, ids[task] is not None))
        return sent

    def _receive(self, sent: _Sent, following: dict[Any, Any] | None) -> None:
        failed: list[OpError] = []
        for step, to, is_asked in sent:
            try:
                reply = to.receive(self._state.raise_if_cancelled)
            except OpError as error:
                failed.append(error)
            else:
                if following is None or not is_asked:
                    continue
                for tensor, value, array in step.received(reply.arrays):
                    is_copied = tensor in self._copied or (
                        self._ahead and np.may_share_memory(value, array)
                    )
                    following[tensor] = np.array(value) if is_copied else value
        if failed:
            raise attributed(failed[0], self._state.graph)


_Sent = list[tuple["_TaskStep", "TaskChannel", bool]]
"""The requests of a step, with whether each asks for what the next step reads."""


class _StopCondition:
    """The end condition of a call.

    Args:
        steps: the maximum number of steps.
        until: the final value of the step counter.
        in_flight: the number of steps of this process that the counter may lack, this included.
    """

    def __init__(self, steps: int, until: float = math.inf, in_flight: int = 1) -> None:
        self.steps = steps
        self._until = until
        self._in_flight = in_flight
        self._before: int | None = None

    def ends_with(self, step: int, counted: Any) -> bool:
        """Whether a step is the last one, or the next would exceed the limit at the others' current
        rate.

        Args:
            step: the number of steps so far.
            counted: the step counter it read, or None.
        """
        if counted is None:
            return step >= self.steps
        now = int(counted)
        moved = 1 if self._before is None else max(1, now - self._before)
        self._before = now
        return step >= self.steps or now + moved * self._in_flight >= self._until


class _LocalPartitions:
    """Runs partitions of this process in order."""

    def __init__(self, parts: Sequence[Partition], whole: Partitions, state: ClusterState) -> None:
        self._runners = [(part, PlanRunner(state.own_plan(part, whole), state)) for part in parts]

    def __call__(
        self, values: dict[Any, Any], waits: list[Callable[[], None]] | None = None
    ) -> dict[Any, Any]:
        """Adds what the partitions compute to the values; for `waits` see `PlanRunner.compute`."""
        for part, runner in self._runners:
            found = runner.compute([values[tensor] for tensor in part.inputs], waits=waits)
            values.update(zip(part.outputs, found, strict=True))
        return values


_Remote = tuple[RemotePart, RowMessages]


def _remote(parts: Sequence[Partition], whole: Partitions, state: ClusterState) -> list[_Remote]:
    kept = {tensor for level in whole.levels for part in level for tensor in part.kept}
    found = []
    for part in parts:
        remote = RemotePart(part, whole, state)
        rounds = state.cluster.bfloat16_rows
        found.append((remote, RowMessages(part, remote.takes, remote.gives, kept, rounds)))
    return found


class _TaskStep:
    """The request to a task between two steps: the epilogue of one and the prologue of the next."""

    def __init__(
        self, may_skip: bool, epilogue: Sequence[_Remote], prologue: Sequence[_Remote]
    ) -> None:
        self._may_skip = may_skip
        self._epilogue = epilogue
        self._prologue = prologue

    def _has_none(self, parts: Sequence[_Remote], values: dict[Any, Any]) -> bool:
        """Whether the task holds no row that these parts of a step use, and does nothing else."""
        return self._may_skip and all(rows.are_elsewhere(values) for _, rows in parts)

    def ids(self, following: dict[Any, Any] | None) -> list[Any] | None:
        """What the prologue takes, the ids of rows; None if the task is not asked.

        The distinct ids are kept in the step's values, as are rows that are not asked for.
        """
        if following is None or not self._prologue:
            return None
        if self._has_none(self._prologue, following):
            for _, rows in self._prologue:
                following.update(rows.unused(following))
            return None
        known: Distinct = {}
        arrays = [array for _, rows in self._prologue for array in rows.sent(following, known)]
        following[self] = known
        return arrays

    def updates(self, done: dict[Any, Any]) -> list[Any] | None:
        """What the epilogue takes; None if the task is not asked."""
        if not done or not self._epilogue or self._has_none(self._epilogue, done):
            return None
        known: Distinct = done.pop(self, {})
        return [array for _, rows in self._epilogue for array in rows.sent(done, known)]

    def request(
        self,
        channel: TaskChannel,
        cluster: TaskCluster,
        ahead: int,
        updates: list[Any] | None,
        ids: list[Any] | None,
    ) -> rpc.RunPrograms:
        """The request, to be sent by the channel, of what `updates` and `ids` returned."""
        epilogue = () if updates is None else self._epilogue
        prologue = () if ids is None else self._prologue
        return rpc.RunPrograms(
            tuple(each.named(channel) for each, _ in (*epilogue, *prologue)),
            cluster.worker,
            len(epilogue),
            None if cluster.bound is None else cluster.bound - ahead,
            ahead,
            cluster.bfloat16_rows,
            zero_copy=True,
            arrays=[*(updates or ()), *(ids or ())],
        )

    def received(self, found: Sequence[Any]) -> list[tuple[Tensor, Any, Any]]:
        """The tensors that the prologue returns, with their values, and the reply's arrays."""
        values: list[tuple[Tensor, Any, Any]] = []
        at = 0
        for each, rows in self._prologue:
            own = found[at : at + len(each.gives)]
            values += zip(each.gives, rows.received(own), own, strict=True)
            at += len(own)
        return values
