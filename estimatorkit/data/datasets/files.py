"""Where the files of a data set are: one mechanism for all data sets.

A `DataSet` describes its files: sizes, checksums, where they can be fetched. A file is looked for
in the folder that ESTIMATORKIT_DATA_DIR names, then in the cache, and is then fetched into the
cache (`download`). What is found has the size and the checksum that the description says, or is
refused.

    ESTIMATORKIT_DATA_DIR/<folder>/<file>       put there by hand
    ESTIMATORKIT_CACHE_DIR/<folder>/<file>      fetched; ~/.cache/estimatorkit by default
"""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimatorkit.core.errors import DataLossError, did_you_mean, explain
from estimatorkit.data.datasets.download import DataFile, Downloader
from estimatorkit.storage.atomic_files import os_errors

_PIECE = 1 << 20

_DOWNLOADER = Downloader()


@dataclass(frozen=True)
class DataSet:
    """A data set: what it is, and its files.

    Attributes:
        name: the module's name.
        title: what it holds, in a line.
        licence: the terms, as far as they are stated.
        folder: where its files are, below the folders for data.
        files: its files; none where it comes with this package or with another one.
        load: reads it.
    """

    name: str
    title: str
    licence: str
    folder: str
    files: tuple[DataFile, ...]
    load: Callable[..., Any]

    def path(self, name: str, downloader: Downloader = _DOWNLOADER) -> Path:
        """Where one of its files is; it is fetched where it is nowhere yet.

        Args:
            name: the file's name.
            downloader: fetches it.

        Raises:
            DataLossError: a file was found or fetched that has another size or checksum.
            NotFoundError: it is nowhere, and can be fetched from nowhere.
            UnavailableError: it could not be fetched.
        """
        file = self._file(name)
        places = self._places(name)
        for path in places:
            if path.exists():
                return _checked(path, file)
        downloader.fetch(file, places[-1])
        return places[-1]

    def has(self, name: str) -> bool:
        """Whether one of its files is here, put by hand or fetched before."""
        return any(path.exists() for path in self._places(self._file(name).name))

    def _places(self, name: str) -> list[Path]:
        """Where a file may be; the last is the cache."""
        named = os.environ.get("ESTIMATORKIT_DATA_DIR")
        folders = [*([Path(named)] if named else []), cache_folder()]
        return [folder / self.folder / name for folder in folders]

    def _file(self, name: str) -> DataFile:
        for file in self.files:
            if file.name == name:
                return file
        known = [file.name for file in self.files]
        raise KeyError(
            explain(
                f"the data set {self.name} has no file {name!r}",
                expected=" or ".join(known),
                hint=did_you_mean(name, known),
            )
        )


def cache_folder() -> Path:
    """Where fetched files are kept: ESTIMATORKIT_CACHE_DIR, or `estimatorkit` in the user's cache
    (XDG_CACHE_HOME, or ~/.cache)."""
    named = os.environ.get("ESTIMATORKIT_CACHE_DIR")
    if named:
        return Path(named)
    general = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A path that is not absolute is to be ignored, says the XDG specification.
    return (general if general.is_absolute() else Path.home() / ".cache") / "estimatorkit"


def _checked(path: Path, file: DataFile) -> Path:
    """The path, where the file is what it should be.

    Raises:
        DataLossError: it is another one.
    """
    digest = hashlib.sha256()
    size = 0
    with os_errors("read", path), open(path, "rb") as content:
        while piece := content.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    if (size, digest.hexdigest()) != (file.size, file.sha256):
        raise DataLossError.explained(
            f"{path} is not the file that its name says" if size else f"{path} is empty",
            expected=f"{file.size} bytes, sha256 {file.sha256}",
            received=f"{size} bytes, sha256 {digest.hexdigest()}",
            hint="remove it, so that it is fetched again, or put the right one there",
        )
    return path


def zip_member(path: Path, member: str, size: int) -> bytes:
    """The content of one file in a zip archive; nothing is unpacked onto the disk.

    Args:
        path: the archive.
        member: the file's name in it.
        size: how many bytes it may have.

    Raises:
        DataLossError: there is no such member, it is damaged, or it has more bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as content:
            data = content.read(size + 1)
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DataLossError.explained(
            f"{path} holds no sound file {member!r}",
            expected=f"a zip archive with {member!r}",
            received=str(error),
        ) from error
    if len(data) > size:
        raise DataLossError.explained(
            f"{member!r} in {path} is too large", expected=f"{size} bytes at most"
        )
    return data
