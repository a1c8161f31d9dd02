"""`ReplicaRunner`: steps of replicas one by one, with the collectives between segments.

`ReplicaRunner` splits a plan at collectives (`AllReduce`, `AllGather`); it runs the segments
between them for each replica of this process in turn, and each collective once for all. Batches may
thus have any shapes, or be missing at the end of the input, and processes may fetch different
tensors. Steps with equal batches run in a single call on all devices instead (see `replica_loop`);
`of_replica` adapts a segment's function to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import OutOfRangeError, UnimplementedError, value_error
from estimatorkit.core.registry import Role, role_of, takes_element
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.distribute.replicas.replicas import (
    Replicas,
    StepProposal,
    fingerprint,
)
from estimatorkit.ops.control.collectives import AXIS, divided
from estimatorkit.runtime.executor import CompiledSegment, segment_name, to_numpy
from estimatorkit.runtime.host_segments import HostSegment
from estimatorkit.runtime.lower import changed_names, state_names
from estimatorkit.runtime.plan import Plan, Segment, make_plan
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.xla.sharded_rows import ShardedRows
from estimatorkit.runtime.xla.timeline import Trace

if TYPE_CHECKING:
    from estimatorkit.distribute.replicas.replica_state import ReplicatedState

_EXCHANGE = "replicas"
"""The name of the device that exchanges are placed on."""

_EXCHANGES = (Role.ALL_REDUCE, Role.ALL_GATHER)

_SEED_STEP = 0x9E3779B1
"""The difference between the first seeds of a random operation in successive replicas."""

Values = dict[Any, Any]


def cut_plan(
    state: ProcessState,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    optimize: bool = True,
) -> Plan:
    """Plans a run whose collectives are segments of their own."""

    def placer(op: Operation) -> str:
        return _EXCHANGE if role_of(op) in _EXCHANGES else state.placer(op)

    return make_plan(state.graph, fetches, targets, feeds, placer, optimize)


def exchanges_of(plan: Plan) -> list[str]:
    """The collectives of a plan, as text."""
    return [
        f"{op.name} {[str(tensor) for tensor in op.inputs]}"
        for segment in plan.segments
        for op in segment.ops
        if role_of(op) in _EXCHANGES
    ]


class ReplicaRunner:
    """Runs a plan for the replicas of this process, together with the other processes.

    Args:
        plan: a plan whose collectives are separate segments.
        state: the session's state.

    Attributes:
        plan: the plan.
        exchanges: a fingerprint of the collectives.

    Raises:
        UnimplementedError: the input depends on values computed on a device.
        ValueError: replicas would assign different values to a variable.
    """

    def __init__(self, plan: Plan, state: ReplicatedState) -> None:
        self.plan = plan
        self.exchanges = fingerprint(sorted(exchanges_of(plan)))
        self._state = state
        self._replicas = state.replicas
        self._constants = plan.constants
        differing = _differing(plan)
        self._reading: list[HostSegment] = []
        self._get_next: list[Operation] = []
        self._steps: list[Callable[[list[Values], int, int], None]] = []
        for segment in plan.segments:
            get_next = [op for op in segment.ops if takes_element(op)]
            if get_next:
                _check_comes_first(segment, plan)
                self._get_next += get_next
                self._reading.append(HostSegment(segment, state))
            elif segment.device == _EXCHANGE:
                self._steps.append(_Exchange(segment, state.replicas))
            elif segment.place == "host":
                self._steps.append(_OnHost(segment, state))
            else:
                self._steps.append(_OnDevice(segment, state, differing))

    @staticmethod
    def of(
        state: ReplicatedState, fetches: Sequence[Tensor], targets: Sequence[Operation]
    ) -> ReplicaRunner:
        """Plans a run."""
        return ReplicaRunner(cut_plan(state, fetches, targets, []), state)

    def run(self, feeds: Sequence[Any], trace: Trace | None = None) -> list[Any]:
        """Runs the plan; returns the fetches of this process's first replica.

        Args:
            feeds: the values of the plan's feeds, in order, for every replica.
            trace: without effect.

        Raises:
            OutOfRangeError: the input of all replicas has ended.
            PeerStopped: another process has stopped.
        """
        found = self.read(feeds)
        agreement = self._replicas.reach_consensus(StepProposal(0, len(found), 0, self.exchanges))
        return self.finish(found, agreement.elements, feeds)[0]

    def read(self, feeds: Sequence[Any] = ()) -> list[Values]:
        """Runs the input segments, for as many replicas of this process as there are elements."""
        found: list[Values] = []
        for _ in self._replicas.own:
            try:
                found.append(self._read_one(feeds))
            except OutOfRangeError:
                break
        return found

    def _read_one(self, feeds: Sequence[Any]) -> Values:
        values = {**dict(zip(self.plan.feeds, feeds, strict=True)), **self._constants}
        for step in self._reading:
            step(values)
        return values

    def finish(
        self, found: list[Values], elements: int, feeds: Sequence[Any] = ()
    ) -> list[list[Any]]:
        """Runs the remaining segments.

        Args:
            found: the result of `read`.
            elements: the number of replicas in all processes that have an element.
            feeds: the values of the plan's feeds.

        Returns:
            The fetches of each replica of this process that has an element, at least of one.
        """
        counted = len(found)
        if not found:  # this process's results are ignored, but it takes part in collectives
            for op in self._get_next:
                self._state.resources[op.attrs["iterator"]].unread()
            found = [self._read_one(feeds)]
        for step in self._steps:
            step(found, counted, elements)
        fetched = list(zip(self.plan.results, self.plan.fetches, strict=True))
        return [
            [to_numpy(values[result], tensor) for result, tensor in fetched] for values in found
        ]


class _OnHost:
    """A host segment, run for each replica in turn."""

    def __init__(self, segment: Segment, state: ProcessState) -> None:
        self._step = HostSegment(segment, state)

    def __call__(self, every: list[Values], counted: int, elements: int) -> None:
        for values in every:
            self._step(values)


class _OnDevice:
    """A device segment, run for each replica in turn, or once if equal for all.

    Each replica starts with the same variables, and updates them to the same values.
    """

    def __init__(
        self, segment: Segment, state: ReplicatedState, differing: Collection[Tensor]
    ) -> None:
        self._segment = segment
        self._state = state
        self._step = CompiledSegment(segment, state, segment_name(segment))
        self._is_same = not segment.random and not any(
            tensor in differing for tensor in segment.inputs
        )
        self._changed = changed_names(segment)

    def __call__(self, every: list[Values], counted: int, elements: int) -> None:
        if self._is_same:
            self._step(every[0])
            for values in every[1:]:
                values.update((tensor, every[0][tensor]) for tensor in self._segment.outputs)
            return
        with self._state.lock:
            for number, values in enumerate(every):
                before = self._copies() if number + 1 < len(every) else {}
                replica = self._state.replicas.first + number
                self._move_seeds(replica)
                self._step(values)
                self._move_seeds(-replica)
                self._state.values.update(before)

    def _copies(self) -> Values:
        """Copies of the variables that the segment updates, as a run donates them."""
        with x64():
            return {
                name: jnp.array(value, copy=True)
                for name, value in zip(self._changed, self._state.take(self._changed), strict=True)
            }

    def _move_seeds(self, replicas: int) -> None:
        """Offsets the seeds of random operations by a number of replicas."""
        names = self._segment.random if replicas else ()
        by = np.array([replicas * _SEED_STEP & 0xFFFFFFFF, 0, 0], np.uint32)
        for name, words in zip(names, self._state.take(names), strict=True):
            self._state.values[name] = np.asarray(words) + by


class _Exchange:
    """Collectives, run for the replicas of all processes at once."""

    def __init__(self, segment: Segment, replicas: Replicas) -> None:
        self._ops = segment.ops
        self._rewriting = segment.rewriting
        self._replicas = replicas

    def __call__(self, every: list[Values], counted: int, elements: int) -> None:
        reduced = [op for op in self._ops if role_of(op) is Role.ALL_REDUCE]
        gathered = [op for op in self._ops if role_of(op) is Role.ALL_GATHER]
        with x64():
            sums = [
                _sum(self._values(tensor, every), counted) for op in reduced for tensor in op.inputs
            ]
            rows = [
                _rows(self._values(tensor, every), counted)
                for op in gathered
                for tensor in op.inputs
            ]
            totals = iter(self._replicas.all_reduce(sums) if sums else ())
            for op in reduced:
                for tensor in op.outputs:
                    total = next(totals)
                    if op.attrs["mean"]:
                        total = divided(total, elements)
                    self._give(tensor, total, every)
        whole = iter(self._replicas.all_gather_rows(rows))
        for op in gathered:
            for tensor in op.outputs:
                self._give(tensor, next(whole), every)

    def _values(self, tensor: Tensor, every: list[Values]) -> list[Any]:
        tensor = self._rewriting.resolve(tensor)
        known = self._rewriting.value(tensor)
        return [values.get(tensor, known) for values in every]

    @staticmethod
    def _give(tensor: Tensor, value: Any, every: list[Values]) -> None:
        for values in every:
            values[tensor] = value


def _sum(values: Sequence[Any], counted: int) -> Any:
    if not counted:
        return jnp.zeros_like(values[0])
    total = jnp.asarray(values[0])
    for value in values[1:counted]:
        total = total + value
    return total


def _rows(values: Sequence[Any], counted: int) -> Any:
    arrays = [np.asarray(value) for value in values]
    return np.concatenate(arrays[:counted]) if counted else arrays[0][:0]


def _check_comes_first(segment: Segment, plan: Plan) -> None:
    if not set(segment.inputs) <= set(plan.feeds):
        raise UnimplementedError.explained(
            "the input of the replicas depends on values computed on a device",
            received=", ".join(tensor.name for tensor in segment.inputs),
            made_at=segment.ops[0].source,
            hint="return the dataset itself from the input_fn",
            op=segment.ops[0],
        )


# -- what differs from replica to replica


def _differing(plan: Plan) -> set[Tensor]:
    """The tensors whose values differ between replicas.

    Raises:
        ValueError: a variable would be assigned one of them.
    """
    ops = sorted((op for each in plan.segments for op in each.ops), key=lambda op: op.index)
    found: set[Tensor] = set()
    for op in ops:
        if role_of(op) in _EXCHANGES:
            continue
        row = registry.lookup(op.type)
        inputs = [plan.rewriting.resolve(tensor) for tensor in op.inputs]
        differs = row.semantics.random or (row.placement.where == "host" and not row.semantics.pure)
        differs = differs or any(tensor in found for tensor in inputs)
        if not differs:
            continue
        for position in row.semantics.updated_positions(op.attrs):
            if op.inputs[position].dtype is resource:
                raise _different_values(op, op.inputs[position].op)
        found.update(op.outputs)
    return found


def _different_values(op: Operation, handle: Operation) -> ValueError:
    return value_error(
        "You must specify an aggregation method to update a variable in replica context: "
        f"the replicas would give {handle.name!r} different values",
        expected="an optimizer's update, or a variable made with "
        "aggregation=VariableAggregation.MEAN or SUM",
        received=f"{op.name} ({op.type}), which depends on each replica's own batch",
        made_at=op.source,
    )


# -- a segment in a call of all replicas


def of_replica(
    function: Callable[..., Any], segment: Segment, sharded: Mapping[str, Sequence[int]]
) -> Callable[..., Any]:
    """Adapts a segment's function (see `lower.segment_function`) to draw different random numbers
    in each replica; the first replica's are those of a run without replicas.

    Args:
        function: the function.
        segment: the segment.
        sharded: the shapes of variables of which the state has the replica's rows, by name.
    """
    random = set(segment.random)

    def run(
        inputs: Sequence[Any], state: Sequence[Any], before: Any = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        replica = lax.axis_index(AXIS).astype(jnp.uint32)

        def move_seeds(names: Sequence[str], values: Sequence[Any], replicas: Any) -> list[Any]:
            return [
                value.at[0].add(replicas * np.uint32(_SEED_STEP)) if name in random else value
                for name, value in zip(names, values, strict=True)
            ]

        names = state_names(segment)
        own = {
            name: ShardedRows(value, sharded[name][0], AXIS)
            for name, value in zip(names, state, strict=True)
            if name in sharded
        }
        given = move_seeds(names, state, replica)
        given = [own.get(name, value) for name, value in zip(names, given, strict=True)]
        outputs, new, faults = function(inputs, given, before)
        changed = changed_names(segment)
        new = [
            _own_rows(own[name], value) if name in own else value
            for name, value in zip(changed, new, strict=True)
        ]
        return outputs, move_seeds(changed, new, -replica), faults

    return run


def _own_rows(old: ShardedRows, new: Any) -> Any:
    return new.own if isinstance(new, ShardedRows) else old.with_whole(new).own


__all__ = ["ReplicaRunner", "cut_plan", "exchanges_of", "of_replica"]
