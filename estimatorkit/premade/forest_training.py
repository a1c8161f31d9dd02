"""The model function of boosted trees, and the hook that fits the forest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.logger import logger
from estimatorkit.ops.array.filling import zeros_like
from estimatorkit.premade.classification_heads import BinaryClassHead, MultiClassHead
from estimatorkit.premade.forest import Forest, forest_logits, forest_variables
from estimatorkit.premade.forest_columns import ForestColumns
from estimatorkit.premade.forest_fit import Growth, fit
from estimatorkit.premade.head import Head
from estimatorkit.premade.label_checks import weights_of
from estimatorkit.premade.regression_head import PoissonRegressionHead, RegressionHead
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

_LOSSES: dict[type[Head], str] = {
    BinaryClassHead: "BINOMIAL_LOG_LIKELIHOOD",
    MultiClassHead: "MULTINOMIAL_LOG_LIKELIHOOD",
    RegressionHead: "SQUARED_ERROR",
    PoissonRegressionHead: "POISSON",
}


@dataclass(frozen=True)
class Task:
    """What a forest learns.

    Attributes:
        head: makes predictions, metrics and a loss of logits.
        classes: how many there are; 0 for numbers.
        loss: YDF's name of the loss.
    """

    head: Any
    classes: int
    loss: str

    @staticmethod
    def of(head: Head) -> Task:
        """The task of a head.

        Raises:
            ValueError: trees cannot learn it.
        """
        loss = _LOSSES.get(type(head))
        given: Any = head
        own = type(head) is not PoissonRegressionHead and getattr(head, "_loss_fn", None)
        if loss is None or own or (type(head) is RegressionHead and given._inverse_link_fn):
            raise value_error(
                "boosted trees cannot learn the loss of this head",
                expected="BinaryClassHead, MultiClassHead, RegressionHead or "
                "PoissonRegressionHead, without loss_fn and inverse_link_fn",
                received=f"{type(head).__name__}" + (" with a loss_fn" if own else ""),
            )
        classes = getattr(head, "_n_classes", 0)
        if not classes and head.logits_dimension > 1:
            raise value_error(
                "boosted trees learn one number, as in TensorFlow",
                expected="label_dimension=1",
                received=f"label_dimension={head.logits_dimension}",
                hint="train an estimator for each label",
            )
        return Task(head, classes, loss)


def forest_model_fn(
    task: Task, columns: ForestColumns, growth: Growth
) -> Callable[..., EstimatorSpec]:
    """The model function of a forest.

    Args:
        task: what it learns.
        columns: what it reads.
        growth: how it grows.
    """
    head = task.head

    def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        rows = columns.rows(features, mode)
        forest = forest_variables(head.logits_dimension, columns.inputs, growth.max_depth)
        if mode != ModeKeys.TRAIN:
            logits = forest_logits(forest, rows, columns.inputs)
            made: EstimatorSpec = head.create_estimator_spec(features, mode, logits, labels)
            return made
        # Steps read batches. Their loss is that of a forest without trees; it checks the labels.
        none = zeros_like(rows[:, :1]) + np.zeros([head.logits_dimension], np.float32)
        step = get_or_create_global_step()
        spec: EstimatorSpec = head.create_estimator_spec(
            features, mode, none, labels, train_op_fn=lambda loss: step.assign_add(1).op
        )
        read = [rows, head._targets(labels, none)]
        weights = weights_of(features, head._weight_column, none, False)
        if weights is not None:
            read.append(weights)
        seed = config.tf_random_seed or 0

        def fitted(rows: Array, labels: Array, weights: Array | None) -> Forest:
            found = fit(
                rows, labels, weights, columns.inputs, task.classes, task.loss, growth, seed
            )
            _report(found.losses, found.validation_losses, str(config.model_dir))
            return found.forest

        scaffold = Scaffold()
        hook = _FitAtTheEnd(config, read, fitted, forest, scaffold)
        return spec._replace(scaffold=scaffold, training_chief_hooks=(hook,))

    return model_fn


def _report(losses: list[float], validation_losses: list[float], model_dir: str) -> None:
    """Logs the last losses, and writes those of all iterations."""
    held_out = f", validation loss {validation_losses[-1]:.5g}" if validation_losses else ""
    logger.info("Grew trees in %d rounds: loss %.5g%s", len(losses), losses[-1], held_out)
    writer = MetricsWriter(model_dir)
    for number, loss in enumerate(losses):
        named = {"loss": loss}
        if validation_losses:
            named["validation_loss"] = validation_losses[number]
        writer.write(number + 1, named)
    writer.close()


class _FitAtTheEnd(CheckpointSaverHook):
    """Collects the rows of all steps, fits the forest at the end, and saves it: there is no
    checkpoint before.

    Args:
        config: says where.
        read: rows, labels and, if there are any, weights of a batch.
        fitted: makes the forest.
        forest: the variables that become it.
        scaffold: the model's.
    """

    def __init__(
        self,
        config: RunConfig,
        read: list[Tensor],
        fitted: Callable[[Array, Array, Array | None], Forest],
        forest: Forest,
        scaffold: Scaffold,
    ) -> None:
        folder, graph = str(config.model_dir), config.checkpoint_save_graph_def
        super().__init__(folder, save_steps=1, scaffold=scaffold, save_graph_def=graph)
        self._read = read
        self._fitted = fitted
        self._forest = forest
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
            logger.warning("Interrupted before the trees have grown: nothing is saved.")
            return
        rows, *others = map(np.concatenate, zip(*self._batches, strict=True))
        self._batches = []
        labels, *weights = (each.reshape(-1) for each in others)
        forest = self._fitted(rows, labels, weights[0] if weights else None)
        for variable, value in zip(self._forest, forest, strict=True):
            variable.load(value, session)
        super().end(session)


__all__ = ["Task", "forest_model_fn"]
