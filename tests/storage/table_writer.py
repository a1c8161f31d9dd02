"""Writes sorted tables (LevelDB's format) and messages, so that tests can make any file.

What TensorFlow writes is in `tests/golden/tensorflow_checkpoints`; this is for what it does not
write: several small blocks, compressed ones, wrong messages under right checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from estimatorkit.storage.sorted_table import MAGIC
from estimatorkit.storage.wire import crc32c, masked


def varint(value: int) -> bytes:
    """A number as seven bits a byte."""
    result = bytearray()
    while value >= 128:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A protocol buffer of numbers and bytes."""
    result = b""
    for number, value in fields:
        if isinstance(value, int):
            result += varint(number << 3) + varint(value & (1 << 64) - 1)
        else:
            result += varint(number << 3 | 2) + varint(len(value)) + value
    return result


def bundle_entry(dtype: int, shape: tuple[int, ...], offset: int, data: bytes) -> bytes:
    """A `BundleEntryProto` of a tensor whose bytes are `data`."""
    dims = message(*((2, message((1, size))) for size in shape))
    start = message((1, dtype), (2, dims), (4, offset), (5, len(data)))
    return start + varint(6 << 3 | 5) + masked(crc32c(data)).to_bytes(4, "little")


def literal(data: bytes) -> bytes:
    """Snappy data that are one literal (of 60 bytes at least)."""
    return varint(len(data)) + b"\xf4" + (len(data) - 1).to_bytes(2, "little") + data


def table(
    pairs: Mapping[bytes, bytes],
    block_entries: int = 16,
    compress: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """A table of these pairs; every second key of a block shares its prefix."""
    result = b""
    index: dict[bytes, bytes] = {}
    keys = sorted(pairs)

    def block(items: Mapping[bytes, bytes]) -> bytes:
        nonlocal result
        body, before, restarts = b"", b"", []
        for number, (key, value) in enumerate(items.items()):
            shared = 0
            if number % 2:
                while shared < min(len(before), len(key)) and before[shared] == key[shared]:
                    shared += 1
            else:
                restarts.append(len(body))
            fresh = key[shared:]
            body += varint(shared) + varint(len(fresh)) + varint(len(value)) + fresh + value
            before = key
        starts = restarts or [0]
        body += b"".join(start.to_bytes(4, "little") for start in [*starts, len(starts)])
        stored = compress(body) + b"\x01" if compress else body + b"\x00"
        handle = varint(len(result)) + varint(len(stored) - 1)
        result += stored + masked(crc32c(stored)).to_bytes(4, "little")
        return handle

    for start in range(0, len(keys), block_entries):
        chosen = keys[start : start + block_entries]
        index[chosen[-1]] = block({key: pairs[key] for key in chosen})
    handles = block({}) + block(index)
    return result + handles.ljust(40, b"\x00") + MAGIC.to_bytes(8, "little")
