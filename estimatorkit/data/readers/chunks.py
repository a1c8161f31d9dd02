"""`Chunks`: reads a file in chunks of whole records, for vectorised parsing.

A chunk begins with a record, so its offset in the uncompressed content is a position that can be
restored: by a seek, or by decompressing up to it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import IO, Any

from estimatorkit.storage.filesystem import file_errors, open_file

CHUNK_BYTES = 1 << 20
"""Bytes per chunk: the fixed cost per chunk (2 ms of pandas) is then a tenth of its time."""


class Chunks:
    """Reads a file chunk by chunk.

    Args:
        compression: '', 'GZIP' or 'ZLIB'.
        size: bytes per chunk, unless a record is longer.
        end_of_records: returns how many of the given bytes are whole records, possibly 0.
        offset: where to begin: the start of a record.

    Attributes:
        offset: the start of the next chunk.

    Raises:
        OpError: the file cannot be opened; `NotFoundError` if it does not exist.
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
        """Returns the next chunk; empty at the end. The last record may lack a line end."""
        data = self._rest = self._more(self._rest, self._size)
        while not (end := self._end_of_records(data)):
            longer = self._more(data, 2 * len(data))
            if len(longer) == len(data):
                end = len(data)  # the file ends without a line end
                break
            data = self._rest = longer
        self._rest = data[end:]
        self.offset += end
        return data[:end]

    def _more(self, data: bytes, size: int) -> bytes:
        """Extends `data` to `size` bytes, or up to the end of the file."""
        pieces, missing = [data], size - len(data)
        with file_errors("read", self._name):
            while missing > 0 and (piece := self._file.read(missing)):
                pieces.append(piece)
                missing -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Closes the file; idempotent."""
        self._finalizer()


def _go_to(file: IO[Any], offset: int) -> None:
    if file.seekable():
        file.seek(offset)
        return
    while offset and (piece := file.read(min(offset, CHUNK_BYTES))):
        offset -= len(piece)
