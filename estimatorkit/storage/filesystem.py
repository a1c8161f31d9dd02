"""File systems: one interface to open, list and rename local and remote files.

`open_file` opens a file, optionally compressed; `locate` returns the file system of a path for all
other operations (`gfile` builds on it). Local paths (`file://` too) use the operating system;
`gs://`, `s3://`, `hdfs://`, `memory://` and so on use fsspec (the extra `remote`), imported on
first use. Failures raise the package's errors; callers wrap reads from an open file in
`file_errors`.
"""

from __future__ import annotations

import errno
import glob as _glob
import importlib.util
import io
import os
import re
import shutil
import stat as _stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, cast

from estimatorkit.core.errors import DataLossError, InvalidArgumentError, UnimplementedError
from estimatorkit.storage.atomic_files import os_error, os_errors

AnyPath = str | bytes | os.PathLike[str]

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*)://")

_PIECE = 1 << 18
"""Bytes of a compressed file per read."""

# fsspec's file systems raise these without an errno.
_ERRNO: tuple[tuple[type[OSError], int], ...] = (
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
    (PermissionError, errno.EACCES),
    (OSError, errno.EIO),
)


@contextmanager
def file_errors(doing: str, path: AnyPath) -> Iterator[None]:
    """Converts a body's file errors, local or remote, to the package's errors.

    `doing` is the verb phrase of the failed action, such as `read`.
    """
    name = os.fsdecode(path)
    try:
        with os_errors(doing, name):
            try:
                yield
            except OSError as error:
                if error.errno is not None:
                    raise
                code = next(code for kind, code in _ERRNO if isinstance(error, kind))
                raise os_error(doing, name, code) from error
    except NotImplementedError as error:
        raise UnimplementedError.explained(
            f"its file system cannot {doing} {name!r}", received=str(error)
        ) from error


class FileStatistics(NamedTuple):
    """The result of `stat`: size in bytes, modification time, and kind.

    `mtime_nsec` is in nanoseconds since 1970; 0 if unknown.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


class FileSystem:
    """The local file system. Takes paths from `locate`; failures are `OSError`s."""

    def open(self, path: str, mode: str) -> IO[bytes]:
        """Opens a file in a binary mode."""
        return cast("IO[bytes]", open(path, mode))

    def exists(self, path: str) -> bool:
        """Returns whether a file or folder exists."""
        return os.path.exists(path)

    def isdir(self, path: str) -> bool:
        """Returns whether the path is a folder (a link to one does not count for `remove`)."""
        return os.path.isdir(path)

    def stat(self, path: str) -> FileStatistics:
        """Returns size, time and kind."""
        found = os.stat(path)
        return FileStatistics(found.st_size, found.st_mtime_ns, _stat.S_ISDIR(found.st_mode))

    def glob(self, pattern: str) -> list[str]:
        """Returns the matching names; `*` and `?` do not cross separators."""
        return _glob.glob(pattern, include_hidden=True)  # without recursive, `**` is `*`

    def listdir(self, path: str) -> list[str]:
        """Returns the names in a folder."""
        return os.listdir(path)

    def walk(
        self, top: str, topdown: bool, onerror: Callable[[Exception], object] | None
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Same as `os.walk`."""
        return os.walk(top, topdown, onerror)

    def mkdir(self, path: str) -> None:
        """Creates a folder."""
        os.mkdir(path)

    def makedirs(self, path: str) -> None:
        """Creates a folder and its missing parents."""
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        """Removes a file."""
        os.remove(path)

    def rmtree(self, path: str) -> None:
        """Removes a folder recursively, or a file."""
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)

    def copy(self, source: str, target: str) -> None:
        """Copies a file, replacing the target."""
        shutil.copyfile(source, target)

    def rename(self, source: str, target: str) -> None:
        """Renames, replacing the target."""
        os.replace(source, target)


