"""Transformations of `GraphDef`s: subgraphs, freezing of variables, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.errors import did_you_mean, explain, value_error
from estimatorkit.core.graph import Graph
from estimatorkit.interop import attr_values
from estimatorkit.interop.graphdef import graph_def_of
from estimatorkit.interop.graphdef_functions import functions_in
from estimatorkit.storage import atomic_files as durable


def _source(name: str) -> str:
    """Returns the node of an input name ('x', 'x:1', '^x')."""
    return name.removeprefix("^").partition(":")[0]


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """Returns the subgraph on which some nodes depend, including functions.

    Args:
        dest_nodes: names of nodes.

    Raises:
        TypeError: `dest_nodes` is a string, or `graph_def` is not a `GraphDef`.
        AssertionError: a node is not in the graph (TensorFlow's class).
    """
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be an iterable of strings.")
    if not hasattr(graph_def, "node"):
        raise TypeError(f"graph_def must be a graph_pb2.GraphDef proto, got {type(graph_def)}")
    nodes = {node.name: node for node in graph_def.node}
    needed: set[str] = set()
    pending = list(dest_nodes)
    while pending:
        name = pending.pop()
        if name not in nodes:
            hint = did_you_mean(name, nodes)
            raise AssertionError(explain(f"{name} is not in graph", hint=hint))
        if name not in needed:
            needed.add(name)
            pending.extend(_source(each) for each in nodes[name].input)
    result = type(graph_def)()
    result.versions.CopyFrom(graph_def.versions)
    result.node.extend(node for node in graph_def.node if node.name in needed)
    result.library.function.extend(functions_in(result.node, graph_def.library))
    return result


def _empty_like(graph_def: Any) -> Any:
    result = type(graph_def)()
    result.library.CopyFrom(graph_def.library)
    result.versions.CopyFrom(graph_def.versions)
    return result


def remove_training_nodes(input_graph: Any, protected_nodes: Collection[str] | None = None) -> Any:
    """Removes nodes that only training needs: `Identity` and `CheckNumerics`.

    Args:
        protected_nodes: names of nodes to keep. Nodes with control inputs, and those that take an
            output other than the first, are kept too.
    """
    kept = set(protected_nodes or ())
    removed = {
        node.name: node.input[0]
        for node in input_graph.node
        if node.op in ("Identity", "CheckNumerics")
        and node.name not in kept
        and len(node.input) == 1
        and ":" not in node.input[0]
    }
    # Tensors cannot replace an operation that is a control input.
    for node in input_graph.node:
        for each in node.input:
            if each.startswith("^"):
                removed.pop(_source(each), None)
    result = _empty_like(input_graph)
    for node in input_graph.node:
        if node.name in removed:
            continue
        made = result.node.add()
        made.CopyFrom(node)
        for position, each in enumerate(node.input):
            while each.removesuffix(":0") in removed:
                each = removed[each.removesuffix(":0")]
            made.input[position] = each
    return result


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> Any:
    """Freezes a graph: variables become constants with their current values.

    Args:
        sess: the session that holds the values.
        input_graph_def: the graph, as from `sess.graph.as_graph_def()`.
        output_node_names: names of the operations to keep, with their dependencies.
        variable_names_whitelist: the only variables to convert; all by default.
        variable_names_blacklist: variables that are not converted.

    Raises:
        AssertionError: an output is not in the graph.
        ValueError: an output changes a variable.
        FailedPreconditionError: a variable is uninitialized.
    """
    return freeze(
        input_graph_def,
        output_node_names,
        sess.state.read,
        variable_names_whitelist,
        variable_names_blacklist,
    )


def freeze(
    input_graph_def: Any,
    output_node_names: Sequence[str],
    take: Callable[[list[str]], Sequence[Any]],
    only: Collection[str] | None = None,
    never: Collection[str] | None = None,
) -> Any:
    """Implements `convert_variables_to_constants`; `take` returns the values of named variables."""
    graph_def = extract_sub_graph(input_graph_def, output_node_names)
    names = [
        node.name
        for node in graph_def.node
        if node.op == "VarHandleOp"
        and (only is None or node.name in only)
        and node.name not in (never or ())
    ]
    values = dict(zip(names, take(names), strict=True))
    result = _empty_like(graph_def)
    result.node.extend(_frozen(node, values) for node in graph_def.node)
    if len(values) == sum(node.op == "VarHandleOp" for node in graph_def.node):
        # Function bodies take handles as inputs; now they take the values.
        for function in result.library.function:
            handles = {node.name for node in function.node_def if node.op == "VarHandleOp"}
            bodies = [_frozen(node, dict.fromkeys(handles)) for node in function.node_def]
            del function.node_def[:]
            function.node_def.extend(bodies)
    elif result.library.function:
        raise value_error(
            "a graph with functions cannot be partly frozen",
            expected="all variables frozen, or a graph without cond and while_loop",
        )
    return result


def _frozen(node: Any, values: Mapping[str, Any]) -> Any:
    """Converts a node, given the values of some handles (None: passed to a function as input)."""
    made = type(node)()
    if node.name in values:
        made.name, made.device = node.name, node.device
        value = values[node.name]
        if value is None:
            made.op = "Placeholder"
            for key in ("dtype", "shape"):
                made.attr[key].CopyFrom(node.attr[key])
        else:
            made.op = "Const"
            made.attr["value"].CopyFrom(attr_values.encode(np.asarray(value)))
        return made
    made.CopyFrom(node)
    if not any(each in values for each in node.input):
        return made
    if node.op == "ReadVariableOp":
        made.op = "Identity"
    elif (
        not callable(registry.lookup(node.op).semantics.updates)
        and registry.lookup(node.op).semantics.updates
    ):
        raise value_error(
            f"node {node.name!r} ({node.op}) changes a frozen variable",
            hint="name outputs that only read variables, such as predictions",
        )
    return made


def write_graph(
    graph_or_graph_def: Any, logdir: str | os.PathLike[str], name: str, as_text: bool = True
) -> str:
    """Writes a graph to a file atomically.

    Args:
        graph_or_graph_def: a `Graph` or a `GraphDef`.
        logdir: the folder, created if missing.
        as_text: whether to write text (`.pbtxt`) rather than binary (`.pb`).

    Returns:
        The file's path.
    """
    given = graph_or_graph_def
    return write_proto(
        graph_def_of(given) if isinstance(given, Graph) else given, logdir, name, as_text
    )


def write_proto(
    proto: Any, directory: str | os.PathLike[str], name: str, as_text: bool = False
) -> str:
    """Writes a proto to a file (see `write_graph`)."""
    path = Path(directory) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write_durably(path, proto_bytes(proto, as_text))
    return os.fspath(path)


def proto_bytes(proto: Any, as_text: bool) -> bytes:
    """Serializes a proto deterministically, as text or binary."""
    if as_text:
        from google.protobuf import text_format

        text: str = text_format.MessageToString(proto)
        return text.encode()
    data: bytes = proto.SerializeToString(deterministic=True)
    return data


def read_proto(kind: Any, path: str | os.PathLike[str]) -> Any:
    """Reads a proto of class `kind` from a text or binary file.

    Raises NotFoundError if the file does not exist, ValueError if it has no such proto.
    """
    from google.protobuf import message, text_format

    with durable.os_errors("read", path):
        data = Path(path).read_bytes()
    try:
        return kind.FromString(data)
    except message.DecodeError:
        pass  # may be text format
    try:
        return text_format.Parse(data.decode(), kind())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise value_error(
            f"{os.fspath(path)!r} is not a {kind.__name__}", received=str(error).splitlines()[0]
        ) from error
