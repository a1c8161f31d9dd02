"""The layout of a checkpoint folder: tensor shards, `state.json` and a manifest.

Shards are safetensors files that hold tensors, or pieces of tensors that several processes share.
Dtypes that safetensors 0.4.3 lacks, complex numbers and strings, are stored as raw bytes; the
manifest (`checkpoint_manifest`) has the true dtype. All input is verified, and nothing is
unpickled. `checkpoint` opens and renames folders; the functions here work within one folder.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from estimatorkit.core import dtypes, errors
from estimatorkit.storage.atomic_files import os_error, sync_file
from estimatorkit.storage.checkpoint_manifest import (
    FORMAT_VERSION,
    JSON_BYTES,
    MANIFEST,
    STATE,
    Manifest,
    Piece,
    TensorEntry,
    damaged,
    from_json,
    plain_file,
    read_small,
)
from estimatorkit.storage.tensor_slice import TensorSlice

_SHARD = "variables-{:05d}-of-{:05d}.safetensors"
_JSON_DEPTH = 50
_RESERVED_NAME = "__metadata__"  # reserved by safetensors
_STORED_AS_BYTES = ("complex64", "complex128", "string")

ShardWriter: TypeAlias = Callable[[Path, Mapping[str, str]], Mapping[str, tuple[str, list[int]]]]
"""Makes another process write a file, given its path and the names in that process by the names in
the checkpoint. Returns the dtype name and shape of each."""


@dataclass(frozen=True)
class RemoteTensor:
    """A tensor that another process holds under `name`, and writes on request of `writer`."""

    writer: ShardWriter
    name: str


@dataclass(frozen=True)
class ShardedTensor:
    """A tensor split along `axis` into arrays or `RemoteTensor`s, by name in the files."""

    axis: int
    parts: Mapping[str, Any]


def write_contents(
    directory: Path, tensors: Mapping[str, Any], state: Mapping[str, Any], shard_bytes: int
) -> None:
    """Writes shards, state and, last, the manifest into an empty folder, and syncs all of it.

    `tensors` may contain `RemoteTensor`s and `ShardedTensor`s. A shard exceeds `shard_bytes` only
    if it holds a single tensor. Raises InvalidArgumentError if a name, dtype or value cannot be
    stored.
    """
    _check_state(state, "state", 0)
    state_json = _to_json(state, "the state")
    written = _write_shards(directory, _in_files(tensors), shard_bytes)
    entries = {name: _entry(name, value, written) for name, value in tensors.items()}
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


_Written: TypeAlias = tuple[str, str, list[int]]
"""A stored array: file name, dtype and shape."""


def _in_files(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the stored arrays by name in the files: tensors, or their pieces."""
    found: dict[str, Any] = {}
    for name, value in tensors.items():
        for each, given in (
            value.parts if isinstance(value, ShardedTensor) else {name: value}
        ).items():
            if each in found:
                raise _invalid(
                    "two tensors of a checkpoint have the same name", received=repr(each)
                )
            found[each] = given
    return found


def _write_shards(
    directory: Path, values: Mapping[str, Any], shard_bytes: int
) -> dict[str, _Written]:
    """Writes the files, here or remotely; returns file, dtype and shape of each array."""
    others: dict[ShardWriter, dict[str, str]] = {}
    encoded = {}
    for name, value in values.items():
        if isinstance(value, RemoteTensor):
            others.setdefault(value.writer, {})[name] = value.name
        else:
            encoded[name] = _encode(name, value)
    sizes = {name: stored.nbytes for name, (_, stored) in encoded.items()}
    shards = _split(sizes, shard_bytes) if sizes or not others else []
    count = len(shards) + len(others)
    found: dict[str, _Written] = {}
    for index, names in enumerate(shards):
        shard = _SHARD.format(index, count)
        _write_shard(directory / shard, {name: encoded[name][1] for name in names})
        found.update((name, (shard, *encoded[name][0])) for name in names)
    for index, (writer, wanted) in enumerate(others.items(), len(shards)):
        shard = _SHARD.format(index, count)
        written = writer(directory / shard, wanted)
        if not (directory / shard).is_file():
            raise _invalid(
                "the part of the checkpoint that another process wrote is missing",
                received=str(directory / shard),
                hint="use a model_dir on storage that all processes share",
            )
        found.update((name, (shard, *described)) for name, described in written.items())
    return found


