"""Hooks: what happens around training steps (`tf.train.SessionRunHook`), and built-in ones.

`next_control_step` tells the loop at which global step a hook next needs control; the steps until
then run in as few XLA calls as possible. Hooks that override only `before_run` or `after_run` get
control around every step, as in TensorFlow. `after_steps` is called after each call of the loop
with the losses of all its steps, at no extra cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.logger import logger
from estimatorkit.train.global_steps import get_global_step


class SessionRunArgs(NamedTuple):
    """The fetches and feeds that a hook adds to a step."""

    fetches: Any
    feed_dict: Mapping[Any, Any] | None = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """The results of a hook's `SessionRunArgs`."""

    results: Any
    options: Any = None
    run_metadata: Any = None


@dataclass
class SessionRunContext:
    """The context of a step, for hooks.

    Attributes:
        original_args: the fetches and feeds of the loop itself.
        session: the session.
        stop_requested: whether a hook has requested a stop.
    """

    original_args: SessionRunArgs
    session: Any
    stop_requested: bool = False

    def request_stop(self) -> None:
        """Requests a stop after this step."""
        self.stop_requested = True


@dataclass(frozen=True)
class FinishedSteps:
    """The steps of one call of the loop.

    Attributes:
        first: the global step before the first step.
        losses: the loss of each step, `(count,)`.
        session: the session.
        element: gives the tensors of the element of the input that a step took, by the step's
            number among these; None if that is not known.
        scalars: other values of each step by tag, `(count,)`.
    """

    first: int
    losses: NDArray[Any]
    session: Any
    stop: list[str] = field(default_factory=list)
    element: Callable[[int], list[Any] | None] | None = None
    scalars: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The global step after the last step."""
        return self.first + len(self.losses)

    def request_stop(self, reason: str) -> None:
        """Requests a stop."""
        self.stop.append(reason)


class SessionRunHook:
    """Called before and after training steps; all methods may be overridden.

    Attributes:
        loss_tensor: the tensor whose values a `MonitoredSession` passes to `after_steps` as losses;
            without it the losses are NaN.
    """

    loss_tensor: Any = None

    def begin(self) -> None:
        """Called once the graph is built; it may still be modified."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when the session's variables have been initialized or restored."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before a step; may return additional fetches and feeds."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after a step with the requested values; may request a stop."""

    def after_steps(self, steps: FinishedSteps) -> None:
        """Called after each call of the loop, with the losses of all its steps."""

    def while_waiting(self, stop: list[str]) -> None:
        """Called periodically while this process, whose input has ended, waits for other processes,
        which may return unprocessed data. Not in TensorFlow.

        Args:
            stop: a list to which a reason to stop is appended.
        """

    def input_failed(self, session: Any) -> None:
        """Called when the input has raised an error, before the error ends training.

        Not in TensorFlow.
        """

    def end(self, session: Any) -> None:
        """Called once at the end, unless training failed."""

    def close(self) -> None:
        """Called last, even if an error ended training; releases resources."""

    def next_control_step(self, global_step: int) -> int | None:
        """The next global step around which this hook must have control; None for never.

        Args:
            global_step: the current global step.
        """
        return global_step + 1 if self.takes_part_in_runs else None

    serves_one_training = True
    """Whether a hook that a `model_fn` returns may hold what it saw, so that its model is not used
    for another training. Not in TensorFlow.
    """

    @property
    def changes_graph(self) -> bool:
        """Whether `begin` may add to the graph, so that an estimator builds one for this hook.

        True if a subclass outside this package overrides `begin`; hooks of this package do not
        change the graph. Not in TensorFlow.
        """
        begin = type(self).begin
        home = begin.__module__ or ""  # None if `exec` ran the class without a `__name__`
        return begin is not SessionRunHook.begin and not home.startswith("estimatorkit.")

    watches_runs = False
    """Whether `after_steps` is also called, with no steps, after a run of a monitored session that
    moves no global step."""

    @property
    def takes_part_in_runs(self) -> bool:
        """Whether the hook overrides `before_run` or `after_run`."""
        kind = type(self)
        return (
            kind.before_run is not SessionRunHook.before_run
            or kind.after_run is not SessionRunHook.after_run
        )


