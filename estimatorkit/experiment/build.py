"""Builds the objects of an experiment: feature columns, optimizers, estimator, exporters, hooks.

A section's keys are the arguments of the public function that its class names (`factory`), renamed
by its table `renamed`; nested sections are built first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import estimatorkit as ek
from estimatorkit.estimator.extenders import with_mixed_precision
from estimatorkit.estimator.serving.example_requests import EXAMPLE_ROWS
from estimatorkit.experiment import (
    columns as kinds,
    inputs,
    preprocessing,
    reading,
    scores,
    thresholds,
)
from estimatorkit.experiment.estimators import (
    Ensemble,
    LabelScaling,
    Mixture,
    Schedule,
    WarmStart,
)
from estimatorkit.experiment.examples import CLASS_WEIGHT, example_rows
from estimatorkit.experiment.schema import EarlyStopping, Experiment, ExportBest
from estimatorkit.experiment.sections import Model, leaves
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name

Function = Callable[[Any], Any]

# Each takes float32, whatever the data's dtype.
_NORMALIZERS: dict[str, Callable[[Any], Function]] = {
    "log1p": lambda given: (
        ek.log1p if isinstance(given, str) else lambda x: ek.log1p(ek.maximum(x, given.low))
    ),
    "standardize": lambda given: lambda x: (x - given.mean) / given.deviation,
    "scale": lambda given: lambda x: (x - given.low) / (given.high - given.low),
    "clip": lambda given: lambda x: ek.clip_by_value(x, given.low, given.high),
    "robust": lambda given: ek.feature_columns.RobustScaling(
        given.center, given.scale, given.limit
    ),
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


def _column(arguments: kinds.ColumnArguments, made: Any = None) -> Any:
    """A feature column, by another function than its own if one is given."""
    if isinstance(arguments, kinds.SharedEmbeddings):
        return _sharing([column(each) for each in arguments.columns], arguments)
    given = {arguments.renamed.get(name, name): _made(name, value) for name, value in arguments}
    return (arguments.function() if made is None else made)(**given)


def _sharing(ids: Sequence[Any], given: Any) -> list[Any]:
    """Embedding columns that share one table."""
    shared = _arguments(given, "columns", "target", "history", "negatives", "table")
    if given.table is None:
        return list(ek.feature_column.shared_embeddings(ids, **shared))
    named = given.table.model_copy(update={"name": given.table.name or ids[0].name})
    table = _made("table", named)
    return [ek.feature_column.embedding_column(each, table=table, **shared) for each in ids]


def _made(name: str, value: Any) -> Any:
    """An argument of a feature column."""
    if isinstance(value, kinds.Feature):
        return column(value)
    if isinstance(value, kinds.ColumnArguments):
        return _column(value)
    if isinstance(value, kinds.Table):
        own = None if value.optimizer is None else optimizer(value.optimizer)
        if isinstance(own, str):
            own = functools.partial(get_optimizer_by_name, own)
        return ek.feature_column.EmbeddingTable(**dict(value) | {"optimizer": own})
    if isinstance(value, tuple):
        return [_made(name, each) for each in value]
    if name == "normalizer" and value is not None:
        return Normalizer(value)
    if name == "default" and value is not None:
        return float(value)
    return getattr(ek, value) if name == "dtype" else value


def columns(features: Sequence[kinds.Feature]) -> list[Any]:
    """The feature columns of a list."""
    found: list[Any] = []
    for feature in features:
        made = column(feature)
        found += made if isinstance(made, list) else [made]
    return found


def optimizer(given: Any, last_step: int = 1) -> Any:
    """An optimizer, or a function that makes one; a name is kept, for the estimator's own default
    learning rate.

    Args:
        last_step: the global step at which the training ends, for schedules of the whole of it.
    """
    if isinstance(given, str):
        return given
    arguments = _arguments(given)
    make = given.function()
    rate = arguments["learning_rate"]
    if not isinstance(rate, Schedule):
        return make(**arguments)
    return lambda: make(**arguments | {"learning_rate": _scheduled(rate, last_step)})


def _scheduled(schedule: Schedule, last_step: int) -> Any:
    """The learning rate of the global step."""
    given = _arguments(schedule, "warmup_steps")
    warmup = schedule.warmup_steps
    step = ek.train.get_or_create_global_step()
    after = ek.cast(ek.maximum(step - warmup, 0), ek.float32)
    if given.get("decay_steps", 1) is None:
        given["decay_steps"] = max(1, last_step - warmup)
    rate = (
        schedule.function()(global_step=after, **given)
        if schedule.place
        else ek.constant(schedule.learning_rate)
    )
    if not warmup:
        return rate
    growing = ek.cast(step + 1, ek.float32) / (warmup + 1)
    return rate * ek.minimum(growing, 1.0)


def _arguments(section: Model, *without: str) -> dict[str, Any]:
    return {name: value for name, value in section if name not in ("type", *without)}


def feature_columns(experiment: Experiment) -> dict[str, list[Any]]:
    """The estimator's feature column arguments; optional ones only where there are any.

    Targets of sequences join the features.
    """
    found = {
        argument: columns(getattr(experiment, key))
        for key, (argument, _) in experiment.estimator.columns.items()
        if getattr(experiment, key) or key not in experiment.estimator.optional_columns
    }
    if experiment.sequences:
        made = [_sequence(each) for each in experiment.sequences]
        found["feature_columns"] = [*found.get("feature_columns", ()), *(each[0] for each in made)]
        found["sequences"] = [(history, target) for target, history, *_ in made]
        if any(each.negatives is not None for each in experiment.sequences):
            found["negatives"] = [each[2] for each in made]
    return found


def _sequence(given: kinds.Sequence) -> list[Any]:
    """The embedding columns of the target, the history and the negatives (if given)."""
    steps = [
        _column(each, getattr(ek.feature_column, f"sequence_{each.function().__name__}"))
        for each in given.steps
    ]
    return _sharing([_column(given.target.arguments), *steps], given)


def _intervals(experiment: Experiment, rows: int) -> dict[str, int]:
    """When to save checkpoints, each of which is evaluated; and summaries, at least as often."""
    number, unit = experiment.evaluate.rhythm
    if unit == "sec":
        return {"save_checkpoints_secs": number}
    if unit == "epoch":
        number = max(1, round(number * rows / experiment.train.batch_size))
    summaries = min(number, experiment.run.save_summary_steps)
    return {"save_checkpoints_steps": number, "save_summary_steps": summaries}


def estimator(
    experiment: Experiment,
    rows: int | None = None,
    held_out_fn: Callable[[], Any] | None = None,
) -> Any:
    """The premade estimator.

    Args:
        experiment: with its columns listed (`inferred.resolve`).
        rows: the number of training rows, if it is to be trained.
        held_out_fn: an ensemble's.
    """
    given = {}
    end = 1 if rows is None else experiment.train.last_step(rows)
    for name, value in _arguments(experiment.estimator, "label_scaling").items():
        if name.endswith("optimizer"):
            given[name] = optimizer(value, end)
        elif name.endswith("activation"):
            by_name = value is None or value == "dice"  # a layer, which the estimator makes
            argument = experiment.estimator.renamed.get(name, name)
            given[argument] = value if by_name else getattr(ek.nn, value)
        elif isinstance(value, WarmStart):
            given[name] = ek.estimator.WarmStartSettings(**dict(value))
        else:
            given[name] = list(value) if isinstance(value, tuple) else value
    if rows is not None and "train_steps" in given:
        given["train_steps"] = given["train_steps"] or end
    if experiment.train.class_weights is not None:
        given["weight_column"] = CLASS_WEIGHT
    if isinstance(experiment.estimator, Ensemble):
        given["held_out_fn"] = held_out_fn
    if experiment.estimator.type == "KMeans":
        given["seed"] = experiment.seed
    if experiment.estimator.takes_sequences:
        del given["n_classes"]  # always 2
    if experiment.data.candidates is not None:
        given["candidates"] = inputs.candidates(experiment)
    if isinstance(experiment.estimator, Mixture):
        given["head"] = _head_of_tasks(experiment.tasks, given)
    config = ek.estimator.RunConfig(
        model_dir=experiment.model_dir,
        tf_random_seed=experiment.seed,
        **_arguments(experiment.run, "loggers")
        | ({} if rows is None else _intervals(experiment, rows)),
    )
    kind: str = experiment.estimator.type
    scaling = getattr(experiment.estimator, "label_scaling", None)
    if scaling is not None:
        kind = kind.replace("Regressor", "Estimator")
        given["head"] = _head_of_scaled_labels(scaling, given)
    make = getattr(ek.estimator, kind, None) or getattr(ek.estimator.experimental, kind)
    made = make(
        model_dir=experiment.model_dir, config=config, **given, **feature_columns(experiment)
    )
    if experiment.train.mixed_precision:
        made = with_mixed_precision(made)
    return scores.with_metrics(experiment, made)


def _head_of_tasks(tasks: Iterable[str], given: dict[str, Any]) -> Any:
    """A binary head for each task; takes its arguments out of `given`."""
    weights = given.pop("task_weights")
    shared = {name: given.pop(name) for name in ("weight_column", "loss_reduction")}
    heads = [ek.estimator.BinaryClassHead(name=task, **shared) for task in tasks]
    return ek.estimator.MultiHead(heads, weights)


def _head_of_scaled_labels(scaling: LabelScaling, given: dict[str, Any]) -> Any:
    """The head of a regressor with standardized labels; takes its arguments out of `given`."""

    def squared_error(labels: Any, logits: Any) -> Any:
        return ek.math.squared_difference((labels - scaling.mean) / scaling.deviation, logits)

    return ek.estimator.RegressionHead(
        loss_fn=squared_error,
        inverse_link_fn=lambda logits: logits * scaling.deviation + scaling.mean,
        **{
            name: given.pop(name) for name in ("label_dimension", "weight_column", "loss_reduction")
        },
    )


def exporters(experiment: Experiment) -> list[Any]:
    """The exporters of the evaluation."""
    return [_exporter(experiment, each) for each in experiment.export]


def _exporter(experiment: Experiment, given: Any) -> Any:
    receiver = _receiver if given.inputs == "features" else _examples_receiver
    answer: dict[str, Any] = {}
    if experiment.predict.threshold is not None:
        answer["export_fn"] = functools.partial(thresholds.export, experiment)
    if given.top_k is not None:
        answer["export_fn"] = functools.partial(
            ek.estimator.export_candidates,
            items_input_fn=inputs.candidates(experiment),
            k=given.top_k,
            approximate=given.approximate,
        )
    return given.function()(
        serving_input_receiver_fn=functools.partial(receiver, experiment),
        assets_extra=reading.assets_extra(experiment),
        **_arguments(given, "inputs", "top_k", "approximate")
        | _compared(experiment, given)
        | answer,
    )


def _data_spec(experiment: Experiment) -> dict[str, Any]:
    """The parsing spec of the data's columns.

    A number with a default is NaN where it is missing, and `preprocessing` replaces it.
    """
    read = feature_columns(experiment)
    read.pop("negatives", None)
    used = ek.nest.flatten(list(read.values()))
    used = used or columns(experiment.features)  # a baseline takes the batch size from them
    spec = ek.feature_column.make_parse_example_spec(used)
    weight = experiment.weight_column
    if weight is not None and weight not in experiment.reads:  # a weight may be a feature, too
        spec.pop(weight, None)
    for key, derived in experiment.derived.items():
        spec.pop(key, None)
        if derived.source not in spec:
            dtype = experiment.reads[derived.source].dtype
            spec[derived.source] = ek.io.FixedLenFeature(
                [1], ek.string if dtype in ("string", "any") else getattr(ek, dtype), None
            )
    for key in spec.keys() & experiment.formats.keys():  # cells, which the graph reads
        spec[key] = ek.io.FixedLenFeature([1], ek.string, "")
    return {
        key: each._replace(default_value=np.full(each.shape, np.nan))
        if preprocessing.is_filled(read)
        else each
        for key, each in spec.items()
        for read in (experiment.reads.get(key),)
    }


def _receiver(experiment: Experiment) -> Any:
    """Receives the data's columns as they are."""
    fed = {
        key: ek.placeholder(each.dtype, [None, *getattr(each, "shape", [None])])
        for key, each in _data_spec(experiment).items()
    }
    for key, values in example_rows(experiment).items():
        ek.add_to_collection(EXAMPLE_ROWS, (fed[key], values))
    features = preprocessing.features(experiment, fed)
    return ek.estimator.export.ServingInputReceiver(features, fed)


