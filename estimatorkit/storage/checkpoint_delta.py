"""Checkpoint deltas: what one checkpoint changes of an earlier one.

A step changes few rows of a large embedding table, and tables grow: a delta holds the rows that
differ. It is a checkpoint itself, and thus atomic and verified. Of a tensor of which rows changed
it has `<name>:rows` (int64) and `<name>:values`; other tensors that differ it has whole.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from estimatorkit.storage.checkpoint import AnyPath, Checkpoint, read_checkpoint, write_checkpoint
from estimatorkit.storage.gfile import local_path

_KEY = "delta"
_ROWS, _VALUES = ":rows", ":values"  # no variable's name has a colon


def write_checkpoint_delta(base_path: AnyPath, checkpoint_path: AnyPath, path: AnyPath) -> str:
    """Writes the changes of a checkpoint since an earlier one of the same training.

    Both are read into memory. The delta's size follows from the rows that differ; a table of which
    more than half did is stored whole. Not in TensorFlow.

    Args:
        base_path: the earlier checkpoint, which `apply_checkpoint_delta` will need.
        checkpoint_path: the later one.
        path: where the delta goes; replaced if it is a delta or a checkpoint.

    Returns:
        `path`.

    Raises:
        NotFoundError: a checkpoint does not exist.
        DataLossError: a checkpoint is damaged.
    """
    base, latest = read_checkpoint(base_path), read_checkpoint(checkpoint_path)
    tensors: dict[str, Any] = {}
    for name, value in latest.tensors.items():
        old = base.tensors.get(name)
        rows = None if old is None else _changed_rows(old, value)
        if rows is None or 2 * len(rows) > len(value):
            tensors[name] = value
        elif len(rows):
            tensors[name + _ROWS], tensors[name + _VALUES] = rows, value[rows]
    shapes = {name: list(value.shape) for name, value in latest.tensors.items()}
    note = {"base": _fingerprint(base.tensors), "shapes": shapes, "state": latest.state}
    return _write(path, tensors, {_KEY: note})


def apply_checkpoint_delta(base_path: AnyPath, delta_path: AnyPath, path: AnyPath) -> str:
    """Writes the checkpoint that a delta was made of.

    Args:
        base_path: the checkpoint that the delta was made against.
        delta_path: what `write_checkpoint_delta` wrote.
        path: where the checkpoint goes, such as `model/model.ckpt-2000`.

    Returns:
        `path`.

    Raises:
        NotFoundError: a path does not exist.
        InvalidArgumentError: `delta_path` is not a delta.
        FailedPreconditionError: the delta was made against another checkpoint.
        DataLossError: a file is damaged.
    """
    base, delta = read_checkpoint(base_path), read_checkpoint(delta_path)
    note = delta.state.get(_KEY)
    if not isinstance(note, Mapping):
        raise InvalidArgumentError.explained(
            f"{os.fspath(delta_path)!r} is a checkpoint, but not a delta",
            expected="what write_checkpoint_delta wrote",
        )
    if note.get("base") != _fingerprint(base.tensors):
        raise FailedPreconditionError.explained(
            "the delta was made against another checkpoint",
            received=f"base {os.fspath(base_path)!r}, delta {os.fspath(delta_path)!r}",
            hint="apply deltas in the order in which they were written",
        )
    shapes = note.get("shapes")
    if not isinstance(shapes, Mapping) or not isinstance(note.get("state"), Mapping):
        raise _malformed(delta)
    tensors = {name: _applied(name, shape, base, delta) for name, shape in shapes.items()}
    return _write(path, tensors, note["state"])


def _changed_rows(old: NDArray[Any], new: NDArray[Any]) -> NDArray[np.int64] | None:
    """The rows of `new` that `old` has not; None if they cannot be compared by rows."""
    if not new.ndim or old.dtype != new.dtype or old.shape[1:] != new.shape[1:]:
        return None
    if len(new) < len(old):
        return None
    differ = old != new[: len(old)]
    changed = differ.reshape(len(old), -1).any(1) if old.size else np.zeros(len(old), bool)
    return np.concatenate([np.flatnonzero(changed), np.arange(len(old), len(new))])


def _applied(name: str, shape: Any, base: Checkpoint, delta: Checkpoint) -> NDArray[Any]:
    whole, rows = delta.tensors.get(name), delta.tensors.get(name + _ROWS)
    if whole is not None:
        return whole
    if name not in base.tensors:
        raise _malformed(delta)
    value = base.tensors[name]
    if rows is None:
        return value
    values = delta.tensors.get(name + _VALUES)
    size = shape[0] if isinstance(shape, list) and shape else None
    if values is None or not isinstance(size, int) or not 0 <= size - len(value) <= len(rows):
        raise _malformed(delta)
    if len(rows) != len(values) or rows.min() < 0 or rows.max() >= size:
        raise _malformed(delta)
    grown = np.concatenate([value, np.zeros((size - len(value), *value.shape[1:]), value.dtype)])
    grown[rows] = values
    return grown


def _fingerprint(tensors: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {value.shape}\n".encode())
        if value.dtype == object:
            digest.update(repr(value.tolist()).encode())
        else:
            digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _malformed(delta: Checkpoint) -> DataLossError:
    return DataLossError.explained(
        f"the delta {delta.path!r} is malformed", hint="write it again from both checkpoints"
    )


def _write(path: AnyPath, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    where = Path(local_path(path))
    return os.fspath(write_checkpoint(where.parent, where.name, tensors, state))


__all__ = ["apply_checkpoint_delta", "write_checkpoint_delta"]
