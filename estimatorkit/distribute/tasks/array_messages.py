"""Arrays with a header as messages of an Arrow Flight stream.

A message is a header (bytes), a number and arrays. Small arrays are packed in a buffer after the
header; each large one is a record batch, sent and read without a copy. Strings are sent as lengths
and bytes. Truncated or malformed messages raise `BrokenMessage`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype, string
from estimatorkit.core.errors import UnimplementedError, explain
from estimatorkit.distribute.tasks.arrow import pa
from estimatorkit.distribute.tasks.shared_memory import SharedMemory

SCHEMA = pa.schema([("bytes", pa.uint8())])
"""Of the stream: the record batches are plain bytes."""

LARGE = 1 << 16
"""Bytes from which an array is a batch of its own: one more message costs about 20 us."""

BATCH = 1 << 30
"""Bytes of a batch at most: Arrow sends none of 2 GiB. Larger arrays are several."""

_PREFIX = struct.Struct("<IIIQ")
"""The bytes of the header and of the arrays' description, the number of record batches that follow,
and the message's number."""

_SHORT = 1 << 13
"""Bytes of descriptions that are cached when parsed: those of steps are equal."""

_EMPTY = pa.record_batch([pa.nulls(0, pa.uint8())], schema=SCHEMA)


class BrokenMessage(ConnectionError):
    """A message is truncated or malformed."""


class Received(NamedTuple):
    """A message; its arrays are read-only."""

    header: bytes
    arrays: list[NDArray[Any]]
    number: int


def send(
    writer: Any,
    header: bytes,
    arrays: Sequence[Any] = (),
    area: SharedMemory | None = None,
    number: int = 0,
) -> None:
    """Sends a message.

    Args:
        writer: the writer of a stream with `SCHEMA`.
        header: any bytes.
        arrays: NumPy or device arrays.
        area: shared memory for large arrays, as far as they fit.
        number: of the message, below 2**64.

    Raises:
        UnimplementedError: an array is not serializable (tensor lists).
    """
    described: list[Any] = []
    small: list[Any] = []
    large: list[NDArray[np.uint8]] = []
    if area is not None:
        area.begin()
    for array in arrays:
        value = np.asarray(array)
        dtype = as_dtype(value.dtype)
        if dtype is string:
            texts = _string_bytes(value)
            described.append(("string", value.shape, len(texts)))
            small.append(texts)
            continue
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        if area is not None and data.nbytes >= LARGE:
            start = area.put(data)
            if start is not None:
                described.append((dtype.name, value.shape, (start, data.nbytes)))
                continue
        if data.nbytes < LARGE:
            described.append((dtype.name, value.shape, data.nbytes))
            small.append(data)
            continue
        batches = [data[start : start + BATCH] for start in range(0, data.nbytes, BATCH)]
        described.append((dtype.name, value.shape, -len(batches)))
        large += batches
    description = _description(tuple(described))
    prefix = _PREFIX.pack(len(header), len(description), len(large), number)
    metadata = b"".join([prefix, header, description, *small])
    writer.write_with_metadata(_EMPTY, pa.py_buffer(metadata))
    for data in large:
        column = pa.Array.from_buffers(pa.uint8(), data.nbytes, [None, pa.py_buffer(data)])
        writer.write_batch(pa.record_batch([column], schema=SCHEMA))


def receive(read: Callable[[], Any], area: SharedMemory | None = None) -> Received:
    """Receives a message.

    Args:
        read: reads the stream's next chunk.
        area: the sender's shared memory; large arrays are views of it.

    Raises:
        StopIteration: the stream has ended.
        BrokenMessage: the message is truncated or malformed.
    """
    metadata = memoryview(read().app_metadata or b"")
    try:
        header_size, description_size, count, number = _PREFIX.unpack_from(metadata)
        header, metadata = _split(metadata[_PREFIX.size :], header_size)
        description, small = _split(metadata, description_size)
        parse = _parsed if description_size <= _SHORT else json.loads
        described = parse(bytes(description))
        large = [read().data.column(0).to_numpy() for _ in range(count)]
        return Received(bytes(header), _arrays(described, small, large, area), number)
    except (
        struct.error,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        StopIteration,
    ) as error:
        raise BrokenMessage(
            explain(
                "a message from another process is truncated or malformed",
                received=f"{type(error).__name__}: {error}",
                hint="does every process of the cluster run the same version of this package?",
            )
        ) from error


def _split(data: memoryview, size: int) -> tuple[memoryview, memoryview]:
    return data[:size], data[size:]


@lru_cache(maxsize=256)
def _description(described: tuple[Any, ...]) -> bytes:
    return json.dumps(described).encode()


@lru_cache(maxsize=256)
def _parsed(description: bytes) -> Any:
    return json.loads(description)


def _arrays(
    described: Sequence[tuple[str, Sequence[int], Any]],
    small: memoryview,
    large: list[NDArray[np.uint8]],
    area: SharedMemory | None,
) -> list[NDArray[Any]]:
    """Restores the arrays of a message from the packed buffer and the large arrays."""
    arrays: list[NDArray[Any]] = []
    rest = iter(large)
    for name, shape, size in described:
        data: Any
        if isinstance(size, list):
            if area is None:
                raise ValueError("an array in a shared memory area that is not open")
            data = area.at(*size)
        else:
            data = small[:size] if size >= 0 else _joined([next(rest) for _ in range(-size)])
            small = small[max(size, 0) :]
        if name == "string":
            arrays.append(_strings(data, shape))
        else:
            arrays.append(np.frombuffer(data, as_dtype(name).numpy_dtype).reshape(shape))
    if small or next(rest, None) is not None:
        raise ValueError(f"{len(small)} unexpected trailing bytes")
    return arrays


def _joined(batches: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    return batches[0] if len(batches) == 1 else np.concatenate(batches)


def _string_bytes(value: NDArray[Any]) -> bytes:
    texts = [each.encode() if isinstance(each, str) else each for each in value.reshape(-1)]
    other = next((each for each in texts if not isinstance(each, bytes)), None)
    if other is not None:
        raise UnimplementedError.explained(
            "values of this type cannot be sent to another process",
            received=f"{type(other).__name__} in an array {value.shape}",
            hint="place their producer and consumer on one task",
        )
    lengths = np.array([len(each) for each in texts], np.uint32)
    return lengths.tobytes() + b"".join(texts)


def _strings(data: Any, shape: Sequence[int]) -> NDArray[Any]:
    count = math.prod(shape)
    lengths = np.frombuffer(data, np.uint32, count).tolist()
    texts = np.empty(count, object)
    start = 4 * count
    for number, length in enumerate(lengths):
        texts[number] = bytes(data[start : start + length])
        start += length
    if start != len(data):
        raise ValueError(f"the strings take {start} bytes, the message has {len(data)}")
    return texts.reshape(shape)
