"""`ReplicaLoop`: many steps of all replicas in one XLA call on a device mesh.

The executable is that of a single replica's loop (`compiled_loop`), mapped over a device mesh by
`jax.shard_map`: each replica takes its own elements of the block, variables are replicated, and
`AllReduce` operations are collectives. Elements whose shapes differ between replicas, or that only
some replicas have, are processed by single steps (`replica_run`). Before each call the processes
reach consensus on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np
from jax.sharding import PartitionSpec
from numpy.typing import NDArray

from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.core.registry import takes_element
from estimatorkit.core.tensor import Operation
from estimatorkit.distribute.replicas.replica_run import (
    ReplicaRunner,
    Values,
    of_replica,
)
from estimatorkit.distribute.replicas.replicas import (
    ENDED,
    INTERRUPTED,
    PeerStopped,
    StepProposal,
    axes,
    fingerprint,
)
from estimatorkit.ops.control.collectives import AXIS
from estimatorkit.runtime.loop import StepLoop, Steps, StepSpec
from estimatorkit.runtime.plan import Segment, make_plan
from estimatorkit.runtime.resource_store import Access
from estimatorkit.runtime.steps.compiled_loop import (
    STEPS_WITHOUT_INPUT,
    CompiledLoop,
    Layout,
    ScannableStep,
    SingleDevice,
)
from estimatorkit.runtime.steps.local_loop import HostPreprocessing
from estimatorkit.runtime.xla.aligned_arrays import aligned_empty
from estimatorkit.runtime.xla.faults import Sites

if TYPE_CHECKING:
    from estimatorkit.distribute.replicas.replica_state import ReplicatedState


class ReplicaLoop(StepLoop):
    """Runs the steps of several replicas.

    Attributes:
        one_call: whether steps can run many in one call.
    """

    _failed: OpError | None = None

    def __init__(self, state: ReplicatedState, spec: StepSpec) -> None:
        every, targets, after = spec.every, spec.targets, spec.after
        self._replicas = state.replicas
        self._of_each = [tensor in set(spec.of_each) for tensor in every]
        self._every = list(dict.fromkeys(every))
        self._order = [self._every.index(tensor) for tensor in every]
        self._runner = ReplicaRunner.of(state, self._every, targets)
        self._after = state.runner(list(after), [], [])
        self.operations = [op for each in self._runner.plan.segments for op in each.ops]
        self._is_over = False
        self.plan = plan = make_plan(state.graph, self._every, targets, [], state.placer)
        after_plan = make_plan(state.graph, list(after), [], [], state.placer)
        shape = ScannableStep.of(plan, after_plan)
        self.one_call = shape is not None
        if shape is not None:
            results = plan.results, after_plan.results
            self._compiled = CompiledLoop(shape, ReplicaMesh(state), *results, spec.name)
            self._blocks: _Blocks | None = None
            if shape.get_next is not None:
                elements = self._compiled.elements
                prepare = HostPreprocessing(shape, elements, state, False)
                self._blocks = _Blocks(shape.get_next, prepare, spec.source, state)

    def describe(self) -> str:
        """A description (see `StepLoop.describe`)."""
        calls = "many steps run in one XLA call on all devices" if self.one_call else "a run a step"
        return (
            f"loop of steps of {len(self._replicas.own)} replicas: {calls}\n{self.plan.describe()}"
        )

    def run(self, steps: int, until: float = math.inf) -> Steps:
        """Runs up to `steps` steps, as many as all processes can run in one call.

        Raises:
            OutOfRangeError: the input of all replicas has ended.
            PeerStopped: another process has stopped.
        """
        self._is_over = False
        if self._failed is not None:
            self._raise_failed(self._failed)
        found: list[Values] | None = None
        try:
            ready, shape = self._ready()
            if not ready:
                found = self._runner.read()
        except OpError as error:
            self.input_failed = takes_element(error.op)
            raise
        except Exception:
            self.input_failed = True
            raise
        elements = len(self._replicas.own if found is None else found)
        try:
            agreement = self._replicas.reach_consensus(
                StepProposal(min(steps, ready), elements, shape, self._runner.exchanges)
            )
        except (OutOfRangeError, PeerStopped):
            self._is_over = True
            raise
        if agreement.steps:
            return self._in_one_call(agreement.steps)
        found = self._runner.read() if found is None else found
        values = self._runner.finish(found, agreement.elements)
        every = self._chosen(
            [[np.asarray(own[position])[None] for own in values] for position in self._order]
        )
        return Steps(1, every, [np.asarray(value) for value in self._after.run([])], False)

    def _raise_failed(self, error: OpError) -> NoReturn:
        """Raises the error of the step that failed in all processes, and skips its elements."""
        self._failed = None
        if self._blocks is not None:
            self._blocks.used(1)
        raise error

    def leave(self, interrupted: bool = False) -> None:
        """Tells the other processes that this one stops, unless they know."""
        if not self._is_over:
            self._is_over = True
            self._replicas.reach_consensus(
                StepProposal(0, 0, stop=INTERRUPTED if interrupted else ENDED)
            )

    def _ready(self) -> tuple[int, int]:
        """The number of steps that can run in one call, and that call's fingerprint."""
        if not self.one_call:
            return 0, 0
        if self._blocks is None:
            return STEPS_WITHOUT_INPUT, 0
        return self._blocks.ready()

    def _in_one_call(self, count: int) -> Steps:
        columns, start = ([], 0) if self._blocks is None else self._blocks.sharded()
        count, kept, after, error = self._compiled(columns, start, count)
        elements = () if self._blocks is None else self._blocks.used(count)
        if error is not None:
            if not count:
                self._raise_failed(error)
            self._failed = error
        parts = [self._replicas.own_parts(kept[position]) for position in self._order]
        every = self._chosen([[own[start : start + count] for own in each] for each in parts])
        return Steps(count, every, [np.array(value) for value in after], False, elements)

    def _chosen(self, values: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
        """Selects from each fetched tensor's values by replica."""
        return [
            np.concatenate(each) if is_of_each else each[0]
            for each, is_of_each in zip(values, self._of_each, strict=True)
        ]


class _Blocks:
    """Blocks of elements, assigned to the replicas of this process round-robin."""

    def __init__(
        self,
        get_next: Operation,
        prepare: HostPreprocessing,
        source: Callable[[Operation], Any],
        state: ReplicatedState,
    ) -> None:
        self._get_next = get_next
        self._prepare = prepare
        self._source = source
        self._replicas = state.replicas
        self._share = len(self._replicas.own)
        prepare.together = self._share
        self._block: Any = None
        self._sharded_block: Any = None
        self._base = 0
        self._columns: list[Any] = []

    def ready(self) -> tuple[int, int]:
        """The number of steps that the block has elements for, and its shapes' fingerprint."""
        try:
            block = self._source(self._get_next).block(self._prepare)
        except OutOfRangeError:
            return 0, 0
        self._block = block
        shapes = [(column.shape, column.dtype.str) for column in block.ready]
        return (block.count - block.offset) // self._share, fingerprint(shapes)

    def sharded(self) -> tuple[list[Any], int]:
        """The block's columns, sharded over all replicas, and this process's next row."""
        block, share = self._block, self._share
        if self._sharded_block is not block or (block.offset - self._base) % share:
            self._base = block.offset % share
            self._columns = [
                self._replicas.sharded(_in_shares(column, self._base, share))
                for column in block.ready
            ]
            self._sharded_block = block
        return self._columns, (block.offset - self._base) // share

    def used(self, steps: int) -> tuple[tuple[Sequence[Any], int, int], ...]:
        """Advances by steps, and returns their elements (see `Steps.elements`)."""
        block = self._block
        start = block.offset
        block.offset += steps * self._share
        return ((block.columns, start, steps),) if self._share == 1 else ()


def _in_shares(column: NDArray[Any], base: int, share: int) -> NDArray[Any]:
    """Rows from `base` on, reshaped to `(rows // share, share, ...)`."""
    length = len(column) // share
    if not base and length * share == len(column):
        return column.reshape(length, share, *column.shape[1:])
    out = aligned_empty((length, share, *column.shape[1:]), column.dtype)
    whole = (len(column) - base) // share
    out[:whole] = column[base : base + whole * share].reshape(whole, *out.shape[1:])
    return out


class ReplicaMesh(SingleDevice):
    """Maps a loop's functions over the devices of all replicas by `jax.shard_map`."""

    in_order = False
    axis = AXIS

    def __init__(self, state: ReplicatedState) -> None:
        super().__init__(state)
        self._replicas = state.replicas
        self._state = state

    def segment(self, segment: Segment, sites: Sites) -> Callable[..., Any]:
        """The step's function, with different random numbers in each replica."""
        return of_replica(super().segment(segment, sites), segment, self._state.sharded)

    def over(
        self,
        function: Callable[..., Any],
        access: Access,
        given: Sequence[Layout],
        made: Sequence[Layout],
    ) -> Callable[..., Any]:
        """Maps a function over all replicas (see `SingleDevice.over`)."""

        names = {"kept": access.kept, "changed": access.changed}

        def specs(layout: Layout) -> Any:
            if layout not in names:
                return _SPECS[layout]
            sharded = self._state.sharded
            return [axes(AXIS) if name in sharded else axes() for name in names[layout]]

        def of_all(*arguments: Any) -> Any:
            static = arguments[len(given) :]

            def of_one(*own: Any) -> tuple[Any, ...]:
                taken = [_own(layout, value) for layout, value in zip(given, own, strict=True)]
                found = function(*taken, *static)
                return tuple(
                    jax.tree.map(lambda leaf: leaf[None], value) if layout == "each" else value
                    for layout, value in zip(made, found, strict=True)
                )

            mapped = jax.shard_map(
                of_one,
                mesh=self._replicas.mesh,
                in_specs=tuple(map(specs, given)),
                out_specs=tuple(map(specs, made)),
                check_vma=False,
            )
            return mapped(*arguments[: len(given)])

        return of_all

    def variables(self, names: Sequence[str]) -> list[Any]:
        """The values of variables, replicated on all devices, or sharded by rows over them."""
        return self._state.take_everywhere(names)

    def same(self, value: Any) -> Any:
        """Replicates a constant on all devices."""
        return self._replicas.everywhere(value)

    def each(self, value: Any) -> Any:
        """Gives each replica of this process its own copy."""
        return self._replicas.for_each(value)


_SPECS: dict[str, PartitionSpec] = {
    "columns": axes(None, AXIS),
    "each": axes(AXIS),
    "same": axes(),
}


def _own(layout: Layout, value: Any) -> Any:
    """A replica's part of an argument, without the replica axis."""
    if layout == "columns":
        return [column.reshape(column.shape[0], *column.shape[2:]) for column in value]
    return jax.tree.map(lambda leaf: leaf[0], value) if layout == "each" else value


__all__ = ["ReplicaLoop", "ReplicaMesh"]
