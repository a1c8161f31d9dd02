"""`Search`: trials of settings in a study of Optuna; and `tune`, a search for Python functions.

Optuna chooses the settings (TPE, Bergstra et al. 2011) and ends trials that are worse than the
median of the earlier ones at the same evaluation. A study with a folder is a journal file there, so
that a killed search can resume, and several processes share it.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from estimatorkit.core.errors import (
    DataLossError,
    InvalidArgumentError,
    ResourceExhaustedError,
    explain,
    value_error,
)
from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluationHook,
    FinishedEvaluation,
)
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.estimator.training_and_evaluation import train_and_evaluate
from estimatorkit.experiment.tuning.space import Dimension
from estimatorkit.storage.atomic_files import check_plain, os_errors
from estimatorkit.train.hooks.hooks import NanLossDuringTrainingError

Settings = dict[str, Any]
Space = Mapping[str, Dimension]
State = Literal["complete", "pruned", "failed", "running"]

_JOURNAL = "journal.log"
_STALE = "stale"
_ERROR, _ERRORS = "error", "errors"
FAILURES = (
    NanLossDuringTrainingError,
    InvalidArgumentError,
    ResourceExhaustedError,
    ArithmeticError,
    MemoryError,
)
"""Errors of a trial that other settings may avoid, such as a loss that is NaN."""


@dataclass(frozen=True)
class Trial:
    """One trial of a search.

    Attributes:
        number: from 0.
        settings: by dotted name.
        state: how it ended; 'pruned' was ended early.
        value: the best value of the metric; None without one.
        evaluations: the values in order.
        error: the message of a failed one.
    """

    number: int
    settings: Settings
    state: State
    value: float | None
    evaluations: tuple[float, ...]
    error: str | None = None


@contextmanager
def _damage_named(folder: Path | None) -> Iterator[None]:
    """Makes what Optuna raises for a damaged journal a `DataLossError` that names it."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AssertionError, AttributeError) as error:
        if folder is None:
            raise
        raise DataLossError.explained(
            f"the search cannot be read from '{folder / _JOURNAL}'",
            expected="the journal of a search",
            received=f"{type(error).__name__}: {error}",
            hint="remove its last lines if they are damaged, or begin a new search (--restart)",
        ) from error


