"""`slim.evaluation`: evaluations of checkpoints, with summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimatorkit.compat.contrib import training as contrib_training
from estimatorkit.storage.checkpoint_reader import checkpoints_iterator, wait_for_new_checkpoint
from estimatorkit.train.saving.saver import Saver
from estimatorkit.train.sessions.scaffold import Scaffold

_DEFAULT: Any = object()
Feeds = Mapping[Any, Any] | None


def evaluate_once(
    master: str,
    checkpoint_path: str | None,
    logdir: str,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Feeds = None,
    eval_op: Any = None,
    eval_op_feed_dict: Feeds = None,
    final_op: Any = None,
    final_op_feed_dict: Feeds = None,
    summary_op: Any = _DEFAULT,
    summary_op_feed_dict: Feeds = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Sequence[Any] | None = None,
) -> Any:
    """Evaluates a checkpoint, and writes summaries (`tf.contrib.slim.evaluation.evaluate_once`).

    Args:
        master: the session's target.
        checkpoint_path: the checkpoint.
        logdir: the directory of the summaries.
        num_evals: the number of runs of `eval_op`.
        initial_op, initial_op_feed_dict: run first, with these feeds.
        eval_op, eval_op_feed_dict: run `num_evals` times, such as updates of metrics.
        final_op, final_op_feed_dict: run at the end.
        summary_op, summary_op_feed_dict: the summaries; by default all of the graph, None for none.
        variables_to_restore: all by default.
        session_config: a `ConfigProto`.
        hooks: additional hooks.

    Returns:
        The values of `final_op`.
    """
    chosen: list[Any] = [contrib_training.StopAfterNEvalsHook(num_evals)]
    if summary_op is not None:
        given = None if summary_op is _DEFAULT else summary_op
        chosen.append(
            contrib_training.SummaryAtEndHook(
                logdir, summary_op=given, feed_dict=summary_op_feed_dict
            )
        )
    saver = None if variables_to_restore is None else Saver(variables_to_restore)
    return contrib_training.evaluate_once(
        checkpoint_path,
        master,
        Scaffold(init_op=initial_op, init_feed_dict=initial_op_feed_dict, saver=saver),
        eval_op,
        eval_op_feed_dict,
        final_op,
        final_op_feed_dict,
        [*chosen, *(hooks or ())],
        session_config,
    )


def evaluation_loop(
    master: str,
    checkpoint_dir: str,
    logdir: str,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Feeds = None,
    init_fn: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Feeds = None,
    final_op: Any = None,
    final_op_feed_dict: Feeds = None,
    summary_op: Any = _DEFAULT,
    summary_op_feed_dict: Feeds = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: int | None = None,
    session_config: Any = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
    hooks: Sequence[Any] | None = None,
) -> Any:
    """`evaluate_once` for each new checkpoint of a directory.

    Args:
        checkpoint_dir: the directory.
        init_fn: accepted for compatibility only.
        eval_interval_secs, max_number_of_evaluations, timeout, timeout_fn: see
            `contrib.training.evaluate_repeatedly`.
        master, logdir, num_evals, initial_op, initial_op_feed_dict, eval_op, eval_op_feed_dict,
            final_op, final_op_feed_dict, summary_op, summary_op_feed_dict, variables_to_restore,
            session_config, hooks: see `evaluate_once`.

    Returns:
        The last values of `final_op`.
    """
    paths = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    rest = (
        logdir,
        num_evals,
        initial_op,
        initial_op_feed_dict,
        eval_op,
        eval_op_feed_dict,
        final_op,
        final_op_feed_dict,
        summary_op,
        summary_op_feed_dict,
        variables_to_restore,
        session_config,
        hooks,
    )
    return contrib_training.evaluate_each(
        lambda path: evaluate_once(master, path, *rest), paths, max_number_of_evaluations
    )


__all__ = ["checkpoints_iterator", "evaluate_once", "evaluation_loop", "wait_for_new_checkpoint"]
