"""Conversion of graphs to and from `GraphDef` protos.

`graph_def_of` writes a graph: names, op types, inputs, devices, attributes (see `attr_values`) and
the operations' functions (`graphdef_functions`). `import_graph_def` restores such graphs, and maps
those of TensorFlow through a table of op types (`graphdef_tensorflow`). Protos are TensorBoard's,
imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

from estimatorkit.core import registry, trust
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, resource
from estimatorkit.core.errors import did_you_mean, type_error, value_error
from estimatorkit.core.graph import VALID_OP_NAME, Graph, get_default_graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop import attr_values
from estimatorkit.interop.graphdef_functions import FunctionReader, FunctionWriter
from estimatorkit.storage import tensor_proto

FORMAT = 1
"""The format version, `versions.producer`."""

_SHAPES = "_output_shapes"
_GROUPS = "_class"


def graph_def_of(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """Converts a graph to a `GraphDef`.

    With `from_version`, only operations created since that version of the graph are included; with
    `add_shapes`, nodes have their outputs' static shapes (`_output_shapes`).
    """
    return graph_def_of_operations(graph.get_operations()[from_version or 0 :], add_shapes)


def graph_def_of_operations(operations: Iterable[Operation], add_shapes: bool = False) -> Any:
    """Converts operations to a `GraphDef` (see `graph_def_of`)."""
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.versions_pb2 import VersionDef

    made = GraphDef(versions=VersionDef(producer=FORMAT))
    functions = FunctionWriter(made.library, _node_def)
    made.node.extend(_node_def(op, functions, add_shapes) for op in operations)
    return made


def node_def_of(op: Operation) -> Any:
    """Converts an operation to a `NodeDef`, with functions by name only."""
    from tensorboard.compat.proto.function_pb2 import FunctionDefLibrary

    return _node_def(op, FunctionWriter(FunctionDefLibrary(), _node_def))


def _node_def(op: Operation, functions: FunctionWriter, add_shapes: bool = False) -> Any:
    """Converts an operation; internal attributes (`_...`) are included if they are plain data."""
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    node = NodeDef(name=op.name, op=op.type, device=op.device)
    node.input.extend(_input_name(tensor) for tensor in op.inputs)
    node.input.extend(f"^{control.name}" for control in op.control_inputs)
    for key, value in op.attrs.items():
        if not key.startswith("_") or attr_values.is_plain(value):
            node.attr[key].CopyFrom(attr_values.encode(functions.named(op, value)))
    if add_shapes and op.outputs:
        shapes = [output.shape.as_proto() for output in op.outputs]
        node.attr[_SHAPES].CopyFrom(AttrValue(list=AttrValue.ListValue(shape=shapes)))
    return node


def _input_name(tensor: Tensor) -> str:
    return tensor.op.name if tensor.value_index == 0 else tensor.name


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
    trusted: bool = False,
    assets: str = "",
) -> list[Tensor | Operation] | None:
    """Imports the operations of a `GraphDef` into the default graph.

    Args:
        graph_def: a graph written by this package or TensorFlow.
        input_map: tensors that replace the graph's own, by name ('x:0', or 'x').
        return_elements: names of operations ('y') and tensors ('y:0') to return.
        name: the name scope; 'import' by default, '' for none.
        op_dict, producer_op_list: accepted for compatibility only.
        trusted: whether its operations may access files and Python functions. By default those
            that do raise PermissionDeniedError when they run.
        assets: a folder whose files operations may read although the graph is not trusted.

    Returns:
        The `return_elements`, or None.

    Raises:
        TypeError: `graph_def` is not a `GraphDef`.
        ValueError: op types are unknown (all are listed); an input, a key of `input_map` or a
            returned element does not exist; a name is duplicated.
    """
    if not hasattr(graph_def, "node") or not hasattr(graph_def, "library"):
        raise type_error(
            "Argument `graph_def` must be a GraphDef proto",
            received=repr(graph_def)[:200],
            hint="GraphDef.FromString(data) reads a file's bytes",
        )
    if input_map is not None and not isinstance(input_map, Mapping):
        raise TypeError(
            f"Argument `input_map` must be a dictionary. Obtained {type(input_map).__name__}"
        )
    if return_elements is not None and (
        not isinstance(return_elements, (list, tuple))
        or not all(isinstance(each, (str, bytes)) for each in return_elements)
    ):
        raise TypeError(
            "Argument `return_elements` must be a list of strings. "
            f"Obtained {return_elements!r:.200}"
        )
    graph = get_default_graph()
    scope = _scope_for(graph, "import" if name is None else name)
    nodes = list(graph_def.node)
    names = _names_in(graph, scope, nodes)
    if is_from_tensorflow(nodes):
        from estimatorkit.interop.graphdef_tensorflow import node_maker

        make = node_maker(graph_def)
    else:
        if graph_def.versions.producer > FORMAT:
            raise ValueError(
                f"the graph has format version {graph_def.versions.producer}; this version reads "
                f"up to {FORMAT}."
            )
        make = _OwnNodes(nodes, graph_def.library, names).make
    reader = _Reader(graph, nodes, make, names, input_map)
    with graph.name_scope(None), nullcontext() if trusted else trust.untrusted(assets):
        reader.read()
    if return_elements is None:
        return None
    wanted = (each.decode() if isinstance(each, bytes) else each for each in return_elements)
    return [reader.returned(each) for each in wanted]


def _names_in(graph: Graph, scope: str, nodes: Iterable[Any]) -> dict[str, str]:
    """Returns the nodes' names in a graph: below the scope, and made unique."""
    taken = {op.name for op in graph.get_operations()}
    names = {}
    with graph.name_scope(None):
        for node in nodes:
            wished = scope + node.name
            unique = graph.unique_name(wished)  # reserves the name
            names[node.name] = unique if wished in taken else wished
    return names


