"""Graphs as TensorFlow reads them: `GraphDef`s of TensorFlow's own node types.

The other way than `graphdef_tensorflow`. A rule (`graphdef_export_rules`) writes the nodes that
stand for an operation; the last has its name, so that most tensors keep theirs (`Exported.names`).
What has no rule (gradients, optimizers, loops) is left out with all that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from estimatorkit.core import attr_values
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.graph import Graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor

_PRODUCER, _MIN_CONSUMER = 134, 12  # of TensorFlow 1.15, whose node types are written


class InexpressibleError(Exception):
    """TensorFlow has no node types for an operation as it is; the message tells why."""


@dataclass
class Exported:
    """A graph in TensorFlow's node types.

    Attributes:
        graph_def: the `GraphDef`.
        names: what nodes call each tensor: 'x', 'x:1'; '^x' of those that have no output there.
        missing: why operations are not in it, by their names: those that cannot be expressed.
        operations: those that are in it.
    """

    graph_def: Any
    names: dict[Tensor, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    operations: set[Operation] = field(default_factory=set)

    def has(self, element: Tensor | Operation) -> bool:
        """Whether a tensor or an operation is in it."""
        if isinstance(element, Operation):
            return element in self.operations
        return not self.names.get(element, "^").startswith("^")

    def name_of(self, tensor: Tensor) -> str:
        """A tensor's name there, as 'x:0'."""
        name = self.names[tensor]
        return name if ":" in name else f"{name}:0"


class Writer:
    """Writes the nodes of one operation.

    Attributes:
        op: the operation.
        inputs: what its inputs are called.
        consumed: whether an operation takes one of its outputs.
        tables: names of nodes of tables, by what operations call the tables.
    """

    def __init__(
        self,
        op: Operation,
        inputs: list[str],
        consumed: bool,
        tables: dict[str, str],
        taken: set[str],
    ) -> None:
        self.op, self.inputs, self.consumed, self.tables = op, inputs, consumed, tables
        self.nodes: list[Any] = []
        self._taken = taken

    @property
    def attrs(self) -> Any:
        """The operation's attributes."""
        return self.op.attrs

    def dtype(self, position: int = 0) -> DType:
        """The dtype of an input."""
        return self.op.inputs[position].dtype

    def rank(self, position: int = 0) -> int:
        """The rank of an input, which must be known."""
        rank = self.op.inputs[position].shape.rank
        if rank is None:
            raise InexpressibleError("the rank of its input is not known")
        return rank

    def require(self, condition: bool, problem: str) -> None:
        """Gives up where a condition does not hold."""
        if not condition:
            raise InexpressibleError(problem)

    def node(self, type_: str, inputs: Sequence[str], part: str = "", /, **attrs: Any) -> str:
        """Writes a node, and gives the name of its first output.

        Args:
            type_: its type.
            inputs: names of tensors; '^name' for operations that must run before.
            part: the end of its name below the operation's; '' for the operation's own.
            **attrs: its attributes.
        """
        from tensorboard.compat.proto.node_def_pb2 import NodeDef

        made = NodeDef(name=self._name(part), op=type_, device=self.op.device)
        made.input.extend(inputs)
        for key, value in attrs.items():
            made.attr[key].CopyFrom(attr_value(value))
        self.nodes.append(made)
        return str(made.name)

    def const(self, value: Any, part: str, dtype: Any = None) -> str:
        """Writes a constant, and gives its name."""
        array = np.asarray(value, None if dtype is None else as_dtype(dtype).numpy_dtype)
        return self.node("Const", [], part, dtype=as_dtype(array.dtype), value=array)

    def _name(self, part: str) -> str:
        if not part:
            return self.op.name
        name = whole = f"{self.op.name}/{part}"
        number = 0
        while name in self._taken:
            number += 1
            name = f"{whole}_{number}"
        self._taken.add(name)
        return name


Rule = Callable[[Writer], Sequence[str] | None]
"""Writes an operation's nodes; gives what its outputs are called, by default 'x', 'x:1', ..."""


def plain(type_: str, *kept: str) -> Rule:
    """The rule of the same node, without a dtype; `kept` attributes are the same."""

    def rule(w: Writer) -> None:
        w.node(type_, w.inputs, **{key: w.attrs[key] for key in kept})

    return rule


def attr_value(value: Any) -> Any:
    """The `AttrValue` of an attribute of TensorFlow's."""
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return AttrValue(f=value)
    if isinstance(value, int) and not isinstance(value, bool):  # a known dimension too
        return AttrValue(i=int(value))
    if isinstance(value, (list, tuple)):
        made = AttrValue(list=AttrValue.ListValue())
        for each in value:
            if isinstance(each, DType):
                made.list.type.append(each.as_datatype_enum)
            elif isinstance(each, TensorShape):
                made.list.shape.append(attr_values.shape_proto(each))
            elif isinstance(each, (str, bytes)):
                made.list.s.append(each.encode() if isinstance(each, str) else each)
            elif isinstance(each, float):
                made.list.f.append(each)
            else:
                made.list.i.append(each)
        return made
    return attr_values.encode(value)


def export_graph(graph: Graph) -> Exported:
    """A graph in TensorFlow's node types, but for what has none."""
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.versions_pb2 import VersionDef

    from estimatorkit.core.graphdef_export_rules import RULES

    operations = graph.get_operations()
    consumed = {tensor.op for op in operations for tensor in op.inputs}
    tables = {
        op.attrs["shared_name"] or op.name: op.name for op in operations if op.type == "HashTableV2"
    }
    taken = {op.name for op in operations}
    versions = VersionDef(producer=_PRODUCER, min_consumer=_MIN_CONSUMER)
    made = Exported(GraphDef(versions=versions))
    for op in operations:
        here = made.operations
        if not all(map(made.has, op.inputs)) or not here.issuperset(op.control_inputs):
            continue
        inputs = [made.names[source] for source in op.inputs]
        writer = Writer(op, inputs, op in consumed, tables, taken)
        try:
            rule = RULES.get(op.type)
            if rule is None:
                raise InexpressibleError(f"there is no node type for {op.type}")
            outputs = rule(writer)
        except InexpressibleError as problem:
            made.missing[op.name] = f"{op.type}: {problem}"
            continue
        controls = [f"^{each.name}" for each in op.control_inputs]
        for node in writer.nodes:
            if node.op != "Const" or node.name == op.name:
                node.input.extend(controls)
        made.graph_def.node.extend(writer.nodes)
        here.add(op)
        names = outputs or [tensor.name.removesuffix(":0") for tensor in op.outputs]
        made.names.update(zip(op.outputs, names, strict=True))
    return made


__all__ = [
    "Exported",
    "InexpressibleError",
    "Rule",
    "Writer",
    "attr_value",
    "export_graph",
    "plain",
]
