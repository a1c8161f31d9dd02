"""Runs an experiment: builds its estimator and input functions, with the public API only.

`train`, `evaluate` and `predict` are the three actions. A table is a dict of columns, one NumPy
array a column, all of one length; `features_of` and `labels_of` take what the experiment names out
of it, and say which column or row is wrong where it cannot be used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import estimatorkit as ek
from estimatorkit.core.errors import explain
from estimatorkit.experiment import schema
from estimatorkit.experiment.document import suggestion
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.load import dump_experiment
from estimatorkit.experiment.schema import Experiment

Table = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Prediction:
    """What the model says of one example.

    Attributes:
        value: the class's name, or the number(s) of a regressor.
        probabilities: by class name, in class order; empty for a regressor.
    """

    value: str | tuple[float, ...]
    probabilities: Mapping[str, float]


# -------------------------------------------------------------------------------------------- build


def build_estimator(experiment: Experiment) -> Any:
    """Makes the premade estimator that the experiment describes."""
    given = {name: value for name, value in experiment.estimator if name != "type"}
    given["optimizer"] = build_optimizer(given["optimizer"])
    if "activation" in given:
        given["activation_fn"] = getattr(ek.nn, given.pop("activation"))
    if "hidden_units" in given:
        given["hidden_units"] = list(given["hidden_units"])
    if given.get("label_vocabulary") is not None:
        given["label_vocabulary"] = list(given["label_vocabulary"])
    if not is_baseline(experiment):
        given["feature_columns"] = [build_column(feature) for feature in experiment.features]
    config = ek.RunConfig(
        model_dir=experiment.model_dir,
        tf_random_seed=experiment.seed,
        **dict(experiment.run),
    )
    return getattr(ek, experiment.estimator.type)(
        model_dir=experiment.model_dir, config=config, **given
    )


def build_column(feature: schema.Feature) -> Any:
    """Makes a feature column."""
    arguments = feature.arguments
    return ek.feature_column.numeric_column(
        arguments.key, default_value=arguments.default, dtype=getattr(ek, arguments.dtype)
    )


_OPTIMIZERS = {
    "SGD": "GradientDescentOptimizer",
    "Momentum": "MomentumOptimizer",
    "Adagrad": "AdagradOptimizer",
    "Adam": "AdamOptimizer",
    "RMSProp": "RMSPropOptimizer",
    "Ftrl": "FtrlOptimizer",
}


def build_optimizer(optimizer: Any) -> Any:
    """Makes an optimizer; a name stays one, and the estimator gives it its own learning rate."""
    if isinstance(optimizer, str):
        return optimizer
    arguments = {name: value for name, value in optimizer if name != "type"}
    return getattr(ek.train, _OPTIMIZERS[optimizer.type])(**arguments)


def is_classifier(experiment: Experiment) -> bool:
    """Does the experiment's estimator tell classes apart?"""
    return isinstance(experiment.estimator, schema.Classifier)


def is_baseline(experiment: Experiment) -> bool:
    """Does the experiment's estimator ignore the features?"""
    return isinstance(experiment.estimator, schema.BaselineClassifier | schema.BaselineRegressor)


def class_names(experiment: Experiment) -> tuple[str, ...]:
    """Returns what to print for class 0, 1, ...; empty for a regressor."""
    estimator = experiment.estimator
    if not isinstance(estimator, schema.Classifier):
        return ()
    numbers = tuple(str(number) for number in range(estimator.n_classes))
    return experiment.data.class_names or estimator.label_vocabulary or numbers


# --------------------------------------------------------------------------------------------- data


def source_name(source: schema.CsvSource | str) -> str:
    """Returns a bundled split's name, or the file relative to the working directory."""
    return source if isinstance(source, str) else os.path.relpath(source.csv)


def read_source(source: schema.CsvSource | str) -> Table:
    """Reads a bundled split or a CSV file.

    Raises:
        DataError: the file is missing, has no rows, or is not a table.
    """
    if isinstance(source, str):
        features, label = ek.datasets.iris.load_data(label_name="Species")[
            ("iris_training", "iris_test").index(source)
        ]
        columns = [*features.items(), ("Species", label)]
        return {str(name): np.asarray(column) for name, column in columns}
    return read_csv(source.csv)


def read_csv(path: Path) -> Table:
    """Reads a CSV file whose first line names its columns.

    Raises:
        DataError: the file is missing, has no rows, or is not a table.
    """
    shown = os.path.relpath(path)
    if not path.is_file():
        near = sorted(os.path.relpath(found) for found in path.parent.glob("*.csv"))
        raise DataError(
            explain(
                f"{shown}: no such file",
                expected="a CSV file; in a configuration, relative to the YAML file's folder",
                hint=suggestion(shown, near)
                or (f"there is {', '.join(near[:5])}." if near else None),
            )
        )
    try:
        return cast(Table, ek.data.read_csv(path))
    except ValueError as error:
        raise DataError(str(error)) from error


