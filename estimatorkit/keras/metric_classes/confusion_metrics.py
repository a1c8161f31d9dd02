"""Metrics of decisions between two classes: counts, precision, recall, and what curves say.

An example is decided positive where its prediction is above a threshold. The counts and the areas
are those of `tf.metrics` (`layers.metrics.thresholds`, `layers.metrics.curves`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.metric_classes.metric import StreamingMetric
from estimatorkit.layers.metrics.curves import areas
from estimatorkit.layers.metrics.thresholds import Counts, counts_at, even_thresholds
from estimatorkit.layers.weighting import broadcast, match_ranks
from estimatorkit.ops.array import array, filling, indexing, ranking
from estimatorkit.ops.math import elementwise, reduce

_NEVER = -1e10
"""The score of what is not among the `top_k`."""


def _checked_thresholds(thresholds: Any, default: float) -> list[float]:
    """Thresholds as a list.

    Raises:
        ValueError: one is not in [0, 1].
    """
    if thresholds is None:
        return [default]
    given = [float(each) for each in np.atleast_1d(np.asarray(thresholds, object))]
    wrong = [each for each in given if not 0 <= each <= 1]
    if wrong or not given:
        raise value_error(
            f"Threshold values must be in [0, 1]. Received: {wrong}",
            expected="a number in [0, 1], or a list of them",
            received=repr(thresholds),
        )
    return given


def _share(part: Tensor, rest: Tensor) -> Tensor:
    return elementwise.div_no_nan(part, part + rest)


class _AtThresholds(StreamingMetric):
    """A metric of some of the four counts at thresholds.

    Args:
        thresholds: numbers.
        class_id: the column that alone counts, where predictions have one for each class.
        top_k: how many of the greatest predictions may count as positive.
        name, dtype: see `Metric`.
    """

    _kinds: ClassVar[Sequence[str]] = (
        "true_positives",
        "true_negatives",
        "false_positives",
        "false_negatives",
    )

    def __init__(
        self,
        thresholds: Sequence[float],
        class_id: int | None,
        top_k: int | None,
        name: str | None,
        dtype: Any,
    ) -> None:
        super().__init__(name, dtype)
        self.thresholds = list(thresholds)
        self.class_id = class_id
        self.top_k = top_k

    def shapes(self) -> Mapping[str, Any] | None:
        return {kind: [len(self.thresholds)] for kind in self._kinds}

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        truth, guesses = match_ranks(y_true, y_pred)
        truth.shape.assert_is_compatible_with(guesses.shape)
        guesses = elementwise.cast(guesses, float32)
        if self.top_k is not None:
            guesses = _only_top(guesses, self.top_k)
        if self.class_id is not None:
            column = slice(self.class_id, self.class_id + 1)
            truth, guesses = truth[..., column], guesses[..., column]
        counts = self._counts(truth, guesses, sample_weight)._asdict()
        return {kind: elementwise.cast(counts[kind], self._dtype) for kind in self._kinds}

    def _counts(self, truth: Tensor, guesses: Tensor, weights: Any) -> Counts:
        return counts_at(truth, guesses, weights, self.thresholds)

    def _one_or_all(self, values: Tensor) -> Tensor:
        return values[0] if len(self.thresholds) == 1 else values


def _only_top(scores: Tensor, k: int) -> Tensor:
    best = ranking.top_k(scores, k).indices
    classes = filling.range_(array.shape(scores)[-1])
    same = elementwise.equal(array.expand_dims(best, -1), classes)
    return indexing.where(reduce.reduce_any(same, -2), scores, filling.zeros_like(scores) + _NEVER)


class _Count(_AtThresholds):
    """The weight of the examples in one cell of the confusion matrix; see `TruePositives`."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(_checked_thresholds(thresholds, 0.5), None, None, name, dtype)
        self.init_thresholds = thresholds

    def value(self, *sums: Tensor) -> Tensor:
        return self._one_or_all(sums[0])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": self.init_thresholds}


class TruePositives(_Count):
    """The number of positive examples predicted positive, weighted.

    Args:
        thresholds: predictions above it are positive: a number in [0, 1] or a list of them, for a
            count each; 0.5 by default.
        name, dtype: see `Metric`.

    Raises:
        ValueError: a threshold is not in [0, 1].
    """

    _kinds = ("true_positives",)


