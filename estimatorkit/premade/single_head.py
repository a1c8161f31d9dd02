"""`SingleHead`: the base of heads of one task.

Subclasses define the targets (`_targets`), the loss of an example (`_unweighted_loss`), the
predictions (`_predict`) and the metrics (`_metrics`): see `classification_heads`,
`multi_label_head` and `regression_head`.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import losses, metrics
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.debug.shape_matching import ensure_leading
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.special import log_sigmoid
from estimatorkit.premade.head import Head, Metrics, Outcome, Version
from estimatorkit.premade.label_checks import weights_of

LossFn = Callable[..., Tensor]
SUM_OVER_BATCH_SIZE = losses.Reduction.SUM_OVER_BATCH_SIZE


@dataclass(frozen=True)
class Batch:
    """The inputs of loss and metrics.

    Attributes:
        logits: float32 `(batch, ..., logits_dimension)`.
        targets: the loss's targets, `(batch, ..., n)`.
        weights: `(batch, ..., 1)`, or in the shape of the loss; None: all 1.
        losses: the loss of each example, `(batch, ..., n)`.
        labels: the targets, where a subclass makes others of them for the loss.
    """

    logits: Tensor
    targets: Tensor
    weights: Tensor | None
    losses: Tensor
    labels: Tensor


class SingleHead(Head):
    """The base of heads of one task.

    Args:
        logits_dimension: the last dimension of the logits.
        loss_dimension: the last dimension of the losses.
        weight_column: a feature's key or a `NumericColumn`: each example's weight; None: all 1.
        loss_reduction: see `layers.losses.as_reduction`; not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving a loss for each
            example, `(batch, ..., loss_dimension)`.
        name: ends every metric's key, as `/name`, and is the name scope.

    Raises:
        ValueError: an argument is invalid.
    """

    _weights_per_logit: ClassVar[bool] = False

    def __init__(
        self,
        logits_dimension: int,
        loss_dimension: int,
        weight_column: Any,
        loss_reduction: str,
        loss_fn: LossFn | None,
        name: str | None,
    ) -> None:
        self._logits_dimension = logits_dimension
        self._loss_dimension = loss_dimension
        self._weight_column = weight_column
        self._loss_reduction = losses.as_reduction(loss_reduction, allow_none=False)
        self._loss_fn = None if loss_fn is None else _checked_loss_fn(loss_fn)
        self._name = name

    @property
    def name(self) -> str | None:
        """The head's name, or None."""
        return self._name

    @property
    def logits_dimension(self) -> int:
        """The number of logits per example."""
        return self._logits_dimension

    @property
    def loss_reduction(self) -> str:
        """How the examples' losses are reduced: a value of `layers.losses.Reduction`."""
        return self._loss_reduction

    # -- what subclasses say

    @property
    @abstractmethod
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""

    @abstractmethod
    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        """Validated targets, `(batch, ..., n)`."""

    @abstractmethod
    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        """The loss of each example, `(batch, ..., loss_dimension)`."""

    @abstractmethod
    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        """The predictions of these keys."""

    @abstractmethod
    def _metrics(self, batch: Batch) -> Metrics:
        """The metrics besides the average loss, by key without the head's name."""

    # -- how

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """Predictions by key.

        Args:
            logits: numbers `(batch, ..., logits_dimension)`.
            keys: the keys to compute; all by default.

        Raises:
            ValueError: a key is unknown, or the logits have the wrong shape.
        """
        for key in keys or ():
            if key not in self.prediction_keys:
                raise value_error(
                    f"Prediction key must be in PredictionKeys, given: {key}",
                    expected=f"some of {self.prediction_keys}",
                    hint=did_you_mean(key, self.prediction_keys),
                )
        checked = self._checked_logits(logits)
        with get_default_graph().name_scope("predictions"):
            return self._predict(checked, keys or self.prediction_keys)

    def _checked_logits(self, logits: Any) -> Tensor:
        tensor = elementwise.cast(convert_to_tensor(logits, name="logits"), float32)
        rank = tensor.shape.rank
        if rank is not None and (
            rank < 2 or tensor.shape[-1] not in (None, self._logits_dimension)
        ):
            raise value_error(
                f"logits shape must be [D0, D1, ... DN, logits_dimension], got {tensor.shape}",
                expected=f"(batch, ..., {self._logits_dimension})",
                received=f"{tensor.name} {tensor.shape}",
                made_at=tensor.op.source,
                hint=f"use units={self._logits_dimension} in the last layer",
            )
        if rank is not None and tensor.shape[-1] is not None:
            return tensor
        what = "logits shape must be [D0, D1, ... DN, logits_dimension]"
        return ensure_leading(tensor, tensor, [self._logits_dimension], what, "logits")

    def _outcome(
        self,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None,
        counted: Tensor | None = None,
    ) -> Outcome:
        """See `Head`; `counted`, float32 `(batch, 1)`, is 0 for rows that are padding."""
        with self._scope("losses"):
            batch = self._batch(features, logits, labels, counted)
            smoothed = self._smoothed(batch)
            batches = [batch] if smoothed is None else [batch, replace(batch, losses=smoothed)]
            unregularized = [self._loss_of(each, counted) for each in batches]
            loss, *soft = unregularized
            if regularization_losses:
                total = elementwise.add_n(regularization_losses)
                loss, *soft = [each + total for each in unregularized]
        return Outcome(
            loss,
            lambda: self._all_metrics(batch, regularization_losses),
            lambda: self._mean_loss(batches[-1], unregularized[-1]),
            smoothed=soft[0] if soft else None,
        )

    def _smoothed(self, batch: Batch) -> Tensor | None:
        """The examples' losses with smoothed labels; None: labels are not smoothed."""
        return None

    def _loss_of(self, batch: Batch, counted: Tensor | None) -> Tensor:
        """The loss of a batch without regularization; see `_outcome`."""
        loss = self._reduced(batch)
        if counted is not None and self._loss_reduction == SUM_OVER_BATCH_SIZE:
            # Padding adds nothing to the sum or to the divisor.
            there = elementwise.maximum(reduce.reduce_sum(counted), 1.0)
            loss = loss * elementwise.cast(array.size(counted), float32) / there
        return loss

    def _batch(
        self, features: Any, logits: Any, labels: Any, counted: Tensor | None = None
    ) -> Batch:
        """The losses of the examples and their inputs; see `_outcome`."""
        checked = self._checked_logits(logits)
        targets = self._processed_labels(checked, labels)
        unweighted, given = self._unweighted_loss_and_weights(checked, targets, features)
        weights = None if isinstance(given, float) and given == 1.0 else given
        if counted is not None:
            weights = counted if weights is None else weights * counted
        is_plain = type(self)._processed_labels is SingleHead._processed_labels
        given_labels = targets if is_plain else self._targets(labels, checked)
        return Batch(checked, targets, weights, unweighted, given_labels)

    def _processed_labels(self, logits: Tensor, labels: Any) -> Tensor:
        """`_targets`, under TensorFlow's name for subclasses."""
        return self._targets(labels, logits)

    def _unweighted_loss_and_weights(
        self, logits: Tensor, label_ids: Tensor, features: Any
    ) -> tuple[Tensor, Any]:
        """The loss of each example, and the weights or 1.0; TensorFlow's name for subclasses."""
        if self._loss_fn is None:
            unweighted = self._unweighted_loss(label_ids, logits)
        else:
            unweighted = self._given_loss(self._loss_fn, label_ids, logits, features)
        weights = weights_of(features or {}, self._weight_column, logits, self._weights_per_logit)
        return unweighted, 1.0 if weights is None else weights

    def _reduced(self, batch: Batch) -> Tensor:
        """The examples' losses, reduced by `loss_reduction`."""
        return losses.compute_weighted_loss(
            batch.losses,
            1.0 if batch.weights is None else batch.weights,
            loss_collection=None,
            reduction=self._loss_reduction,
        )

    def _scope(self, name: str) -> AbstractContextManager[Any]:
        """The name scope of a part of the graph that version 1 has outside of any."""
        return get_default_graph().name_scope(name) if self._version == 2 else nullcontext()

    def _mean_loss(self, batch: Batch, loss: Tensor) -> dict[str, Tensor]:
        """The loss per unit of weight, which version 1 summarizes where losses are sums."""
        if self._version == 2 or self._loss_reduction != losses.Reduction.SUM:
            return {}
        weights = 1.0 if batch.weights is None else batch.weights
        total = reduce.reduce_sum(filling.ones_like(batch.losses) * weights)
        return {self._tag("average_loss"): elementwise.truediv(loss, total, name="truediv")}

    def _given_loss(
        self, loss_fn: LossFn, targets: Tensor, logits: Tensor, features: Any
    ) -> Tensor:
        taken = inspect.signature(loss_fn).parameters
        offered = {"features": features, "loss_reduction": self._loss_reduction}
        extra = {key: value for key, value in offered.items() if key in taken}
        loss = convert_to_tensor(loss_fn(labels=targets, logits=logits, **extra))
        what = f"loss_fn must return Tensor of shape [D0, D1, ... DN, {self._loss_dimension}]"
        return ensure_leading(loss, logits, [self._loss_dimension], what, "loss")

    def _predicted(self, batch: Batch, *keys: str) -> dict[str, Tensor]:
        """The values that metrics compare with targets; a subclass may override `predictions`."""
        if type(self).predictions is SingleHead.predictions:
            return self._predict(batch.logits, keys)
        given = inspect.signature(self.predictions).parameters
        return self.predictions(batch.logits, *([keys] if len(given) > 1 else []))

    def _all_metrics(self, batch: Batch, regularization_losses: Sequence[Tensor] | None) -> Metrics:
        with self._metrics_scope():
            found = {
                "average_loss": metrics.mean(
                    batch.losses, batch.weights, name=self._metric_name("average_loss")
                ),
                **self._metrics(batch),
            }
            if regularization_losses:
                total = elementwise.add_n(regularization_losses)
                found["regularization_loss"] = metrics.mean(total, name="regularization_loss")
        return {f"{key}/{self._name}" if self._name else key: pair for key, pair in found.items()}

    def _metrics_scope(self) -> AbstractContextManager[Any]:
        """The name scope of the metrics."""
        return get_default_graph().name_scope("metrics")

    def _metric_name(self, key: str) -> str | None:
        """What the operations of a metric are called; None for the kind of metric."""
        return key


