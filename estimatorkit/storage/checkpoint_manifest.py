"""`MANIFEST.json`: the table of contents of a checkpoint folder.

It lists each file with size and SHA-256, and each tensor's location, and ends with the SHA-256 of
its own text. Readers treat it as untrusted: file names must match a fixed pattern, and sizes and
shapes are checked before allocating.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from estimatorkit.core import dtypes, errors
from estimatorkit.core.shapes import numpy_holds

FORMAT_VERSION = 1
MANIFEST = "MANIFEST.json"
STATE = "state.json"
_DATA_FILE = re.compile(r"state\.json|variables-[0-9]{5}-of-[0-9]{5}\.safetensors")
# Parsed JSON takes about 30 times its size; a model of 100,000 variables has a manifest of 16 MB.
JSON_BYTES = 64 << 20
# The manifest's last line, in every version of the format: the SHA-256 of all text before the
# comma.
_SEAL = re.compile(rb'(?P<sealed>.*),\n "manifest_sha256": "(?P<digest>[0-9a-f]{64})"\n}\n', re.S)


@dataclass(frozen=True)
class FileEntry:
    """A file of a checkpoint: `size` in bytes, `sha256` in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Piece:
    """A part of a tensor: its file, its name there, its size along the tensor's axis."""

    shard: str
    name: str
    size: int


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of a checkpoint.

    Attributes:
        shard: the file that holds it under its own name; '' if it is in pieces.
        dtype: the dtype's name.
        pieces: its parts in order; empty if it is in one file.
        axis: the axis along which the pieces are split.
    """

    shard: str
    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...] = ()
    axis: int = 0

    def stored(self, name: str) -> list[tuple[Piece, tuple[int, ...]]]:
        """Returns the pieces of the tensor `name` (itself if in one file) with their shapes."""
        if not self.pieces:
            return [(Piece(self.shard, name, -1), self.shape)]
        before, after = self.shape[: self.axis], self.shape[self.axis + 1 :]
        return [(piece, (*before, piece.size, *after)) for piece in self.pieces]


@dataclass(frozen=True)
class Manifest:
    """The table of contents of a checkpoint: files by name, tensors by variable name."""

    files: Mapping[str, FileEntry]
    tensors: Mapping[str, TensorEntry]


def is_checkpoint_file(name: str) -> bool:
    """Returns whether a file name belongs to this format."""
    return name == MANIFEST or _DATA_FILE.fullmatch(name) is not None


def read_manifest(directory: Path) -> Manifest:
    """Reads and verifies the manifest of a checkpoint folder, but not the files that it lists.

    Raises DataLossError if it is damaged, FailedPreconditionError if a newer version of the package
    wrote it, and OSError.
    """
    path = directory / MANIFEST
    data = read_small(path)
    match = _SEAL.fullmatch(data)
    if match is None:
        damaged(path, "MANIFEST.json is truncated or not a manifest", "its last line, the sha256")
    digest = hashlib.sha256(match["sealed"]).hexdigest()
    if digest != match["digest"].decode():
        damaged(path, "MANIFEST.json is damaged", f"sha256 {match['digest'].decode()}", digest)
    content = from_json(path, data)
    version = content.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise errors.FailedPreconditionError.explained(
            f"the checkpoint {os.fspath(directory)!r} was written by a newer estimatorkit",
            expected=f"format version {FORMAT_VERSION} or lower",
            received=f"format version {version}",
            hint="upgrade estimatorkit: pip install --upgrade estimatorkit",
        )
    if version != FORMAT_VERSION:
        damaged(path, "MANIFEST.json has no valid format_version", FORMAT_VERSION, repr(version))
    listed = _object(path, content, "files")
    files = {name: _file_entry(path, name, entry) for name, entry in listed.items()}
    if STATE not in files:
        damaged(path, f"MANIFEST.json does not list {STATE}")
    listed = _object(path, content, "tensors")
    tensors = {name: _tensor_entry(path, name, entry, files) for name, entry in listed.items()}
    return Manifest(files, tensors)


def _object(path: Path, content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        damaged(path, f"MANIFEST.json has no table {key!r}", "an object", repr(value)[:80])
    return value


def _file_entry(path: Path, name: str, entry: Any) -> FileEntry:
    if _DATA_FILE.fullmatch(name) is None:
        damaged(
            path,
            f"MANIFEST.json lists a file {name!r}, whose name is invalid",
            "state.json or variables-NNNNN-of-NNNNN.safetensors",
        )
    match entry:
        case {"size": int(size), "sha256": str(sha256)}:
            return FileEntry(size, sha256)
    damaged(
        path, f"MANIFEST.json has an invalid entry for the file {name!r}", "size and sha256", entry
    )


def _tensor_entry(path: Path, name: str, entry: Any, files: Mapping[str, FileEntry]) -> TensorEntry:
    match entry:
        case {"shard": str(shard), "dtype": str(dtype), "shape": list(shape)}:
            if _is_shard(shard, files) and _is_array(dtype, shape):
                return TensorEntry(shard, dtype, tuple(shape))
        case {"pieces": list(listed), "axis": int(axis), "dtype": str(dtype), "shape": list(shape)}:
            pieces = tuple(_piece(piece, files) for piece in listed)
            whole = tuple(piece for piece in pieces if piece is not None)
            fits = _is_array(dtype, shape) and type(axis) is int and 0 <= axis < len(shape)
            fits = fits and whole == pieces != ()
            if fits and sum(piece.size for piece in whole) == shape[axis]:
                return TensorEntry("", dtype, tuple(shape), whole, axis)
    damaged(
        path,
        f"MANIFEST.json has an invalid entry for the tensor {name!r}",
        "a listed shard, or pieces in listed shards whose sizes add up; a known dtype; sizes >= 0",
        entry,
    )


def _piece(piece: Any, files: Mapping[str, FileEntry]) -> Piece | None:
    match piece:
        case {"shard": str(shard), "name": str(name), "size": int(size)}:
            if _is_shard(shard, files) and type(size) is int and size >= 0:
                return Piece(shard, name, size)
    return None


def _is_shard(name: str, files: Mapping[str, FileEntry]) -> bool:
    return name in files and name != STATE


def _is_array(dtype: str, shape: list[Any]) -> bool:
    if dtype not in dtypes.ALL or dtype == "resource":
        return False
    if not all(type(size) is int and size >= 0 for size in shape):
        return False
    return numpy_holds(shape, dtypes.ALL[dtype].size)


def plain_file(path: Path) -> os.stat_result:
    """Returns the status of a regular file; rejects pipes and (possibly external) links."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        damaged(path, f"{path.name} is missing")
    if not stat.S_ISREG(status.st_mode):
        damaged(path, f"{path.name} is not a regular file", "a regular file, not a link")
    return status


def read_small(path: Path) -> bytes:
    size = plain_file(path).st_size
    if size > JSON_BYTES:
        damaged(path, f"{path.name} is too large", f"at most {JSON_BYTES} bytes", size)
    return path.read_bytes()


def from_json(path: Path, data: bytes) -> dict[str, Any]:
    """Parses strict JSON (RFC 8259): no NaN, no duplicate names, limited nesting."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            raise ValueError("an object has a duplicate name")
        return table

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        content = json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        damaged(path, f"{path.name} is not valid JSON", received=str(error))
    if not isinstance(content, dict):
        damaged(path, f"{path.name} is not a JSON object", "{...}", repr(content)[:80])
    return content


def damaged(path: Path, problem: str, expected: Any = None, received: Any = None) -> NoReturn:
    """Raises `DataLossError` for one file of a checkpoint."""
    raise errors.DataLossError.explained(
        f"the checkpoint {os.fspath(path.parent)!r} is damaged: {problem}",
        expected=expected,
        received=received,
        hint="use another checkpoint of the folder, or copy this one again if it is a copy",
    )
