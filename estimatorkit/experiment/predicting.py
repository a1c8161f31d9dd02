"""Predictions of a trained experiment or an exported model, as columns.

The columns are `prediction` and, of a classifier, `probability` (of that class) and
`probability_<class>`; of a regressor with several outputs `prediction_0`, `prediction_1`, ...; of
several labels `prediction_<head>`, the probability of 1, in the order of names; of a `TwoTower` the
score of the pair, or the best items of an export with `top_k`: `item_1`, `score_1`, `item_2`, ...

Explained predictions have also `baseline` and `contribution_<column>`, for each column of the data
(see `explanations`); they add up to the number that is predicted, to the probability of class 1 of
two classes, and of more to that of the class that is predicted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as ek
from estimatorkit.estimator import explanations
from estimatorkit.estimator.explanations import (
    BACKGROUND_FILE,
    background_of_export,
    read_background,
)
from estimatorkit.estimator.serving.exported_files import SIGNATURE
from estimatorkit.experiment import build, examples, inferred, tables, thresholds
from estimatorkit.experiment.columns import Read
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.preprocessing import preprocessed
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tables import Table
from estimatorkit.premade.folds import FOLD

Columns = dict[str, NDArray[Any]]
Inputs = Mapping[str, NDArray[Any]]
BASELINE, CONTRIBUTION = "baseline", "contribution_"


@dataclass(frozen=True)
class Model:
    """A model as a function of tables.

    Attributes:
        read: the model's inputs, of a table and its name for messages.
        outputs: the predictions of inputs, by key.
        columns: predictions as columns, of the predictions, the table and its name.
        background: inputs of rows that stand for unknown values in explanations.
    """

    read: Callable[[Table, str], Inputs]
    outputs: Callable[[Inputs], Mapping[str, Any]]
    columns: Callable[[Mapping[str, Any], Table, str], Columns]
    background: Callable[[], Inputs]

    def __call__(self, table: Table, origin: str) -> Columns:
        """The predictions of a table, whose name in messages is `origin`."""
        return self.columns(self.outputs(self.read(table, origin)), table, origin)

    def explained(self, table: Table, origin: str) -> Columns:
        """The predictions, and what each column of the table adds to them."""
        inputs = dict(self.read(table, origin))
        fold = inputs.pop(FOLD, None)  # of all rows; not a column, and never unknown

        def outputs(rows: Inputs) -> Mapping[str, Any]:
            if fold is None:
                return self.outputs(rows)
            return self.outputs({**rows, FOLD: np.resize(fold, len(next(iter(rows.values()))))})

        found = explanations.explained(
            explanations.score_of(outputs, inputs), inputs, self.background()
        )
        added = {f"{CONTRIBUTION}{key}": each for key, each in found.contributions.items()}
        return self(table, origin) | {BASELINE: found.baseline} | added


@dataclass(frozen=True)
class Prediction:
    """The model's prediction for one example.

    Attributes:
        value: the class's name, the number(s) of a regressor, or the probabilities of 1 of several
            labels.
        probabilities: by class name, in class order; empty for a regressor.
    """

    value: str | tuple[float, ...]
    probabilities: Mapping[str, float]


def without_explanation(columns: Columns) -> Columns:
    """The columns but for those of an explanation."""
    return {
        name: column
        for name, column in columns.items()
        if name != BASELINE and not name.startswith(CONTRIBUTION)
    }


def by_row(columns: Columns, names: Sequence[str]) -> list[Prediction]:
    """The predictions of the columns' rows.

    Args:
        names: those of the classes; empty for a regressor.
    """
    if names:
        chances = np.stack([columns[f"probability_{name}"] for name in names], axis=1)
        return [
            Prediction(str(value), dict(zip(names, map(float, row), strict=True)))
            for value, row in zip(columns["prediction"], chances, strict=True)
        ]
    if all(column.dtype.kind == "O" for column in columns.values()):  # clusters
        return [Prediction(value, {}) for value in columns["prediction"]]
    return [Prediction(tuple(map(float, row)), {}) for row in zip(*columns.values(), strict=True)]


def of_experiment(experiment: Experiment) -> Model:
    """The model of an experiment at its latest checkpoint, which the first call looks for."""
    experiment = inferred.resolve(experiment)
    names = examples.class_names(experiment)
    found: list[Any] = []

    def outputs(read: Inputs) -> Mapping[str, Any]:
        features = preprocessed(experiment, read)
        (estimator,) = found or (trained(experiment),)
        found[:] = [estimator]

        def input_fn() -> Any:
            rows = ek.data.Dataset.from_tensor_slices(features)
            return rows.batch(experiment.predict.batch_size)

        return _joined(list(estimator.predict(input_fn, yield_single_examples=False)))

    return Model(
        lambda table, origin: examples.features_of(experiment, table, origin, weighted=False),
        outputs,
        lambda outputs, table, origin: _columns(outputs, names, table, origin),
        functools.cache(lambda: read_background(Path(experiment.model_dir) / BACKGROUND_FILE)),
    )


def trained(experiment: Experiment) -> Any:
    """The estimator of an experiment (with its columns listed), which has a checkpoint, with its
    threshold.

    Raises:
        DataError: it has none.
    """
    estimator = build.estimator(experiment)
    if estimator.latest_checkpoint() is None:
        raise DataError.explained(
            f"{experiment.model_dir}: there is no trained model",
            expected="a checkpoint in model_dir",
            hint="train first (estimatorkit train), or give the right --model-dir.",
        )
    return thresholds.deciding(experiment, estimator)


def export_in(folder: Path) -> Path | None:
    """The exported model in a folder: the folder itself, or its newest version; None if there is
    none.
    """
    if (folder / SIGNATURE).is_file():
        return folder
    versions = [each for each in folder.glob("[0-9]*") if (each / SIGNATURE).is_file()]
    return max(versions, key=lambda each: (len(each.name), each.name), default=None)


def of_export(directory: Path) -> Model:
    """An exported model, whose inputs are the columns of the data.

    Raises:
        DataError: its inputs are not columns.
    """
    predictor = ek.load_predictor(str(directory))
    signature = next(
        (each for name, each in predictor.signatures.items() if name == "predict"),
        predictor.signature(),
    )
    described = {key: signature.inputs[key] for key in signature.inputs}
    if [*described] in (["examples"], ["inputs"]):
        raise DataError.explained(
            f"{directory}: the model takes serialized Examples, not columns",
            expected="an export with inputs: features",
        )

    def read(table: Table, origin: str) -> Inputs:
        tables.require(table, described, origin, lambda table: table)
        fed = {}
        for key, (dtype, _) in described.items():
            missing = None if dtype is ek.string else -1 if dtype.is_integer else np.nan
            kind = Read(key, dtype.name, missing)
            fed[key] = examples.column_of(table[key], kind, origin, table.place)
        return fed

    def columns(outputs: Mapping[str, Any], table: Table, origin: str) -> Columns:
        names = [examples.text(each) for each in outputs.get("all_classes", [[]])[0]]
        return _columns(outputs, names, table, origin)

    return Model(
        read,
        lambda fed: predictor.answers(fed, [signature])[0],
        columns,
        functools.cache(lambda: read_background(background_of_export(directory))),
    )


def _joined(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: np.concatenate([each[key] for each in batches]) for key in batches[0]}


def of_heads(outputs: Mapping[Any, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Predictions by `<head>/<key>`, as an export has them; those of one head by key."""
    return {"/".join(key) if isinstance(key, tuple) else key: each for key, each in outputs.items()}