def mean_log_probability(log_probabilities: Tensor, weights: Any) -> Tensor:
    """The logarithm of the members' mean probability; arguments as for `Head.average_logits`."""
    if weights is None:
        members = elementwise.cast(array.shape(log_probabilities)[1], float32)
        return reduce.reduce_logsumexp(log_probabilities, 1) - elementwise.log(members)
    shares = array.expand_dims(elementwise.log(weights), -1)
    return reduce.reduce_logsumexp(log_probabilities + shares, 1)


def average_sigmoid_logits(logits: Tensor, weights: Any) -> Tensor:
    """The logits of the mean of the members' sigmoids; see `Head.average_logits`."""
    on = mean_log_probability(log_sigmoid(logits), weights)
    return on - mean_log_probability(log_sigmoid(-logits), weights)


def metrics_at(
    threshold: float, targets: Tensor, probabilities: Tensor, weights: Tensor | None
) -> Metrics:
    """Accuracy, precision and recall at a threshold, by TensorFlow's keys."""
    decision = elementwise.greater(probabilities, float(threshold))
    kinds = {
        "accuracy": metrics.accuracy,
        "precision": metrics.precision,
        "recall": metrics.recall,
    }
    keys = {kind: f"{kind}/positive_threshold_{threshold:g}" for kind in kinds}
    return {
        keys[kind]: metric(targets, decision, weights, name=keys[kind])
        for kind, metric in kinds.items()
    }


