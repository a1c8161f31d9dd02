"""Heads: from logits to predictions, loss, metrics and training operation
(`tf.estimator.BinaryClassHead` and others).

A model function computes logits and hands them to a head; the head is what makes it a classifier or
a regressor. `Head` holds what all share; a subclass says how labels become targets (`_targets`),
what an example costs (`_unweighted_loss`), what is predicted (`predictions`) and which metrics
there are (`_metrics`). Keys, dtypes and shapes are those of TensorFlow 2.15's heads.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import float32, int32, string
from estimatorkit.core.errors import did_you_mean, explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array, elementwise, filling, joining, nn, reduce
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers import losses, metrics
from estimatorkit.premade.label_checks import (
    as_batch_of,
    check_finite_labels,
    check_label_range,
    checked_labels,
    weights_of,
)
from estimatorkit.premade.label_names import (
    Vocabulary,
    all_class_names,
    as_vocabulary,
    class_names,
    label_ids,
)
from estimatorkit.train.global_step import get_or_create_global_step
from estimatorkit.train.optimizer import Optimizer

LossFn = Callable[..., Tensor]


@dataclass(frozen=True)
class _Batch:
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
    def _metrics(self, batch: _Batch) -> dict[str, metrics.Metric]:
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
    ) -> dict[str, metrics.Metric]:
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

    def _batch(self, features: Mapping[str, Any] | None, logits: Any, labels: Any) -> _Batch:
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
            return _Batch(checked, targets, weights, unweighted)

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

    def _total(self, batch: _Batch, regularization_losses: Sequence[Tensor] | None) -> Tensor:
        weights: Any = 1.0 if batch.weights is None else batch.weights
        loss = losses.compute_weighted_loss(
            batch.losses, weights, loss_collection=None, reduction=self._loss_reduction
        )
        if regularization_losses:
            loss = loss + elementwise.add_n(regularization_losses)
        return loss

    def _all_metrics(
        self, batch: _Batch, regularization_losses: Sequence[Tensor] | None
    ) -> dict[str, metrics.Metric]:
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


# -- classification

_CLASS_KEYS = ("class_ids", "classes", "all_class_ids", "all_classes")


class _ClassificationHead(Head):
    """What the two classification heads share: class ids, names and a vocabulary."""

    def __init__(
        self,
        n_classes: int,
        logits_dimension: int,
        weight_column: Any,
        label_vocabulary: Any,
        loss_reduction: str,
        loss_fn: LossFn | None,
        name: str | None,
    ) -> None:
        super().__init__(logits_dimension, 1, weight_column, loss_reduction, loss_fn, name)
        self._n_classes = n_classes
        self._vocabulary = as_vocabulary(label_vocabulary, n_classes)

    @property
    def _class_names(self) -> Vocabulary:
        numbers = tuple(str(number).encode() for number in range(self._n_classes))
        return self._vocabulary or numbers

    def _class_ids(self, labels: Any, logits: Tensor, floats_allowed: bool) -> Tensor:
        """Labels as numbers of classes, `(batch, ..., 1)`, with a step check of their range."""
        tensor = checked_labels(labels, logits, 1)
        if self._vocabulary is not None:
            if tensor.dtype is not string:
                raise ValueError(
                    explain(
                        "Labels dtype should be string if there is a vocabulary. "
                        f"Instead got {tensor.dtype}",
                        made_at=tensor.op.source,
                        hint="leave out label_vocabulary, or give the labels as strings",
                    )
                )
            return as_batch_of(logits, label_ids(tensor, self._vocabulary))
        number = tensor.dtype.is_integer or (
            floats_allowed and (tensor.dtype.is_floating or tensor.dtype.is_bool)
        )
        if not number:
            raise ValueError(
                explain(
                    f"Labels dtype should be integer. Instead got {tensor.dtype}",
                    expected=f"class indices from 0 to {self._n_classes - 1}",
                    received=f"{tensor.name} {tensor.shape} {tensor.dtype.name}",
                    made_at=tensor.op.source,
                    hint="label_vocabulary=[...] names the classes of labels that are strings"
                    if tensor.dtype is string
                    else "cast(labels, int64), or use a regressor",
                )
            )
        if not tensor.dtype.is_bool:
            check_label_range(tensor, self._n_classes)
        return as_batch_of(logits, tensor)

    def _named_classes(self, scores: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        """`class_ids`, `classes`, `all_class_ids` and `all_classes` from scores `(batch, ...,
        n_classes)`.
        """
        class_ids = array.expand_dims(reduce.argmax(scores, -1, name="class_ids"), -1)
        numbers = constant(np.arange(self._n_classes, dtype=np.int32))
        made: dict[str, Callable[[], Tensor]] = {
            "class_ids": lambda: class_ids,
            "classes": lambda: class_names(class_ids, self._class_names),
            "all_class_ids": lambda: filling.zeros_like(class_ids, int32) + numbers,
            "all_classes": lambda: all_class_names(class_ids, self._class_names),
        }
        return {key: make() for key, make in made.items() if key in keys}


class BinaryClassHead(_ClassificationHead):
    """Two classes, one logit: sigmoid cross-entropy (`tf.estimator.BinaryClassHead`).

    Labels: `(batch,)` or `(batch, 1)`: integers 0 and 1, bools, floats in [0, 1], or strings with a
        vocabulary.

    Predictions: `logits`, `logistic` float32 `(batch, 1)`; `probabilities` `(batch, 2)`;
        `class_ids` int64 `(batch, 1)`;
    `classes` bytes `(batch, 1)`; `all_class_ids` int32 `(batch, 2)`; `all_classes` bytes `(batch,
    2)`.

    Metrics: `average_loss`, `accuracy`, `accuracy_baseline`, `auc`, `auc_precision_recall`,
        `precision`, `recall`,
    `label/mean`, `prediction/mean`, and for each threshold t `accuracy/positive_threshold_t`,
    `precision/...`, `recall/...`.

    Args:
        weight_column: a feature's key or a `NumericColumn`: each example's weight; None (default):
            all 1.
        thresholds: probabilities in (0, 1) above which an example counts as positive, for more
            metrics; none by default.
        label_vocabulary: two strings that name the classes, where labels are strings; None by
            default.
        loss_reduction: 'sum_over_batch_size' (default: the weighted sum divided by the batch size),
            'sum', or another of `losses.Reduction`, but not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving `(batch, 1)`;
            sigmoid cross-entropy by default.
        name: ends every metric's key, as `/name`; None by default.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(2, 1, weight_column, label_vocabulary, loss_reduction, loss_fn, name)
        self._thresholds = tuple(thresholds or ())
        if any(not 0.0 < threshold < 1.0 for threshold in self._thresholds):
            raise ValueError(f"thresholds not in (0, 1): {self._thresholds}.")

    @property
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""
        return ("logits", "logistic", "probabilities", *_CLASS_KEYS)

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        return elementwise.cast(self._class_ids(labels, logits, floats_allowed=True), float32)

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        return nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        both = joining.concat([filling.zeros_like(logits), logits], -1, name="two_class_logits")
        made: dict[str, Callable[[], Tensor]] = {
            "logits": lambda: logits,
            "logistic": lambda: nn.sigmoid(logits, name="logistic"),
            "probabilities": lambda: nn.softmax(both, name="probabilities"),
        }
        found = {key: make() for key, make in made.items() if key in keys}
        return {**found, **self._named_classes(both, keys)}

    def _metrics(self, batch: _Batch) -> dict[str, metrics.Metric]:
        labels, weights = batch.targets, batch.weights
        guesses = self._predict(batch.logits, ("class_ids", "logistic"))
        class_ids, logistic = guesses["class_ids"], guesses["logistic"]
        found = {
            "accuracy": metrics.accuracy(labels, class_ids, weights),
            "precision": metrics.precision(labels, class_ids, weights),
            "recall": metrics.recall(labels, class_ids, weights),
            "prediction/mean": metrics.mean(logistic, weights, name="prediction/mean"),
            "label/mean": metrics.mean(labels, weights, name="label/mean"),
            "accuracy_baseline": metrics.accuracy_baseline(labels, weights),
            "auc": metrics.auc(labels, logistic, weights, summation_method="interpolation"),
            "auc_precision_recall": metrics.auc(
                *(labels, logistic, weights),
                curve="PR",
                name="auc_precision_recall",
                summation_method="interpolation",
            ),
        }
        for threshold in self._thresholds:
            end = f"/positive_threshold_{threshold:g}"
            decision = elementwise.greater(logistic, float(threshold))
            for key, metric in (
                ("accuracy", metrics.accuracy),
                ("precision", metrics.precision),
                ("recall", metrics.recall),
            ):
                found[key + end] = metric(labels, decision, weights, name=key + end)
        return found


