"""Training and evaluation loops of `tf.contrib.training`, on monitored sessions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.compat.train.sessions.monitored_session import MonitoredSession
from estimatorkit.compat.train.sessions.monitored_training import MonitoredTrainingSession
from estimatorkit.compat.train.sessions.session_creators import ChiefSessionCreator
from estimatorkit.core import builtin_ops, nest
from estimatorkit.core.builtin_ops import group
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import control_dependencies, get_collection, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.interop.summary_writer import FileWriterCache
from estimatorkit.logger import logger
from estimatorkit.ops.debug.debug import check_numerics as checked_numerics
from estimatorkit.ops.files import summary
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.ops.variables.variable_collections import trainable_variables
from estimatorkit.ops.variables.variable_scope import get_variable
from estimatorkit.storage.checkpoint_reader import checkpoints_iterator
from estimatorkit.train.global_steps import get_or_create_global_step, global_step
from estimatorkit.train.hooks.hooks import SessionRunArgs, SessionRunHook
from estimatorkit.train.hooks.session_hooks import FinalOpsHook
from estimatorkit.train.optimizers import clip

Pairs = list[tuple[Any, Any]]
_EVAL_STEP = "eval_step"
_COUNTED = "_counted_eval_ops"
_OF_THE_GRAPH: Any = 0  # TensorFlow's default for `global_step`


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _OF_THE_GRAPH,
    update_ops: Sequence[Any] | None = None,
    variables_to_train: Sequence[Any] | None = None,
    transform_grads_fn: Callable[[Pairs], Pairs] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = 1,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Any:
    """A tensor that trains one step and returns the loss (`tf.contrib.training.create_train_op`).

    Args:
        total_loss: a scalar.
        optimizer: a `train.Optimizer`.
        global_step: the step counter; the graph's by default, None for none.
        update_ops: operations that run before the loss; those in UPDATE_OPS by default.
        variables_to_train: all trainable variables by default.
        transform_grads_fn: a function from (gradient, variable) pairs to such pairs.
        summarize_gradients: add summaries of the gradients.
        check_numerics: raise an error if the loss is not finite.
        gate_gradients, aggregation_method, colocate_gradients_with_ops: accepted for TensorFlow's
            signature.

    Raises:
        ValueError: there is nothing to train.
        InvalidArgumentError: (when run) the loss is not finite.
    """
    loss = convert_to_tensor(total_loss)
    step = get_or_create_global_step() if global_step is _OF_THE_GRAPH else global_step
    collected = get_collection(GraphKeys.UPDATE_OPS)
    updates = collected if update_ops is None else list(update_ops)
    if not set(collected).issubset(updates):
        logger.warning(
            "update_ops in create_train_op does not contain all the update_ops in "
            "GraphKeys.UPDATE_OPS"
        )
    graph = get_default_graph()
    if updates:
        with graph.control_dependencies(list(updates)):
            loss = builtin_ops.identity(loss)
    variables = trainable_variables() if variables_to_train is None else list(variables_to_train)
    if not variables:
        raise value_error("create_train_op: there are no variables to train")
    pairs = optimizer.compute_gradients(loss, variables)
    if transform_grads_fn is not None:
        pairs = transform_grads_fn(pairs)
    if summarize_gradients:
        with graph.name_scope("summarize_grads"):
            add_gradients_summaries(pairs)
    update = optimizer.apply_gradients(pairs, global_step=step)
    with graph.name_scope("train_op"):
        if check_numerics:
            loss = checked_numerics(loss, "LossTensor is inf or nan")
        with graph.control_dependencies([update]):
            made = builtin_ops.identity(loss)
    graph.add_to_collection(GraphKeys.TRAIN_OP, made)
    return made


# -- gradients


def add_gradients_summaries(grads_and_vars: Pairs) -> list[Any]:
    """Adds a histogram and a norm summary for each gradient."""
    found = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            logger.info("Var %s has no gradient", variable.op.name)
            continue
        values = getattr(gradient, "values", gradient)
        found.append(summary.histogram(f"{variable.op.name}_gradient", values))
        norm = clip.global_norm([values])
        found.append(summary.scalar(f"{variable.op.name}_gradient_norm", norm))
    return found


def clip_gradient_norms(gradients_to_variables: Pairs, max_norm: float) -> Pairs:
    """Clips each gradient to a norm of at most `max_norm`."""
    return [
        (None if gradient is None else _clipped(gradient, max_norm), variable)
        for gradient, variable in gradients_to_variables
    ]


def _clipped(gradient: Any, max_norm: float) -> Any:
    if isinstance(gradient, IndexedSlices):
        values = clip.clip_by_norm(gradient.all_values, max_norm)
        return gradient.with_values(values)
    return clip.clip_by_norm(gradient, max_norm)


def clip_gradient_norms_fn(max_norm: float) -> Callable[[Pairs], Pairs]:
    """`clip_gradient_norms` for `create_train_op(transform_grads_fn=...)`."""
    return lambda pairs: clip_gradient_norms(pairs, max_norm)


def multiply_gradients(grads_and_vars: Pairs, gradient_multipliers: Mapping[Any, Any]) -> Pairs:
    """Multiplies the gradients of some variables by factors.

    Args:
        grads_and_vars: (gradient, variable) pairs.
        gradient_multipliers: factors by variable or its operation's name.

    Raises:
        ValueError: an argument has the wrong type, or a variable with a factor has no gradient.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, dict):
        raise ValueError("`gradient_multipliers` must be a dict.")
    scaled = []
    for gradient, variable in grads_and_vars:
        key = variable if variable in gradient_multipliers else variable.op.name
        if key in gradient_multipliers:
            if gradient is None:
                raise ValueError(f"Requested multiple of `None` gradient: {variable.op.name}.")
            scaled.append((clip.scale_gradient(gradient, gradient_multipliers[key]), variable))
        else:
            scaled.append((gradient, variable))
    return scaled


