"""What a forest learns, and its model function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.logger import logger
from estimatorkit.premade.classification_heads import BinaryClassHead, MultiClassHead
from estimatorkit.premade.fit_at_end import Part, fit_model_fn
from estimatorkit.premade.forest import SCOPE, Forest, forest_logits, forest_variables
from estimatorkit.premade.forest_columns import ForestColumns
from estimatorkit.premade.forest_fit import Growth, fit
from estimatorkit.premade.head import Head
from estimatorkit.premade.regression_head import PoissonRegressionHead, RegressionHead

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
    task: Task, columns: ForestColumns, growth: Growth, folds: int = 1
) -> Callable[..., EstimatorSpec]:
    """The model function of a forest.

    Args:
        task: what it learns.
        columns: what it reads.
        growth: how it grows.
        folds: see `folds`; each has a forest.
    """
    units = task.head.logits_dimension

    def grown(parts: Iterable[Part], config: RunConfig) -> Iterator[Forest]:
        chosen, seed = growth, config.tf_random_seed or 0
        for part in parts:
            given = (*part, columns.inputs, task.classes, task.loss)
            found = fit(*given, chosen, seed)
            _report(found.losses, found.validation_losses, str(config.model_dir))
            if chosen.refit:
                best = len(found.losses)
                chosen = replace(growth, n_trees=best, early_stopping_fraction=0.0, refit=False)
                found = fit(*given, chosen, seed)
            yield found.forest

    return fit_model_fn(
        task.head,
        columns,
        lambda scope: forest_variables(units, columns.inputs, growth.max_depth, scope),
        lambda forest, rows: forest_logits(forest, rows, columns.inputs),
        grown,
        SCOPE,
        folds,
    )


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


__all__ = ["Task", "forest_model_fn"]
