"""Metrics of ranked lists and of predicted click probabilities (`layers.metrics.ranking`,
`layers.metrics.click_models`). Not in Keras.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from estimatorkit.core.dtypes import float64, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.keras.metric_classes.metric import Metric, StreamingMetric
from estimatorkit.layers.engine.call_record import record_of
from estimatorkit.layers.metrics import click_models, ranking
from estimatorkit.layers.metrics.streaming import metric_variable
from estimatorkit.ops.math import elementwise


class _Ranking(Metric):
    """Base class: a metric of lists that are rows, or groups of examples."""

    kind: ClassVar[str]

    def __init__(
        self,
        k: int | None = None,
        group: str | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name, dtype)
        self.k = ranking.checked_k(k)
        self.group = group

    def update_state(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None, groups: Any = None
    ) -> Any:
        """Adds a batch to the state.

        Args:
            y_true: relevance, `(batch, list_size)`; below 0 means padding. With groups,
                `(batch,)` or `(batch, 1)`.
            y_pred: scores, of the shape of `y_true`.
            sample_weight: None, a scalar, or of the shape of `y_true` with 1 in any place.
            groups: integers or strings, the list that each example belongs to.

        Returns:
            The operation that does so.
        """
        columns = ranking.columns_of(y_true, y_pred, sample_weight)
        with self._scope():
            if groups is None:
                if self.group is not None or self.kind == "auc":
                    raise value_error(
                        f"{type(self).__name__} needs the examples' groups",
                        expected="update_state(..., groups=...)",
                        hint="compile(metrics=[...]) gives the feature named by `group`",
                    )
                sums = ranking.row_sums(self.kind, self.k, columns)
                return self._state(False)[0].assign_add(sums)
            count, grouped = self._state(True)
            _, kept = grouped.keep(count, ranking.grouped_columns(groups, columns))
            return kept

    def result(self) -> Any:
        """Returns the metric over all batches added so far, as a tensor."""
        held = record_of(get_default_graph().outermost).metrics.get((self, "lists"))
        if held is None:
            held = self._state(self.group is not None or self.kind == "auc")
        variable, grouped = held
        value = variable.value()
        found = ranking.formula(value) if grouped is None else grouped.value(value)
        return elementwise.cast(found, self._dtype)

    def merge_state(self, metrics: Iterable[Metric]) -> list[Tensor]:
        """See `Metric`.

        Raises:
            NotImplementedError: the metric is by group, and its examples are not variables.
        """
        if self.group is not None or self.kind == "auc":
            raise NotImplementedError(f"{type(self).__name__} by group cannot be merged.")
        return super().merge_state(metrics)

    def _state(self, by_group: bool) -> tuple[Variable, Any]:
        metrics = record_of(get_default_graph().outermost).metrics
        if (self, "lists") not in metrics:
            grouped = ranking.Grouped(self.kind, self.k) if by_group else None
            variable = (
                metric_variable([], int64, "count")
                if by_group
                else metric_variable([4], float64, "sums")
            )
            self._in_graph.variables.append(variable)
            metrics[self, "lists"] = (variable, grouped)
        held: tuple[Variable, Any] = metrics[self, "lists"]
        return held


class GroupAUC(_Ranking):
    """The mean of the groups' AUC weighted by their impressions (`metrics.group_auc`).

    In `fit` it is computed after each step, from all examples of the epoch: prefer `evaluate`.

    Args:
        group: the feature, a key of `x`, that `compile(metrics=[...])` groups examples by; a direct
            `update_state` takes `groups`.
        name, dtype: see `Metric`.
    """

    kind = "auc"

    def __init__(
        self, group: str | None = None, name: str | None = "group_auc", dtype: Any = None
    ) -> None:
        super().__init__(None, group, name, dtype)


class NDCG(_Ranking):
    """Normalized discounted cumulative gain (`metrics.ndcg_at_k`).

    Args:
        k: the ranks that count; all by default.
        group: see `GroupAUC`; None (default) where a row is a list.
        name, dtype: see `Metric`.
    """

    kind = "ndcg"

    def __init__(
        self,
        k: int | None = None,
        group: str | None = None,
        name: str | None = "ndcg",
        dtype: Any = None,
    ) -> None:
        super().__init__(k, group, name, dtype)


class MeanAveragePrecision(_Ranking):
    """`metrics.mean_average_precision_at_k`; arguments as for `NDCG`."""

    kind = "mean_average_precision"


class MeanReciprocalRank(_Ranking):
    """`metrics.mean_reciprocal_rank`; arguments as for `NDCG`."""

    kind = "mean_reciprocal_rank"


class ListRecall(_Ranking):
    """`metrics.list_recall_at_k`; arguments as for `NDCG`."""

    kind = "recall"


class HitRate(_Ranking):
    """`metrics.hit_rate_at_k`; arguments as for `NDCG`."""

    kind = "hit_rate"


class NormalizedCrossEntropy(StreamingMetric):
    """Log loss over the entropy of the mean label (`metrics.normalized_cross_entropy`).

    Args:
        name, dtype: see `Metric`.
    """

    def __init__(self, name: str | None = "normalized_cross_entropy", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        return click_models.entropy_sums(y_true, y_pred, sample_weight)

    def value(self, *sums: Tensor) -> Tensor:
        return elementwise.cast(click_models.normalized_entropy(*sums), self._dtype)


class Calibration(StreamingMetric):
    """Mean prediction over mean label (`metrics.calibration`).

    Args:
        name, dtype: see `Metric`.
    """

    def __init__(self, name: str | None = "calibration", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        return click_models.calibration_sums(y_true, y_pred, sample_weight)

    def value(self, *sums: Tensor) -> Tensor:
        return elementwise.cast(click_models.calibrated(*sums), self._dtype)


class CalibrationByBucket(StreamingMetric):
    """Mean prediction, mean label and weight by range (`metrics.calibration_by_bucket`).

    Args:
        num_buckets: the number of ranges of equal width.
        name, dtype: see `Metric`.
    """

    def __init__(
        self,
        num_buckets: int = 10,
        name: str | None = "calibration_by_bucket",
        dtype: Any = None,
    ) -> None:
        super().__init__(name, dtype)
        self.num_buckets = num_buckets

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        return click_models.bucket_sums(y_true, y_pred, sample_weight, self.num_buckets)

    def value(self, *sums: Tensor) -> Tensor:
        return elementwise.cast(click_models.bucket_rows(*sums), self._dtype)
