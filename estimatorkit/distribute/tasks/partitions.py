"""Partitioning a run by task: what each task runs, and at which level.

Every operation gets a level such that edges between tasks lead to higher levels. The operations of
one task and level are a *partition*, which its task plans and compiles as a run of its own graph:
tensors from elsewhere are fed, those that others need are fetched. Partitions of one level run
concurrently. Operations of this process get the latest possible level, so that its work between two
replies is a single partition, except for initial host work such as reading the input, which
overlaps with other tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Role, never_runs, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.distribute.tasks.task_placement import HERE, readable_tensors
from estimatorkit.runtime.plan import Segment, is_on_host, needed_operations, order_of


@dataclass(eq=False)
class Partition:
    """The operations of one task between two exchanges.

    Attributes:
        task: its name, or `HERE`.
        level: partitions of the same level are independent.
        ops: the operations.
        inputs: fed tensors, and outputs of other partitions.
        outputs: tensors that other partitions or the caller use.
        kept: those of `inputs` that an earlier partition of the same task computed.
        last: whether it is the task's last partition.
    """

    task: str
    level: int
    ops: list[Operation] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    kept: list[Tensor] = field(default_factory=list)
    last: bool = True

    @property
    def targets(self) -> list[Operation]:
        """Sinks: operations that no other operation of the partition consumes."""
        used = {tensor.op for op in self.ops for tensor in op.inputs}
        used.update(tensor.op for tensor in self.outputs)
        used.update(control for op in self.ops for control in op.control_inputs)
        return [op for op in self.ops if op not in used]


@dataclass(frozen=True, eq=False)
class Partitions:
    """A run partitioned by task.

    Attributes:
        fetches, feeds: those of the run.
        levels: the partitions, in topological order.
        sent: by partition, the outputs needed outside its task.
    """

    fetches: tuple[Tensor, ...]
    feeds: tuple[Tensor, ...]
    levels: tuple[tuple[Partition, ...], ...]
    sent: dict[Partition, list[Tensor]]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Empty, as each task plans its own partitions."""
        return ()

    def describe(self) -> str:
        """The partitions as text: what each task receives, runs and sends."""
        parts = [part for level in self.levels for part in level]
        lines = [f"{sum(len(part.ops) for part in parts)} operations in {len(parts)} parts"]
        for number, part in enumerate(parts):
            lines.append(f"part {number} of {part.task or 'this process'}")
            for label, tensors in (
                ("receives", [each for each in part.inputs if each not in part.kept]),
                ("kept", part.kept),
                ("sends", self.sent[part]),
            ):
                if tensors:
                    lines.append(f"  {label}: {', '.join(tensor.name for tensor in tensors)}")
            lines.extend(f"    {op}" for op in part.ops)
        return "\n".join(lines)


def partition_by_task(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    task_of: Callable[[Operation], str],
    elsewhere: Collection[Operation] = frozenset(),
) -> Partitions:
    """Partitions a run by task.

    Args:
        graph: the graph.
        fetches, targets, feeds, elsewhere: see `plan.make_plan`.
        task_of: maps an operation to its task.

    Raises:
        InvalidArgumentError: a required placeholder is not fed, or a task does not exist.
    """
    fed = set(feeds)
    ops = needed_operations(fetches, targets, fed, elsewhere=elsewhere)
    before = order_of(ops, fed)
    tasks: dict[Operation, str] = {}
    for op in ops:
        tasks[op] = task_of(op)
        if role_of(op) is Role.NO_OP:
            # A no-op runs on the task that it waits for, or else here: this saves a round trip.
            waited = {tasks[earlier] for earlier in before[op]}
            tasks[op] = waited.pop() if len(waited) == 1 else HERE
    levels = _levels(ops, tasks, before)
    parts: dict[tuple[int, str], Partition] = {}
    for op in ops:
        key = levels[op], tasks[op]
        parts.setdefault(key, Partition(tasks[op], levels[op])).ops.append(op)
    ordered = [parts[key] for key in sorted(parts)]
    sent = _connect(ordered, fetches, fed)
    by_level: dict[int, list[Partition]] = {}
    for part in ordered:
        by_level.setdefault(part.level, []).append(part)
    return Partitions(tuple(fetches), tuple(feeds), tuple(map(tuple, by_level.values())), sent)


def _levels(
    ops: Sequence[Operation],
    tasks: dict[Operation, str],
    before: dict[Operation, list[Operation]],
) -> dict[Operation, int]:
    levels: dict[Operation, int] = {}
    after: dict[Operation, list[Operation]] = {op: [] for op in ops}
    for op in ops:  # as early as possible
        levels[op] = 0
        for earlier in before[op]:
            levels[op] = max(levels[op], levels[earlier] + int(tasks[earlier] != tasks[op]))
            after[earlier].append(op)
    works = [op for op in ops if tasks[op] == HERE and role_of(op) is not Role.NO_OP]
    last = max((levels[op] for op in works), default=0)
    for op in reversed(ops):
        if tasks[op] == HERE and not (levels[op] == 0 and is_on_host(op)):  # as late as possible
            levels[op] = min(
                (levels[later] - int(tasks[later] != HERE) for later in after[op]),
                default=max(levels[op], last),
            )
    _delay_reads(levels, tasks, after)
    return levels


def _delay_reads(
    levels: dict[Operation, int],
    tasks: dict[Operation, str],
    after: dict[Operation, list[Operation]],
) -> None:
    """Moves variable reads to a later level at which their task has other work, if early enough,
    to save a round trip.
    """
    works = {(tasks[op], level) for op, level in levels.items() if role_of(op) is not Role.READ}
    for op, level in levels.items():
        if role_of(op) is Role.READ and tasks[op] != HERE:
            latest = min(
                (levels[later] - int(tasks[later] != tasks[op]) for later in after[op]),
                default=level,
            )
            places = [at for at in range(level, latest + 1) if (tasks[op], at) in works]
            levels[op] = max(places, default=level)


def _connect(
    parts: Sequence[Partition], fetches: Sequence[Tensor], fed: set[Tensor]
) -> dict[Partition, list[Tensor]]:
    """Fills in the inputs and outputs of partitions; returns the outputs that leave their task."""
    home = {op: part for part in parts for op in part.ops}
    outputs: dict[Partition, dict[Tensor, None]] = {part: {} for part in parts}
    sent: dict[Partition, dict[Tensor, None]] = {part: {} for part in parts}
    latest: dict[str, Partition] = {}
    for part in parts:
        inputs: dict[Tensor, None] = {}
        for op in part.ops:
            for tensor in readable_tensors(op.inputs):
                if tensor in fed:
                    inputs[tensor] = None
                elif not never_runs(tensor.op) and home[tensor.op] is not part:
                    maker = home[tensor.op]
                    inputs[tensor] = None
                    outputs[maker][tensor] = None
                    if maker.task != part.task:
                        sent[maker][tensor] = None
        part.inputs = list(inputs)
        part.kept = [
            tensor
            for tensor in inputs
            if tensor not in fed and part.task != HERE and home[tensor.op].task == part.task
        ]
        if part.task in latest:
            latest[part.task].last = False
        latest[part.task] = part
    for tensor in fetches:
        if tensor not in fed and tensor.op in home:
            outputs[home[tensor.op]][tensor] = None
            sent[home[tensor.op]][tensor] = None
    for part in parts:
        part.outputs = list(outputs[part])
    return {part: list(tensors) for part, tensors in sent.items()}
