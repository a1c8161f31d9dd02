"""Writer of TensorFlow's V2 checkpoints (tensor bundles), for SavedModels.

The readers `tensor_bundle` and `sorted_table` describe the format. There is one data file; the
index has one entry per tensor, in uncompressed blocks of about 4 KB.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.storage.atomic_files import os_errors
from estimatorkit.storage.sorted_table import MAGIC
from estimatorkit.storage.wire import crc32c, encoded_varint, masked, message

_BLOCK = 4096  # bytes; TensorFlow's own is 256 KB, and any size is read
_FOOTER_HANDLES = 40
_HEADER = message((1, 1), (3, message((1, 1))))  # one shard, little-endian, written by version 1


def write_bundle(prefix: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]]) -> None:
    """Writes and syncs `PREFIX.index` and `PREFIX.data-00000-of-00001` in an existing folder.

    Raises OpError by errno (see `atomic_files.os_error`).
    """
    prefix = os.fspath(prefix)
    entries = {b"": _HEADER}
    with os_errors("write the variables", prefix):
        with open(f"{prefix}.data-00000-of-00001", "xb") as file:
            for name in sorted(tensors, key=str.encode):
                array = np.asarray(tensors[name])
                data, checksum = _stored(array)
                entries[name.encode()] = _entry(array, file.tell(), len(data), checksum)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with open(f"{prefix}.index", "xb") as file:
            file.writelines(_table(sorted(entries.items())))
            file.flush()
            os.fsync(file.fileno())


def _stored(array: NDArray[Any]) -> tuple[bytes, int]:
    """Returns the stored bytes of a tensor, and their checksum."""
    if not array.dtype.hasobject:
        little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        data = little.tobytes()
        return data, crc32c(data)
    texts = [each.encode() if isinstance(each, str) else bytes(each) for each in array.flat]
    lengths = b"".join(
        len(text).to_bytes(4 if len(text) < 1 << 32 else 8, "little") for text in texts
    )
    checksum = crc32c(lengths)
    middle = masked(checksum).to_bytes(4, "little")
    body = b"".join(texts)
    stored = b"".join(encoded_varint(len(text)) for text in texts) + middle + body
    return stored, crc32c(middle + body, checksum)


def _entry(array: NDArray[Any], offset: int, size: int, checksum: int) -> bytes:
    """Encodes a `BundleEntryProto`."""
    shape = message(*((2, message((1, length))) for length in array.shape))
    fields: list[tuple[int, int | bytes]]
    fields = [(1, as_dtype(array.dtype).as_datatype_enum), (2, shape), (4, offset), (5, size)]
    fixed = masked(checksum).to_bytes(4, "little")
    return message(*fields) + encoded_varint(6 << 3 | 5) + fixed


def _table(pairs: Sequence[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Yields the bytes of a sorted table of sorted pairs."""
    index: list[tuple[bytes, bytes]] = []
    at = 0
    for block in _blocks(pairs):
        stored, handle = _block(block, at)
        index.append((block[-1][0], handle))
        yield stored
        at += len(stored)
    filters, filters_handle = _block([], at)
    yield filters
    places, index_handle = _block(index, at + len(filters))
    yield places
    yield (filters_handle + index_handle).ljust(_FOOTER_HANDLES, b"\0") + MAGIC.to_bytes(
        8, "little"
    )


def _blocks(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    block: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in pairs:
        block.append((key, value))
        size += len(key) + len(value)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _block(pairs: Sequence[tuple[bytes, bytes]], at: int) -> tuple[bytes, bytes]:
    """Returns a block with its trailer, and its handle. Keys do not share prefixes."""
    body, starts = bytearray(), []
    for key, value in pairs:
        starts.append(len(body))
        body += b"\0" + encoded_varint(len(key)) + encoded_varint(len(value)) + key + value
    starts = starts or [0]
    body += b"".join(start.to_bytes(4, "little") for start in [*starts, len(starts)])
    handle = encoded_varint(at) + encoded_varint(len(body))
    body += b"\0"  # not compressed
    return bytes(body) + masked(crc32c(bytes(body))).to_bytes(4, "little"), handle
