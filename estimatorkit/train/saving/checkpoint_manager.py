"""`CheckpointManager`: numbered checkpoints of a `Checkpoint`, of which the newest are kept."""

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
    """Saves a `Checkpoint` under numbered names, and removes old ones
    (`tf.train.CheckpointManager`).

    Args:
        checkpoint: what is saved.
        directory: the folder; the manager is its only writer.
        max_to_keep: how many checkpoints stay; None for all.
        keep_checkpoint_every_n_hours: of those that go, one stays for so many hours.
        checkpoint_name: the first part of their names.
        step_counter: a variable that counts steps; with `checkpoint_interval`.
        checkpoint_interval: how many steps lie between two checkpoints at least.
        init_fn: called by `restore_or_initialize` where there is no checkpoint.

    Raises:
        ValueError: `max_to_keep` is less than 1, or there is an interval and no counter.
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
        """What is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """How many steps lie between two checkpoints at least."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The checkpoints that are kept, oldest first."""
        return self._kept.last_checkpoints

    @property
    def latest_checkpoint(self) -> str | None:
        """The newest checkpoint, None if there is none."""
        return latest_checkpoint(self._directory)

    def save(
        self,
        checkpoint_number: int | None = None,
        check_interval: bool = True,
        options: Any = None,
        *,
        session: Any = None,
    ) -> str | None:
        """Writes a checkpoint, moves the folder's pointer to it, and removes old ones.

        Args:
            checkpoint_number: the number behind its name; the `Checkpoint`'s `save_counter` by
                default, which counts up in any case.
            check_interval: whether nothing is saved before `checkpoint_interval` steps are over.
            options: accepted for TensorFlow's signature.
            session: the session; the default session by default.

        Returns:
            Its path, to be given to `Checkpoint.restore`; None if nothing was saved.

        Raises:
            FailedPreconditionError: a variable has no value.
            OpError: the disk refuses.
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
        """Restores the latest checkpoint; if there is none, calls `init_fn`.

        Variables that the checkpoint has no value for are initialized.

        Args:
            session: the session; the default session by default.

        Returns:
            The checkpoint's path, None if there is none.
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
