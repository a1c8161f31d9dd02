"""`run_training`: the loop that trains. It asks the hooks when they need control, and runs the
steps until then in as few XLA calls as it can (`core.loop`).

Nothing here knows estimators: a graph, a session, a train operation, a loss and hooks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import FailedPreconditionError, OutOfRangeError, explain
from estimatorkit.core.graph import Operation, Tensor
from estimatorkit.core.loop import StepLoop, Steps
from estimatorkit.core.session import Session
from estimatorkit.data.iterator_ops import cursor_of
from estimatorkit.train.checks import step_checks
from estimatorkit.train.global_step import get_global_step
from estimatorkit.train.hooks import (
    FinishedSteps,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

CALL_SECS = 0.2
"""Seconds aimed at for a call of the loop: progress, time-based hooks and Ctrl-C wait so long."""


class CheckedLoop:
    """A `StepLoop` over a session's iterators whose step checks are looked at after each call.

    Args:
        session: the session.
        every: tensors fetched at every step.
        targets: operations run at every step.
        after: tensors fetched once after the last step of a call.
        name: what the executable is called where compilations are counted.
    """

    def __init__(
        self,
        session: Session,
        every: Sequence[Tensor],
        targets: Sequence[Operation],
        after: Sequence[Tensor],
        name: str,
    ) -> None:
        self._checks = step_checks(session.graph)
        self._count = len(every)
        watched = [tensor for check in self._checks for tensor in check.tensors]
        state = session.state

        def source(op: Operation) -> Any:
            return cursor_of(state, op.attrs["iterator"])

        self.loop = StepLoop(session.graph, state, [*every, *watched], targets, after, source, name)
        self._most = 1
        self._secs_per_step = 0.0

    def run(self, steps: int) -> Steps:
        """Runs up to `steps` steps, fewer where the input ends or where they would take long.

        Raises:
            OutOfRangeError: the input has ended before the first of them.
            InvalidArgumentError: a step check refuses a value.
        """
        started = time.perf_counter()
        done = self.loop.run(min(steps, self._most))
        self._pace((time.perf_counter() - started) / done.count)
        position = self._count
        for check in self._checks:
            check.check(done.every[position : position + len(check.tensors)])
            position += len(check.tensors)
        return Steps(done.count, done.every[: self._count], done.after, done.ended)

    @property
    def has_input(self) -> bool:
        """Whether the steps take elements of an iterator, so that they end with it."""
        return any(
            op.type == "IteratorGetNext"
            for segment in self.loop.plan.segments
            for op in segment.ops
        )

    def _pace(self, secs_per_step: float) -> None:
        """As many steps a call as fit into CALL_SECS, approached: the first call compiles."""
        fitting = int(CALL_SECS / max(secs_per_step, 1e-9))
        self._most = max(1, min(self._most * 16, fitting))


def run_training(
    session: Session,
    train_op: Operation | Tensor,
    loss: Tensor,
    hooks: Sequence[SessionRunHook],
) -> NDArray[Any] | None:
    """Trains until a hook stops it or the input ends.

    Args:
        session: a session whose variables have values.
        train_op: what a step runs.
        loss: a scalar, fetched at every step.
        hooks: already begun (`begin`, `after_create_session`).

    Returns:
        The last step's loss, or None where there was none.

    Raises:
        FailedPreconditionError: the train operation does not move the global step.
    """
    target = train_op.op if isinstance(train_op, Tensor) else train_op
    counter = get_global_step(session.graph)
    if counter is None:
        raise FailedPreconditionError(None, None, "Global step should be created before training.")
    step = int(session.run(counter))
    counted = counter._as_graph_element()
    loop = CheckedLoop(session, [loss], [target], [counted], "train_step")
    last: NDArray[Any] | None = None
    stop: list[str] = []
    while not stop:
        until, due = _next_stretch(hooks, step)
        asked = _before(due, session, target, loss)
        fetching = any(wanted is not None for _, wanted in asked.values())
        first = step
        try:
            if fetching:
                losses, step = _one_with_fetches(session, target, loss, counted, asked, stop)
            else:
                done = loop.run(until - step)
                losses, step = done.every[0], int(done.after[0])
                if done.ended:
                    stop.append("the input has ended")
                for hook, (context, _) in asked.items():
                    hook.after_run(context, SessionRunValues(None))
                    _note_stop(hook, context, stop)
        except OutOfRangeError:
            break
        if step == first:
            raise FailedPreconditionError(
                None,
                target,
                explain(
                    "the train_op does not increase the global step: the training would never end",
                    made_at=target.source,
                    hint="pass global_step=get_global_step() to minimize() or apply_gradients()",
                ),
            )
        finished = FinishedSteps(first, losses, session, stop)
        for hook in hooks:
            hook.after_steps(finished)
        last = losses[-1]
    return last


def _next_stretch(hooks: Sequence[SessionRunHook], step: int) -> tuple[int, list[SessionRunHook]]:
    """The global step to run to without asking anybody, and the hooks that must be asked about the
    next step.

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


_Asked = dict[SessionRunHook, tuple[SessionRunContext, SessionRunArgs | None]]


def _before(
    hooks: Sequence[SessionRunHook], session: Session, target: Operation, loss: Tensor
) -> _Asked:
    """Calls `before_run` and keeps what the hooks ask for."""
    asked: _Asked = {}
    for hook in hooks:
        context = SessionRunContext(SessionRunArgs([target, loss]), session)
        asked[hook] = (context, hook.before_run(context))
    return asked


def _note_stop(hook: SessionRunHook, context: SessionRunContext, stop: list[str]) -> None:
    if context.stop_requested:
        stop.append(f"{type(hook).__name__} asked for it")


def _one_with_fetches(
    session: Session,
    target: Operation,
    loss: Tensor,
    counted: Tensor,
    asked: _Asked,
    stop: list[str],
) -> tuple[NDArray[Any], int]:
    """One step with what the hooks asked for, by a plain run of the session."""
    checks = step_checks(session.graph)
    feeds: dict[Any, Any] = {}
    fetches: list[Any] = []
    for _, wanted in asked.values():
        fetches.append(None if wanted is None else wanted.fetches)
        if wanted is not None and wanted.feed_dict:
            feeds.update(wanted.feed_dict)
    chosen = [each for each in fetches if each is not None]
    watched = [list(check.tensors) for check in checks]
    _, value, given, checked = session.run([target, loss, chosen, watched], feeds or None)
    for check, values in zip(checks, checked, strict=True):
        check.check([np.asarray(each)[None] for each in values])
    results = iter(given)
    for (hook, (context, _)), fetched in zip(asked.items(), fetches, strict=True):
        hook.after_run(context, SessionRunValues(None if fetched is None else next(results)))
        _note_stop(hook, context, stop)
    return np.asarray([value]), int(session.run(counted))