# -- loops


def train(
    train_op: Any,
    logdir: str | None,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: Any = None,
    max_wait_secs: int = 7200,
) -> Any:
    """Runs a training operation in a `MonitoredTrainingSession` until a hook or the input ends it.

    Args:
        train_op: for example the result of `create_train_op`.
        logdir: the directory of checkpoints and summaries; None for none.
        master, is_chief, scaffold, hooks, chief_only_hooks, config, max_wait_secs,
            save_checkpoint_secs, save_summaries_steps: see `MonitoredTrainingSession`.

    Returns:
        The operation's last value; None if no step ran.

    Raises:
        ValueError: something is to be saved, but there is no `logdir`.
    """
    if logdir is None and is_chief and (save_summaries_steps or save_checkpoint_secs):
        raise ValueError("logdir cannot be None when save_summaries_steps or save_checkpoint_secs")
    loss = None
    with MonitoredTrainingSession(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        while not session.should_stop():
            loss = session.run(train_op)
    return loss


def get_or_create_eval_step() -> Any:
    """The graph's counter of evaluated batches: a local int64 variable."""
    found = get_collection(GraphKeys.EVAL_STEP)
    if found:
        return found[0]
    return get_variable(
        _EVAL_STEP,
        [],
        int64,
        Zeros(),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )


class StopAfterNEvalsHook(SessionRunHook):
    """Stops an evaluation after a number of batches.

    Args:
        num_evals: the number of batches; None for all. The hook reads the evaluation step (see
            `get_or_create_eval_step`), which `evaluate_once` or the program increments.
        log_progress: log the progress.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._count = num_evals
        self._log_progress = log_progress
        self._completed: Any = None

    def begin(self) -> None:
        """Creates the evaluation step, unless `evaluate_once` did."""
        if self._completed is None:
            self._completed = get_or_create_eval_step().assign_add(1)

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._completed = updated_eval_step

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Fetches the evaluation step after the run."""
        return SessionRunArgs(self._completed)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Requests a stop."""
        done = int(run_values.results)
        if self._log_progress and self._count is not None:
            logger.info("Evaluation [%d/%d]", done, self._count)
        if self._count is not None and done >= self._count:
            run_context.request_stop()


class _FreshStepHook(SessionRunHook):
    """Resets the evaluation step, which the graph's initializers may not include, to 0."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(get_or_create_eval_step().initializer)


class SummaryAtEndHook(SessionRunHook):
    """Writes summaries when an evaluation ends.

    Args:
        log_dir: the directory of the event file.
        summary_writer: a `FileWriter`, instead of `log_dir`.
        summary_op: a serialized summary; all summaries of the graph by default.
        feed_dict: the feeds of `summary_op`.

    Raises:
        ValueError: neither `log_dir` nor `summary_writer` is given.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        summary_writer: Any = None,
        summary_op: Any = None,
        feed_dict: Any = None,
    ) -> None:
        if log_dir is None and summary_writer is None:
            raise ValueError("One of log_dir or summary_writer should be used.")
        self._log_dir, self._writer = log_dir, summary_writer
        self._given, self._feed_dict = summary_op, feed_dict
        self._summary: Any = None
        self._step: Any = None

    def begin(self) -> None:
        """Finds the graph's summaries and global step."""
        self._summary = summary.merge_all() if self._given is None else self._given
        self._step = get_or_create_global_step()

    def end(self, session: Any) -> None:
        """Writes the summaries."""
        writer = self._writer or FileWriterCache.get(self._log_dir or "")
        if self._summary is not None:
            text = session.run(self._summary, self._feed_dict)
            writer.add_summary(text, global_step(session, self._step))
        writer.flush()


def evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
) -> Any:
    """Evaluates a checkpoint: runs operations until a hook or the input ends it.

    Args:
        checkpoint_path: the checkpoint; None for initial values.
        master: the session's target.
        scaffold: a `Scaffold`.
        eval_ops: run repeatedly; None for nothing.
        feed_dict: the feeds of `eval_ops`.
        final_ops, final_ops_feed_dict: run once at the end, with these feeds.
        hooks: such as `StopAfterNEvalsHook`.
        config: a `ConfigProto`.

    Returns:
        The values of `final_ops`; None if there are none.
    """
    eval_ops = _counted(eval_ops, hooks or ())
    return _evaluate(
        checkpoint_path,
        master,
        scaffold,
        eval_ops,
        feed_dict,
        final_ops,
        final_ops_feed_dict,
        hooks,
        config,
    )


