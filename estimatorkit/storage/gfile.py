"""`tf.io.gfile` and `tf.gfile`, on top of `filesystem`.

Paths are local, or URLs that fsspec supports. Failures raise the package's errors (`NotFoundError`,
`AlreadyExistsError`, `FailedPreconditionError`, ...), never `OSError`. The older names (`Exists`,
`MakeDirs`, ...) are aliases that accept the older keywords.
"""

from __future__ import annotations

import functools
import inspect
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from estimatorkit.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from estimatorkit.storage.filesystem import (
    AnyPath,
    FileStatistics,
    file_errors,
    locate,
    open_file,
    registered_schemes,
    scheme,
)


def local_path(path: Any) -> str:
    """Returns a local path as text, without `file://`.

    Raises UnimplementedError if it is on another file system.
    """
    text = os.fsdecode(path)
    kind = scheme(text)
    if not kind:
        return text.removeprefix("file://")
    raise UnimplementedError.explained(
        f"File system scheme '{kind}' not implemented (file: '{text}')",
        expected="a local path",
        hint="mount the storage, or copy the file first (gfile.copy)",
    )


def exists(path: AnyPath) -> bool:
    """Returns whether a file or folder exists."""
    files, name = locate(path)
    with file_errors("look", name):
        return files.exists(name)


def isdir(path: AnyPath) -> bool:
    """Returns whether the path is a folder."""
    files, name = locate(path)
    with file_errors("look", name):
        return files.isdir(name)


def stat(path: AnyPath) -> FileStatistics:
    """Returns size, time and kind of a file or folder.

    Raises:
        NotFoundError: it does not exist.
    """
    files, name = locate(path)
    with file_errors("look", name):
        return files.stat(name)


def glob(pattern: AnyPath | Sequence[AnyPath]) -> list[str]:
    """Returns the names of matching files and folders, sorted.

    Args:
        pattern: a pattern, or a list of them, with `*`, `?` and `[...]`, which match within one
            path component. Names with a leading dot match too, as in TensorFlow.
    """
    patterns = [pattern] if isinstance(pattern, (str, bytes, os.PathLike)) else pattern
    found: set[str] = set()
    for each in patterns:
        files, name = locate(each)
        with file_errors("look", name):
            found.update(files.glob(name))
    return sorted(found)


def listdir(path: AnyPath) -> list[str]:
    """Returns the names in a folder, sorted.

    Raises:
        NotFoundError: there is no such folder.
    """
    files, name = locate(path)
    with file_errors("list the folder", name):
        if not files.isdir(name):
            raise NotFoundError.explained("Could not find directory", received=name)
        return sorted(files.listdir(name))


