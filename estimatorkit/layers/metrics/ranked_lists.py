"""Sums over ranked lists, in closed form over all orders of items with equal scores.

A list's items are ranked by falling score. Where scores are equal, the order is not known; values
are then the means over all such orders (McSherry & Najork 2008, "Computing information retrieval
performance measures efficiently in the presence of tied scores"), so no metric depends on the order
of the input. One function computes all metrics, by JAX for lists that are rows of a batch, by NumPy
for lists whose items are spread over batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

KINDS = ("auc", "hit_rate", "mean_average_precision", "mean_reciprocal_rank", "ndcg", "recall")


class _Segments(NamedTuple):
    """Segments of consecutive items with equal `ids`, and sums over segments.

    Attributes:
        ids: int `(items,)`, rising from 0.
        size: how many items are in an item's segment.
        start: the position of its first item.
    """

    ids: Any
    size: Any
    start: Any
    module: Any

    @staticmethod
    def of(ids: Any, module: Any) -> _Segments:
        sizes = _sums(module.ones(len(ids), np.int32), ids, module)
        return _Segments(ids, sizes[ids], (module.cumsum(sizes) - sizes)[ids], module)

    def sums(self, values: Any) -> Any:
        """Sums of the segments, `(items,)`: 0 after the last segment."""
        return _sums(values, self.ids, self.module)

    def total(self, values: Any) -> Any:
        """For each item, the sum of its segment."""
        return self.sums(values)[self.ids]

    def before(self, values: Any) -> Any:
        """For each item, the sum of all items before its segment, of any segment."""
        return (self.module.cumsum(values) - values)[self.start]


def _sums(values: Any, ids: Any, module: Any) -> Any:
    if module is np:
        return np.bincount(ids, values, len(ids)).astype(values.dtype)
    return module.zeros(len(ids), values.dtype).at[ids].add(values)


def _log_choose(n: Any, k: Any, module: Any) -> Any:
    from jax.scipy import special as device
    from scipy import special as host

    gammaln: Any = (host if module is np else device).gammaln
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def list_sums(
    kind: str, k: int | None, lists: Any, labels: Any, scores: Any, weights: Any, module: Any
) -> Any:
    """Four sums over lists: weighted values, weights, lists that have a value, lists without.

    Args:
        kind: one of `KINDS`.
        k: the ranks that count; None for all.
        lists: int `(items,)`, the list of each item, from 0 to less than the number of items.
        labels: relevance, `(items,)`; items with negative labels are excluded.
        scores: `(items,)`; NaN ranks last.
        weights: `(items,)`.
        module: `numpy` or `jax.numpy`.
    """
    if not lists.shape[0]:
        return module.zeros(4, np.float64)
    valid = labels >= 0
    scores = module.where(scores == scores, scores, -np.inf)
    order = module.lexsort((-scores, ~valid, lists))
    lists, labels, scores, valid = (each[order] for each in (lists, labels, scores, valid))
    labels = module.where(valid, labels, 0).astype(np.float64)
    weights = module.where(valid, weights[order], 0).astype(np.float64)
    of_list = _Segments.of(lists, module)
    places = module.arange(lists.shape[0])
    rank = places - of_list.start
    differs = (scores[1:] != scores[:-1]) | (valid[1:] != valid[:-1])
    new = (rank == 0) | module.concatenate([module.ones(1, bool), differs])
    ties = _Segments.of(module.cumsum(new.astype(np.int32)) - 1, module)
    counted = rank < len(lists) if k is None else rank < k
    relevant = ((labels > 0) if kind == "auc" else (labels >= 1)) & valid
    hits = relevant.astype(np.float64)

    def ratio(over: Any, under: Any) -> Any:
        return module.where(under > 0, over / module.where(under > 0, under, 1), 0)

    if kind == "auc":
        positive, negative = weights * hits, weights * (1 - hits)
        all_negative = of_list.total(negative)
        above = ties.before(negative) - of_list.before(negative)
        below = all_negative - above - ties.total(negative) / 2
        pairs = of_list.sums(positive) * of_list.sums(negative)
        value = ratio(of_list.sums(positive * below), pairs)
        weight = module.where(pairs > 0, of_list.sums(weights), 0)
        has = pairs > 0
        return module.stack([(value * weight).sum(), weight.sum(), has.sum(), 0 * has.sum()])
    gains = module.exp2(labels) - 1 if kind == "ndcg" else hits
    gains = module.where(valid, gains, 0)
    weighted = weights * gains
    mean = ties.total(weighted) / ties.size
    if kind == "ndcg":
        discounts = module.where(counted, 1 / module.log2(rank + 2.0), 0)
        best = weighted[module.lexsort((-weighted, lists))]
        value = ratio(of_list.sums(mean * discounts), of_list.sums(best * discounts))
    elif kind == "recall":
        value = ratio(of_list.sums(mean * counted), of_list.sums(weighted))
    else:
        inside = places - ties.start
        found = ties.total(hits)
        earlier = ties.before(hits) - of_list.before(hits)
        if kind == "mean_average_precision":
            others = inside * (found - 1) / module.maximum(ties.size - 1, 1)
            precision = (earlier + 1 + module.where(found > 0, others, 0)) / (rank + 1)
            value = ratio(of_list.sums(mean * precision * counted), of_list.sums(weighted))
        else:
            # The probability that an item is the first relevant one of the list.
            left = ties.size - 1 - inside
            may = (found > 0) & (earlier == 0) & (left >= found - 1)
            size, hit = (module.where(may, each, 1) for each in (ties.size, found))
            left = module.where(may, left, 0)
            logs = _log_choose(left, hit - 1, module) - _log_choose(size, hit, module)
            first = module.where(may & counted, module.exp(logs), 0)
            value = of_list.sums(first / (rank + 1) if "reciprocal" in kind else first)
    relevance = of_list.sums(gains)
    weight = ratio(of_list.sums(weighted), relevance)
    any_weight = of_list.sums(weights) > 0
    has = (relevance > 0) & any_weight
    empty = (relevance == 0) & any_weight
    return module.stack(
        [(value * weight * has).sum(), (weight * has).sum(), has.sum(), empty.sum()]
    )
