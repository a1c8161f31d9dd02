"""Arrays and a header as messages of an Arrow Flight stream.

A message is a header (JSON) and arrays. Small arrays travel in one buffer behind the header; each
large one is a record batch of its own, whose memory is sent as it is and read in place. Strings
travel as their lengths and their bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype, string
from estimatorkit.core.errors import UnimplementedError, explain

SCHEMA = pa.schema([("bytes", pa.uint8())])
"""Of the stream: the record batches are plain bytes."""

_LARGE = 1 << 16
"""Bytes from which an array is a batch of its own: one more message costs about 20 us."""

_LENGTHS = struct.Struct("<II")
_EMPTY = pa.record_batch([pa.array([], pa.uint8())], schema=SCHEMA)


def send(writer: Any, header: dict[str, Any], arrays: Sequence[Any] = ()) -> None:
    """Sends a message.

    Args:
        writer: of a stream with `SCHEMA`.
        header: what JSON can hold.
        arrays: NumPy arrays, or arrays of devices.

    Raises:
        UnimplementedError: an array's values cannot travel (lists of tensors).
    """
    described: list[Any] = []
    small: list[Any] = []
    large: list[NDArray[np.uint8]] = []
    for array in arrays:
        value = np.asarray(array)
        dtype = as_dtype(value.dtype)
        if dtype is string:
            described.append(["string", value.shape, 0])
            small.append(_string_bytes(value))
            described[-1][2] = len(small[-1])
            continue
        if value.dtype.hasobject:
            raise UnimplementedError(
                None,
                None,
                explain(
                    "values of this kind stay in their process",
                    received=f"{dtype.name} {value.shape}",
                    hint="put what makes and what takes them on one task",
                ),
            )
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        described.append([dtype.name, value.shape, -1 if data.nbytes >= _LARGE else data.nbytes])
        (large if data.nbytes >= _LARGE else small).append(data)
    text = json.dumps([header, described]).encode()
    body = b"".join(map(bytes, small))
    metadata = _LENGTHS.pack(len(text), len(large)) + text + body
    writer.write_with_metadata(_EMPTY, pa.py_buffer(metadata))
    for data in large:
        column = pa.Array.from_buffers(pa.uint8(), data.nbytes, [None, pa.py_buffer(data)])
        writer.write_batch(pa.record_batch([column], schema=SCHEMA))


def receive(read: Callable[[], Any]) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Receives a message.

    Args:
        read: reads the stream's next chunk.

    Returns:
        The header and the arrays. Large ones may not be written to.

    Raises:
        StopIteration: the stream has ended.
    """
    metadata = read().app_metadata
    text_length, count = _LENGTHS.unpack_from(metadata)
    view = memoryview(metadata)[_LENGTHS.size :]
    header, described = json.loads(bytes(view[:text_length]))
    view = view[text_length:]
    arrays: list[NDArray[Any]] = []
    for name, shape, size in described:
        if size < 0:
            data = read().data.column(0).to_numpy()
            count -= 1
        else:
            data, view = view[:size], view[size:]
        if name == "string":
            arrays.append(_strings(data, shape))
            continue
        dtype = as_dtype(name).numpy_dtype
        arrays.append(np.frombuffer(data, dtype).reshape(shape))
    return header, arrays


def _string_bytes(value: NDArray[Any]) -> bytes:
    texts = [each.encode() if isinstance(each, str) else each for each in value.reshape(-1)]
    lengths = np.array([len(each) for each in texts], np.uint32)
    return lengths.tobytes() + b"".join(texts)


def _strings(data: Any, shape: Sequence[int]) -> NDArray[Any]:
    count = int(np.prod(shape, dtype=np.int64))
    lengths = np.frombuffer(data, np.uint32, count)
    texts = np.empty(count, object)
    start = 4 * count
    for number, length in enumerate(lengths):
        texts[number] = bytes(data[start : start + length])
        start += int(length)
    return texts.reshape(shape)
