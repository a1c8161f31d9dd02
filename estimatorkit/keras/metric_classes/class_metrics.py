"""Metrics of many classes and outputs: intersections over unions, F scores, and R squared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.metric_classes.metric import StreamingMetric
from estimatorkit.layers.metrics.classes import matrix_of, mean_overlap
from estimatorkit.layers.weighting import broadcast
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.math import elementwise, reduce


class IoU(StreamingMetric):
    """Intersection over union of labels and predictions, averaged over some classes.

    Args:
        num_classes: the number of classes.
        target_class_ids: the classes to average over.
        name, dtype: see `Metric`.
        ignore_class: a label whose examples are excluded.
        sparse_y_true, sparse_y_pred: whether labels and predictions are class indices; otherwise
            the class is the argmax along `axis`.
        axis: the axis of the classes.

    Raises:
        ValueError: a class is out of range.
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        if max(target_class_ids) >= num_classes:
            raise ValueError(
                f"Target class id {max(target_class_ids)} is out of range, which is "
                f"[0, {num_classes})."
            )
        super().__init__(name, dtype)
        self.num_classes = num_classes
        self.target_class_ids = list(target_class_ids)
        self.ignore_class = ignore_class
        self.sparse_y_true = sparse_y_true
        self.sparse_y_pred = sparse_y_pred
        self.axis = axis

    def shapes(self) -> Mapping[str, Any]:
        return {"total_confusion_matrix": [self.num_classes, self.num_classes]}

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        truth = self._classes(y_true, self.sparse_y_true)
        guesses = self._classes(y_pred, self.sparse_y_pred)
        weights = sample_weight
        if self.ignore_class is not None:
            kept = elementwise.not_equal(truth, convert_to_tensor(self.ignore_class, int64))
            zeros = filling.zeros_like(truth)
            truth, guesses = (indexing.where(kept, each, zeros) for each in (truth, guesses))
            weights = elementwise.cast(kept, self._dtype)
            if sample_weight is not None:
                weights = weights * broadcast(sample_weight, weights)
        matrix = matrix_of(truth, guesses, self.num_classes, weights, self._dtype)
        return {"total_confusion_matrix": matrix}

    def _classes(self, values: Any, are_indices: bool) -> Tensor:
        tensor = convert_to_tensor(values)
        chosen = tensor if are_indices else reduce.argmax(tensor, self.axis)
        return elementwise.cast(chosen, int64)

    def value(self, *sums: Tensor) -> Tensor:
        return mean_overlap(sums[0], self.target_class_ids)


class MeanIoU(IoU):
    """`IoU` averaged over all classes; arguments as for `IoU`."""

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        rest = (ignore_class, sparse_y_true, sparse_y_pred, axis)
        super().__init__(num_classes, range(num_classes), name, dtype, *rest)


class BinaryIoU(IoU):
    """`IoU` for two classes and predictions that are probabilities of class 1.

    Args:
        target_class_ids, name, dtype: see `IoU`.
        threshold: predictions at or above it count as class 1.
    """

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        guesses = elementwise.cast(convert_to_tensor(y_pred, name="y_pred"), self._dtype)
        decided = elementwise.greater_equal(guesses, self.threshold)
        return super().sums(y_true, elementwise.cast(decided, int64), sample_weight)


class OneHotIoU(IoU):
    """`IoU` for one-hot labels; arguments as for `IoU`, where predictions are scores by default."""

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        rest = (ignore_class, False, sparse_y_pred, axis)
        super().__init__(num_classes, target_class_ids, name, dtype, *rest)


class OneHotMeanIoU(MeanIoU):
    """`MeanIoU` for one-hot labels; arguments as for `OneHotIoU`."""

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        rest = (ignore_class, False, sparse_y_pred, axis)
        super().__init__(num_classes, name, dtype, *rest)