def _entry(name: str, value: Any, written: Mapping[str, _Written]) -> dict[str, Any]:
    """Returns a tensor's manifest entry."""
    if not isinstance(value, ShardedTensor):
        shard, dtype, shape = written[name]
        return {"shard": shard, "dtype": dtype, "shape": shape}
    axis, found = value.axis, [written[each] for each in value.parts]
    kinds = {(dtype, *shape[:axis], None, *shape[axis + 1 :]) for _, dtype, shape in found}
    if len(kinds) > 1:
        raise _invalid(
            f"the parts of {name!r} are not parts of one array along axis {axis}",
            received=", ".join(f"{dtype} {shape}" for _, dtype, shape in found),
        )
    _, dtype, first = found[0]
    sizes = [shape[axis] for _, _, shape in found]
    pieces = [
        {"shard": shard, "name": each, "size": size}
        for each, (shard, _, _), size in zip(value.parts, found, sizes, strict=True)
    ]
    shape = [*first[:axis], sum(sizes), *first[axis + 1 :]]
    return {"dtype": dtype, "shape": shape, "axis": axis, "pieces": pieces}


def write_shard(path: Path, tensors: Mapping[str, Any]) -> dict[str, tuple[str, list[int]]]:
    """Writes the tensors of this process to one file, and syncs it.

    `path` is the path in the process that writes the checkpoint. Returns the dtype name and shape
    of each tensor, for the manifest. Errors are those of `write_contents`.
    """
    encoded = {name: _encode(name, value) for name, value in tensors.items()}
    _write_shard(path, {name: stored for name, (_, stored) in encoded.items()})
    return {name: described for name, (described, _) in encoded.items()}


def _encode(name: str, value: Any) -> tuple[tuple[str, list[int]], NDArray[Any]]:
    """Returns (dtype name, shape), and the array to store: contiguous, native byte order."""
    if not isinstance(name, str) or name in ("", _RESERVED_NAME) or not _is_unicode(name):
        raise _invalid(
            "a variable name cannot be stored",
            expected=f"a non-empty text other than {_RESERVED_NAME!r}",
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
    """Encodes strings as one byte array: n + 1 offsets (little-endian int64), then the content."""
    items: list[bytes] = []
    for item in array.ravel().tolist():
        if not isinstance(item, (bytes, str)) or (isinstance(item, str) and not _is_unicode(item)):
            raise _invalid(
                f"variable {name!r} is an object array that contains other objects than strings",
                expected="bytes, or str that UTF-8 can encode",
                received=f"{item!r} ({type(item).__name__})",
            )
        items.append(item.encode() if isinstance(item, str) else item)
    offsets = np.cumsum([0, *map(len, items)], dtype="<i8")
    return np.frombuffer(offsets.tobytes() + b"".join(items), np.uint8)


def _split(sizes: Mapping[str, int], shard_bytes: int) -> list[list[str]]:
    """Groups names in order, each group within `shard_bytes` unless it is a single tensor."""
    if shard_bytes < 1:
        raise _invalid("shard_bytes is too small", expected="at least 1", received=shard_bytes)
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
        # safetensors reports the errno only in its message, worded by Rust.
        code = re.search(r"(?:os error|code:) (\d+)", str(error))
        raise os_error("write the tensors", path, int(code[1]) if code else 0) from error
    # safetensors makes the file readable by its owner only, but an evaluator may be another user.
    # The folder's mode follows the umask.
    path.chmod(path.parent.stat().st_mode & 0o666)
    sync_file(path)


def _check_state(value: Any, where: str, depth: int) -> None:
    """Rejects values that JSON would change or drop, so that the state round-trips."""
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
        expected="None, bool, int, finite float, str, list or dict, nested at most "
        f"{_JSON_DEPTH} deep",
        received=f"{value!r:.80} ({type(value).__name__})",
        hint="convert it (`int(x)`, `x.tolist()`, `list(x)`), or store it as a tensor",
    )