def _columns(
    outputs: Mapping[str, NDArray[Any]], names: Sequence[str], table: Table, origin: str
) -> Columns:
    """A model's outputs as columns.

    Raises:
        DataError: a prediction is not a number, as a feature is not.
    """
    if "cluster_index" in outputs:
        clusters = outputs["cluster_index"].reshape(-1)
        return {"prediction": np.array([f"cluster {each}" for each in clusters], object)}
    if "score" in outputs:
        return {"prediction": outputs["score"]}
    if "scores" in outputs and "ids" in outputs:  # of `export_candidates`
        ids, ranked = outputs["ids"].astype(str).astype(object), outputs["scores"]
        return {
            f"{key}_{place + 1}": column[:, place]
            for place in range(ids.shape[1])
            for key, column in (("item", ids), ("score", ranked))
        }
    heads = {
        name.removesuffix("/logistic"): each
        for name, each in sorted(of_heads(outputs).items())
        if name.endswith("/logistic")
    }
    if heads:
        numbers = np.concatenate(list(heads.values()), axis=1)
    else:
        numbers = outputs["predictions" if "predictions" in outputs else "probabilities"]
    broken = ~np.isfinite(numbers).all(axis=1)
    if broken.any():
        raise DataError.explained(
            f"{origin}: the prediction for {table.place(int(broken.argmax()))} is not a number",
            expected="a number in each column that the model reads",
            hint="features with a default may be missing.",
        )
    if heads:
        return {f"prediction_{name}": each.reshape(-1) for name, each in heads.items()}
    if "predictions" in outputs:
        count = numbers.shape[1]
        keys = ["prediction"] if count == 1 else [f"prediction_{each}" for each in range(count)]
        return dict(zip(keys, numbers.T, strict=True))
    chosen = outputs["class_ids"].reshape(-1)
    found = {
        "prediction": np.array(names, object)[chosen],
        "probability": numbers[np.arange(len(chosen)), chosen],
    }
    return found | {f"probability_{name}": numbers[:, at] for at, name in enumerate(names)}
