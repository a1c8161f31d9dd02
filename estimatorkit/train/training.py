"""`run_training`: the training loop. Runs as many steps per XLA call as the hooks allow.

It takes a graph, a session, a train operation, a loss and hooks, and is independent of estimators.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.errors import FailedPreconditionError, OutOfRangeError, value_error
from estimatorkit.core.function_graph import acts, operations_within
from estimatorkit.core.registry import Role, role_of, takes_element
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.data.iterator_ops import cursor_of
from estimatorkit.data.sharded_dataset import has_more, report_trained, shared_iterators
from estimatorkit.distribute.replicas.replicas import INTERRUPTED, PeerStopped
from estimatorkit.logger import logger
from estimatorkit.runtime.loop import Steps, StepSpec
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.steps.compiled_loop import runs_alone
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
"""Target duration of a call in seconds: progress, timed hooks and Ctrl-C wait that long."""


SIGTERM_CAME = "SIGTERM came"
"""The stop reason of a process that is terminated, to be restarted."""

_LOOK_SECS = 0.1

LIKE_HOOKED = 1000
"""The most steps without hooks that run by the executable of steps with hooks: each takes half a
millisecond longer than in a loop, whose executable takes 1 to 2 s to compile."""

MOST_HOOKED_BYTES = 1 << 20
MOST_HOOKED_OPERATIONS = 20
"""Limits on what hooks fetch, and on the operations for it, which such steps run in vain."""

IDLE_STEPS = 100
"""Maximum steps without a change of the global step: gradients may be accumulated over a few."""


class EndedByHook(Exception):
    """A hook has raised the end of the input, or StopIteration: the loop ends, without an error."""


def _is_repeatable(op: Operation) -> bool:
    """Whether extra runs of an operation have no effects, on random numbers either."""
    ops = [op, *operations_within(op)]
    return not acts(op) and not any(registry.lookup(each.type).semantics.random for each in ops)


class CheckedLoop:
    """A `StepLoop` over a session's iterators, with hooks and step checks.

    `every` tensors are fetched and `targets` run at every step; `after` is fetched once after the
    last step of a call. `name` is the executable's name in compilation counts. `checks` are those
    of the graph by default. `is_brief`: see `StepSpec`.
    """

    def __init__(
        self,
        session: Session,
        every: Sequence[Tensor],
        targets: Sequence[Operation],
        after: Sequence[Tensor],
        name: str,
        checks: Sequence[StepCheck] | None = None,
        is_brief: bool = False,
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

        spec = StepSpec(self._watched, self._targets, self._after, source, name, watched, is_brief)
        self.loop = state.step_loop(spec)
        self._most = 1
        self._hooked: Sequence[_Question] | None = None
        self._like_hooked = LIKE_HOOKED if self.loop.runs_singly else 0
        self.is_interrupted = False
        """Whether another process ended the steps early because it received SIGTERM."""
        self.is_terminated = False
        """Whether this process received SIGTERM: others may continue, and it may come back."""

    def run(
        self,
        steps: int,
        hooks: Sequence[SessionRunHook] = (),
        stop: list[str] | None = None,
        until: float = math.inf,
    ) -> Steps:
        """Runs up to `steps` steps; fewer if the input ends, or to limit the time of a call.

        With `hooks`, one step is run, and they may add reasons to `stop`. The call ends when the
        first of `after` reaches `until`, which other processes may advance too.

        Raises:
            OutOfRangeError: the input ended before the first step.
            InvalidArgumentError: a step check failed.
            EndedByHook: a hook has ended the loop.
            PeerStopped: another process of the same steps has stopped.
        """
        with _ending_by_hooks():
            asked = _ask(hooks, self._session, [*self._targets, *self._every])
        if any(question.args is not None for question in asked):
            done, results = self._run_one(asked)
            if self._like_hooked and self._hooked is None:
                self._hooked = asked if self._is_light(asked, results) else ()
        elif self._hooked and self._like_hooked:
            self._like_hooked -= 1
            done, _ = self._run_one(self._hooked)
            results = [SessionRunValues(None)] * len(asked)
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
        with _ending_by_hooks():
            _tell(asked, results, [] if stop is None else stop)
        every = done.every[: len(self._every)]
        return Steps(done.count, every, done.after, done.ended, done.elements)

    def _run_one(self, asked: Sequence[_Question]) -> tuple[Steps, list[SessionRunValues]]:
        """Runs one step, with the hooks' fetches, as a plain run of the session."""
        session = self._session
        (watched, _), results = _run_asked(session, [self._watched, self._targets], asked)
        after = [np.asarray(value) for value in session.run(self._after)]
        return Steps(1, [np.asarray(value)[None] for value in watched], after, False), results

    def _is_light(self, asked: Sequence[_Question], results: Sequence[SessionRunValues]) -> bool:
        """Whether steps without hooks can run as the step that these have asked for."""
        if any(each.feeds or (each.args and each.args.options) for each in asked):
            return False
        fetched = [each.fetches for each in asked if each.fetches is not None]
        values = jax.tree.leaves([each.results for each in results])
        bytes_fetched = sum(np.asarray(each).nbytes for each in values)
        plan = self._session.plan([self._watched, self._targets, fetched])
        places = {op: part.place for part in plan.segments for op in part.ops}
        more = places.keys() - set(self.loop.operations)
        return (
            bytes_fetched <= MOST_HOOKED_BYTES
            and len(more) <= MOST_HOOKED_OPERATIONS
            and all(places[op] == "device" and _is_repeatable(op) for op in more)
            and not runs_alone(more)
        )

    def leave(self, stop: Sequence[str] = ()) -> None:
        """Announces to processes of the same steps that this one stops, for the given reasons."""
        self.is_terminated = SIGTERM_CAME in stop
        self.loop.leave(self.is_terminated)

    def goes_on(self, hooks: Sequence[SessionRunHook], stop: list[str]) -> bool:
        """Returns whether an ended input continues because other processes have returned shards.

        Waits until that is certain, while hooks may add reasons to `stop`.
        """
        state = self._session.state
        report_trained(state)
        if has_more(state) is None:
            logger.info("Waiting for other processes, which may return data shards.")
        while (found := has_more(state)) is None and not stop:
            for hook in hooks:
                hook.while_waiting(stop)
            time.sleep(_LOOK_SECS)
        return bool(found) and not stop

    @property
    def shares_input(self) -> bool:
        """Whether the input is sharded dynamically among processes.

        Its end may then be temporary.
        """
        return any(shared_iterators(self._session.state))

    @property
    def has_input(self) -> bool:
        """Whether the steps consume an iterator or queue."""
        return takes_input(self.loop.operations)

    def _pace(self, secs_per_step: float) -> None:
        """Adapts the steps per call to CALL_SECS; growth is limited as the first call compiles."""
        fitting = int(CALL_SECS / max(secs_per_step, 1e-9))
        self._most = max(1, min(self._most * 16, fitting))


