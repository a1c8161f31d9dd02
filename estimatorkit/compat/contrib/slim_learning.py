"""`slim.learning`: training with a `Supervisor` and a step function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimatorkit.compat.contrib import training as contrib_training
from estimatorkit.compat.contrib.training import (
    add_gradients_summaries,
    clip_gradient_norms,
    multiply_gradients,
)
from estimatorkit.compat.train.sessions.supervisor import Supervisor
from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import OutOfRangeError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.interop.protos import RunMetadata, RunOptions
from estimatorkit.logger import logger
from estimatorkit.ops.math import elementwise
from estimatorkit.runtime.xla.timeline import Timeline
from estimatorkit.train.global_steps import get_or_create_global_step

_DEFAULT = Supervisor.USE_DEFAULT
StepFunction = Callable[[Any, Any, Any, Mapping[str, Any]], tuple[Any, bool]]


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = 0,
    update_ops: Sequence[Any] | None = None,
    variables_to_train: Sequence[Any] | None = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = 1,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    check_numerics: bool = True,
) -> Any:
    """`contrib.training.create_train_op` with gradient multipliers and clipping.

    Args:
        clip_gradient_norm: the maximum norm of each gradient; 0 for no clipping.
        gradient_multipliers: factors by variable or its operation's name.
        total_loss, optimizer, global_step, update_ops, variables_to_train, summarize_gradients,
            gate_gradients, aggregation_method, colocate_gradients_with_ops, check_numerics: see
            there.
    """

    def transform(pairs: contrib_training.Pairs) -> contrib_training.Pairs:
        if gradient_multipliers:
            with get_default_graph().name_scope("multiply_grads"):
                pairs = multiply_gradients(pairs, gradient_multipliers)
        if clip_gradient_norm > 0:
            with get_default_graph().name_scope("clip_grads"):
                pairs = clip_gradient_norms(pairs, clip_gradient_norm)
        return pairs

    return contrib_training.create_train_op(
        total_loss,
        optimizer,
        global_step,
        update_ops,
        variables_to_train,
        transform,
        summarize_gradients,
        check_numerics=check_numerics,
    )


def train_step(
    sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Runs a step of `train`.

    Args:
        sess: the session.
        train_op: runs the step, and returns the loss.
        global_step: the variable that counts steps.
        train_step_kwargs: may contain the boolean tensors 'should_stop', 'should_log' and
            'should_trace'; the latter requires 'logdir', where the step's timeline is written.

    Returns:
        The loss, and whether to stop training.

    Raises:
        ValueError: there is 'should_trace' without 'logdir'.
    """
    should_trace = train_step_kwargs.get("should_trace")
    if should_trace is not None and "logdir" not in train_step_kwargs:
        raise ValueError("logdir must be present in train_step_kwargs when should_trace is present")
    traced: dict[str, Any] = {}
    if should_trace is not None and sess.run(should_trace):
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        traced = {"options": options, "run_metadata": RunMetadata()}
    start = time.monotonic()
    fetches = {
        "loss": train_op,
        "step": global_step,
        **{key: train_step_kwargs[key] for key in ("should_log",) if key in train_step_kwargs},
    }
    found = sess.run(fetches, **traced)
    if traced:
        path = Path(train_step_kwargs["logdir"]) / f"tf_trace-{sess.run(global_step)}.json"
        text = Timeline(traced["run_metadata"].step_stats).generate_chrome_trace_format()
        path.write_text(text, "utf-8")
        logger.info("Writing trace to %s", path)
    if found.get("should_log"):
        seconds = time.monotonic() - start
        logger.info(
            "global step %d: loss = %.4f (%.3f sec/step)", found["step"], found["loss"], seconds
        )
    should_stop = train_step_kwargs.get("should_stop")
    return found["loss"], should_stop is not None and bool(sess.run(should_stop))


