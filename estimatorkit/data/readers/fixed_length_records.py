"""`FixedLengthRecordDataset`: files of records of equal length."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.parameters import integer
from estimatorkit.data.readers.record_files import (
    OpenFile,
    RecordFiles,
    byte_count,
    compression,
    file_names,
)
from estimatorkit.storage.filesystem import file_errors, open_file

_BUFFER_SIZE = 1 << 18


@dataclass(frozen=True)
class Layout:
    """The layout of a file.

    Attributes:
        record_bytes: bytes per record, >= 1.
        header_bytes, footer_bytes: bytes before the first and after the last record.
        compression: '', 'GZIP' or 'ZLIB'; sizes refer to the uncompressed content.
        buffer_size: bytes read at a time from a compressed file.
    """

    record_bytes: int
    header_bytes: int
    footer_bytes: int
    compression: str
    buffer_size: int


class FixedLengthFile:
    """An open file of such records; its offsets count records.

    Args:
        start: the index of the first record to read.

    Raises:
        InvalidArgumentError: the content is not a whole number of records; for a compressed file
            raised at its end.
        OpError: it cannot be read; `NotFoundError` if it does not exist.
    """

    def __init__(self, layout: Layout, name: str, start: int) -> None:
        self._layout = layout
        self._name = name
        self._file = open_file(name, "rb", layout.compression)
        self.offset = start
        self._buffer = b""
        try:
            with file_errors("read", name):
                before = layout.header_bytes + start * layout.record_bytes
                if layout.compression:
                    self._pass_over(before)
                else:
                    self._check(self._file.seek(0, os.SEEK_END))
                    self._file.seek(before)
        except BaseException:
            self._file.close()
            raise

    def _check(self, length: int) -> None:
        layout = self._layout
        body = length - layout.header_bytes - layout.footer_bytes
        if body < 0 or body % layout.record_bytes:
            raise InvalidArgumentError.explained(
                f"Excluding the header ({layout.header_bytes} bytes) and footer "
                f'({layout.footer_bytes} bytes), input file "{self._name}" has body length '
                f"{body} bytes, which is not an exact multiple of the record length "
                f"({layout.record_bytes} bytes)",
                received=f"a file of {length} bytes",
                hint="check that the file is complete, and compression_type",
            )

    def _pass_over(self, size: int) -> None:
        while size and (piece := self._file.read(min(size, self._layout.buffer_size))):
            size -= len(piece)
        if size:  # the file ends within its header
            self._check(self._layout.header_bytes - size)

    def read(self, n: int) -> list[bytes]:
        """Returns the next 1 to `n` records; an empty list at the end."""
        size, footer = self._layout.record_bytes, self._layout.footer_bytes
        wanted = n * size + footer
        with file_errors("read", self._name):
            pieces = [self._buffer]
            missing = wanted - len(self._buffer)
            while missing > 0 and (
                piece := self._file.read(min(missing, max(size, self._layout.buffer_size)))
            ):
                pieces.append(piece)
                missing -= len(piece)
        data = b"".join(pieces)
        # The rest must be the footer: it is longer if the file continues, shorter if it ends.
        count = max(0, (len(data) - footer) // size)
        if not count:
            header = self._layout.header_bytes
            self._check(header + self.offset * size + len(data))
            return []
        self._buffer = data[count * size :]
        self.offset += count
        return [data[start : start + size] for start in range(0, count * size, size)]

    def skip(self, n: int) -> int:
        """Skips up to `n` records; returns how many."""
        return len(self.read(n))

    def close(self) -> None:
        """Closes the file; idempotent."""
        self._file.close()


@dataclass(frozen=True, eq=False)
class FixedLengthRecords(RecordFiles):
    """See `FixedLengthRecordDataset`."""

    record_bytes: Any
    header_bytes: Any
    footer_bytes: Any
    buffer_size: Any
    compression: Any

    def _opener(self) -> OpenFile:
        layout = Layout(
            self.record_bytes,
            self.header_bytes,
            self.footer_bytes,
            self.compression,
            self.buffer_size or _BUFFER_SIZE,
        )
        return functools.partial(FixedLengthFile, layout)


class FixedLengthRecordDataset(Dataset):
    """The records of files of equal-length records, as strings.

    Source: `tf.data.FixedLengthRecordDataset`.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names.
        record_bytes: bytes per record.
        header_bytes, footer_bytes: bytes of each file before and after its records; None for 0.
        buffer_size: bytes read at a time; None for 256 KiB.
        compression_type: None, '', 'GZIP' or 'ZLIB'.
        num_parallel_reads, name: have no effect; files are read sequentially.

    Raises:
        InvalidArgumentError: a file is not a whole number of records (when it is read).
        NotFoundError: a file does not exist (when it is read).
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        what = "FixedLengthRecordDataset()"
        super().__init__(
            FixedLengthRecords(
                file_names(filenames, what),
                integer(f"{what}: record_bytes", record_bytes, least=1),
                byte_count(f"{what}: header_bytes", header_bytes),
                byte_count(f"{what}: footer_bytes", footer_bytes),
                byte_count(f"{what}: buffer_size", buffer_size),
                compression(compression_type, what),
            )
        )