def _counted(eval_ops: Any, hooks: Sequence[SessionRunHook]) -> Any:
    """The operations, followed by an increment of the evaluation step that hooks read."""
    step = get_or_create_eval_step()
    if eval_ops is None:
        return None
    ops = nest.flatten(eval_ops)
    made = get_default_graph().get_collection_ref(_COUNTED)
    completed = next((count for known, count in made if known == ops), None)
    if completed is None:
        with control_dependencies([group(*ops)]):
            completed = step.assign_add(1)
        made.append((ops, completed))  # the graph may be finalized before the next checkpoint
    for hook in hooks:
        if isinstance(hook, StopAfterNEvalsHook):
            hook._set_evals_completed_tensor(completed)
    return [eval_ops, completed]


def _evaluate(
    checkpoint_path: str | None,
    master: str,
    scaffold: Any,
    eval_ops: Any,
    feed_dict: Any,
    final_ops: Any,
    final_ops_feed_dict: Any,
    hooks: Sequence[SessionRunHook] | None,
    config: Any,
) -> Any:
    final = FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = ChiefSessionCreator(
        scaffold=scaffold,
        checkpoint_filename_with_path=checkpoint_path,
        master=master,
        config=config,
    )
    with MonitoredSession(
        session_creator=creator, hooks=[_FreshStepHook(), *(hooks or ()), final]
    ) as session:
        logger.info("Starting evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime()))
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    return final.final_ops_values


def evaluate_repeatedly(
    checkpoint_dir: str,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:
    """Runs `evaluate_once` for each new checkpoint of a directory.

    Args:
        checkpoint_dir: the directory.
        eval_interval_secs: the minimum number of seconds between the starts of evaluations.
        max_number_of_evaluations: stop after this many.
        timeout: seconds to wait for a checkpoint.
        timeout_fn: called after `timeout`; returns whether to stop.
        master, scaffold, eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks, config: see
            `evaluate_once`.

    Returns:
        The last values of `final_ops`.
    """
    paths = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    eval_ops = _counted(eval_ops, hooks or ())
    rest = (master, scaffold, eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks, config)
    return evaluate_each(lambda path: _evaluate(path, *rest), paths, max_number_of_evaluations)


def evaluate_each(
    evaluate: Callable[[str], Any], paths: Iterable[str], max_number_of_evaluations: int | None
) -> Any:
    """Evaluates checkpoints in order, at most so many; returns the last result."""
    found = None
    for count, path in enumerate(paths, 1):
        found = evaluate(path)
        if count == max_number_of_evaluations:
            break
    return found


__all__ = [
    "StopAfterNEvalsHook",
    "SummaryAtEndHook",
    "add_gradients_summaries",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
    "create_train_op",
    "evaluate_once",
    "evaluate_repeatedly",
    "get_or_create_eval_step",
    "multiply_gradients",
    "train",
]
