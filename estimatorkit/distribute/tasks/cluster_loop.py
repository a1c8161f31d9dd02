"""`ClusterLoop`: steps with variables on parameter servers, one round trip per step.

A training step with parameter servers is partitioned into the worker's input, the servers' work
before the worker's (*heads*: send parameters, or the rows that the element needs), the worker's own
work, and the servers' work after it (*tails*: update parameters). The tails of a step and the heads
of the next are sent to each task in a single request. Tails on different tasks are not
synchronized: one may increment the step count before another updates its parameters. Steps of any
other shape run one at a time in the session (see `cluster_run`).

A task that holds nothing that steps use but the global step gets no message from a step: a call
leases its steps there before it runs them, and reports them at its end (`StepLeases`). A call takes
a fraction of a second, and the steps of other workers appear in the count that much later. Where
staleness is bounded, every step is counted at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.core.registry import Role, role_of, takes_element
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.distribute.tasks.cluster_run import (
    ClusterRunner,
    ClusterState,
    RemotePart,
    attributed,
)
from estimatorkit.distribute.tasks.partitions import Partition, Partitions, partition_by_task
from estimatorkit.distribute.tasks.row_messages import Distinct, RowMessages
from estimatorkit.distribute.tasks.task_placement import HERE
from estimatorkit.distribute.tasks.task_protocols import Channel
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.loop import StepLoop, Steps, StepSpec

_QUICK_SECS = 1e-3
"""An element that takes less is read while the others answer; it is not worth while for more, since
the parameters would be older by as much.
"""


@dataclass
class StepShape:
    """The partitions of a step, by phase.

    Attributes:
        before: partitions of this process that depend on no other task.
        heads: partitions of other tasks that only depend on `before`.
        own: this process's partitions.
        tails: partitions of other tasks that depend on `own`.
    """

    before: list[Partition] = field(default_factory=list)
    heads: list[Partition] = field(default_factory=list)
    own: list[Partition] = field(default_factory=list)
    tails: list[Partition] = field(default_factory=list)

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
                chosen = shape.heads if early and at < last_own else shape.tails
            if any(each is shape.tails for each in foreign):
                return None
            chosen.append(part)
            stage.update((tensor, chosen) for tensor in part.outputs)
        late = {tensor for part in shape.tails for tensor in part.outputs}
        if len(shape.own) != 1 or not shape.heads or late.intersection(parts.fetches):
            return None
        return shape


def _counting_task(parts: Partitions, counter: Tensor, shape: StepShape) -> str | None:
    """The task that steps need for the global step alone: to read it, and to add one."""
    handle = counter.op.inputs[0] if role_of(counter.op) is Role.READ else None
    alone = [part for part in (*shape.heads, *shape.tails) if handle in _handles(part)]
    if handle is None or not alone:
        return None
    task = alone[0].task
    every = [part for level in parts.levels for part in level if part.task == task]
    reads = [part for part in every if part in shape.heads]
    counts = [op for part in every if part in shape.tails for op in part.ops]
    is_alone = (
        all(_only_reads(part) and _handles(part) == {handle} for part in reads)
        and len(counts) == 1
        and _adds_one(counts[0], handle)
        and not any(parts.sent[part] for part in every if part not in reads)
        and any(part.task != task for part in shape.heads)
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
        if self._shape is None:
            self._runner = ClusterRunner(parts, state, worker=state.cluster.worker)
            return
        self._header = {"worker": state.cluster.worker, "bound": state.cluster.bound}
        self._own = _OwnParts(self._shape.own, parts, state)
        self._before = _OwnParts(self._shape.before, parts, state)
        self._counter = after[0]
        # Not with the step: in its order the counter is read where it is changed, at the end.
        counting = partition_by_task(state.graph, [self._counter], [], [], placer)
        reading = [part for level in counting.levels for part in level if part.task != HERE]
        if state.cluster.bound is None:  # else one may wait for another who waits for its lease
            self.leases_at = _counting_task(parts, self._counter, self._shape)
        self._count = self._begun = self._done = 0
        self._counts_read: list[Tensor] = []
        if self.leases_at is not None:
            reading = []
            read = [part for part in self._shape.heads if part.task == self.leases_at]
            self._counts_read = [tensor for part in read for tensor in parts.sent[part]]
            self._shape.heads = [part for part in self._shape.heads if part not in read]
            self._shape.tails = [each for each in self._shape.tails if each.task != self.leases_at]
        # The heads come last: their task keeps for the tails what it has made for the last part.
        heads = _sent(reading, counting, state) + _sent(self._shape.heads, parts, state)
        tails = _sent(self._shape.tails, parts, state)
        # An answer's memory is written over with the next: what is needed longer is copied.
        taken = {tensor for each, _ in tails for tensor in each.takes}
        self._copied = taken.union(self._every)
        self._heads_only_read = all(map(_only_reads, self._shape.heads))
        self._input_secs = math.inf  # that the last element took
        self._tasks = {
            task: _TaskStep(
                [each for each in tails if each[0].task == task],
                [each for each in heads if each[0].task == task],
            )
            for task in dict.fromkeys(each.task for each, _ in (*heads, *tails))
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
            run = self._run_piped if self.one_round_trip else self._run_singly
            rows, ended = run(_Stretch(steps, until))
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
            found = self._run_piped(_Stretch(leased, math.inf))
        except BaseException:
            with suppress(OpError):  # then the task drops the lease itself
                self._lease(0, math.inf)
            raise
        self._lease(0, math.inf)
        return found

    def _lease(self, wanted: int, until: float) -> int:
        """Reports the steps done since the last lease, and leases up to `wanted`."""
        header = {
            "worker": self._state.cluster.worker,
            "counter": self._counter.op.inputs[0].op.name,
            "done": self._done,
            "wanted": wanted,
            "until": None if until == math.inf else int(until),
        }
        task = str(self.leases_at)
        with self._state.channels() as channel:
            to = channel(task)
            to.ask("lease", header)
            try:
                (found,) = to.answer(self._state.raise_if_cancelled)
            except OpError as error:
                raise attributed(error, self._state.graph) from None
        self._count, leased = int(found[0]), int(found[1])
        self._begun = self._done = 0
        return leased

    def _run_singly(self, stretch: _Stretch) -> tuple[list[dict[Any, Any]], bool]:
        rows: list[dict[Any, Any]] = []
        while len(rows) < stretch.steps:
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

    def _run_piped(self, stretch: _Stretch) -> tuple[list[dict[Any, Any]], bool]:
        rows: list[dict[Any, Any]] = []
        is_last = False
        values = self._next_input(True)
        if values is None:
            return rows, False
        with self._state.channels() as channel:
            self._exchange(channel, {}, values)
            while values is not None:
                if self._guarded(partial(self._own, values), not rows) is None:
                    break
                is_last = stretch.ends_with(len(rows) + 1, values.get(self._counter))
                if not is_last and self._heads_only_read and self._input_secs < _QUICK_SECS:
                    asked = self._ask(channel, values, {})
                    following = self._next_input(False)
                    self._answer(asked, following)
                else:
                    following = None if is_last else self._next_input(False)
                    self._exchange(channel, values, following)
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
        channel: Callable[[str], Channel],
        done: dict[Any, Any],
        following: dict[Any, Any] | None,
    ) -> None:
        """Sends the tails of a step and the heads of the next, and receives the results."""
        self._answer(self._ask(channel, done, following), following)

    def _ask(
        self,
        channel: Callable[[str], Channel],
        done: dict[Any, Any],
        following: dict[Any, Any] | None,
    ) -> list[tuple[_TaskStep, Channel]]:
        asked: list[tuple[_TaskStep, Channel]] = []
        for task, step in self._tasks.items():
            if step.ask(channel, task, self._header, done, following):
                asked.append((step, channel(task)))
        return asked

    def _answer(
        self, asked: Sequence[tuple[_TaskStep, Channel]], following: dict[Any, Any] | None
    ) -> None:
        failed: list[OpError] = []
        for step, to in asked:
            try:
                found = to.answer(self._state.raise_if_cancelled)
            except OpError as error:
                failed.append(error)
            else:
                if following is not None:
                    for tensor, value in step.answered(found):
                        following[tensor] = np.array(value) if tensor in self._copied else value
        if failed:
            raise attributed(failed[0], self._state.graph)


class _Stretch:
    """The end condition of a call.

    Args:
        steps: the maximum number of steps.
        until: the final value of the step counter.
    """

    def __init__(self, steps: int, until: float) -> None:
        self.steps = steps
        self._until = until
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
        return step >= self.steps or now + moved >= self._until


class _OwnParts:
    """Runs partitions of this process in order."""

    def __init__(self, parts: Sequence[Partition], whole: Partitions, state: ClusterState) -> None:
        self._runners = [(part, PlanRunner(state.own_plan(part, whole), state)) for part in parts]

    def __call__(self, values: dict[Any, Any]) -> dict[Any, Any]:
        for part, runner in self._runners:
            found = runner.compute([values[tensor] for tensor in part.inputs])
            values.update(zip(part.outputs, found, strict=True))
        return values


_Sent = tuple[RemotePart, RowMessages]


def _sent(parts: Sequence[Partition], whole: Partitions, state: ClusterState) -> list[_Sent]:
    kept = {tensor for level in whole.levels for part in level for tensor in part.kept}
    found = []
    for part in parts:
        remote = RemotePart(part, whole, state)
        found.append((remote, RowMessages(part, remote.takes, remote.gives, kept)))
    return found


class _TaskStep:
    """The request to a task between two steps: the tails of one and the heads of the next."""

    def __init__(self, tails: Sequence[_Sent], heads: Sequence[_Sent]) -> None:
        self._tails = tails
        self._heads = heads
        self._known: Distinct = {}

    def ask(
        self,
        channel: Callable[[str], Channel],
        task: str,
        header: dict[str, Any],
        done: dict[Any, Any],
        following: dict[Any, Any] | None,
    ) -> bool:
        """Sends the request, if there is anything to do; returns whether there is."""
        tails = self._tails if done else []
        heads = self._heads if following is not None else []
        if not tails and not heads:
            return False
        arrays = [array for _, rows in tails for array in rows.sent(done, self._known)]
        self._known = {}
        arrays += [array for _, rows in heads for array in rows.sent(following or {}, self._known)]
        to = channel(task)
        names = [each.named(to) for each, _ in (*tails, *heads)]
        asked = {**header, "programs": names, "updates": len(tails)}
        to.ask("run", asked, arrays, borrowed=True)
        return True

    def answered(self, found: Sequence[Any]) -> list[tuple[Tensor, Any]]:
        """The tensors that the heads return, with their values in the reply."""
        values: list[tuple[Tensor, Any]] = []
        at = 0
        for each, rows in self._heads:
            count = len(each.gives)
            values += zip(each.gives, rows.received(found[at : at + count]), strict=True)
            at += count
        return values