def _scope_for(graph: Graph, name: str) -> str:
    if name:
        with graph.name_scope(name) as scope:
            return scope
    current = graph.get_name_scope()
    return f"{current}/" if current else ""


class _Reader:
    """Adds the nodes of one `GraphDef`, or of one function's body, to a graph.

    `make` creates the operation of a node, given its inputs and full name, and returns its outputs.
    `names` are full names by node name, by default the same. `input_map` replaces tensors.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Iterable[Any],
        make: Callable[[Any, list[Tensor], str], Sequence[Tensor]],
        names: Mapping[str, str] | None = None,
        input_map: Mapping[str, Any] | None = None,
    ) -> None:
        self._graph, self._make, self._names = graph, make, names
        self._before = graph.control_dependencies_in_force
        self._nodes: dict[str, Any] = {}
        for node in nodes:
            if self._nodes.setdefault(node.name, node) is not node:
                raise ValueError(f"Node '{node.name}' is not unique in graph_def.")
        self._given = {_full_name(key): value for key, value in (input_map or {}).items()}
        self._used: set[str] = set()
        self._outputs: dict[str, Sequence[Tensor]] = {}
        self._operations: dict[str, Operation] = {}

    def read(self) -> None:
        """Adds all nodes, each after its inputs."""
        for name in self._nodes:
            if not VALID_OP_NAME.match(name):
                raise ValueError(f"Node '{name}': Node name contains invalid characters")
        for node in _in_order(self._nodes, self._given):
            self._add(node, node.name if self._names is None else self._names[node.name])
        unused = sorted(key for key in set(self._given) - self._used if not self._is_there(key))
        if unused:
            raise ValueError(
                f"Attempted to map inputs that were not found in graph_def: [{', '.join(unused)}]"
            )
        for key in sorted(key for key in self._used if not key.startswith("^")):
            given = convert_to_tensor(self._given[key])
            if self._is_there(key) and self.element(key).dtype is not given.dtype:
                raise value_error(
                    f"input_map gives {key!r} a tensor of dtype {given.dtype.name}, "
                    f"incompatible with expected {self.element(key).dtype.name}",
                    received=given,
                )

    def _add(self, node: Any, full_name: str) -> None:
        inputs = [self._input(each) for each in node.input if not each.startswith("^")]
        controls = [self._input(each) for each in node.input if each.startswith("^")]
        with ExitStack() as stack:
            stack.enter_context(self._graph.control_dependencies(None))
            stack.enter_context(self._graph.control_dependencies([*self._before, *controls]))
            if node.device:
                stack.enter_context(self._graph.device(node.device))
            outputs = self._made(node, inputs, full_name)
        self._outputs[node.name] = outputs
        op = self._operations[node.name] = self._graph.get_operation_by_name(full_name)
        if _GROUPS in node.attr:
            near = [each.decode().removeprefix("loc:@") for each in node.attr[_GROUPS].list.s]
            names = {name: name for name in self._nodes} if self._names is None else self._names
            known = tuple(f"loc:@{names[each]}" for each in near if each in names)
            op.attrs.update({_GROUPS: known} if known else {})
        shapes = node.attr[_SHAPES].list.shape if _SHAPES in node.attr else []
        for tensor, shape in zip(outputs, shapes, strict=False):
            if (
                tensor.dtype is not resource
            ):  # handles have no shape, but TensorFlow's reference variables do
                tensor.set_shape(tensor_proto.shape_value(shape))

    def _made(self, node: Any, inputs: list[Any], full_name: str) -> Sequence[Tensor]:
        """Creates the operation of a node; raises ValueError with its name if that fails."""
        where = f"node {node.name!r} ({node.op})"
        try:
            return self._make(node, inputs, full_name)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
            given = f"{', '.join(map(str, inputs)) or 'no inputs'}; {sorted(node.attr)}; {error!r}"
            raise value_error(
                f"{where} lacks required inputs or attributes", received=given[:500]
            ) from error

    def _is_there(self, key: str) -> bool:
        """Returns whether a key of `input_map` that nothing consumes is in the graph."""
        node, _, index = key.removeprefix("^").partition(":")
        return node in self._outputs and int(index or 0) < max(1, len(self._outputs[node]))

    def _input(self, name: str) -> Any:
        key = _full_name(name)
        if key in self._given:
            self._used.add(key)
            given = self._given[key]
            return given if key.startswith("^") else convert_to_tensor(given)
        return self.element(key.removeprefix("^"))

    def returned(self, name: str) -> Any:
        """Resolves a name for the caller: a replacement from `input_map`, or as `element`."""
        return convert_to_tensor(self._given[name]) if name in self._given else self.element(name)

    def element(self, name: str) -> Any:
        """Returns the operation ('a') or tensor ('a:0') of a name in the `GraphDef`.

        Raises ValueError if there is none.
        """
        node, colon, index = name.partition(":")
        outputs = self._outputs.get(node)
        if colon and not index.isdigit():
            raise ValueError(f"Cannot convert {name!r} to a tensor name.")
        if outputs is None:
            hint = did_you_mean(node, self._nodes)
            raise value_error(f"Requested node {node!r} not found in graph_def", hint=hint)
        if colon and int(index) >= len(outputs):
            raise ValueError(
                f"Invalid return output {index} of node {node!r}, "
                f"which has {len(outputs)} output(s)"
            )
        return outputs[int(index)] if colon else self._operations[node]


def _full_name(name: str) -> str:
    """Normalizes an input name: 'x' to 'x:0'; '^x' to the operation."""
    return name if ":" in name or name.startswith("^") else f"{name}:0"


def _in_order(nodes: Mapping[str, Any], given: Mapping[str, Any]) -> list[Any]:
    """Sorts nodes topologically, otherwise keeping their order.

    Raises ValueError if an input is missing, or on a cycle.
    """
    ordered: list[Any] = []
    state: dict[str, bool] = {}  # False while its inputs are visited
    for start in nodes:
        pending = [start]
        while pending:
            name = pending[-1]
            if state.get(name):
                pending.pop()
                continue
            sources = [
                _full_name(each).removeprefix("^").partition(":")[0]
                for each in nodes[name].input
                if _full_name(each) not in given
            ]
            waiting = [each for each in sources if not state.get(each)]
            if not waiting:
                state[name] = True
                ordered.append(nodes[pending.pop()])
                continue
            for each in waiting:
                if each not in nodes:
                    raise value_error(
                        f"Node {name!r}: Unknown input node {each!r} in graph_def",
                        hint=did_you_mean(each, nodes),
                    )
                if state.get(each) is False:
                    raise ValueError(f"graph_def has nodes in a cycle: {each!r} and {name!r}.")
            state[name] = False
            pending.extend(reversed(waiting))
    return ordered


def is_from_tensorflow(nodes: Iterable[Any]) -> bool:
    """Returns whether TensorFlow wrote these nodes: only its nodes have a dtype attribute, `T`.

    This also recognizes graphs edited by scripts, which may lose `versions`. Graphs of placeholders
    alone are the same in both formats.
    """
    return any("T" in node.attr or (node.op == "Const" and "dtype" in node.attr) for node in nodes)


class _OwnNodes:
    """Creates the operations of nodes that this package wrote.

    `library` has their functions; `names` are full names by node name, for names in attributes.
    """

    def __init__(self, nodes: Iterable[Any], library: Any, names: Mapping[str, str]) -> None:
        # Resources named in attributes: queues, tables, variables.
        self._resources = {
            node.name
            for node in nodes
            if not node.input and node.op not in ("Const", "NoOp", "Placeholder")
        }
        self._names = names
        bodies = [node for function in library.function for node in function.node_def]
        types = {node.op for node in (*nodes, *bodies)}
        unknown = [op_type for op_type in types if registry.find(op_type) is None]
        if unknown:
            raise value_error(
                f"op types are not registered: {', '.join(sorted(unknown))}",
                hint="was the graph written by a newer version of this package?",
            )
        self._functions = FunctionReader(library, self._read_body)

    def _read_body(self, graph: Graph, nodes: Iterable[Any]) -> Callable[[str], Tensor]:
        reader = _Reader(graph, nodes, self.make)
        reader.read()
        return reader.element

    def make(self, node: Any, inputs: list[Tensor], full_name: str) -> Sequence[Tensor]:
        """Creates the operation of a node, and returns its outputs."""
        held = self._functions.restored(self._attrs(node), inputs)
        if registry.lookup(node.op).lacks_inputs(len(inputs), held):
            raise TypeError(f"its inputs do not match {len(inputs)} inputs specified")
        outputs = registry.apply(node.op, inputs, held, f"{full_name}/").outputs
        if not all(_is_sound(tensor) for tensor in outputs):
            raise TypeError("an output without dtype or shape")
        return outputs

    def _attrs(self, node: Any) -> dict[str, Any]:
        attrs = {}
        for key, value in node.attr.items():
            if key in (_SHAPES, _GROUPS):
                continue
            try:
                attrs[key] = attr_values.decode(value)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise value_error(f"attribute {key!r} is malformed", received=error) from error
            lost = attr_values.in_memory(attrs[key])
            if lost is not None:
                raise value_error(
                    "depends on an in-memory value of the process that wrote it",
                    received=f"{key} = {lost}",
                    hint="rebuild this part of the graph",
                )
        if attrs.get("_forward"):
            forward = attrs["_forward"]
            attrs["_forward"] = self._names.get(forward, forward)
        if registry.lookup(node.op).placement.context:
            attrs = {key: self._renamed(value) for key, value in attrs.items()}
        return attrs

    def _renamed(self, value: Any) -> Any:
        """Renames resources with the import scope."""
        if isinstance(value, str) and value in self._resources:
            return self._names[value]
        return tuple(map(self._renamed, value)) if type(value) is tuple else value


def _is_sound(tensor: Tensor) -> bool:
    return isinstance(tensor.dtype, DType) and isinstance(tensor.shape, TensorShape)
