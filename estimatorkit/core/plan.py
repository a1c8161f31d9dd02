"""From fetches and feeds to a plan: prune, place, order, cut into segments.
`print(plan.describe())` shows it.

A *segment* is a group of operations of one place (the device, or the host) that run as one: a
device segment becomes one XLA call. Every operation gets a level such that an edge between places
always leads to a higher level; operations of one place and level form a segment, so there is never
a cycle between segments. Levels are pushed as late as possible, so that a training step is one host
segment (the input) and one device segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from estimatorkit.core import registry
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import InvalidArgumentError, explain
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor

Place = Literal["device", "host"]

_NEVER_RUN = ("Const", "VarHandleOp")
"""Constants are values and handles are names: they belong to no segment."""

LARGE_CONSTANT = 16384
"""Bytes; larger constants are arguments of the executable: as code XLA would fold and copy them."""


@dataclass(eq=False)
class Segment:
    """Operations that run as one.

    Attributes:
        place: 'device' or 'host'.
        ops: in the order in which they run.
        inputs: tensors that come from feeds or earlier segments, and large constants.
        static_inputs: those of `inputs` whose values XLA must know to compile.
        outputs: tensors that later segments or the caller take.
        reads: variables whose value is needed at the start.
        writes: variables that get a new value.
        random: operations whose random counters move on.
    """

    place: Place
    ops: list[Operation]
    inputs: list[Tensor] = field(default_factory=list)
    static_inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    random: list[str] = field(default_factory=list)

    @property
    def wide(self) -> bool:
        """Whether 64-bit values occur."""
        return any(
            tensor.dtype.is_wide for op in self.ops for tensor in (*op.inputs, *op.outputs)
        ) or any(tensor.dtype.is_wide for tensor in self.inputs)


@dataclass(frozen=True, eq=False)
class Plan:
    """What a run does: segments in order.

    Attributes:
        fetches: the tensors asked for.
        feeds: the tensors given.
        segments: in an order that respects all edges.
        pruned: how many operations of the graph do not run.
    """

    fetches: tuple[Tensor, ...]
    feeds: tuple[Tensor, ...]
    segments: tuple[Segment, ...]
    pruned: int

    def describe(self) -> str:
        """The plan as text: each segment with its operations, what it receives, sends, changes."""
        lines = [
            f"plan: {sum(len(segment.ops) for segment in self.segments)} operations in "
            f"{len(self.segments)} segments, {self.pruned} of the graph not needed"
        ]
        for number, segment in enumerate(self.segments):
            what = "one XLA call" if segment.place == "device" else "NumPy and Python"
            lines.append(f"segment {number} on the {segment.place} ({what})")
            for label, names in (
                ("receives", [tensor.name for tensor in segment.inputs]),
                ("reads", segment.reads),
                ("writes", segment.writes),
                ("sends", [tensor.name for tensor in segment.outputs]),
            ):
                if names:
                    lines.append(f"  {label}: {', '.join(names)}")
            lines.extend(f"    {op}" for op in segment.ops)
        return "\n".join(lines)


def make_plan(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
) -> Plan:
    """Plans a run.

    Args:
        graph: the graph.
        fetches: tensors whose values are wanted.
        targets: operations that are to run.
        feeds: tensors whose values are given.

    Raises:
        InvalidArgumentError: a placeholder that is needed is not fed.
    """
    fed = set(feeds)
    ops = _prune(fetches, targets, fed)
    places = {op: _place(op) for op in ops}
    static = _StaticValues(fed, places)
    edges = _edges(ops, fed, static)
    levels = _levels(ops, places, edges)
    groups: dict[tuple[int, Place], list[Operation]] = {}
    for op in ops:
        groups.setdefault((levels[op], places[op]), []).append(op)
    segments = [Segment(place, groups[level, place]) for level, place in sorted(groups)]
    _connect(segments, fetches, fed, static)
    return Plan(
        tuple(fetches), tuple(feeds), tuple(segments), len(graph.get_operations()) - len(ops)
    )


def _prune(
    fetches: Sequence[Tensor], targets: Sequence[Operation], fed: set[Tensor]
) -> list[Operation]:
    """The operations that must run, in the order of their making."""
    needed: set[Operation] = set()
    pending = [tensor.op for tensor in fetches if tensor not in fed] + list(targets)
    while pending:
        op = pending.pop()
        if op in needed or op.type in _NEVER_RUN:
            continue
        needed.add(op)
        pending.extend(tensor.op for tensor in op.inputs if tensor not in fed)
        pending.extend(op.control_inputs)
    for op in sorted(needed, key=lambda op: op.index):
        if op.type == "Placeholder":
            if op.outputs[0] in fed:  # reached by a control edge only
                needed.discard(op)
                continue
            (tensor,) = op.outputs
            shape = tensor.shape if tensor.shape.rank is not None else "<unknown>"
            raise InvalidArgumentError(
                None,
                op,
                explain(
                    f"You must feed a value for placeholder tensor '{op.name}' with dtype "
                    f"{tensor.dtype.name} and shape {shape}",
                    made_at=op.source,
                    hint=f"session.run(..., feed_dict={{{tensor.name!r}: value}})",
                ),
            )
    return sorted(needed, key=lambda op: op.index)


def _place(op: Operation) -> Place:
    row = registry.lookup(op.type)
    if row.place(op.attrs) == "host" or any(t.dtype.on_host for t in (*op.inputs, *op.outputs)):
        return "host"
    return "device"


class _StaticValues:
    """Which values can be known when XLA compiles, and from which segment inputs they follow."""

    def __init__(self, fed: set[Tensor], places: dict[Operation, Place]) -> None:
        self._fed = fed
        self._places = places
        self.from_outside: set[Tensor] = set()
        """Tensors that a segment must be given as values, not as traced arrays."""

    def resolve(self, tensor: Tensor) -> bool:
        """Whether the value follows at compile time; notes the tensors that it follows from."""
        op = tensor.op
        if tensor in self._fed or self._places.get(op) == "host":
            # Sizes and axes only: compiled-in data would be a compilation for each new value.
            if not tensor.dtype.is_integer or (tensor.shape.rank or 0) > 1:
                return False
            self.from_outside.add(tensor)
            return True
        if op.type == "Const":
            return True
        row = registry.lookup(op.type)
        if row.known_from_shape:
            return True
        # An empty list of inputs is a source of its own (a variable's value, a random draw): not
        # known.
        return row.foldable and bool(op.inputs) and all(map(self.resolve, op.inputs))


_Edges = dict[Operation, list[tuple[Operation, bool]]]
"""For each operation its predecessors; True where a value must be known to compile it."""


def _edges(ops: Sequence[Operation], fed: set[Tensor], static: _StaticValues) -> _Edges:
    chosen = set(ops)
    edges: _Edges = {}
    last_write: dict[Tensor, Operation] = {}
    since_write: dict[Tensor, list[Operation]] = {}
    for op in ops:
        row = registry.lookup(op.type)
        static_positions = row.static_positions(op.attrs)
        updates = row.updated_positions(op.attrs)
        before: list[tuple[Operation, bool]] = []
        for position, tensor in enumerate(op.inputs):
            if tensor.dtype is resource:
                continue
            known = position not in static_positions or static.resolve(tensor)
            if not known:
                static.from_outside.add(tensor)
            if tensor not in fed and tensor.op in chosen:
                before.append((tensor.op, not known))
        before.extend((other, False) for other in op.control_inputs if other in chosen)
        # Reads and writes of one variable keep the order of their making.
        for position, handle in enumerate(op.inputs):
            if handle.dtype is not resource:
                continue
            if handle in last_write:
                before.append((last_write[handle], False))
            if position in updates:
                before.extend((reader, False) for reader in since_write.pop(handle, ()))
                last_write[handle] = op
            else:
                since_write.setdefault(handle, []).append(op)
        edges[op] = before
    return edges


def _levels(
    ops: Sequence[Operation], places: dict[Operation, Place], edges: _Edges
) -> dict[Operation, int]:
    levels: dict[Operation, int] = {}
    after: dict[Operation, list[tuple[Operation, bool]]] = {op: [] for op in ops}
    for op in ops:  # as early as possible
        level = 0
        for earlier, crosses in edges[op]:
            step = int(crosses or places[earlier] != places[op])
            level = max(level, levels[earlier] + step)
            after[earlier].append((op, crosses))
        levels[op] = level
    last: dict[Place, int] = {}
    for op in ops:
        last[places[op]] = max(last.get(places[op], 0), levels[op])
    for op in reversed(ops):  # as late as possible
        levels[op] = min(
            (
                levels[later] - int(crosses or places[later] != places[op])
                for later, crosses in after[op]
            ),
            default=last[places[op]],
        )
    return levels


def _connect(
    segments: Sequence[Segment],
    fetches: Sequence[Tensor],
    fed: set[Tensor],
    static: _StaticValues,
) -> None:
    """Fills in what each segment takes, gives, reads and writes."""
    home = {op: segment for segment in segments for op in segment.ops}
    wanted: dict[Segment, dict[Tensor, None]] = {segment: {} for segment in segments}
    for segment in segments:
        inputs: dict[Tensor, None] = {}
        reads: dict[str, None] = {}
        writes: dict[str, None] = {}
        for op in segment.ops:
            row = registry.lookup(op.type)
            updates = row.updated_positions(op.attrs)
            for position, tensor in enumerate(op.inputs):
                if tensor.dtype is resource:
                    name = tensor.op.name
                    if position not in row.overwrites and name not in writes:
                        reads[name] = None
                    if position in updates:
                        writes[name] = None
                elif tensor in fed or _is_large_constant(tensor, segment):
                    inputs[tensor] = None
                elif tensor.op in home and home[tensor.op] is not segment:
                    inputs[tensor] = None
                    wanted[home[tensor.op]][tensor] = None
            if row.random:
                segment.random.append(op.name)
        segment.inputs = list(inputs)
        segment.static_inputs = [tensor for tensor in inputs if tensor in static.from_outside]
        segment.reads = list(reads)
        segment.writes = list(writes)
    for tensor in fetches:
        if tensor not in fed and tensor.op in home:
            wanted[home[tensor.op]][tensor] = None
    for segment in segments:
        segment.outputs = list(wanted[segment])


def _is_large_constant(tensor: Tensor, segment: Segment) -> bool:
    return (
        segment.place == "device"
        and tensor.op.type == "Const"
        and tensor.op.attrs["value"].nbytes > LARGE_CONSTANT
    )
