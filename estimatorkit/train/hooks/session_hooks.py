"""Hooks that feed a session's runs, compute something at its end, or let it begin later."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.logger import logger
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import (
    FinishedSteps,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
)

_SECONDS_BETWEEN_LOOKS = 0.5
_STEPS_BETWEEN_LINES = 1000


class FeedFnHook(SessionRunHook):
    """Feeds values to every step.

    Args:
        feed_fn: called before each step; returns the values to feed, by tensor.
    """

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Requests the feeds."""
        return SessionRunArgs(None, self.feed_fn())


class CoordinatorHook(SessionRunHook):
    """Ends training when a hook or a thread asks its coordinator to stop.

    Args:
        coord: the `Coordinator` that hooks get in `after_create_session`.
    """

    def __init__(self, coord: Any) -> None:
        self._coord = coord

    def after_steps(self, steps: FinishedSteps) -> None:
        """Stops the run if the coordinator was asked to stop."""
        if self._coord.should_stop():
            steps.request_stop("the coordinator requested it")


class FinalOpsHook(SessionRunHook):
    """Runs operations or fetches tensors once, at the end of the session.

    Args:
        final_ops: the fetches, as for `Session.run`; None for nothing.
        final_ops_feed_dict: the feeds of that run.
    """

    def __init__(
        self, final_ops: Any, final_ops_feed_dict: Mapping[Any, Any] | None = None
    ) -> None:
        self._final_ops = final_ops
        self._feeds = final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values, in the structure of `final_ops`; None before the end."""
        return self._values

    def end(self, session: Any) -> None:
        """Computes the values.

        Raises:
            OutOfRangeError: the operations read an input that has ended.
        """
        if self._final_ops is None:
            return
        try:
            self._values = session.run(self._final_ops, self._feeds)
        except OutOfRangeError:
            logger.warning(
                "The operations of a FinalOpsHook read an input that has ended: they may depend on "
                "variables, but not on the input. For a metric, pass the value, not the update op."
            )
            raise


class GlobalStepWaiterHook(SessionRunHook):
    """Delays training until other workers, which share its variables, have reached a global step.

    Args:
        wait_until_step: the global step to wait for.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step
        self._begun = False
        self._step: Any = None

    def begin(self) -> None:
        """Looks for the global step.

        Raises:
            RuntimeError: the graph has none.
        """
        self._begun, self._step = False, get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use GlobalStepWaiterHook.")

    def next_control_step(self, global_step: int) -> int | None:
        """The next step, until training has begun."""
        return None if self._begun else global_step + 1

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits before the first step."""
        logged = -_STEPS_BETWEEN_LINES
        if self._wait_until_step <= 0:
            self._begun = True
        while not self._begun:
            now = int(run_context.session.run(self._step))
            if now >= self._wait_until_step:
                self._begun = True
                return
            if now - logged >= _STEPS_BETWEEN_LINES:
                logged = now
                logger.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step,
                    now,
                )
            time.sleep(_SECONDS_BETWEEN_LOOKS)
