"""Trials of an experiment: `tune` runs them in processes, and writes the best as an experiment.

`model_dir/tune` has the study (`journal.log`), the experiment that is searched (`experiment.yaml`),
a folder for each trial with its events, and the best settings (`best.yaml`).
"""

from __future__ import annotations

import logging
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.experiment import document, earlier_run, folds, held_out, row_sets, runner
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import dump_experiment, load_experiment
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.sections import leaves
from estimatorkit.experiment.tuning.search import Report, Search, Settings, Trial
from estimatorkit.interop.summary_writer import FileWriter
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import plain, remove_leftovers, write_durably

FOLDER = "tune"
EXPERIMENT = "experiment.yaml"
BEST = "best.yaml"

_POLL_SECS = 0.2


def monitor(experiment: Experiment) -> MetricMonitor:
    """The comparison of trials."""
    chosen = held_out.selection(experiment)
    return MetricMonitor(chosen.metric, chosen.mode)


def opened(folder: Path, experiment: Experiment, seed: int | None = None) -> Search:
    """The search in `model_dir/tune`."""
    return Search(experiment.tune or {}, monitor(experiment), folder, seed)


def searched(model_dir: Path) -> tuple[Path, Experiment] | None:
    """The folder and the experiment of the search that a model's folder has or comes from."""
    for folder in (model_dir / FOLDER, model_dir.parent):
        if folder.name == FOLDER and (folder / EXPERIMENT).is_file():
            return folder, load_experiment(folder / EXPERIMENT)
    return None


def tune(
    experiment: Experiment,
    trials: int,
    processes: int,
    restart: bool = False,
    show: Callable[[Trial], None] = lambda trial: None,
) -> tuple[Search, Experiment | None]:
    """Runs trials until there are so many, and writes the best settings.

    Args:
        trials: how many in all; those of an earlier search with the same settings count.
        processes: how many run at once.
        restart: keep an earlier search next to the new one.
        show: gets each trial that has ended.

    Returns:
        The search, and the experiment with the best settings; None if no trial was completed.

    Raises:
        ConfigurationError: a setting of `tune` is invalid, or there is a search with others.
    """
    folder = Path(experiment.model_dir) / FOLDER
    prepare(folder, experiment, restart)
    try:
        with FileLock(folder / "search.lock", timeout=0):
            remove_leftovers(folder)
            search = opened(folder, experiment)
            search.take_over()
            search.suggest(current_settings(experiment))
            search.suggest_all(trials)
            _run_in_processes(folder, search, trials, processes, show)
    except Timeout:
        raise ConfigurationError.explained(
            f"{folder}: another search is running there",
            hint="wait for it, or use another name=... or --model-dir",
        ) from None
    return search, write_best(folder, search)


def prepare(folder: Path, experiment: Experiment, restart: bool) -> None:
    """Writes the experiment to be searched.

    Raises:
        ConfigurationError: see `tune`.
    """
    if not experiment.tune:
        raise ConfigurationError.explained(
            "there is nothing to search",
            expected="settings by their dotted names, and their values",
            hint="tune: {train.batch_size: {choice: [32, 128]}}",
        )
    path = folder / EXPERIMENT
    if path.is_file() and (restart or not (folder / "journal.log").is_file()):
        earlier_run.move_aside(folder)
    if path.is_file():
        differences = earlier_run.differences(path, experiment)
        if differences:
            name, old, new = differences[0]
            raise ConfigurationError.explained(
                f"{folder}: the search there is of another experiment",
                expected=f"the settings of {path}",
                received=f"{name}: {new} (there {old})",
                hint="--restart begins a new search and keeps the old one beside it",
            )
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(path, dump_experiment(experiment).encode())
    for name, dimension in experiment.tune.items():
        values = dimension.value if dimension.kind == "choice" else dimension.value[:1]
        for value in values:
            load_experiment(path, [_override(name, value)])


def current_settings(experiment: Experiment) -> Settings:
    """The experiment's own values of the settings that are searched."""
    return {
        name: value
        for name, value in leaves(experiment.model_dump(mode="json"))
        if name in (experiment.tune or {})
    }


