"""`DirectoryLock`: one writer per model folder; the OS releases the lock with the process.

The lock is on `writer.lock`, whose existence means nothing. `writer.lock.json` names the holder.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
from pathlib import Path
from types import TracebackType

import filelock

from estimatorkit.core import errors
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import check_plain, os_errors, plain, remove_leftovers

_LOCK = "writer.lock"
_HOLDER = "writer.lock.json"

_held: dict[str, DirectoryLock] = {}  # by absolute path


def keep_lock(directory: str | os.PathLike[str]) -> None:
    """Acquires the lock of a folder again if this process held it and the folder was removed.

    Raises FailedPreconditionError if another process holds it now; does nothing without a lock.
    """
    lock = _held.get(os.path.abspath(directory))
    if lock is not None:
        lock.keep()


class DirectoryLock:
    """The exclusive right to write a model folder. Reentrant per object.

    Each `acquire` needs a `release`; the end of the process releases it too. Acquiring it also
    shows early that the folder is writable. A missing folder is created.

        with DirectoryLock(model_dir):
            ...
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        self._lock = filelock.FileLock(self._directory / _LOCK, thread_local=False)
        self._file: os.stat_result | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._lock.is_locked

    def acquire(self) -> None:
        """Acquires the lock without waiting, and removes what killed holders left unfinished.

        Raises FailedPreconditionError with host, process id and time of another holder, or OpError
        if the folder cannot be written.
        """
        first = not self.is_held
        with os_errors("lock the model folder", self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            check_plain(self._directory / _LOCK)
            try:
                self._lock.acquire(timeout=0)
            except filelock.Timeout:
                raise self._taken() from None
            if first:
                try:
                    self._write_holder()
                except OSError:
                    self._lock.release()
                    raise
                remove_leftovers(self._directory)
                self._file = os.stat(self._directory / _LOCK)
                _held[os.path.abspath(self._directory)] = self

    def keep(self) -> None:
        """See `keep_lock`."""
        if self._is_there():
            return
        depth = self._lock.lock_counter
        self._lock.release(force=True)
        _held.pop(os.path.abspath(self._directory))
        for _ in range(depth):
            self.acquire()
        logger.warning(
            "The model folder %s was removed, or its lock: it is written anew, without the events "
            "and checkpoints that it held.",
            self._directory,
        )

    def release(self) -> None:
        """Releases the lock; does nothing if it is not held."""
        if not self.is_held:
            return
        if self._lock.lock_counter == 1:
            _held.pop(os.path.abspath(self._directory), None)
            if self._is_there():  # what came instead of a removed folder may be another's
                (self._directory / _HOLDER).unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> DirectoryLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _is_there(self) -> bool:
        """Whether the locked file is in the folder still."""
        with contextlib.suppress(OSError):
            now = os.stat(self._directory / _LOCK)
            return self._file is not None and os.path.samestat(now, self._file)
        return False

    def _write_holder(self) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        holder = {"host": socket.gethostname(), "pid": os.getpid(), "since": now}
        path = self._directory / _HOLDER
        path.unlink(missing_ok=True)  # it may be a link
        with open(path, "x", encoding="utf-8") as file:
            file.write(json.dumps(holder) + "\n")

    def _taken(self) -> errors.FailedPreconditionError:
        return errors.FailedPreconditionError.explained(
            f"the model folder {os.fspath(self._directory)!r} has a writer already",
            expected="one writer per folder",
            received=self._describe_holder(),
            hint="wait for it or stop it, or use another model_dir",
        )

    def _describe_holder(self) -> str:
        """Describes the holder; the file is informational, and may be missing or incomplete."""
        try:
            with open(self._directory / _HOLDER, "rb", opener=plain) as file:
                holder = json.loads(file.read(4096))
            return f"process {holder['pid']} on {holder['host']} holds it since {holder['since']}"
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return "another process holds it"
