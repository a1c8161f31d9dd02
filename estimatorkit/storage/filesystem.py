"""File systems: which one a path belongs to, and one interface to open, list and rename.

`open_file` opens a file by its path, compressed or not; `locate` gives the file system behind a
path for everything else (`gfile` is built on it). Local paths (`file://` too) are the operating
system's own; `gs://`, `s3://`, `hdfs://`, `memory://` and so on are left to fsspec (the extra
`remote`), which is imported when the first such path is used. What fails raises this package's
errors; whoever reads from an open file wraps that in `file_errors`.
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
"""Bytes of a compressed file that are read at once."""

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
    """Raises what the body meets at a file, local or not, as the package's error.

    Args:
        doing: what failed, a verb phrase such as `read`.
        path: the file.
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
    """What `stat` gives.

    Attributes:
        length: bytes.
        mtime_nsec: when the content changed last, nanoseconds since 1970; 0 if not known.
        is_directory: whether it is a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


class FileSystem:
    """This machine's files. Paths are those that `locate` gives; failures are `OSError`s."""

    def open(self, path: str, mode: str) -> IO[bytes]:
        """Opens a file in a binary mode."""
        return cast("IO[bytes]", open(path, mode))

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder of this name."""
        return os.path.exists(path)

    def isdir(self, path: str) -> bool:
        """Whether this is a folder (a link to one does not count for `remove`)."""
        return os.path.isdir(path)

    def stat(self, path: str) -> FileStatistics:
        """Size, time and kind."""
        found = os.stat(path)
        return FileStatistics(found.st_size, found.st_mtime_ns, _stat.S_ISDIR(found.st_mode))

    def glob(self, pattern: str) -> list[str]:
        """The names that match; `*` and `?` stand within one name."""
        return _glob.glob(pattern, include_hidden=True)  # without recursive, `**` is `*`

    def listdir(self, path: str) -> list[str]:
        """The names in a folder."""
        return os.listdir(path)

    def walk(
        self, top: str, topdown: bool, onerror: Callable[[Exception], object] | None
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """As `os.walk`."""
        return os.walk(top, topdown, onerror)

    def mkdir(self, path: str) -> None:
        """Makes a folder."""
        os.mkdir(path)

    def makedirs(self, path: str) -> None:
        """Makes a folder and those above it."""
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        """Removes a file."""
        os.remove(path)

    def rmtree(self, path: str) -> None:
        """Removes a folder with all in it, or a file."""
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)

    def copy(self, source: str, target: str) -> None:
        """Copies a file, replacing what is there."""
        shutil.copyfile(source, target)

    def rename(self, source: str, target: str) -> None:
        """Renames, replacing what is there."""
        os.replace(source, target)


class _Remote(FileSystem):
    """Files that fsspec knows how to reach; paths are whole URLs.

    Args:
        files: fsspec's file system.
        prefix: what stands before the names that `files` uses: `gs://`, `hdfs://host:port/`.
    """

    def __init__(self, files: Any, prefix: str) -> None:
        self._files = files
        self._prefix = prefix

    def _fresh(self) -> Any:
        # Object stores keep listings; others write to them meanwhile.
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
        self._fresh().info(path)  # object stores remove what is not there without a word
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
    """The file system that a path names: 'gs' of `gs://bucket/file`; '' where it is this machine's.

    `file://` is this machine's too.
    """
    found = _SCHEME.match(os.fsdecode(path))
    return "" if found is None or found["scheme"] == "file" else found["scheme"]


def is_remote(path: AnyPath) -> bool:
    """Whether a path names another file system than this machine's."""
    return scheme(path) != ""


def locate(path: AnyPath) -> tuple[FileSystem, str]:
    """The file system that a path names, and the path to give to it.

    Raises:
        UnimplementedError: the file does not exist system, or what it needs is not installed.
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
            "pip install 'estimatorkit[remote]', and the package of this storage (gcsfs, s3fs, "
            "...); or copy the file to this machine",
        )
    from fsspec.core import url_to_fs

    try:
        files, inner = url_to_fs(name)
    except (ImportError, OSError) as error:  # OSError: the storage's own library is not found
        raise _unreachable(
            kind, name, str(error), "install that package, or copy the file to this machine"
        ) from error
    except ValueError as error:
        raise _unreachable(
            kind, name, str(error), "is the scheme spelled right? fsspec lists those that it knows"
        ) from error
    return _Remote(files, name.rstrip("/").removesuffix(inner.strip("/"))), name


def _unreachable(kind: str, name: str, received: str, hint: str) -> UnimplementedError:
    return UnimplementedError.explained(
        f"File system scheme '{kind}' not implemented (file: '{name}')",
        expected="a path of this machine, or of storage that fsspec can reach",
        received=received,
        hint=hint,
    )


def registered_schemes() -> list[str]:
    """The file systems there are: '' and 'file', and those that fsspec knows where it is there."""
    known = ["", "file"]
    if importlib.util.find_spec("fsspec") is not None:
        from fsspec import available_protocols

        known += sorted(set(available_protocols()) - {"file", "local"})
    return known


def compression_name(compression: str | None) -> str:
    """'' (also for None), 'GZIP' or 'ZLIB'.

    Raises:
        InvalidArgumentError: there is no such compression.
    """
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
    """Opens a file, on this machine or where a URL leads.

    Args:
        path: the file: a local path, or a URL such as `gs://bucket/file`.
        mode: as `open` has it; compressed files are read ('rb', 'r') or written anew ('wb', 'w').
        compression: None, '', 'GZIP' or 'ZLIB'; what is read and written is uncompressed.
        encoding: of text, in modes without 'b'; UTF-8 by default.
        newline: as `open` has it, in modes without 'b'.

    Raises:
        OpError: it cannot be opened; `NotFoundError` where the file does not exist.
        InvalidArgumentError: there is no such compression.
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
    """The uncompressed content of a compressed file; several streams may follow each other."""

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
                    raise self._damaged("the file ends within its compressed data")
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
            hint="is its compression GZIP or ZLIB, as compression_type says?",
        )

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Deflated(io.RawIOBase):
    """Writes what it gets compressed."""

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