class _Remote(FileSystem):
    """A file system of fsspec; paths are full URLs.

    `prefix` is the URL part before the names that `files` uses: `gs://`, `hdfs://host:port/`.
    """

    def __init__(self, files: Any, prefix: str) -> None:
        self._files = files
        self._prefix = prefix

    def _fresh(self) -> Any:
        # fsspec caches listings of object stores, which other processes write to.
        self._files.invalidate_cache()
        return self._files

    def _url(self, name: str) -> str:
        return self._prefix + name.lstrip("/")

    def open(self, path: str, mode: str) -> IO[bytes]:
        return cast("IO[bytes]", self._files.open(path, mode))

    def exists(self, path: str) -> bool:
        return bool(self._fresh().exists(path))

    def isdir(self, path: str) -> bool:
        return bool(self._fresh().isdir(path))

    def stat(self, path: str) -> FileStatistics:
        found = self._fresh().info(path)
        if found["type"] == "directory":
            return FileStatistics(0, 0, True)
        try:
            seconds = self._files.modified(path).timestamp()
        except NotImplementedError:
            seconds = 0.0
        return FileStatistics(int(found["size"]), int(seconds * 1e9), False)

    def glob(self, pattern: str) -> list[str]:
        return [self._url(name) for name in self._fresh().glob(re.sub(r"\*+", "*", pattern))]

    def listdir(self, path: str) -> list[str]:
        folder = self._files._strip_protocol(path)
        names = [name.rstrip("/") for name in self._fresh().ls(path, detail=False)]
        return [name.rpartition("/")[2] for name in names if name != folder]

    def walk(
        self, top: str, topdown: bool, onerror: Callable[[Exception], object] | None
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        found = self._fresh().walk(top, topdown=topdown, on_error=onerror or "omit")
        for folder, folders, names in found:
            yield self._url(folder), list(folders), list(names)

    def mkdir(self, path: str) -> None:
        self._files.mkdir(path, create_parents=False)

    def makedirs(self, path: str) -> None:
        self._files.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        self._fresh().info(path)  # object stores ignore missing files
        self._files.rm(path)

    def rmtree(self, path: str) -> None:
        self._fresh().info(path)
        self._files.rm(path, recursive=True)

    def copy(self, source: str, target: str) -> None:
        self._files.cp_file(source, target)

    def rename(self, source: str, target: str) -> None:
        if self._files.exists(target):
            self._files.rm(target, recursive=True)
        self._files.mv(source, target, recursive=self._files.isdir(source))


_LOCAL = FileSystem()


def scheme(path: AnyPath) -> str:
    """Returns the scheme of a path: 'gs' for `gs://bucket/file`; '' for local and `file://`."""
    found = _SCHEME.match(os.fsdecode(path))
    return "" if found is None or found["scheme"] == "file" else found["scheme"]


def is_remote(path: AnyPath) -> bool:
    """Returns whether a path is not on the local file system."""
    return scheme(path) != ""


def locate(path: AnyPath) -> tuple[FileSystem, str]:
    """Returns the file system of a path, and the path within it.

    Raises UnimplementedError if the scheme is unknown, or its library is not installed.
    """
    name = os.fsdecode(path)
    kind = scheme(name)
    if not kind:
        return _LOCAL, name.removeprefix("file://")
    if importlib.util.find_spec("fsspec") is None:
        raise _unreachable(
            kind,
            name,
            "fsspec is not installed",
            "pip install 'estimatorkit[remote]', and the package for this storage (gcsfs, s3fs, "
            "...), or copy the file to this machine",
        )
    from fsspec.core import url_to_fs

    try:
        files, inner = url_to_fs(name)
    except (ImportError, OSError) as error:  # OSError: a native library is missing
        raise _unreachable(
            kind, name, str(error), "install that package, or copy the file to this machine"
        ) from error
    except ValueError as error:
        raise _unreachable(kind, name, str(error), "check the spelling of the scheme") from error
    return _Remote(files, name.rstrip("/").removesuffix(inner.strip("/"))), name


def _unreachable(kind: str, name: str, received: str, hint: str) -> UnimplementedError:
    return UnimplementedError.explained(
        f"File system scheme '{kind}' not implemented (file: '{name}')",
        expected="a local path, or a URL that fsspec supports",
        received=received,
        hint=hint,
    )


def registered_schemes() -> list[str]:
    """Returns the schemes: '' and 'file', and those of fsspec if it is installed."""
    known = ["", "file"]
    if importlib.util.find_spec("fsspec") is not None:
        from fsspec import available_protocols

        known += sorted(set(available_protocols()) - {"file", "local"})
    return known


def compression_name(compression: str | None) -> str:
    """Returns '' (also for None), 'GZIP' or 'ZLIB'; else raises InvalidArgumentError."""
    if compression in (None, "", "GZIP", "ZLIB"):
        return compression or ""
    raise InvalidArgumentError.explained(
        f"Unsupported compression_type: {compression}.",
        expected="None, '', 'GZIP' or 'ZLIB'",
        received=repr(compression),
    )


def open_file(
    path: AnyPath,
    mode: str = "rb",
    compression: str | None = None,
    *,
    encoding: str | None = None,
    newline: str | None = None,
) -> IO[Any]:
    """Opens a local or remote file; raises OpError by errno.

    `mode` and `newline` are as in `open`; text is UTF-8 by default. With `compression` ('GZIP' or
    'ZLIB'; None or '' for none), files are read ('rb', 'r') or created ('wb', 'w'), with
    uncompressed content.
    """
    files, name = locate(path)
    kind = compression_name(compression)
    binary = mode if "b" in mode else mode + "b"
    with file_errors("open", name):
        file = files.open(name, binary)
    if kind:
        wbits = zlib.MAX_WBITS + (16 if kind == "GZIP" else 0)
        if mode[0] == "r":
            file = cast("IO[bytes]", io.BufferedReader(_Inflated(file, wbits, name), _PIECE))
        else:
            file = cast("IO[bytes]", io.BufferedWriter(_Deflated(file, wbits), _PIECE))
    if "b" in mode:
        return file
    return io.TextIOWrapper(cast("Any", file), encoding or "utf-8", newline=newline)


class _Inflated(io.RawIOBase):
    """The uncompressed content of a compressed file, which may be several concatenated streams."""

    def __init__(self, file: IO[bytes], wbits: int, name: str) -> None:
        self._file = file
        self._wbits = wbits
        self._name = name
        self._stream = zlib.decompressobj(wbits)
        self._begun = False  # whether the stream has had any input
        self._position = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        wanted = len(buffer)
        data = b""
        while not data and wanted:
            if self._stream.eof:
                rest = self._stream.unused_data
                self._stream, self._begun = zlib.decompressobj(self._wbits), False
            else:
                rest = self._stream.unconsumed_tail
            rest = rest or self._file.read(_PIECE)
            if not rest:
                if self._begun:
                    raise self._damaged("the compressed data are truncated")
                return 0
            self._begun = True
            try:
                data = self._stream.decompress(rest, wanted)
            except zlib.error as error:
                raise self._damaged(str(error)) from error
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _damaged(self, reason: str) -> DataLossError:
        return DataLossError.explained(
            f"the compressed file {self._name} is damaged behind byte {self._position} of its "
            "content",
            received=reason,
            hint="check that compression_type matches the file",
        )

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Deflated(io.RawIOBase):
    """Compresses what is written to it."""

    def __init__(self, file: IO[bytes], wbits: int) -> None:
        self._file = file
        self._stream = zlib.compressobj(wbits=wbits)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(self._stream.compress(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.write(self._stream.flush())
            self._file.close()
        super().close()
