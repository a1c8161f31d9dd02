"""Slices of partitioned tensors in TensorFlow's checkpoints: keys, protos, assembly.

A slice is a (start, length) pair per dimension; length -1 means all. Partitioned variables are
stored as slices; in V1 checkpoints, every tensor is. Malformed input raises `ValueError`, to which
readers add file and offset.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import ALL, DType, as_dtype
from estimatorkit.core.errors import UnimplementedError
from estimatorkit.storage.wire import messages, numbers, signed

Slice = tuple[tuple[int, int], ...]
_ALL = -1
_MOST_DIMENSIONS = 64  # NumPy's limit
# Quantized integers have no dtype of their own here, and are read as plain integers.
_QUANTIZED = {11: "int8", 12: "uint8", 13: "int32", 15: "int16", 16: "uint16"}
_DTYPES: dict[int, DType] = {
    **{dtype.as_datatype_enum: dtype for dtype in ALL.values() if dtype.name != "resource"},
    **{number: as_dtype(name) for number, name in _QUANTIZED.items()},
}


@dataclass(frozen=True)
class Stored:
    """A checkpoint's description of a tensor.

    `dtype` is TensorFlow's dtype number; `slices` are its slices if it is partitioned.
    """

    dtype: int
    shape: tuple[int, ...]
    slices: tuple[Slice, ...] = ()

    @property
    def known_dtype(self) -> DType | None:
        """The dtype; None if unsupported (`variant`, 4-bit integers)."""
        return _DTYPES.get(self.dtype)

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def require_dtype(self, name: str) -> DType:
        """Returns the dtype, or raises UnimplementedError if unsupported."""
        if self.known_dtype is None:
            raise UnimplementedError.explained(
                f"tensor {name!r} of the checkpoint has a dtype that is not supported",
                expected=", ".join(dtype.name for dtype in _DTYPES.values()),
                received=f"TensorFlow's dtype number {self.dtype}",
            )
        return self.known_dtype


def parse_shape(message: bytes) -> tuple[int, ...]:
    """Parses a `TensorShapeProto` that must be fully defined."""
    shape = tuple(signed(numbers(dim).get(1, 0)) for dim in messages(message, 2))
    # NumPy counts bytes in 63 bits, ignoring zero dimensions; 16 is the largest element size.
    size = math.prod(dim for dim in shape if dim) * 16
    if any(dim < 0 for dim in shape) or len(shape) > _MOST_DIMENSIONS or size >= 1 << 63:
        raise ValueError(f"{list(shape)[:8]} is not a valid shape")
    return shape


def parse_slice(message: bytes) -> Slice:
    """Parses a `TensorSliceProto`."""
    extents = [numbers(extent) for extent in messages(message, 1)]
    return tuple(
        (signed(extent.get(1, 0)), signed(extent[2]) if 2 in extent else _ALL) for extent in extents
    )


def slice_key(name: str, piece: Slice) -> bytes:
    """Returns TensorFlow's key of a slice (its `OrderedCode`, which sorts numerically)."""
    # A byte 255 would need escaping, but UTF-8 has none.
    text = name.encode().replace(b"\x00", b"\x00\xff")
    rank = b"\x01" + bytes([len(piece)]) if piece else b"\x00"
    extents = b"".join(_ordered(start) + _ordered(length) for start, length in piece)
    return b"\x00" + text + b"\x00\x01" + rank + extents


def _ordered(number: int) -> bytes:
    """Encodes a signed number, with the count of bytes as a unary prefix."""
    length = (number if number >= 0 else ~number).bit_length() // 7 + 1
    whole = int.from_bytes(number.to_bytes(length, "big", signed=True), "big")
    return (whole ^ ((1 << length) - 1) << 7 * length).to_bytes(length, "big")


def slice_shape(shape: tuple[int, ...], piece: Slice) -> tuple[int, ...]:
    """Returns the shape of a slice, or raises ValueError if it is out of range."""
    result = []
    for size, (start, length) in zip(shape, piece, strict=False):
        fresh = size if length == _ALL else length
        if start < 0 or fresh < 0 or start + fresh > size or (length == _ALL and start):
            raise ValueError(f"a slice {piece} is out of range of the shape {list(shape)}")
        result.append(fresh)
    if len(piece) != len(shape):
        raise ValueError(f"a slice {piece} differs in rank from the shape {list(shape)}")
    return tuple(result)


def assemble(
    stored: Stored, dtype: DType, pieces: Iterable[tuple[Slice, NDArray[Any]]]
) -> NDArray[Any]:
    """Assembles a tensor from its slices; raises ValueError if they do not cover it."""
    found = list(pieces)
    if sum(array.size for _, array in found) < stored.count:
        raise ValueError(f"the slices do not cover the shape {list(stored.shape)}")
    result = np.empty(stored.shape, dtype.numpy_dtype)
    covered = np.zeros(stored.shape, np.bool_)
    for piece, array in found:
        at = tuple(
            slice(start, None if length == _ALL else start + length) for start, length in piece
        )
        result[at] = array[()]  # a scalar is the string itself
        covered[at] = True
    if not covered.all():
        raise ValueError(f"the slices do not cover the shape {list(stored.shape)}")
    return result


def from_bytes(data: bytes, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Decodes an array of little-endian numbers."""
    array = np.frombuffer(data, dtype.numpy_dtype.newbyteorder("<"))
    if dtype.is_bool and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError("a bool is neither 0 nor 1")
    return array.astype(dtype.numpy_dtype).reshape(shape)