def _to_json(content: Mapping[str, Any], what: str) -> bytes:
    data = json.dumps(content, indent=1, ensure_ascii=True, default=dict).encode()
    if len(data) > JSON_BYTES:
        raise _invalid(
            f"{what} is too large", expected=f"at most {JSON_BYTES} bytes", received=len(data)
        )
    return data


def _write_synced(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    sync_file(path)


def verify_files(directory: Path, manifest: Manifest, names: Iterable[str] | None = None) -> None:
    """Verifies files (all by default) against the manifest: size, then SHA-256.

    Hashes are cached per process and version of a file. Raises DataLossError if a file is missing,
    truncated, changed, or not a regular file.
    """
    for name in manifest.files if names is None else names:
        path, entry = directory / name, manifest.files[name]
        size = plain_file(path).st_size
        if size != entry.size:
            damaged(path, f"{name} has the wrong size", f"{entry.size} bytes", f"{size} bytes")
        digest = _sha256(path)
        if digest != entry.sha256:
            damaged(path, f"{name} is damaged", f"sha256 {entry.sha256}", f"sha256 {digest}")


def read_state(directory: Path) -> dict[str, Any]:
    """Reads `state.json` of a verified checkpoint folder."""
    return from_json(directory / STATE, read_small(directory / STATE))


def read_tensors(
    directory: Path, manifest: Manifest, names: Iterable[str]
) -> dict[str, NDArray[Any]]:
    """Reads tensors of a checkpoint folder whose shards are verified.

    Returns arrays with their own memory, in the order of `names`; strings are object arrays of
    bytes. Raises DataLossError if a shard contradicts the manifest.
    """
    wanted = list(names)
    found = read_parts(directory, manifest, [TensorSlice(name) for name in wanted])
    return dict(zip(wanted, found, strict=True))


def read_parts(
    directory: Path, manifest: Manifest, parts: Iterable[TensorSlice]
) -> list[NDArray[Any]]:
    """Reads tensors, or slices of them, of a checkpoint folder whose shards are verified.

    Memory is limited to the slices, except that strings and complex numbers are read in whole
    pieces. The result is in the order of `parts`. Raises as `read_tensors`, and
    InvalidArgumentError if a slice is out of range.
    """
    with ExitStack() as stack:
        shards = _Shards(directory, manifest, stack)
        return [shards.read(part) for part in parts]


def shards_of(manifest: Manifest, parts: Iterable[TensorSlice]) -> set[str]:
    """Returns the files that hold the slices."""
    entries = ((part, manifest.tensors[part.name]) for part in parts)
    return {piece.shard for part, entry in entries for piece, _, _ in _cuts(part, entry)}


class _Shards:
    """The shards of a folder, opened and compared with the manifest on demand."""

    def __init__(self, directory: Path, manifest: Manifest, stack: ExitStack) -> None:
        self._directory = directory
        self._manifest = manifest
        self._stack = stack
        self._opened: dict[str, Any] = {}
        self._listed: dict[str, set[str]] = {}
        for name, entry in manifest.tensors.items():
            for piece, _ in entry.stored(name):
                self._listed.setdefault(piece.shard, set()).add(piece.name)

    def read(self, part: TensorSlice) -> NDArray[Any]:
        """Reads a tensor, or a slice of it."""
        entry = self._manifest.tensors[part.name]
        found = [
            self._read_piece(piece, entry.dtype, shape, cut)
            for piece, shape, cut in _cuts(part, entry)
        ]
        if not found:
            empty = [part.size or 0 if at == part.axis else n for at, n in enumerate(entry.shape)]
            return np.empty(empty, dtypes.as_dtype(entry.dtype).numpy_dtype)
        return found[0] if len(found) == 1 else np.concatenate(found, entry.axis)

    def _read_piece(
        self, piece: Piece, dtype: str, shape: tuple[int, ...], cut: tuple[slice, ...]
    ) -> NDArray[Any]:
        path = self._directory / piece.shard
        try:
            return _read_array(path, self._open(path), piece.name, (dtype, shape), cut)
        except safetensors.SafetensorError as error:
            damaged(path, f"{piece.shard} is not a valid safetensors file", received=str(error))

    def _open(self, path: Path) -> Any:
        if path.name not in self._opened:
            file = self._stack.enter_context(safetensors.safe_open(path, framework="np"))
            difference = sorted(set(file.keys()) ^ self._listed[path.name])
            if difference:
                damaged(path, f"{path.name} and the manifest list different tensors: {difference}")
            self._opened[path.name] = file
        return self._opened[path.name]


def _cuts(
    part: TensorSlice, entry: TensorEntry
) -> Iterator[tuple[Piece, tuple[int, ...], tuple[slice, ...]]]:
    """Yields the stored pieces that overlap a slice, with their shapes and the index to read."""
    places = range_of(part, entry.shape)
    start = 0
    for piece, shape in entry.stored(part.name):
        cut = [(0, size) for size in shape]
        whole = tuple(cut)
        if places is not None:
            low, high = places
            if entry.pieces and part.axis == entry.axis:
                low, high = max(low - start, 0), min(high - start, piece.size)
                start += piece.size
            cut[part.axis] = low, high
        if tuple(cut) == whole or all(low < high for low, high in cut):
            yield piece, shape, tuple(itertools.starmap(slice, cut))


def range_of(part: TensorSlice, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Returns the (start, end) of a slice of a tensor; None for the whole tensor.

    Raises InvalidArgumentError if it is out of range.
    """
    if part.size is None:
        return None
    end = part.start + part.size
    if part.axis >= len(shape) or part.start < 0 or part.size < 0 or end > shape[part.axis]:
        raise _invalid(
            f"the tensor {part.name!r} has no such slice",
            expected=f"a slice of {list(shape)}",
            received=f"{part.start} to {end} of axis {part.axis}",
        )
    return part.start, end


def _read_array(
    path: Path, file: Any, name: str, described: tuple[str, tuple[int, ...]], cut: tuple[slice, ...]
) -> NDArray[Any]:
    dtype_name, shape = described
    raw = dtype_name in _STORED_AS_BYTES
    dtype = dtypes.as_dtype(dtype_name).numpy_dtype
    header = file.get_slice(name)  # describes the tensor without reading it
    stored = tuple(header.get_shape())
    matches = len(stored) == 1 if raw else stored == shape
    if matches and raw and dtype_name != "string":
        matches = stored[0] == math.prod(shape) * dtype.itemsize
    if not matches:
        damaged(path, f"tensor {name!r} has the wrong shape", list(shape), list(stored))
    whole = all(each.stop - each.start == size for each, size in zip(cut, shape, strict=True))
    array: NDArray[Any] = file.get_tensor(name) if raw or whole else header[cut]
    if array.dtype != (np.dtype(np.uint8) if raw else dtype):
        damaged(path, f"tensor {name!r} has the wrong dtype", dtype_name, str(array.dtype))
    if not raw:
        return array
    if dtype_name == "string":
        found = _bytes_to_strings(path, name, array, shape)
    else:
        found = array.view(dtype).reshape(shape)
    return found if whole else found[cut].copy()


def _bytes_to_strings(
    path: Path, name: str, stored: NDArray[np.uint8], shape: tuple[int, ...]
) -> NDArray[Any]:
    count = math.prod(shape)
    head = 8 * (count + 1)
    text = stored[head:].tobytes()
    offsets = stored[:head].view("<i8") if len(stored) >= head else np.empty(0, "<i8")
    ordered = len(offsets) and offsets[0] == 0 and offsets[-1] == len(text)
    if not ordered or (offsets[1:] < offsets[:-1]).any():
        damaged(path, f"the string tensor {name!r} is inconsistent", f"{count} strings")
    bounds = offsets.tolist()
    result = np.empty(count, dtype=object)
    result[:] = [text[start:end] for start, end in itertools.pairwise(bounds)]
    return result.reshape(shape)


def _sha256(path: Path) -> str:
    """Hashes a file, cached per process by identity, size and times."""
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
    return errors.InvalidArgumentError.explained(problem, **parts)
