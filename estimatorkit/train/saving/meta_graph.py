"""Serialized graphs with their collections: `export_meta_graph` and `load_meta_graph`.

A `MetaGraphDef` holds a graph (`interop.graphdef`), its collections and `Saver` settings.
Collections may hold names of tensors and operations, variables (as `VariableDef`s), queue runners
(as `QueueRunnerDef`s), numbers and bytes; anything else is omitted with a warning, as in
TensorFlow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.interop.graph_util import read_proto, write_proto
from estimatorkit.interop.graphdef import graph_def_of, import_graph_def, is_from_tensorflow
from estimatorkit.interop.graphdef_tensorflow import known_part
from estimatorkit.logger import logger
from estimatorkit.train.queues.queue_runner import QueueRunner
from estimatorkit.version import __version__

_VARIABLES = (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.METRIC_VARIABLES,
    GraphKeys.GLOBAL_STEP,
    GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.CONCATENATED_VARIABLES,
    GraphKeys.WEIGHTS,
    GraphKeys.BIASES,
)
"""Collections whose bytes may be `VariableDef`s."""


COLLECTION_READERS: dict[str, Callable[[Any, str], Any]] = {}
"""How collections of `SaverDef`s are read, by key: functions of the proto and its scope."""

UNBOUND_INPUTS = "unbound_inputs"
"""The collection of names of the external inputs of an exported subgraph."""
_UNBOUND = "$unbound_inputs_"


class MalformedCollectionError(ValueError):
    """A collection of a `MetaGraphDef` does not fit its graph."""


class LoadedMetaGraph(NamedTuple):
    """The result of `load_meta_graph`.

    Attributes:
        variables: the global variables by their names in the file.
        saver_def: the `SaverDef`, or None.
        elements: the `return_elements`.
        scope: the prefix of the imported names: empty, or ends in '/'.
    """

    variables: dict[str, Variable]
    saver_def: Any
    elements: list[Tensor | Operation]
    scope: str


def _below(name: str, scope: str) -> str:
    return name.removeprefix(scope)


def export_meta_graph(
    filename: str | os.PathLike[str] | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Iterable[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    unbound_inputs_col_name: str | None = None,
) -> Any:
    """Exports a graph with its collections as a `MetaGraphDef`, optionally to a file.

    Args:
        filename: the file to write; None writes none.
        meta_info_def: a `MetaInfoDef` to include; this package's version and the types of the
            operations are added to it.
        graph_def: a `GraphDef` to use instead of the graph's.
        saver_def: a `SaverDef` to include.
        collection_list: the collections to export; all by default.
        as_text: whether to write the file as text.
        graph: the default graph by default.
        export_scope: a name scope; only operations below it are exported, without the prefix.
        clear_devices: whether to omit devices.
        clear_extraneous_savers: whether to omit the operations of other Savers than that of
            `saver_def`.
        strip_default_attrs, save_debug_info: accepted for TensorFlow's signature.
        unbound_inputs_col_name: a collection for the names of tensors that operations below
            `export_scope` take from outside. Not in TensorFlow's function.

    Raises:
        ValueError: an operation below `export_scope` takes a tensor from outside, and there is no
            collection for its name.
    """
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef
    from tensorboard.compat.proto.op_def_pb2 import OpDef

    graph = graph or get_default_graph()
    scope = f"{export_scope.rstrip('/')}/" if export_scope else ""
    made = MetaGraphDef()
    if meta_info_def is not None:
        made.meta_info_def.CopyFrom(meta_info_def)
    made.graph_def.CopyFrom(
        graph_def_of(graph, add_shapes=True) if graph_def is None else graph_def
    )
    info = made.meta_info_def
    info.tensorflow_version = info.tensorflow_git_version = f"estimatorkit {__version__}"
    if not info.HasField("stripped_op_list"):
        types = sorted({node.op for node in made.graph_def.node})
        info.stripped_op_list.op.extend(OpDef(name=each) for each in types)
    if clear_extraneous_savers:
        _clear_other_savers(made.graph_def, saver_def)
    if scope:
        unbound = _keep_below(made.graph_def, scope, unbound_inputs_col_name is not None)
        if unbound and unbound_inputs_col_name is not None:
            write_collection(made, unbound_inputs_col_name, unbound)
    if clear_devices:
        _clear_devices(made.graph_def)
    if saver_def is not None:
        made.saver_def.CopyFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else collection_list
    for key in keys:
        write_collection(made, str(key), graph.get_collection(key), scope)
    if filename is not None:
        directory, name = os.path.split(os.fspath(filename))
        write_proto(made, directory or ".", name, as_text)
    return made


def _keep_below(graph_def: Any, scope: str, may_be_unbound: bool) -> list[str]:
    """Removes the nodes outside a scope; returns the names of external inputs."""
    unbound: dict[str, None] = {}
    nodes = [node for node in graph_def.node if node.name.startswith(scope)]
    for node in nodes:
        for position, each in enumerate(node.input):
            mark = "^" if each.startswith("^") else ""
            name = each.removeprefix("^")
            if not name.startswith(scope) and may_be_unbound:
                unbound[f"{_UNBOUND}{name}"] = None
                node.input[position] = f"{mark}{_UNBOUND}{name}"
                continue
            if not name.startswith(scope):
                raise value_error(
                    f"node {node.name!r} below {scope!r} has the external input {each!r}",
                    hint="export the whole graph, or move the input into the scope",
                )
            node.input[position] = mark + _below(name, scope)
        node.name = _below(node.name, scope)
    del graph_def.node[:]
    graph_def.node.extend(nodes)
    return list(unbound)


def _clear_other_savers(graph_def: Any, saver_def: Any) -> None:
    """Removes the scopes with save and restore operations, except those of `saver_def`."""
    names = [] if saver_def is None else [saver_def.save_tensor_name, saver_def.restore_op_name]
    kept = {name.rpartition("/")[0] for name in names}
    scopes = {
        node.name.rpartition("/")[0]
        for node in graph_def.node
        if node.op in ("SaveV2", "RestoreV2", "Save", "SaveSlices", "Restore", "RestoreSlice")
    }
    other = tuple(f"{scope}/" for scope in scopes - kept)
    nodes = [node for node in graph_def.node if not node.name.startswith(other)]
    del graph_def.node[:]
    graph_def.node.extend(nodes)


def _clear_devices(graph_def: Any) -> None:
    for node in graph_def.node:
        node.device = ""


def write_collection(made: Any, key: str, items: Sequence[Any], scope: str = "") -> None:
    """Adds a collection to a `MetaGraphDef`, restricted to items below `scope`.

    Items that cannot be serialized are omitted with a warning; collections whose names begin with
    an underscore are this package's own, and stay out.
    """
    if key.startswith("_"):
        return
    from tensorboard.compat.proto.meta_graph_pb2 import CollectionDef

    if scope and key not in COLLECTION_READERS:  # its items know whether they are included
        items = [item for item in items if str(getattr(item, "name", "")).startswith(scope)]
    collection = CollectionDef()
    are_variables = key in _VARIABLES and all(isinstance(item, Variable) for item in items)
    has_protos = key in COLLECTION_READERS or all(isinstance(item, QueueRunner) for item in items)
    if items and (are_variables or has_protos):
        protos = [proto for item in items if (proto := item.to_proto(scope)) is not None]
        collection.bytes_list.value.extend(proto.SerializeToString() for proto in protos)
    elif items and all(isinstance(item, (Tensor, Operation, Variable)) for item in items):
        collection.node_list.value.extend(_below(item.name, scope) for item in items)
    elif items and all(isinstance(item, (str, bytes)) for item in items):
        values = [item.encode() if isinstance(item, str) else item for item in items]
        collection.bytes_list.value.extend(values)
    elif items and all(type(item) is int for item in items):
        collection.int64_list.value.extend(items)
    elif items and all(type(item) is float for item in items):
        collection.float_list.value.extend(items)
    else:
        if items:
            logger.warning(
                "Issue encountered when serializing %s. Type is unsupported, or the types of the "
                "items don't match field type in CollectionDef: %s",
                key,
                ", ".join(sorted({type(item).__name__ for item in items})),
            )
        return
    made.collection_def[key].CopyFrom(collection)


def read_meta_graph(path: str | os.PathLike[str]) -> Any:
    """Reads a `MetaGraphDef` from a file, binary or text.

    Raises:
        NotFoundError: the file does not exist.
        ValueError: it is not a `MetaGraphDef`.
    """
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

    return read_proto(MetaGraphDef, path)


def load_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    trusted: bool = False,
    assets: str = "",
) -> LoadedMetaGraph:
    """Imports a `MetaGraphDef`, graph and collections, into the default graph.

    Operations of TensorFlow's graphs that cannot be imported (gradients, saving) are omitted with a
    warning.

    Args:
        meta_graph_or_file: a `MetaGraphDef`, or a file that holds one.
        clear_devices: whether to ignore devices.
        import_scope: a name scope for the imported graph.
        input_map, return_elements, trusted, assets: see `import_graph_def`.

    Raises:
        NotFoundError, ValueError: see `read_meta_graph` and `import_graph_def`.
        ValueError: the graph already has a variable of the same name.
    """
    from google.protobuf.message import DecodeError

    given = meta_graph_or_file
    meta_graph = read_meta_graph(given) if isinstance(given, (str, os.PathLike)) else given
    graph = get_default_graph()
    graph_def = type(meta_graph.graph_def)()
    graph_def.CopyFrom(meta_graph.graph_def)
    if is_from_tensorflow(graph_def.node):
        graph_def, unknown = known_part(graph_def)
        if unknown:
            logger.warning(
                "%d of %d nodes are left out: those that need node types which are not supported "
                "(%s).",
                len(meta_graph.graph_def.node) - len(graph_def.node),
                len(meta_graph.graph_def.node),
                ", ".join(unknown),
            )
    if clear_devices:
        _clear_devices(graph_def)
    scope = f"{graph.get_name_scope()}/".removeprefix("/")
    if import_scope:
        with graph.name_scope(import_scope) as unique:
            scope = unique
    _check_variables_are_new(graph, graph_def, scope)
    with graph.name_scope(scope or None):
        elements = import_graph_def(
            graph_def, input_map, return_elements or (), "", trusted=trusted, assets=assets
        )
    names = {node.name for node in graph_def.node}
    variables: dict[str, Variable] = {}
    # Variables first: other collections may refer to them by name.
    collections = sorted(
        meta_graph.collection_def.items(), key=lambda item: item[1].WhichOneof("kind") or ""
    )
    for key, collection in collections:
        try:
            items = _read_collection(graph, key, collection, scope, variables, names)
        except (DecodeError, LookupError, TypeError, ValueError) as error:
            raise MalformedCollectionError(
                explain(
                    f"the collection {key!r:.100} of the MetaGraphDef is malformed",
                    received=f"{type(error).__name__}: {str(error)[:500]}",
                )
            ) from error
        for item in items:
            graph.add_to_collection(key, item)
    saved = {
        name: variable
        for name, variable in variables.items()
        if variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    }
    saver_def = meta_graph.saver_def if meta_graph.HasField("saver_def") else None
    return LoadedMetaGraph(saved, saver_def, elements or [], scope)


def _check_variables_are_new(graph: Graph, graph_def: Any, scope: str) -> None:
    """Raises ValueError on a taken variable name; other operations are renamed instead."""
    taken = {op.name for op in graph.get_operations()}
    kinds = ("VarHandleOp", "VariableV2", "Variable")
    for node in graph_def.node:
        if node.op in kinds and scope + node.name in taken:
            raise value_error(
                f"Node name '{scope + node.name}' already exists in the Graph",
                expected="unused variable names",
                hint="import under another scope: import_scope='imported'",
            )


def _read_collection(
    graph: Graph,
    key: str,
    collection: Any,
    scope: str,
    variables: dict[str, Variable],
    names: Set[str],
) -> list[Any]:
    """Returns the items of a collection whose nodes were imported.

    `variables` caches the variables by name, so that collections share objects.
    """
    from tensorboard.compat.proto.variable_pb2 import VariableDef

    kind = collection.WhichOneof("kind")
    if kind is None:
        return []
    values = list(getattr(collection, kind).value)
    if kind == "bytes_list" and key in _VARIABLES:
        protos = map(VariableDef.FromString, values)
        return [
            _variable(graph, proto, scope, variables)
            for proto in protos
            if _node(proto.initializer_name) in names and _node(proto.snapshot_name) in names
        ]
    if kind == "bytes_list" and key == GraphKeys.QUEUE_RUNNERS:
        from estimatorkit.train.queues.queue_runner_def import QueueRunnerDef

        with graph.as_default():
            return [
                QueueRunner.from_proto(proto, scope)
                for proto in map(QueueRunnerDef.FromString, values)
                if names >= {*proto.enqueue_op_name, proto.close_op_name, proto.cancel_op_name}
            ]
    if kind == "bytes_list" and key in COLLECTION_READERS:
        from tensorboard.compat.proto.saver_pb2 import SaverDef

        with graph.as_default():
            return [
                COLLECTION_READERS[key](proto, scope)
                for proto in map(SaverDef.FromString, values)
                if proto.restore_op_name in names
            ]
    if kind == "node_list":
        known = {variable.name: variable for variable in variables.values()}
        wanted = [scope + name for name in values if _node(name) in names]
        return [known[name] if name in known else graph.as_graph_element(name) for name in wanted]
    return values


def _node(name: str) -> str:
    return name.partition(":")[0]


def _variable(graph: Graph, proto: Any, scope: str, variables: dict[str, Variable]) -> Variable:
    name = proto.variable_name.removesuffix(":0")
    if name not in variables:
        with graph.as_default():
            variables[name] = Variable.from_proto(proto, scope)
    return variables[name]
