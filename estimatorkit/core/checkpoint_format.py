"""The inside of one checkpoint folder: tensor shards, `state.json`, `MANIFEST.json`.

Tensors lie in safetensors files. What safetensors (from 0.4.3 on) lacks, complex numbers and
strings, lies there as raw bytes; the manifest has the true dtype. The manifest also lists every
file with size and sha256, and ends with the sha256 of its own text, so that one flipped byte
anywhere is found. Nothing is believed before it is checked: names are taken from a fixed pattern,
sizes and shapes are compared before memory is taken, nothing is unpickled. Folders are opened and
renamed in `checkpoint`; here every function works on one folder that is known.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from estimatorkit.core import dtypes, errors
from estimatorkit.core.durable import os_error, sync_file

FORMAT_VERSION = 1
MANIFEST = "MANIFEST.json"
STATE = "state.json"
_DATA_FILE = re.compile(r"state\.json|variables-[0-9]{5}-of-[0-9]{5}\.safetensors")
_SHARD = "variables-{:05d}-of-{:05d}.safetensors"
# JSON takes about 30 times its size once parsed; a model of 100,000 variables has a manifest of 16
# MB.
_JSON_BYTES = 64 << 20
_JSON_DEPTH = 50
# The manifest's last line, the same in every version of the format: the sha256 of all that stands
# before the comma.
_SEAL = re.compile(rb'(?P<sealed>.*),\n "manifest_sha256": "(?P<digest>[0-9a-f]{64})"\n}\n', re.S)
_RESERVED_NAME = "__metadata__"  # safetensors keeps it for itself
_STORED_AS_BYTES = ("complex64", "complex128", "string")


ShardWriter: TypeAlias = Callable[[Path, Mapping[str, str]], Mapping[str, tuple[str, list[int]]]]
"""Lets another process write a file: path, its names for the tensors by theirs in the checkpoint.
Returns the dtype's name and the shape of each."""


@dataclass(frozen=True)
class Elsewhere:
    """A tensor that another process holds and writes.

    Attributes:
        writer: lets it write what it holds.
        name: what it calls the tensor.
    """

    writer: ShardWriter
    name: str


@dataclass(frozen=True)
class FileEntry:
    """A file of a checkpoint: `size` in bytes, `sha256` in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of a checkpoint: the file it lies in, the name of its dtype, its shape."""

    shard: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Manifest:
    """The table of contents of a checkpoint: files by name, tensors by variable name."""

    files: Mapping[str, FileEntry]
    tensors: Mapping[str, TensorEntry]


def is_checkpoint_file(name: str) -> bool:
    """Returns whether a file name is one that this format uses."""
    return name == MANIFEST or _DATA_FILE.fullmatch(name) is not None


# Writing