@contextmanager
def _ending_by_hooks() -> Iterator[None]:
    try:
        yield
    except (OutOfRangeError, StopIteration) as error:
        raise EndedByHook from error


def takes_input(operations: Iterable[Operation]) -> bool:
    """Returns whether an operation consumes an iterator or queue."""
    return any(takes_element(op) or role_of(op) is Role.DEQUEUE for op in operations)


def training_loop(
    session: Session,
    train_op: Operation | Tensor,
    loss: Tensor,
    scalars: Sequence[Tensor] = (),
) -> CheckedLoop:
    """Returns the loop of `run_training`, for repeated use, which also fetches `scalars`.

    Raises FailedPreconditionError if there is no global step.
    """
    counter = get_global_step(session.graph)
    if counter is None:
        raise FailedPreconditionError(None, None, "Global step should be created before training.")
    target = train_op.op if isinstance(train_op, Tensor) else train_op
    every = [loss, *scalars]
    return CheckedLoop(session, every, [target], [counter._as_graph_element()], "train_step")


def run_training(
    session: Session,
    train_op: Operation | Tensor,
    loss: Tensor,
    hooks: Sequence[SessionRunHook],
    loop: CheckedLoop | None = None,
    tags: Sequence[str] = (),
) -> NDArray[Any] | None:
    """Trains until a hook stops it or the input ends; returns the last loss, None without a step.

    Variables must be initialized, and the hooks' `begin` and `after_create_session` called. `loop`
    is a reused `training_loop` for the same arguments, whose `scalars` hooks get by these `tags`.

    Raises:
        FailedPreconditionError: the train operation does not increment the global step.
        ValueError: the input is empty (TensorFlow silently trains no step).
    """
    target = train_op.op if isinstance(train_op, Tensor) else train_op
    loop = loop or training_loop(session, train_op, loss)
    step = int(session.run(get_global_step(session.graph)))
    last: NDArray[Any] | None = None
    rate = 1.0  # increment of the global step per step: 2 if two optimizers count
    pending: list[list[NDArray[Any]]] = []  # losses and scalars since the last increment
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
        except EndedByHook:
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
        pending.append(list(done.every))
        moved = int(done.after[0]) - step
        if moved > 0:
            rate = max(1.0, moved / done.count)
            columns = [np.concatenate(parts) for parts in zip(*pending, strict=True)]
            losses, *others = (losses_by_count(column, moved) for column in columns)
            element = done.element if moved == done.count else None
            scalars = dict(zip(tags, others, strict=True))
            finished = FinishedSteps(step, losses, session, stop, element, scalars)
            for hook in hooks:
                hook.after_steps(finished)
            step += moved
            pending = []
        elif (idle := sum(len(losses) for losses, *_ in pending)) >= IDLE_STEPS:
            raise _standing_still(target, idle)
    loop.leave(stop)
    return last


