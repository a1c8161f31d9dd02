"""Atomic files: write to a temporary, sync, rename, sync the folder.

Temporary files (`NAME.tmp-PID-RANDOM`, where the random digits begin with those of the host) are
next to their targets. Removal renames to such a name, then deletes. Readers therefore never see
partial files, and what killed writers left behind is recognized: the next writer in the folder
removes it, and the next holder of a lock (`remove_leftovers`). Files that are written in place, and
read, in a folder that others may have filled are opened by `plain`. `os_errors` converts `OSError`s
to the package's errors.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from estimatorkit.core import errors

# Names of earlier versions have no host.
_TEMPORARY = re.compile(r"\.tmp-(?P<pid>[0-9]+)-(?:[0-9a-f]{8}|(?P<host>[0-9a-f]{6})[0-9a-f]{5})$")
_STALE_SECONDS = 86400.0  # a process id may be reused; no save takes a day

# This process's current temporary files. Others with our process id are from an earlier process: in
# a container, the trainer is often process 1 every time.
_in_progress: set[str] = set()

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_WRONG_KIND = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY)
_NOT_PLAIN = (errno.ELOOP, errno.ENXIO)
_ERRORS: dict[int, tuple[type[errors.OpError], str]] = {
    **{
        code: (errors.ResourceExhaustedError, "free space, or raise the quota or limit (ulimit -a)")
        for code in _FULL
    },
    **{
        code: (errors.PermissionDeniedError, "give this user the right, or choose another folder")
        for code in _FORBIDDEN
    },
    **{
        code: (errors.FailedPreconditionError, "a file is where a folder is needed, or the reverse")
        for code in _WRONG_KIND
    },
    **{
        code: (errors.FailedPreconditionError, "remove it: a file is expected, no link or pipe")
        for code in _NOT_PLAIN
    },
    errno.ENOENT: (errors.NotFoundError, "is the path right, and was it not removed meanwhile?"),
    errno.ENAMETOOLONG: (errors.InvalidArgumentError, "choose a shorter name"),
    errno.EIO: (errors.DataLossError, "the disk or the network file system reports a fault"),
}


def os_error(doing: str, path: str | os.PathLike[str], code: int) -> errors.OpError:
    """Returns the package's error for an errno.

    `doing` is the verb phrase of the failed action, such as `write the checkpoint`.
    """
    kind, hint = _ERRORS.get(code, (errors.UnknownError, "see the operating system's message"))
    name = errno.errorcode.get(code, "unknown")
    return kind.explained(
        f"could not {doing} at {os.fspath(path)!r}",
        received=f"{os.strerror(code)} ({name}, errno {code})",
        hint=hint,
    )


@contextmanager
def os_errors(doing: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Converts an `OSError` of the body to the package's error (see `os_error`).

    The message has the path that the operating system reports, if any, else `path`.
    """
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else path
        raise os_error(doing, where, error.errno or 0) from error


def plain(path: str, flags: int) -> int:
    """An `opener` for `open`, of files in folders that others may have filled.

    Writes through no link, and waits for no pipe.

    Raises:
        OSError: ELOOP or ENXIO: a link is to be written, or it is not a regular file.
    """
    if flags & (os.O_WRONLY | os.O_RDWR):
        flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), path)
    return descriptor


def read_plain(path: Path) -> bytes:
    """The content of a file of a folder that others may have filled (see `plain`).

    Raises:
        FileNotFoundError: it does not exist.
        OpError: it cannot be read, or is not a regular file.
    """
    try:
        with os_errors("read", path), open(path, "rb", opener=plain) as file:
            return file.read()
    except errors.NotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error


def check_plain(path: Path) -> None:
    """Refuses what is not a regular file, where another library will open the path.

    Raises:
        OSError: ELOOP or ENXIO: it is a link, or not a regular file.
    """
    if os.path.lexists(path):
        os.close(plain(os.fspath(path), os.O_RDWR))


def sync_file(path: str | os.PathLike[str]) -> None:
    """Forces a file's content, or a folder's entries, to the disk."""
    if sys.platform == "win32" and os.path.isdir(path):
        return  # Windows has no fsync for folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_temporary(name: str) -> bool:
    """Returns whether a name is that of a pending or interrupted write or removal."""
    return _TEMPORARY.search(name) is not None


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Yields an unused temporary name in the folder of `path`.

    The body creates it and renames it into place; what remains at the end is removed, and before,
    what processes left in the folder that were killed.
    """
    _remove_temporaries(path.parent, _is_of_the_dead)
    number = f"{_host()}{secrets.randbits(20):05x}"
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}-{number}")
    _in_progress.add(temporary.name)
    try:
        yield temporary
    finally:
        _delete(temporary)
        _in_progress.discard(temporary.name)


def write_durably(path: Path, content: bytes) -> None:
    """Atomically replaces a file, even across power failures.

    Raises an OpError by errno (see `os_error`); the old content is then intact.
    """
    with os_errors("write", path), temporary_beside(path) as temporary:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_file(path.parent)


def remove_durably(path: Path) -> None:
    """Atomically removes a file, or a folder recursively.

    Raises an OpError by errno (see `os_error`); `NotFoundError` if it does not exist.
    """
    with os_errors("remove", path), temporary_beside(path) as temporary:
        os.rename(path, temporary)


def remove_leftovers(directory: Path) -> None:
    """Removes the temporaries that no process will rename any more, also in folders below.

    For the holder of a lock on the folder (`DirectoryLock`), where only it makes checkpoints:
    folders of other hosts are removed too. Below, names must say that their process is gone.
    """
    _remove_temporaries(directory, _is_left)
    for folder, names, _ in os.walk(directory):
        names[:] = [name for name in names if not is_temporary(name)]
        for name in names:
            _remove_temporaries(Path(folder, name), _is_of_the_dead)


def _remove_temporaries(
    directory: Path, is_stale: Callable[[os.DirEntry[str], re.Match[str]], bool]
) -> None:
    with suppress(OSError):  # who writes there will say what is wrong with the folder
        for entry in list(os.scandir(directory)):
            match = _TEMPORARY.search(entry.name)
            if match is not None and entry.name not in _in_progress:
                with suppress(FileNotFoundError):
                    if is_stale(entry, match):
                        _delete(Path(entry.path))


def _is_of_the_dead(entry: os.DirEntry[str], match: re.Match[str]) -> bool:
    """Whether a temporary is this user's, of a process of this host that is gone."""
    if match["host"] != _host() or not _is_gone(entry, match):
        return False
    return not hasattr(os, "geteuid") or entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _is_left(entry: os.DirEntry[str], match: re.Match[str]) -> bool:
    """Whether a temporary is left in a folder of which this process holds the lock."""
    if match["host"] in (None, _host()):
        return _is_gone(entry, match)
    return entry.is_dir(follow_symlinks=False) or _is_old(entry)


def _is_gone(entry: os.DirEntry[str], match: re.Match[str]) -> bool:
    pid = int(match["pid"])
    return pid == os.getpid() or not _is_running(pid) or _is_old(entry)


def _is_old(entry: os.DirEntry[str]) -> bool:
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_SECONDS


@cache
def _host() -> str:
    """Six digits of the host, and of the container where process ids are its own."""
    name = socket.gethostname()
    with suppress(OSError):  # Linux only
        name += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(name.encode()).hexdigest()[:6]


def _delete(path: Path) -> None:
    """Removes a temporary; only warns on failure, since the next writer tries again."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        logging.getLogger("estimatorkit").warning("could not remove %s: %s", path, error)


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # on Windows os.kill(pid, 0) would end the process: only age decides
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True  # another user's process, or not a process id
    return True
