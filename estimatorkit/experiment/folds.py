"""Cross-validation: `evaluate: {folds: 5}`.

The training rows are split into equal parts. As many models are trained, each on all parts but
one, which measures it and chooses nothing: where checkpoints are chosen, other rows of the fit do
so. The model at the end is trained on all training rows, as long as the fits took on average.

Each fit is kept in `model_dir/folds/<number>`, so that an interrupted command goes on; `folds.json`
has the metrics. (Stone 1974, "Cross-Validatory Choice and Assessment of Statistical Predictions";
classes are stratified as Kohavi 1995 advises, by scikit-learn.)
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import estimatorkit as ek
from estimatorkit.core.errors import OpError
from estimatorkit.experiment import earlier_run, held_out, row_sets, runner
from estimatorkit.experiment.report import INTEGERS, number
from estimatorkit.experiment.schema import Experiment
from estimatorkit.storage.atomic_files import read_plain, write_durably

FILE = "folds.json"


@dataclass(frozen=True)
class CrossValidation:
    """The result of a cross-validation.

    Attributes:
        metrics: the values of the folds in order, by name.
        epochs: of the fits' chosen checkpoints, on average; None where none is chosen.
    """

    metrics: Mapping[str, Sequence[float]]
    epochs: float | None = None

    @property
    def means(self) -> dict[str, float]:
        """The mean of each metric."""
        return {name: float(np.mean(values)) for name, values in self.metrics.items()}

    @property
    def deviations(self) -> dict[str, float]:
        """The standard deviation of each metric among the folds (of a population, as in
        scikit-learn's `std_test_score`).
        """
        return {name: float(np.std(values)) for name, values in self.metrics.items()}

    def lines(self) -> list[str]:
        """A line for each metric: mean, standard deviation, and the values of the folds."""
        width = max(map(len, self.metrics), default=0)
        means, deviations = self.means, self.deviations
        return [
            f"  {name:<{width}}  {number(means[name])} ± {number(deviations[name])}"
            f"  ({', '.join(map(number, self.metrics[name]))})"
            for name in sorted(self.metrics)
        ]


def read(model_dir: str | Path) -> CrossValidation | None:
    """The cross-validation of a model's folder; None if there is none, or it is damaged."""
    try:
        found = json.loads(read_plain(Path(model_dir) / FILE))
        metrics = {
            str(key): [float(each) for each in found["metrics"][key]] for key in found["metrics"]
        }
        epochs = None if found["epochs"] is None else float(found["epochs"])
        return CrossValidation(metrics, epochs) if all(metrics.values()) else None
    except (OSError, OpError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError):
        return None


def cross_validate(
    experiment: Experiment,
    tell: Callable[[str], None] = lambda text: None,
    after: Callable[[Mapping[str, float]], bool] = lambda metrics: False,
) -> CrossValidation:
    """Trains and measures a model for each fold, and writes `folds.json`.

    Args:
        experiment: with `evaluate.folds`.
        tell: gets lines to be shown.
        after: gets the metrics of a fold, and returns whether to leave out the others.

    Raises:
        DataError: the data does not fit the experiment, or has fewer rows than folds.
    """
    count = experiment.evaluate.folds or 0
    found: list[Mapping[str, float]] = []
    epochs: list[float] = []
    for place in range(1, count + 1):
        begun = time.monotonic()
        fitted = held_out.fold(experiment, place)
        earlier_run.reconcile(fitted, "replace")
        trained = runner.train(fitted)
        metrics = trained.metrics[row_sets.MAIN]
        found.append({name: each for name, each in metrics.items() if name not in INTEGERS})
        epochs.append(trained.epochs)
        by = held_out.selection(experiment).metric
        shown = ", ".join(f"{name} {number(metrics[name])}" for name in dict.fromkeys((by, "loss")))
        tell(f"fold {place}/{count}: {shown} ({time.monotonic() - begun:.1f} s)")
        if after(metrics):
            break
    result = CrossValidation(
        {name: [each[name] for each in found] for name in found[0]},
        float(np.mean(epochs)) if held_out.chooses(experiment) else None,
    )
    content = json.dumps(asdict(result), indent=1) + "\n"
    write_durably(Path(experiment.model_dir) / FILE, content.encode())
    return result


def train(
    experiment: Experiment,
    tell: Callable[[str], None] = lambda text: None,
    hooks: Sequence[ek.train.SessionRunHook] = (),
) -> runner.Trained:
    """`runner.train`, after a cross-validation if `evaluate.folds` is given."""
    folds = experiment.evaluate.folds
    if folds is None:
        return runner.train(experiment, tell, hooks)
    rows = row_sets.training_source(experiment)
    tell(f"Cross-validation with {folds} folds of {rows}:")
    result = cross_validate(experiment, tell)
    length = "" if result.epochs is None else f", for {result.epochs:.3g} epochs as the folds did"
    tell(f"The model, trained on {rows}{length}:")
    final = held_out.after_folds(experiment, result.epochs)
    return runner.train(final, tell, hooks, asked=experiment)


def score(experiment: Experiment, metric: str, report: Callable[[float], bool]) -> float:
    """The mean of a metric over folds: the value of a trial of a search.

    Args:
        experiment: of the trial.
        metric: its name.
        report: gets the mean after each fold, and returns whether to end the trial.
    """
    values: list[float] = []

    def after(metrics: Mapping[str, float]) -> bool:
        values.append(metrics.get(metric, math.nan))
        return report(float(np.mean(values)))

    cross_validate(experiment, after=after)
    return float(np.mean(values))


def keep(source: str | Path, target: str | Path) -> None:
    """Copies the fits of a trial to a model of the same settings, which need not repeat them."""
    fits = Path(source) / held_out.FOLDS
    if fits.is_dir():
        shutil.copytree(fits, Path(target) / held_out.FOLDS, dirs_exist_ok=True)


__all__ = ["CrossValidation", "cross_validate", "keep", "read", "score", "train"]
