"""Metrics of ranked lists: AUC by group, NDCG, average precision, reciprocal rank, recall, hits.

A list is a row of a batch, `(batch, list_size)`, or, with `groups`, all examples of a group (a
user's impressions) in all batches. Rows are summed on the device, as any metric. Examples of groups
are kept on the host until the value is read, exactly and in memory proportional to their
number (that of the session's largest evaluation); a step is then one run. A local variable counts
the kept examples that are valid: resetting it resets the metric.

Labels below 0 are padding. Definitions, weights included, are those of TensorFlow Ranking
(`tfr.keras.metrics`): a list's weight is the mean of its items' weights by relevance, and a list
without relevant items has the value 0 and the average weight. Equal scores count by the mean over
their orders; TensorFlow Ranking draws one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, float64, int64, string
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    apply,
    no_outputs,
    output,
    register,
    register_handle,
)
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.distribute.replica_context import replica_context
from estimatorkit.layers.engine.arguments import arguments_of
from estimatorkit.layers.metrics.ranked_lists import list_sums
from estimatorkit.layers.metrics.streaming import Collections, Metric, metric_variable, streaming
from estimatorkit.layers.weighting import broadcast, same_shapes
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.text.fingerprints import fingerprints

# -- rows


def _row_sums(
    labels: Any, scores: Any, weights: Any, *, kind: str, k: int | None, module: Any = jnp
) -> Any:
    lists = module.repeat(module.arange(labels.shape[0]), labels.shape[1])
    truth, ranked, shares = (module.asarray(each).reshape(-1) for each in (labels, scores, weights))
    return list_sums(kind, k, lists, truth, ranked, shares, module).astype(np.float64)


def _sums_spec(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(float64, TensorShape([4]))]


def _case(kind: str, expected: Sequence[float]) -> Case:
    labels = np.array([[0, 1, 0], [0, 0, -1], [0, 1, 1]], np.float32)
    scores = np.array([[3, 2, 1], [1, 2, 3], [1, 1, 2]], np.float32)
    weights = np.array([[1, 2, 1], [1, 1, 1], [1, 1, 1]], np.float32)
    return Case((labels, scores, weights), {"kind": kind, "k": None}, np.array(expected))


register(
    "RankedListSums",
    _row_sums,
    infer=_sums_spec,
    gradient=None,
    numpy_kernel=partial(_row_sums, module=np),
    cases=lambda: [
        _case("auc", [4 * 0.5 + 3 * 0.75, 7, 2, 0]),
        _case("mean_reciprocal_rank", [2 * 0.5 + 1, 3, 2, 1]),
    ],
)

# -- groups


class KeptExamples:
    """Columns of examples, which grow as needed."""

    def __init__(self) -> None:
        self._columns: list[NDArray[Any]] = []
        self._lock = threading.Lock()

    def write(self, start: int, columns: Sequence[NDArray[Any]]) -> None:
        """Puts rows at `start` and after."""
        end = start + len(columns[0])
        with self._lock:
            if not self._columns or end > len(self._columns[0]):
                old = self._columns or [each[:0] for each in columns]
                size = max(2 * len(old[0]), end, 1024)
                self._columns = [np.zeros(size, each.dtype) for each in old]
                for kept, column in zip(self._columns, old, strict=True):
                    kept[: len(column)] = column
            for kept, column in zip(self._columns, columns, strict=True):
                kept[start:end] = column

    def first(self, count: int) -> list[NDArray[Any]]:
        """The first rows."""
        with self._lock:
            return [each[:count].copy() for each in self._columns]


def _kept(context: Any, examples: str) -> KeptExamples:
    held: KeptExamples = context.resource(("kept examples", examples), KeptExamples)
    return held


def _keep(total: Any, *columns: Any, examples: str, context: Any) -> list[Any]:
    rows = [np.asarray(each) for each in columns]
    _kept(context, examples).write(int(total) - len(rows[0]), rows)
    return []


def _group_sums(total: Any, *, kind: str, k: int | None, examples: str, context: Any) -> Any:
    if not int(total):
        return np.zeros(4)
    groups, labels, scores, weights = _kept(context, examples).first(int(total))
    import pandas as pd

    real = labels >= 0
    lists, _ = pd.factorize(groups[real])
    return np.asarray(
        list_sums(kind, k, lists, labels[real], scores[real], weights[real], np), np.float64
    )


register_handle("KeptExamples", "kept examples")
for _type, _kernel, _infer in (
    ("KeepExamples", _keep, no_outputs),
    ("GroupedListSums", _group_sums, _sums_spec),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        gradient=None,
        where="host",
        context=True,
        pure=False,
        holder="examples",
    )


class Grouped:
    """The examples of a metric by group, in a graph.

    Args:
        kind: see `ranked_lists.KINDS`.
        k: the ranks that count; None for all.
    """

    def __init__(self, kind: str, k: int | None) -> None:
        with get_default_graph().init_scope():
            handle = apply("KeptExamples", (), {}, "examples")
        self._attrs = {"examples": handle.name}
        self._of_value = {"kind": kind, "k": k, **self._attrs}

    def keep(self, count: Variable, columns: Sequence[Tensor]) -> tuple[Tensor, Operation]:
        """Adds the examples of all replicas; returns the new total and the op that keeps them."""
        added = elementwise.cast(array.size(columns[0]), int64)
        total = count.assign_add(added)  # summed over replicas
        context = replica_context()
        if context is not None:
            columns = context.all_gather(columns)
        return total, apply("KeepExamples", [total, *columns], self._attrs)

    def value(self, total: Any) -> Tensor:
        """The metric of the first `total` examples."""
        return formula(output("GroupedListSums", [total], self._of_value))


# -- both


def formula(sums: Tensor) -> Tensor:
    """The metric from its four sums."""
    total, weight, found, empty = (sums[place] for place in range(4))
    mean = elementwise.div_no_nan(total, weight)
    return elementwise.cast(mean * elementwise.div_no_nan(found, found + empty), float32)


def columns_of(labels: Any, predictions: Any, weights: Any) -> list[Tensor]:
    """Labels, scores and weights, of one shape."""
    truth, scores = same_shapes(labels, predictions)
    if not scores.dtype.is_floating:
        scores = elementwise.cast(scores, float32)
    full = broadcast(1.0 if weights is None else weights, elementwise.cast(scores, float32))
    return [elementwise.cast(truth, float32), scores, full]


def row_sums(kind: str, k: int | None, columns: Sequence[Tensor]) -> Tensor:
    """The four sums of lists that are rows.

    Raises:
        ValueError: there are no rows.
    """
    if columns[0].shape.rank not in (None, 2):
        raise value_error(
            f"{kind}: lists are rows",
            expected="labels and predictions (batch, list_size), or groups",
            received=f"labels {columns[0].shape}",
            made_at=columns[0].op.source,
            hint="give groups=features['user_id'], if a row is one example",
        )
    return output("RankedListSums", columns, {"kind": kind, "k": k})


def grouped_columns(groups: Any, columns: Sequence[Tensor]) -> list[Tensor]:
    """Groups, labels, scores and weights, each `(examples,)`.

    Raises:
        TypeError: groups are neither integers nor strings.
        ValueError: there is not one group for each example.
    """
    ids = convert_to_tensor(groups, name="groups")
    if not (ids.dtype is string or ids.dtype.is_integer):
        raise type_error(
            "groups are ids",
            expected="integers or strings",
            received=ids,
            made_at=ids.op.source,
            hint="cast(groups, int64)",
        )
    if ids.dtype is not string:
        ids = elementwise.cast(ids, int64)
    elif replica_context() is not None:  # replicas exchange numbers only
        ids = fingerprints(ids)
    sizes = [each.shape.num_elements() for each in (ids, columns[0])]
    if None not in sizes and sizes[0] != sizes[1]:
        raise value_error(
            "each example has one group",
            expected=f"groups of the shape of labels, {columns[0].shape}",
            received=f"groups {ids.shape}",
            made_at=ids.op.source,
        )
    return [array.reshape(each, [-1]) for each in (ids, *columns)]


def checked_k(k: int | None) -> int | None:
    """A number of ranks.

    Raises:
        ValueError: it is less than 1.
    """
    if k is not None and k < 1:
        raise value_error(f"Invalid k={k}", expected="a number of ranks from 1, or None for all")
    return None if k is None else int(k)


def _ranking(
    kind: str,
    default: str,
    labels: Any,
    predictions: Any,
    groups: Any,
    weights: Any,
    metrics_collections: Collections,
    updates_collections: Collections,
    name: str | None,
    k: int | None = None,
) -> Metric:
    name, ranks = name or default, checked_k(k)
    if groups is None:
        return streaming(
            name,
            lambda: {"sums": row_sums(kind, ranks, columns_of(labels, predictions, weights))},
            formula,
            metrics_collections,
            updates_collections,
        )
    graph = get_default_graph()
    with graph.name_scope(name):
        columns = grouped_columns(groups, columns_of(labels, predictions, weights))
        count = metric_variable([], int64, "count")
        grouped = Grouped(kind, ranks)
        value = builtin_ops.identity(grouped.value(count.value()), name="value")
        total, kept = grouped.keep(count, columns)
        with graph.control_dependencies([kept]):
            update = builtin_ops.identity(grouped.value(total), name="update_op")
    graph.add_to_collections(metrics_collections or (), value)
    graph.add_to_collections(updates_collections or (), update)
    return value, update


def group_auc(
    labels: Any,
    predictions: Any,
    groups: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean of the groups' areas under the ROC curve, weighted by their impressions (GAUC).

    Zhu et al. 2017, "Optimized Cost per Click in Taobao Display Advertising" (arXiv:1703.02091).
    Exact, equal predictions included. Groups of one class are excluded. Examples are kept in host
    memory, about 20 bytes each, until the next evaluation.

    Args:
        labels: `(batch,)` or `(batch, 1)`; above 0 means positive, below 0 padding.
        predictions: scores, of the shape of `labels`.
        groups: integers or strings, one for each label: the user's id.
        weights: a scalar, or of the shape of `labels`; an example of weight 2 counts as two.
        metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`, float32 scalars; 0 if no group has both classes.

    Raises:
        TypeError: groups are neither integers nor strings.
        ValueError: the shapes do not fit.
    """
    rest = (weights, metrics_collections, updates_collections, name)
    return _ranking("auc", "group_auc", labels, predictions, groups, *rest)


