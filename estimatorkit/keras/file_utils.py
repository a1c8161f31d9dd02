"""Downloads files into the dataset cache and extracts them (`tf.keras.utils.get_file`)."""

from __future__ import annotations

import hashlib
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimatorkit.core.errors import DataLossError, InvalidArgumentError, explain, value_error
from estimatorkit.data.datasets.download import DataFile, Downloader
from estimatorkit.data.datasets.files import cache_folder
from estimatorkit.storage.atomic_files import os_errors

_DIGITS = {"sha256": 64, "md5": 32}


def get_file(
    fname: str | os.PathLike[str] | None = None,
    origin: str | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: Any = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
) -> str:
    """Returns a file's path, after downloading it if it does not exist.

    Source: `tf.keras.utils.get_file`. Intended differences: `http` URLs are requested over https
    unless a checksum is given; archive members that are devices or lie outside the folder are
    refused; the cache is that of `data.datasets`. A file that is not there is looked up in Keras's
    own cache: `~/.keras`, or the folder in KERAS_HOME.

    Args:
        fname: its name in the cache, or an absolute path; by default, the name in `origin`.
        origin: its URL.
        untar: whether `fname` is the folder in a tar archive, to be extracted; its path is then
            returned.
        md5_hash: its MD5 checksum; prefer `file_hash`.
        file_hash: its SHA-256 or MD5 checksum in hexadecimal. A cached file with a different one is
            replaced.
        cache_subdir: the subfolder of the cache.
        hash_algorithm: 'sha256', 'md5', or 'auto' to go by the length of `file_hash`.
        extract: whether to extract the file, a tar or zip archive, next to it.
        archive_format: 'auto', 'tar', 'zip', a list of these, or None to extract nothing.
        cache_dir: a folder to use instead of the cache.

    Raises:
        ValueError: there is no `origin`, or a checksum is malformed.
        UnavailableError: the file cannot be downloaded.
        DataLossError: the downloaded file has a different checksum.
        InvalidArgumentError: the archive would write outside its folder.
    """
    if origin is None:
        raise ValueError('Please specify the "origin" argument (URL of the file to download).')
    name = os.fspath(fname) if fname is not None else os.path.basename(origin.partition("?")[0])
    if not name:
        raise ValueError(
            f"Can't parse the file name from the origin provided: '{origin}'. Please specify the "
            "`fname` as the input param."
        )
    file_name = f"{name}.tar.gz" if untar else name
    file = _described(Path(file_name).name, origin, md5_hash, file_hash, hash_algorithm)
    folder = Path(cache_dir) if cache_dir is not None else cache_folder()
    folder = folder.expanduser() / cache_subdir
    if cache_dir is None and not (folder / file_name).exists():
        of_keras = _keras_folder() / cache_subdir
        if (of_keras / file_name).is_file() and not _is_another(of_keras / file_name, file):
            folder = of_keras
    unpacked, path = folder / name, folder / file_name
    if path.exists() and _is_another(path, file):
        path.unlink()
    known = ("https", "http") if file.checksums() else ("https",)
    Downloader(schemes=known).fetch(file, path)
    if untar:
        if not unpacked.exists():
            _unpack(path, folder, "tar")
        return str(unpacked)
    if extract:
        _unpack(path, folder, archive_format)
    return str(path)


def _keras_folder() -> Path:
    """Keras's cache directory."""
    named = os.environ.get("KERAS_HOME")
    return Path(named) if named else Path("~/.keras").expanduser()


def _described(
    name: str, origin: str, md5: str | None, checksum: str | None, algorithm: str
) -> DataFile:
    """A description of the file, with its checksum."""
    checksums = {} if md5 is None else {"md5": md5.lower()}
    if checksum is not None:
        kinds = {digits: kind for kind, digits in _DIGITS.items()}
        kind = kinds.get(len(checksum)) if algorithm == "auto" else algorithm
        if kind not in _DIGITS or len(checksum) != _DIGITS[kind]:
            raise value_error(
                "file_hash is no checksum",
                expected="64 hexadecimal digits (sha256), or 32 (md5)",
                received=f"{checksum!r} with hash_algorithm={algorithm!r}",
            )
        checksums[kind] = checksum.lower()
    scheme, separator, rest = origin.partition("://")
    if scheme == "http" and separator and not checksums:
        origin = f"https://{rest}"
    return DataFile(name, None, checksums.get("sha256"), (origin,), checksums.get("md5"))


def _is_another(path: Path, file: DataFile) -> bool:
    with open(path, "rb") as stream:
        for algorithm, expected in file.checksums().items():
            stream.seek(0)
            if hashlib.file_digest(stream, algorithm).hexdigest() != expected:
                return True
    return False


def _unpack(path: Path, folder: Path, archive_format: Any) -> None:
    """Extracts an archive in a known format; leaves other files alone."""
    if archive_format is None:
        return
    wanted = ("tar", "zip") if archive_format == "auto" else archive_format
    for kind in (wanted,) if isinstance(wanted, str) else wanted:
        is_one, unpack = _FORMATS[kind]
        if is_one(path):
            with os_errors("unpack", path):
                unpack(path, folder)
            return


def _untar(path: Path, folder: Path) -> None:
    try:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    except tarfile.FilterError as error:
        raise _leads_out(path, str(error)) from error
    except (tarfile.TarError, EOFError) as error:
        raise DataLossError(None, None, f"the archive {path} is damaged: {error}") from error


def _unzip(path: Path, folder: Path) -> None:
    root = folder.resolve()
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if not (root / member).resolve().is_relative_to(root):
                    raise _leads_out(path, member)
            for member in archive.namelist():
                archive.extract(member, folder)
    except zipfile.BadZipFile as error:
        raise DataLossError(None, None, f"the archive {path} is damaged: {error}") from error


def _leads_out(path: Path, what: str) -> InvalidArgumentError:
    message = explain(f"the archive {path} would write outside its folder", received=what)
    return InvalidArgumentError(None, None, message)


_FORMATS: dict[str, tuple[Callable[[Path], bool], Callable[[Path, Path], None]]] = {
    "tar": (tarfile.is_tarfile, _untar),
    "zip": (zipfile.is_zipfile, _unzip),
}

__all__ = ["get_file"]
