"""`Head`: from logits to predictions, loss, metrics and training operation.

A model function computes logits and hands them to a head; the head is what makes it a classifier or
a regressor. `Head` holds what all share; a subclass says how labels become targets (`_targets`),
what an example costs (`_unweighted_loss`), what is predicted (`_predict`) and which metrics there
are (`_metrics`): see `classification_heads` and `regression_head`. Keys, dtypes and shapes are
those of TensorFlow 2.15's heads.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import did_you_mean, explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array, elementwise
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers import losses, metrics
from estimatorkit.layers.metrics.streaming import Metric
from estimatorkit.premade.label_checks import weights_of
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizer import Optimizer

LossFn = Callable[..., Tensor]


@dataclass(frozen=True)
class Batch:
    """What loss and metrics are computed from.

    Attributes:
        logits: float32 `(batch, ..., logits_dimension)`.
        targets: labels as the loss takes them, `(batch, ..., n)`.
        weights: `(batch, ..., 1)`, or in the shape of the loss; None: all 1.
        losses: of each example, `(batch, ..., n)`.
    """

    logits: Tensor
    targets: Tensor
    weights: Tensor | None
    losses: Tensor


class Head(ABC):
    """What all heads share.

    Args:
        logits_dimension: the last dimension of the logits.
        loss_dimension: the last dimension of the losses, and of the labels.
        weight_column: a feature's key or a `NumericColumn`: each example's weight; None: all 1.
        loss_reduction: see `layers.losses.as_reduction`; not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving a loss for each
            example, `(batch, ..., loss_dimension)`.
        name: ends every metric's key, as `/name`, and is the name scope.

    Raises:
        ValueError: an argument does not fit.
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
        """How many logits an example has."""
        return self._logits_dimension

    @property
    def loss_reduction(self) -> str:
        """How the examples' losses become one: a value of `layers.losses.Reduction`."""
        return self._loss_reduction

    # -- what subclasses say

    @property
    @abstractmethod
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""

    @abstractmethod
    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        """Checked labels as the loss takes them, `(batch, ..., loss_dimension)`."""

    @abstractmethod
    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        """The loss of each example, `(batch, ..., loss_dimension)`."""

    @abstractmethod
    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        """The predictions of these keys."""

    @abstractmethod
    def _metrics(self, batch: Batch) -> dict[str, Metric]:
        """The metrics besides the average loss, by key without the head's name."""

    # -- what users call

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Predictions by key.

        Args:
            logits: numbers `(batch, ..., logits_dimension)`.
            keys: which; all by default.

        Raises:
            ValueError: a key is unknown, or the logits have another shape.
        """
        for key in keys or ():
            if key not in self.prediction_keys:
                raise ValueError(
                    explain(
                        f"Prediction key must be in PredictionKeys, given: {key}",
                        expected=f"some of {self.prediction_keys}",
                        hint=did_you_mean(key, self.prediction_keys),
                    )
                )
        checked = self._checked_logits(logits)
        with get_default_graph().name_scope("predictions"):
            return self._predict(checked, keys or self.prediction_keys)

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> Tensor:
        """The training loss, a float32 scalar.

        Args:
            labels: see the head.
            logits: numbers `(batch, ..., logits_dimension)`.
            features: the features, among them the weights.
            mode: accepted for TensorFlow's signature.
            regularization_losses: scalars that are added.

        Raises:
            ValueError, TypeError: labels, logits or weights do not fit.
        """
        return self._total(self._batch(features, logits, labels), regularization_losses)

    def eval_metric_ops(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> dict[str, Metric]:
        """The metrics, `(value, update_op)` by key; arguments as for `loss`."""
        return self._all_metrics(self._batch(features, logits, labels), regularization_losses)

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Optimizer | None = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> EstimatorSpec:
        """What a `model_fn` returns.

        Args:
            features: tensors by key; weights are taken from here.
            mode: a `ModeKeys`.
            logits: numbers `(batch, ..., logits_dimension)`.
            labels: see the head; needed for TRAIN and EVAL.
            optimizer: minimizes the loss; exactly one of it and `train_op_fn` is needed for TRAIN.
            trainable_variables: what it changes; all trainable variables by default.
            train_op_fn: `train_op_fn(loss)`, giving the training operation.
            update_ops: operations that must run with each step; by default those in the collection
                UPDATE_OPS (TensorFlow 2 runs none by default, so that batch normalization silently
                keeps its first averages).
            regularization_losses: scalars that are added to the loss.

        Raises:
            ValueError, TypeError: labels, logits, weights or another argument do not fit.
        """
        graph = get_default_graph()
        with graph.name_scope(self._name or "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions=predictions)
            batch = self._batch(features, logits, labels)
            loss = self._total(batch, regularization_losses)
            if mode == ModeKeys.EVAL:
                return EstimatorSpec(
                    mode,
                    predictions=predictions,
                    loss=loss,
                    eval_metric_ops=self._all_metrics(batch, regularization_losses),
                )
        with graph.name_scope(None):
            train_op = _train_op(loss, optimizer, trainable_variables, train_op_fn)
            if update_ops is None:
                update_ops = graph.get_collection(GraphKeys.UPDATE_OPS)
            if not isinstance(update_ops, (list, tuple)):
                raise ValueError(
                    f"update_ops should be a list or a tuple. Given type: {type(update_ops)}."
                )
            if update_ops:
                train_op = array.group(train_op, *update_ops)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    # -- how

    def _checked_logits(self, logits: Any) -> Tensor:
        tensor = elementwise.cast(convert_to_tensor(logits, name="logits"), float32)
        rank = tensor.shape.rank
        if rank is not None and (
            rank < 2 or tensor.shape[-1] not in (None, self._logits_dimension)
        ):
            raise ValueError(
                explain(
                    f"logits shape must be [D0, D1, ... DN, logits_dimension], got {tensor.shape}",
                    expected=f"(batch, ..., {self._logits_dimension})",
                    received=f"{tensor.name} {tensor.shape}",
                    made_at=tensor.op.source,
                    hint=f"let the last layer have units={self._logits_dimension}",
                )
            )
        return tensor

    def _batch(self, features: Mapping[str, Any] | None, logits: Any, labels: Any) -> Batch:
        with get_default_graph().name_scope("losses"):
            checked = self._checked_logits(logits)
            targets = self._targets(labels, checked)
            if self._loss_fn is None:
                unweighted = self._unweighted_loss(targets, checked)
            else:
                unweighted = self._given_loss(self._loss_fn, targets, checked, features)
            weights = weights_of(
                features or {}, self._weight_column, checked, self._weights_per_logit
            )
            return Batch(checked, targets, weights, unweighted)

    def _given_loss(
        self, loss_fn: LossFn, targets: Tensor, logits: Tensor, features: Any
    ) -> Tensor:
        taken = inspect.signature(loss_fn).parameters
        offered = {"features": features, "loss_reduction": self._loss_reduction}
        extra = {key: value for key, value in offered.items() if key in taken}
        loss = convert_to_tensor(loss_fn(labels=targets, logits=logits, **extra))
        expected = logits.shape[:-1].concatenate([self._loss_dimension])
        if not loss.shape.is_compatible_with(expected):
            raise ValueError(
                explain(
                    f"loss_fn must return Tensor of shape [D0, D1, ... DN, {self._loss_dimension}]",
                    expected=expected,
                    received=f"{loss.name} {loss.shape}",
                    made_at=loss.op.source,
                    hint="return one loss an example; the head weights and reduces them",
                )
            )
        return loss

    def _total(self, batch: Batch, regularization_losses: Sequence[Tensor] | None) -> Tensor:
        weights: Any = 1.0 if batch.weights is None else batch.weights
        loss = losses.compute_weighted_loss(
            batch.losses, weights, loss_collection=None, reduction=self._loss_reduction
        )
        if regularization_losses:
            loss = loss + elementwise.add_n(regularization_losses)
        return loss

    def _all_metrics(
        self, batch: Batch, regularization_losses: Sequence[Tensor] | None
    ) -> dict[str, Metric]:
        with get_default_graph().name_scope("metrics"):
            found = {
                "average_loss": metrics.mean(batch.losses, batch.weights, name="average_loss"),
                **self._metrics(batch),
            }
            if regularization_losses:
                total = elementwise.add_n(regularization_losses)
                found["regularization_loss"] = metrics.mean(total, name="regularization_loss")
        return {f"{key}/{self._name}" if self._name else key: pair for key, pair in found.items()}


def _checked_loss_fn(loss_fn: LossFn) -> LossFn:
    given = list(inspect.signature(loss_fn).parameters)
    for required in ("labels", "logits"):
        if required not in given:
            raise ValueError(f"loss_fn must contain argument: {required}. Given arguments: {given}")
    unexpected = sorted(set(given) - {"labels", "logits", "features", "loss_reduction"})
    if unexpected:
        raise ValueError(f"loss_fn has unexpected args: {unexpected}")
    return loss_fn


def _train_op(
    loss: Tensor,
    optimizer: Any,
    trainable_variables: Sequence[Any] | None,
    train_op_fn: Callable[[Tensor], Any] | None,
) -> Any:
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if train_op_fn is not None:
        return train_op_fn(loss)
    if optimizer is None:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    if not isinstance(optimizer, Optimizer):
        raise ValueError(
            explain(
                "The given optimizer is not a train.Optimizer instance",
                received=f"{optimizer!r} of type {type(optimizer)}",
            )
        )
    operation: Operation = optimizer.minimize(
        loss, global_step=get_or_create_global_step(), var_list=trainable_variables
    )
    return operation


__all__ = ["Batch", "Head", "LossFn"]
