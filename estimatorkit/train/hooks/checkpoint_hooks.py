"""`CheckpointSaverHook`, which saves checkpoints during training, and its listeners."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from estimatorkit.logger import logger
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook, has_passed
from estimatorkit.train.saving.saver import Saver


class CheckpointSaverListener:
    """Called before and after saving checkpoints; all methods may be overridden."""

    def begin(self) -> None:
        """Called once the graph is built."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """Called after a checkpoint is written; returning True stops training."""
        return None

    def end(self, session: Any, global_step_value: int) -> None:
        """Called once at the end."""


class CheckpointSaverHook(SessionRunHook):
    """Saves checkpoints at the start, periodically, and at the end of training.

    Args:
        checkpoint_dir: the directory.
        save_secs: seconds between checkpoints.
        save_steps: steps between checkpoints.
        saver: a `Saver`; by default one of all global variables.
        checkpoint_basename: the prefix of their names.
        scaffold: a `Scaffold`, whose saver to use.
        save_graph_def: whether to write the graph beside each checkpoint.
        listeners: `CheckpointSaverListener`s.

    Raises:
        ValueError: both or neither of `save_secs` and `save_steps` are given, or both a saver and a
            scaffold.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        if (save_secs is None) == (save_steps is None):
            raise ValueError("Exactly one of save_secs and save_steps must be given.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._path = f"{checkpoint_dir}/{checkpoint_basename}"
        self._secs = save_secs
        self._steps = save_steps
        self._saver = saver
        self._scaffold = scaffold
        self._save_graph_def = save_graph_def
        self._listeners = list(listeners or ())
        self._saved_at = 0.0
        self._saved_step: int | None = None

    def add_listeners(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        """Adds listeners, which are called after existing ones."""
        self._listeners.extend(listeners)

    def remove_listeners(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        """Removes listeners, when their training has ended."""
        self._listeners = [each for each in self._listeners if each not in listeners]

    def begin(self) -> None:
        """Collects the graph's variables, unless a saver was given."""
        if self._saver is None and self._scaffold is None:
            self._saver = Saver()
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Saves the initial state, unless it was restored from a checkpoint."""
        step = int(session.run(get_global_step(session.graph)))
        if self._saved_step != step:
            self._save(session, step)
        self._saved_at = time.time()

    @property
    def saved_step(self) -> int | None:
        """The global step of the last checkpoint; None before the first."""
        return self._saved_step

    def restored_at(self, step: int) -> None:
        """Records that the state of this step was restored, and is saved already."""
        self._saved_step = step

    def next_control_step(self, global_step: int) -> int | None:
        """The next step to save at; None if seconds decide."""
        if self._steps is None:
            return None
        return global_step + 1 if self._saved_step is None else self._saved_step + self._steps

    def after_steps(self, steps: FinishedSteps) -> None:
        """Saves if due."""
        if self._saved_step is None:
            due = True
        elif self._steps is not None:
            due = steps.last >= self._saved_step + self._steps
        else:
            due = has_passed(self._secs or 0.0, self._saved_at)
        if due and self._save(steps.session, steps.last):
            steps.request_stop("a checkpoint listener asked for it")

    def input_failed(self, session: Any) -> None:
        """Saves the state after the last step before an error of the input."""
        step = int(session.run(get_global_step(session.graph)))
        if step != self._saved_step:
            logger.warning(
                "The input failed after step %d: saving a checkpoint of that step.", step
            )
            self._save(session, step)

    def end(self, session: Any) -> None:
        """Saves the final state."""
        step = int(session.run(get_global_step(session.graph)))
        if step != self._saved_step:
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        saver = self._saver if self._scaffold is None else self._scaffold.saver
        if saver is None:
            raise RuntimeError("CheckpointSaverHook: begin() was not called.")
        logger.info("Saving checkpoints for %d into %s.", step, self._path)
        for listener in self._listeners:
            listener.before_save(session, step)
        saver.save(session, self._path, global_step=step, write_meta_graph=self._save_graph_def)
        self._saved_step = step
        self._saved_at = time.time()
        return any([listener.after_save(session, step) for listener in self._listeners])


__all__ = ["CheckpointSaverHook", "CheckpointSaverListener"]
