"""Model functions of models that are fitted to all rows at once, at the end of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.logger import logger
from estimatorkit.ops.array.filling import zeros_like
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
Fit = Callable[[Array, Array, Array | None, RunConfig], Values]
"""Values of the variables from rows, labels, weights (or None) and the configuration."""


def fit_model_fn(
    head: Any,
    columns: ForestColumns,
    make: Callable[[], Iterable[Variable]],
    logits_of: Callable[[Any, Tensor], Tensor],
    fit: Fit,
) -> Callable[..., EstimatorSpec]:
    """A model function whose training reads rows, and fits the model to them at its end.

    Args:
        head: makes predictions, metrics and a loss of logits.
        columns: what is read.
        make: makes the variables of the model.
        logits_of: logits `(batch, units)` of the variables and of rows, `(batch, inputs)`.
        fit: see `Fit`.
    """

    def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        rows = columns.rows(features, mode)
        variables = make()
        if mode != ModeKeys.TRAIN:
            logits = logits_of(variables, rows)
            made: EstimatorSpec = head.create_estimator_spec(features, mode, logits, labels)
            return made
        # Steps read batches. Their loss is that of a model that has learnt nothing; it checks the
        # labels.
        none = zeros_like(rows[:, :1]) + np.zeros([head.logits_dimension], np.float32)
        step = get_or_create_global_step()
        spec: EstimatorSpec = head.create_estimator_spec(
            features, mode, none, labels, train_op_fn=lambda loss: step.assign_add(1).op
        )
        read = [rows, head._targets(labels, none)]
        weights = weights_of(features, head._weight_column, none, False)
        if weights is not None:
            read.append(weights)
        scaffold = Scaffold()
        hook = _FitAtTheEnd(config, read, fit, variables, scaffold)
        return spec._replace(scaffold=scaffold, training_chief_hooks=(hook,))

    return model_fn


class _FitAtTheEnd(CheckpointSaverHook):
    """Collects the rows of all steps, fits the model at the end, and saves it: there is no
    checkpoint before.

    Args:
        config: says where.
        read: rows, labels and, if there are any, weights of a batch.
        fit: makes the values of the variables.
        variables: the variables.
        scaffold: the model's.
    """

    def __init__(
        self,
        config: RunConfig,
        read: list[Tensor],
        fit: Fit,
        variables: Iterable[Variable],
        scaffold: Scaffold,
    ) -> None:
        folder, graph = str(config.model_dir), config.checkpoint_save_graph_def
        super().__init__(folder, save_steps=1, scaffold=scaffold, save_graph_def=graph)
        self._read = read
        self._fit = fit
        self._variables = variables
        self._config = config
        self._batches: list[list[Array]] = []
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
        self._batches.append([np.asarray(each) for each in run_values.results])

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
        rows, *others = map(np.concatenate, zip(*self._batches, strict=True))
        self._batches = []
        labels, *weights = (each.reshape(-1) for each in others)
        values = self._fit(rows, labels, weights[0] if weights else None, self._config)
        for variable, value in zip(self._variables, values, strict=True):
            variable.load(value, session)
        super().end(session)


__all__ = ["fit_model_fn"]
