"""`CheckpointManager`: rotation of numbered checkpoints of a `Checkpoint`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from estimatorkit.storage import retention
from estimatorkit.storage.checkpoint import latest_checkpoint
from estimatorkit.storage.gfile import local_path
from estimatorkit.train.saving.object_checkpoint import Checkpoint, session_or_default

_NEVER = 10000.0  # hours


class CheckpointManager:
    """Saves numbered checkpoints and removes old ones (`tf.train.CheckpointManager`).

    Args:
        checkpoint: the `Checkpoint` to save.
        directory: the folder; the manager is its only writer.
        max_to_keep: the number of checkpoints to keep; None for all.
        keep_checkpoint_every_n_hours: additionally keep one checkpoint per this many hours.
        checkpoint_name: the name prefix.
        step_counter: a step variable, for `checkpoint_interval`.
        checkpoint_interval: the minimum number of steps between checkpoints.
        init_fn: called by `restore_or_initialize` if there is no checkpoint.

    Raises:
        ValueError: `max_to_keep` is less than 1, or there is an interval but no counter.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}."
            )
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None."
            )
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._name = checkpoint_name
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step: int | None = None
        self._kept = retention.CheckpointRotation(
            local_path(directory),
            max_to_keep=sys.maxsize if max_to_keep is None else max_to_keep,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours or _NEVER,
            from_preserved=True,
        )

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The `Checkpoint` that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The minimum number of steps between checkpoints."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The kept checkpoints, oldest first."""
        return self._kept.last_checkpoints

    @property
    def latest_checkpoint(self) -> str | None:
        """The newest checkpoint, or None."""
        return latest_checkpoint(self._directory)

    def save(
        self,
        checkpoint_number: int | None = None,
        check_interval: bool = True,
        options: Any = None,
        *,
        session: Any = None,
    ) -> str | None:
        """Writes a checkpoint, updates the folder's checkpoint state, and removes old checkpoints.

        Args:
            checkpoint_number: the number to append to the name; by default the `Checkpoint`'s
                `save_counter`, which is incremented in any case.
            check_interval: whether to skip saving until `checkpoint_interval` steps have passed.
            session: the default session by default.

        Returns:
            Its path, for `Checkpoint.restore`; None if saving was skipped.

        Raises:
            FailedPreconditionError: a variable is uninitialized.
            OpError: the file system reports an error.
            RuntimeError: there is no session.
        """
        session = session_or_default(session)
        step = None if self._interval is None else int(session.run(self._step_counter))
        earliest = None if self._last_step is None else self._last_step + (self._interval or 0)
        if check_interval and step is not None and earliest is not None and step < earliest:
            return None
        counted = self._checkpoint.count_up(session)
        number = counted if checkpoint_number is None else int(checkpoint_number)
        tensors, state = self._checkpoint.contents(session)
        path = self._kept.save(f"{self._name}-{number}", tensors, state)
        self._last_step = step
        return path

    def restore_or_initialize(self, *, session: Any = None) -> str | None:
        """Restores the latest checkpoint, or calls `init_fn` if there is none.

        Variables without a value in the checkpoint are initialized.

        Args:
            session: the default session by default.

        Returns:
            The checkpoint's path, or None.
        """
        path = self.latest_checkpoint
        if path is None:
            if self._init_fn is not None:
                self._init_fn()
            return None
        session = session_or_default(session)
        self._checkpoint.restore(path).initialize_or_restore(session)
        if self._interval is not None:
            self._last_step = int(session.run(self._step_counter))
        return path


__all__ = ["CheckpointManager"]
