"""The files of a SavedModel: the proto of its graphs, assets and variables.

TensorBoard ships all protos but `SavedModel`, which is defined here. A model cannot refer to assets
outside its folder.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

from estimatorkit.core.errors import DataLossError, explain
from estimatorkit.storage.atomic_files import os_errors
from estimatorkit.storage.gfile import local_path
from estimatorkit.train.saving import saved_model_constants as constants

_ANY = "type.googleapis.com/tensorflow.AssetFileDef"


@functools.cache
def saved_model_class() -> Any:
    """Returns the `SavedModel` class, with fields saved_model_schema_version and meta_graphs."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from tensorboard.compat.proto import meta_graph_pb2

    field = descriptor_pb2.FieldDescriptorProto
    meta_graph = meta_graph_pb2.MetaGraphDef.DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto(
        name="estimatorkit/saved_model.proto",
        package="estimatorkit",
        syntax="proto3",
        dependency=[meta_graph.file.name],
    )
    made = file.message_type.add(name="SavedModel")
    version = {"type": field.TYPE_INT64, "label": field.LABEL_OPTIONAL}
    made.field.add(name="saved_model_schema_version", number=1, **version)
    graphs = {"type": field.TYPE_MESSAGE, "label": field.LABEL_REPEATED}
    made.field.add(name="meta_graphs", number=2, type_name=f".{meta_graph.full_name}", **graphs)
    pool = descriptor_pool.Default()
    pool.Add(file)
    found = pool.FindMessageTypeByName("estimatorkit.SavedModel")
    return message_factory.GetMessageClass(found)


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Returns whether a folder holds a SavedModel."""
    return _proto_file(local_path(export_dir)) is not None


def variables_path(export_dir: str | os.PathLike[str]) -> str:
    """Returns the path prefix of a SavedModel's variables."""
    names = constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME
    return os.path.join(local_path(export_dir), *names)


def _proto_file(folder: str) -> str | None:
    names = constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT
    paths = (os.path.join(folder, name) for name in names)
    return next((path for path in paths if os.path.isfile(path)), None)


def read_saved_model(export_dir: str | os.PathLike[str]) -> Any:
    """Reads the `SavedModel` proto of a folder.

    Raises:
        OSError: there is none, or it is damaged (TensorFlow's class).
    """
    from google.protobuf import message, text_format

    folder = local_path(export_dir)
    path = _proto_file(folder)
    if path is None:
        names = f"{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}"
        raise OSError(
            explain(
                f"SavedModel file does not exist at: {folder}/{{{names}}}",
                received=_content(folder),
                hint="exports write one folder per version: pass the newest",
            )
        )
    kind = saved_model_class()
    with os_errors("read the model", path), open(path, "rb") as file:
        data = file.read()
    try:
        if path.endswith(constants.SAVED_MODEL_FILENAME_PB):
            found = kind.FromString(data)
        else:
            found = text_format.Parse(data.decode(), kind())
        if not found.meta_graphs:
            raise ValueError("it has no graph")
    except (message.DecodeError, text_format.ParseError, ValueError) as error:
        raise OSError(
            explain(
                f"Cannot parse file {path}: it is damaged or not a SavedModel",
                received=f"{len(data)} bytes; {str(error).splitlines()[0][:200]}",
                hint="copy or export the model again",
            )
        ) from error
    return found


def _content(folder: str) -> str:
    if not os.path.isdir(folder):
        return "no folder"
    found = sorted(os.listdir(folder))
    return f"a folder with {found[:8]}" if found else "an empty folder"


def asset_any(tensor_name: str, filename: str) -> Any:
    """Returns an `AssetFileDef` for collections, packed as `Any`.

    `tensor_name` is the tensor that is fed with the file's path, `filename` the name in the assets
    folder.
    """
    from google.protobuf.any_pb2 import Any as AnyProto
    from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef

    asset = AssetFileDef(filename=filename)
    asset.tensor_info.name = tensor_name
    return AnyProto(type_url=_ANY, value=asset.SerializeToString())


def assets_of(meta_graph: Any, export_dir: str) -> Iterator[tuple[str, str]]:
    """Yields the tensor name and file path of each asset of a model.

    Raises DataLossError if a file is missing, or its name leads out of the assets folder.
    """
    folder = os.path.join(export_dir, constants.ASSETS_DIRECTORY)
    for asset in _asset_defs(meta_graph):
        # Backslashes separate folders on Windows, so they are rejected on every platform.
        name = asset.filename
        path = os.path.join(folder, *name.split("/"))
        inside = os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)
        if "\\" in name or os.path.isabs(name) or ".." in name.split("/") or not inside:
            raise _bad_asset(asset, export_dir, "its name leads out of the assets folder")
        if not os.path.isfile(path):
            raise _bad_asset(asset, export_dir, "there is no such file")
        yield asset.tensor_info.name, path


def _asset_defs(meta_graph: Any) -> list[Any]:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef

    if meta_graph.asset_file_def:
        return list(meta_graph.asset_file_def)
    held = meta_graph.collection_def.get(constants.ASSETS_KEY)
    if held is None:
        return []
    try:
        return [AssetFileDef.FromString(each.value) for each in held.any_list.value]
    except DecodeError as error:
        raise DataLossError(None, None, f"The list of assets is damaged: {error}") from error


def _bad_asset(asset: Any, export_dir: str, problem: str) -> DataLossError:
    return DataLossError.explained(
        f"asset {asset.filename!r} of the SavedModel in {export_dir!r}: {problem}",
        expected=f"a file below {constants.ASSETS_DIRECTORY}/",
        hint="copy the whole folder again",
    )


__all__ = ["asset_any", "assets_of", "contains_saved_model", "read_saved_model"]
