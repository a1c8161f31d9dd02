"""Inspection of checkpoints: `CheckpointReader`, modification times, waiting for new ones.

Works with the package's own checkpoints and TensorFlow's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import NotFoundError, value_error
from estimatorkit.storage import tensorflow_checkpoint
from estimatorkit.storage.checkpoint import (
    AnyPath,
    latest_checkpoint,
    locate_checkpoint,
    read_checkpoint,
    read_contents,
)
from estimatorkit.storage.checkpoint_manifest import MANIFEST
from estimatorkit.storage.gfile import local_path
from estimatorkit.storage.tensorflow_checkpoint import open_tensorflow

_POLL_SECONDS = 1.0  # TensorFlow's interval
_DT_NAMES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF"}


class CheckpointReader:
    """Reads the contents of a checkpoint (`tf.compat.v1.train.NewCheckpointReader`).

    Args:
        filepattern: the checkpoint's path; for TensorFlow's checkpoints, the prefix of their files.

    Raises:
        NotFoundError: it does not exist.
        DataLossError: its table of contents is damaged.
    """

    def __init__(self, filepattern: AnyPath) -> None:
        self._path = local_path(filepattern)
        self._entries = read_contents(self._path)
        self._foreign = open_tensorflow(self._path)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Returns the shapes by name."""
        return {name: list(entry.shape) for name, entry in self._entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Returns the dtypes by name, without tensors of unsupported dtypes."""
        return {
            name: as_dtype(entry.dtype)
            for name, entry in self._entries.items()
            if entry.dtype != "unknown"
        }

    def has_tensor(self, tensor_str: str) -> bool:
        """Returns whether there is a tensor of this name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> Any:
        """Returns a tensor's value: an array, or for rank 0 a scalar (`bytes` for a string).

        Raises:
            NotFoundError: there is no tensor of this name.
            DataLossError: its bytes are missing or damaged.
        """
        if self._foreign is not None and tensor_str in self._entries:
            value: NDArray[Any] = self._foreign.read(tensor_str)
        else:
            value = read_checkpoint(self._path, [tensor_str]).tensors[tensor_str]
        return value if value.ndim else value[()]

    def debug_string(self) -> bytes:
        """Returns a line for each tensor: name, dtype, shape."""
        lines = [
            f"{name} ({_DT_NAMES.get(entry.dtype, 'DT_' + entry.dtype.upper())}) "
            f"[{','.join(map(str, entry.shape))}]\n"
            for name, entry in self._entries.items()
        ]
        return "".join(lines).encode()


def load_checkpoint(ckpt_dir_or_file: AnyPath) -> CheckpointReader:
    """Returns a reader of a checkpoint, or of a model folder's newest (`tf.train.load_checkpoint`).

    Raises:
        ValueError: the folder has no checkpoint.
        NotFoundError: there is no such checkpoint.
    """
    try:
        path = locate_checkpoint(ckpt_dir_or_file)
    except NotFoundError as error:
        raise value_error(
            "Couldn't find 'checkpoint' file or checkpoints in given directory "
            f"{os.fspath(ckpt_dir_or_file)}",
            hint="train first, or check the path",
        ) from error
    return CheckpointReader(path)


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[AnyPath]) -> list[float]:
    """Returns the modification times of checkpoints, in seconds since 1970; skips missing ones."""
    found = [modified(path) for path in checkpoint_prefixes]
    return [when for when in found if when is not None]


def modified(path: AnyPath) -> float | None:
    """Returns when a checkpoint was written, in seconds since 1970, or None."""
    name = local_path(path)
    with suppress(OSError):
        return os.stat(os.path.join(name, MANIFEST)).st_mtime
    return tensorflow_checkpoint.modified(name)


def wait_for_new_checkpoint(
    checkpoint_dir: AnyPath,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = _POLL_SECONDS,
    timeout: float | None = None,
) -> str | None:
    """Waits until the latest checkpoint of a folder differs from `last_checkpoint`.

    Args:
        last_checkpoint: the last path seen, or None.
        seconds_to_sleep: the polling interval in seconds.
        timeout: in seconds; None waits forever.

    Returns:
        Its path; None on timeout.
    """
    stop = None if timeout is None else time.monotonic() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            return path
        if stop is not None and time.monotonic() + seconds_to_sleep > stop:
            return None
        time.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: AnyPath,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yields the latest checkpoint of a folder, then newer ones (`tf.train.checkpoints_iterator`).

    Checkpoints that are superseded before the next iteration are skipped.

    Args:
        min_interval_secs: the minimum interval between two checkpoints, in seconds.
        timeout: seconds to wait for one; None waits forever.
        timeout_fn: called on timeout; the iterator ends if it returns true. None ends it at once.
    """
    path = None
    while True:
        fresh = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if fresh is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        started = time.monotonic()
        path = fresh
        yield path
        left = started + min_interval_secs - time.monotonic()
        if left > 0:
            time.sleep(left)
