"""Heads of models that predict numbers: `RegressionHead`, and the generalized linear
`PoissonRegressionHead` and `LogisticRegressionHead`; see `single_head` for what heads share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from estimatorkit.core.dtypes import float32, string
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.serving.export_outputs import (
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from estimatorkit.layers import metrics
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.activations import log_poisson_loss
from estimatorkit.premade.head import Metrics, Version
from estimatorkit.premade.label_checks import (
    as_batch_of,
    check_finite_labels,
    check_label_range,
    checked_labels,
)
from estimatorkit.premade.single_head import Batch, LossFn, SingleHead
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY


class RegressionHead(SingleHead):
    """Regression with squared error (`tf.estimator.RegressionHead`).

    Labels: numbers `(batch, label_dimension)` or, for one label per example, `(batch,)`.

    Predictions: `predictions` float32 `(batch, label_dimension)`; with an `inverse_link_fn` also
        `logits`.

    Metrics: `average_loss`, `label/mean`, `prediction/mean`.

    Args:
        label_dimension: the number of labels per example; 1 by default.
        weight_column: the key or `NumericColumn` of the weights, one per example or one per label;
            None (default) for weights of 1.
        loss_reduction: 'sum_over_batch_size' (default: the weighted sum divided by batch size times
            label_dimension), 'sum', or another of `losses.Reduction`, but not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving `(batch,
            label_dimension)`; squared error by default.
        inverse_link_fn: maps logits to predictions; none by default.
        name: the head's name, appended to the keys of metrics as `/name`; None by default.

    Raises:
        ValueError: an argument is invalid.
    """

    _weights_per_logit = True

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        inverse_link_fn: Callable[[Tensor], Tensor] | None = None,
        name: str | None = None,
    ) -> None:
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        super().__init__(
            label_dimension, label_dimension, weight_column, loss_reduction, loss_fn, name
        )
        self._inverse_link_fn = inverse_link_fn

    @property
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""
        return ("predictions",) if self._inverse_link_fn is None else ("predictions", "logits")

    @property
    def is_least_squares(self) -> bool:
        """Whether predictions are the logits, and the loss is the squared error."""
        return self._inverse_link_fn is None and self._loss_fn is None

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        tensor = checked_labels(labels, logits, self._logits_dimension)
        if tensor.dtype is string:
            raise value_error(
                "Regression labels must be numbers",
                received=f"{tensor.name} {tensor.shape} string",
                made_at=tensor.op.source,
                hint="convert them in input_fn, or use a classifier with label_vocabulary",
            )
        if tensor.dtype.is_floating:
            check_finite_labels(tensor)
        return as_batch_of(logits, elementwise.cast(tensor, float32), self._logits_dimension)

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        return elementwise.squared_difference(logits, targets)

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        if self._inverse_link_fn is None:
            return {"predictions": logits}
        found = {"predictions": self._inverse_link_fn(logits), "logits": logits}
        return {key: value for key, value in found.items() if key in keys}

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        output = RegressionOutput(predictions["predictions"])
        return {
            DEFAULT_SERVING_SIGNATURE_DEF_KEY: output,
            "regression": output,
            "predict": PredictOutput(predictions),
        }

    def _metrics(self, batch: Batch) -> Metrics:
        guesses = self._predicted(batch, "predictions")["predictions"]
        return {
            "prediction/mean": metrics.mean(guesses, batch.weights, name="prediction/mean"),
            "label/mean": metrics.mean(
                batch.labels, batch.weights, name=self._metric_name("label/mean")
            ),
        }

    def _metrics_scope(self) -> AbstractContextManager[Any]:
        return self._scope("metrics")

    def _metric_name(self, key: str) -> str | None:
        return key if self._version == 2 else None


class PoissonRegressionHead(RegressionHead):
    """Poisson regression of counts; logits are log rates (`tf.estimator.PoissonRegressionHead`).

    Labels: numbers >= 0 in the shape that `RegressionHead` takes. Predictions: `predictions`, the
    rates `exp(logits)`, and `logits`. Metrics: as `RegressionHead`.

    Args:
        label_dimension, weight_column, loss_reduction, name: see `RegressionHead`.
        compute_full_loss: whether the loss has Stirling's approximation of the constant term; see
            `nn.log_poisson_loss`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        def loss(labels: Tensor, logits: Tensor) -> Tensor:
            return log_poisson_loss(labels, logits, compute_full_loss=compute_full_loss)

        super().__init__(
            label_dimension, weight_column, loss_reduction, loss, elementwise.exp, name
        )


class LogisticRegressionHead(RegressionHead):
    """Logistic regression of fractions (`tf.estimator.LogisticRegressionHead`).

    `BinaryClassHead` without classes: labels are numbers in [0, 1], `(batch,)` or `(batch, 1)`.
    Predictions: `predictions`, `sigmoid(logits)`, and `logits`. Metrics: as `RegressionHead`.

    Args:
        weight_column, loss_reduction, name: see `RegressionHead`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        def loss(labels: Tensor, logits: Tensor) -> Tensor:
            check_label_range(labels, 2, "Labels must be in range [0, 1]")
            return nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

        super().__init__(1, weight_column, loss_reduction, loss, nn.sigmoid, name)


def regression_head(
    label_dimension: int, weight_column: Any, loss_reduction: str, version: Version = 2
) -> RegressionHead:
    """Returns the head of a regressor.

    Args:
        label_dimension, weight_column, loss_reduction: see `RegressionHead`.
        version: the major version of TensorFlow to follow in operation names.
    """
    head = RegressionHead(label_dimension, weight_column, loss_reduction)
    head._version = version
    return head


__all__ = ["LogisticRegressionHead", "PoissonRegressionHead", "RegressionHead", "regression_head"]