def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: StepFunction = train_step,
    train_step_kwargs: Any = _DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = _DEFAULT,
    init_feed_dict: Mapping[Any, Any] | None = None,
    local_init_op: Any = _DEFAULT,
    init_fn: Callable[[Any], Any] | None = None,
    ready_op: Any = _DEFAULT,
    summary_op: Any = _DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = _DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Callable[[Any], Any] | None = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Trains until a number of steps or the end of the input (`tf.contrib.slim.learning.train`).

    Args:
        train_op: runs a step, and returns the loss; see `create_train_op`.
        logdir: the directory of checkpoints and summaries; None for none.
        train_step_fn: called like `train_step`; returns the loss, and whether to stop.
        train_step_kwargs: its last argument; None for {}, by default that of `train_step`.
        log_every_n_steps: steps between logs of the loss.
        graph: the graph; the default graph by default.
        global_step: the step counter; the graph's by default.
        number_of_steps: the final global step; None for unlimited.
        save_interval_secs: seconds between checkpoints.
        session_wrapper: wraps the session in which steps run.
        master, is_chief, init_op, init_feed_dict, local_init_op, init_fn, ready_op, summary_op,
            save_summaries_secs, summary_writer, saver, session_config: see `Supervisor`.
        trace_every_n_steps: steps between timelines written to `logdir` as Chrome traces
            `tf_trace-<step>.json`; never by default.
        startup_delay_steps, ignore_live_threads: accepted for compatibility only.

    Returns:
        The last loss; None if no step ran.

    Raises:
        ValueError: there is no training operation, fewer than 1 step, a `sync_optimizer`, or no
            `logdir` for the requested summaries, checkpoints or traces.
    """
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None:
        for what, given in (
            ("summary_op", summary_op is not _DEFAULT),
            ("saver", saver is not None),
            ("trace_every_n_steps", trace_every_n_steps is not None),
        ):
            if given:
                raise ValueError(f"Cannot provide {what} because logdir=None")
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")
    if sync_optimizer is not None:
        raise value_error(
            "slim.learning.train: sync_optimizer is not supported",
            expected="a MonitoredTrainingSession with sync_optimizer.make_session_run_hook()",
            received=repr(sync_optimizer),
        )
    with (graph or get_default_graph()).as_default() as current:
        step = get_or_create_global_step() if global_step is None else global_step
        if train_step_kwargs is _DEFAULT:
            with current.name_scope("train_step"):
                last = constant(False) if number_of_steps is None else step >= number_of_steps
                logs = elementwise.equal(elementwise.floormod(step, log_every_n_steps), 0)
                train_step_kwargs = {"should_stop": last, "should_log": logs}
                if trace_every_n_steps is not None:
                    traces = elementwise.equal(elementwise.floormod(step, trace_every_n_steps), 0)
                    train_step_kwargs |= {"should_trace": traces, "logdir": logdir}
        supervisor = Supervisor(
            graph=current,
            is_chief=is_chief,
            logdir=logdir,
            init_op=init_op,
            init_feed_dict=init_feed_dict,
            local_init_op=local_init_op,
            ready_op=ready_op,
            summary_op=summary_op,
            summary_writer=summary_writer,
            global_step=step,
            saver=_DEFAULT if saver is None else saver,
            save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs,
            init_fn=init_fn,
        )
    loss, should_stop = None, False
    with supervisor.managed_session(master, session_config) as session:
        inner = session if session_wrapper is None else session_wrapper(session)
        supervisor.start_queue_runners(session)
        try:
            while not (supervisor.should_stop() or should_stop):
                loss, should_stop = train_step_fn(inner, train_op, step, train_step_kwargs or {})
        except OutOfRangeError as error:
            logger.info("Caught OutOfRangeError. Stopping Training. %s", error)
        if supervisor.save_path is not None and supervisor.saver is not None:
            logger.info("Finished training! Saving model to disk.")
            supervisor.saver.save(session, supervisor.save_path, global_step=step)
    return loss


__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "create_train_op",
    "multiply_gradients",
    "train",
    "train_step",
]
