"""`run_training`: the loop that trains. It asks the hooks when they need control, and runs the
steps until then in as few XLA calls as it can (`runtime.loop`).

Nothing here knows estimators: a graph, a session, a train operation, a loss and hooks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import FailedPreconditionError, OutOfRangeError, value_error
from estimatorkit.core.registry import Role, role_of, takes_element
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.data.iterator_ops import cursor_of
from estimatorkit.data.sharded_dataset import has_more, report_trained, shared_iterators
from estimatorkit.distribute.replicas.replicas import INTERRUPTED, PeerStopped
from estimatorkit.logger import logger
from estimatorkit.runtime.loop import StepLoop, Steps, StepSpec
from estimatorkit.runtime.session import Session
from estimatorkit.train.checks import StepCheck, step_checks
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import (
    FinishedSteps,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

CALL_SECS = 0.2
"""Seconds aimed at for a call of the loop: progress, time-based hooks and Ctrl-C wait so long."""


SIGTERM_CAME = "SIGTERM came"
"""The reason to stop of a process that is to end, and to be started again."""

_LOOK_SECS = 0.1

IDLE_STEPS = 100
"""Steps that may leave the global step as it is: gradients may be gathered over a few."""


class CheckedLoop:
    """A `StepLoop` over a session's iterators, whose steps hooks take part in and checks look at.

    Args:
        session: the session.
        every: tensors fetched at every step.
        targets: operations run at every step.
        after: tensors fetched once after the last step of a call.
        name: what the executable is called where compilations are counted.
        checks: what is looked at after a call; the graph's step checks by default.
    """

    def __init__(
        self,
        session: Session,
        every: Sequence[Tensor],
        targets: Sequence[Operation],
        after: Sequence[Tensor],
        name: str,
        checks: Sequence[StepCheck] | None = None,
    ) -> None:
        self._session = session
        self._checks = step_checks(session.graph) if checks is None else list(checks)
        self._every = list(every)
        self._targets = list(targets)
        self._after = list(after)
        watched = [tensor for check in self._checks for tensor in check.tensors]
        self._watched = [*every, *watched]
        state = session.state

        def source(op: Operation) -> Any:
            return cursor_of(state, op.attrs["iterator"])

        spec = StepSpec(self._watched, self._targets, self._after, source, name, watched)
        self.loop: StepLoop = state.step_loop(state, spec)
        self._most = 1
        self.is_interrupted = False
        """Whether another process has ended the steps before their time: SIGTERM came to it."""
        self.is_terminated = False
        """Whether SIGTERM came to this process: others may go on without it, and it comes back."""

    def run(
        self,
        steps: int,
        hooks: Sequence[SessionRunHook] = (),
        stop: list[str] | None = None,
        until: float = math.inf,
    ) -> Steps:
        """Runs up to `steps` steps, fewer where the input ends or where they would take long.

        Args:
            steps: how many at most; one, where hooks are given.
            hooks: those that are asked around this step.
            stop: where the reasons to stop are put.
            until: the value of the first of `after` at which there is enough, where others move it,
                too.

        Raises:
            OutOfRangeError: the input has ended before the first of them.
            InvalidArgumentError: a step check refuses a value.
            PeerStopped: another process that runs the same steps takes no further one.
        """
        asked = _ask(hooks, self._session, [*self._targets, *self._every])
        if any(question.args is not None for question in asked):
            done, results = self._run_one(asked)
        else:
            started = time.perf_counter()
            count = 1 if asked else min(steps, self._most)
            done = self.loop.run(count, until)
            results = [SessionRunValues(None)] * len(asked)
            self._pace((time.perf_counter() - started) / done.count)
        report_trained(self._session.state)
        position = len(self._every)
        for check in self._checks:
            check.check(done.every[position : position + len(check.tensors)])
            position += len(check.tensors)
        _tell(asked, results, [] if stop is None else stop)
        every = done.every[: len(self._every)]
        return Steps(done.count, every, done.after, done.ended, done.elements)

    def _run_one(self, asked: Sequence[_Question]) -> tuple[Steps, list[SessionRunValues]]:
        """One step with what hooks asked for, by a plain run of the session."""
        session = self._session
        (watched, _), results = _run_asked(session, [self._watched, self._targets], asked)
        after = [np.asarray(value) for value in session.run(self._after)]
        return Steps(1, [np.asarray(value)[None] for value in watched], after, False), results

    def leave(self, stop: Sequence[str] = ()) -> None:
        """No further step will be run: says so where other processes run the same steps.

        Args:
            stop: the reasons.
        """
        self.is_terminated = SIGTERM_CAME in stop
        self.loop.leave(self.is_terminated)

    def goes_on(self, hooks: Sequence[SessionRunHook], stop: list[str]) -> bool:
        """Whether an input that has ended goes on, since others have given back what was dealt out
        to them; waits as long as they may.

        Args:
            hooks: asked meanwhile whether to stop.
            stop: where they put the reasons.
        """
        state = self._session.state
        report_trained(state)
        if has_more(state) is None:
            logger.info("Waiting for other processes: they hold data that they may give back.")
        while (found := has_more(state)) is None and not stop:
            for hook in hooks:
                hook.while_waiting(stop)
            time.sleep(_LOOK_SECS)
        return bool(found) and not stop

    @property
    def shares_input(self) -> bool:
        """Whether the input is dealt out among several processes: its end may not be the last."""
        return any(shared_iterators(self._session.state))

    @property
    def has_input(self) -> bool:
        """Whether the steps take elements of an iterator or a queue, so that they end with it."""
        return takes_input(self.loop.operations)

    def _pace(self, secs_per_step: float) -> None:
        """As many steps a call as fit into CALL_SECS, approached: the first call compiles."""
        fitting = int(CALL_SECS / max(secs_per_step, 1e-9))
        self._most = max(1, min(self._most * 16, fitting))


def takes_input(operations: Iterable[Operation]) -> bool:
    """Whether one of these takes elements of an iterator or a queue."""
    return any(takes_element(op) or role_of(op) is Role.DEQUEUE for op in operations)


def training_loop(session: Session, train_op: Operation | Tensor, loss: Tensor) -> CheckedLoop:
    """The loop of `run_training`, for running it several times.

    Raises:
        FailedPreconditionError: there is no global step.
    """
    counter = get_global_step(session.graph)
    if counter is None:
        raise FailedPreconditionError(None, None, "Global step should be created before training.")
    target = train_op.op if isinstance(train_op, Tensor) else train_op
    return CheckedLoop(session, [loss], [target], [counter._as_graph_element()], "train_step")


def run_training(
    session: Session,
    train_op: Operation | Tensor,
    loss: Tensor,
    hooks: Sequence[SessionRunHook],
    loop: CheckedLoop | None = None,
) -> NDArray[Any] | None:
    """Trains until a hook stops it or the input ends.

    Args:
        session: a session whose variables have values.
        train_op: what a step runs.
        loss: a scalar, fetched at every step.
        hooks: already begun (`begin`, `after_create_session`).
        loop: what `training_loop` made of these, where it is kept.

    Returns:
        The last step's loss, or None if there was none.

    Raises:
        FailedPreconditionError: the train operation does not move the global step.
        ValueError: the input has no elements. Differs from TensorFlow, which trains no step then
            and says nothing.
    """
    target = train_op.op if isinstance(train_op, Tensor) else train_op
    loop = loop or training_loop(session, train_op, loss)
    step = int(session.run(get_global_step(session.graph)))
    last: NDArray[Any] | None = None
    rate = 1.0  # how much a step adds to the global step: 2 where two optimizers count
    pending: list[NDArray[Any]] = []  # losses since the global step has moved
    stop: list[str] = []
    while not stop:
        until, due = next_stretch(hooks, step)
        try:
            done = loop.run(math.ceil((until - step) / rate), due, stop, until)
        except OutOfRangeError as error:
            if loop.goes_on(hooks, stop):
                continue
            if last is None and loop.has_input and not loop.shares_input:
                raise empty_input("training") from error
            break
        except PeerStopped as stopped:
            loop.is_interrupted = stopped.reason == INTERRUPTED
            break
        except Exception:
            if loop.loop.input_failed:
                for hook in hooks:
                    hook.input_failed(session)
            raise
        if done.ended and not loop.shares_input:
            stop.append("the input has ended")
        last = done.every[0][-1]
        pending.append(done.every[0])
        moved = int(done.after[0]) - step
        if moved > 0:
            rate = max(1.0, moved / done.count)
            losses = losses_by_count(np.concatenate(pending), moved)
            element = done.element if moved == done.count else None
            finished = FinishedSteps(step, losses, session, stop, element)
            for hook in hooks:
                hook.after_steps(finished)
            step += moved
            pending = []
        elif sum(map(len, pending)) >= IDLE_STEPS:
            raise _standing_still(target, sum(map(len, pending)))
    loop.leave(stop)
    return last


def losses_by_count(losses: NDArray[Any], moved: int) -> NDArray[Any]:
    """One loss for each number that the global step went through.

    Args:
        losses: of the steps, `(count,)`.
        moved: how much they added to the global step.

    Returns:
        `(moved,)`: the mean over the steps of a number, or a step's loss for each of its numbers.
    """
    if moved == len(losses):
        return losses
    starts = np.arange(moved) * len(losses) // moved
    sizes = np.maximum(np.diff(starts, append=len(losses)), 1).astype(losses.dtype)
    means: NDArray[Any] = np.add.reduceat(losses, starts) / sizes
    return means


def run_hooked(
    session: Session,
    fetches: Any,
    hooks: Sequence[SessionRunHook],
    stop: list[str],
    feed_dict: Mapping[Any, Any] | None = None,
    options: Any = None,
    run_metadata: Any = None,
) -> Any:
    """A run of the session around which hooks are asked; returns the values of `fetches`.

    Args:
        session: the session.
        fetches: as for `Session.run`.
        hooks: they may ask for more, and to stop.
        stop: where the reasons to stop are put.
        feed_dict, options, run_metadata: as for `Session.run`.

    Raises:
        RuntimeError: a tensor is fed by two hooks, or by a hook and the caller.
    """
    asked = _ask(hooks, session, fetches, feed_dict)
    values, results = _run_asked(session, fetches, asked, feed_dict, options, run_metadata)
    _tell(asked, results, stop)
    return values


def next_stretch(hooks: Sequence[SessionRunHook], step: int) -> tuple[int, list[SessionRunHook]]:
    """The step to run to without asking anybody, and the hooks to ask about the next step.

    A hook that takes part in single steps (it overrides `before_run` or `after_run`) is asked
    around the step it named, so the steps before that one end the stretch.
    """
    until = step + (1 << 30)
    due: list[SessionRunHook] = []
    for hook in hooks:
        at = hook.next_control_step(step)
        if at is None:
            continue
        if not hook.takes_part_in_runs:
            until = min(until, max(at, step + 1))
        elif at <= step + 1:
            due.append(hook)
        else:
            until = min(until, at - 1)
    return (step + 1 if due else until), due


def empty_input(what: str) -> ValueError:
    """The error of an input without elements.

    Args:
        what: whose input, for example 'training'.
    """
    return value_error(
        f"the {what} input has no elements",
        expected="at least one batch",
        received="an empty dataset",
        hint="look at input_fn: an empty file, a filter that keeps nothing, skip() past the "
        "end, a batch with drop_remainder larger than the data?",
    )


def _standing_still(target: Operation, steps: int) -> FailedPreconditionError:
    return FailedPreconditionError.explained(
        "the train_op does not increase the global step: the training would never end",
        expected="an update that counts",
        received=f"the same global step after {steps} steps",
        made_at=target.source,
        hint="pass global_step=get_global_step() to minimize() or apply_gradients()",
        op=target,
    )


class _Question(NamedTuple):
    """A hook's part in a run; `args` is what its `before_run` returned."""

    hook: SessionRunHook
    context: SessionRunContext
    args: SessionRunArgs | None

    @property
    def fetches(self) -> Any:
        """What it asks for; None for nothing."""
        return None if self.args is None else self.args.fetches

    @property
    def feeds(self) -> Mapping[Any, Any]:
        """What it feeds."""
        return (self.args.feed_dict if self.args else None) or {}


