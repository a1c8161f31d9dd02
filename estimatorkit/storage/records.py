"""TFRecord files: a writer and a batched reader.

A record is its length (uint64), the masked CRC-32C of these eight bytes, the data and their masked
CRC-32C, all little-endian (TensorFlow's `record_writer.h`). The whole file may be GZIP or ZLIB
compressed. Damage raises `DataLossError` with the file and the offset in the uncompressed stream.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any

import google_crc32c
import numpy as np

from estimatorkit.core.errors import (
    DataLossError,
    FailedPreconditionError,
    type_error,
    value_error,
)
from estimatorkit.storage.filesystem import AnyPath, file_errors, open_file
from estimatorkit.storage.wire import masked

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
BUFFER_SIZE = 1 << 17
"""Default bytes per read; for 256 KiB, malloc would map fresh pages each time."""

_PIECE = 1 << 24
"""The maximum bytes per read."""
_AT_ONCE = 256
"""Records per batch of the iterators."""


class TFRecordCompressionType:
    """The compression of a TFRecord file."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


_NAMES = {
    TFRecordCompressionType.NONE: "",
    TFRecordCompressionType.ZLIB: "ZLIB",
    TFRecordCompressionType.GZIP: "GZIP",
}


@dataclass(frozen=True)
class TFRecordOptions:
    """Options for reading and writing TFRecord files.

    Args:
        compression_type: 'GZIP', 'ZLIB', '' or None, or a `TFRecordCompressionType`.
        flush_mode: zlib's flush mode after each write; None for no flush.
        input_buffer_size: the read buffer in bytes; None for BUFFER_SIZE.
        output_buffer_size: accepted for compatibility only.
        window_bits: zlib's, for writing; None for 15. Reading accepts any.
        compression_level: 0 to 9, or None for zlib's default.
        compression_method: zlib's; only 8 (deflate) exists.
        mem_level: zlib's, 1 to 9; None for 9, as TensorFlow.
        compression_strategy: zlib's; None for the default.

    Raises:
        ValueError: there is no such compression.
    """

    compression_type: str | int | TFRecordOptions | None = None
    flush_mode: int | None = None
    input_buffer_size: int | None = None
    output_buffer_size: int | None = None
    window_bits: int | None = None
    compression_level: int | None = None
    compression_method: int | None = None
    mem_level: int | None = None
    compression_strategy: int | None = None

    def __post_init__(self) -> None:
        self.get_compression_type_string(self.compression_type)

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Returns '', 'GZIP' or 'ZLIB' for options, a name, a `TFRecordCompressionType` or None.

        Raises:
            ValueError: there is no such compression.
        """
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options is None or options in _NAMES.values():
            return options or ""
        if options in _NAMES:
            return _NAMES[options]
        raise value_error(
            f"Not a valid compression_type: {options!r}",
            expected="'GZIP', 'ZLIB', '' or None",
            received=repr(options),
        )


def masked_crc32c(data: bytes) -> int:
    """Returns the masked CRC-32C of `data` (see `wire.masked`)."""
    return masked(int(google_crc32c.value(data)))


def _wbits(compression: str, options: TFRecordOptions) -> int:
    return (options.window_bits or zlib.MAX_WBITS) + (16 if compression == "GZIP" else 0)


class TFRecordWriter:
    """Writes a new TFRecord file. A context manager.

    Source: `tf.io.TFRecordWriter`. Files are byte-identical (compressed ones after decompression).

    Args:
        options: a `TFRecordOptions`, or the name or number of a compression.

    Raises:
        OpError: the file cannot be created; the subclass depends on the errno.
    """

    def __init__(self, path: AnyPath, options: Any = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        chosen = options if isinstance(options, TFRecordOptions) else TFRecordOptions(compression)
        self._path = os.fsdecode(path)
        self._flush_mode = chosen.flush_mode or 0
        self._compress: Any = None
        if compression:
            self._compress = zlib.compressobj(
                -1 if chosen.compression_level is None else chosen.compression_level,
                chosen.compression_method or zlib.DEFLATED,
                _wbits(compression, chosen),
                chosen.mem_level or 9,
                chosen.compression_strategy or zlib.Z_DEFAULT_STRATEGY,
            )
        self._file: IO[bytes] | None = open_file(self._path, "wb")

    def write(self, record: bytes | str) -> None:
        """Appends one record.

        Args:
            record: bytes; a str is encoded as UTF-8.

        Raises:
            TypeError: it is neither.
            FailedPreconditionError: the writer is closed.
        """
        if isinstance(record, str):
            record = record.encode()
        if not isinstance(record, (bytes, bytearray, memoryview)):
            raise type_error(
                "a record must be bytes",
                expected="bytes, such as example.SerializeToString()",
                received=type(record).__name__,
            )
        data = bytes(record)
        length = struct.pack("<Q", len(data))
        self._write(
            b"".join(
                (
                    length,
                    _CHECKSUM.pack(masked_crc32c(length)),
                    data,
                    _CHECKSUM.pack(masked_crc32c(data)),
                )
            )
        )
        if self._compress is not None and self._flush_mode:
            self._open_file().write(self._compress.flush(self._flush_mode))

    def _write(self, data: bytes) -> None:
        file = self._open_file()
        with file_errors("write", self._path):
            file.write(data if self._compress is None else self._compress.compress(data))

    def _open_file(self) -> IO[bytes]:
        if self._file is None:
            raise FailedPreconditionError.explained("Writer is closed", received=self._path)
        return self._file

    def flush(self) -> None:
        """Flushes buffers to the operating system."""
        file = self._open_file()
        with file_errors("write", self._path):
            if self._compress is not None:
                file.write(self._compress.flush(zlib.Z_SYNC_FLUSH))
            file.flush()

    def close(self) -> None:
        """Closes the file; may be called again."""
        if self._file is None:
            return
        with file_errors("write", self._path):
            if self._compress is not None:
                self._file.write(self._compress.flush())
            self._file.close()
        self._file = None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RecordReader:
    """Reads records in batches; the caller must close it.

    If a call finds damage after intact records, it returns these, and the next call raises. `start`
    is the offset of a record in the uncompressed content: compressed files are decompressed up to
    it, others seek. Raises OpError by errno if the file cannot be opened.
    """

    def __init__(
        self,
        path: AnyPath,
        compression: str = "",
        buffer_size: int = BUFFER_SIZE,
        *,
        start: int = 0,
    ) -> None:
        self._name = os.fsdecode(path)
        self._compression = compression
        self._buffer_size = max(buffer_size, _HEADER.size)
        self._file = open_file(self._name, "rb", compression)
        # Data decompressed before damage must not be lost: `read1` returns it, whereas `read`
        # continues into the damage. fsspec's files have `read` only.
        self._read_some = getattr(self._file, "read1", self._file.read)
        self._buffer = b""
        self._at = 0  # position in the buffer
        self._failure: DataLossError | None = None  # raised by the next call
        self.offset = start
        try:
            self._go_to(start)
        except BaseException:
            self._file.close()
            raise

    def read(self, n: int) -> list[bytes]:
        """Reads up to `n` >= 1 records.

        Returns fewer at the end of the file or before damage, and none only at the end. Raises
        DataLossError if the file is truncated or damaged.
        """
        records: list[bytes] = []
        self._advance(n, lambda ends: records.extend(self._taken(ends)))
        return records

    def skip(self, n: int) -> int:
        """Skips up to `n` records without verifying their data, and returns how many.

        Raises DataLossError as `read`.
        """
        return self._advance(n, lambda ends: self._pass(ends[-1]))

    def close(self) -> None:
        """Closes the file; may be called again."""
        self._file.close()

    def _advance(self, n: int, use: Callable[[list[int]], None]) -> int:
        """Calls `use` with the end offsets of up to `n` records, and returns the number consumed.

        `use` removes from its list the ends that it does not consume. An error after consumed
        records is raised by the next call.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        used = 0
        try:
            while used < n:
                ends, needed = self._whole(n - used)
                if ends:
                    use(ends)
                    used += len(ends)
                elif not self._fill(needed):
                    break
        except DataLossError as error:
            if not used:
                raise
            self._failure = error
        return used

    def _whole(self, n: int) -> tuple[list[int], int]:
        """Finds up to `n` complete records in the buffer.

        Returns their end offsets, and the size that the next one needs.
        """
        buffer, at, size = self._buffer, self._at, len(self._buffer)
        ends: list[int] = []
        known, header_size, last_header = _sizes.get, _HEADER.size, size - _HEADER.size
        while at <= last_header and len(ends) < n:
            header = buffer[at : at + header_size]
            needed = known(header)
            if needed is None:
                needed = _size(header)
                if needed is None or needed > _MOST_BYTES:
                    if ends:
                        break
                    if needed is None:
                        raise self._lost("corrupted", "the length's checksum", "another")
                    most = f"a record of at most {_MOST_BYTES} bytes"
                    raise self._lost("corrupted", most, f"one of {needed}")
            at += needed
            if at > size:
                return ends, needed
            ends.append(at)
        return ends, header_size

    def _taken(self, ends: list[int]) -> list[bytes]:
        """Returns the data of the leading intact records, and removes the other `ends`."""
        buffer, header_size, footer_size = self._buffer, _HEADER.size, _CHECKSUM.size
        starts = [self._at, *ends[:-1]]
        records = [
            buffer[start + header_size : end - footer_size]
            for start, end in zip(starts, ends, strict=True)
        ]
        found = masked(np.fromiter(map(google_crc32c.value, records), np.uint64, len(records)))
        stored = np.frombuffer(b"".join([buffer[end - footer_size : end] for end in ends]), "<u4")
        if not np.array_equal(found, stored):
            sound = int(np.argmax(found != stored))
            if not sound:
                raise self._lost("corrupted", "the data's checksum", "another")
            del records[sound:], ends[sound:]
        self._pass(ends[-1])
        return records

    def _pass(self, at: int) -> None:
        self.offset += at - self._at
        self._at = at

    def _fill(self, needed: int) -> bool:
        """Reads until the buffer has `needed` bytes; returns whether any were read."""
        pieces = [self._buffer[self._at :]]
        missing = needed - len(pieces[0])
        self._buffer, self._at = b"", 0
        while missing > 0:
            # A corrupt length must not cause a huge allocation.
            wanted = min(max(missing, self._buffer_size), max(_PIECE, self._buffer_size))
            try:
                with file_errors("read", self._name):
                    piece = self._read_some(wanted)
            except DataLossError as error:
                raise self._lost("corrupted", f"{self._compression} data", error) from error
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        self._buffer = b"".join(pieces)
        if missing > 0 and self._buffer:
            expected = (
                f"a header of {needed} bytes"
                if needed == _HEADER.size
                else f"{needed - _HEADER.size - _CHECKSUM.size} bytes of data and a checksum"
            )
            raise self._lost("truncated", expected, f"{len(self._buffer)} bytes to the end")
        return bool(self._buffer)

    def _go_to(self, start: int) -> None:
        if not start:
            return
        with file_errors("read", self._name):
            if not self._compression:
                self._file.seek(start)
                return
            while start and (piece := self._file.read(min(start, _PIECE))):
                start -= len(piece)

    def _lost(self, what: str, expected: str, received: object) -> DataLossError:
        return DataLossError.explained(
            f"{what} record at {self.offset} in {self._name}",
            expected=expected,
            received=received,
            hint=f"the file was read with compression_type={self._compression!r}; check "
            "that this matches, and that it is a complete TFRecord file",
        )


