"""Planning a run: prune, optimize, place, order and cut into segments. `print(plan.describe())`
shows the result.

A *segment* is a group of operations in one place (a device, or the host) that run as a unit: a
device segment becomes one XLA call. Every operation gets a level such that edges between places
lead to higher levels; operations of one place and level form a segment. So segments have no cycles,
and those of one level can run concurrently. With one device, operations get the latest possible
level, so that a training step is one host segment (the input) and one device segment; with several,
the earliest, so that no device waits needlessly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from estimatorkit.core import registry
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Place, Role, folding, never_runs, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.verify import verify_new
from estimatorkit.runtime.graph_optimizer import Rewriting, rewrite

verify_graphs = False
"""Whether a graph is verified before a run of it is planned."""

Location: TypeAlias = tuple[Place, str]
"""A place, and the device's name ('' for the default one, and for the host)."""

LARGE_CONSTANT = 16384
"""Bytes; larger constants are arguments of the executable: as code XLA would fold and copy them."""


@dataclass(eq=False)
class Segment:
    """Operations that run as a unit.

    Attributes:
        place: 'device' or 'host'.
        ops: in execution order.
        inputs: tensors from feeds and earlier segments, and large constants.
        static_inputs: those of `inputs` that must be compile-time constants.
        outputs: tensors that later segments or the caller use.
        reads: variables whose value is an input.
        writes: variables that it updates.
        random: operations whose random counters advance.
        device: the device's name; '' for the default one, and on the host.
        level: segments of the same level are independent.
        rewriting: replacements of operations that do not run.
    """

    place: Place
    ops: list[Operation]
    device: str
    level: int
    rewriting: Rewriting
    inputs: list[Tensor] = field(default_factory=list)
    static_inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    random: list[str] = field(default_factory=list)

    @property
    def wide(self) -> bool:
        """Whether it has 64-bit values."""
        return any(map(_is_wide, self.ops)) or any(tensor.dtype.is_wide for tensor in self.inputs)


def _is_wide(op: Operation) -> bool:
    """Whether an operation, or a function that it holds, has 64-bit values."""
    attrs = op.attrs.get("forward_attrs", op.attrs)  # a gradient's: its operation's
    held = (inner for function in attrs.get("functions", ()) for inner in function.ops)
    return any(tensor.dtype.is_wide for tensor in (*op.inputs, *op.outputs)) or any(
        map(_is_wide, held)
    )


@dataclass(frozen=True, eq=False)
class Plan:
    """The segments of a run.

    Attributes:
        fetches: the fetched tensors.
        feeds: the fed tensors.
        segments: in topological order.
        pruned: the number of operations of the graph that are not needed.
        rewriting: replacements of needed operations that do not run.
        with_on_host: plans the same run with further operations on the host.
    """

    fetches: tuple[Tensor, ...]
    feeds: tuple[Tensor, ...]
    segments: tuple[Segment, ...]
    pruned: int
    rewriting: Rewriting
    with_on_host: Callable[[Collection[Operation]], Plan]

    @property
    def results(self) -> list[Tensor]:
        """The tensor computed for each fetch: itself or its replacement."""
        return [
            tensor if tensor in self.feeds else self.rewriting.resolve(tensor)
            for tensor in self.fetches
        ]

    @property
    def operations(self) -> list[Operation]:
        """What runs, in order."""
        return [op for segment in self.segments for op in segment.ops]

    @property
    def constants(self) -> dict[Tensor, Any]:
        """The results that are known before a run, and not fed."""
        known = {tensor: self.rewriting.value(tensor) for tensor in self.results}
        return {
            tensor: value
            for tensor, value in known.items()
            if value is not None and tensor not in self.feeds
        }

    def describe(self) -> str:
        """The plan as text: what was optimized away, then each segment with its operations, inputs,
        outputs and variables.
        """
        lines = [self._headline()]
        lines.extend(f"  folded: {op} (its value is known)" for op in self._folded)
        lines.extend(
            f"  shared: {op} (the same as {other.name})" for op, other in self._shared.items()
        )
        senders = {tensor: segment for segment in self.segments for tensor in segment.outputs}
        for number, segment in enumerate(self.segments):
            what = "one XLA call" if segment.place == "device" else "NumPy and Python"
            lines.append(f"segment {number} on the {_where(segment)} ({what})")
            for label, names in (
                ("receives", [_received(tensor, segment, senders) for tensor in segment.inputs]),
                ("reads", segment.reads),
                ("writes", segment.writes),
                ("sends", [self._sent(tensor, segment) for tensor in segment.outputs]),
            ):
                if names:
                    lines.append(f"  {label}: {', '.join(names)}")
            lines.extend(f"    {op}" for op in segment.ops)
        return "\n".join(lines)

    @property
    def _folded(self) -> list[Operation]:
        return list(dict.fromkeys(tensor.op for tensor in self.rewriting.known))

    @property
    def _shared(self) -> dict[Operation, Operation]:
        return {one.op: other.op for one, other in self.rewriting.same.items()}

    def _headline(self) -> str:
        running = sum(len(segment.ops) for segment in self.segments)
        return (
            f"plan: {running} operations in {len(self.segments)} segments, {self.pruned} of the "
            f"graph not needed, {len(self._folded)} folded, {len(self._shared)} shared"
        )

    def _repr_html_(self) -> str:
        """A table of the segments, for notebooks."""
        from estimatorkit.html import html_table

        rows = [
            (
                _where(segment),
                ", ".join(op.name for op in segment.ops),
                ", ".join(tensor.name for tensor in segment.inputs),
                ", ".join(tensor.name for tensor in segment.outputs),
                ", ".join(dict.fromkeys([*segment.reads, *segment.writes])),
            )
            for segment in self.segments
        ]
        head = ("segment on", "operations", "receives", "sends", "variables")
        return html_table(head, rows, self._headline())

    def _sent(self, tensor: Tensor, segment: Segment) -> str:
        to = [each for each in self.segments if tensor in each.inputs]
        others = list(dict.fromkeys(_where(each) for each in to if _where(each) != _where(segment)))
        return f"Send({tensor.name} to {', '.join(others)})" if others else tensor.name


