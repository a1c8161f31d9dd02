"""Files and folders as `tf.io.gfile` and `tf.gfile` offer them, over the operating system's own.

Local paths only. What fails raises this package's errors (`NotFoundError`, `AlreadyExistsError`,
`FailedPreconditionError`, ...), never an `OSError`. The older names (`Exists`, `MakeDirs`, ...) are
these functions too; each takes the older keywords.
"""

from __future__ import annotations

import glob as _glob
import io
import os
import shutil
import stat as _stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from estimatorkit.core.durable import os_errors
from estimatorkit.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
    explain,
)

AnyPath = str | bytes | os.PathLike[str]


def local_path(path: Any) -> str:
    """A path as text, without `file://`.

    Raises:
        UnimplementedError: it names another file system.
    """
    text = os.fsdecode(path)
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme.isalnum():
        return text
    if scheme == "file":
        return rest
    raise UnimplementedError(
        None,
        None,
        explain(
            f"File system scheme '{scheme}' not implemented (file: '{text}')",
            expected="a path of this machine",
            hint="mount the storage, or copy the file first",
        ),
    )


class FileStatistics(NamedTuple):
    """What `stat` gives.

    Attributes:
        length: bytes.
        mtime_nsec: when the content changed last, nanoseconds since 1970.
        is_directory: whether it is a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: AnyPath) -> bool:
    """Whether there is a file or a folder of this name."""
    return os.path.exists(local_path(path))


def isdir(path: AnyPath) -> bool:
    """Whether this is a folder."""
    return os.path.isdir(local_path(path))


def stat(path: AnyPath) -> FileStatistics:
    """Size, time and kind of a file or folder.

    Raises:
        NotFoundError: there is none.
    """
    name = local_path(path)
    with os_errors("look", name):
        found = os.stat(name)
    return FileStatistics(found.st_size, found.st_mtime_ns, _stat.S_ISDIR(found.st_mode))


def glob(pattern: AnyPath | Sequence[AnyPath]) -> list[str]:
    """The names of the files and folders that match, sorted.

    Args:
        pattern: a pattern, or a list of them: `*` and `?` stand for any characters of one name,
            `[...]` for one of several; names that begin with a dot match, as in TensorFlow.
    """
    patterns = [pattern] if isinstance(pattern, (str, bytes, os.PathLike)) else pattern
    found = {
        name
        for each in patterns
        for name in _glob.iglob(local_path(each), include_hidden=True)  # `**` is `*`
    }
    return sorted(found)


def listdir(path: AnyPath) -> list[str]:
    """The names in a folder, in no order that is promised.

    Raises:
        NotFoundError: there is no such folder.
    """
    name = local_path(path)
    if not os.path.isdir(name):
        raise NotFoundError(None, None, explain("Could not find directory", received=name))
    with os_errors("list the folder", name):
        return sorted(os.listdir(name))


def walk(
    top: AnyPath, topdown: bool = True, onerror: Callable[[Exception], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """The folders below `top`: (folder, names of folders in it, names of files in it).

    Args:
        top: the folder to begin at.
        topdown: a folder before those in it.
        onerror: called with what fails; by default that is left out.
    """
    yield from os.walk(local_path(top), topdown, onerror)


def mkdir(path: AnyPath) -> None:
    """Makes a folder.

    Raises:
        NotFoundError: the folder above is not there.
        AlreadyExistsError: the folder is.
    """
    name = local_path(path)
    with os_errors("make the folder", name):
        try:
            os.mkdir(name)
        except FileExistsError as error:
            raise _exists(name) from error


def makedirs(path: AnyPath) -> None:
    """Makes a folder and those above it, as far as they are not there.

    Raises:
        FailedPreconditionError: a file is in the way.
    """
    name = local_path(path)
    with os_errors("make the folder", name):
        os.makedirs(name, exist_ok=True)


def remove(path: AnyPath) -> None:
    """Removes a file.

    Raises:
        NotFoundError: there is none.
        FailedPreconditionError: it is a folder.
    """
    name = local_path(path)
    if os.path.isdir(name) and not os.path.islink(name):
        raise FailedPreconditionError(
            None, None, explain("a folder is no file", received=name, hint="use rmtree")
        )
    with os_errors("remove", name):
        os.remove(name)


def rmtree(path: AnyPath) -> None:
    """Removes a folder with all that is in it.

    Raises:
        NotFoundError: there is none.
    """
    name = local_path(path)
    with os_errors("remove the folder", name):
        if os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name)
        else:
            os.remove(name)


def _exists(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        None,
        None,
        explain("file already exists", received=name, hint="overwrite=True replaces a file"),
    )


def copy(src: AnyPath, dst: AnyPath, overwrite: bool = False) -> None:
    """Copies a file.

    Args:
        src: the file.
        dst: the name of the copy.
        overwrite: replace what has that name.

    Raises:
        NotFoundError: there is no such file.
        AlreadyExistsError: there is one called `dst`.
    """
    source, target = local_path(src), local_path(dst)
    with os_errors("copy", source):
        if not overwrite and os.path.exists(target):
            raise _exists(target)
        shutil.copyfile(source, target)


def rename(src: AnyPath, dst: AnyPath, overwrite: bool = False) -> None:
    """Renames, or moves, a file or folder.

    Args:
        src: its name.
        dst: its new name.
        overwrite: replace what has that name.

    Raises:
        NotFoundError: there is no such file.
        AlreadyExistsError: there is one called `dst`.
    """
    source, target = local_path(src), local_path(dst)
    with os_errors("rename", source):
        if not overwrite and os.path.exists(target):
            raise _exists(target)
        os.replace(source, target)


def join(path: AnyPath, *paths: AnyPath) -> str:
    """The parts of a path put together."""
    return os.path.join(os.fsdecode(path), *map(os.fsdecode, paths))


def get_registered_schemes() -> list[str]:
    """The file systems there are: '' (local paths) and 'file'."""
    return ["", "file"]


class GFile:
    """A file, opened when it is first used (`tf.io.gfile.GFile`). A context manager and an iterator
    over lines.

    Args:
        name: the file.
        mode: 'r', 'w' or 'a', with '+' for both ways, with 'b' for bytes instead of text (UTF-8).

    Raises:
        InvalidArgumentError: there is no such mode.
        NotFoundError: there is no such file (on first use).
    """

    def __init__(self, name: AnyPath, mode: str = "r") -> None:
        if mode.replace("b", "", 1) not in ("r", "w", "a", "r+", "w+", "a+"):
            raise InvalidArgumentError(
                None,
                None,
                explain(
                    "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'", received=repr(mode)
                ),
            )
        self._name = name
        self._path = local_path(name)
        self._mode = mode
        self._file: Any = None

    @property
    def name(self) -> Any:
        """The name, as it was given."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode."""
        return self._mode

    def _opened(self) -> Any:
        if self._file is None:
            binary = "b" in self._mode
            with os_errors("open", self._path):
                self._file = open(  # noqa: SIM115 (closed by close)
                    self._path,
                    self._mode,
                    encoding=None if binary else "utf-8",
                    newline=None if binary else "",  # lines end as they do in the file
                )
        return self._file

    def _do(self, method: str, *arguments: Any) -> Any:
        file = self._opened()
        with os_errors(method, self._path):
            try:
                return getattr(file, method)(*arguments)
            except io.UnsupportedOperation as error:
                doing = "writing" if method == "write" else "reading"
                raise PermissionDeniedError(
                    None,
                    None,
                    explain(
                        f"File isn't open for {doing}",
                        received=f"{self._path}, mode {self._mode!r}",
                    ),
                ) from error

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes or characters; all where negative."""
        return self._do("read", n)

    def readline(self) -> Any:
        """The next line with its end; empty at the end of the file."""
        return self._do("readline")

    def readlines(self) -> list[Any]:
        """The lines that are left."""
        lines: list[Any] = self._do("readlines")
        return lines

    def write(self, file_content: Any) -> None:
        """Appends text, or bytes; either is taken in either mode."""
        binary = "b" in self._mode
        if isinstance(file_content, str) and binary:
            file_content = file_content.encode()
        elif isinstance(file_content, bytes) and not binary:
            file_content = file_content.decode()
        self._do("write", file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves to a place.

        Args:
            offset: bytes.
            whence: from where: 0 the beginning, 1 here, 2 the end.
            position: the older name of `offset`.
        """
        self._do("seek", position if offset is None else offset, whence)

    def tell(self) -> int:
        """The place in the file."""
        place: int = self._do("tell")
        return place

    def seekable(self) -> bool:
        """Whether `seek` works: yes."""
        return True

    def size(self) -> int:
        """The file's size in bytes."""
        if self._file is not None and self._mode[0] != "r":
            self._file.flush()
        return stat(self._path).length

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        if self._file is not None:
            self._do("flush")

    def close(self) -> None:
        """Closes the file; using it again opens it anew."""
        file, self._file = self._file, None
        if file is None and self._mode[0] != "r":
            file = self._opened()  # writing nothing makes an empty file
            self._file = None
        if file is not None:
            with os_errors("close", self._path):
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


