"""Reader of LevelDB sorted tables (SSTables), the container of TensorFlow's checkpoints.

A table has blocks of sorted (key, value) pairs, an index block with the last key and location of
each block, and a footer with the location of the index. Each block has a CRC-32C. Damage raises
`DataLossError` with file and offset; allocations are bounded by the file size.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator
from typing import NoReturn

from estimatorkit.core.errors import DataLossError
from estimatorkit.storage.atomic_files import os_errors
from estimatorkit.storage.snappy import decompress
from estimatorkit.storage.wire import crc32c, fixed32, masked, varint

MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5  # compression type (1 byte) and checksum
_PLAIN, _SNAPPY = 0, 1


def is_table(path: str) -> bool:
    """Returns whether a file ends with the magic number of tables."""
    try:
        with open(path, "rb") as file:
            file.seek(-8, os.SEEK_END)
            return file.read() == MAGIC.to_bytes(8, "little")
    except OSError:
        return False


class SortedTable:
    """A table file whose blocks are read on demand.

    Raises DataLossError if it is not a table or its index is damaged, OpError by errno.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with os_errors("read the table", path):
            self._size = os.stat(path).st_size
        footer_at = self._size - _FOOTER
        if footer_at < 0:
            self._damaged(0, "it is too short", f"at least {_FOOTER} bytes", self._size)
        footer = self._bytes(footer_at, _FOOTER)
        magic = int.from_bytes(footer[-8:], "little")
        if magic != MAGIC:
            self._damaged(footer_at, "its last 8 bytes are wrong", hex(MAGIC), hex(magic))
        try:
            filters, at = self._handle(footer, 0)
            index, _ = self._handle(footer, at)
        except ValueError as error:
            self._damaged(footer_at, f"its footer is wrong: {error}")
        list(self._pairs(*filters))  # always empty; verifies the checksum
        self._blocks: list[tuple[bytes, int, int]] = []
        for key, value in self._pairs(*index):
            try:
                (start, size), _ = self._handle(value, 0)
                self._blocks.append((key, start, size))
            except ValueError as error:
                self._damaged(index[0], f"an entry of the index is wrong: {error}")
        self._kept: dict[bytes, bytes] = {}
        self._kept_at = -1

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields all pairs in key order."""
        for _, start, size in self._blocks:
            yield from self._pairs(start, size)

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key, or None. Caches the last block for neighbouring keys."""
        at = bisect.bisect_left(self._blocks, (key, 0, 0))
        if at == len(self._blocks):
            return None
        if at != self._kept_at:
            _, start, size = self._blocks[at]
            self._kept, self._kept_at = dict(self._pairs(start, size)), at
        return self._kept.get(key)

    def _handle(self, data: bytes, at: int) -> tuple[tuple[int, int], int]:
        """Decodes a block handle, (offset, size without trailer); returns the next offset too."""
        start, at = varint(data, at)
        size, at = varint(data, at)
        if start + size + _TRAILER > self._size - _FOOTER:
            raise ValueError(f"a block at {start} of {size} bytes extends past the end")
        return (start, size), at

    def _pairs(self, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """Yields the pairs of a block after verifying its checksum."""
        stored = self._bytes(start, size + _TRAILER)
        expected, found = fixed32(stored, size + 1), masked(crc32c(stored[: size + 1]))
        if expected != found:
            self._damaged(start, "a block is damaged", f"crc32c {expected:#x}", f"{found:#x}")
        block, compression = stored[:size], stored[size]
        if compression not in (_PLAIN, _SNAPPY):
            self._damaged(
                start, "a block is compressed by an unknown method", "0 or 1", compression
            )
        try:
            if compression == _SNAPPY:
                block = decompress(block)
            yield from _entries(block)
        except ValueError as error:
            self._damaged(start, f"a block is malformed: {error}")

    def _bytes(self, at: int, size: int) -> bytes:
        with os_errors("read the table", self._path), open(self._path, "rb") as file:
            file.seek(at)
            data = file.read(size)
        if len(data) != size:
            self._damaged(at, "it has been truncated", f"{size} bytes", len(data))
        return data

    def _damaged(
        self, at: int, problem: str, expected: object = None, received: object = None
    ) -> NoReturn:
        raise damaged(self._path, at, problem, expected, received)


def damaged(
    path: str, at: int, problem: str, expected: object = None, received: object = None
) -> DataLossError:
    """Returns the error for damage at an offset of a TensorFlow checkpoint."""
    return DataLossError.explained(
        f"{path!r}, offset {at}: {problem}",
        expected=expected,
        received=received,
        hint="use another checkpoint of the folder, or copy this one again if it is a copy",
    )


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the pairs of a block, whose keys are prefix-compressed.

    The restart positions at the end are for binary search, and not needed here.
    """
    if len(block) < 4:
        raise ValueError("it is too short")
    end = len(block) - 4 - 4 * fixed32(block, len(block) - 4)
    if end < 0:
        raise ValueError("it has more restarts than fit")
    key, at, count = b"", 0, 0
    while at < end:
        shared, at = varint(block, at)
        fresh, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or at + fresh + length > end:
            raise ValueError(f"an entry before {at} extends past the end")
        following = key[:shared] + block[at : at + fresh]
        if count and following <= key:
            raise ValueError(f"the keys are not sorted at {at}")
        key, count = following, count + 1
        yield key, block[at + fresh : at + fresh + length]
        at += fresh + length
