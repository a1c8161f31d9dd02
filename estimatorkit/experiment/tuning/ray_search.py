"""Trials of an experiment by Ray Tune, on the machines of a cluster.

Ray Tune runs the trials and ends bad ones by its median rule; Optuna, by Ray's adapter, chooses
the settings in the study of the folder, so that searches of both kinds continue each other's
trials. The folder has to be on storage that all machines share.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.distribute.launch.ray_connection import connected_ray
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tuning.search import Report, Search, Trial
from estimatorkit.experiment.tuning.trials import (
    EXPERIMENT,
    FOLDER,
    current_settings,
    monitor,
    opened,
    prepare,
    run_trial,
    write_best,
)
from estimatorkit.logger import logger

_METRIC = "best"
"""What trials report: the best value so far."""


def tune(
    experiment: Experiment,
    trials: int,
    address: str,
    restart: bool = False,
    show: Callable[[Trial], None] = lambda trial: None,
) -> tuple[Search, Experiment | None]:
    """Runs trials until there are so many, and writes the best settings.

    Args:
        trials: how many in all; those of an earlier search with the same settings count.
        address: of the cluster, such as ray://head:10001 or auto; 'local' starts one here.
        restart: keep an earlier search next to the new one.
        show: gets each trial that has ended.

    Returns:
        The search, and the experiment with the best settings; None if no trial was completed.

    Raises:
        ConfigurationError: as `trials.tune`.
        ImportError: Ray or Optuna is not installed.
    """
    folder = (Path(experiment.model_dir) / FOLDER).absolute()
    prepare(folder, experiment, restart)
    search = opened(folder, experiment)
    search.take_over()
    search.suggest(current_settings(experiment))
    search.suggest_all(trials)
    shown = {each.number for each in search.trials()}
    left = trials - len(search.trials())
    if left > 0:
        _run(search, left, folder, address)
    for each in search.trials():
        if each.number not in shown:
            show(each)
    return search, write_best(folder, search)


def _run(search: Search, trials: int, folder: Path, address: str) -> None:
    """Runs trials by Ray Tune."""
    try:
        connected_ray(address)
        from ray import tune as ray_tune
        from ray.tune.schedulers import MedianStoppingRule
        from ray.tune.search.optuna import OptunaSearch
    except ImportError as error:
        raise ImportError(
            explain("a search on a cluster needs Ray", hint="pip install 'estimatorkit[ray,tune]'")
        ) from error
    chooser = OptunaSearch(
        {name: each.distribution() for name, each in search.space.items()},
        metric=_METRIC,
        mode=search.monitor.mode,
        study_name=search.study.study_name,
        storage=search.storage,
    )
    ray_tune.Tuner(
        functools.partial(_trial, str(folder)),
        tune_config=ray_tune.TuneConfig(
            metric=_METRIC,
            mode=search.monitor.mode,
            num_samples=trials,
            search_alg=chooser,
            scheduler=MedianStoppingRule(
                "training_iteration", grace_period=2, min_samples_required=5
            ),
        ),
        run_config=ray_tune.RunConfig(storage_path=str(folder), name="ray", verbose=1),
    ).fit()


def _trial(folder: str, parameters: dict[str, Any]) -> None:
    """Runs one trial in a process of Ray."""
    from ray import tune as ray_tune

    logger.setLevel(logging.ERROR)
    experiment = load_experiment(Path(folder) / EXPERIMENT)
    number = ray_tune.get_context().get_trial_id()
    report = Report(_RayTrial(number, ray_tune.report), monitor(experiment))
    space = experiment.tune or {}
    settings = {name: each.setting(parameters[name]) for name, each in space.items()}
    run_trial(Path(folder), experiment, settings, report)


class _RayTrial:
    """What `Report` needs of a trial of Optuna; Ray ends bad ones itself."""

    def __init__(self, number: str, report: Callable[[dict[str, float]], None]) -> None:
        self.number = number
        self._tell = report

    def report(self, value: float, step: int) -> None:
        """Reports the value to Ray."""
        self._tell({_METRIC: value})

    def should_prune(self) -> bool:
        """Never: see above."""
        return False