def _of_outputs(
    what: str, y_true: Any, y_pred: Any, sample_weight: Any, dtype: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, predictions and weights, each `(batch, outputs)`.

    Raises:
        ValueError: they are of another rank, or the number of outputs is not known.
    """
    truth = elementwise.cast(convert_to_tensor(y_true, name="y_true"), dtype)
    guesses = elementwise.cast(convert_to_tensor(y_pred, name="y_pred"), dtype)
    for each in (truth, guesses):
        if each.shape.rank != 2 or each.shape[-1] is None:
            raise value_error(
                f"{what} expects 2D inputs with shape (batch_size, output_dim)",
                expected="(batch, outputs), the number of outputs known",
                received=f"y_true {truth.shape}, y_pred {guesses.shape}",
                made_at=each.op.source,
                hint="give a vector a second dimension: expand_dims(x, -1)",
            )
    return truth, guesses, broadcast(1.0 if sample_weight is None else sample_weight, truth)


class FBetaScore(StreamingMetric):
    """(1 + beta**2) * precision * recall / (beta**2 * precision + recall), for each class.

    Args:
        average: None for a score per class; 'macro' for their mean, 'weighted' for their mean
            weighted by the number of labels, 'micro' for the score over all classes.
        beta: how much more recall counts than precision.
        threshold: predictions above it are positive; by default, the highest of each example is.
        name, dtype: see `Metric`.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = "fbeta_score",
        dtype: Any = None,
    ) -> None:
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(
                "Invalid `average` argument value. Expected one of: None, 'micro', 'macro', "
                f"'weighted'. Received: average={average}"
            )
        if not beta > 0 or not (threshold is None or 0 < threshold <= 1):
            raise ValueError(
                "Invalid `beta` or `threshold` argument value: beta > 0 and 0 < threshold <= 1. "
                f"Received: beta={beta}, threshold={threshold}"
            )
        super().__init__(name, dtype)
        self.average = average
        self.beta = beta
        self.threshold = threshold

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        what = type(self).__name__
        truth, scores, weights = _of_outputs(what, y_true, y_pred, sample_weight, self._dtype)
        if self.threshold is None:
            greatest = reduce.reduce_max(scores, -1, keepdims=True)
            best = elementwise.greater_equal(scores, greatest)
            decided = elementwise.logical_and(
                best, elementwise.greater(elementwise.abs(scores), 1e-9)
            )
        else:
            decided = elementwise.greater(scores, self.threshold)
        chosen = elementwise.cast(decided, self._dtype)
        parts = {
            "true_positives": chosen * truth,
            "false_positives": chosen * (1 - truth),
            "false_negatives": (1 - chosen) * truth,
            "intermediate_weights": truth,
        }
        axis = None if self.average == "micro" else 0
        return {key: reduce.reduce_sum(each * weights, axis) for key, each in parts.items()}

    def value(self, *sums: Tensor) -> Tensor:
        right, wrong, missed, labels = sums
        precision = elementwise.div_no_nan(right, right + wrong)
        recall = elementwise.div_no_nan(right, right + missed)
        square = self.beta**2
        scores = elementwise.div_no_nan(
            (1 + square) * precision * recall, square * precision + recall
        )
        if self.average == "weighted":
            return reduce.reduce_sum(
                scores * elementwise.div_no_nan(labels, reduce.reduce_sum(labels))
            )
        return scores if self.average is None else reduce.reduce_mean(scores)


class F1Score(FBetaScore):
    """`FBetaScore` with beta = 1: the harmonic mean of precision and recall."""

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str | None = "f1_score",
        dtype: Any = None,
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)


class R2Score(StreamingMetric):
    """1 - (sum of squared errors) / (sum of squared deviations of labels from their mean).

    Args:
        class_aggregation: 'uniform_average' or 'variance_weighted_average' of the outputs' scores,
            or None for a score per output.
        num_regressors: the number of independent variables, for the adjusted score; 0 for the plain
            score.
        name, dtype: see `Metric`.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str | None = "r2_score",
        dtype: Any = None,
    ) -> None:
        known = (None, "uniform_average", "variance_weighted_average")
        if class_aggregation not in known or num_regressors < 0:
            raise ValueError(
                f"Invalid value for argument `class_aggregation` or `num_regressors`. Expected one "
                f"of {known}, and a value >= 0. Received: class_aggregation={class_aggregation}, "
                f"num_regressors={num_regressors}"
            )
        super().__init__(name, dtype)
        self.class_aggregation = class_aggregation
        self.num_regressors = num_regressors

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        truth, guesses, weights = _of_outputs("R2Score", y_true, y_pred, sample_weight, self._dtype)
        parts = {
            "squared_sum": elementwise.square(truth),
            "sum": truth,
            "residual": elementwise.squared_difference(truth, guesses),
            "count": filling.ones_like(truth),
        }
        found = {key: reduce.reduce_sum(each * weights, 0) for key, each in parts.items()}
        return {**found, "num_samples": array.size(truth, out_type=int32)}

    def value(self, *sums: Tensor) -> Tensor:
        squares, total, residual, count, samples = sums
        spread = squares - total * (total / count)
        scores = 1 - residual / spread
        scores = indexing.where(elementwise.is_inf(scores), filling.zeros_like(scores), scores)
        if self.class_aggregation == "uniform_average":
            scores = reduce.reduce_mean(scores)
        elif self.class_aggregation is not None:
            scores = reduce.reduce_sum(spread * scores) / reduce.reduce_sum(spread)
        if self.num_regressors == 0:
            return scores
        n = elementwise.cast(samples, self._dtype)
        free = n - float(self.num_regressors) - 1.0
        adjusted = 1.0 - (1.0 - scores) * (n - 1.0) / free
        enough = elementwise.greater(free + filling.zeros_like(scores), 0.0)
        return indexing.where(enough, adjusted, scores)