def _override(name: str, value: Any) -> str:
    return f"{name}={document.dump(value, flow=True)}"


def _run_in_processes(
    folder: Path, search: Search, trials: int, processes: int, show: Callable[[Trial], None]
) -> None:
    shown = {each.number for each in search.trials() if each.state != "running"}

    def show_new() -> None:
        for each in search.trials():
            if each.state != "running" and each.number not in shown:
                shown.add(each.number)
                show(each)

    while len(search.trials()) < trials:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context) as pool:
            waiting = {pool.submit(work, folder, trials, each) for each in range(processes)}
            try:
                while waiting:
                    done, waiting = wait(waiting, _POLL_SECS, FIRST_COMPLETED)
                    show_new()
                    for each in done:
                        each.result()
            except BrokenProcessPool:  # out of memory, or killed
                search.give_up_running("its process died")
    show_new()


def work(folder: Path, trials: int, index: int) -> None:
    """Runs trials in this process, which logs to a file in the folder."""
    log = folder / f"process-{index}.log"
    sys.stderr = open(  # noqa: SIM115 - until the process ends
        log, "a", encoding="utf-8", buffering=1, opener=plain
    )
    logger.setLevel(logging.ERROR)
    experiment = load_experiment(folder / EXPERIMENT)
    seed = None if experiment.seed is None else experiment.seed + index
    search = opened(folder, experiment, seed)
    search.run(lambda settings, report: run_trial(folder, experiment, settings, report), trials)


def run_trial(
    folder: Path, experiment: Experiment, settings: Settings, report: Report
) -> float | None:
    """Trains with some settings in a separate folder, and reports the evaluations.

    Returns:
        The mean over folds; None without cross-validation: what was reported counts.
    """
    name = f"trial-{report.number}"
    overrides = [_override(key, value) for key, value in settings.items()]
    overrides += [f"name={name}", "tune=null", "run.keep_checkpoint_max=1"]
    overrides.append("evaluate.training=false")
    overrides.append(_override("model_dir", str(folder / name)))
    trial = held_out.trial(load_experiment(folder / EXPERIMENT, overrides))
    apart = held_out.is_apart(experiment)
    report.label = held_out.selection(experiment).evaluation if apart else row_sets.MAIN
    with FileWriter(trial.model_dir) as writer:
        writer.add_summary(_hyperparameters(settings, name))
    if trial.evaluate.folds is not None:
        return folds.score(trial, held_out.selection(experiment).metric, report)
    runner.train(trial.model_copy(update={"export": ()}), hooks=[report])
    return None


def _hyperparameters(settings: Settings, name: str) -> Any:
    """The summary that TensorBoard's HParams page reads."""
    from tensorboard.plugins.hparams import summary_v2

    plain = {
        key: value if isinstance(value, bool | int | float | str) else str(value)
        for key, value in settings.items()
    }
    return summary_v2.hparams_pb(plain, trial_id=name)


def ranking_rows(experiment: Experiment) -> str:
    """The display name of the rows by which trials are ranked."""
    if experiment.evaluate.folds is not None:
        return f"{experiment.evaluate.folds} folds of {row_sets.training_source(experiment)}"
    trial = held_out.trial(experiment)
    apart = held_out.selection(experiment).evaluation if held_out.is_apart(experiment) else None
    return row_sets.evaluation_source(trial, apart or row_sets.MAIN)


def write_best(folder: Path, search: Search) -> Experiment | None:
    """Writes the experiment with the best settings, and loads it."""
    best = search.best()
    if best is None:
        return None
    overrides = [_override(key, value) for key, value in best.settings.items()]
    overrides += ["tune=null", _override("model_dir", str(folder / "best"))]
    found = held_out.of_best_settings(load_experiment(folder / EXPERIMENT, overrides))
    folds.keep(folder / f"trial-{best.number}", found.model_dir)
    write_durably(folder / BEST, dump_experiment(found).encode())
    return load_experiment(folder / BEST)
