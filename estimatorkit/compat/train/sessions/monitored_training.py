"""`MonitoredTrainingSession`: a monitored session with hooks for checkpoints and summaries."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from estimatorkit.compat.train.sessions.monitored_session import MonitoredSession
from estimatorkit.compat.train.sessions.session_creators import (
    ChiefSessionCreator,
    WorkerSessionCreator,
)
from estimatorkit.core.errors import value_error
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverHook
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.hooks.summary_hooks import StepCounterHook, SummarySaverHook
from estimatorkit.train.sessions.scaffold import Scaffold

_Path = str | os.PathLike[str]


class _Default:
    """The default of arguments for which None means disabled."""

    def __repr__(self) -> str:
        return "<default>"


USE_DEFAULT: Any = _Default()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: _Path | None = None,
    scaffold: Scaffold | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
    chief_only_hooks: Iterable[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: _Path | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """Returns a `MonitoredSession` that saves checkpoints and summaries.

    Source: `tf.compat.v1.train.MonitoredTrainingSession`.

    Args:
        master: the session's target.
        is_chief: whether this process initializes, restores and saves; others wait for it.
        checkpoint_dir: the folder of checkpoints; training resumes from the newest.
        scaffold: the operations; by default those of the graph.
        hooks: called around the runs.
        chief_only_hooks: additional hooks of the chief.
        save_checkpoint_secs: seconds between checkpoints; 600 by default, None or 0 for none.
        save_summaries_steps: steps between summaries; 100 by default, None or 0 for none.
        save_summaries_secs: seconds between summaries.
        config: the session's `ConfigProto`.
        stop_grace_period_secs: seconds for threads to end after `close`.
        log_step_count_steps: steps between values of 'global_step/sec'; None or 0 for none.
        max_wait_secs: the maximum time to wait for the chief, in seconds.
        save_checkpoint_steps: steps between checkpoints, instead of seconds.
        summary_dir: the folder of summaries; `checkpoint_dir` by default.
        save_graph_def: whether to write the graph with each checkpoint.
    """
    scaffold = scaffold or Scaffold()
    given = list(hooks or ())
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, given, stop_grace_period_secs)
    summary_steps, summary_secs = _cadence(save_summaries_steps, save_summaries_secs, (100, None))
    save_steps, save_secs = _cadence(save_checkpoint_steps, save_checkpoint_secs, (None, 600))
    chief_hooks: list[SessionRunHook] = list(chief_only_hooks or ())
    summaries = summary_dir or checkpoint_dir
    if summaries and log_step_count_steps:
        chief_hooks.append(StepCounterHook(log_step_count_steps, output_dir=summaries))
    if summaries and (summary_steps or summary_secs):
        chief_hooks.append(
            SummarySaverHook(summary_steps, summary_secs, summaries, scaffold=scaffold)
        )
    if checkpoint_dir and (save_steps or save_secs):
        chief_hooks.append(
            CheckpointSaverHook(
                os.fspath(checkpoint_dir),
                save_secs=save_secs,
                save_steps=save_steps,
                scaffold=scaffold,
                save_graph_def=save_graph_def,
            )
        )
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, [*chief_hooks, *given], stop_grace_period_secs)


def _cadence(steps: Any, secs: Any, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Resolves (steps, seconds); either one given disables the default of the other."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default
    chosen = tuple((None if each is USE_DEFAULT else each) or None for each in (steps, secs))
    if None not in chosen:
        raise value_error(
            "Can not provide both steps and seconds between checkpoints or summaries",
            received=f"{steps} steps and {secs} seconds",
            hint="pass None for one of them",
        )
    return chosen[0], chosen[1]
