"""`TextLineDataset`: the lines of text files."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.data.dataset import Dataset
from estimatorkit.data.readers.chunks import Chunks
from estimatorkit.data.readers.record_files import (
    OpenFile,
    RecordFiles,
    byte_count,
    compression,
    file_names,
)

_BUFFER_SIZE = 1 << 18


class TextFile:
    """An open text file as lines without line ends.

    Args:
        compression: '', 'GZIP' or 'ZLIB'.
        buffer_size: bytes read at a time.
        offset: where to begin: 0, or a previous value of the property.
    """

    def __init__(self, compression: str, buffer_size: int, name: str, offset: int = 0) -> None:
        self._chunks = Chunks(name, compression, buffer_size, _end_of_lines, offset)
        self._start = offset  # of the chunk
        self._chunk = b""
        self._lines: list[bytes] = []  # of the chunk
        self._next = 0  # the first unread line

    @property
    def offset(self) -> int:
        """The position of the next line, in bytes of the uncompressed content."""
        if self._next == len(self._lines):
            return self._chunks.offset
        if not self._next:
            return self._start
        ends = np.flatnonzero(np.frombuffer(self._chunk, np.uint8) == ord("\n"))
        return self._start + int(ends[self._next - 1]) + 1

    def read(self, n: int) -> list[bytes]:
        """Returns the next 1 to `n` lines; an empty list at the end."""
        count = self.skip(n)
        return self._lines[self._next - count : self._next]

    def skip(self, n: int) -> int:
        """Skips up to `n` lines; returns how many, 0 only at the end."""
        self._load()
        count = min(n, len(self._lines) - self._next)
        self._next += count
        return count

    def _load(self) -> None:
        """Ensures that an unread line is loaded, unless the file has ended."""
        while self._next == len(self._lines):
            self._start = self._chunks.offset
            self._chunk = self._chunks.read()
            if not self._chunk:
                return
            # TensorFlow removes every \r, not only at the end.
            self._lines = self._chunk.replace(b"\r", b"").split(b"\n")
            self._next = 0
            if not self._lines[-1]:
                self._lines.pop()

    def close(self) -> None:
        """Closes the file; idempotent."""
        self._chunks.close()


def _end_of_lines(data: bytes) -> int:
    return data.rfind(b"\n") + 1


@dataclass(frozen=True, eq=False)
class TextLines(RecordFiles):
    """See `TextLineDataset`."""

    compression: Any
    buffer_size: Any

    def _opener(self) -> OpenFile:
        return functools.partial(TextFile, self.compression, self.buffer_size or _BUFFER_SIZE)


class TextLineDataset(Dataset):
    """The lines of text files as strings without line ends, one file after the other.

    Lines end in LF or CRLF. A position is a file and a byte offset. Source:
    `tf.data.TextLineDataset`.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names. Names may be
            URLs (`gs://...`).
        compression_type: None, '', 'GZIP' or 'ZLIB', or a string tensor.
        buffer_size: bytes read at a time; None for 256 KiB.
        num_parallel_reads: has no effect: TensorFlow interleaves lines of so many files, here files
            are read in the order of the names. Use `interleave()` to interleave them.
        name: has no effect.

    Raises:
        NotFoundError: a file does not exist (when it is read).
        DataLossError: a compressed file is damaged (when it is read).
        InvalidArgumentError: the compression is unknown.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        what = "TextLineDataset()"
        super().__init__(
            TextLines(
                file_names(filenames, what),
                compression(compression_type, what),
                byte_count(f"{what}: buffer_size", buffer_size),
            )
        )
