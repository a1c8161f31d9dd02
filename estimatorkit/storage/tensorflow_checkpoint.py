"""TensorFlow's checkpoints on disk: finding, opening, verifying and deleting them.

A checkpoint is identified by its prefix, such as `/dir/model.ckpt-100`. The package never writes
these; its own format is `checkpoint_format`.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from estimatorkit.storage.atomic_files import is_temporary, remove_durably
from estimatorkit.storage.checkpoint_manifest import TensorEntry
from estimatorkit.storage.saved_slices import SavedSlices, matching
from estimatorkit.storage.sorted_table import is_table
from estimatorkit.storage.tensor_bundle import TensorBundle

_INDEX = ".index"
_SHARD_OF_VERSION_1 = re.compile(r"-[0-9]{5}(-of-[0-9]{5})$")
# Other files of TensorFlow, often hundreds: not worth opening to look for a table.
_OTHER_FILE = re.compile(r"\.(meta|pbtxt|data-[0-9]{5}-of-[0-9]{5}|index)$|^checkpoint$|tfevents")


def is_tensorflow_checkpoint(path: str) -> bool:
    """Returns whether a TensorFlow checkpoint with this prefix exists, without verifying it."""
    if os.path.isdir(path):
        return False
    return os.path.isfile(path + _INDEX) or bool(matching(path))


def open_tensorflow(path: str) -> TensorBundle | SavedSlices | None:
    """Opens a TensorFlow checkpoint; returns None if there is none.

    Raises DataLossError if its index is damaged.
    """
    if not is_tensorflow_checkpoint(path):
        return None
    return TensorBundle(path) if os.path.isfile(path + _INDEX) else SavedSlices(path)


def tensorflow_contents(path: str) -> dict[str, TensorEntry] | None:
    """Returns the entries of a TensorFlow checkpoint, or None if there is none.

    Unsupported dtypes are 'unknown'.
    """
    found = open_tensorflow(path)
    if found is None:
        return None
    dtypes = {name: stored.known_dtype for name, stored in found.tensors.items()}
    return {
        name: TensorEntry("", "unknown" if dtype is None else dtype.name, found.tensors[name].shape)
        for name, dtype in dtypes.items()
    }


def verify_tensorflow(path: str) -> bool:
    """Verifies all checksums, once per process and version of the files.

    Returns whether the checkpoint exists. Raises DataLossError if a file is missing or damaged.
    """
    found = open_tensorflow(path)
    if found is None:
        return False
    versions = []
    for file in found.files():
        with suppress(FileNotFoundError):
            status = os.stat(file)
            versions.append((file, status.st_ino, status.st_size, status.st_mtime_ns))
    _verify_version(path, tuple(versions))
    return True


@lru_cache(maxsize=1024)
def _verify_version(path: str, versions: tuple[tuple[str, int, int, int], ...]) -> None:
    found = open_tensorflow(path)
    if found is not None:
        for name, stored in found.tensors.items():
            if stored.known_dtype is not None:  # reading verifies the checksum
                found.read(name)


def tensorflow_checkpoints_in(directory: str) -> Iterator[tuple[str, int]]:
    """Yields the (name, time in nanoseconds) of a folder's checkpoints."""
    try:
        entries = list(os.scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        with suppress(OSError):  # a file removed meanwhile
            if is_temporary(entry.name) or not entry.is_file():
                continue
            if entry.name.endswith(_INDEX):
                name = entry.name.removesuffix(_INDEX)
            elif not _OTHER_FILE.search(entry.name) and is_table(entry.path):
                name = _SHARD_OF_VERSION_1.sub(r"-?????\1", entry.name)
            else:
                continue
            yield name, entry.stat().st_mtime_ns


def remove_tensorflow(path: str) -> None:
    """Removes a checkpoint's files, the index first, so that no reader finds a partial one."""
    data = sorted(glob.glob(f"{glob.escape(path)}.data-?????-of-?????"))
    for file in [path + _INDEX, *matching(path), *data]:
        with suppress(FileNotFoundError):
            if os.path.lexists(file):
                remove_durably(Path(file))


def modified(path: str) -> float | None:
    """Returns when a checkpoint was written, in seconds since 1970, or None."""
    for file in [path + _INDEX, *matching(path)]:
        with suppress(OSError):
            return os.stat(file).st_mtime
    return None