def _examples_receiver(experiment: Experiment) -> Any:
    """Receives serialized `Example`s."""
    examples = ek.placeholder(ek.string, [None], "input_example_tensor")
    data = ek.io.parse_example(examples, _data_spec(experiment))
    features = preprocessing.features(experiment, data)
    return ek.estimator.export.ServingInputReceiver(features, {"examples": examples})


def _compared(experiment: Experiment, export: Any) -> dict[str, Any]:
    """The metric of an exporter of the best model that names none, and whether it waits: until
    that model is restored, which another metric may not choose.
    """
    selection, stopping = experiment.selection, experiment.train.early_stopping
    if not isinstance(export, ExportBest) or selection is None:
        return {}
    is_restored = stopping is None or stopping.restore_best
    found: dict[str, Any] = {
        "at_end": export.at_end and is_restored and export.metric in (None, selection.metric)
    }
    if export.metric is None:
        found |= {"metric": selection.metric, "mode": selection.mode}
    return found


_TRACKERS = {"mlflow": ek.estimator.MLflowHook, "wandb": ek.estimator.WandbHook}


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
        found.append(each.function()(**given))
    for name in experiment.run.loggers:
        settings = {
            key: each if isinstance(each, bool | int | float | str) else str(each)
            for key, each in leaves(experiment.model_dump(mode="json"))
        }
        found.append(_TRACKERS[name](experiment.name, settings, experiment.run.save_summary_steps))
    if experiment.estimator.reads_once:
        return found  # there is one evaluation
    stopping: EarlyStopping | None = experiment.train.early_stopping
    selection = experiment.selection
    by = None if selection is None else selection.evaluation
    if stopping is not None:
        given = dict(stopping) | {"evaluation": stopping.evaluation or by}
        found.append(ek.estimator.EarlyStopping(**given))
    elif selection is not None:
        metric, mode = selection.metric, selection.mode
        found.append(ek.estimator.EarlyStopping(metric, mode, patience=None, evaluation=by))
    return found