def optuna() -> Any:
    """The module.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import optuna as module
    except ImportError as error:
        raise ImportError(
            explain("a search needs Optuna", hint="pip install 'estimatorkit[tune]'")
        ) from error
    module.logging.set_verbosity(module.logging.ERROR)
    return module


def combinations(space: Space, most: int) -> int:
    """How many different settings there are, but at most `most`."""
    values = [each.values() for each in space.values()]
    return min(most, math.prod(most if each is None else len(each) for each in values))


class Search:
    """A search.

    Args:
        space: by the name of the setting.
        monitor: the metric, and whether lower is better.
        folder: where the study is kept; None keeps it in memory.
        seed: of the choices.
    """

    def __init__(
        self,
        space: Space,
        monitor: MetricMonitor,
        folder: Path | None = None,
        seed: int | None = None,
    ) -> None:
        module = optuna()
        self.space = dict(space)
        self.monitor = monitor
        self.folder = folder
        self.storage: Any = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            journal = module.storages.journal
            file = str(folder / _JOURNAL)
            with os_errors("write the search", file):
                check_plain(Path(file))
            backend = journal.JournalFileBackend(file, journal.JournalFileOpenLock(file))
            with _damage_named(folder):
                self.storage = module.storages.JournalStorage(backend)
        with _damage_named(folder):
            self.study = module.create_study(
                study_name="search",
                storage=self.storage,
                load_if_exists=True,
                direction="minimize" if monitor.mode == "min" else "maximize",
                sampler=module.samplers.TPESampler(seed=seed, multivariate=True),
                pruner=module.pruners.MedianPruner(n_startup_trials=8, n_warmup_steps=2),
            )
        self._distributions = {name: each.distribution() for name, each in self.space.items()}

    def trials(self) -> list[Trial]:
        """The trials so far, without those that a killed search left."""
        with _damage_named(self.folder):
            stale = self.study.user_attrs.get(_STALE, ())
            errors = self.study.user_attrs.get(_ERRORS, {})
            return [
                self._trial(each, errors.get(str(each.number)))
                for each in self.study.get_trials(deepcopy=False)
                if each.number not in stale and each.state.name != "WAITING"
            ]

    def best(self) -> Trial | None:
        """The best trial that was not pruned; None if there is none."""
        best: Trial | None = None
        for each in self.trials():
            if each.state != "complete" or each.value is None:
                continue
            if best is None or self.monitor.is_better(each.value, best.value or 0.0):
                best = each
        return best

    def suggest(self, settings: Settings) -> None:
        """Makes these settings the next trial, if they are in the space."""
        found = {name: each.parameter(settings.get(name)) for name, each in self.space.items()}
        if None not in found.values():
            self.study.enqueue_trial(found, skip_if_exists=True)

    def suggest_all(self, trials: int) -> None:
        """Makes all combinations of settings the next trials, unless they are more than so many."""
        if combinations(self.space, trials + 1) > trials:
            return
        for each in itertools.product(*(found.values() or () for found in self.space.values())):
            self.suggest(dict(zip(self.space, each, strict=True)))

    def take_over(self) -> None:
        """Repeats the trials that a killed search left; the caller is the only process."""
        running = self._running()
        stale = [*self.study.user_attrs.get(_STALE, ()), *(each.number for each in running)]
        self.study.set_user_attr(_STALE, stale)
        for each in running:
            self.study.enqueue_trial(each.params)
            self.study.tell(each.number, state=optuna().trial.TrialState.FAIL)

    def give_up_running(self, reason: str) -> None:
        """Counts the running trials as failed: their processes died."""
        running = self._running()
        errors = {str(each.number): reason for each in running}
        self.study.set_user_attr(_ERRORS, self.study.user_attrs.get(_ERRORS, {}) | errors)
        for each in running:
            self.study.tell(each.number, state=optuna().trial.TrialState.FAIL)

    def run(self, objective: Callable[[Settings, Report], float | None], trials: int) -> None:
        """Runs trials until there are so many in all, over all processes.

        Args:
            objective: returns the value of some settings; None is the best of what it reported.
            trials: how many.
        """
        while (trial := self._next(trials)) is not None:
            self._run_trial(trial, objective)

    def _run_trial(self, trial: Any, objective: Callable[[Settings, Report], float | None]) -> None:
        states = optuna().trial.TrialState
        report = Report(trial, self.monitor)
        try:
            value = objective(self._settings(trial.params), report)
            value = report.best if value is None else float(value)
        except FAILURES as error:
            trial.set_user_attr(_ERROR, str(error))
            self.study.tell(trial, state=states.FAIL)
            return
        if report.is_pruned:
            self.study.tell(trial, state=states.PRUNED)
        elif value is None or math.isnan(value):
            trial.set_user_attr(_ERROR, f"{self.monitor.metric} is {value}")
            self.study.tell(trial, state=states.FAIL)
        else:
            self.study.tell(trial, value)

    def _next(self, trials: int) -> Any:
        """A new trial of Optuna, or None if there are enough."""
        if self.folder is None:
            return None if len(self.trials()) >= trials else self.study.ask(self._distributions)
        with FileLock(self.folder / "next.lock"):
            return None if len(self.trials()) >= trials else self.study.ask(self._distributions)

    def _running(self) -> list[Any]:
        return list(self.study.get_trials(states=(optuna().trial.TrialState.RUNNING,)))

    def _settings(self, parameters: Mapping[str, Any]) -> Settings:
        return {
            name: each.setting(parameters[name])
            for name, each in self.space.items()
            if name in parameters
        }

    def _trial(self, trial: Any, error: str | None) -> Trial:
        values = tuple(value for _, value in sorted(trial.intermediate_values.items()))
        states: dict[str, State] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
        return Trial(
            trial.number,
            self._settings(trial.params),
            states.get(trial.state.name, "running"),
            trial.value,
            values,
            trial.user_attrs.get(_ERROR, error),
        )


class Report(EvaluationHook):
    """Reports a trial's evaluations to the study, and ends the trial if they are bad.

    As a hook of `train_and_evaluate` it reports the metric of the evaluation `label`, or of the
    first that comes; a function with a loop of its own calls it with each value.

    Attributes:
        best: the best value so far; None before the first.
        is_pruned: whether the trial is to end.
    """

    def __init__(self, trial: Any, monitor: MetricMonitor, label: str | None = None) -> None:
        self._trial = trial
        self._monitor = monitor
        self.label = label
        self._steps: set[int] = set()
        self._count = 0
        self.best: float | None = None
        self.is_pruned = False

    @property
    def number(self) -> str:
        """The number of the trial."""
        return str(self._trial.number)

    def __call__(self, value: float) -> bool:
        """Reports a value.

        Returns:
            Whether to end the trial: it is worse than the median of those before.
        """
        if self.best is None or self._monitor.is_better(value, self.best):
            self.best = float(value)
        self._count += 1
        self._trial.report(float(value), self._count)
        self.is_pruned = self._trial.should_prune()
        return self.is_pruned

    def after_evaluation(self, evaluation: FinishedEvaluation) -> str | None:
        """Reports the metric of an evaluation."""
        self.label = self.label or evaluation.label
        if self.is_pruned or evaluation.step in self._steps or evaluation.label != self.label:
            return None
        self._steps.add(evaluation.step)
        if self(self._monitor.value(evaluation.metrics)):
            return "the trial is worse than the median of those before"
        return None


# -- Python


@dataclass(frozen=True)
class Tuned:
    """The result of `tune`.

    Attributes:
        settings: those of the best trial.
        value: its value.
        trials: all trials, in order.
    """

    settings: Settings
    value: float
    trials: tuple[Trial, ...]


def tune(
    objective: Callable[..., Any],
    space: Mapping[str, Any],
    trials: int = 20,
    metric: str = "loss",
    mode: Literal["auto", "min", "max"] = "auto",
    folder: str | None = None,
    seed: int | None = None,
) -> Tuned:
    """Searches for the settings that minimize or maximize a metric. Not in TensorFlow.

    ```python
    def model(settings):
        estimator = tf.estimator.DNNClassifier(
            settings["hidden_units"], columns, optimizer=tf.train.AdamOptimizer(settings["rate"]))
        return estimator, tf.estimator.TrainSpec(train_input, 1000), tf.estimator.EvalSpec(...)

    tuned = tf.tune(model, {"rate": {"log_uniform": [1e-4, 1e-1]},
                            "hidden_units": {"choice": [[64], [128, 64]]}}, metric="accuracy")
    ```

    Args:
        objective: takes a dict of settings, and returns either the value of the metric, or
            `(estimator, train_spec, eval_spec)` for `train_and_evaluate`, whose best evaluation is
            the value; bad trials are stopped early. It may take a second argument, a function to
            call with each intermediate value, which returns whether to stop the trial.
        space: by name, one of `{"choice": [...]}`, `{"uniform": [low, high]}`,
            `{"log_uniform": [low, high]}` and `{"int": [low, high]}`.
        trials: the total number of trials, over all runs with the same folder.
        metric: the name of the metric in the result of `Estimator.evaluate`.
        mode: whether lower is better ('min') or higher ('max'); 'auto' infers it from `metric`.
        folder: where to store the trials, so that an interrupted search can be resumed.
        seed: the seed of the random settings.

    Raises:
        ValueError: the space is invalid, or no trial has a value.
        ImportError: Optuna is not installed (`pip install 'estimatorkit[tune]'`).
    """
    try:
        checked = TypeAdapter(dict[str, Dimension]).validate_python(dict(space))
    except ValidationError as error:
        raise value_error(
            "tune: the space is invalid",
            expected='by name {"choice": [...]}, or "uniform", "log_uniform", "int": [low, high]',
            received=str(space),
            hint="; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors()),
        ) from None
    kept = None if folder is None else Path(folder)
    search = Search(checked, MetricMonitor(metric, mode), kept, seed)
    search.take_over()
    reports = _takes_two(objective)

    def value(settings: Settings, report: Report) -> float | None:
        made = objective(settings, report) if reports else objective(settings)
        if not isinstance(made, tuple):
            return None if made is None else float(made)
        estimator, train_spec, eval_spec = made
        train_spec = train_spec._replace(hooks=[*train_spec.hooks, report])
        train_and_evaluate(estimator, train_spec, eval_spec)
        return None

    search.run(value, trials)
    best = search.best()
    if best is None or best.value is None:
        errors = [each.error for each in search.trials() if each.error]
        raise value_error(
            "tune: no trial has a value",
            expected="at least one trial that ends with a number",
            received=f"{trials} trials" + (f", the last of which: {errors[-1]}" if errors else ""),
        )
    return Tuned(best.settings, best.value, tuple(search.trials()))


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function has two positional parameters without defaults."""
    needed = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) == 2
