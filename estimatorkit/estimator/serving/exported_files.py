"""The files of an exported model in this package's format, validated when read.

| file | content |
|---|---|
| `signature.json` | signatures, versions, and size and sha256 of every other file of this list |
| `example_request.json`, `example_response.json` | a request for a server, and its response |
| `serving/graph-N.pb` | a graph of host operations and modules, or of all (`serving_graph`) |
| `serving/module-N.stablehlo` | a module: a program written by `jax.export` |
| `serving/weights/` | variables and large arrays, in the format of checkpoints (safetensors) |

Only names in this table are read, links are not followed, sizes are checked before content is read,
op types must be in `is_allowed`, and nothing is imported by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from estimatorkit import ops
from estimatorkit.core import indexed_slices, registry
from estimatorkit.core.dtypes import ALL
from estimatorkit.core.errors import DataLossError, FailedPreconditionError
from estimatorkit.estimator.serving.exported_module import OP_TYPE
from estimatorkit.interop import attr_values
from estimatorkit.ops.control import control_flow, tensor_array
from estimatorkit.storage import checkpoint_format, checkpoint_manifest
from estimatorkit.storage.atomic_files import os_errors, sync_file

_ROWS = (control_flow, indexed_slices, ops, tensor_array)
"""Modules that register the op types of exported models; no others are needed."""

FORMAT_VERSION = 1
SIGNATURE = "signature.json"
REQUEST, RESPONSE = "example_request.json", "example_response.json"
FOLDER = "serving"
WEIGHTS = "weights"
_NAMES = re.compile(
    rf"{REQUEST}|{RESPONSE}|{FOLDER}/(graph-[0-9]{{1,5}}\.pb|module-[0-9]{{1,5}}\.stablehlo)"
)
_SIGNATURE_BYTES = 16 << 20
_FILE_BYTES = 2 << 30  # the limit of protobuf messages


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


_Size = Annotated[int, Field(ge=0, le=1 << 40)]
_Name = Annotated[str, Field(min_length=1, max_length=1000)]


class FileEntry(_Part):
    """A file: `size` in bytes, `sha256` in hexadecimal."""

    size: _Size
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class TensorEntry(_Part):
    """An input or output: its name in the graph, dtype and shape (None for unknown).

    `pad` is a value that, appended along the second dimension, changes no output.
    """

    tensor: _Name
    dtype: Literal[tuple(name for name in ALL if name != "resource")]  # type: ignore[valid-type]
    shape: Annotated[list[_Size | None], Field(max_length=64)] | None
    pad: Literal["", -1, 0] | None = None


class GraphSignature(_Part):
    """A signature of a graph: its method, inputs, outputs, and the graph's index."""

    method: _Name
    inputs: dict[_Name, TensorEntry]
    outputs: dict[_Name, TensorEntry]
    graph: Annotated[int, Field(ge=0, le=99999)]


class SignatureEntry(GraphSignature):
    """A signature; `general` is that of a graph without modules, for inputs of shapes that these
    do not take.
    """

    general: GraphSignature | None = None


class GraphEntry(_Part):
    """A graph: module files by operation, array names by 'operation:attribute', the variables it
    reads, its table initializers; and whether each row's outputs depend on that row alone.
    """

    modules: dict[_Name, Annotated[str, Field(pattern=r"^module-[0-9]{1,5}\.stablehlo$")]]
    arrays: dict[_Name, _Name]
    variables: list[_Name]
    initializers: list[_Name]
    rows_alone: bool


class Contents(_Part):
    """The content of `signature.json`."""

    format_version: int
    versions: dict[str, str]
    files: dict[str, FileEntry]
    signatures: dict[_Name, SignatureEntry]
    graphs: list[GraphEntry]


# -- writing