# Record size by header with a valid checksum. Records of one kind have few lengths, and a lookup
# takes 40 ns, a checksum 200.
_sizes: dict[bytes, int] = {}
_MOST_SIZES = 1 << 14

_MOST_BYTES = 1 << 31
"""Of a record: protobuf messages are smaller, and a few bytes of a compressed file claim more."""


def _size(header: bytes) -> int | None:
    """Returns the size of a header's record, or None if the checksum is wrong."""
    length: int
    length, checksum = _HEADER.unpack(header)
    if masked_crc32c(header[:8]) != checksum:
        return None
    if len(_sizes) >= _MOST_SIZES:
        _sizes.clear()
    size = length + _HEADER.size + _CHECKSUM.size
    if size <= _MOST_BYTES:
        _sizes[header] = size
    return size


def read_records(
    path: AnyPath, compression: str = "", buffer_size: int = BUFFER_SIZE, *, start: int = 0
) -> Iterator[bytes]:
    """Yields the records of a file; see `RecordReader` for the arguments and errors."""
    for _, record in records_with_offsets(path, compression, buffer_size, start=start):
        yield record


def records_with_offsets(
    path: AnyPath, compression: str = "", buffer_size: int = BUFFER_SIZE, *, start: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yields each record with the offset behind it, from which reading can resume."""
    with closing(RecordReader(path, compression, buffer_size, start=start)) as reader:
        offset = start
        while records := reader.read(_AT_ONCE):
            for record in records:
                offset += len(record) + _HEADER.size + _CHECKSUM.size
                yield offset, record


def tf_record_iterator(path: AnyPath, options: Any = None) -> Iterator[bytes]:
    """Yields the records of a TFRecord file (`tf.compat.v1.io.tf_record_iterator`).

    Args:
        options: a `TFRecordOptions`, or the name or number of a compression.

    Raises:
        DataLossError: the file is truncated or damaged.
        NotFoundError: it does not exist.
    """
    compression = TFRecordOptions.get_compression_type_string(options)
    chosen = options if isinstance(options, TFRecordOptions) else TFRecordOptions()
    size = chosen.input_buffer_size or BUFFER_SIZE
    return read_records(path, compression, size)