# -- the older names


def Copy(oldpath: AnyPath, newpath: AnyPath, overwrite: bool = False) -> None:
    """`copy`."""
    copy(oldpath, newpath, overwrite)


def Rename(oldname: AnyPath, newname: AnyPath, overwrite: bool = False) -> None:
    """`rename`."""
    rename(oldname, newname, overwrite)


def DeleteRecursively(dirname: AnyPath) -> None:
    """`rmtree`."""
    rmtree(dirname)


def Exists(filename: AnyPath) -> bool:
    """`exists`."""
    return exists(filename)


def Glob(filename: AnyPath | Sequence[AnyPath]) -> list[str]:
    """`glob`."""
    return glob(filename)


def IsDirectory(dirname: AnyPath) -> bool:
    """`isdir`."""
    return isdir(dirname)


def ListDirectory(dirname: AnyPath) -> list[str]:
    """`listdir`."""
    return listdir(dirname)


def MakeDirs(dirname: AnyPath) -> None:
    """`makedirs`."""
    makedirs(dirname)


def MkDir(dirname: AnyPath) -> None:
    """`mkdir`."""
    mkdir(dirname)


def Remove(filename: AnyPath) -> None:
    """`remove`."""
    remove(filename)


def Stat(filename: AnyPath) -> FileStatistics:
    """`stat`."""
    return stat(filename)


def Walk(top: AnyPath, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """`walk`."""
    return walk(top, in_order)


FastGFile = Open = GFile
