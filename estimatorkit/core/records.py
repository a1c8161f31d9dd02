"""TFRecord files: a writer, and an iterator over a file's records.

A record is its length (uint64), the masked CRC-32C of these eight bytes, the data and their masked
CRC-32C, all little-endian (TensorFlow's `record_writer.h`); the whole file may be compressed with
GZIP or ZLIB. What is damaged raises `DataLossError` with the file and the offset, counted in the
uncompressed stream.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import google_crc32c

from estimatorkit.core.durable import os_errors
from estimatorkit.core.errors import (
    DataLossError,
    FailedPreconditionError,
    explain,
)
from estimatorkit.core.wire import masked

AnyPath = str | bytes | os.PathLike[str]

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_PIECE = 1 << 24
"""Bytes asked for at once: a length that lies must not ask for memory that is not there."""


class TFRecordCompressionType:
    """How a file of records is compressed."""

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
    """How a file of records is written and read.

    Args:
        compression_type: 'GZIP', 'ZLIB', '' or None, or one of `TFRecordCompressionType`.
        flush_mode: zlib's flush mode after each write; None for no flush.
        input_buffer_size: bytes read at a time; None for 256 KiB.
        output_buffer_size: accepted for TensorFlow's signature: Python's files have one buffer.
        window_bits: zlib's; None for 15.
        compression_level: 0 to 9, or None for zlib's own choice.
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
        """'', 'GZIP' or 'ZLIB' for options, a name, a `TFRecordCompressionType` or None.

        Raises:
            ValueError: there is no such compression.
        """
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options is None or options in _NAMES.values():
            return options or ""
        if options in _NAMES:
            return _NAMES[options]
        raise ValueError(
            explain(
                f"Not a valid compression_type: {options!r}",
                expected="'GZIP', 'ZLIB', '' or None",
                received=repr(options),
            )
        )


def masked_crc32c(data: bytes) -> int:
    """The CRC-32C of `data`, rotated and shifted by a constant, so that data may hold checksums."""
    return masked(google_crc32c.value(data))


def _wbits(compression: str, options: TFRecordOptions) -> int:
    return (options.window_bits or zlib.MAX_WBITS) + (16 if compression == "GZIP" else 0)