def areas_under_curves(
    targets: Tensor,
    probabilities: Tensor,
    weights: Tensor | None,
    end: str = "",
    *,
    version: Version,
) -> Metrics:
    """The areas under both curves, by TensorFlow's keys with suffix `end`, as a version computes
    them.
    """
    return {
        f"{key}{end}": metrics.auc(
            targets,
            probabilities,
            weights,
            curve=curve,
            name=f"{key}{end}",
            summation_method="interpolation" if version == 2 else "trapezoidal",
        )
        for key, curve in (("auc", "ROC"), ("auc_precision_recall", "PR"))
    }


def checked_thresholds(thresholds: Iterable[float] | None) -> tuple[float, ...]:
    """Validates thresholds.

    Raises:
        ValueError: one is not in (0, 1).
    """
    found = tuple(thresholds or ())
    for threshold in found:
        if not 0.0 < threshold < 1.0:
            raise ValueError(
                f"thresholds not in (0, 1): {found}. "
                f"thresholds must be in (0, 1) range. Given: {threshold}"
            )
    return found


def _checked_loss_fn(loss_fn: LossFn) -> LossFn:
    given = tuple(inspect.signature(loss_fn).parameters)
    for required in ("labels", "logits"):
        if required not in given:
            raise ValueError(f"loss_fn must contain argument: {required}. Given arguments: {given}")
    unexpected = sorted(set(given) - {"labels", "logits", "features", "loss_reduction"})
    if unexpected:
        raise ValueError(f"loss_fn has unexpected args: {unexpected}")
    return loss_fn


__all__ = [
    "Batch",
    "LossFn",
    "SingleHead",
    "areas_under_curves",
    "average_sigmoid_logits",
    "checked_thresholds",
    "mean_log_probability",
    "metrics_at",
]
