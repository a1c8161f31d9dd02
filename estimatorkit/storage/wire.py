"""Protobuf wire format, field by field, and the masked CRC of TensorFlow's files.

For small messages whose Python classes come only with TensorFlow. Readers raise `ValueError` for
malformed input, and use memory proportional to the input.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeVar

from numpy.typing import NDArray

_Numbers = TypeVar("_Numbers", int, NDArray[Any])

_CHECKSUM_DELTA = 0xA282EAD8


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Decodes a varint (seven bits per byte, lowest first); returns it and the next offset.

    Raises ValueError if it is truncated or longer than 64 bits.
    """
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("a number is truncated")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, at
    raise ValueError("a number has more than 64 bits")


def signed(value: int) -> int:
    """Reinterprets a 64-bit number as signed, as `int64`, `int32` and enums are stored."""
    return value - (1 << 64) if value >> 63 else value


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the (number, value) of each field of a message, in stored order.

    Values are unsigned ints for varints and fixed 32 and 64 bits, and bytes for strings, messages
    and packed numbers. Raises ValueError if the message is malformed.
    """
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ValueError("a field has the number 0")
        value: int | bytes
        if kind == 0:
            value, at = varint(message, at)
        elif kind == 2:
            size, at = varint(message, at)
            value = message[at : at + size]
            if len(value) != size:
                raise ValueError(f"field {number} is truncated")
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > len(message):
                raise ValueError(f"field {number} is truncated")
            value = int.from_bytes(message[at : at + size], "little")
            at += size
        else:
            raise ValueError(f"field {number} has the unknown wire type {kind}")
        yield number, value


def numbers(message: bytes) -> dict[int, int]:
    """Returns the numeric fields of a message; the last value wins."""
    return {number: value for number, value in fields(message) if isinstance(value, int)}


def messages(message: bytes, number: int) -> list[bytes]:
    """Returns the string or message values of a field number."""
    return [value for at, value in fields(message) if at == number and isinstance(value, bytes)]


def encoded_varint(value: int) -> bytes:
    """Encodes an unsigned number as a varint."""
    result = bytearray()
    while value >= 128:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def message(*parts: tuple[int, int | bytes]) -> bytes:
    """Encodes a message from non-negative numbers and bytes."""
    result = bytearray()
    for number, value in parts:
        if isinstance(value, int):
            result += encoded_varint(number << 3) + encoded_varint(value)
        else:
            result += encoded_varint(number << 3 | 2) + encoded_varint(len(value)) + value
    return bytes(result)


def crc32c(data: bytes, so_far: int = 0) -> int:
    """Returns the CRC-32C (Castagnoli) of `data`, continuing from `so_far`."""
    import google_crc32c

    return int(google_crc32c.extend(so_far, data))


def masked(checksum: _Numbers) -> _Numbers:
    """Masks CRCs (one, or a uint64 array) as TensorFlow and LevelDB do before storing them."""
    return ((checksum >> 15 | checksum << 17) + _CHECKSUM_DELTA) & 0xFFFFFFFF


def fixed32(data: bytes, at: int) -> int:
    """Decodes a little-endian 32-bit number."""
    return int(struct.unpack_from("<I", data, at)[0])
