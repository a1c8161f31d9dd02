"""Hooks that write summaries: `SummarySaverHook`, `StepCounterHook`; `SecondOrStepTimer`, by which
they say when it is time.
"""

from __future__ import annotations

import os
import time
from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.variables import Variable
from estimatorkit.logger import logger
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import (
    FinishedSteps,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    has_passed,
)


class SecondOrStepTimer:
    """A timer that triggers every so many seconds or steps
    (`tf.compat.v1.train.SecondOrStepTimer`).

    Args:
        every_secs: the seconds between triggers.
        every_steps: the steps between triggers.

    Raises:
        ValueError: both or neither are given.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self._last_step: int | None = None
        self._last_time = 0.0

    def reset(self) -> None:
        """Resets the timer: the next step triggers."""
        self._last_step = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether the timer triggers at a step: the first step does, and no step does twice."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._every_secs is not None:
            return has_passed(self._every_secs, self._last_time)
        return step >= self._last_step + (self._every_steps or 0)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Records that the timer triggered at a step.

        Returns:
            The seconds and the steps since the previous trigger; None for both if there was none.
        """
        now = time.time()
        if self._last_step is None:
            elapsed: tuple[float | None, int | None] = (None, None)
        else:
            elapsed = (max(now - self._last_time, 0.0), step - self._last_step)
        self._last_step, self._last_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step of the last trigger; None if there was none."""
        return self._last_step

    def next_step(self, global_step: int) -> int:
        """The next step that may trigger (see `SessionRunHook.next_control_step`).

        Args:
            global_step: the number of finished steps.
        """
        if self._last_step is None or self._every_steps is None:
            return global_step + 1
        return max(self._last_step + self._every_steps, global_step + 1)


class StepCounterHook(SessionRunHook):
    """Logs the training speed and writes it as a summary, every so many steps or seconds.

    Args:
        every_n_steps: steps between values; None if seconds decide.
        every_n_secs: seconds between values.
        output_dir: the folder of the summaries.
        summary_writer: a `FileWriter`, instead of `output_dir`.

    Raises:
        ValueError: not exactly one of `every_n_steps` and `every_n_secs` is given.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._by_steps = every_n_steps is not None
        self._timer = SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_steps)
        self._output_dir = output_dir
        self._writer = summary_writer
        self._tag = ""

    def begin(self) -> None:
        """Opens the writer, and looks for the global step."""
        self._tag = f"{check_global_step('StepCounterHook').op.name}/sec"
        self._writer = _writer(self._writer, self._output_dir)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Restarts the timer; it measures from the first step, which compiles."""
        self._timer.reset()

    def next_control_step(self, global_step: int) -> int | None:
        """The next step with a value, where steps decide."""
        return self._timer.next_step(global_step) if self._by_steps else None

    def after_steps(self, steps: FinishedSteps) -> None:
        """Writes the speed if due."""
        if not self._timer.should_trigger_for_step(steps.last):
            return
        secs, count = self._timer.update_last_triggered_step(steps.last)
        if not secs or count is None:
            return
        logger.info("%s: %g", self._tag, count / secs)
        if self._writer is not None:
            from estimatorkit.interop.protos import Summary

            value = Summary.Value(tag=self._tag, simple_value=count / secs)
            self._writer.add_summary(Summary(value=[value]), steps.last)

    def end(self, session: Any) -> None:
        """Flushes the writer."""
        if self._writer is not None:
            self._writer.flush()


class SummarySaverHook(SessionRunHook):
    """Writes summaries at the first step, and then every so many steps or seconds.

    Args:
        save_steps: steps between summaries.
        save_secs: seconds between summaries.
        output_dir: the folder.
        summary_writer: a `FileWriter`, instead of `output_dir`.
        scaffold: a `Scaffold`, whose `summary_op` is used.
        summary_op: a summary or a list of them.

    Raises:
        ValueError: not exactly one of `scaffold` and `summary_op`, or of `save_steps` and
            `save_secs`, is given.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._output_dir = output_dir
        self._writer = summary_writer
        self._scaffold = scaffold
        self._summary_op = summary_op
        self._step = 0
        self._started = False

    def begin(self) -> None:
        """Opens the writer, and looks for the global step."""
        check_global_step("SummarySaverHook")
        self._writer = _writer(self._writer, self._output_dir)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Restarts the timer: the first step writes summaries."""
        self._step = int(session.run(get_global_step(session.graph)))
        self._timer.reset()
        self._started = False

    def next_control_step(self, global_step: int) -> int | None:
        """The next step with summaries."""
        self._step = global_step
        return self._timer.next_step(global_step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Requests the summaries if due."""
        op = self._summary_op if self._scaffold is None else self._scaffold.summary_op
        if op is None or not self._timer.should_trigger_for_step(self._step + 1):
            return None
        return SessionRunArgs(op)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the summaries."""
        if run_values.results is None or self._writer is None:
            return
        from estimatorkit.interop.protos import SessionLog

        session = run_context.session
        step = int(session.run(get_global_step(session.graph)))
        self._timer.update_last_triggered_step(step)
        if not self._started:
            self._writer.add_session_log(SessionLog(status=SessionLog.START), step)
            self._started = True
        results = run_values.results
        for each in results if isinstance(results, list) else [results]:
            self._writer.add_summary(each, step)

    def end(self, session: Any) -> None:
        """Flushes the writer."""
        if self._writer is not None:
            self._writer.flush()


def check_global_step(hook: str) -> Variable:
    """The default graph's global step.

    Raises:
        RuntimeError: there is none.
    """
    step = get_global_step(get_default_graph())
    if step is None:
        raise RuntimeError(
            explain(
                f"Global step should be created to use {hook}",
                hint="call tf.train.get_or_create_global_step() when the graph is built",
            )
        )
    return step


def _writer(given: Any, directory: str | os.PathLike[str] | None) -> Any:
    if given is not None or directory is None:
        return given
    from estimatorkit.interop.summary_writer import FileWriterCache

    return FileWriterCache.get(directory)
