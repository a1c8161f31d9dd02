"""Writing operations as nodes of TensorFlow's types: `Writer`, the rules' tool, and `write`.

A rule writes the nodes that stand for an operation; the last has its name, so that most tensors
keep theirs (`Exported.names`). An operation may also be written as others (`composed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.graph import Graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop import attr_values

_PRODUCER, _MIN_CONSUMER = 134, 12  # of TensorFlow 1.15, whose node types are written


class InexpressibleError(Exception):
    """TensorFlow has no node types for an operation as it is; the message tells why."""


@dataclass
class Exported:
    """A graph in TensorFlow's node types.

    Attributes:
        names: what nodes call each tensor: 'x', 'x:1'; '^x' of those that have no output there.
        nodes: its `NodeDef`s.
        missing: why operations are not in it, by their names: those that cannot be expressed.
        operations: those that are in it.
    """

    names: dict[Tensor, str] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    operations: set[Operation] = field(default_factory=set)

    @property
    def graph_def(self) -> Any:
        """The nodes as a `GraphDef`."""
        from tensorboard.compat.proto.graph_pb2 import GraphDef
        from tensorboard.compat.proto.versions_pb2 import VersionDef

        versions = VersionDef(producer=_PRODUCER, min_consumer=_MIN_CONSUMER)
        return GraphDef(node=self.nodes, versions=versions)

    def has(self, element: Tensor | Operation) -> bool:
        """Whether a tensor or an operation is in it."""
        if isinstance(element, Operation):
            return element in self.operations
        return not self.names.get(element, "^").startswith("^")

    def name_of(self, tensor: Tensor) -> str:
        """A tensor's name there, as 'x:0'."""
        name = self.names[tensor]
        return name if ":" in name else f"{name}:0"


@dataclass(frozen=True)
class Scope:
    """Where nodes are written.

    Attributes:
        prefix: put before the names of operations; empty, or ends in '/'.
        tables: names of nodes of tables, by what operations call the tables.
        taken: names that are in use.
        pivot: what nodes without inputs must run after ('^name'): in a loop or a branch, so that
            they run when it does; empty elsewhere.
        rules: the rule for each op type.
        device: that of all nodes; None: as the operations say.
    """

    prefix: str
    tables: dict[str, str]
    taken: set[str]
    rules: Mapping[str, Rule]
    pivot: str = ""
    device: str | None = None


class Writer:
    """Writes the nodes of one operation.

    Attributes:
        op: the operation.
        inputs: what its inputs are called.
        names: what all tensors before it are called.
        consumed: whether an operation takes one of its outputs.
        name: what its last node is called.
    """

    def __init__(self, op: Operation, names: dict[Tensor, str], consumed: bool, scope: Scope):
        self.op, self.names, self.consumed, self._scope = op, names, consumed, scope
        self.inputs = [names[source] for source in op.inputs]
        self.name = scope.prefix + op.name
        self.nodes: list[Any] = []

    @property
    def tables(self) -> dict[str, str]:
        """Names of nodes of tables, by what operations call the tables."""
        return self._scope.tables

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

        device = self.op.device if self._scope.device is None else self._scope.device
        made = NodeDef(name=self._name(part), op=type_, device=device)
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
            return self.name
        name = whole = f"{self.name}/{part}"
        number = 0
        while name in self._scope.taken:
            number += 1
            name = f"{whole}_{number}"
        self._scope.taken.add(name)
        return name

    def graph(
        self,
        operations: Sequence[Operation],
        given: Mapping[Tensor, str],
        part: str,
        pivot: str = "",
    ) -> dict[Tensor, str]:
        """Writes the operations of another graph, and gives what their outputs are called.

        Args:
            operations: those that are wanted, in the order in which they run.
            given: what tensors are called that exist already.
            part: the end of the scope's name below the operation's.
            pivot: what nodes without inputs must run after; as for this operation by default.

        Raises:
            InexpressibleError: TensorFlow has no node types for one of them.
        """
        scope = replace(
            self._scope,
            prefix=f"{self._name(part)}/",
            pivot=pivot or self._scope.pivot,
            device=self.op.device if self._scope.device is None else self._scope.device,
        )
        made = Exported(dict(given))
        write(operations, made, scope)
        for problem in made.missing.values():
            raise InexpressibleError(problem)
        self.nodes.extend(made.nodes)
        return made.names

    def identities(self, names: Sequence[str]) -> None:
        """Writes what gives these tensors as the operation's outputs."""
        dtypes = [output.dtype for output in self.op.outputs]
        if len(names) == 1:
            self.node("Identity", names, T=dtypes[0])
        else:
            self.node("IdentityN", names, T=dtypes)


