"""Writing operations as TensorFlow's nodes: `Writer`, which export rules use, and `write`.

A rule writes the nodes for an operation; the last has the operation's name, so that most tensors
keep theirs (`Exported.names`). A rule may also rewrite an operation in terms of others
(`composed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.dtypes import DType, as_dtype, int32
from estimatorkit.core.graph import Graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop import attr_values
from estimatorkit.ops.math.axes import input_of

_PRODUCER, _MIN_CONSUMER = 134, 12  # TensorFlow 1.15's versions


class InexpressibleError(Exception):
    """TensorFlow's node types cannot express an operation; the message has the reason."""


@dataclass
class Exported:
    """A graph in TensorFlow's node types.

    Attributes:
        names: the exported name of each tensor: 'x', 'x:1'; '^x' if the node has no output.
        nodes: its `NodeDef`s.
        missing: the reasons why operations could not be exported, by name.
        operations: the exported operations.
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
        """Returns whether a tensor or operation was exported."""
        if isinstance(element, Operation):
            return element in self.operations
        return not self.names.get(element, "^").startswith("^")

    def name_of(self, tensor: Tensor) -> str:
        """Returns a tensor's exported name, as 'x:0'."""
        name = self.names[tensor]
        return name if ":" in name else f"{name}:0"


@dataclass(frozen=True)
class Scope:
    """The context in which nodes are written.

    Attributes:
        prefix: the prefix of operation names; empty, or ends in '/'.
        tables: node names of tables, by the operations' names for them.
        taken: used names.
        pivot: a control input ('^name') for nodes without inputs, which ties them to a loop or
            branch; '' elsewhere.
        rules: the rule for each op type.
        device: the device of all nodes; None: the operations' own.
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
        inputs: the exported names of its inputs.
        names: the exported names of all preceding tensors.
        consumed: whether an operation consumes one of its outputs.
        name: the name of its last node.
    """

    def __init__(self, op: Operation, names: dict[Tensor, str], consumed: bool, scope: Scope):
        self.op, self.names, self.consumed, self._scope = op, names, consumed, scope
        self.inputs = [names[source] for source in op.inputs]
        self.name = scope.prefix + op.name
        self.nodes: list[Any] = []

    @property
    def tables(self) -> dict[str, str]:
        """Node names of tables, by the operations' names for them."""
        return self._scope.tables

    @property
    def attrs(self) -> Any:
        """The operation's attributes."""
        return self.op.attrs

    def dtype(self, position: int = 0) -> DType:
        """Returns the dtype of an input."""
        return self.op.inputs[position].dtype

    def rank(self, position: int = 0) -> int:
        """Returns the rank of an input, which must be known."""
        rank = self.op.inputs[position].shape.rank
        if rank is None:
            raise InexpressibleError("the rank of its input is unknown")
        return rank

    def require(self, condition: bool, problem: str) -> None:
        """Raises InexpressibleError if a condition does not hold."""
        if not condition:
            raise InexpressibleError(problem)

    def node(self, type_: str, inputs: Sequence[str], part: str = "", /, **attrs: Any) -> str:
        """Writes a node, and returns the name of its first output.

        In `inputs`, '^name' is a control input. `part` is the name's suffix below the operation's
        name; '' for the operation's own name.
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
        """Writes a constant, and returns its name."""
        array = np.asarray(value, None if dtype is None else as_dtype(dtype).numpy_dtype)
        return self.node("Const", [], part, dtype=as_dtype(array.dtype), value=array)

    def number(self, attr: str, part: str) -> tuple[str, DType]:
        """An attribute that is an input in TensorFlow, and may be one here: its name and dtype.

        None stands for all axes.
        """
        value = self.attrs[attr]
        place = input_of(value)
        if place is None:
            known = list(range(self.rank())) if value is None else value
            return self.const(known, part, int32), int32
        return self.inputs[place], self.dtype(place)

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
        """Writes operations of another graph inline, and returns the names of their outputs.

        `operations` are in topological order; `given` names existing tensors; `part` is the scope's
        suffix below the operation's name; `pivot` is by default that of this operation (see
        `Scope`). Raises InexpressibleError if an operation cannot be exported.
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
        """Writes nodes that forward these tensors as the operation's outputs."""
        dtypes = [output.dtype for output in self.op.outputs]
        if len(names) == 1:
            self.node("Identity", names, T=dtypes[0])
        else:
            self.node("IdentityN", names, T=dtypes)


Rule = Callable[[Writer], Sequence[str] | None]
"""Writes an operation's nodes; returns its outputs' names, 'x', 'x:1', ... by default."""


def plain(type_: str, dtypes: str = "", kept: str = "") -> Rule:
    """Returns the rule of a single node with the operation's inputs.

    `dtypes` are the dtype attributes of the first inputs, in order. `kept` are attributes to copy,
    `theirs=ours` if renamed; `N` is the number of inputs.
    """
    pairs = [each.partition("=") for each in kept.split()]

    def rule(w: Writer) -> None:
        attrs: dict[str, Any] = {key: w.dtype(at) for at, key in enumerate(dtypes.split())}
        for theirs, _, ours in pairs:
            attrs[theirs] = len(w.inputs) if theirs == "N" else w.attrs[ours or theirs]
        w.node(type_, w.inputs, **attrs)

    return rule


def rows(rule: Callable[[str], Rule], types: str) -> dict[str, Rule]:
    """Returns a rule for each of the types, which are separated by spaces."""
    return {each: rule(each) for each in types.split()}


def composed(build: Callable[..., Sequence[Tensor]]) -> Rule:
    """Returns the rule of an operation that is exported as other operations.

    `build(attrs, *inputs)` creates these, and returns their outputs.
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
    """Returns the `AttrValue` of an attribute in TensorFlow's encoding."""
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return AttrValue(f=value)
    if isinstance(value, int) and not isinstance(value, bool):  # a static dimension, too
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
    """Writes operations in topological order, recording those that cannot be exported."""
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