def losses_by_count(losses: NDArray[Any], moved: int) -> NDArray[Any]:
    """Resamples losses `(count,)` of steps to one per increment of the global step, `(moved,)`.

    The result is the mean over the steps of an increment, or repeats a step's loss.
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
    """Runs the session with hooks, which may add fetches, feeds and reasons to `stop`.

    Returns the values of `fetches`. Raises RuntimeError if a tensor is fed twice.
    """
    asked = _ask(hooks, session, fetches, feed_dict)
    values, results = _run_asked(session, fetches, asked, feed_dict, options, run_metadata)
    _tell(asked, results, stop)
    return values


def next_stretch(hooks: Sequence[SessionRunHook], step: int) -> tuple[int, list[SessionRunHook]]:
    """Returns the step to run to without calling hooks, and the hooks to call for the next step.

    A hook that overrides `before_run` or `after_run` is called around the step that it names, so a
    stretch ends before that step.
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
    """Returns the error for an empty input; `what` names its use, for example 'training'."""
    return value_error(
        f"the {what} input has no elements",
        expected="at least one batch",
        received="an empty dataset",
        hint="look at input_fn for an empty file, a filter that drops everything, skip() past "
        "the end, or drop_remainder with a batch larger than the data",
    )


def _standing_still(target: Operation, steps: int) -> FailedPreconditionError:
    return FailedPreconditionError.explained(
        "the train_op does not increment the global step, so training would never end",
        expected="an update that increments it",
        received=f"the same global step after {steps} steps",
        made_at=target.source,
        hint="pass global_step=get_global_step() to minimize() or apply_gradients()",
        op=target,
    )


class _Question(NamedTuple):
    """A hook with the result of its `before_run`."""

    hook: SessionRunHook
    context: SessionRunContext
    args: SessionRunArgs | None

    @property
    def fetches(self) -> Any:
        """The hook's fetches, or None."""
        return None if self.args is None else self.args.fetches

    @property
    def feeds(self) -> Mapping[Any, Any]:
        """The hook's feeds."""
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
    """Returns the values of `fetches`, and the values for each hook."""
    feeds: dict[Any, Any] = {}
    for question in asked:
        _check_feeds(feeds, question.feeds, "Same tensor is fed by two hooks.")
        feeds.update(question.feeds)
    if feed_dict:
        _check_feeds(feeds, feed_dict, "Same tensor is fed by a SessionRunHook and user.")
        feeds.update(feed_dict)
    options = _merged([options, *(each.args.options for each in asked if each.args is not None)])
    if options is not None and run_metadata is None:
        from estimatorkit.interop.protos import RunMetadata

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
    """Merges `RunOptions`: the highest trace level and the longest timeout."""
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
            stop.append(f"{type(hook).__name__} requested it")