def write_file(folder: Path, name: str, data: bytes, files: dict[str, Any]) -> None:
    """Writes one of the files and adds its entry to `files`."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    sync_file(path)
    files[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def write_signature(folder: Path, contents: Mapping[str, Any]) -> None:
    """Validates and writes `signature.json`, the last of the files."""
    made = Contents.model_validate({"format_version": FORMAT_VERSION, **contents})
    path = folder / SIGNATURE
    path.write_text(json.dumps(made.model_dump(), indent=1) + "\n", encoding="utf-8")
    sync_file(path)
    sync_file(folder / FOLDER)


# -- reading


def read_signature(folder: Path) -> Contents:
    """Reads and validates `signature.json`, but not the files that it lists.

    Raises:
        NotFoundError: there is no such folder or file.
        DataLossError: it is damaged or inconsistent.
        FailedPreconditionError: a newer version of the package wrote it.
    """
    path = folder / SIGNATURE
    with os_errors("read the exported model", path):
        os.lstat(path)
    content = parse_json(path, _read(path, _SIGNATURE_BYTES))
    version = content.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise FailedPreconditionError.explained(
            f"the model in {os.fspath(folder)!r} was exported by a newer estimatorkit",
            expected=f"format version {FORMAT_VERSION} at most",
            received=f"format version {version}; versions: {content.get('versions')}",
            hint="upgrade estimatorkit, or export the model again with this version",
        )
    if version != FORMAT_VERSION:
        damaged(path, "it has no valid format_version", FORMAT_VERSION, repr(version)[:80])
    try:
        found = Contents.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        damaged(path, f"{place}: {first['msg']}", received=repr(first["input"])[:200])
    for name in found.files:
        if _NAMES.fullmatch(name) is None:
            damaged(path, f"it lists a file {name!r:.200}, which no export has")
    for name, signature in found.signatures.items():
        for each in filter(None, (signature, signature.general)):
            if each.graph >= len(found.graphs):
                damaged(path, f"signature {name!r} names graph {each.graph}, which is not there")
            if each.inputs.keys() != signature.inputs.keys():
                damaged(path, f"signature {name!r} has other inputs in its second graph")
            if each.outputs.keys() != signature.outputs.keys():
                damaged(path, f"signature {name!r} has other outputs in its second graph")
    return found


def read_file(folder: Path, name: str, contents: Contents) -> bytes:
    """The content of a listed file, verified by size and sha256.

    Raises:
        DataLossError: it is missing, not listed, not a regular file, truncated or modified.
    """
    path = folder / name
    entry = contents.files.get(name)
    if entry is None:
        damaged(path, f"{SIGNATURE} does not list it")
    if path.parent != folder:
        check_folder(path.parent)
    data = _read(path, min(entry.size, _FILE_BYTES))
    if len(data) != entry.size or hashlib.sha256(data).hexdigest() != entry.sha256:
        damaged(path, "its content has changed", f"{entry.size} bytes, sha256 {entry.sha256}")
    return data


def check_folder(path: Path) -> None:
    """Rejects paths that are not folders, and links."""
    try:
        plain = stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        damaged(path, "it is missing")
    if not plain:
        damaged(path, "it is not a folder", "a folder, not a link")


def _read(path: Path, limit: int) -> bytes:
    try:
        status = path.lstat()
    except OSError:
        damaged(path, "it is missing")
    if not stat.S_ISREG(status.st_mode):
        damaged(path, "it is not a regular file", "a regular file, not a link")
    if status.st_size > limit:
        damaged(path, "it is too large", f"{limit} bytes at most", f"{status.st_size} bytes")
    with os_errors("read the exported model", path):
        return path.read_bytes()


def parse_json(path: Path, data: bytes) -> dict[str, Any]:
    """Parses a JSON object by RFC 8259, without duplicate names and with bounded nesting.

    Raises:
        DataLossError: the text is invalid.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            raise ValueError("an object has a duplicate name")
        return table

    try:
        content = json.loads(data, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        damaged(path, "it is not valid JSON", received=str(error)[:200])
    if not isinstance(content, dict):
        damaged(path, "it is not a JSON object", "{...}", repr(content)[:80])
    return content


def damaged(path: Path, problem: str, expected: Any = None, received: Any = None) -> NoReturn:
    """Raises `DataLossError` for a file of an exported model."""
    raise DataLossError.explained(
        f"the exported model is damaged: {os.fspath(path)!r}: {problem}",
        expected=expected,
        received=received,
        hint="copy the folder again, or export the model again",
    )


# -- graphs

_IMPURE_BUT_SAFE = {
    "Assert",
    "CheckNumerics",
    "NoOp",
    "Placeholder",
    "PlaceholderWithDefault",
    "BuildNearestNeighbors",
    "NearestNeighbors",
    "HashTableV2",
    "MutableHashTableV2",
    "InitializeTableV2",
    "LookupTableInsertV2",
    "LookupTableFindV2",
    "LookupTableFindOrHash",
    "LookupTableSizeV2",
    "LookupTableExportV2",
    "EmbeddingRows",
}


def is_allowed(op_type: str) -> bool:
    """Whether a loaded model may contain an operation type: computation and tables, but no access
    to files and no Python calls.
    """
    if op_type in _IMPURE_BUT_SAFE:
        return True
    row = registry.lookup(op_type)
    on_host = row.placement.where == "host"
    return (
        not row.semantics.effects
        and (row.semantics.pure or not on_host)
        and not (on_host and row.placement.context)
    )


def check_graph(path: Path, graph_def: Any) -> None:
    """Rejects a graph with operations that are not allowed, including those named in attributes.

    Raises:
        DataLossError: there is one.
    """
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    for node in nodes:
        if registry.find(node.op) is None or not is_allowed(node.op):
            damaged(
                path,
                f"operation {node.name!r:.200} is of a type that no exported model has",
                "operations that compute",
                node.op[:200],
            )
        for key, attr in node.attr.items():
            if attr.WhichOneof("value") in ("tensor", None):
                continue
            try:
                texts = list(_texts(attr_values.decode(attr)))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                damaged(path, f"attribute {key!r} of {node.name!r} is malformed", received=error)
            for text in texts:
                if registry.find(text) is not None and not is_allowed(text):
                    damaged(path, f"attribute {key!r} of {node.name!r} names {text!r}")


def _texts(value: Any) -> Iterator[str]:
    """Yields the strings in a nested value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(key)
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def fill_graph(folder: Path, number: int, contents: Contents, arrays: Mapping[str, Any]) -> Any:
    """The `GraphDef` of a graph, with its modules and arrays filled in.

    Args:
        folder: the exported model.
        number: the index of the graph.
        arrays: the arrays of the weights by name.

    Raises:
        DataLossError: a file is damaged, or the graph was not written by an export.
    """
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    name = f"{FOLDER}/graph-{number}.pb"
    path = folder / name
    try:
        graph_def = GraphDef.FromString(read_file(folder, name, contents))
    except DecodeError as error:
        damaged(path, "it is not a graph", received=str(error))
    check_graph(path, graph_def)
    entry = contents.graphs[number]
    nodes = {node.name: node for node in graph_def.node}
    if len(nodes) != len(graph_def.node):
        damaged(path, "two operations have the same name")
    for node_name, file in entry.modules.items():
        if node_name not in nodes or nodes[node_name].op != OP_TYPE:
            damaged(path, f"there is no module {node_name!r:.200}")
        data = read_file(folder, f"{FOLDER}/{file}", contents)
        tensor = nodes[node_name].attr["module"].tensor
        tensor.dtype = ALL["uint8"].as_datatype_enum
        tensor.tensor_shape.dim.add(size=len(data))
        tensor.tensor_content = data
    for place, array in entry.arrays.items():
        node_name, _, key = place.rpartition(":")
        if node_name not in nodes or array not in arrays:
            damaged(path, f"there is no {place!r:.200}, or no array {array!r:.200}")
        nodes[node_name].attr[key].CopyFrom(attr_values.encode(arrays[array]))
    return graph_def


def read_weights(folder: Path, contents: Contents) -> dict[str, Any]:
    """The variables ('variable/NAME') and arrays ('array/...') of a model.

    Raises:
        DataLossError: a file is damaged.
    """
    check_folder(folder / FOLDER)
    weights = folder / FOLDER / WEIGHTS
    check_folder(weights)
    manifest = checkpoint_manifest.read_manifest(weights)
    checkpoint_format.verify_files(weights, manifest)
    found: dict[str, Any] = checkpoint_format.read_tensors(weights, manifest, manifest.tensors)
    wanted = {f"variable/{each}" for graph in contents.graphs for each in graph.variables}
    wanted.update(array for graph in contents.graphs for array in graph.arrays.values())
    missing = sorted(wanted - set(found))
    if missing:
        damaged(weights, f"there is no {missing[0]!r:.200}")
    return found


__all__ = [
    "FOLDER",
    "REQUEST",
    "RESPONSE",
    "SIGNATURE",
    "WEIGHTS",
    "Contents",
    "GraphEntry",
    "SignatureEntry",
    "TensorEntry",
    "check_graph",
    "fill_graph",
    "is_allowed",
    "read_file",
    "read_signature",
    "read_weights",
    "write_file",
    "write_signature",
]
