"""Files in MNIST's IDX format: a big-endian header with dtype and shape, then the values.

Plain or gzipped. Header fields are checked against the size of the content.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import DataLossError
from estimatorkit.core.shapes import numpy_holds

_DEFLATE_RATIO = 1032
"""The maximum compression ratio of DEFLATE."""

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Reads the array of an IDX file, plain or gzipped.

    Raises:
        DataLossError: it is not an IDX file, or is truncated.
        OSError: it cannot be read.
    """
    with open(path, "rb") as raw:
        held = os.fstat(raw.fileno()).st_size
        is_compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file: Any = gzip.GzipFile(fileobj=raw) if is_compressed else raw
        try:
            return _read(path, file, held * (_DEFLATE_RATIO if is_compressed else 1))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise _damaged(path, "a whole gzip file", str(error)) from error


def _read(path: str | os.PathLike[str], file: IO[bytes], most: int) -> NDArray[Any]:
    """Reads the array of a file whose content is at most `most` bytes."""
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _DTYPES:
        raise _damaged(path, "two zero bytes, a dtype and a rank", repr(head))
    sizes = file.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise _damaged(path, f"a header of {4 + 4 * head[3]} bytes", f"{4 + len(sizes)} bytes")
    shape = np.frombuffer(sizes, ">u4").tolist()
    dtype = np.dtype(_DTYPES[head[2]])
    size = math.prod(shape) * dtype.itemsize
    if size > most or not numpy_holds(shape, dtype.itemsize):
        raise _damaged(path, f"{size} bytes for shape {tuple(shape)}", f"at most {most} bytes")
    data = file.read(size + 1)
    if len(data) != size:
        received = f"{len(data)} bytes{' or more' if len(data) > size else ''}"
        raise _damaged(path, f"{size} bytes for shape {tuple(shape)}", received)
    values = np.frombuffer(data, dtype).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _damaged(path: str | os.PathLike[str], expected: str, received: str) -> DataLossError:
    return DataLossError.explained(
        f"{os.fspath(path)} is not a valid IDX file", expected=expected, received=received
    )
