"""Locates the files of data sets.

A `DataSet` describes its files: sizes, checksums, addresses. A file is looked up in the folder
ESTIMATORKIT_DATA_DIR, then in the cache, and otherwise downloaded into the cache (`download`). A
file with another size or checksum is rejected.

    ESTIMATORKIT_DATA_DIR/<folder>/<file>       put there by hand
    ESTIMATORKIT_CACHE_DIR/<folder>/<file>      downloaded; ~/.cache/estimatorkit by default
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
    """A data set and its files.

    Attributes:
        name: the module's name.
        title: its content in one line.
        licence: the terms, as far as they are stated.
        folder: the folder of its files, relative to the data folders.
        files: its files; empty if it is bundled with this or another package.
        load: reads it.
    """

    name: str
    title: str
    licence: str
    folder: str
    files: tuple[DataFile, ...]
    load: Callable[..., Any]

    def path(self, name: str, downloader: Downloader = _DOWNLOADER) -> Path:
        """The path of one of its files, downloaded if necessary.

        Args:
            name: the file's name.
            downloader: downloads it.

        Raises:
            DataLossError: the file has another size or checksum.
            NotFoundError: it was not found and has no address.
            UnavailableError: it could not be downloaded.
        """
        file = self._file(name)
        places = self._places(name)
        for path in places:
            if path.exists():
                return _checked(path, file)
        downloader.fetch(file, places[-1])
        return places[-1]

    def has(self, name: str) -> bool:
        """Whether one of its files is present."""
        return any(path.exists() for path in self._places(self._file(name).name))

    def _places(self, name: str) -> list[Path]:
        """The candidate paths of a file; the last is in the cache."""
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
    """The folder of downloaded files: ESTIMATORKIT_CACHE_DIR, or `estimatorkit` in the user's cache
    (XDG_CACHE_HOME, or ~/.cache).
    """
    named = os.environ.get("ESTIMATORKIT_CACHE_DIR")
    if named:
        return Path(named)
    general = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says to ignore relative paths.
    return (general if general.is_absolute() else Path.home() / ".cache") / "estimatorkit"


def _checked(path: Path, file: DataFile) -> Path:
    """Returns the path after verifying size and checksum.

    Raises:
        DataLossError: the file differs.
    """
    digest = hashlib.sha256()
    size = 0
    with os_errors("read", path), open(path, "rb") as content:
        while piece := content.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    if (size, digest.hexdigest()) != (file.size, file.sha256):
        raise DataLossError.explained(
            f"{path} is not the expected file" if size else f"{path} is empty",
            expected=f"{file.size} bytes, sha256 {file.sha256}",
            received=f"{size} bytes, sha256 {digest.hexdigest()}",
            hint="remove it to download it again, or put the right one there",
        )
    return path


def zip_member(path: Path, member: str, size: int) -> bytes:
    """The content of one file in a zip archive, read without unpacking to disk.

    Args:
        path: the archive.
        member: the file's name in it.
        size: the maximum size in bytes.

    Raises:
        DataLossError: there is no such member, it is damaged, or it is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as content:
            data = content.read(size + 1)
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DataLossError.explained(
            f"{path} contains no valid file {member!r}",
            expected=f"a zip archive with {member!r}",
            received=str(error),
        ) from error
    if len(data) > size:
        raise DataLossError.explained(
            f"{member!r} in {path} is too large", expected=f"{size} bytes at most"
        )
    return data
