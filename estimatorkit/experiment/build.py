"""Builds the objects of an experiment: feature columns, optimizers, estimator, exporters, hooks.

A section's keys are the arguments of the public function that its class names (`factory`), renamed
by its table `renamed`; nested sections are built first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import estimatorkit as ek
from estimatorkit.experiment import columns as kinds
from estimatorkit.experiment.estimators import WarmStart
from estimatorkit.experiment.schema import EarlyStopping, Experiment, ExportBest
from estimatorkit.experiment.sections import Model
from estimatorkit.feature_columns import InferredColumns

Function = Callable[[Any], Any]

# Each takes float32, whatever the data's dtype.
_NORMALIZERS: dict[str, Callable[[Any], Function]] = {
    "log1p": lambda _: ek.log1p,
    "standardize": lambda given: lambda x: (x - given.mean) / given.deviation,
    "scale": lambda given: lambda x: (x - given.low) / (given.high - given.low),
    "clip": lambda given: lambda x: ek.clip_by_value(x, given.low, given.high),
}


@dataclass(frozen=True)
class Normalizer:
    """The function of a normalizer; equal to another of an equal section.

    Attributes:
        given: a name or a section.
    """

    given: Any

    def __call__(self, x: Any) -> Any:
        """Normalizes a numeric tensor, as float32."""
        kind = self.given if isinstance(self.given, str) else self.given.type
        return _NORMALIZERS[kind](self.given)(ek.cast(x, ek.float32))


def column(feature: kinds.Feature) -> Any:
    """A feature column, or the list of those that share an embedding."""
    return _column(feature.arguments)


def _column(arguments: kinds.ColumnArguments) -> Any:
    given = {arguments.renamed.get(name, name): _made(name, value) for name, value in arguments}
    return getattr(ek.feature_column, arguments.factory)(**given)


def _made(name: str, value: Any) -> Any:
    """An argument of a feature column."""
    if isinstance(value, kinds.Feature):
        return column(value)
    if isinstance(value, kinds.ColumnArguments):
        return _column(value)
    if isinstance(value, tuple):
        return [_made(name, each) for each in value]
    if name == "normalizer" and value is not None:
        return Normalizer(value)
    return getattr(ek, value) if name == "dtype" else value


def columns(features: Sequence[kinds.Feature]) -> list[Any]:
    """The feature columns of a list."""
    found: list[Any] = []
    for feature in features:
        made = column(feature)
        found += made if isinstance(made, list) else [made]
    return found


def optimizer(given: Any) -> Any:
    """An optimizer; a name is kept, for the estimator's own default learning rate."""
    if isinstance(given, str):
        return given
    return getattr(ek.train, given.factory)(**_arguments(given))


def _arguments(section: Model, *without: str) -> dict[str, Any]:
    return {name: value for name, value in section if name not in ("type", *without)}


def feature_columns(
    experiment: Experiment, inferred: InferredColumns | None
) -> dict[str, list[Any]]:
    """The estimator's feature column arguments."""
    found = {}
    for key, (argument, of_numbers) in experiment.estimator.columns.items():
        found[argument] = columns(getattr(experiment, key))
        if inferred is not None:
            found[argument] += inferred.columns if of_numbers else inferred.wide
    return found


def _checkpoints(experiment: Experiment, rows: int) -> dict[str, int]:
    """When to save checkpoints: each is evaluated."""
    number, unit = experiment.evaluate.rhythm
    if unit == "epoch":
        number = max(1, round(number * rows / experiment.train.batch_size))
    return {f"save_checkpoints_{'secs' if unit == 'sec' else 'steps'}": number}


def estimator(
    experiment: Experiment, inferred: InferredColumns | None, rows: int | None = None
) -> Any:
    """The premade estimator.

    Args:
        inferred: the columns inferred from the training data, if requested.
        rows: the number of training rows, if it is to be trained.
    """
    given = {}
    for name, value in _arguments(experiment.estimator).items():
        if name.endswith("optimizer"):
            given[name] = optimizer(value)
        elif name.endswith("activation"):
            given[f"{name}_fn"] = getattr(ek.nn, value)
        elif isinstance(value, WarmStart):
            given[name] = ek.estimator.WarmStartSettings(**dict(value))
        else:
            given[name] = list(value) if isinstance(value, tuple) else value
    if experiment.estimator.type == "KMeans":
        given["seed"] = experiment.seed
    config = ek.estimator.RunConfig(
        model_dir=experiment.model_dir,
        tf_random_seed=experiment.seed,
        **dict(experiment.run),
        **({} if rows is None else _checkpoints(experiment, rows)),
    )
    kind = experiment.estimator.type
    make = getattr(ek.estimator, kind, None) or getattr(ek.estimator.experimental, kind)
    return make(
        model_dir=experiment.model_dir,
        config=config,
        **given,
        **feature_columns(experiment, inferred),
    )


def exporters(experiment: Experiment, inferred: InferredColumns | None) -> list[Any]:
    """The exporters of the evaluation."""
    used = [each for made in feature_columns(experiment, inferred).values() for each in made]
    used = used or columns(experiment.features)  # a baseline takes the number of examples from them
    weight = experiment.weight_column
    unasked = None if weight in experiment.reads else weight  # a weight may be a feature, too
    receivers = {
        "features": lambda: ek.estimator.export.serving_input_receiver_fn_from_columns(
            used, unasked
        ),
        "examples": lambda: ek.estimator.export.build_parsing_serving_input_receiver_fn(
            ek.feature_column.make_parse_example_spec(used)
        ),
    }
    return [
        getattr(ek.estimator, each.factory)(
            serving_input_receiver_fn=receivers[each.inputs](),
            **_arguments(each, "inputs") | _compared(experiment, each),
        )
        for each in experiment.export
    ]


def _compared(experiment: Experiment, export: Any) -> dict[str, Any]:
    """The metric of an exporter of the best model that names none."""
    selection = experiment.selection
    if not isinstance(export, ExportBest) or export.metric is not None or selection is None:
        return {}
    return {"metric": selection.metric, "mode": selection.mode}


def hooks(experiment: Experiment) -> list[Any]:
    """The training hooks."""
    found = []
    for each in experiment.train.hooks:
        given = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in _arguments(each).items()
        }
        if each.type == "profiler":
            given["output_dir"] = experiment.model_dir
        found.append(getattr(ek.train, each.factory)(**given))
    stopping: EarlyStopping | None = experiment.train.early_stopping
    selection = experiment.selection
    if stopping is not None:
        found.append(ek.estimator.EarlyStopping(**dict(stopping)))
    elif selection is not None:
        found.append(
            ek.estimator.EarlyStopping(selection.metric, selection.mode, patience=sys.maxsize)
        )
    return found
