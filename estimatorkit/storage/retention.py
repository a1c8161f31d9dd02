"""Checkpoint retention: which to keep, and the rotation that saves, moves the pointer, then
deletes.

The order is the promise: a checkpoint is removed only after the pointer names a newer one that is
on the disk.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimatorkit.core import errors
from estimatorkit.storage.checkpoint import (
    SHARD_BYTES,
    name_without_step,
    remove_checkpoint,
    write_checkpoint,
)
from estimatorkit.storage.checkpoint_state import (
    CheckpointState,
    get_checkpoint_state,
    name_inside,
    update_checkpoint_state,
)


@dataclass(frozen=True)
class Retention:
    """What to do with the checkpoints of a folder.

    Args:
        keep: (name, time) of those that stay on the list, oldest first.
        delete: the names to remove.
        next_preserve_time: the earliest time, seconds since 1970, whose checkpoint is next put
            aside for good.
    """

    keep: tuple[tuple[str, float], ...]
    delete: tuple[str, ...]
    next_preserve_time: float


def decide_retention(
    checkpoints: Sequence[tuple[str, float]],
    max_to_keep: int | None,
    keep_every_n_hours: float,
    next_preserve_time: float,
    from_preserved: bool = False,
) -> Retention:
    """Decides which checkpoints to remove, by the rules of `tf.compat.v1.train.Saver`, or of
    `tf.train.CheckpointManager`.

    The newest `max_to_keep` stay on the list. An older one leaves it: it is deleted, unless it was
    written after `next_preserve_time`; then it stays on the disk for good, and that time moves on
    by `keep_every_n_hours`.

    Args:
        checkpoints: (name, time in seconds since 1970), oldest first.
        max_to_keep: None or 0 keeps all, and lists only the newest.
        keep_every_n_hours: hours between those that are put aside for good.
        next_preserve_time: see above; at first the start of training plus `keep_every_n_hours`.
        from_preserved: whether the hours count from the checkpoint that was put aside last, as a
            `CheckpointManager`'s do; a `Saver`'s count from the time at which it was due.
    """
    if not max_to_keep:
        return Retention(tuple(checkpoints[-1:]), (), next_preserve_time)
    delete = []
    for name, written in checkpoints[:-max_to_keep]:
        if written > next_preserve_time:
            due = written if from_preserved else next_preserve_time
            next_preserve_time = due + keep_every_n_hours * 3600.0
        else:
            delete.append(name)
    return Retention(tuple(checkpoints[-max_to_keep:]), tuple(delete), next_preserve_time)


class CheckpointRotation:
    """Saves the checkpoints of one folder and removes old ones.

    It takes up where the last process left off, from the pointer file. Differs from TensorFlow's
    `Saver`, which in a new process forgets the earlier checkpoints, and starts the hours of
    `keep_checkpoint_every_n_hours` anew.

    Args:
        directory: the model folder. The caller is its only writer (`DirectoryLock`).
        max_to_keep: how many checkpoints to keep; None or 0 is all.
        keep_checkpoint_every_n_hours: besides, keep one for good each so many hours; 10,000 is
            never.
        latest_filename: name of the pointer file; None is `checkpoint`.
        basename: of the checkpoints of the last process, only those of this name (without their
            step) are taken over; None for all. Others are another manager's.
        from_preserved: see `decide_retention`.
        clock: gives the time, seconds since 1970; `time.time` by default.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        latest_filename: str | None = None,
        basename: str | None = None,
        from_preserved: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if (max_to_keep or 0) < 0 or not keep_checkpoint_every_n_hours > 0:
            raise ValueError(
                errors.explain(
                    "a folder cannot keep that many checkpoints",
                    expected="max_to_keep >= 0 or None, keep_checkpoint_every_n_hours > 0",
                    received=f"{max_to_keep}, {keep_checkpoint_every_n_hours}",
                )
            )
        self._directory = Path(directory)
        self._max_to_keep = max_to_keep
        self._every_n_hours = keep_checkpoint_every_n_hours
        self._latest_filename = latest_filename
        self._from_preserved = from_preserved
        self._clock = clock or time.time
        now = self._clock()
        state = get_checkpoint_state(directory, latest_filename)
        self._listed = tuple(
            (name, written)
            for name, written in _listed_in(self._directory, state, now)
            if basename is None or name_without_step(name) == basename
        )
        # A time to come means that the clock was set back since. The hours then start anew.
        preserved = state.last_preserved_timestamp if state else 0.0
        start = preserved if 0.0 < preserved <= now else now
        self._next_preserve_time = start + self._every_n_hours * 3600.0

    @property
    def last_checkpoints(self) -> list[str]:
        """Paths of the checkpoints that are listed, oldest first."""
        return [os.path.join(self._directory, name) for name, _ in self._listed]

    def set_listed(self, listed: Sequence[tuple[str, float]]) -> None:
        """Says which checkpoints are listed.

        Args:
            listed: name and time of writing (seconds since 1970) of each, oldest first.
        """
        self._listed = tuple(listed)

    def save(
        self,
        name: str,
        tensors: Mapping[str, Any],
        state: Mapping[str, Any] | None = None,
        *,
        shard_bytes: int = SHARD_BYTES,
    ) -> str:
        """Writes a checkpoint, points to it, then removes what is over.

        Args: as `write_checkpoint`.

        Returns:
            The checkpoint's path, `directory/name`.

        Raises:
            OpError: as `write_checkpoint`. Where only the removal of an old one fails, that is a
                warning.
        """
        path = write_checkpoint(self._directory, name, tensors, state, shard_bytes=shard_bytes)
        others = [(other, written) for other, written in self._listed if other != name]
        decision = decide_retention(
            [*others, (name, self._clock())],
            self._max_to_keep,
            self._every_n_hours,
            self._next_preserve_time,
            self._from_preserved,
        )
        update_checkpoint_state(
            self._directory,
            name,
            [kept for kept, _ in decision.keep],
            self._latest_filename,
            [written for _, written in decision.keep],
            decision.next_preserve_time - self._every_n_hours * 3600.0,
        )
        self._listed = decision.keep
        self._next_preserve_time = decision.next_preserve_time
        for old in decision.delete:
            try:
                remove_checkpoint(self._directory / old)
            except errors.NotFoundError:
                pass  # someone has removed it
            except errors.OpError as error:
                logging.getLogger("estimatorkit").warning("an old checkpoint stays: %s", error)
        return os.fspath(path)


def _listed_in(
    directory: Path, state: CheckpointState | None, now: float
) -> tuple[tuple[str, float], ...]:
    """Takes over the pointer's list, but no name that leads elsewhere, and no time to come."""
    if state is None:
        return ()
    paths = state.all_model_checkpoint_paths
    times = state.all_model_checkpoint_timestamps
    if len(times) != len(paths):
        times = [now] * len(paths)
    listed = []
    for path, written in zip(paths, times, strict=True):
        try:
            name = name_inside(os.fspath(directory), path)
        except errors.InvalidArgumentError:
            continue
        if (directory / name).is_dir():
            listed.append((name, min(written, now)))
    return tuple(listed)