class TrueNegatives(_Count):
    """The number of negative examples predicted negative; arguments as for `TruePositives`."""

    _kinds = ("true_negatives",)


class FalsePositives(_Count):
    """The number of negative examples predicted positive; arguments as for `TruePositives`."""

    _kinds = ("false_positives",)


class FalseNegatives(_Count):
    """The number of positive examples predicted negative; arguments as for `TruePositives`."""

    _kinds = ("false_negatives",)


class _Ratio(_AtThresholds):
    """True positives divided by their sum with another count; see `Precision`."""

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        limits = _checked_thresholds(thresholds, 0.5 if top_k is None else _NEVER)
        super().__init__(limits, class_id, top_k, name, dtype)
        self.init_thresholds = thresholds

    def value(self, *sums: Tensor) -> Tensor:
        return self._one_or_all(_share(*sums))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": self.init_thresholds}


class Precision(_Ratio):
    """The fraction of the examples predicted positive that are positive.

    Args:
        thresholds: predictions above it are positive: a number in [0, 1] or a list of them, for a
            value each; 0.5 by default, or none with `top_k`.
        top_k: only the k highest predictions of each example can be positive.
        class_id: the only class to consider; all by default.
        name, dtype: see `Metric`.

    Raises:
        ValueError: a threshold is not in [0, 1].
    """

    _kinds = ("true_positives", "false_positives")


class Recall(_Ratio):
    """The fraction of the positive examples that are predicted positive.

    Arguments are those of `Precision`.
    """

    _kinds = ("true_positives", "false_negatives")


class _Constrained(_AtThresholds):
    """The best of one ratio at thresholds where another is no less than a value.

    Args:
        value: what the other must reach, in [0, 1].
        num_thresholds: how many thresholds between 0 and 1 are tried; 1 is 0.5.
        class_id: the class that alone counts.
        name, dtype: see `Metric`.

    Raises:
        ValueError: the value is not in [0, 1], or there is no threshold.
    """

    _argument: ClassVar[str]

    def __init__(
        self,
        value: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        if not 0 <= value <= 1:
            raise ValueError(
                f"Argument `{self._argument}` must be in the range [0, 1]. "
                f"Received: {self._argument}={value}"
            )
        if num_thresholds <= 0:
            raise ValueError(
                "Argument `num_thresholds` must be an integer > 0. "
                f"Received: num_thresholds={num_thresholds}"
            )
        limits = [0.5] if num_thresholds == 1 else even_thresholds(num_thresholds, 0.0)
        super().__init__(limits, class_id, None, name, dtype)
        self.num_thresholds = num_thresholds
        self._least = value

    def _counts(self, truth: Tensor, guesses: Tensor, weights: Any) -> Counts:
        return counts_at(truth, _clipped(guesses), weights, self.thresholds)

    def _best(self, wanted: Tensor, constrained: Tensor) -> Tensor:
        enough = elementwise.greater_equal(constrained, self._least)
        return reduce.reduce_max(indexing.where(enough, wanted, filling.zeros_like(wanted)))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        shared = {name: config.pop(name) for name in ("class_id", "num_thresholds")}
        return {**config, **shared, self._argument: self._least}


class SensitivityAtSpecificity(_Constrained):
    """The best sensitivity among the thresholds at which the specificity reaches a value.

    Args:
        specificity: the least fraction of negative examples predicted negative, in [0, 1].
        num_thresholds, class_id, name, dtype: see `PrecisionAtRecall`.
    """

    _argument = "specificity"

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)

    def value(self, *sums: Tensor) -> Tensor:
        right, rejected, wrong, missed = sums
        return self._best(_share(right, missed), _share(rejected, wrong))


class SpecificityAtSensitivity(_Constrained):
    """The best specificity among the thresholds at which the sensitivity reaches a value.

    Args:
        sensitivity: the least fraction of positive examples predicted positive, in [0, 1].
        num_thresholds, class_id, name, dtype: see `PrecisionAtRecall`.
    """

    _argument = "sensitivity"

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)

    def value(self, *sums: Tensor) -> Tensor:
        right, rejected, wrong, missed = sums
        return self._best(_share(rejected, wrong), _share(right, missed))