def _where(segment: Segment) -> str:
    return f"{segment.place} {segment.device}".rstrip()


def _received(tensor: Tensor, segment: Segment, senders: dict[Tensor, Segment]) -> str:
    sender = senders.get(tensor)
    if sender is None or _where(sender) == _where(segment):
        return tensor.name
    return f"Recv({tensor.name} from {_where(sender)})"


def make_plan(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    placer: Callable[[Operation], str] = lambda op: "",
    optimize: bool = True,
    elsewhere: Collection[Operation] = frozenset(),
    on_host: Collection[Operation] = frozenset(),
) -> Plan:
    """Plans a run.

    Args:
        graph: the graph.
        fetches: tensors to evaluate.
        targets: operations to run.
        feeds: tensors whose values are given.
        placer: maps operations to device names, '' for the default device.
        optimize: fold constants and eliminate common subexpressions.
        elsewhere: operations that run elsewhere; their outputs are fed.
        on_host: operations to run on the host, although a device could.

    Raises:
        InvalidArgumentError: a required placeholder is not fed.
    """
    if verify_graphs:
        verify_new(graph)
    fed = set(feeds)
    needed = needed_operations(fetches, targets, fed, elsewhere=elsewhere, must_feed=not optimize)
    rewriting = rewrite(needed, fed, set(fetches)) if optimize else Rewriting()
    ops = needed
    if optimize:
        ops = needed_operations(fetches, targets, fed, rewriting, elsewhere)
    places = {op: _location(op, placer, op in on_host) for op in ops}
    static = _StaticValues(fed, places, rewriting)
    edges = _edges(ops, fed, static, rewriting)
    if reductions := static.reductions():
        places.update(dict.fromkeys(reductions, ("host", "")))
        static = _StaticValues(fed, places, rewriting)
        edges = _edges(ops, fed, static, rewriting)
    levels = _levels(ops, places, edges)
    groups: dict[tuple[int, Location], list[Operation]] = {}
    for op in ops:
        groups.setdefault((levels[op], places[op]), []).append(op)
    # Devices first within a level: their calls return before the work is done, the host's do not.
    segments = [
        Segment(place, groups[level, (place, device)], device, level, rewriting)
        for level, (place, device) in sorted(groups)
    ]
    _connect(segments, fetches, fed, static, rewriting)
    unused = len(graph.get_operations()) - len(needed)

    def with_on_host(more: Collection[Operation]) -> Plan:
        chosen = {*on_host, *more}
        return make_plan(graph, fetches, targets, feeds, placer, optimize, elsewhere, chosen)

    return Plan(tuple(fetches), tuple(feeds), tuple(segments), unused, rewriting, with_on_host)


SMALL = 4096
"""Elements. NumPy adds as many in 1 us, and a call of an executable takes 20 to 200."""


def small_between_hosts(plan: Plan) -> set[Operation]:
    """Device operations on a few numbers that come from the host and are used there alone, as when
    the fields of a line are stacked between a reader and a queue."""
    made = {
        tensor: segment.place
        for segment in plan.segments
        for op in segment.ops
        for tensor in op.outputs
    }
    devices = [segment for segment in plan.segments if segment.place == "device"]
    elsewhere = {*plan.results, *(tensor for segment in devices for tensor in segment.inputs)}
    return {
        op
        for segment in devices
        if not segment.reads
        and segment.inputs
        and all(made.get(tensor) == "host" for tensor in segment.inputs)
        and not elsewhere & set(segment.outputs)
        and all(map(_is_small, segment.ops))
        for op in segment.ops
    }


