"""What every metric is made of: sums over the examples seen, and a formula of these sums.

`streaming` makes a local variable for each sum (collections LOCAL_VARIABLES and METRIC_VARIABLES:
no checkpoint holds them), adds to it in `update_op`, and computes `value` from them. Updates are
pure device operations, so an evaluation can run many batches in one XLA call; sums, not means of
batches, are kept, so a short last batch counts by its examples. Sums are float32, as TensorFlow's:
counts are exact up to 2**24 examples of weight 1, and off by at most one part in 2**24 a batch
after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array, elementwise, reduce
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.weighting import broadcast

Metric = tuple[Tensor, Tensor]
Collections = Sequence[str] | None


def streaming(
    name: str,
    sums: Callable[[], dict[str, Tensor]],
    formula: Callable[..., Tensor],
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    """A metric.

    Args:
        name: its name scope.
        sums: makes what a batch adds to each sum, by the variable's name; shapes are known.
        formula: the metric from the sums, in that order.
        metrics_collections, updates_collections: collections that take the value and the update.
    """
    graph = get_default_graph()
    with graph.name_scope(name):
        increments = sums()
        variables = [
            Variable(
                np.zeros(increment.shape.as_list(), np.float32),
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
                name=key,
            )
            for key, increment in increments.items()
        ]
        value = array.identity(formula(*(each.value() for each in variables)), name="value")
        updated = [
            variable.assign_add(increment)
            for variable, increment in zip(variables, increments.values(), strict=True)
        ]
        update = array.identity(formula(*updated), name="update_op")
    graph.add_to_collections(metrics_collections or (), value)
    graph.add_to_collections(updates_collections or (), update)
    return value, update


def weighted_sums(values: Any, weights: Any) -> dict[str, Tensor]:
    """`total`: the sum of the weighted values; `count`: the sum of the weights."""
    tensor = elementwise.cast(convert_to_tensor(values, name="values"), float32)
    if weights is None:
        count = elementwise.cast(array.size(tensor), float32)
        return {"total": reduce.reduce_sum(tensor), "count": count}
    full = broadcast(weights, tensor)
    return {"total": reduce.reduce_sum(tensor * full), "count": reduce.reduce_sum(full)}
