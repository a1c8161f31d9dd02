"""Model functions of models that are fitted to all rows at once, at the end of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.logger import logger
from estimatorkit.ops.array import joining
from estimatorkit.ops.array.filling import zeros_like
from estimatorkit.premade.folds import FOLD, of_rows as folds_of_rows
from estimatorkit.premade.forest_columns import ForestColumns
from estimatorkit.premade.label_checks import weights_of
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverHook
from estimatorkit.train.hooks.hooks import (
    FinishedSteps,
    SessionRunArgs,
    SessionRunContext,
    SessionRunValues,
)
from estimatorkit.train.hooks.interruption import REASONS
from estimatorkit.train.sessions.scaffold import Scaffold

Array = NDArray[Any]
Values = Iterable[Array]


class Part(NamedTuple):
    """What a model is fitted to: rows `(rows, inputs)`, labels `(rows,)`, and weights or None."""

    rows: Array
    labels: Array
    weights: Array | None


Fit = Callable[[Iterable[Part], RunConfig], Iterable[Values]]
"""Values of the variables from the rows that train each fold, and the configuration."""


def fit_model_fn(
    head: Any,
    columns: ForestColumns,
    make: Callable[[str], Iterable[Variable]],
    logits_of: Callable[[Any, Tensor], Tensor],
    fit: Fit,
    scope: str,
    folds: int = 1,
) -> Callable[..., EstimatorSpec]:
    """A model function whose training reads rows, and fits the model to them at its end.

    Args:
        head: makes predictions, metrics and a loss of logits.
        columns: what is read.
        make: makes the variables of the model in a scope.
        logits_of: logits `(batch, units)` of the variables and of rows, `(batch, inputs)`.
        fit: see `Fit`.
        scope: that of the variables.
        folds: see `folds`; each has variables and a fit of its own, in scopes with its number.
    """

    def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        rows = columns.rows(features, mode)
        scopes = [scope, *(f"{scope}_{number}" for number in range(1, folds))]
        variables = [make(each) for each in scopes]
        if mode != ModeKeys.TRAIN:
            logits = [logits_of(each, rows) for each in variables]
            if folds == 1:
                (averaged,) = logits
            else:
                averaged = head.average_logits(
                    joining.stack(logits, 1), folds_of_rows(features, folds)
                )
            made: EstimatorSpec = head.create_estimator_spec(features, mode, averaged, labels)
            return made
        # Steps read batches. Their loss is that of a model that has learnt nothing; it checks the
        # labels.
        none = zeros_like(rows[:, :1]) + np.zeros([head.logits_dimension], np.float32)
        step = get_or_create_global_step()
        spec: EstimatorSpec = head.create_estimator_spec(
            features, mode, none, labels, train_op_fn=lambda loss: step.assign_add(1).op
        )
        read = {"rows": rows, "labels": head._targets(labels, none)}
        weights = weights_of(features, head._weight_column, none, False)
        if weights is not None:
            read["weights"] = weights
        if folds > 1:
            read["folds"] = features[FOLD]
        scaffold = Scaffold()
        hook = _FitAtTheEnd(config, read, fit, variables, scaffold)
        return spec._replace(scaffold=scaffold, training_chief_hooks=(hook,))

    return model_fn


class _FitAtTheEnd(CheckpointSaverHook):
    """Collects the rows of all steps, fits the model at the end, and saves it: there is no
    checkpoint before.

    Args:
        config: says where.
        read: rows, labels and, if there are any, weights and folds of a batch.
        fit: makes the values of the variables.
        variables: those of each fold.
        scaffold: the model's.
    """

    def __init__(
        self,
        config: RunConfig,
        read: Mapping[str, Tensor],
        fit: Fit,
        variables: Sequence[Iterable[Variable]],
        scaffold: Scaffold,
    ) -> None:
        folder, graph = str(config.model_dir), config.checkpoint_save_graph_def
        super().__init__(folder, save_steps=1, scaffold=scaffold, save_graph_def=graph)
        self._read = read
        self._fit = fit
        self._variables = variables
        self._config = config
        self._batches: list[dict[str, Array]] = []
        self._stop: list[str] = []

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Saves nothing yet."""

    def next_control_step(self, global_step: int) -> int:
        """Every step."""
        return global_step + 1

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the batch."""
        return SessionRunArgs(self._read)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Keeps it."""
        results = run_values.results.items()
        self._batches.append({name: np.asarray(each) for name, each in results})

    def after_steps(self, steps: FinishedSteps) -> None:
        """Keeps the loop's list of reasons to stop."""
        self._stop = steps.stop

    def input_failed(self, session: Any) -> None:
        """Saves nothing: the rows are not complete."""

    def end(self, session: Any) -> None:
        """Fits, unless the training was interrupted, and saves."""
        if not self._batches or not REASONS.isdisjoint(self._stop):
            logger.warning("Interrupted before the model was fitted: nothing is saved.")
            return
        first = self._batches[0]
        found = {name: np.concatenate([each[name] for each in self._batches]) for name in first}
        self._batches = []
        rows = found.pop("rows")
        given = {name: each.reshape(-1) for name, each in found.items()}
        folds = given.pop("folds", np.full(len(rows), -1))
        weights = given.get("weights")
        others = [np.flatnonzero(folds != number) for number in range(len(self._variables))]
        parts = (
            Part(rows[each], given["labels"][each], None if weights is None else weights[each])
            for each in others
        )
        fitted = self._fit(parts, self._config)
        for variables, values in zip(self._variables, fitted, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.load(value, session)
        super().end(session)


__all__ = ["Part", "fit_model_fn"]