def _is_small(op: Operation) -> bool:
    sizes = [tensor.shape.num_elements() for tensor in op.outputs]
    return registry.lookup(op.type).foldable and all(
        size is not None and size <= SMALL for size in sizes
    )


def needed_operations(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    fed: Collection[Tensor],
    rewriting: Rewriting | None = None,
    elsewhere: Collection[Operation] = frozenset(),
    must_feed: bool = True,
) -> list[Operation]:
    """The operations that must run, in creation order (see `make_plan`).

    Raises:
        InvalidArgumentError: `must_feed` is set, and a placeholder among them is not fed.
    """
    rewriting = rewriting or Rewriting()
    needed: set[Operation] = set()
    constants: set[Operation] = set()

    def makers(tensors: Sequence[Tensor]) -> list[Operation]:
        resolved = [rewriting.resolve(tensor) for tensor in tensors if tensor not in fed]
        return [tensor.op for tensor in resolved if tensor not in rewriting.known]

    pending = [*makers(fetches), *targets]
    while pending:
        op = pending.pop()
        if op in needed or op in constants or op in elsewhere:
            continue
        (constants if never_runs(op) else needed).add(op)
        pending.extend(makers(op.inputs))
        pending.extend(op.control_inputs)
    for op in sorted(needed, key=lambda op: op.index):
        if role_of(op) is Role.PLACEHOLDER and must_feed:
            if op.outputs[0] in fed:  # reached only by a control edge
                needed.discard(op)
                continue
            (tensor,) = op.outputs
            shape = tensor.shape if tensor.shape.rank is not None else "<unknown>"
            raise InvalidArgumentError.explained(
                f"You must feed a value for placeholder tensor '{op.name}' with dtype "
                f"{tensor.dtype.name} and shape {shape}",
                made_at=op.source,
                hint=f"session.run(..., feed_dict={{{tensor.name!r}: value}})",
                op=op,
            )
    return sorted(needed, key=lambda op: op.index)


def is_on_host(op: Operation) -> bool:
    """Whether an operation must run on the host: by its row, or because of strings."""
    by_row = registry.lookup(op.type).placement.place(op.attrs) == "host"
    return by_row or any(tensor.dtype.on_host for tensor in (*op.inputs, *op.outputs))


def _location(op: Operation, placer: Callable[[Operation], str], on_host: bool) -> Location:
    return ("host", "") if on_host or is_on_host(op) else ("device", placer(op))


class _StaticValues:
    """The compile-time constants, and the segment inputs that they depend on."""

    def __init__(
        self, fed: set[Tensor], places: dict[Operation, Location], rewriting: Rewriting
    ) -> None:
        self._fed = fed
        self._places = places
        self._rewriting = rewriting
        self.from_outside: set[Tensor] = set()
        """Tensors that a segment must be given as values, not as traced arrays."""
        self._computed: set[Operation] = set()

    def resolve(self, tensor: Tensor) -> bool:
        """Whether a value is a compile-time constant; records the segment inputs it depends on."""
        tensor = self._rewriting.resolve(tensor)
        follows = tensor in self._rewriting.known or self._follows(tensor)
        if follows:  # if an earlier segment computes it, it arrives as a value
            self.from_outside.add(tensor)
        return follows

    def _follows(self, tensor: Tensor) -> bool:
        op = tensor.op
        if tensor in self._fed or self._places.get(op) == ("host", ""):
            # Sizes and axes only: compiled-in data would need a compilation for each new value.
            return tensor.dtype.is_integer and (tensor.shape.rank or 0) <= 1
        row = registry.lookup(op.type)
        if row.semantics.role is Role.CONSTANT or row.semantics.known_from_shape:
            return True
        # An empty list of inputs is a source of its own (a variable's value, a random draw): not
        # known.
        follows = (
            row.foldable
            and bool(op.inputs)
            and not folding.too_large_to_fold(op)
            and all(map(self.resolve, op.inputs))
        )
        if follows:
            self._computed.add(op)
        return follows

    def reductions(self) -> set[Operation]:
        """Operations that reduce a vector from outside to a scalar, to run on the host.

        A new vector of lengths is then a new compilation only if, say, its maximum changes.
        """
        found: set[Operation] = set()
        for op in self._computed:
            vectors = [tensor for tensor in op.inputs if tensor.shape.rank != 0]
            if op.outputs[0].shape.rank == 0 and any(map(self._from_outside, vectors)):
                pending = [op]
                while pending:
                    each = pending.pop()
                    found.add(each)
                    pending.extend(
                        tensor.op
                        for tensor in map(self._rewriting.resolve, each.inputs)
                        if tensor.op in self._computed
                        and tensor.op not in found
                        and tensor not in self._fed
                        and self._from_outside(tensor)
                    )
        return found

    def _from_outside(self, tensor: Tensor) -> bool:
        """Whether a value depends on feeds or host values, rather than on shapes alone."""
        tensor = self._rewriting.resolve(tensor)
        if tensor in self._fed or self._places.get(tensor.op) == ("host", ""):
            return True
        return tensor.op in self._computed and any(map(self._from_outside, tensor.op.inputs))


