"""What every metric is made of: sums over the examples seen, and a formula of these sums.

`streaming` makes a local variable for each sum (`metric_variable`: collections LOCAL_VARIABLES and
METRIC_VARIABLES, so that no checkpoint holds them and each evaluation restarts them), adds to it
in `update_op`, and computes `value` from them; `keras.metric_classes.metric` does the same for
objects. `metric_like` makes a metric of a function of the sums, with the arguments of another
metric. Updates are pure device operations, so an evaluation can run many batches in one XLA call;
sums, not means of batches, are kept, so a short last batch counts by its examples. Sums are
float32, as TensorFlow's: counts are exact up to 2**24 examples of weight 1, and off by at most one
part in 2**24 a batch after that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variable_options import VariableAggregation
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine.arguments import arguments_of
from estimatorkit.layers.weighting import broadcast
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise, reduce

P = ParamSpec("P")
Metric = tuple[Tensor, Tensor]
Collections = Sequence[str] | None
Sums = Mapping[str, Tensor]
"""What a batch adds to each sum, by the name of its variable."""


def metric_variable(
    shape: Any, dtype: DType, name: str | None, initial_value: Any = None
) -> Variable:
    """A variable that holds a sum.

    Args:
        shape: its shape, fully known.
        dtype: its dtype.
        name: its name, below the name scope in force.
        initial_value: its initial value; 0 by default.
    """
    start = np.zeros(shape, dtype.as_numpy_dtype) if initial_value is None else initial_value
    return Variable(
        start,
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        name=name,
        dtype=dtype,
        aggregation=VariableAggregation.SUM,
    )


def variables_of(sums: Sums) -> list[Variable]:
    """A variable for each sum.

    Raises:
        ValueError: the shape of a sum is not known.
    """
    for key, increment in sums.items():
        if not increment.shape.is_fully_defined():
            raise value_error(
                f"the shape of the sum {key!r} must be known before the graph runs",
                expected="a shape without unknown dimensions",
                received=str(increment.shape),
                made_at=increment.op.source,
                hint="give the values a static shape: tensor.set_shape(...)",
            )
    return [
        metric_variable(increment.shape.as_list(), increment.dtype, key)
        for key, increment in sums.items()
    ]


def streaming(
    name: str,
    sums: Callable[[], Sums],
    formula: Callable[..., Tensor],
    metrics_collections: Collections,
    updates_collections: Collections,
    updated_formula: Callable[..., Tensor] | None = None,
) -> Metric:
    """A metric.

    Args:
        name: its name scope.
        sums: computes a batch's contribution to each sum.
        formula: the metric from the sums, in that order.
        metrics_collections, updates_collections: collections that take the value and the update.
        updated_formula: what the update gives, where that is not the metric.
    """
    graph = get_default_graph()
    with graph.name_scope(name):
        increments = sums()
        variables = variables_of(increments)
        value = builtin_ops.identity(formula(*(each.value() for each in variables)), name="value")
        updated = [
            variable.assign_add(increment)
            for variable, increment in zip(variables, increments.values(), strict=True)
        ]
        update = builtin_ops.identity((updated_formula or formula)(*updated), name="update_op")
    graph.add_to_collections(metrics_collections or (), value)
    graph.add_to_collections(updates_collections or (), update)
    return value, update


def metric_like(
    other: Callable[P, Metric],
    formula: Callable[..., Tensor],
    name: str | None = None,
    updated_formula: Callable[..., Tensor] | None = None,
) -> Callable[[Callable[..., Sums]], Callable[P, Metric]]:
    """Makes a metric, which takes the arguments of another one, of what a batch adds to each sum.

    Args:
        other: the metric that describes the arguments. The function gets all of them but the
            collections and the name.
        formula, updated_formula: see `streaming`.
        name: the name scope by default; that of the function by default.
    """

    def decorate(sums: Callable[..., Sums]) -> Callable[P, Metric]:
        @arguments_of(other)
        @functools.wraps(sums)
        def metric(
            metrics_collections: Collections, updates_collections: Collections, **given: Any
        ) -> Metric:
            scope = given.pop("name") or name or sums.__name__
            collections = (metrics_collections, updates_collections)
            return streaming(scope, lambda: sums(**given), formula, *collections, updated_formula)

        return metric

    return decorate


def weighted_sums(values: Any, weights: Any, dtype: DType = float32) -> dict[str, Tensor]:
    """`total`: the sum of the weighted values; `count`: the sum of the weights.

    Args:
        values: numbers of any shape.
        weights: None, a scalar, or of the shape of `values` with 1 in any place.
        dtype: of the sums.
    """
    tensor = elementwise.cast(convert_to_tensor(values, name="values"), dtype)
    if weights is None:
        count = elementwise.cast(array.size(tensor), dtype)
        return {"total": reduce.reduce_sum(tensor), "count": count}
    full = broadcast(weights, tensor)
    return {"total": reduce.reduce_sum(tensor * full), "count": reduce.reduce_sum(full)}