class PrecisionAtRecall(_Constrained):
    """The best precision among the thresholds at which the recall reaches a value.

    Args:
        recall: the least recall, in [0, 1].
        num_thresholds: the number of evenly spaced thresholds to try; 1 means 0.5.
        class_id: the only class to consider; all by default.
        name, dtype: see `Metric`.

    Raises:
        ValueError: `recall` is not in [0, 1], or there is no threshold.
    """

    _argument = "recall"

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)

    def value(self, *sums: Tensor) -> Tensor:
        right, _, wrong, missed = sums
        return self._best(_share(right, wrong), _share(right, missed))


class RecallAtPrecision(_Constrained):
    """The best recall among the thresholds at which the precision reaches a value.

    Args:
        precision: the least precision, in [0, 1].
        num_thresholds, class_id, name, dtype: see `PrecisionAtRecall`.
    """

    _argument = "precision"

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)

    def value(self, *sums: Tensor) -> Tensor:
        right, _, wrong, missed = sums
        return self._best(_share(right, missed), _share(right, wrong))


def _clipped(guesses: Tensor) -> Tensor:
    return elementwise.clip_by_value(guesses, 0.0, 1.0)


class AUC(_AtThresholds):
    """The area under the ROC or precision-recall curve, approximated at a number of thresholds.

    Args:
        num_thresholds: the number of evenly spaced thresholds.
        curve: 'ROC' or 'PR'.
        summation_method: 'interpolation' (trapezoids; for PR, Davis & Goadrich 2006), or 'minoring'
            or 'majoring' (rectangles of the lower or the greater height).
        name, dtype: see `Metric`.
        thresholds: thresholds between 0 and 1 to use instead; 0 and 1 are added to them.
        multi_label: whether to average the areas of a curve per column of predictions `(batch,
            labels)`.
        num_labels: the number of columns; that of the first batch by default.
        label_weights: the weight of each column.
        from_logits: whether predictions are logits.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
        thresholds: Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: Any = None,
        from_logits: bool = False,
    ) -> None:
        curve, summation = str(curve).upper(), str(summation_method).lower()
        known = curve in ("ROC", "PR") and summation in ("interpolation", "minoring", "majoring")
        if not known or (thresholds is None and num_thresholds <= 1):
            raise value_error(
                "AUC: an argument is out of its range",
                expected="curve 'ROC' or 'PR', summation_method 'interpolation', 'minoring' or "
                "'majoring', num_thresholds > 1",
                received=f"curve={curve!r}, summation_method={summation_method!r}, "
                f"num_thresholds={num_thresholds}",
            )
        if num_labels and not multi_label:
            raise ValueError("`num_labels` is needed only when `multi_label` is True.")
        if thresholds is None:
            limits = even_thresholds(num_thresholds)
        else:
            limits = [-1e-7, *sorted(thresholds), 1.0 + 1e-7]
        super().__init__(limits, None, None, name, dtype)
        self.num_thresholds = len(limits)
        self.curve = curve
        self.summation_method = summation
        self.multi_label = multi_label
        self.num_labels = num_labels
        self.label_weights = label_weights
        self._from_logits = from_logits
        self._own_thresholds = thresholds is not None

    def shapes(self) -> Mapping[str, Any] | None:
        if not self.multi_label:
            return super().shapes()
        if self.num_labels is None:
            return None
        return {kind: [self.num_thresholds, self.num_labels] for kind in self._kinds}

    def _counts(self, truth: Tensor, guesses: Tensor, weights: Any) -> Counts:
        if self._from_logits:
            guesses = elementwise.sigmoid(guesses)
        if self.label_weights is not None and not self.multi_label:
            full = broadcast(1.0 if weights is None else weights, guesses)
            weights = full * constant(np.asarray(self.label_weights, np.float32))
        return counts_at(truth, _clipped(guesses), weights, self.thresholds, self.multi_label)

    def value(self, *sums: Tensor) -> Tensor:
        counts = Counts(**dict(zip(self._kinds, sums, strict=True)))
        each = reduce.reduce_sum(areas(counts, self.curve, self.summation_method, 0.0), 0)
        if not self.multi_label:
            return each
        if self.label_weights is None:
            return reduce.reduce_mean(each)
        weights = elementwise.cast(convert_to_tensor(self.label_weights), self._dtype)
        return elementwise.div_no_nan(reduce.reduce_sum(each * weights), reduce.reduce_sum(weights))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"from_logits": self._from_logits}
        thresholds = config.pop("thresholds")[1:-1]
        return config | ({"thresholds": thresholds} if self._own_thresholds else {})
