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
from estimatorkit.keras.metric_classes.metric import Metric, StreamingMetric
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
        *("true_positives", "true_negatives", "false_positives", "false_negatives"),
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
    """The weight of examples of one kind.

    Args:
        thresholds: a number in [0, 1] or a list of them; 0.5 by default.
        name, dtype: see `Metric`.

    Raises:
        ValueError: a threshold is not in [0, 1].
    """

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(_checked_thresholds(thresholds, 0.5), None, None, name, dtype)
        self.init_thresholds = thresholds

    def value(self, *sums: Tensor) -> Tensor:
        return self._one_or_all(sums[0])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": self.init_thresholds}


class TruePositives(_Count):
    """The weight of positive examples decided positive (see `_Count` for the arguments)."""

    _kinds = ("true_positives",)


class TrueNegatives(_Count):
    """The weight of negative examples decided negative (see `_Count` for the arguments)."""

    _kinds = ("true_negatives",)


class FalsePositives(_Count):
    """The weight of negative examples decided positive (see `_Count` for the arguments)."""

    _kinds = ("false_positives",)


class FalseNegatives(_Count):
    """The weight of positive examples decided negative (see `_Count` for the arguments)."""

    _kinds = ("false_negatives",)


class _Ratio(_AtThresholds):
    """True positives over the sum of them and those of another kind.

    Args:
        thresholds: a number in [0, 1] or a list of them; 0.5 by default, none with `top_k`.
        top_k: how many of the greatest predictions of an example count as positive.
        class_id: the class that alone counts.
        name, dtype: see `Metric`.

    Raises:
        ValueError: a threshold is not in [0, 1].
    """

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
        own = {"thresholds": self.init_thresholds, "top_k": self.top_k, "class_id": self.class_id}
        return {**super().get_config(), **own}


class Precision(_Ratio):
    """Of the examples decided positive, the share that is (see `_Ratio` for the arguments)."""

    _kinds = ("true_positives", "false_positives")


class Recall(_Ratio):
    """Of the positive examples, the share decided so (see `_Ratio` for the arguments)."""

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
        own = {"class_id": self.class_id, "num_thresholds": self.num_thresholds}
        return {**super().get_config(), **own, self._argument: self._least}


class SensitivityAtSpecificity(_Constrained):
    """The greatest share of positive examples found while enough negative ones are rejected.

    Args:
        specificity: the share of negative examples to be rejected, in [0, 1].
        num_thresholds, class_id, name, dtype: see `_Constrained`.
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
    """The greatest share of negative examples rejected while enough positive ones are found.

    Args:
        sensitivity: the share of positive examples to be found, in [0, 1].
        num_thresholds, class_id, name, dtype: see `_Constrained`.
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
    """The greatest precision while the recall is enough.

    Args:
        recall: the recall to be reached, in [0, 1].
        num_thresholds, class_id, name, dtype: see `_Constrained`.
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
    """The greatest recall while the precision is enough.

    Args:
        precision: the precision to be reached, in [0, 1].
        num_thresholds, class_id, name, dtype: see `_Constrained`.
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
    """The area under the ROC or the precision-recall curve, from its points at thresholds.

    Args:
        num_thresholds: how many points are kept, evenly spaced.
        curve: 'ROC' or 'PR'.
        summation_method: 'interpolation' (trapezia; of PR Davis & Goadrich 2006), 'minoring' or
            'majoring' (the heights of rectangles).
        name, dtype: see `Metric`.
        thresholds: thresholds between 0 and 1, in place of evenly spaced ones; 0 and 1 come to
            them.
        multi_label: whether each column of predictions `(batch, labels)` has a curve of its own,
            and the mean of their areas is given.
        num_labels: the number of columns; that of the first batch by default.
        label_weights: what each column counts.
        from_logits: whether predictions are logits.

    Raises:
        ValueError: an argument is out of its range.
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
        own = {
            "num_thresholds": self.num_thresholds,
            "curve": self.curve,
            "summation_method": self.summation_method,
            "multi_label": self.multi_label,
            "num_labels": self.num_labels,
            "label_weights": self.label_weights,
            "from_logits": self._from_logits,
        }
        if self._own_thresholds:
            own["thresholds"] = self.thresholds[1:-1]
        return {**super().get_config(), **own}


CLASSES: tuple[type[Metric], ...] = (
    *(AUC, FalseNegatives, FalsePositives, Precision, PrecisionAtRecall, Recall),
    *(RecallAtPrecision, SensitivityAtSpecificity, SpecificityAtSensitivity, TrueNegatives),
    TruePositives,
)
