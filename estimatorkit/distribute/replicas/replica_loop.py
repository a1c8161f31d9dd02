"""`ReplicaLoop`: many steps of all replicas in one XLA call on a device mesh.

The executable is that of one replica's loop (`compiled_loop`), run on a mesh of devices by
`jax.shard_map`: each replica takes its own elements of the block, variables are the same for all,
and where the graph says so (`AllReduce`) they exchange values. Elements that cannot be taken so,
since their shapes differ between replicas or some replicas have none left, are taken by a step of
their own (`replica_run`). Before each call the processes agree on what it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec
from numpy.typing import NDArray

from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.core.registry import takes_element
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.distribute.replicas.replica_run import (
    ReplicaRunner,
    ReplicatedState,
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
from estimatorkit.runtime.columns import aligned_empty
from estimatorkit.runtime.compiled_loop import STEPS_WITHOUT_INPUT, CompiledLoop, ScannableStep
from estimatorkit.runtime.loop import HostPreprocessing, StepLoop, Steps, StepSpec
from estimatorkit.runtime.plan import make_plan


class ReplicaLoop(StepLoop):
    """Steps of several replicas.

    Attributes:
        one_call: whether steps can run many in one call.
    """

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
            self._compiled = _CallOfAll(shape, state, *results, spec.name)
            self._blocks: _Blocks | None = None
            if shape.get_next is not None:
                elements = self._compiled.elements
                prepare = HostPreprocessing(state.graph, shape.get_next, elements, state, False)
                self._blocks = _Blocks(shape.get_next, prepare, spec.source, state)

    def describe(self) -> str:
        """How the steps run, as text."""
        calls = "many steps run in one XLA call on all devices" if self.one_call else "a run a step"
        return (
            f"loop of steps of {len(self._replicas.own)} replicas: {calls}\n{self.plan.describe()}"
        )

    def run(self, steps: int, until: float = math.inf) -> Steps:
        """Runs up to `steps` steps, fewer where others can take fewer or the elements need it.

        Raises:
            OutOfRangeError: the input of all replicas has ended.
            PeerStopped: another process takes no further step.
        """
        self._is_over = False
        found: list[Values] | None = None
        try:
            ready, shape = self._ready()
            if not ready:
                found = self._runner.read()
        except OpError as error:
            self.input_failed = _is_of_input(error)
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

    def leave(self, interrupted: bool = False) -> None:
        """Tells the others that this process takes no further step, unless all know already."""
        if not self._is_over:
            self._is_over = True
            self._replicas.reach_consensus(
                StepProposal(0, 0, stop=INTERRUPTED if interrupted else ENDED)
            )

    def _ready(self) -> tuple[int, int]:
        """How many steps can be run in one call, and a fingerprint of that call."""
        if not self.one_call:
            return 0, 0
        if self._blocks is None:
            return STEPS_WITHOUT_INPUT, 0
        return self._blocks.ready()

    def _in_one_call(self, count: int) -> Steps:
        columns, start = ([], 0) if self._blocks is None else self._blocks.sharded()
        kept, after = self._compiled(columns, start, count)
        elements = () if self._blocks is None else self._blocks.used(count)
        parts = [self._replicas.own_parts(kept[position]) for position in self._order]
        every = self._chosen([[own[start : start + count] for own in each] for each in parts])
        return Steps(count, every, [np.array(value) for value in after], False, elements)

    def _chosen(self, values: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
        """For each fetched tensor what is wanted of its values by replica."""
        return [
            np.concatenate(each) if is_of_each else each[0]
            for each, is_of_each in zip(values, self._of_each, strict=True)
        ]


def _is_of_input(error: OpError) -> bool:
    return takes_element(error.op)


class _Blocks:
    """Blocks of elements, dealt out to the replicas of this process in turn."""

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
        self._dealt: Any = None
        self._base = 0
        self._columns: list[Any] = []

    def ready(self) -> tuple[int, int]:
        """How many steps the block at hand has elements for, and a fingerprint of its shapes."""
        try:
            block = self._source(self._get_next).block(self._prepare)
        except OutOfRangeError:
            return 0, 0
        self._block = block
        shapes = [(column.shape, column.dtype.str) for column in block.ready]
        return (block.count - block.offset) // self._share, fingerprint(shapes)

    def sharded(self) -> tuple[list[Any], int]:
        """The block's columns on the devices of all replicas, and this process's next row."""
        block, share = self._block, self._share
        if self._dealt is not block or (block.offset - self._base) % share:
            self._base = block.offset % share
            self._columns = [
                self._replicas.sharded(_in_shares(column, self._base, share))
                for column in block.ready
            ]
            self._dealt = block
        return self._columns, (block.offset - self._base) // share

    def used(self, steps: int) -> tuple[tuple[Sequence[Any], int, int], ...]:
        """Goes on by so many steps; where their elements are (see `Steps.elements`)."""
        block = self._block
        start = block.offset
        block.offset += steps * self._share
        return ((block.columns, start, steps),) if self._share == 1 else ()


def _in_shares(column: NDArray[Any], base: int, share: int) -> NDArray[Any]:
    """Rows from `base` on, so many next to each other: `(rows // share, share, ...)`."""
    length = len(column) // share
    if not base and length * share == len(column):
        return column.reshape(length, share, *column.shape[1:])
    out = aligned_empty((length, share, *column.shape[1:]), column.dtype)
    whole = (len(column) - base) // share
    out[:whole] = column[base : base + whole * share].reshape(whole, *out.shape[1:])
    return out


class _CallOfAll(CompiledLoop):
    """The executables of steps as all replicas run them."""

    _state: ReplicatedState

    def __init__(
        self,
        shape: ScannableStep,
        state: ReplicatedState,
        every: Sequence[Tensor],
        after: Sequence[Tensor],
        name: str,
    ) -> None:
        super().__init__(shape, state, every, after, name)
        self._replicas = state.replicas
        with self._context():
            self._constants = [self._replicas.everywhere(each) for each in self._constants]
        dealt, same, own = axes(None, AXIS), axes(), axes(AXIS)
        self._spread_many = jax.jit(
            self._spread(self._own_block, (dealt, same, own, same, same, same), (own, same, same)),
            donate_argnums=(5,),
        )
        self._spread_one = jax.jit(
            self._spread(self._own_step, (dealt, same, same, own, same, own), (same, own)),
            donate_argnums=(4, 5),
        )
        self._many: Any = self._block_of_all
        self._one: Any = self._step_of_all

    def _spread(
        self,
        function: Callable[..., Any],
        given: tuple[PartitionSpec, ...],
        made: tuple[PartitionSpec, ...] | PartitionSpec,
    ) -> Callable[..., Any]:
        spread: Callable[..., Any] = jax.shard_map(
            function, mesh=self._replicas.mesh, in_specs=given, out_specs=made, check_vma=False
        )
        return spread

    def _take(self, names: Sequence[str]) -> list[Any]:
        return self._state.take_everywhere(names)

    def _step_function(self) -> Callable[..., Any]:
        return of_replica(super()._step_function(), self._step)

    def _block_of_all(
        self,
        columns: Any,
        constants: Any,
        start: Any,
        count: Any,
        kept: Any,
        changed: Any,
        runs: Any,
        shapes: Any,
    ) -> Any:
        first = self._replicas.for_each(start)
        return self._spread_many(columns, constants, first, count, kept, changed)

    def _own_block(
        self, columns: Any, constants: Any, start: Any, count: Any, kept: Any, changed: Any
    ) -> Any:
        given = _own_columns(columns), constants, start[0], count, kept, changed
        every, after, new = self._block_of_steps(*given, None, ())
        return [each[None] for each in every], after, new

    def _step_of_all(
        self,
        columns: Any,
        constants: Any,
        kept: Any,
        index: Any,
        changed: Any,
        every: Any,
        sizes: Any,
    ) -> Any:
        row = self._replicas.for_each(index)
        return self._spread_one(columns, constants, kept, row, changed, every)

    def _own_step(
        self, columns: Any, constants: Any, kept: Any, index: Any, changed: Any, every: Any
    ) -> Any:
        given = _own_columns(columns), constants, kept, index[0], changed
        new, filled = self._step_alone(*given, [each[0] for each in every], None)
        return new, [each[None] for each in filled]

    def _buffers(self, given: tuple[Any, ...], changed: Any, sizes: Any) -> list[Any]:
        columns, constants, kept = given
        key = tuple(column.shape for column in columns)
        if key not in self._fetched:

            def step(columns: Any, constants: Any, kept: Any, changed: Any) -> Any:
                return self._run_step(_own_columns(columns), constants, kept, 0, changed)[0]

            dealt, same = axes(None, AXIS), axes()
            spread = self._spread(step, (dealt, same, same, same), same)
            self._fetched[key] = jax.eval_shape(spread, columns, constants, kept, changed)
        length = len(columns[0]) if columns else STEPS_WITHOUT_INPUT
        return [
            self._replicas.for_each(np.zeros((length, *each.shape), each.dtype))
            for each in self._fetched[key]
        ]


def _own_columns(columns: Sequence[Any]) -> list[Any]:
    """A replica's part of columns that are dealt out."""
    return [column.reshape(column.shape[0], *column.shape[2:]) for column in columns]


__all__ = ["ReplicaLoop"]
