"""Functions of operations (branches, loop bodies, `Defun`s) in a `GraphDef`'s library.

A `GraphFunction` becomes a `FunctionDef`: inputs and outputs with dtypes, and the nodes of its
body, including placeholders, with inputs named as in a graph. Attributes refer to it by name. When
read back, captures are resolved by the operation's `positions`, the index of the operation's input
for each function input. Functions in internal attributes (custom gradients) are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop.attr_values import FunctionName, decode

_ARGUMENTS = "arguments"


class FunctionWriter:
    """Adds functions to a `FunctionDefLibrary`.

    `node_def` converts an operation to a `NodeDef`, given this writer.
    """

    def __init__(self, library: Any, node_def: Callable[[Operation, FunctionWriter], Any]) -> None:
        self._library, self._node_def = library, node_def
        self._names: dict[Any, str] = {}

    def named(self, op: Operation, value: Any) -> Any:
        """Returns an attribute of `op` with functions replaced by names."""
        from estimatorkit.core.function_graph import GraphFunction

        if isinstance(value, GraphFunction):
            return FunctionName(self._names.get(value) or self._write(op, value))
        if type(value) is tuple:
            return tuple(self.named(op, each) for each in value)
        if type(value) is dict:
            return {key: self.named(op, each) for key, each in value.items()}
        return value

    def _write(self, op: Operation, function: Any) -> str:
        from tensorboard.compat.proto.attr_value_pb2 import AttrValue

        name = f"{op.name}_function_{len(self._names)}".replace("/", "_")
        self._names[function] = name
        nodes = [self._node_def(each, self) for each in function.graph.get_operations()]
        made = self._library.function.add()
        made.signature.name = name
        made.node_def.extend(nodes)
        made.attr[_ARGUMENTS].CopyFrom(AttrValue(i=len(function.arguments)))
        for tensor in function.inputs:
            dtype = tensor.dtype.as_datatype_enum
            made.signature.input_arg.add(name=tensor.op.name, type=dtype)
        for number, tensor in enumerate(function.outputs):
            dtype = tensor.dtype.as_datatype_enum
            made.signature.output_arg.add(name=f"output_{number}", type=dtype)
            made.ret[f"output_{number}"] = tensor.name
        return name


class FunctionReader:
    """Creates functions from a `FunctionDefLibrary`.

    `read_body` adds the nodes of a body to a graph, and returns a lookup of its tensors by name.
    """

    def __init__(
        self, library: Any, read_body: Callable[[Graph, Iterable[Any]], Callable[[str], Tensor]]
    ) -> None:
        self._definitions = {each.signature.name: each for each in library.function}
        self._read_body = read_body
        self._made: dict[tuple[str, tuple[Tensor, ...]], Any] = {}
        self._open: set[str] = set()  # functions whose bodies are being read

    def restored(self, attrs: dict[str, Any], inputs: Sequence[Tensor]) -> dict[str, Any]:
        """Returns an operation's attributes with names replaced by functions.

        Raises ValueError if the library lacks a function.
        """
        if "functions" in attrs and "positions" in attrs:
            pairs = zip(attrs["functions"], attrs["positions"], strict=True)
            made = tuple(self._function(named, at, inputs) for named, at in pairs)
            attrs = {**attrs, "functions": made}
        if isinstance(attrs.get("forward_attrs"), Mapping):
            forward = self.restored(attrs["forward_attrs"], inputs)
            attrs = {**attrs, "forward_attrs": forward}
        return attrs

    def _function(
        self, named: FunctionName, positions: Sequence[int], inputs: Sequence[Tensor]
    ) -> Any:
        from estimatorkit.core.function_graph import FunctionGraph, GraphFunction

        definition = self._definitions.get(named.name)
        if definition is None:
            raise ValueError(f"the graph's library lacks the function {named.name!r}.")
        if named.name in self._open:
            raise ValueError(f"the function {named.name!r} calls itself.")
        count = definition.attr[_ARGUMENTS].i
        captured = tuple(inputs[at] for at in positions[count:])
        key = (named.name, captured)
        if key not in self._made:
            graph = FunctionGraph(get_default_graph())
            with graph.as_default(), graph.name_scope(None):
                self._open.add(named.name)
                tensor = self._read_body(graph, definition.node_def)
                self._open.remove(named.name)
                own = [tensor(f"{each.name}:0") for each in definition.signature.input_arg]
                names = (each.name for each in definition.signature.output_arg)
                outputs = [tensor(definition.ret[name]) for name in names]
            graph.captures.update(zip(captured, own[count:], strict=True))
            self._made[key] = GraphFunction(graph, own[:count], outputs, outputs)
        return self._made[key]


def functions_in(nodes: Iterable[Any], library: Any) -> list[Any]:
    """Returns the library's functions that nodes refer to, transitively."""
    definitions = {each.signature.name: each for each in library.function}
    needed: dict[str, Any] = {}
    pending = list(nodes)
    while pending:
        for attr in pending.pop().attr.values():
            for name in _names_in(decode(attr) if attr.WhichOneof("value") else None):
                if name in definitions and name not in needed:
                    needed[name] = definitions[name]
                    pending.extend(definitions[name].node_def)
    return [each for name, each in definitions.items() if name in needed]


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, FunctionName):
        yield value.name
    elif isinstance(value, dict):
        yield from _names_in(tuple(value.values()))
    elif isinstance(value, tuple):
        for each in value:
            yield from _names_in(each)
