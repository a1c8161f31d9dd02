"""`estimatorkit tune`: a search for an experiment's best settings."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from estimatorkit.experiment.command import (
    Failure,
    Invocation,
    on_experiment,
    program,
    show_metrics,
    train_experiment,
)

if TYPE_CHECKING:
    from estimatorkit.experiment.schema import Experiment
    from estimatorkit.experiment.tuning.search import Search, Trial


@click.command()
@on_experiment
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1), help="In all.")
@click.option(
    "--processes",
    default=max(1, (os.cpu_count() or 1) // 2),
    show_default="one for two cores",
    type=click.IntRange(1),
    help="How many trials run at once.",
)
@click.option("--restart", is_flag=True, help="Keep an earlier search beside a new one.")
@click.option(
    "--ray", metavar="ADDRESS", help="Run trials by Ray Tune on a cluster; 'local' starts one."
)
def tune(
    invocation: Invocation, trials: int, processes: int, restart: bool, ray: str | None
) -> None:
    """Search for the best settings of CONFIG (its key `tune`), and train with them.

    A search that was interrupted resumes when the command is repeated.

    \b
    Example:
      estimatorkit tune people.yaml --trials 50
    """
    from estimatorkit.experiment import held_out, report_search
    from estimatorkit.experiment.tuning import ray_search, trials as searches
    from estimatorkit.experiment.tuning.search import combinations

    experiment = invocation.load()
    trials = combinations(experiment.tune or {}, trials)
    chosen = held_out.selection(experiment)
    where = f"by Ray Tune ({ray})" if ray else f"in {processes} process(es)"
    click.echo(f"Searching {experiment.name} for the best {chosen.metric}: {trials} trials {where}")
    click.echo(f"Trials are ranked on the selection rows: {searches.ranking_rows(experiment)}")
    table = _Table(experiment)
    try:
        if ray is not None:
            found, best = ray_search.tune(experiment, trials, ray, restart, table.show)
        else:
            found, best = searches.tune(experiment, trials, processes, restart, table.show)
    except ImportError as error:
        raise Failure(str(error), 1) from error
    if best is None:
        raise Failure(_no_result(found), 1)
    _show_best(found)
    folder = Path(best.model_dir).parent
    click.echo(f"The best settings are in {folder / searches.BEST}. Training with them:")
    trained = train_experiment(best, "replace")
    show_metrics(best, trained.metrics, trained)
    click.echo("\n" + "\n".join(report_search.two_figures(found, experiment, trained.metrics)))
    click.echo("\nNext:")
    run = [*program(), "predict", best.model_dir, "--input"]
    click.echo(f"  {shlex.join(run)} FILE.csv")
    click.echo(f"  {shlex.join([*program(), 'report', best.model_dir])}")
    click.echo(f"  {shlex.join([*program('tensorboard'), '--logdir', str(folder)])}")


class _Table:
    """Prints a row for each trial, under the names of the settings."""

    def __init__(self, experiment: Experiment) -> None:
        self._names = list(experiment.tune or {})
        self._widths = [max(len(name), 12) for name in self._names]
        self._has_head = False

    def show(self, trial: Trial) -> None:
        """Prints the row of a trial that has ended."""
        from estimatorkit.experiment.report import number

        if not self._has_head:
            click.echo(self._row("trial", "value", self._names, "state"))
            self._has_head = True
        value = "" if trial.value is None else number(trial.value)
        settings = [_text(trial.settings.get(name)) for name in self._names]
        state: str = "" if trial.state == "complete" else trial.state
        if trial.error:
            state += f": {trial.error.splitlines()[0]}"
        click.echo(self._row(str(trial.number), value, settings, state))

    def _row(self, number: str, value: str, settings: list[str], state: str) -> str:
        cells = [f"{text:<{width}}" for text, width in zip(settings, self._widths, strict=True)]
        return "  ".join([f"{number:>5}", f"{value:>10}", *cells, state]).rstrip()


def _text(value: object) -> str:
    from estimatorkit.experiment import document

    return value if isinstance(value, str) else document.dump(value, flow=True)


def _show_best(found: Search) -> None:
    from estimatorkit.experiment.report import number

    best = found.best()
    if best is None or best.value is None:
        return
    click.echo(f"The best is trial {best.number}: {found.monitor.metric} {number(best.value)}")
    for name, value in best.settings.items():
        click.echo(f"  {name}: {_text(value)}")


def _no_result(found: Search) -> str:
    errors = [each.error for each in found.trials() if each.error]
    last = f" The last error: {errors[-1]}" if errors else ""
    return f"No trial was completed.{last}"