def ndcg_at_k(
    labels: Any,
    predictions: Any,
    k: int | None = None,
    weights: Any = None,
    groups: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean over lists of the normalized discounted cumulative gain of the first k items.

    Gains are 2**label - 1, discounts 1 / log2(rank + 1) (Burges et al. 2005).

    Args:
        labels: relevance, `(batch, list_size)`; below 0 means padding. With `groups`, `(batch,)`.
        predictions: scores, of the shape of `labels`.
        k: the ranks that count; all by default.
        weights: a scalar, or of the shape of `labels` with 1 in any place.
        groups: integers or strings, one for each label: the list that the example belongs to, in
            whatever batch; None (default) where a row is a list. Examples are then kept in host
            memory, about 20 bytes each, until the next evaluation.
        metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`, float32 scalars; lists without relevant items count as 0.

    Raises:
        TypeError: groups are neither integers nor strings.
        ValueError: the shapes do not fit, or `k` is less than 1.
    """
    rest = (weights, metrics_collections, updates_collections, name, k)
    return _ranking("ndcg", "ndcg_at_k", labels, predictions, groups, *rest)


@arguments_of(ndcg_at_k)
def mean_average_precision_at_k(**given: Any) -> Metric:
    """The mean over lists of the precisions at the relevant items among the first k.

    They are summed and divided by the number of relevant items, beyond k too. Labels of 1 and more
    are relevant; arguments and result as for `ndcg_at_k`.
    """
    return _ranking("mean_average_precision", "mean_average_precision_at_k", **given)


@arguments_of(ndcg_at_k)
def mean_reciprocal_rank(**given: Any) -> Metric:
    """The mean over lists of 1 / rank of the first relevant item; 0 if that is not in the first k.

    Labels of 1 and more are relevant; arguments and result as for `ndcg_at_k`.
    """
    return _ranking("mean_reciprocal_rank", "mean_reciprocal_rank", **given)


@arguments_of(ndcg_at_k)
def list_recall_at_k(**given: Any) -> Metric:
    """The mean over lists of the fraction of relevant items that are among the first k.

    Not `recall_at_k`, which compares class indices. Labels of 1 and more are relevant; arguments
    and result as for `ndcg_at_k`.
    """
    return _ranking("recall", "list_recall_at_k", **given)


@arguments_of(ndcg_at_k)
def hit_rate_at_k(**given: Any) -> Metric:
    """The fraction of lists with a relevant item among the first k.

    Labels of 1 and more are relevant; arguments and result as for `ndcg_at_k`.
    """
    return _ranking("hit_rate", "hit_rate_at_k", **given)