def walk(
    top: AnyPath, topdown: bool = True, onerror: Callable[[Exception], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walks the folders below `top`, yielding (folder, subfolder names, file names).

    Args:
        topdown: whether a folder precedes its subfolders.
        onerror: called with errors, which are ignored by default.
    """
    files, name = locate(top)
    yield from files.walk(name, topdown, onerror)


def mkdir(path: AnyPath) -> None:
    """Creates a folder if it does not exist; '' is the current one.

    Raises:
        NotFoundError: the parent folder does not exist.
        AlreadyExistsError: there is a file of this name.
    """
    files, name = locate(path)
    with file_errors("make the folder", name):
        try:
            files.mkdir(name or os.curdir)
        except FileExistsError as error:
            if not files.isdir(name or os.curdir):
                raise _exists(name) from error


def makedirs(path: AnyPath) -> None:
    """Creates a folder and its missing parents; '' is the current one.

    Raises:
        FailedPreconditionError: a component of the path is a file.
    """
    files, name = locate(path)
    with file_errors("make the folder", name):
        files.makedirs(name or os.curdir)


def remove(path: AnyPath) -> None:
    """Removes a file.

    Raises:
        NotFoundError: it does not exist.
        FailedPreconditionError: it is a folder.
    """
    files, name = locate(path)
    with file_errors("remove", name):
        if files.isdir(name) and not os.path.islink(name):
            raise FailedPreconditionError.explained(
                "it is a folder", received=name, hint="use rmtree"
            )
        files.remove(name)


def rmtree(path: AnyPath) -> None:
    """Removes a folder recursively.

    Raises:
        NotFoundError: it does not exist.
    """
    files, name = locate(path)
    with file_errors("remove the folder", name):
        files.rmtree(name)


def _exists(name: str) -> AlreadyExistsError:
    return AlreadyExistsError.explained(
        "file already exists", received=name, hint="overwrite=True replaces a file"
    )


def copy(src: AnyPath, dst: AnyPath, overwrite: bool = False) -> None:
    """Copies a file, also between file systems.

    Args:
        overwrite: whether to replace an existing file.

    Raises:
        NotFoundError: the file does not exist.
        AlreadyExistsError: `dst` exists.
    """
    files, source = locate(src)
    to_files, target = locate(dst)
    with file_errors("copy", source):
        if not overwrite and to_files.exists(target):
            raise _exists(target)
        if scheme(src) == scheme(dst):
            files.copy(source, target)
            return
        with open_file(src) as read, open_file(dst, "wb") as written:
            shutil.copyfileobj(read, written, _COPY_BYTES)


def rename(src: AnyPath, dst: AnyPath, overwrite: bool = False) -> None:
    """Renames or moves a file or folder.

    Args:
        overwrite: whether to replace an existing file.

    Raises:
        NotFoundError: the file does not exist.
        AlreadyExistsError: `dst` exists.
        UnimplementedError: the paths are on different file systems.
    """
    files, source = locate(src)
    to_files, target = locate(dst)
    if scheme(src) != scheme(dst):
        raise UnimplementedError.explained(
            f"Renaming {source} to {target} not implemented",
            expected="paths on the same file system",
            hint="copy the file, then remove it",
        )
    with file_errors("rename", source):
        if not overwrite and to_files.exists(target):
            raise _exists(target)
        files.rename(source, target)


def join(path: AnyPath, *paths: AnyPath) -> str:
    """Joins path components."""
    return os.path.join(os.fsdecode(path), *map(os.fsdecode, paths))


def get_registered_schemes() -> list[str]:
    """Returns the file systems' schemes: '' (local), 'file', and those of fsspec."""
    return registered_schemes()


_COPY_BYTES = 1 << 20


class GFile:
    """A file that is opened on first use (`tf.io.gfile.GFile`).

    It is a context manager, and iterates over lines. As in TensorFlow, reading and writing have
    separate positions: writes go to the beginning of a new file, or with 'a' to the
    end of the existing one, wherever it is read. A file that is never written to is unchanged.

    Args:
        name: the file.
        mode: 'r', 'w' or 'a', with '+' for reading and writing, and 'b' for bytes instead of UTF-8
            text.

    Raises:
        InvalidArgumentError: the mode is invalid.
        NotFoundError: the file to read does not exist (on first use).
        PermissionDeniedError: the mode does not allow reading or writing (on first use).
    """

    def __init__(self, name: AnyPath, mode: str = "r") -> None:
        if mode.replace("b", "", 1) not in ("r", "w", "a", "r+", "w+", "a+"):
            raise InvalidArgumentError.explained(
                "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'", received=repr(mode)
            )
        self._name = name
        self._path = os.fsdecode(name)
        self._mode = mode
        self._reader: Any = None
        self._writer: Any = None

    @property
    def name(self) -> Any:
        """The file name, as given."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode."""
        return self._mode

    @property
    def _may_read(self) -> bool:
        return "+" in self._mode or "r" in self._mode

    def _reading(self) -> Any:
        if self._reader is None:
            if not self._may_read:
                raise self._not_open("reading")
            self._reader = open_file(self._path)
        return self._reader

    def _writing(self) -> Any:
        if self._writer is None:
            if "r" in self._mode and "+" not in self._mode:
                raise self._not_open("writing")
            self._writer = open_file(self._path, "ab" if "a" in self._mode else "wb")
        return self._writer

    def _not_open(self, what: str) -> PermissionDeniedError:
        return PermissionDeniedError.explained(
            f"File isn't open for {what}", received=f"{self._path}, mode {self._mode!r}"
        )

    def _shown(self, content: bytes) -> Any:
        return content if "b" in self._mode else content.decode()

    def read(self, n: int = -1) -> Any:
        """Reads `n` bytes, or the rest if negative.

        Raises:
            UnicodeDecodeError: in a mode for text, they end within a character.
        """
        file = self._reading()
        with file_errors("read", self._path):
            return self._shown(file.read(n))

    def readline(self) -> Any:
        """Reads a line with its newline; empty at the end of the file."""
        file = self._reading()
        with file_errors("read", self._path):
            return self._shown(file.readline())

    def readlines(self) -> list[Any]:
        """Reads the remaining lines."""
        return list(self)

    def write(self, file_content: Any) -> None:
        """Writes text or bytes; both are accepted in every mode."""
        content = file_content.encode() if isinstance(file_content, str) else file_content
        file = self._writing()
        with file_errors("write", self._path):
            file.write(content)
            if self._may_read:  # what is read next sees it
                file.flush()

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves the position of reading.

        Args:
            offset: in bytes.
            whence: 0 is relative to the beginning, 1 to the position, 2 to the end.
            position: the older name of `offset`.

        Raises:
            InvalidArgumentError: the new position is negative, or `whence` is invalid.
            TypeError: not exactly one of `offset` and `position` is given.
        """
        file = self._reading()
        if offset is not None and position is not None:
            raise TypeError("seek(): offset and position may not be set simultaneously.")
        given = position if offset is None else offset
        if given is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        at = given + (0 if whence == 0 else self.tell() if whence == 1 else self.size())
        if at < 0:
            raise InvalidArgumentError.explained("the new position is negative", received=at)
        with file_errors("seek", self._path):
            file.seek(at)

    def tell(self) -> int:
        """Returns the position of reading; in modes only for writing, that of writing."""
        file = self._reading() if self._may_read else self._writing()
        with file_errors("tell", self._path):
            place: int = file.tell()
        return place

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def size(self) -> int:
        """Returns the file's size in bytes."""
        self.flush()
        return stat(self._path).length

    def flush(self) -> None:
        """Flushes buffers to the operating system."""
        if self._writer is not None:
            with file_errors("flush", self._path):
                self._writer.flush()

    def close(self) -> None:
        """Closes the file; further use reopens it."""
        files = self._reader, self._writer
        self._reader = self._writer = None
        for file in files:
            if file is not None:
                with file_errors("close", self._path):
                    file.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> GFile:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line


def _older(function: Callable[..., Any], *arguments: str) -> Callable[..., Any]:
    """Wraps a function with the older names of its first arguments."""
    parameters = list(inspect.signature(function).parameters.values())
    renamed = [each.replace(name=old) for each, old in zip(parameters, arguments, strict=False)]
    signature = inspect.Signature([*renamed, *parameters[len(arguments) :]])

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*signature.bind(*args, **kwargs).args)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


Copy = _older(copy, "oldpath", "newpath")
Rename = _older(rename, "oldname", "newname")
DeleteRecursively = _older(rmtree, "dirname")
Exists = _older(exists, "filename")
Glob = _older(glob, "filename")
IsDirectory = _older(isdir, "dirname")
ListDirectory = _older(listdir, "dirname")
MakeDirs = _older(makedirs, "dirname")
MkDir = _older(mkdir, "dirname")
Remove = _older(remove, "filename")
Stat = _older(stat, "filename")
Walk = _older(walk, "top", "in_order")
FastGFile = Open = GFile
