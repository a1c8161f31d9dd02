"""Decoder of Snappy's block format (google/snappy, `format_description.txt`).

TensorFlow's releases write uncompressed checkpoints, but builds of TensorFlow 1.0 and 1.1 left the
table writer's compression on.
"""

from __future__ import annotations

from estimatorkit.storage.wire import varint

# The longest copy (64 bytes) takes three bytes, so data expand at most 22 times.
_MOST_EXPANSION = 22


def decompress(data: bytes) -> bytes:
    """Decompresses one block; raises ValueError if it is malformed."""
    size, at = varint(data, 0)
    if size > _MOST_EXPANSION * len(data):
        raise ValueError(f"Snappy data of {len(data)} bytes claim to hold {size}")
    result = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        kind, upper = tag & 3, tag >> 2
        if kind == 0:
            extra = max(upper - 59, 0)  # 60 to 63: the length is in 1 to 4 bytes
            length = _little(data, at, extra) if extra else upper
            at += extra
            literal = data[at : at + length + 1]
            if len(literal) != length + 1:
                raise ValueError("a Snappy literal is truncated")
            result += literal
            at += length + 1
        else:
            if kind == 1:
                length, offset = (upper & 7) + 4, (upper >> 3) << 8 | _little(data, at, 1)
                at += 1
            else:
                width = 2 if kind == 2 else 4
                length, offset = upper + 1, _little(data, at, width)
                at += width
            if not 0 < offset <= len(result):
                raise ValueError("a Snappy copy reaches before the start")
            start = len(result) - offset
            period = bytes(result[start : start + length])  # shorter than `length` where it repeats
            result += (period * (length // len(period) + 1))[:length]
        if len(result) > size:
            break
    if len(result) != size:
        raise ValueError(f"Snappy data hold {len(result)} bytes or more, not {size}")
    return bytes(result)


def _little(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise ValueError("Snappy data are truncated")
    return int.from_bytes(data[at : at + width], "little")
