"""Runs an experiment: `train` (with its evaluations and exports), `evaluate` and `predict`.

Training uses `train_and_evaluate`: a killed run resumes from its last checkpoint, and a finished
one is not repeated. `config.yaml`, with all settings, and `env.json`, with versions, are written to
the model's folder.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import estimatorkit as ek
from estimatorkit.estimator.evaluation.completion import read_completion
from estimatorkit.experiment import (
    build,
    examples,
    inferred,
    inputs,
    predicting,
    reading,
    row_sets,
    scores,
    thresholds,
)
from estimatorkit.experiment.document import suggestion
from estimatorkit.experiment.epochs import EpochLines
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import dump_experiment
from estimatorkit.experiment.predicting import Prediction
from estimatorkit.experiment.row_sets import MAIN
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tables import Table
from estimatorkit.storage.atomic_files import write_durably

Metrics = dict[str, float]

_PACKAGES = ("jax", "jaxlib", "numpy", "pandas", "pyarrow")


@dataclass(frozen=True)
class Trained:
    """The result of `train`.

    Attributes:
        metrics: those of the model, by name of the evaluation set.
        last_step: the global step at which the training ended.
        epochs: the passes over the training rows until the step of the model.
        baselines: what a model without features scores, by name of the evaluation set.
        threshold: that of the model's classes, if `predict.threshold` asks for one.
    """

    metrics: Mapping[str, Metrics]
    last_step: int
    epochs: float
    baselines: Mapping[str, Metrics]
    threshold: thresholds.Choice | None = None

    @property
    def step(self) -> int:
        """The global step of the model: of the best checkpoint, or the last."""
        return int(self.metrics[MAIN]["global_step"])


def train(
    experiment: Experiment,
    tell: Callable[[str], None] = lambda text: None,
    hooks: Sequence[ek.train.SessionRunHook] = (),
    asked: Experiment | None = None,
) -> Trained:
    """Trains, evaluates and exports.

    Evaluations save checkpoints. With a `selection`, the best of them is the model at the end, and
    an ensemble chooses epochs and weights by the rows of that evaluation.

    Args:
        tell: gets lines to be shown, such as the columns that `infer` chooses.
        hooks: more hooks of the training.
        asked: the experiment that this one was derived from, for `config.yaml`.

    Raises:
        DataError: the data does not fit the experiment.
    """
    asked, experiment = asked or experiment, inferred.resolve(experiment, tell)
    settings = experiment.train
    trained = inputs.training(experiment)

    def input_fn() -> Any:
        dataset = trained.dataset()
        if settings.shuffle_buffer is not None:
            dataset = dataset.shuffle(settings.shuffle_buffer, seed=experiment.seed)
        return dataset.repeat().batch(settings.batch_size)

    rows = trained.count()
    reading.keep_background(experiment)
    exporters = build.exporters(experiment)
    selected = row_sets.chosen_by(experiment)
    input_fns, baselines = {}, {}
    for name in row_sets.evaluation_names(experiment):
        evaluated = inputs.evaluation(experiment, name)
        input_fns[name] = _evaluation_input(experiment, evaluated)
        if trained.labels is not None and evaluated.labels is not None:
            weights = evaluated.sample[0].get(experiment.weight_column)
            baselines[name] = scores.baseline(experiment, trained.labels, evaluated.labels, weights)

    def held_out() -> Any:  # judged by the loss of the training, in which classes have weights
        judged = inputs.evaluation(experiment, selected, class_weights=True)
        return _evaluation_input(experiment, judged)()

    given = held_out if row_sets.selects_weights(experiment) else None
    estimator = build.estimator(experiment, rows, given)
    specs = [
        ek.estimator.EvalSpec(
            input_fns[name],
            steps=experiment.evaluate.steps,
            name=None if name == MAIN else name,
            exporters=exporters if name == selected else None,
            throttle_secs=0,
        )
        for name in row_sets.evaluation_names(experiment)
    ]
    end = settings.last_step(rows, _step(estimator))
    if estimator.reads_once:
        end = min(end, math.ceil(rows / settings.batch_size))
    lines = EpochLines(experiment, rows, end, tell)
    _check_metric(experiment, estimator, input_fns[selected])
    hooks = [lines, *hooks, *build.hooks(experiment)]
    if settings.stop_at is not None:
        last = math.ceil(rows * settings.stop_at / settings.batch_size)
        hooks.append(ek.train.StopAtStepHook(last_step=last))
    spec = ek.estimator.TrainSpec(input_fn, end, hooks=hooks)
    write_description(asked)
    metrics, _ = ek.estimator.train_and_evaluate(estimator, spec, specs)
    done = read_completion(experiment.model_dir)
    numbers = {label: _numbers(each) for label, each in metrics.items()}
    step = int(numbers[MAIN]["global_step"]) if done is None else done.step
    epochs = numbers[MAIN]["global_step"] * settings.batch_size / rows
    threshold = thresholds.of_model(experiment, estimator, keep=True)
    if threshold is not None:
        decided = scores.with_metrics_of_classes(
            experiment, ek.estimator.with_threshold(estimator, threshold.threshold)
        )
        for name, input_fn in input_fns.items():
            found = scores.unrecorded(decided, input_fn, experiment.evaluate.steps)
            numbers[name] |= {key: float(found[key]) for key in scores.of_classes(experiment)}
    return Trained(numbers, step, epochs, baselines, threshold)


def _check_metric(experiment: Experiment, estimator: Any, input_fn: Callable[[], Any]) -> None:
    """Raises ConfigurationError if there is no metric of the name that selects the best model."""
    stopping, selection = experiment.train.early_stopping, experiment.selection
    name = stopping.metric if stopping is not None else selection.metric if selection else "loss"
    if name == "loss":
        return
    with ek.Graph().as_default():
        batch = ek.data.make_one_shot_iterator(input_fn()).get_next()
        data, labels = batch if isinstance(batch, tuple) else (batch, None)
        ek.train.create_global_step()
        spec = estimator.model_fn(data, labels, ek.estimator.ModeKeys.EVAL, estimator.config)
    known = ["loss", *spec.eval_metric_ops]
    if name not in known:
        key = "train.early_stopping.metric" if stopping is not None else "metric of export"
        raise ConfigurationError.explained(
            f"{key} is {name!r}, and there is no such metric",
            expected=f"one of {', '.join(sorted(known))}",
            hint=suggestion(name, known) or "metrics: [...] adds those of keras.metrics.",
        )


def _step(estimator: Any) -> int:
    latest = estimator.latest_checkpoint()
    return 0 if latest is None else int(estimator.get_variable_value("global_step"))


def write_description(experiment: Experiment) -> None:
    """Writes `config.yaml` and `env.json` into the model's folder."""
    folder = Path(experiment.model_dir)
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / "config.yaml", dump_experiment(experiment).encode())
    versions = {"estimatorkit": ek.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # it is optional
    environment = {"versions": versions, "system": platform.system(), "machine": platform.machine()}
    write_durably(folder / "env.json", (json.dumps(environment, indent=2) + "\n").encode())


def _evaluation_input(experiment: Experiment, evaluated: inputs.Examples) -> Callable[[], Any]:
    batches = evaluated.dataset().batch(experiment.evaluate.batch_size)
    return lambda: batches  # one dataset, and so one model, for all evaluations


def evaluate(experiment: Experiment) -> dict[str, Metrics]:
    """The metrics of the latest checkpoint by name of the evaluation set.

    Raises:
        DataError: there is no checkpoint, or the data does not fit the experiment.
    """
    experiment = inferred.resolve(experiment)
    input_fns = {
        name: _evaluation_input(experiment, inputs.evaluation(experiment, name))
        for name in row_sets.evaluation_names(experiment)
    }
    estimator = predicting.trained(experiment)
    return {
        name: _numbers(
            estimator.evaluate(
                input_fn=input_fn,
                steps=experiment.evaluate.steps,
                name=None if name == MAIN else name,
            )
        )
        for name, input_fn in input_fns.items()
    }


def _numbers(metrics: Mapping[str, Any]) -> Metrics:
    return {name: float(value) for name, value in metrics.items()}


def predict(experiment: Experiment, table: Table, origin: str) -> list[Prediction]:
    """A prediction for each row of a table.

    Raises:
        DataError: there is no checkpoint, or a column is missing or invalid.
    """
    columns = predicting.of_experiment(experiment)(table, origin)
    return predicting.by_row(columns, examples.class_names(experiment))