def has_passed(secs: float, since: float) -> bool:
    """Whether so many seconds have passed since a `time.time()`, or the clock was set back."""
    return not 0 <= time.time() - since < secs


class NanLossDuringTrainingError(RuntimeError):
    """The loss became NaN (`tf.train.NanLossDuringTrainingError`)."""


class StopAtStepHook(SessionRunHook):
    """Stops training after a number of steps, or at a global step.

    Args:
        num_steps: the number of steps to train.
        last_step: the global step to stop at.

    Raises:
        ValueError: both or neither are given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError(
                "One of num_steps or last_step must be specified."
                if num_steps is None
                else "Only one of num_steps or last_step can be specified."
            )
        self._num_steps = num_steps
        self._last_step = last_step

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Computes the global step to stop at."""
        if self._last_step is None and self._num_steps is not None:
            self._last_step = int(session.run(get_global_step(session.graph))) + self._num_steps

    def next_control_step(self, global_step: int) -> int | None:
        """The last step."""
        return max(self._last_step or 0, global_step + 1)

    def after_steps(self, steps: FinishedSteps) -> None:
        """Requests a stop after the last step."""
        if self._last_step is not None and steps.last >= self._last_step:
            steps.request_stop(f"step {self._last_step} is reached")


class NanTensorHook(SessionRunHook):
    """Monitors the loss of every step for NaN.

    Args:
        loss_tensor: the loss; the loop gives its value at every step.
        fail_on_nan_loss: raise `NanLossDuringTrainingError` rather than stop training.
        names: the names of the tensors of an input element, by position, so that the error can name
            those that are not finite. Not in TensorFlow.
        checkpoint: returns the latest checkpoint, for the error message. Not in TensorFlow.
    """

    def __init__(
        self,
        loss_tensor: Any,
        fail_on_nan_loss: bool = True,
        *,
        names: Mapping[int, str] | None = None,
        checkpoint: Callable[[], str | None] | None = None,
    ) -> None:
        self.loss_tensor = loss_tensor
        self._fail = fail_on_nan_loss
        self._names = names or {}
        self._checkpoint = checkpoint
        self._earlier: FinishedSteps | None = None  # those of the previous call

    def after_steps(self, steps: FinishedSteps) -> None:
        """Raises an error or requests a stop if a loss is NaN."""
        bad = np.isnan(steps.losses)
        if not bad.any():
            self._earlier = steps
            return
        index = int(np.argmax(bad))
        step = steps.first + index + 1
        before = float(steps.losses[index - 1]) if index else None
        message = explain(
            "NaN loss during training",
            expected="a finite loss",
            received=f"NaN at step {step}"
            + (f" (the step before it: {before:.6g})" if before is not None else "")
            + self._described_input(steps, index),
            hint="look for NaN or infinite features and labels, lower the learning rate, or clip "
            "the gradients",
        )
        if self._fail:
            logger.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError(message)
        logger.warning(message)
        steps.request_stop("the loss is NaN")

    def _described_input(self, steps: FinishedSteps, index: int) -> str:
        """What was wrong with the step's input, and where the last good model is."""
        text = ""
        found = self._not_finite(steps, index)
        if found:
            text = f"; NaN or infinity in the batch of that step: {', '.join(found)}"
        elif found is not None:
            text = "; all numbers of the batch of that step are finite"
            # An infinite feature may give a finite loss, but a NaN gradient.
            before = self._not_finite_before(steps, index)
            if before:
                text += f"; NaN or infinity in the batch before it: {', '.join(before)}"
        path = None if self._checkpoint is None else self._checkpoint()
        return text + (f"; the checkpoint before it: {path}" if path else "")

    def _not_finite_before(self, steps: FinishedSteps, index: int) -> list[str] | None:
        """The same for the step before, which may be the last one of the call before."""
        if index:
            return self._not_finite(steps, index - 1)
        earlier = self._earlier
        return None if earlier is None else self._not_finite(earlier, len(earlier.losses) - 1)

    def _not_finite(self, steps: FinishedSteps, index: int) -> list[str] | None:
        """Which tensors of a step's element have such numbers, and how many; None: not known."""
        element = None if steps.element is None else steps.element(index)
        if element is None or not self._names:
            return None
        bad = {
            name: int((~np.isfinite(element[place])).sum())
            for place, name in self._names.items()
            if place < len(element) and np.asarray(element[place]).dtype.kind == "f"
        }
        return [f"{name} ({count} values)" for name, count in bad.items() if count]