def _ask(
    hooks: Sequence[SessionRunHook],
    session: Session,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
) -> list[_Question]:
    asked = []
    for hook in hooks:
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), session)
        asked.append(_Question(hook, context, hook.before_run(context)))
    return asked


def _run_asked(
    session: Session,
    fetches: Any,
    asked: Sequence[_Question],
    feed_dict: Mapping[Any, Any] | None = None,
    options: Any = None,
    run_metadata: Any = None,
) -> tuple[Any, list[SessionRunValues]]:
    """The values of `fetches`, and what each hook gets."""
    feeds: dict[Any, Any] = {}
    for question in asked:
        _check_feeds(feeds, question.feeds, "Same tensor is fed by two hooks.")
        feeds.update(question.feeds)
    if feed_dict:
        _check_feeds(feeds, feed_dict, "Same tensor is fed by a SessionRunHook and user.")
        feeds.update(feed_dict)
    options = _merged([options, *(each.args.options for each in asked if each.args is not None)])
    if options is not None and run_metadata is None:
        from estimatorkit.runtime.protos import RunMetadata

        run_metadata = RunMetadata()
    wanted = [each.fetches for each in asked]
    chosen = [each for each in wanted if each is not None]
    values, given = session.run([fetches, chosen], feeds or None, options, run_metadata)
    results = iter(given)
    return values, [
        SessionRunValues(None if each is None else next(results), options, run_metadata)
        for each in wanted
    ]


def _check_feeds(one: Mapping[Any, Any], other: Mapping[Any, Any], problem: str) -> None:
    both = [key for key in other if key in one]
    if both:
        raise RuntimeError(f"{problem} Conflict(s): {both}")


def _merged(given: Sequence[Any]) -> Any:
    """One `RunOptions` for all that were asked for: the longer trace and the longer time."""
    present = [each for each in given if each is not None]
    if len(present) < 2:
        return present[0] if present else None
    merged = type(present[0])()
    merged.trace_level = max(each.trace_level for each in present)
    merged.timeout_in_ms = max(each.timeout_in_ms for each in present)
    return merged


def _tell(asked: Sequence[_Question], results: Sequence[SessionRunValues], stop: list[str]) -> None:
    for (hook, context, _), values in zip(asked, results, strict=True):
        hook.after_run(context, values)
        if context.stop_requested:
            stop.append(f"{type(hook).__name__} asked for it")