def used_columns(experiment: Experiment) -> tuple[str, ...]:
    """Returns the columns that features and the weight are read from, in their order."""
    weight = experiment.estimator.weight_column
    return tuple(dict.fromkeys((*experiment.feature_keys, *([weight] if weight else []))))


def unused_columns(experiment: Experiment, table: Table) -> list[str]:
    """Returns the columns of a table that neither features nor labels are read from."""
    used = {*used_columns(experiment), *experiment.data.label}
    return [] if is_baseline(experiment) else [name for name in table if name not in used]


def _require(experiment: Experiment, table: Table, names: Iterable[str], origin: str) -> None:
    missing = [name for name in names if name not in table]
    if missing:
        unused = unused_columns(experiment, table)
        hints = [f"{name}: {near}" for name in missing if (near := suggestion(name, unused))]
        raise DataError(
            explain(
                f"{origin}: no column {', '.join(repr(name) for name in missing)}",
                expected=f"the columns {', '.join(names)}",
                received=f"the columns {', '.join(table)}",
                hint="; ".join(hints) or "the first line of a CSV file names its columns.",
            )
        )


def features_of(
    experiment: Experiment, table: Table, origin: str, *, weighted: bool = True
) -> Table:
    """Takes the features (and the weight, where `weighted`) out of a table, as numbers.

    Raises:
        DataError: a column is missing, holds text, or lacks a value without a default.
    """
    weight = experiment.estimator.weight_column if weighted else None
    names = [
        name for name in used_columns(experiment) if weighted or name in experiment.feature_keys
    ]
    _require(experiment, table, names, origin)
    features = {}
    for feature in experiment.features:
        arguments = feature.arguments
        features[arguments.key] = _numbers(
            table[arguments.key], arguments.key, arguments.dtype, arguments.default, origin
        )
    if is_baseline(experiment) and not features:
        features = {name: table[name] for name in table if name not in experiment.data.label}
    if weight is not None:
        features[weight] = _numbers(table[weight], weight, "float32", None, origin)
    return features


def _numbers(
    column: NDArray[Any], name: str, dtype: str, default: float | None, origin: str
) -> NDArray[Any]:
    """Returns a column as numbers of a dtype, with the default where a value is missing."""
    if column.dtype.kind in "OUS":
        for row, value in enumerate(column, start=1):
            if value and not _is_number(value):
                raise DataError(
                    explain(
                        f"{origin}: the column {name!r} holds text",
                        expected="a number in every row",
                        received=f"{_text(value)!r} in example {row}",
                    )
                )
        column = np.array([float(value) if value else np.nan for value in column])
    missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(column.shape, bool)
    if not missing.any():
        return column.astype(dtype)
    if default is None:
        raise DataError(
            explain(
                f"{origin}: the column {name!r} lacks {int(missing.sum())} of {len(column)} values",
                expected="a number in every row",
                received=f"nothing in example {int(missing.argmax()) + 1}",
                hint=f"give a default: - numeric: {{key: {name}, default: 0}}",
            )
        )
    return np.where(missing, default, column).astype(dtype)


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def labels_of(experiment: Experiment, table: Table, origin: str) -> NDArray[Any]:
    """Takes the labels out of a table: classes, or float32 `(examples,)` or `(examples, labels)`.

    Raises:
        DataError: a label is missing, is not a class, or is text without a `label_vocabulary`.
    """
    names = experiment.data.label
    _require(experiment, table, names, origin)
    estimator = experiment.estimator
    if isinstance(estimator, schema.Regressor):
        columns = [_numbers(table[name], name, "float32", None, origin) for name in names]
        return np.stack(columns, axis=1) if len(columns) > 1 else columns[0]
    column, where = table[names[0]], f"{origin}: the label {names[0]!r}"
    if estimator.label_vocabulary is not None:
        found = [_text(value) for value in column]
        unknown = sorted(set(found) - set(estimator.label_vocabulary))
        if unknown:
            raise DataError(
                explain(
                    f"{where} is not in label_vocabulary",
                    expected=f"one of {', '.join(estimator.label_vocabulary)}",
                    received=", ".join(unknown[:5]),
                    hint=suggestion(unknown[0], estimator.label_vocabulary),
                )
            )
        return np.array(found, dtype=object)
    if column.dtype.kind in "OUS":
        classes = sorted({_text(value) for value in column})
        raise DataError(
            explain(
                f"{where} is text",
                expected=f"a class number from 0 to {estimator.n_classes - 1}",
                received=", ".join(classes[:5]),
                hint=f"name the classes: estimator.label_vocabulary: [{', '.join(classes[:10])}]",
            )
        )
    wrong = ~np.isin(column, np.arange(estimator.n_classes))
    if wrong.any():
        raise DataError(
            explain(
                f"{where} is not a class",
                expected=f"a class number from 0 to {estimator.n_classes - 1} (n_classes - 1)",
                received=f"{column[wrong][0]} in example {int(wrong.argmax()) + 1}",
            )
        )
    return column.astype(np.int64)


