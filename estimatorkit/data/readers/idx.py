"""Files in MNIST's IDX format: a big-endian header with dtype and shape, then the values.

Plain or gzipped. Header fields are checked against the size of the content.
"""

from __future__ import annotations

import gzip
import os
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import DataLossError

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Reads the array of an IDX file, plain or gzipped.

    Raises:
        DataLossError: it is not an IDX file, or is truncated.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise _damaged(path, "a whole gzip file", str(error)) from error
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _DTYPES:
        raise _damaged(path, "two zero bytes, a dtype and a rank", repr(data[:4]))
    rank, start = data[3], 4 + 4 * data[3]
    if len(data) < start:
        raise _damaged(path, f"a header of {start} bytes", f"{len(data)} bytes")
    shape = np.frombuffer(data, ">u4", rank, 4).tolist()
    dtype = np.dtype(_DTYPES[data[2]])
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    if len(data) != start + size:
        raise _damaged(path, f"{size} bytes for shape {tuple(shape)}", f"{len(data) - start} bytes")
    values = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _damaged(path: str | os.PathLike[str], expected: str, received: str) -> DataLossError:
    return DataLossError.explained(
        f"{os.fspath(path)} is not a valid IDX file", expected=expected, received=received
    )
