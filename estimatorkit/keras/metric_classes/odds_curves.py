"""Areas under the curves of two classes, from histograms of the log odds that are predicted.

A batch adds its examples to 16,384 buckets, whatever the size of the set. Buckets are even in the
log odds, so that small probabilities are told apart: most of those of a rare class lie between the
first two of `AUC`'s 200 even thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.metric_classes.metric import StreamingMetric
from estimatorkit.layers.metrics.curves import areas
from estimatorkit.layers.metrics.thresholds import Counts
from estimatorkit.layers.weighting import broadcast, same_shapes
from estimatorkit.ops.array import array, joining, segment
from estimatorkit.ops.math import elementwise, reduce

_BUCKETS, _MOST = 16_384, 16.0
"""Log odds beyond 16, probabilities within 1.1e-7 of 0 or 1, share the last bucket of each side."""


class AreaByOdds(StreamingMetric):
    """The area under a curve, with an error of a few 1e-5.

    Args:
        curve: 'ROC' or 'PR', interpolated as by `AUC`.
        num_buckets: the number of ranges of log odds.
        name, dtype: see `Metric`.

    Raises:
        ValueError: there is no range.
    """

    def __init__(
        self,
        curve: str = "ROC",
        num_buckets: int = _BUCKETS,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        if num_buckets < 1:
            raise value_error(
                f"{type(self).__name__} needs buckets",
                expected="num_buckets >= 1",
                received=num_buckets,
            )
        super().__init__(name, dtype)
        self.curve = curve
        self.num_buckets = num_buckets

    def shapes(self) -> Mapping[str, Any]:
        return {"positives": [self.num_buckets], "negatives": [self.num_buckets]}

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        truth, guesses = (elementwise.cast(each, float32) for each in same_shapes(y_true, y_pred))
        weights = broadcast(1.0 if sample_weight is None else sample_weight, guesses)
        odds = elementwise.log(guesses) - elementwise.log1p(-guesses)
        share = (elementwise.clip_by_value(odds, -_MOST, _MOST) / _MOST + 1.0) / 2.0
        place = elementwise.cast(elementwise.floor(share * float(self.num_buckets)), int32)
        place = array.reshape(elementwise.minimum(place, self.num_buckets - 1), [-1])
        split = {"positives": weights * truth, "negatives": weights * (1.0 - truth)}
        return {
            key: segment.unsorted_segment_sum(array.reshape(each, [-1]), place, self.num_buckets)
            for key, each in split.items()
        }

    def value(self, *sums: Tensor) -> Tensor:
        right, wrong = (_above(each) for each in sums)
        return elementwise.cast(self._area(right, wrong), self._dtype)

    def _area(self, right: Tensor, wrong: Tensor) -> Tensor:
        """The area, given true and false positives at rising thresholds."""
        counts = Counts(right, right[0] - right, wrong[0] - wrong, wrong)
        return reduce.reduce_sum(areas(counts, self.curve, "interpolation", 0.0))


def _above(weights: Tensor) -> Tensor:
    """The weight of the buckets from each limit on, and 0 at the last limit."""
    return joining.concat([reduce.cumsum(weights, reverse=True), [0.0]], 0)


class AveragePrecision(AreaByOdds):
    """The mean of the precision over the recall, as `sklearn.metrics.average_precision_score`.

    Each step of the recall counts with the precision at its end. Nothing is interpolated, as it is
    in `AUC(curve='PR')`. Precise to about 1e-4: examples whose odds differ by less than 0.2 % count
    as equal. Not in Keras.

    Args:
        num_buckets: the number of ranges of log odds.
        name, dtype: see `Metric`.

    Raises:
        ValueError: there is no range.
    """

    def __init__(
        self,
        num_buckets: int = _BUCKETS,
        name: str | None = "average_precision",
        dtype: Any = None,
    ) -> None:
        super().__init__("PR", num_buckets, name, dtype)

    def _area(self, right: Tensor, wrong: Tensor) -> Tensor:
        gained = right[:-1] - right[1:]
        precision = elementwise.div_no_nan(right, right + wrong)[:-1]
        return elementwise.div_no_nan(reduce.reduce_sum(gained * precision), right[0])


__all__ = ["AreaByOdds", "AveragePrecision"]