class TFRecordWriter:
    """Writes records to a file, which is made anew. A context manager that closes itself.

    Source: `tf.io.TFRecordWriter`; the files are equal to the byte (compressed ones after
    decompression).

    Args:
        path: the file.
        options: a `TFRecordOptions`, or the name or number of a compression.

    Raises:
        OpError: the file cannot be made; the subclass says why.
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
        with os_errors("write", self._path):
            self._file: BinaryIO | None = open(self._path, "wb")  # noqa: SIM115 (closed by close)

    def write(self, record: bytes) -> None:
        """Appends one record.

        Raises:
            TypeError: it is no bytes.
            FailedPreconditionError: the writer is closed.
        """
        if not isinstance(record, (bytes, bytearray, memoryview)):
            raise TypeError(
                explain(
                    "a record is bytes",
                    expected="bytes, such as example.SerializeToString()",
                    received=type(record).__name__,
                )
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
        with os_errors("write", self._path):
            file.write(data if self._compress is None else self._compress.compress(data))

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise FailedPreconditionError(
                None, None, explain("Writer is closed", received=self._path)
            )
        return self._file

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        file = self._open_file()
        with os_errors("write", self._path):
            if self._compress is not None:
                file.write(self._compress.flush(zlib.Z_SYNC_FLUSH))
            file.flush()

    def close(self) -> None:
        """Ends the file; closing twice is no error."""
        if self._file is None:
            return
        with os_errors("write", self._path):
            if self._compress is not None:
                self._file.write(self._compress.flush())
            self._file.close()
        self._file = None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Inflated(io.RawIOBase):
    """The uncompressed bytes of a file of one or more zlib or gzip streams."""

    def __init__(self, file: BinaryIO, wbits: int) -> None:
        self._file = file
        self._wbits = wbits
        self._stream = zlib.decompressobj(wbits)
        self._fresh = True  # nothing of the current stream was read yet

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._stream.eof:
                rest = self._stream.unused_data
                self._stream, self._fresh = zlib.decompressobj(self._wbits), True
            else:
                rest = self._stream.unconsumed_tail
            rest = rest or self._file.read(io.DEFAULT_BUFFER_SIZE)
            if not rest:
                if not self._fresh:
                    raise EOFError("the compressed stream ends too early")
                return 0
            data = self._stream.decompress(rest, len(buffer))
            self._fresh = False
            if data:
                buffer[: len(data)] = data
                return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def read_records(
    path: AnyPath, compression: str = "", buffer_size: int = 1 << 18, *, start: int = 0
) -> Iterator[bytes]:
    """The records of a file, one after the other.

    Args:
        path: the file.
        compression: '', 'GZIP' or 'ZLIB'.
        buffer_size: bytes read at a time.
        start: an offset in the uncompressed stream where a record begins.

    Raises:
        DataLossError: the file is truncated or damaged.
        NotFoundError: there is none.
    """
    for _, record in records_with_offsets(path, compression, buffer_size, start=start):
        yield record


def records_with_offsets(
    path: AnyPath,
    compression: str = "",
    buffer_size: int = 1 << 18,
    *,
    start: int = 0,
    window_bits: int | None = None,
) -> Iterator[tuple[int, bytes]]:
    """As `read_records`, each with the offset behind it, where reading can begin again."""
    name = os.fsdecode(path)
    with os_errors("read", name), _opened(name, compression, buffer_size, window_bits) as file:
        if start:
            _skip(file, start, compression)
        offset = start
        while True:
            record = _read_one(file, name, offset, compression)
            if record is None:
                return
            offset += len(record) + _HEADER.size + _CHECKSUM.size
            yield offset, record


def _opened(name: str, compression: str, buffer_size: int, window_bits: int | None) -> Any:
    if not compression:
        return open(name, "rb", buffering=buffer_size)
    wbits = _wbits(compression, TFRecordOptions(compression, window_bits=window_bits))
    return io.BufferedReader(_Inflated(open(name, "rb"), wbits), buffer_size)


def _skip(file: Any, start: int, compression: str) -> None:
    if not compression:
        file.seek(start)
        return
    while start:
        start -= len(file.read(min(start, _PIECE))) or start


def _read_one(file: Any, name: str, offset: int, compression: str) -> bytes | None:
    header = _read(file, _HEADER.size, name, offset, compression)
    if not header:
        return None
    if len(header) < _HEADER.size:
        raise _lost("truncated", name, offset, compression, "a header of 12 bytes", len(header))
    length, checksum = _HEADER.unpack(header)
    if masked_crc32c(header[:8]) != checksum:
        raise _lost("corrupted", name, offset, compression, "the length's checksum", "another")
    body = _read(file, length + _CHECKSUM.size, name, offset, compression)
    if len(body) < length + _CHECKSUM.size:
        raise _lost(
            "truncated",
            name,
            offset,
            compression,
            f"{length} bytes of data and a checksum",
            f"{len(body)} bytes",
        )
    data = body[:length]
    if masked_crc32c(data) != _CHECKSUM.unpack_from(body, length)[0]:
        raise _lost("corrupted", name, offset, compression, "the data's checksum", "another")
    return data


def _read(file: Any, size: int, name: str, offset: int, compression: str) -> bytes:
    try:
        if size <= _PIECE:
            data: bytes = file.read(size)
            return data
        pieces = []
        while size and (piece := file.read(min(size, _PIECE))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)
    except (zlib.error, EOFError) as error:
        raise _lost("corrupted", name, offset, compression, f"{compression} data", error) from error


def _lost(
    what: str, name: str, offset: int, compression: str, expected: str, received: object
) -> DataLossError:
    return DataLossError(
        None,
        None,
        explain(
            f"{what} record at {offset} in {name}",
            expected=expected,
            received=received,
            hint=f"the file was read with compression_type={compression!r}; was it written so, and "
            "is it a file of TFRecords, written to its end?",
        ),
    )


def tf_record_iterator(path: AnyPath, options: Any = None) -> Iterator[bytes]:
    """The records of a file of TFRecords (`tf.compat.v1.io.tf_record_iterator`).

    Args:
        path: the file.
        options: a `TFRecordOptions`, or the name or number of a compression.

    Raises:
        DataLossError: the file is truncated or damaged.
        NotFoundError: there is none.
    """
    compression = TFRecordOptions.get_compression_type_string(options)
    chosen = options if isinstance(options, TFRecordOptions) else TFRecordOptions()
    size = chosen.input_buffer_size or (1 << 18)
    for _, record in records_with_offsets(path, compression, size, window_bits=chosen.window_bits):
        yield record


__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "masked_crc32c",
    "read_records",
    "records_with_offsets",
    "tf_record_iterator",
]