class LoggingTensorHook(SessionRunHook):
    """Logs tensors periodically.

    Args:
        tensors: tensors or names, a dict or a list. The name of an operation, without ":0", means
            its output.
        every_n_iter: steps between lines; the first step has one.
        every_n_secs: seconds between lines.
        at_end: also log at the end.
        formatter: formats a dict of values.

    Raises:
        ValueError: not exactly one of `every_n_iter` and `every_n_secs` is given (neither with
            `at_end` is allowed).
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        given = (every_n_iter is not None) + (every_n_secs is not None)
        if given == 2 or (given == 0 and not at_end):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be "
                "provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if isinstance(tensors, Mapping):
            self._tensors = dict(tensors)
        else:
            self._tensors = {getattr(each, "name", each): each for each in tensors}
        self._every = every_n_iter
        self._secs = every_n_secs
        self._at_end = at_end
        self._formatter = formatter
        self._started = 0
        self._logged_at: float | None = None
        self._fetches: dict[str, Any] = {}

    def begin(self) -> None:
        """Looks up the tensors."""
        self._logged_at = None
        graph = get_default_graph()
        self._fetches = {
            key: graph.as_graph_element(
                f"{each}:0" if isinstance(each, str) and ":" not in each else each
            )
            for key, each in self._tensors.items()
        }

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts counting."""
        step = get_global_step(session.graph)
        self._started = 0 if step is None else int(session.run(step))

    def next_control_step(self, global_step: int) -> int | None:
        """The next step to log."""
        if self._every is None:
            return global_step + 1 if self._secs is not None else None
        done = global_step - self._started
        return self._started + -(-done // self._every) * self._every + 1

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Fetches the tensors."""
        due = (
            self._logged_at is None or self._secs is None or has_passed(self._secs, self._logged_at)
        )
        return SessionRunArgs(self._fetches) if due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs the values."""
        if run_values.results is not None:
            self._log(run_values.results)

    def end(self, session: Any) -> None:
        """Logs the values at the end, if requested."""
        if self._at_end:
            self._log(session.run(self._fetches))

    def _log(self, values: dict[str, Any]) -> None:
        now = time.time()
        if self._formatter is not None:
            logger.info(self._formatter(values))
        else:
            with np.printoptions(suppress=True):
                text = ", ".join(f"{key} = {values[key]}" for key in self._tensors)
            spent = "" if self._logged_at is None else f" ({now - self._logged_at:.3f} sec)"
            logger.info("%s%s", text, spent)
        self._logged_at = now


class LossLogHook(SessionRunHook):
    """The familiar lines: `loss = 1.2, step = 0`, later with `global_step/sec: 345`.

    It reads the losses that the loop gives after each call, so that nothing extra is fetched.

    Args:
        every_n_steps: steps between lines.
    """

    def __init__(self, every_n_steps: int) -> None:
        self._every = every_n_steps
        self._first: int | None = None
        self._logged_at = 0.0
        self._logged_step = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the clock."""
        self._logged_at = time.time()

    def after_steps(self, steps: FinishedSteps) -> None:
        """Logs the steps that are due."""
        now = time.time()
        if self._first is None:
            self._first = steps.first
            logger.info("loss = %s, step = %d", steps.losses[0], steps.first)
            self._logged_step = steps.first
        passed = max(steps.first - 1 - self._first, 0) // self._every
        due = range(self._first + (passed + 1) * self._every, steps.last, self._every)
        if due:  # one call may contain many of these steps: they share its time
            spent = max(now - self._logged_at, 1e-9)
            logger.info("global_step/sec: %g", (due[-1] - self._logged_step) / spent)
            for step in due:
                loss = steps.losses[step - steps.first]
                logger.info("loss = %s, step = %d (%.3f sec)", loss, step, spent / len(due))
            self._logged_at, self._logged_step = now, due[-1]


def check_hooks(hooks: Sequence[Any] | None) -> list[SessionRunHook]:
    """Returns the hooks as a list.

    Raises:
        TypeError: one of them is not a `SessionRunHook`.
    """
    checked: list[SessionRunHook] = []
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook!r}")
        checked.append(hook)
    return checked
