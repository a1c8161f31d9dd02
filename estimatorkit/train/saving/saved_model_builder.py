"""`SavedModelBuilder` and `simple_save`: export models in TensorFlow's SavedModel format.

The graph is written with TensorFlow's node types (`interop.graphdef_export`), including restore
operations, and the variables as a tensor bundle. Signatures that depend on operations without a
TensorFlow equivalent are omitted with a warning; the complete graph is then stored in a collection
(OWN_META_GRAPH_KEY) that only this package reads. `save` writes the folder under a temporary name
and renames it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import constant_value
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.interop.graph_util import proto_bytes, write_proto
from estimatorkit.interop.graphdef_export import export_graph
from estimatorkit.interop.graphdef_tensorflow import known_part
from estimatorkit.interop.graphdef_writer import Exported, attr_value
from estimatorkit.lazy import listing
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import os_errors, sync_file, temporary_beside
from estimatorkit.storage.gfile import local_path
from estimatorkit.storage.tensor_bundle_writer import write_bundle
from estimatorkit.train.checks import STEP_CHECKS
from estimatorkit.train.saving import saved_model_constants as constants
from estimatorkit.train.saving.meta_graph import export_meta_graph, write_collection
from estimatorkit.train.saving.saved_model_files import asset_any, saved_model_class
from estimatorkit.train.saving.saver import Saver, tensors_to_save
from estimatorkit.train.saving.signatures import predict_signature_def

_NOT_WRITTEN = {
    STEP_CHECKS,
    GraphKeys.SAVEABLE_OBJECTS,  # Python objects
    # Passed to the builder explicitly; a loaded graph still has those of its model.
    constants.ASSETS_KEY,
    constants.MAIN_OP_KEY,
    constants.LEGACY_INIT_OP_KEY,
}

_SHOWN = 2
"""How many reasons a warning gives."""


class SavedModelBuilder:
    """Writes a SavedModel: graphs that share one set of variables.

    As `tf.compat.v1.saved_model.Builder`.

    Args:
        export_dir: the folder, which must be missing or empty.

    Raises:
        AssertionError: the folder is not empty (TensorFlow's class).
    """

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        self._folder = local_path(export_dir)
        if os.path.isdir(self._folder) and os.listdir(self._folder):
            raise AssertionError(
                f"Export directory {self._folder} already exists, and isn't empty. Please choose a "
                "different export directory, or delete all the contents of the specified "
                f"directory: {self._folder}"
            )
        self._proto = saved_model_class()(
            saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION
        )
        self._tensors: dict[str, NDArray[Any]] | None = None
        self._assets: dict[str, str] = {}  # files by name in the model
        self._written = False

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds a session's graph and the current values of its variables.

        Args:
            tags: identify the graph when the model is loaded.
            signature_def_map: `SignatureDef`s by key.
            assets_collection: string constants with paths of files to copy into the model.
            legacy_init_op: the older name of `main_op`.
            clear_devices: whether to omit devices.
            main_op: an operation to run when the model is loaded, such as `tables_initializer()`.
            strip_default_attrs: accepted for compatibility only.
            saver: the Saver whose variables are written; by default all global variables.

        Raises:
            AssertionError: variables were added before, or a signature names an unknown tensor.
            FailedPreconditionError: a variable is uninitialized.
            ValueError: both operations are given, or an asset is not a file.
        """
        if self._tensors is not None:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke "
                "`add_meta_graph()` instead."
            )
        with sess.graph.as_default():
            saver = saver or Saver(allow_empty=True)
            graph = self._meta_graph(
                sess.graph,
                saver,
                tags,
                signature_def_map,
                assets_collection,
                _init_op(sess.graph, main_op, legacy_init_op),
                clear_devices,
            )
            self._tensors = {
                name: np.array(value)
                for name, value in tensors_to_save(sess, saver.saved_items).items()
            }
        self._proto.meta_graphs.append(graph)

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, which shares the variables added before.

        See `add_meta_graph_and_variables`.

        Raises:
            AssertionError: no variables have been added.
        """
        if self._tensors is None:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        made = self._meta_graph(
            get_default_graph(),
            saver or Saver(allow_empty=True),
            tags,
            signature_def_map,
            assets_collection,
            _init_op(get_default_graph(), main_op, legacy_init_op),
            clear_devices,
        )
        self._proto.meta_graphs.append(made)

    def _meta_graph(
        self,
        graph: Graph,
        saver: Saver,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None,
        assets: Sequence[Tensor] | None,
        init_op: Operation | None,
        clear_devices: bool,
    ) -> Any:
        from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

        signatures = dict(signature_def_map or {})
        info = MetaGraphDef.MetaInfoDef(tags=sorted(set(tags)))
        exported = export_graph(graph)
        made = _for_tensorflow(graph, exported, saver, info)
        training = graph.get_collection(constants.TRAIN_OP_KEY)
        lacking: dict[str, list[Any]] = {
            key: [each for each in _tensors_of(graph, signature) if not exported.has(each)]
            for key, signature in signatures.items()
        }
        lacking["the training step"] = [each for each in training if not exported.has(each)]
        if init_op is not None and not exported.has(init_op):
            lacking["the initialization"] = [init_op]
        lacking = {key: tensors for key, tensors in lacking.items() if tensors}
        by_reason: dict[str, list[str]] = {}
        for key, tensors in lacking.items():
            shown = repr(key) if key in signatures else key
            by_reason.setdefault(_shortened(_reasons(tensors[0], exported)), []).append(shown)
        for reason, keys in by_reason.items():
            logger.warning(
                "TensorFlow cannot load %s, so its version of the model omits %s: %s.",
                ", ".join(keys),
                "it" if len(keys) == 1 else "them",
                reason,
            )
        names = {tensor.name: exported.name_of(tensor) for tensor in exported.names}
        written = {key: each for key, each in signatures.items() if key not in lacking}
        self._describe(made, written, assets, exported.has, init_op, names)
        whole = [made]
        if lacking or known_part(exported.graph_def)[1]:
            keys = [key for key in graph.get_all_collection_keys() if key not in _NOT_WRITTEN]
            own = export_meta_graph(
                meta_info_def=info, graph=graph, saver_def=saver.saver_def, collection_list=keys
            )
            self._describe(own, signatures, assets, lambda _: True, init_op, {})
            whole.append(own)
        for node in (node for each in whole for node in each.graph_def.node if clear_devices):
            node.device = ""
        for own in whole[1:]:
            held = made.collection_def[constants.OWN_META_GRAPH_KEY].bytes_list
            held.value.append(own.SerializeToString(deterministic=True))
        return made

    def _describe(
        self,
        made: Any,
        signatures: Mapping[str, Any],
        assets: Sequence[Tensor] | None,
        has: Callable[[Any], bool],
        init_op: Operation | None,
        names: Mapping[str, str],
    ) -> None:
        """Adds signatures, assets and the init operation to a `MetaGraphDef`.

        `has` tells whether the graph contains a tensor or operation; `names` maps tensors that were
        renamed to their new names.
        """
        for key, signature in signatures.items():
            made.signature_def[key].CopyFrom(signature)
            _rename(made.signature_def[key], names)
        if init_op is not None and has(init_op):
            made.collection_def[constants.MAIN_OP_KEY].node_list.value.append(init_op.name)
        for tensor in filter(has, assets or ()):
            file, name = self._asset(tensor), names.get(tensor.name, tensor.name)
            entry = made.asset_file_def.add(filename=file)
            entry.tensor_info.name = name
            held = made.collection_def[constants.ASSETS_KEY].any_list.value
            held.append(asset_any(name, file))

    def _asset(self, tensor: Tensor) -> str:
        """Registers the file that a constant names, and returns its name in the model."""
        value = constant_value(tensor)
        path = "" if value is None else local_path(np.asarray(value).item())
        if not os.path.isfile(path):
            raise value_error(
                f"the asset {tensor.name} is not a file",
                expected="a constant that is the path of a file",
                received=repr(path) if value is not None else "no constant",
                made_at=tensor.op.source,
            )
        path = os.path.abspath(path)
        base = name = os.path.basename(path)
        number = 0
        while self._assets.setdefault(name, path) != path:
            number += 1
            name = f"{base}_{number}"
        return name

    def save(self, as_text: bool = False) -> bytes:
        """Writes the model atomically.

        Args:
            as_text: whether to write the proto as text (`saved_model.pbtxt`).

        Returns:
            The path of the proto's file, as bytes (as TensorFlow).

        Raises:
            OpError: the file system reports an error, or the folder is no longer empty.
        """
        text, binary = constants.SAVED_MODEL_FILENAME_PBTXT, constants.SAVED_MODEL_FILENAME_PB
        name = text if as_text else binary
        if self._written:
            return os.fsencode(write_proto(self._proto, self._folder, name, as_text))
        folder = Path(self._folder)
        with os_errors("export the model", folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with temporary_beside(folder) as temporary:
                self._write(temporary, name, as_text)
                os.rename(temporary, folder)  # replaces an empty folder, fails on any other
                sync_file(folder.parent)
        self._written = True
        return os.fsencode(folder / name)

    def _write(self, folder: Path, name: str, as_text: bool) -> None:
        variables = folder / constants.VARIABLES_DIRECTORY
        variables.mkdir(parents=True)
        if self._tensors:
            write_bundle(variables / constants.VARIABLES_FILENAME, self._tensors)
            sync_file(variables)
        if self._assets:
            assets = folder / constants.ASSETS_DIRECTORY
            assets.mkdir()
            for asset, path in self._assets.items():
                shutil.copyfile(path, assets / asset)
                sync_file(assets / asset)
            sync_file(assets)
        (folder / name).write_bytes(proto_bytes(self._proto, as_text))
        sync_file(folder / name)
        sync_file(folder)


def _init_op(
    graph: Graph, main_op: Operation | None, legacy_init_op: Operation | None
) -> Operation | None:
    if main_op is not None and legacy_init_op is not None:
        raise ValueError("Graph can have only one of `main_op` and `legacy_init_op`: give one.")
    found = legacy_init_op if main_op is None else main_op
    if legacy_init_op is not None and graph.get_collection(constants.LEGACY_INIT_OP_KEY):
        raise ValueError(
            "Graph already contains one or more legacy init ops under the collection "
            f"{constants.LEGACY_INIT_OP_KEY}."
        )
    if found is not None and not isinstance(found, Operation):
        raise TypeError(
            f"Expected {found!r} to be an Operation but got type {type(found)} instead."
        )
    return found


_SPARSE = ("values_tensor_name", "indices_tensor_name", "dense_shape_tensor_name")


def _places(signature: Any) -> Iterator[tuple[Any, str]]:
    """Yields the (proto, field) pairs of a signature that hold tensor names."""
    for info in [*signature.inputs.values(), *signature.outputs.values()]:
        kind = info.WhichOneof("encoding")
        if kind not in ("name", "coo_sparse"):
            raise AssertionError(
                f"Invalid `tensor_info`: {info}. All TensorInfo protos used in the SignatureDefs "
                "must have one of the 'encoding' fields (e.g., name or coo_sparse) set."
            )
        if kind == "name":
            yield info, "name"
        else:
            yield from ((info.coo_sparse, field) for field in _SPARSE)


def _tensors_of(graph: Graph, signature: Any) -> Iterator[Tensor]:
    """Yields the tensors that a signature names."""
    for info, field in _places(signature):
        yield graph.get_tensor_by_name(getattr(info, field))


def _rename(signature: Any, names: Mapping[str, str]) -> None:
    for info, field in _places(signature):
        name = getattr(info, field)
        setattr(info, field, names.get(name, name))


def _reasons(lacking: Tensor | Operation, exported: Exported) -> Iterator[str]:
    """Yields the nearest ancestors of a tensor that have no TensorFlow node, with reasons."""
    pending = [lacking.op if isinstance(lacking, Tensor) else lacking]
    seen: set[Operation] = set()
    while pending:
        op = pending.pop()
        if op in seen or op in exported.operations:
            continue
        seen.add(op)
        if op.name in exported.missing:
            yield f"{op.name} ({exported.missing[op.name]})"
        pending.extend([*(tensor.op for tensor in op.inputs), *op.control_inputs])


def _shortened(reasons: Iterable[str]) -> str:
    """The first reasons, and how many more there are."""
    found = list(reasons)
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _for_tensorflow(graph: Graph, exported: Exported, saver: Saver, info: Any) -> Any:
    """Returns a `MetaGraphDef` with TensorFlow's node types."""
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

    made = MetaGraphDef(meta_info_def=info)
    made.graph_def.CopyFrom(exported.graph_def)
    initializable = set(_add_initializers(made.graph_def, graph, exported))
    if saver.saver_def.restore_op_name:  # there is something to save
        made.saver_def.CopyFrom(saver.saver_def)
    for key in graph.get_all_collection_keys():
        if key in _NOT_WRITTEN:
            continue
        kept = [
            item
            for item in graph.get_collection(key)
            if (item in initializable if isinstance(item, Variable) else True)
            and (exported.has(item) if isinstance(item, (Tensor, Operation)) else True)
        ]
        write_collection(made, str(key), kept)
    return made


