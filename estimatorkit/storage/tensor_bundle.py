"""Reader of TensorFlow's V2 checkpoints (tensor bundles).

`PREFIX.index` is a sorted table: the header under the key '', then an entry per tensor with dtype,
shape, location and CRC-32C. `PREFIX.data-00000-of-0000N` hold the bytes. Entries of partitioned
variables list slices, each with its own entry under `slice_key`. Any inconsistency raises
`DataLossError` with file and offset.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import FailedPreconditionError, UnimplementedError
from estimatorkit.storage.atomic_files import os_errors
from estimatorkit.storage.sorted_table import SortedTable, damaged
from estimatorkit.storage.tensor_slices import (
    Stored,
    assemble,
    from_bytes,
    parse_shape,
    parse_slice,
    slice_key,
    slice_shape,
)
from estimatorkit.storage.wire import crc32c, fixed32, masked, messages, numbers, signed, varint

_VERSION = 1
_BIG_ENDIAN = 1
_STRING = 7


@dataclass(frozen=True)
class _Entry:
    """A `BundleEntryProto`: a tensor or slice, and the location of its bytes."""

    stored: Stored
    shard: int
    offset: int
    size: int
    checksum: int


class TensorBundle:
    """A V2 checkpoint, given its prefix without `.index`.

    Raises NotFoundError if it does not exist, DataLossError if the index is damaged, and
    FailedPreconditionError or UnimplementedError if it requires a newer reader or is big-endian.
    """

    def __init__(self, prefix: str) -> None:
        self.path = prefix
        self.index = f"{prefix}.index"
        pairs = dict(SortedTable(self.index).items())
        try:
            self._shards = self._read_header(pairs.pop(b"", None))
            entries = {key: _entry(value) for key, value in pairs.items()}
            slices = {
                slice_key(key.decode(), piece)
                for key, entry in entries.items()
                for piece in entry.stored.slices
            }
            names = {key.decode(): entry for key, entry in entries.items() if key not in slices}
        except ValueError as error:
            raise damaged(self.index, 0, f"an entry is malformed: {error}") from error
        self._entries = entries
        self.tensors = {name: entry.stored for name, entry in names.items()}

    def _read_header(self, message: bytes | None) -> int:
        if message is None:
            raise ValueError("there is no header")
        header = numbers(message)
        if header.get(2, 0) == _BIG_ENDIAN:
            raise UnimplementedError(
                None,
                None,
                f"{self.index!r} was written on a big-endian machine, which is not supported.",
            )
        needed = max((numbers(version).get(2, 0) for version in messages(message, 3)), default=0)
        if needed > _VERSION:
            raise FailedPreconditionError.explained(
                f"{self.index!r} requires a newer reader",
                expected=f"format version {_VERSION} or lower",
                received=f"format version {needed}",
            )
        return header.get(1, 0)

    def files(self) -> list[str]:
        """The paths of the index and of the data files."""
        return [self.index, *(self._shard(number) for number in self._used_shards())]

    def _used_shards(self) -> list[int]:
        return sorted({entry.shard for entry in self._entries.values() if not entry.stored.slices})

    def _shard(self, number: int) -> str:
        return f"{self.path}.data-{number:05d}-of-{self._shards:05d}"

    def read(self, name: str) -> NDArray[np.generic]:
        """Reads a tensor of `tensors`.

        Raises DataLossError if its bytes are missing or damaged, UnimplementedError if its dtype is
        unsupported.
        """
        entry = self._entries[name.encode()]
        stored = entry.stored
        if not stored.slices:
            return self._read_whole(name, entry)
        try:
            pieces = []
            for piece in stored.slices:
                part = self._entries.get(slice_key(name, piece))
                if part is None or part.stored != Stored(
                    stored.dtype, slice_shape(stored.shape, piece)
                ):
                    raise ValueError(f"the slice {piece} is missing or of another shape")
                pieces.append((piece, self._read_whole(name, part)))
            return assemble(stored, stored.require_dtype(name), pieces)
        except ValueError as error:
            raise damaged(self.index, 0, f"variable {name!r}: {error}") from error

    def _read_whole(self, name: str, entry: _Entry) -> NDArray[np.generic]:
        stored = entry.stored
        dtype = stored.require_dtype(name)
        least = stored.count * (dtype.size or 1)
        if entry.size < least or (dtype.size and entry.size != least):
            self._wrong(name, entry, f"{least} bytes for {stored.shape} of {dtype}", entry.size)
        data = self._bytes(name, entry)
        try:
            if stored.dtype == _STRING:
                texts, checksum = _strings(data, stored.count)
                self._compare(name, entry, checksum)
                result = np.empty(stored.count, object)
                result[:] = texts
                return result.reshape(stored.shape)
            self._compare(name, entry, crc32c(data))
            return from_bytes(data, dtype, stored.shape)
        except ValueError as error:
            raise damaged(
                self._shard(entry.shard), entry.offset, f"tensor {name!r}: {error}"
            ) from error

    def _bytes(self, name: str, entry: _Entry) -> bytes:
        path = self._shard(entry.shard)
        if not os.path.isfile(path):
            raise damaged(path, 0, f"the file of tensor {name!r} is missing")
        with os_errors("read the checkpoint", path), open(path, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            if entry.offset + entry.size > length:
                self._wrong(name, entry, f"{entry.offset + entry.size} bytes in the file", length)
            file.seek(entry.offset)
            return file.read(entry.size)

    def _compare(self, name: str, entry: _Entry, checksum: int) -> None:
        if masked(checksum) != entry.checksum:
            expected = f"crc32c {entry.checksum:#x}"
            self._wrong(name, entry, expected, f"crc32c {masked(checksum):#x}")

    def _wrong(self, name: str, entry: _Entry, expected: object, received: object) -> NoReturn:
        raise damaged(
            self._shard(entry.shard),
            entry.offset,
            f"tensor {name!r} is damaged",
            expected,
            received,
        )


def _entry(message: bytes) -> _Entry:
    found = numbers(message)
    shapes = messages(message, 2)
    slices = tuple(parse_slice(piece) for piece in messages(message, 7))
    stored = Stored(found.get(1, 0), parse_shape(shapes[-1]) if shapes else (), slices)
    shard, offset, size = (signed(found.get(number, 0)) for number in (3, 4, 5))
    if shard < 0 or offset < 0 or size < 0:
        raise ValueError("a shard, an offset or a size is negative")
    return _Entry(stored, shard, offset, size, found.get(6, 0))


def _strings(data: bytes, count: int) -> tuple[list[bytes], int]:
    """Decodes strings: their lengths as varints, the lengths' checksum, the contents.

    Returns the strings and the checksum for the entry: of the lengths as 32-bit numbers (64-bit if
    needed), of the stored checksum, and of the contents.
    """
    lengths, at = [], 0
    for _ in range(count):
        length, at = varint(data, at)
        lengths.append(length)
    checksum = crc32c(
        b"".join(length.to_bytes(4 if length < 1 << 32 else 8, "little") for length in lengths)
    )
    if at + 4 > len(data) or fixed32(data, at) != masked(checksum):
        raise ValueError("the lengths of the strings are damaged")
    checksum = crc32c(data[at:], checksum)
    at += 4
    if sum(lengths) != len(data) - at:
        raise ValueError(f"the strings have {sum(lengths)} bytes, but {len(data) - at} are there")
    texts = []
    for length in lengths:
        texts.append(data[at : at + length])
        at += length
    return texts, checksum