class MultiClassHead(_ClassificationHead):
    """More than two classes, a logit for each: softmax cross-entropy
    (`tf.estimator.MultiClassHead`).

    Labels: `(batch,)` or `(batch, 1)`: integers in [0, n_classes), or strings with a vocabulary.

    Predictions: `logits`, `probabilities` float32 `(batch, n_classes)`; `class_ids` int64 `(batch,
        1)`; `classes` bytes
    `(batch, 1)`; `all_class_ids` int32 and `all_classes` bytes `(batch, n_classes)`.

    Metrics: `average_loss`, `accuracy`.

    Args:
        n_classes: the number of classes, more than 2.
        weight_column: a feature's key or a `NumericColumn`: each example's weight; None (default):
            all 1.
        label_vocabulary: `n_classes` strings that name the classes, where labels are strings; None
            by default.
        loss_reduction: 'sum_over_batch_size' (default: the weighted sum divided by the batch size),
            'sum', or another of `losses.Reduction`, but not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving `(batch, 1)`;
            softmax cross-entropy by default.
        name: ends every metric's key, as `/name`; None by default.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None:
            raise ValueError("n_classes cannot be None")
        if int(n_classes) <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        classes = int(n_classes)
        super().__init__(
            classes, classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
        )

    @property
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""
        return ("logits", "probabilities", *_CLASS_KEYS)

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        return self._class_ids(labels, logits, floats_allowed=False)

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        loss = nn.sparse_softmax_cross_entropy_with_logits(
            labels=array.squeeze(targets, [-1]), logits=logits
        )
        return array.expand_dims(loss, -1)

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        made: dict[str, Callable[[], Tensor]] = {
            "logits": lambda: logits,
            "probabilities": lambda: nn.softmax(logits, name="probabilities"),
        }
        found = {key: make() for key, make in made.items() if key in keys}
        return {**found, **self._named_classes(logits, keys)}

    def _metrics(self, batch: _Batch) -> dict[str, metrics.Metric]:
        class_ids = self._predict(batch.logits, ("class_ids",))["class_ids"]
        return {"accuracy": metrics.accuracy(batch.targets, class_ids, batch.weights)}


# -- regression


class RegressionHead(Head):
    """Numbers: squared error (`tf.estimator.RegressionHead`).

    Labels: numbers `(batch, label_dimension)` or, for one label an example, `(batch,)`.

    Predictions: `predictions` float32 `(batch, label_dimension)`; with an `inverse_link_fn` also
        `logits`.

    Metrics: `average_loss`, `label/mean`, `prediction/mean`.

    Args:
        label_dimension: the number of labels an example; 1 by default.
        weight_column: a feature's key or a `NumericColumn`: each example's weight, or one for each
            label; None (default): all 1.
        loss_reduction: 'sum_over_batch_size' (default: the weighted sum divided by batch size times
            label_dimension), 'sum', or another of `losses.Reduction`, but not NONE.
        loss_fn: `loss_fn(labels, logits[, features][, loss_reduction])`, giving `(batch,
            label_dimension)`; squared error by default.
        inverse_link_fn: from logits to predictions; none by default.
        name: ends every metric's key, as `/name`; None by default.

    Raises:
        ValueError: an argument does not fit.
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

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        tensor = checked_labels(labels, logits, self._logits_dimension)
        if tensor.dtype is string:
            raise ValueError(
                explain(
                    "Labels of a regression must be numbers",
                    received=f"{tensor.name} {tensor.shape} string",
                    made_at=tensor.op.source,
                    hint="convert them in input_fn, or use a classifier with label_vocabulary",
                )
            )
        if tensor.dtype.is_floating:
            check_finite_labels(tensor)
        return as_batch_of(logits, elementwise.cast(tensor, float32))

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        return elementwise.squared_difference(logits, targets)

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        if self._inverse_link_fn is None:
            return {"predictions": logits}
        found = {"predictions": self._inverse_link_fn(logits), "logits": logits}
        return {key: value for key, value in found.items() if key in keys}

    def _metrics(self, batch: _Batch) -> dict[str, metrics.Metric]:
        guesses = self._predict(batch.logits, ("predictions",))["predictions"]
        return {
            "prediction/mean": metrics.mean(guesses, batch.weights, name="prediction/mean"),
            "label/mean": metrics.mean(batch.targets, batch.weights, name="label/mean"),
        }


def classification_head(
    n_classes: int, weight_column: Any, label_vocabulary: Any, loss_reduction: str
) -> Head:
    """The head of a classifier: binary for two classes."""
    if n_classes == 2:
        return BinaryClassHead(
            weight_column=weight_column,
            label_vocabulary=label_vocabulary,
            loss_reduction=loss_reduction,
        )
    return MultiClassHead(
        n_classes,
        weight_column=weight_column,
        label_vocabulary=label_vocabulary,
        loss_reduction=loss_reduction,
    )


__all__ = ["BinaryClassHead", "Head", "MultiClassHead", "RegressionHead", "classification_head"]
