"""`SerializedPartition`: a partition of a run as a graph of its own, in bytes, for another task.

Tensors from other partitions become placeholders. Handles keep their names, so that variables and
queues are the task's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import UnimplementedError
from estimatorkit.core.function_graph import functions_held, operations_within
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import never_runs
from estimatorkit.core.source import SourceLine
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.distribute.tasks.partitions import Partition
from estimatorkit.interop.graphdef import graph_def_of_operations, import_graph_def


@dataclass(frozen=True)
class SerializedPartition:
    """A partition in serialized form.

    Attributes:
        graph_def: the serialized graph.
        inputs: the names of the feeds, in order.
        outputs: the names of the fetches, in order.
        kept: those of `inputs` that an earlier partition of the run left on the task.
        sent: those of `outputs` to send back; others stay for later partitions of the run.
        last: whether it is the run's last partition on the task.
        soft: whether to replace missing devices by the default one.
        optimize: whether to optimize the graph.
        targets: the names of the operations to run.
        sources: the line of user code of each operation, including those in functions.
    """

    graph_def: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kept: tuple[str, ...]
    sent: tuple[str, ...]
    last: bool
    soft: bool
    optimize: bool
    targets: tuple[str, ...]
    sources: dict[str, tuple[str, int, str]]

    @staticmethod
    def of(
        part: Partition, sent: Sequence[Tensor], soft: bool = True, optimize: bool = True
    ) -> SerializedPartition:
        """Serializes a partition.

        Args:
            part: the partition.
            sent: those of its outputs to send back.
            soft, optimize: see the attributes.

        Raises:
            UnimplementedError: it exceeds 2 GiB.
        """
        own = set(part.ops)
        needed = sorted(own | _named(part.ops), key=lambda op: op.index)
        fed = _placeholders(part.inputs, needed)
        graph_def = graph_def_of_operations([*fed.values(), *needed])
        for node, op in zip(graph_def.node[len(fed) :], needed, strict=True):
            inputs = [
                fed[tensor].name if tensor in fed else _input_name(tensor) for tensor in op.inputs
            ]
            controls = [f"^{control.name}" for control in op.control_inputs if control in own]
            del node.input[:]
            node.input.extend([*inputs, *controls])
        size = graph_def.ByteSize()
        if size >= 1 << 31:
            large = max(needed, key=lambda op: getattr(op.attrs.get("value"), "nbytes", 0))
            raise UnimplementedError.explained(
                f"the graph for {part.task} is too large to send",
                expected="less than 2 GiB",
                received=f"{size} bytes; its largest constant is {large.name}",
                made_at=large.source,
                hint="use an initializer instead of a constant, or feed the value",
                op=large,
            )
        return SerializedPartition(
            graph_def.SerializeToString(deterministic=True),
            tuple(tensor.name for tensor in part.inputs),
            tuple(tensor.name for tensor in part.outputs),
            tuple(tensor.name for tensor in part.kept),
            tuple(tensor.name for tensor in sent),
            part.last,
            soft,
            optimize,
            tuple(op.name for op in part.targets),
            {name: (*op.source,) for name, op in _with_functions(needed)},
        )

    def load(self) -> tuple[Graph, list[Tensor], list[Tensor], list[Operation]]:
        """Deserializes the graph, feeds, fetches and targets."""
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        graph_def = GraphDef.FromString(self.graph_def)
        graph = Graph()
        with graph.as_default():
            import_graph_def(graph_def, name="", trusted=True)
        for name, op in _with_functions(graph.get_operations()):
            if name in self.sources:  # placeholders have no source
                op.source = SourceLine(*self.sources[name])
        placeholders = graph_def.node[: len(self.inputs)]
        fed = [graph.get_tensor_by_name(f"{node.name}:0") for node in placeholders]
        fetched = [graph.get_tensor_by_name(name) for name in self.outputs]
        return graph, fed, fetched, [graph.get_operation_by_name(name) for name in self.targets]


def _input_name(tensor: Tensor) -> str:
    return tensor.op.name if tensor.value_index == 0 else tensor.name


def _placeholders(
    tensors: Sequence[Tensor], others: Sequence[Operation]
) -> dict[Tensor, Operation]:
    """Creates placeholders for tensors, named like their producers for error messages."""
    graph = Graph()
    for op in others:
        graph.unique_name(op.name)
    with graph.as_default():
        return {each: placeholder(each.dtype, each.shape, each.op.name).op for each in tensors}


def _with_functions(ops: Iterable[Operation], within: str = "") -> Iterator[tuple[str, Operation]]:
    """Operations, including those in their functions, by unique names."""
    for op in ops:
        name = f"{within}{op.name}"
        yield name, op
        for number, function in enumerate(functions_held(op.attrs)):
            yield from _with_functions(function.graph.get_operations(), f"{name}({number})")


def _named(ops: Sequence[Operation]) -> set[Operation]:
    """The operations referenced but not run: constants, variable handles, and handles named in
    attributes.
    """
    found: set[Operation] = set()
    for op in ops:
        found.update(
            tensor.op for tensor in op.inputs if tensor.dtype is resource or never_runs(tensor.op)
        )
        for each in (op, *operations_within(op)):
            for name in (name for value in each.attrs.values() for name in _strings(value)):
                handle = op.graph.find_operation(name)
                if handle is not None and not handle.inputs and not handle.outputs:
                    found.add(handle)
    return found


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, tuple) else []
