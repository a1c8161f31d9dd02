"""`tensorflow.python.framework.meta_graph`: exports and imports graphs with their collections."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.train.saving.meta_graph import (
    UNBOUND_INPUTS,
    export_meta_graph,
    load_meta_graph,
    read_meta_graph,
    write_collection,
)
from estimatorkit.train.saving.saver import import_meta_graph as import_meta_graph


def read_meta_graph_file(filename: str | os.PathLike[str]) -> Any:
    """Reads a `MetaGraphDef`, binary or text.

    Raises:
        OSError: the file does not exist, or does not hold one.
    """
    if not os.path.exists(filename):
        raise OSError(f"File {os.fspath(filename)} does not exist.")
    try:
        return read_meta_graph(filename)
    except ValueError as error:
        raise OSError(f"Cannot parse file {os.fspath(filename)}: {error}.") from error


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    **accepted: Any,
) -> Any:
    """The `MetaGraphDef` of a graph with its collections; see `train.export_meta_graph`.

    Args:
        **accepted: `exclude_nodes`, `clear_extraneous_savers`, `strip_default_attrs`: accepted for
            TensorFlow's signature.

    Raises:
        TypeError: `graph` is not a `Graph`.
    """
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph. Received type: {type(graph)}.")
    return export_meta_graph(
        meta_info_def=meta_info_def,
        graph_def=graph_def,
        saver_def=saver_def,
        collection_list=collection_list,
        graph=graph,
        export_scope=export_scope,
    )


def add_collection_def(
    meta_graph_def: Any, key: str, graph: Graph | None = None, export_scope: str | None = None
) -> None:
    """Adds the serializable items of a collection of a graph to a `MetaGraphDef`."""
    scope = f"{export_scope.rstrip('/')}/" if export_scope else ""
    items = (graph or get_default_graph()).get_collection(key)
    write_collection(meta_graph_def, key, items, scope)


def export_scoped_meta_graph(
    filename: str | os.PathLike[str] | None = None,
    graph_def: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str | None = UNBOUND_INPUTS,
    clear_devices: bool = False,
    saver_def: Any = None,
    **accepted: Any,
) -> tuple[Any, dict[str, Variable]]:
    """Exports a graph, or one of its name scopes.

    Args:
        filename, graph_def, graph, as_text, clear_devices, saver_def: see
            `train.export_meta_graph`.
        export_scope: the name scope; the whole graph by default.
        unbound_inputs_col_name: the collection for the names of tensors from outside the scope, for
            which an import needs an `input_map`.
        **accepted: accepted for compatibility only.

    Returns:
        The `MetaGraphDef`, and the scope's variables by their names relative to it.
    """
    graph = graph or get_default_graph()
    made = export_meta_graph(
        filename,
        graph_def=graph_def,
        saver_def=saver_def,
        as_text=as_text,
        graph=graph,
        export_scope=export_scope,
        clear_devices=clear_devices,
        unbound_inputs_col_name=unbound_inputs_col_name,
    )
    scope = f"{export_scope.rstrip('/')}/" if export_scope else ""
    every = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope or None)
    return made, {each.name.removeprefix(scope): each for each in every}


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    unbound_inputs_col_name: str | None = UNBOUND_INPUTS,
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    trusted: bool = False,
) -> dict[str, Variable]:
    """Adds a `MetaGraphDef` to a graph, under a name scope.

    Args:
        meta_graph_or_file: a `MetaGraphDef`, or a file that holds one.
        clear_devices: whether to remove devices.
        graph: the graph; the default graph by default.
        import_scope: the name scope; none by default.
        input_map: tensors for unbound inputs, by name.
        unbound_inputs_col_name: the collection that names those inputs.
        restore_collections_predicate: selects collections by key.
        trusted: see `import_graph_def`.

    Returns:
        The variables, by their names relative to the scope.

    Raises:
        ValueError: `input_map` lacks an unbound input.
    """
    given = meta_graph_or_file
    if isinstance(given, (str, os.PathLike)):
        given = read_meta_graph_file(given)
    unbound = given.collection_def.get(unbound_inputs_col_name or "")
    names = [] if unbound is None else [each.decode() for each in unbound.bytes_list.value]
    if set(names) - set(input_map or ()):
        raise ValueError(
            f"Graph contains unbound inputs: {names}. Must provide these inputs through input_map."
        )
    wanted = type(given)()
    wanted.CopyFrom(given)
    for key in given.collection_def:
        if key == unbound_inputs_col_name or not restore_collections_predicate(key):
            del wanted.collection_def[key]
    with graph.as_default() if graph is not None else nullcontext():
        loaded = load_meta_graph(wanted, clear_devices, import_scope, input_map, trusted=trusted)
    return {each.name.removeprefix(loaded.scope): each for each in loaded.variables.values()}


def copy_scoped_meta_graph(
    from_scope: str, to_scope: str, from_graph: Graph | None = None, to_graph: Graph | None = None
) -> dict[str, Variable]:
    """Copies a name scope to another scope, or to another graph.

    Returns:
        The new variables, by their names relative to the scope.

    Raises:
        ValueError: both scopes are the same, in the same graph.
    """
    source = from_graph or get_default_graph()
    target = to_graph or get_default_graph()
    if from_scope == to_scope and source is target:
        raise ValueError(
            "'from_scope' and 'to_scope' need to be different when performing copy in the same "
            "graph."
        )
    made, _ = export_scoped_meta_graph(export_scope=from_scope, graph=source)
    return import_scoped_meta_graph(made, graph=target, import_scope=to_scope, trusted=True)


def ops_used_by_graph_def(graph_def: Any) -> list[str]:
    """The types of the operations in a `GraphDef` and its functions."""
    bodies = [function.node_def for function in graph_def.library.function]
    own = {function.signature.name for function in graph_def.library.function}
    return sorted({node.op for nodes in (graph_def.node, *bodies) for node in nodes} - own)


__all__ = [
    "import_meta_graph",
    "add_collection_def",
    "copy_scoped_meta_graph",
    "create_meta_graph_def",
    "export_scoped_meta_graph",
    "import_scoped_meta_graph",
    "ops_used_by_graph_def",
    "read_meta_graph_file",
]