def order_of(ops: Sequence[Operation], fed: set[Tensor]) -> dict[Operation, list[Operation]]:
    """The predecessors of each operation: producers of its inputs, its control inputs, and earlier
    readers and writers of its variables.
    """
    edges = _edges(ops, fed, _StaticValues(fed, {}, _AS_WRITTEN), _AS_WRITTEN)
    return {op: [earlier for earlier, _ in before] for op, before in edges.items()}


_AS_WRITTEN = Rewriting()

_Edges = dict[Operation, list[tuple[Operation, bool]]]
"""For each operation its predecessors; True where a value must be known to compile it."""


def _edges(
    ops: Sequence[Operation], fed: set[Tensor], static: _StaticValues, rewriting: Rewriting
) -> _Edges:
    chosen = set(ops)
    edges: _Edges = {}
    last_write: dict[Tensor, Operation] = {}
    since_write: dict[Tensor, list[Operation]] = {}
    for op in ops:
        row = registry.lookup(op.type)
        static_positions = row.semantics.static_positions(op.attrs)
        updates = row.semantics.updated_positions(op.attrs)
        before: list[tuple[Operation, bool]] = []
        for position, tensor in enumerate(op.inputs):
            if tensor.dtype is resource:
                continue
            known = position not in static_positions or static.resolve(tensor)
            tensor = rewriting.resolve(tensor)
            if not known:
                static.from_outside.add(tensor)
            if tensor not in fed and tensor.op in chosen:
                before.append((tensor.op, not known))
            if role_of(tensor.op) is Role.CONSTANT:
                others = tensor.op.control_inputs
                before.extend((other, False) for other in others if other in chosen)
        before.extend((other, False) for other in op.control_inputs if other in chosen)
        # Reads and writes of one variable keep creation order.
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
    ops: Sequence[Operation], places: dict[Operation, Location], edges: _Edges
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
    if len({device for place, device in places.values() if place == "device"}) > 1:
        return levels
    last: dict[Location, int] = {}
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
    rewriting: Rewriting,
) -> None:
    """Fills in the inputs, outputs, reads and writes of each segment."""
    home = {op: segment for segment in segments for op in segment.ops}
    wanted: dict[Segment, dict[Tensor, None]] = {segment: {} for segment in segments}
    for segment in segments:
        inputs: dict[Tensor, None] = {}
        reads: dict[str, None] = {}
        writes: dict[str, None] = {}
        for op in segment.ops:
            row = registry.lookup(op.type)
            updates = row.semantics.updated_positions(op.attrs)
            for position, tensor in enumerate(map(rewriting.resolve, op.inputs)):
                if tensor.dtype is resource:
                    name = tensor.op.name
                    if position not in row.semantics.overwrites and name not in writes:
                        reads[name] = None
                    if position in updates:
                        writes[name] = None
                elif tensor in fed or (
                    # A value that compilation needs is compiled in.
                    tensor not in static.from_outside and _is_large_constant(tensor, segment)
                ):
                    inputs[tensor] = None
                elif tensor.op in home and home[tensor.op] is not segment:
                    inputs[tensor] = None
                    wanted[home[tensor.op]][tensor] = None
            if row.semantics.random:
                segment.random.append(op.name)
        segment.inputs = list(inputs)
        segment.static_inputs = [tensor for tensor in inputs if tensor in static.from_outside]
        segment.reads = list(reads)
        segment.writes = sorted(writes, key=lambda name: name not in reads)  # see CompiledSegment
    for tensor in map(rewriting.resolve, fetches):
        if tensor not in fed and tensor.op in home:
            wanted[home[tensor.op]][tensor] = None
    for segment in segments:
        segment.outputs = list(wanted[segment])


def _is_large_constant(tensor: Tensor, segment: Segment) -> bool:
    return (
        segment.place == "device"
        and role_of(tensor.op) is Role.CONSTANT
        and tensor.op.attrs["value"].nbytes > LARGE_CONSTANT
    )
