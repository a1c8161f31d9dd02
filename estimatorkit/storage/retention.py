"""Checkpoint retention: decides what to keep; saves, updates the checkpoint state, then deletes.

The order matters: a checkpoint is removed only after the state names a newer one on the disk, and
is listed there until it is gone, so that a killed process leaves none that nobody removes.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from estimatorkit.core import errors
from estimatorkit.storage.checkpoint import (
    SHARD_BYTES,
    checkpoint_step,
    name_without_step,
    own_checkpoints,
    remove_checkpoint,
    set_aside,
    write_checkpoint,
)
from estimatorkit.storage.checkpoint_state import (
    POINTER,
    CheckpointState,
    get_checkpoint_state,
    name_inside,
    update_checkpoint_state,
)


@dataclass(frozen=True)
class Retention:
    """A retention decision.

    Args:
        keep: (name, time) of the checkpoints that stay listed, oldest first.
        delete: the names to remove.
        next_preserve_time: the next checkpoint written after this time (seconds since 1970) is kept
            permanently.
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
    """Applies the rules of `tf.compat.v1.train.Saver` or `tf.train.CheckpointManager`.

    The newest `max_to_keep` of the (name, time in seconds since 1970) pairs, oldest first, stay
    listed; None or 0 keeps all, and lists only the newest. Older ones are deleted, except that one
    written after `next_preserve_time` (initially the start of training plus `keep_every_n_hours`)
    is kept permanently, and advances that time by `keep_every_n_hours`: from its own time with
    `from_preserved`, as in `CheckpointManager`, or from when it was due, as in `Saver`.
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
    """Saves the checkpoints of one folder and removes old ones; the caller must be its only writer.

    It resumes from the checkpoint state of the last process, and adopts the checkpoint that this
    process had no time to list; it will be the first to be removed. TensorFlow's `Saver` instead
    forgets earlier checkpoints, and restarts the interval of `keep_checkpoint_every_n_hours`.

    Args:
        max_to_keep: the number of checkpoints to keep; None or 0 keeps all.
        keep_checkpoint_every_n_hours: additionally keep one checkpoint per this many hours.
        latest_filename: the checkpoint state file; `checkpoint` by default.
        basename: adopts only checkpoints of this name (without the step), since others belong to
            another manager; None adopts all.
        from_preserved: see `decide_retention`.
        clock: returns seconds since 1970; `time.time` by default.
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
                    "invalid checkpoint retention",
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
        listed = _listed_in(directory, state)
        listed = [*_adopted(self._directory, latest_filename, listed), *listed]
        self._listed = tuple(
            (name, min(written, now))
            for name, written in listed
            if basename is None or name_without_step(name) == basename
        )
        # A future time means that the clock was set back; the interval then restarts.
        preserved = state.last_preserved_timestamp if state else 0.0
        start = preserved if 0.0 < preserved <= now else now
        self._next_preserve_time = start + self._every_n_hours * 3600.0

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the listed checkpoints, oldest first."""
        return [os.path.join(self._directory, name) for name, _ in self._listed]

    def set_listed(self, listed: Sequence[tuple[str, float]]) -> None:
        """Sets the listed checkpoints: (name, time in seconds since 1970), oldest first."""
        self._listed = tuple(listed)

    def save(
        self,
        name: str,
        tensors: Mapping[str, Any],
        state: Mapping[str, Any] | None = None,
        *,
        shard_bytes: int = SHARD_BYTES,
        before_state: Callable[[], object] = lambda: None,
    ) -> str:
        """Writes a checkpoint, updates the state, then removes old checkpoints.

        Arguments and errors are those of `write_checkpoint`; `before_state` is called when it is
        written. If only the removal fails, it is logged. Returns `directory/name`.
        """
        path = write_checkpoint(self._directory, name, tensors, state, shard_bytes=shard_bytes)
        before_state()
        others = [(other, written) for other, written in self._listed if other != name]
        self._rotate([*others, (name, self._clock())])
        return os.fspath(path)

    def _rotate(self, checkpoints: Sequence[tuple[str, float]]) -> None:
        decision = decide_retention(
            checkpoints,
            self._max_to_keep,
            self._every_n_hours,
            self._next_preserve_time,
            self._from_preserved,
        )
        times = dict(checkpoints)
        doomed = [(old, times[old]) for old in decision.delete]
        preserved = decision.next_preserve_time - self._every_n_hours * 3600.0
        if doomed:
            self._write_state([*doomed, *decision.keep], preserved)
        self._listed = decision.keep
        self._next_preserve_time = decision.next_preserve_time
        for old in decision.delete:
            try:
                remove_checkpoint(self._directory / old)
            except errors.NotFoundError:
                pass  # another process has removed it
            except errors.OpError as error:
                logging.getLogger("estimatorkit").warning(
                    "could not remove an old checkpoint: %s", error
                )
        self._write_state(decision.keep, preserved)

    def _write_state(self, listed: Sequence[tuple[str, float]], preserved: float) -> None:
        update_checkpoint_state(
            self._directory,
            listed[-1][0],
            [name for name, _ in listed],
            self._latest_filename,
            [written for _, written in listed],
            preserved,
        )


def _listed_in(
    directory: str | os.PathLike[str], state: CheckpointState | None
) -> list[tuple[str, float]]:
    """Returns the state's list without names outside the folder."""
    if state is None:
        return []
    paths = state.all_model_checkpoint_paths
    times = state.all_model_checkpoint_timestamps
    if len(times) != len(paths):
        times = [math.inf] * len(paths)
    listed = []
    for path, written in zip(paths, times, strict=True):
        try:
            name = name_inside(os.fspath(directory), path)
        except errors.InvalidArgumentError:
            continue
        place = Path(directory, name)
        if place.is_dir() or set_aside(place):
            listed.append((name, written))
    return listed


def _adopted(
    directory: Path, latest_filename: str | None, listed: Sequence[tuple[str, float]]
) -> list[tuple[str, float]]:
    """Returns what a killed process had written, but not listed: oldest first.

    It has a higher step than those listed, and is newer than the state file. Where there is none,
    it can only be the first and only checkpoint.
    """
    try:
        since = (directory / (latest_filename or POINTER)).stat().st_mtime_ns
    except OSError:
        since = None
    last = max((checkpoint_step(name) or 0 for name, _ in listed), default=-1)
    found = []
    for name, written in own_checkpoints(directory):
        step = checkpoint_step(name)
        if step is not None and step > last and written >= (since or 0):
            found.append((name, written / 1e9))
    return sorted(found, key=itemgetter(1)) if since is not None or len(found) == 1 else []