Rule = Callable[[Writer], Sequence[str] | None]
"""Writes an operation's nodes; gives what its outputs are called, by default 'x', 'x:1', ..."""


def plain(type_: str, dtypes: str = "", kept: str = "") -> Rule:
    """The rule of one node that takes the operation's inputs.

    Args:
        type_: its type.
        dtypes: the attributes that tell the dtypes of the first inputs, in order.
        kept: attributes that are the same here, `theirs=ours` where they have another name; `N` is
            the number of inputs.
    """
    pairs = [each.partition("=") for each in kept.split()]

    def rule(w: Writer) -> None:
        attrs: dict[str, Any] = {key: w.dtype(at) for at, key in enumerate(dtypes.split())}
        for theirs, _, ours in pairs:
            attrs[theirs] = len(w.inputs) if theirs == "N" else w.attrs[ours or theirs]
        w.node(type_, w.inputs, **attrs)

    return rule


def rows(rule: Callable[[str], Rule], types: str) -> dict[str, Rule]:
    """The rules of several types, separated by spaces, each made for its own."""
    return {each: rule(each) for each in types.split()}


def composed(build: Callable[..., Sequence[Tensor]]) -> Rule:
    """The rule of an operation that is written as others of this package.

    Args:
        build: `build(attrs, *inputs)` makes them, and gives their outputs.
    """

    def rule(w: Writer) -> None:
        graph = Graph()
        with graph.as_default():
            given = [placeholder(each.dtype, each.shape) for each in w.op.inputs]
            outputs = build(w.attrs, *given)
        names = dict(zip(given, w.inputs, strict=True))
        found = w.graph(graph.get_operations(), names, "parts")
        w.identities([found[each] for each in outputs])

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
                made.list.shape.append(each.as_proto())
            elif isinstance(each, (str, bytes)):
                made.list.s.append(each.encode() if isinstance(each, str) else each)
            elif isinstance(each, float):
                made.list.f.append(each)
            else:
                made.list.i.append(each)
        return made
    return attr_values.encode(value)


def write(operations: Sequence[Operation], made: Exported, scope: Scope) -> None:
    """Writes operations whose inputs are there, in their order."""
    consumed = {tensor.op for op in operations for tensor in op.inputs}
    for op in operations:
        here = made.operations
        if op.outputs and all(output in made.names for output in op.outputs):
            continue  # given
        if not all(map(made.has, op.inputs)) or not here.issuperset(op.control_inputs):
            continue
        writer = Writer(op, made.names, op in consumed, scope)
        try:
            rule = scope.rules.get(op.type)
            if rule is None:
                raise InexpressibleError(f"there is no node type for {op.type}")
            outputs = rule(writer)
        except InexpressibleError as problem:
            made.missing[op.name] = f"{op.type}: {problem}"
            continue
        controls = [f"^{scope.prefix}{each.name}" for each in op.control_inputs]
        for node in writer.nodes:
            if node.op != "Const" or node.name == writer.name:
                node.input.extend(controls)
            if scope.pivot and not node.input:
                node.input.append(scope.pivot)
        made.nodes.extend(writer.nodes)
        here.add(op)
        names = outputs or [
            f"{writer.name}:{at}" if at else writer.name for at in range(len(op.outputs))
        ]
        made.names.update(zip(op.outputs, names, strict=True))
