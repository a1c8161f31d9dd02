"""The threshold of a classifier of two classes: chosen on held-out rows, kept in `model_dir`.

`predict.threshold` says how. `threshold.json` has the choice for a checkpoint, so that predictions
and reports need not read the rows again; exported models have it in their graph, and the file among
their further assets.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as ek
from estimatorkit.experiment import decisions, document, examples, held_out, row_sets
from estimatorkit.experiment.decisions import Quality
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.preprocessing import preprocessed
from estimatorkit.experiment.schema import Experiment
from estimatorkit.storage.atomic_files import write_durably

FILE = "threshold.json"


@dataclass(frozen=True)
class Choice:
    """A threshold, and how good the classes are with it on the rows it was chosen on.

    Attributes:
        threshold: the probability above which the second class is predicted.
        rule: the setting `predict.threshold`.
        checkpoint: the name of the checkpoint.
        name: that of the second class.
        rows: where the rows are from.
        quality: with the threshold.
        at_half: with 0.5.
    """

    threshold: float
    rule: Any
    checkpoint: str
    name: str
    rows: str
    quality: Quality
    at_half: Quality

    @property
    def lines(self) -> list[str]:
        """What it says, for the terminal and the report."""
        asked = json.dumps(self.rule).replace('"', "")
        chosen = "" if isinstance(self.rule, float) else f", chosen by {self.rows}"
        one, other = (
            f"precision {each.precision:.4f}, recall {each.recall:.4f}, f1 {each.f1:.4f}"
            for each in (self.quality, self.at_half)
        )
        return [
            f'"{self.name}" is predicted from the probability {self.threshold:.4g} on'
            f" (predict.threshold: {asked}{chosen}): {one}",
            f"from 0.5 on: {other}",
        ]


def of_model(
    experiment: Experiment, estimator: Any, checkpoint: str | None = None, *, keep: bool = False
) -> Any:
    """The decision threshold of a checkpoint: the one kept in `model_dir`, or a new one.

    Args:
        experiment: with its columns listed (`inferred.resolve`).
        estimator: its estimator.
        checkpoint: the newest by default.
        keep: whether to write it into `model_dir`.

    Returns:
        A `Choice`; None if `predict.threshold` says nothing.

    Raises:
        DataError: the rows do not fit the experiment, or none is of the second class.
    """
    rule = experiment.predict.threshold
    if rule is None:
        return None
    name = os.path.basename(checkpoint or estimator.latest_checkpoint())
    there = kept(experiment)
    if there is not None and there.checkpoint == name:
        return there
    by = rows_that_choose(experiment)
    rows = row_sets.evaluation_source(experiment, by)
    hits, odds, weights = _predicted(experiment, estimator, checkpoint, by)
    if not isinstance(rule, float) and not weights[hits].sum():
        raise DataError.explained(
            f"{rows}: no threshold can be chosen",
            expected=f"rows of class {examples.class_names(experiment)[1]!r}",
            received=f"{len(hits)} rows without it",
            hint="hold out more rows, holdout_stratified: true; or predict: {threshold: 0.3}.",
        )
    threshold = decisions.best(rule, hits, odds, weights)
    of_folds = _of_folds(experiment)
    if of_folds and not isinstance(rule, float):
        threshold, rows = float(np.median(of_folds)), f"{len(of_folds)} folds (their median)"
    found = Choice(
        threshold,
        _shown(experiment),
        name,
        examples.class_names(experiment)[1],
        rows,
        decisions.quality(hits, odds, weights, threshold),
        decisions.quality(hits, odds, weights, decisions.HALF),
    )
    if keep:
        text = json.dumps(asdict(found), indent=2) + "\n"
        write_durably(Path(experiment.model_dir) / FILE, text.encode())
    return found


def rows_that_choose(experiment: Experiment) -> str:
    """The rows that choose a threshold: they neither trained the model nor measure it."""
    if isinstance(experiment.predict.threshold, float) or experiment.evaluate.folds is not None:
        return row_sets.MAIN
    selection = experiment.selection
    by = (selection and selection.evaluation) or row_sets.SELECT
    kept = Path(experiment.model_dir) / "config.yaml"
    if by == row_sets.SELECT and kept.is_file():
        there = document.to_data(document.parse(document.read_text(kept), str(kept)))
        if (there.get("data") or {}).get("select") is None:
            raise DataError.explained(
                f"{experiment.model_dir}: no rows are left to choose a threshold",
                expected="a model that was trained without the rows of data.select",
                hint="run it again with predict.threshold; or give a number, such as 0.3.",
            )
    return by


def _shown(experiment: Experiment) -> Any:
    return experiment.predict.model_dump(mode="json")["threshold"]


def kept(experiment: Experiment) -> Choice | None:
    """The choice in the model's folder, if there is one by the same rule.

    Raises:
        DataError: it is damaged.
    """
    path = Path(experiment.model_dir) / FILE
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
        for key in ("quality", "at_half"):
            found[key] = Quality(**found[key])
        made = Choice(**found)
        return made if made.rule == _shown(experiment) else None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError.explained(
            f"{path} holds no threshold",
            expected="what a training wrote",
            received=str(error),
            hint="delete it, and evaluate the model again.",
        ) from error


def deciding(experiment: Experiment, estimator: Any) -> Any:
    """The estimator of a trained experiment, with its threshold; arguments as for `of_model`."""
    rule = experiment.predict.threshold
    if isinstance(rule, float):  # which needs no rows
        return ek.estimator.with_threshold(estimator, rule)
    found = of_model(experiment, estimator)
    return estimator if found is None else ek.estimator.with_threshold(estimator, found.threshold)


def export(experiment: Experiment, estimator: Any, *given: Any, **options: Any) -> Any:
    """As `Estimator.export_saved_model`, of a model with the threshold for its checkpoint."""
    found = of_model(experiment, estimator, options["checkpoint_path"], keep=True)
    file = str(Path(experiment.model_dir) / FILE)
    options["assets_extra"] = {**(options["assets_extra"] or {}), FILE: file}
    decided: Any = ek.estimator.with_threshold(estimator, found.threshold)
    return decided.export_saved_model(*given, **options)


def _of_folds(experiment: Experiment) -> list[float]:
    """The thresholds of the fits of a cross-validation, whose rows the fits had not seen."""
    if experiment.evaluate.folds is None:
        return []
    numbers = range(1, experiment.evaluate.folds + 1)
    folders = [held_out.fold_folder(experiment, number) for number in numbers]
    found = [kept(experiment.model_copy(update={"model_dir": each})) for each in folders]
    return [each.threshold for each in found if each is not None]


def _predicted(
    experiment: Experiment, estimator: Any, checkpoint: str | None, by: str
) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[Any]]:
    """Of the rows of an evaluation: whether each is of the second class, its log odds, and its
    weight.
    """
    vocabulary = getattr(experiment.estimator, "label_vocabulary", None) or ("0", "1")
    origin = row_sets.evaluation_source(experiment, by)
    parts: list[tuple[Any, Any, Any]] = []
    for table in row_sets.evaluation_chunks(experiment, by):
        features = preprocessed(experiment, examples.features_of(experiment, table, origin))
        labels = examples.labels_of(experiment, table, origin)
        rows = ek.data.Dataset.from_tensor_slices(features).batch(experiment.predict.batch_size)
        batches = estimator.predict(
            lambda rows=rows: rows,
            "logits",
            checkpoint_path=checkpoint,
            yield_single_examples=False,
        )
        odds = np.concatenate([each["logits"].reshape(-1) for each in batches])
        weights = np.ones(len(odds))
        if experiment.weight_column is not None:
            weights = features[experiment.weight_column].reshape(-1).astype(float)
        parts.append((labels.astype(str) == vocabulary[1], odds, weights))
    hits, odds, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    return hits, odds, weights


__all__ = ["FILE", "Choice", "deciding", "export", "kept", "of_model", "rows_that_choose"]