def _add_initializers(graph_def: Any, graph: Graph, exported: Exported) -> Iterator[Variable]:
    """Adds initializers for variables whose initial values were not exported.

    Their initial values become placeholders. Yields the variables that collections may list.
    """
    listed = (graph.get_collection(key) for key in graph.get_all_collection_keys())
    variables = {each for items in listed for each in items if isinstance(each, Variable)}
    for variable in sorted(variables, key=lambda each: each.name):
        if not exported.has(variable.initializer):
            initial = exported.names.get(variable.initial_value)
            if initial is None:
                initial = variable.initial_value.op.name
                attrs = {"dtype": variable.dtype, "shape": variable.initial_value.shape}
                _add_node(graph_def, "Placeholder", initial, [], attrs)
                exported.names[variable.initial_value] = initial
            inputs = [variable.op.name, initial]
            _add_node(
                graph_def,
                "AssignVariableOp",
                variable.initializer.name,
                inputs,
                {"dtype": variable.dtype},
            )
        yield variable


def _add_node(
    graph_def: Any, type_: str, name: str, inputs: Sequence[str], attrs: Mapping[str, Any]
) -> str:
    node = graph_def.node.add(name=name, op=type_)
    node.input.extend(inputs)
    for key, value in attrs.items():
        node.attr[key].CopyFrom(attr_value(value))
    return name


def simple_save(
    session: Any,
    export_dir: str | os.PathLike[str],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Operation | None = None,
) -> None:
    """Exports a session's model for serving: tag 'serve', signature 'serving_default'.

    Args:
        export_dir: the folder, which must be missing or empty.
        inputs: tensors by input name.
        outputs: tensors by output name.
        legacy_init_op: an operation to run when the model is loaded.

    Raises:
        AssertionError, ValueError: see `SavedModelBuilder` and `predict_signature_def`.
    """
    signature = predict_signature_def(inputs, outputs)
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        [constants.SERVING],
        {constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
        assets_collection=session.graph.get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()


__all__ = ["SavedModelBuilder", "simple_save"]
__dir__ = listing(__name__)
