"""`Chunks`: a file in pieces of whole records, which are then taken apart by vectorised code.

A chunk begins where a record does, so its offset in the (uncompressed) content is a position that
can be gone to: by a seek, or, in a compressed file, by unpacking up to there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import IO, Any

from estimatorkit.storage.filesystem import file_errors, open_file

CHUNK_BYTES = 1 << 20
"""Bytes of a chunk: the calls of a chunk (2 ms of pandas) are then a tenth of its time."""


class Chunks:
    """Reads a file chunk by chunk.

    Args:
        name: the file.
        compression: '', 'GZIP' or 'ZLIB'.
        size: bytes of a chunk, unless a record is longer.
        end_of_records: how many of the bytes it gets are whole records; 0 for none.
        offset: where to begin: the beginning of a record.

    Attributes:
        offset: where the chunk begins that `read` returns next.

    Raises:
        OpError: the file cannot be opened; `NotFoundError` if there is none.
    """

    def __init__(
        self,
        name: str,
        compression: str,
        size: int,
        end_of_records: Callable[[bytes], int],
        offset: int = 0,
    ) -> None:
        self._name = name
        self._size = size
        self._end_of_records = end_of_records
        self._file = open_file(name, "rb", compression)
        self._finalizer = weakref.finalize(self, self._file.close)
        self._rest = b""
        self.offset = offset
        with file_errors("read", name):
            _go_to(self._file, offset)

    def read(self) -> bytes:
        """The next chunk; empty at the end. The last record may have no line end."""
        data = self._more(self._rest, self._size)
        while not (end := self._end_of_records(data)):
            longer = self._more(data, 2 * len(data))
            if len(longer) == len(data):
                end = len(data)  # the file ends without a line end
                break
            data = longer
        self._rest = data[end:]
        self.offset += end
        return data[:end]

    def _more(self, data: bytes, size: int) -> bytes:
        """`data` and what follows, `size` bytes in all where there are so many."""
        pieces, missing = [data], size - len(data)
        with file_errors("read", self._name):
            while missing > 0 and (piece := self._file.read(missing)):
                pieces.append(piece)
                missing -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Closes the file; may be called again."""
        self._finalizer()


def _go_to(file: IO[Any], offset: int) -> None:
    if file.seekable():
        file.seek(offset)
        return
    while offset and (piece := file.read(min(offset, CHUNK_BYTES))):
        offset -= len(piece)