def examples_of(experiment: Experiment, table: Table, origin: str) -> tuple[Table, NDArray[Any]]:
    """Takes features and labels out of a table (see `features_of` and `labels_of`)."""
    return features_of(experiment, table, origin), labels_of(experiment, table, origin)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def label_names(experiment: Experiment, labels: NDArray[Any]) -> list[str | tuple[float, ...]]:
    """Returns labels as `Prediction.value` words them."""
    if not is_classifier(experiment):
        return [tuple(float(number) for number in np.atleast_1d(label)) for label in labels]
    vocabulary = getattr(experiment.estimator, "label_vocabulary", None)
    names = class_names(experiment)
    return [names[vocabulary.index(label) if vocabulary else int(label)] for label in labels]


# ------------------------------------------------------------------------------------------ actions


def training_input(experiment: Experiment) -> Callable[[], Any]:
    """Returns the input function for training: shuffled, repeated, in batches."""
    source, settings = experiment.data.train, experiment.train
    arrays = examples_of(experiment, read_source(source), source_name(source))

    def input_fn() -> Any:
        dataset = ek.data.Dataset.from_tensor_slices(arrays)
        if settings.shuffle_buffer is not None:
            dataset = dataset.shuffle(settings.shuffle_buffer, seed=experiment.seed)
        return dataset.repeat().batch(settings.batch_size)

    return input_fn


def train(experiment: Experiment) -> Any:
    """Trains, and writes the configuration beside the model as `experiment.yaml`.

    Returns:
        The estimator.

    Raises:
        DataError: the training data do not fit the experiment.
    """
    input_fn = training_input(experiment)
    estimator = build_estimator(experiment)
    estimator.train(
        input_fn=input_fn, steps=experiment.train.steps, max_steps=experiment.train.max_steps
    )
    path = Path(experiment.model_dir) / "experiment.yaml"
    path.write_text(dump_experiment(experiment), encoding="utf-8")
    return estimator


def evaluate(experiment: Experiment) -> dict[str, float]:
    """Returns the metrics of the newest checkpoint on the evaluation data.

    Raises:
        DataError: there is no checkpoint, or the data do not fit the experiment.
    """
    source, settings = experiment.data.evaluate, experiment.evaluate
    arrays = examples_of(experiment, read_source(source), source_name(source))
    metrics = _trained(experiment).evaluate(
        input_fn=lambda: ek.data.Dataset.from_tensor_slices(arrays).batch(settings.batch_size),
        steps=settings.steps,
    )
    return {name: float(value) for name, value in metrics.items()}


def predict(experiment: Experiment, table: Table, origin: str) -> list[Prediction]:
    """Returns a prediction for each row of a table.

    Raises:
        DataError: there is no checkpoint, or a column is missing or wrong.
    """
    features = features_of(experiment, table, origin, weighted=False)
    rows = len(next(iter(table.values())))
    outputs = _trained(experiment).predict(
        input_fn=lambda: ek.data.Dataset.from_tensor_slices(features).batch(
            experiment.predict.batch_size
        )
    )
    names = class_names(experiment)
    return [_prediction(output, names) for output in islice(outputs, rows)]


def _prediction(output: Mapping[str, Any], names: tuple[str, ...]) -> Prediction:
    if not names:
        return Prediction(tuple(float(number) for number in output["predictions"]), {})
    probabilities = dict(zip(names, map(float, output["probabilities"]), strict=True))
    return Prediction(names[int(output["class_ids"][0])], probabilities)


def _trained(experiment: Experiment) -> Any:
    estimator = build_estimator(experiment)
    if estimator.latest_checkpoint() is None:
        raise DataError(
            explain(
                f"{experiment.model_dir}: there is no trained model",
                expected="a checkpoint in model_dir",
                hint="train first (estimatorkit train), or give the right --model-dir.",
            )
        )
    return estimator
