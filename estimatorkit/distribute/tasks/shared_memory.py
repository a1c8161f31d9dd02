"""`SharedMemory`: memory shared by two processes of a host, for large arrays.

An area is a file in memory, whose name is sent to the other process; that can open it if it runs on
the same host as the same user. The name is then unlinked at once, so that nothing is left however
the processes end. Each message overwrites the previous one, which the reader must have consumed.
Large arrays are cheaper to copy to shared memory than to send by TCP (0.5 ms of CPU per megabyte).
"""

from __future__ import annotations

import mmap
import os
import re
import secrets
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNED = 64
"""Bytes: XLA takes arrays that are aligned so as they are."""

_NAME = re.compile(r"estimatorkit-[0-9a-f]{32}")
_SECRET_BYTES = 16


def _folder() -> Path:
    memory = Path("/dev/shm")  # noqa: S108 - files here are made by name and mode below
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def aligned(size: int) -> int:
    """Rounds a size in bytes up to the alignment."""
    return -(-size // ALIGNED) * ALIGNED


class SharedMemory:
    """A shared area: created by `make` in one process, and opened by `open` in the other."""

    def __init__(self, name: str, secret: str, memory: mmap.mmap) -> None:
        self.name = name
        self.secret = secret
        self._bytes = np.frombuffer(memory, np.uint8)
        self._used = ALIGNED

    @staticmethod
    def make(size: int) -> SharedMemory:
        """Creates an area.

        Args:
            size: its capacity in bytes of arrays.

        Raises:
            OSError: there is not enough memory.
        """
        if not hasattr(os, "posix_fallocate"):
            raise OSError("this system cannot reserve memory for files")
        name, secret = f"estimatorkit-{secrets.token_hex(16)}", secrets.token_hex(_SECRET_BYTES)
        path = _folder() / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            # Memory that is not there is an error now, not a killed process later.
            os.posix_fallocate(descriptor, 0, ALIGNED + size)
            memory = mmap.mmap(descriptor, ALIGNED + size)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
        memory[:_SECRET_BYTES] = bytes.fromhex(secret)
        return SharedMemory(name, secret, memory)

    @staticmethod
    def open(name: str, secret: str) -> SharedMemory | None:
        """Opens the area of another process; None if it is on another host, or of another user."""
        if not _NAME.fullmatch(name):
            return None
        try:
            descriptor = os.open(_folder() / name, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid():
                return None
            memory = mmap.mmap(descriptor, about.st_size)
        finally:
            os.close(descriptor)
        same = secrets.compare_digest(memory[:_SECRET_BYTES].hex(), secret)
        return SharedMemory(name, secret, memory) if same else None

    def unlink(self) -> None:
        """Unlinks the name, so that no other process can open it."""
        (_folder() / self.name).unlink(missing_ok=True)

    def begin(self) -> None:
        """Begins a message, which overwrites the previous one."""
        self._used = ALIGNED

    def put(self, data: NDArray[np.uint8]) -> int | None:
        """Appends bytes; returns their offset, or None if they do not fit."""
        start, end = self._used, self._used + data.nbytes
        if end > self._bytes.nbytes:
            return None
        self._bytes[start:end] = data
        self._used = aligned(end)
        return start

    def at(self, start: int, size: int) -> Any:
        """A view of bytes at an offset.

        Raises:
            ValueError: they are out of range.
        """
        if start < ALIGNED or size < 0 or start + size > self._bytes.nbytes:
            raise ValueError(f"{size} bytes at offset {start} are outside the shared memory area")
        return self._bytes[start : start + size]