def write_contents(
    directory: Path, tensors: Mapping[str, Any], state: Mapping[str, Any], shard_bytes: int
) -> None:
    """Writes shards, state and, last, the manifest into an empty folder, and syncs all of it.

    Args:
        directory: an empty folder.
        tensors: variable name to array, or to an `Elsewhere`.
        state: what JSON can hold.
        shard_bytes: a shard ends before the tensor that would make it larger than this.

    Raises:
        InvalidArgumentError: a name, a dtype or a value that cannot be stored.
        OSError, OpError: the files cannot be written.
    """
    _check_state(state, "state", 0)
    state_json = _to_json(state, "the state")
    others: dict[ShardWriter, dict[str, str]] = {}
    for name, value in tensors.items():
        if isinstance(value, Elsewhere):
            others.setdefault(value.writer, {})[name] = value.name
    encoded = {
        name: _encode(name, value)
        for name, value in tensors.items()
        if not isinstance(value, Elsewhere)
    }
    sizes = {name: stored.nbytes for name, (_, stored) in encoded.items()}
    shards = _split(sizes, shard_bytes) if sizes or not others else []
    count = len(shards) + len(others)
    entries: dict[str, Any] = {}
    for index, names in enumerate(shards):
        shard = _SHARD.format(index, count)
        _write_shard(directory / shard, {name: encoded[name][1] for name in names})
        for name in names:
            dtype, shape = encoded[name][0]
            entries[name] = {"shard": shard, "dtype": dtype, "shape": shape}
    for index, (writer, wanted) in enumerate(others.items(), len(shards)):
        shard = _SHARD.format(index, count)
        written = writer(directory / shard, wanted)
        if not (directory / shard).is_file():
            raise _invalid(
                "another process has written its part of the checkpoint, and it is not here",
                received=str(directory / shard),
                hint="give all processes one model_dir on storage that they share",
            )
        for name, (dtype, shape) in written.items():
            entries[name] = {"shard": shard, "dtype": dtype, "shape": shape}
    _write_synced(directory / STATE, state_json)

    files = {
        path.name: {"size": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(directory.iterdir())
    }
    content = {"format_version": FORMAT_VERSION, "files": files, "tensors": entries}
    sealed = _to_json(content, "the manifest").removesuffix(b"\n}")
    seal = b',\n "manifest_sha256": "%s"\n}\n' % hashlib.sha256(sealed).hexdigest().encode()
    _write_synced(directory / MANIFEST, sealed + seal)
    sync_file(directory)


def write_shard(path: Path, tensors: Mapping[str, Any]) -> dict[str, tuple[str, list[int]]]:
    """Writes the part of a checkpoint that this process holds, synced.

    Args:
        path: the file, as the process that writes the checkpoint calls it.
        tensors: variable name to array.

    Returns:
        dtype name and shape of each, as the manifest has them.

    Raises:
        InvalidArgumentError, OSError, OpError: see `write_contents`.
    """
    encoded = {name: _encode(name, value) for name, value in tensors.items()}
    _write_shard(path, {name: stored for name, (_, stored) in encoded.items()})
    return {name: described for name, (described, _) in encoded.items()}


def _encode(name: str, value: Any) -> tuple[tuple[str, list[int]], NDArray[Any]]:
    """Returns (dtype name, shape), and the array to store: contiguous, native byte order."""
    if not isinstance(name, str) or name in ("", _RESERVED_NAME) or not _is_unicode(name):
        raise _invalid(
            "a variable name cannot be stored",
            expected=f"text that is not empty and not {_RESERVED_NAME!r}",
            received=repr(name),
        )
    array = np.asarray(value)
    try:
        dtype = dtypes.as_dtype(array.dtype)
    except TypeError:
        raise _invalid(
            f"variable {name!r} has a dtype that cannot be stored",
            expected=", ".join(dtype for dtype in dtypes.ALL if dtype != "resource"),
            received=f"{array.dtype} {array.shape}",
        ) from None
    stored = (
        _strings_to_bytes(name, array)
        if dtype is dtypes.string
        else np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
    )
    if dtype.name in _STORED_AS_BYTES:
        stored = stored.reshape(-1).view(np.uint8)
    return (dtype.name, list(array.shape)), stored


def _strings_to_bytes(name: str, array: NDArray[Any]) -> NDArray[np.uint8]:
    """Joins strings into one array of bytes: n + 1 offsets (little-endian int64), then text."""
    items: list[bytes] = []
    for item in array.ravel().tolist():
        if not isinstance(item, (bytes, str)) or (isinstance(item, str) and not _is_unicode(item)):
            raise _invalid(
                f"variable {name!r} is an object array with something other than strings",
                expected="bytes, or str that UTF-8 can encode",
                received=f"{item!r} ({type(item).__name__})",
            )
        items.append(item.encode() if isinstance(item, str) else item)
    offsets = np.cumsum([0, *map(len, items)], dtype="<i8")
    return np.frombuffer(offsets.tobytes() + b"".join(items), np.uint8)


def _split(sizes: Mapping[str, int], shard_bytes: int) -> list[list[str]]:
    """Groups names in order; no group is larger than `shard_bytes`, unless it is one tensor."""
    if shard_bytes < 1:
        raise _invalid("shard_bytes is too small", expected="1 or more", received=shard_bytes)
    groups: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        if groups[-1] and filled + size > shard_bytes:
            groups.append([])
            filled = 0
        groups[-1].append(name)
        filled += size
    return groups


def _write_shard(path: Path, tensors: dict[str, NDArray[Any]]) -> None:
    try:
        safetensors.numpy.save_file(tensors, path)
    except safetensors.SafetensorError as error:
        # The library gives the errno only in its text, worded by Rust.
        code = re.search(r"(?:os error|code:) (\d+)", str(error))
        raise os_error("write the tensors", path, int(code[1]) if code else 0) from error
    # The library makes the file readable for its owner only; an evaluator may be another user. The
    # folder has the mode that the umask gave it.
    path.chmod(path.parent.stat().st_mode & 0o666)
    sync_file(path)


def _check_state(value: Any, where: str, depth: int) -> None:
    """Refuses what JSON would change or drop, so that what is read is what was written."""
    if value is None or isinstance(value, (bool, int, str)):
        return
    if isinstance(value, float) and math.isfinite(value):
        return
    if depth < _JSON_DEPTH and isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _invalid(f"a key of {where} is not a str", received=repr(key))
            _check_state(item, f"{where}[{key!r}]", depth + 1)
        return
    if depth < _JSON_DEPTH and isinstance(value, list):
        for index, item in enumerate(value):
            _check_state(item, f"{where}[{index}]", depth + 1)
        return
    raise _invalid(
        f"{where} cannot be stored",
        expected=f"None, bool, int, finite float, str, list or dict, {_JSON_DEPTH} deep at most",
        received=f"{value!r:.80} ({type(value).__name__})",
        hint="convert it (`int(x)`, `x.tolist()`, `list(x)`), or store it as a tensor",
    )


def _to_json(content: Mapping[str, Any], what: str) -> bytes:
    data = json.dumps(content, indent=1, ensure_ascii=True, default=dict).encode()
    if len(data) > _JSON_BYTES:
        raise _invalid(
            f"{what} is too large", expected=f"{_JSON_BYTES} bytes at most", received=len(data)
        )
    return data


def _write_synced(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    sync_file(path)


# Reading


def read_manifest(directory: Path) -> Manifest:
    """Reads and checks the manifest of a checkpoint folder, but not yet the files that it lists.

    Raises:
        DataLossError: it is damaged or inconsistent.
        FailedPreconditionError: a newer version of the package wrote it.
        OSError: it cannot be read.
    """
    path = directory / MANIFEST
    data = _read_small(path)
    match = _SEAL.fullmatch(data)
    if match is None:
        _damaged(path, "MANIFEST.json is cut off or is no manifest", "its last line, the sha256")
    digest = hashlib.sha256(match["sealed"]).hexdigest()
    if digest != match["digest"].decode():
        _damaged(path, "MANIFEST.json is damaged", f"sha256 {match['digest'].decode()}", digest)
    content = _from_json(path, data)
    version = content.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise errors.FailedPreconditionError(
            None,
            None,
            errors.explain(
                f"the checkpoint {os.fspath(directory)!r} was written by a newer estimatorkit",
                expected=f"format version {FORMAT_VERSION} at most",
                received=f"format version {version}",
                hint="upgrade estimatorkit: pip install --upgrade estimatorkit",
            ),
        )
    if version != FORMAT_VERSION:
        _damaged(path, "MANIFEST.json has no valid format_version", FORMAT_VERSION, repr(version))
    listed = _object(path, content, "files")
    files = {name: _file_entry(path, name, entry) for name, entry in listed.items()}
    if STATE not in files:
        _damaged(path, f"MANIFEST.json does not list {STATE}")
    listed = _object(path, content, "tensors")
    tensors = {name: _tensor_entry(path, name, entry, files) for name, entry in listed.items()}
    return Manifest(files, tensors)


def verify_files(directory: Path, manifest: Manifest, names: Iterable[str] | None = None) -> None:
    """Compares files with the manifest: size, then sha256, once a process for each version of a
    file.

    Args:
        directory: the checkpoint folder.
        manifest: its manifest.
        names: the files to check; None is all.

    Raises:
        DataLossError: a file is missing, truncated, changed, or not a plain file.
    """
    for name in manifest.files if names is None else names:
        path, entry = directory / name, manifest.files[name]
        size = _plain_file(path).st_size
        if size != entry.size:
            _damaged(path, f"{name} has the wrong size", f"{entry.size} bytes", f"{size} bytes")
        digest = _sha256(path)
        if digest != entry.sha256:
            _damaged(path, f"{name} is damaged", f"sha256 {entry.sha256}", f"sha256 {digest}")


def read_state(directory: Path) -> dict[str, Any]:
    """Reads `state.json` of a checkpoint folder whose files are verified."""
    return _from_json(directory / STATE, _read_small(directory / STATE))


def read_tensors(
    directory: Path, manifest: Manifest, names: Iterable[str]
) -> dict[str, NDArray[Any]]:
    """Reads tensors of a checkpoint folder whose shards are verified.

    Returns:
        Arrays by name, in the order of `names`; each owns its memory. Strings are object arrays of
        bytes.

    Raises:
        DataLossError: a shard is no safetensors file, or does not hold what the manifest says.
    """
    wanted = list(names)
    result: dict[str, NDArray[Any]] = dict.fromkeys(wanted, np.empty(0))
    for shard in dict.fromkeys(manifest.tensors[name].shard for name in wanted):
        path = directory / shard
        listed = {name for name, entry in manifest.tensors.items() if entry.shard == shard}
        try:
            with safetensors.safe_open(path, framework="np") as file:
                if set(file.keys()) != listed:
                    difference = sorted(set(file.keys()) ^ listed)
                    _damaged(path, f"{shard} and the manifest list different tensors: {difference}")
                for name in wanted:
                    if name in listed:
                        result[name] = _read_tensor(path, file, name, manifest.tensors[name])
        except safetensors.SafetensorError as error:
            _damaged(path, f"{shard} is no valid safetensors file", received=str(error))
    return result


def _read_tensor(path: Path, file: Any, name: str, entry: TensorEntry) -> NDArray[Any]:
    raw = entry.dtype in _STORED_AS_BYTES
    dtype = dtypes.as_dtype(entry.dtype).numpy_dtype
    header = file.get_slice(name)  # describes the tensor without reading it
    shape = tuple(header.get_shape())
    matches = len(shape) == 1 if raw else shape == entry.shape
    if matches and raw and entry.dtype != "string":
        matches = shape[0] == math.prod(entry.shape) * dtype.itemsize
    if not matches:
        _damaged(path, f"tensor {name!r} has the wrong shape", list(entry.shape), list(shape))
    array: NDArray[Any] = file.get_tensor(name)
    if array.dtype != (np.dtype(np.uint8) if raw else dtype):
        _damaged(path, f"tensor {name!r} has the wrong dtype", entry.dtype, str(array.dtype))
    if entry.dtype == "string":
        return _bytes_to_strings(path, name, array, entry.shape)
    return array.view(dtype).reshape(entry.shape)


def _bytes_to_strings(
    path: Path, name: str, stored: NDArray[np.uint8], shape: tuple[int, ...]
) -> NDArray[Any]:
    count = math.prod(shape)
    head = 8 * (count + 1)
    text = stored[head:].tobytes()
    offsets = stored[:head].view("<i8") if len(stored) >= head else np.empty(0, "<i8")
    ordered = len(offsets) and offsets[0] == 0 and offsets[-1] == len(text)
    if not ordered or (offsets[1:] < offsets[:-1]).any():
        _damaged(path, f"the string tensor {name!r} is inconsistent", f"{count} strings")
    bounds = offsets.tolist()
    result = np.empty(count, dtype=object)
    result[:] = [text[start:end] for start, end in itertools.pairwise(bounds)]
    return result.reshape(shape)


def _object(path: Path, content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        _damaged(path, f"MANIFEST.json has no table {key!r}", "an object", repr(value)[:80])
    return value


def _file_entry(path: Path, name: str, entry: Any) -> FileEntry:
    if _DATA_FILE.fullmatch(name) is None:
        _damaged(
            path,
            f"MANIFEST.json lists a file {name!r}, which no checkpoint has",
            "state.json or variables-NNNNN-of-NNNNN.safetensors",
        )
    match entry:
        case {"size": int(size), "sha256": str(sha256)}:
            return FileEntry(size, sha256)
    _damaged(path, f"MANIFEST.json describes the file {name!r} wrongly", "size and sha256", entry)


def _tensor_entry(path: Path, name: str, entry: Any, files: Mapping[str, FileEntry]) -> TensorEntry:
    match entry:
        case {"shard": str(shard), "dtype": str(dtype), "shape": list(shape)}:
            known = shard in files and shard != STATE and dtype in dtypes.ALL
            whole = len(shape) <= 64 and all(type(size) is int and size >= 0 for size in shape)
            # NumPy counts the bytes without the zero dimensions, in 63 bits.
            if known and dtype != "resource" and whole:
                itemsize = dtypes.ALL[dtype].size
                if math.prod(size for size in shape if size) * itemsize < 1 << 63:
                    return TensorEntry(shard, dtype, tuple(shape))
    _damaged(
        path,
        f"MANIFEST.json describes the tensor {name!r} wrongly",
        "a listed shard, a known dtype, a shape of sizes >= 0",
        entry,
    )


def _plain_file(path: Path) -> os.stat_result:
    """Returns the status of a file that is neither a link (out of the folder, say) nor a pipe."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        _damaged(path, f"{path.name} is missing")
    if not stat.S_ISREG(status.st_mode):
        _damaged(path, f"{path.name} is not a plain file", "a plain file, not a link")
    return status


def _read_small(path: Path) -> bytes:
    size = _plain_file(path).st_size
    if size > _JSON_BYTES:
        _damaged(path, f"{path.name} is too large", f"{_JSON_BYTES} bytes at most", size)
    return path.read_bytes()


def _from_json(path: Path, data: bytes) -> dict[str, Any]:
    """Parses JSON as RFC 8259 has it: no NaN, no name twice, not nested without end."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            raise ValueError("a name stands twice in one object")
        return table

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        content = json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        _damaged(path, f"{path.name} is not valid JSON", received=str(error))
    if not isinstance(content, dict):
        _damaged(path, f"{path.name} holds no object", "{...}", repr(content)[:80])
    return content


def _sha256(path: Path) -> str:
    """Hashes a file, once a process for each version of it (identity, size and times)."""
    status = path.stat()
    version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return _sha256_of_version(path, version)


@lru_cache(maxsize=4096)
def _sha256_of_version(path: Path, version: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _invalid(problem: str, **parts: Any) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, errors.explain(problem, **parts))


def _damaged(path: Path, problem: str, expected: Any = None, received: Any = None) -> NoReturn:
    """Raises `DataLossError` for one file of a checkpoint."""
    raise errors.DataLossError(
        None,
        None,
        errors.explain(
            f"the checkpoint {os.fspath(path.parent)!r} is damaged: {problem}",
            expected=expected,
            received=received,
            hint="use another checkpoint of the folder, or copy this one again if it was copied",
        ),
    )
