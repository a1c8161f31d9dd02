"""`ProfilerHook`: Chrome traces of single steps (`tf.compat.v1.train.ProfilerHook`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from estimatorkit.train.hooks.summary_hooks import SecondOrStepTimer, check_global_step


class ProfilerHook(SessionRunHook):
    """Profiles single steps periodically, and writes `timeline-<step>.json`.

    View the files in chrome://tracing or Perfetto. A profiled step runs on its own and waits for
    each segment, so it takes longer than others.

    Args:
        save_steps: steps between profiles.
        save_secs: seconds between profiles.
        output_dir: the folder for the files, created if missing; the current one by default.
        show_dataflow, show_memory: accepted for compatibility only.

    Raises:
        ValueError: both or neither of `save_steps` and `save_secs` are given.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._directory = Path(output_dir)
        self._show = (show_dataflow, show_memory)
        self._step = 0

    def begin(self) -> None:
        """Looks for the global step.

        Raises:
            RuntimeError: there is none.
        """
        check_global_step("ProfilerHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts counting."""
        self._step = int(session.run(get_global_step(session.graph)))
        self._timer.reset()
        self._timer.update_last_triggered_step(self._step)

    def next_control_step(self, global_step: int) -> int | None:
        """The next step to profile."""
        self._step = global_step
        return self._timer.next_step(global_step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Requests a trace, if due."""
        from estimatorkit.interop.protos import RunOptions

        if not self._timer.should_trigger_for_step(self._step + 1):
            return None
        return SessionRunArgs(None, options=RunOptions(trace_level=RunOptions.FULL_TRACE))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the trace."""
        from estimatorkit.runtime.xla.timeline import Timeline

        if not self._timer.should_trigger_for_step(self._step + 1) or not run_values.run_metadata:
            return
        session = run_context.session
        step = int(session.run(get_global_step(session.graph)))
        self._timer.update_last_triggered_step(step)
        path = self._directory / f"timeline-{step}.json"
        logger.info("Saving timeline for %d into '%s'.", step, path)
        timeline = Timeline(run_values.run_metadata.step_stats)
        self._directory.mkdir(parents=True, exist_ok=True)
        write_durably(path, timeline.generate_chrome_trace_format(*self._show).encode())
