"""Experiments derived from one, so that what measures a model has not chosen it.

Rows that chose settings or a checkpoint say too much of the model. So trials of a search are
ranked by a part of the training rows, and the rows of `data.evaluate` or `data.holdout` measure the
best one at the end (Hastie, Tibshirani and Friedman 2009, 7.2: training, validation and test).
"""

from __future__ import annotations

import math
import os
from typing import Any

from estimatorkit.experiment import row_sets
from estimatorkit.experiment.schema import Experiment, ExportBest, Selection

FOLDS = "folds"
"""The folder of the fits of a cross-validation, below that of the model."""

_SHARE = 0.2
"""The share of the training rows that chooses where the rows that measure are in another file."""


def selection(experiment: Experiment) -> Selection:
    """What trials are compared by: what selects the best checkpoint, or the loss."""
    return experiment.selection or Selection("loss", "min")


def is_apart(experiment: Experiment) -> bool:
    """Whether checkpoints are chosen by one of `data.also_evaluate`, as trials then are."""
    return selection(experiment).evaluation not in (None, row_sets.SELECT)


def share(experiment: Experiment) -> float:
    """The share of the training rows that ranks trials."""
    return experiment.data.select or experiment.data.holdout or _SHARE


def trial(experiment: Experiment) -> Experiment:
    """The experiment of a trial, from which the rows of the final evaluation are left out."""
    if is_apart(experiment) or experiment.evaluate.folds is not None:
        return experiment
    changed = _changed(experiment, data={"part": {"share": share(experiment)}, "select": None})
    return _that_keeps_last(changed) if experiment.estimator.reads_once else changed


def of_best_settings(experiment: Experiment) -> Experiment:
    """The experiment that trains with the settings that trials found.

    The rows that ranked trials choose its checkpoint. A model without a choice of checkpoints, and
    one that chooses by rows of its own as ensembles do, is trained on them, too.
    """
    if experiment.evaluate.folds is not None or is_apart(experiment):
        return experiment
    if chooses(experiment):
        return _changed(experiment, data={"select": share(experiment)})
    return _that_keeps_last(_changed(experiment, data={"select": None}))


def fold_folder(experiment: Experiment, number: int) -> str:
    """The model folder of a fold; `number` is from 1."""
    return os.path.join(experiment.model_dir, FOLDS, str(number))


def fold(experiment: Experiment, number: int) -> Experiment:
    """The experiment of a fold of the training rows, which choose nothing; `number` is from 1."""
    stopping = experiment.train.early_stopping
    chosen = experiment.selection
    kept: dict[str, Any] | None
    if stopping is None and chosen is not None and chooses(experiment):
        kept = {"metric": chosen.metric, "mode": chosen.mode, "patience": None}
    else:
        kept = None if stopping is None else stopping.model_dump(mode="json")
    changed = _changed(
        experiment,
        name=f"fold-{number}",
        model_dir=fold_folder(experiment, number),
        data={
            "part": {"fold": [number, experiment.evaluate.folds]},
            "select": _SHARE if chooses(experiment) else None,
        },
        train={"early_stopping": kept},
        evaluate={"folds": None, "training": False},
        export=[],
        tune=None,
        run={"keep_checkpoint_max": 1, "loggers": []},
    )
    return _that_keeps_last(changed) if experiment.estimator.reads_once else changed


def after_folds(experiment: Experiment, epochs: float | None) -> Experiment:
    """The experiment of the model that is trained on all training rows after cross-validation.

    Args:
        epochs: when it ends: after as many as the folds took on average; None: as it says itself.
    """
    every = {} if epochs is None else {"every": f"{math.ceil(epochs)} epochs"}  # once, at the end
    changed = _changed(experiment, train={"stop_at": epochs}, evaluate=every)
    return changed if is_apart(experiment) else _that_keeps_last(changed)


def chooses(experiment: Experiment) -> bool:
    """Whether the rows of an evaluation that is not apart choose the checkpoint."""
    is_chosen = experiment.selection is not None and not is_apart(experiment)
    return is_chosen and not experiment.estimator.reads_once


def _that_keeps_last(experiment: Experiment) -> Experiment:
    """The experiment with its last checkpoint as the model, which its exports are of."""
    exports = [
        {"type": "final"} | each.model_dump(include={"name", "inputs", "top_k", "approximate"})
        if isinstance(each, ExportBest)
        else each.model_dump(mode="json")
        for each in experiment.export
    ]
    return _changed(experiment, export=exports, train={"early_stopping": None})


def _changed(experiment: Experiment, **sections: Any) -> Experiment:
    """The experiment with other settings: of sections, the keys that are given."""
    data = experiment.model_dump(mode="json")
    for key, value in sections.items():
        data[key] = data[key] | value if isinstance(value, dict) else value
    return Experiment.model_validate(data)
