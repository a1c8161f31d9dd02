"""Confusion matrices."""

from __future__ import annotations

from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, int32, int64
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import filling, joining
from estimatorkit.ops.array.gather_nd import scatter_nd
from estimatorkit.ops.debug import checks
from estimatorkit.ops.debug.shape_matching import match_rank
from estimatorkit.ops.math import elementwise, reduce


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """How often each class was predicted for each label: rows are labels, columns predictions.

    Args:
        labels, predictions: int vectors of one length; one of them may be a column.
        num_classes: the number of classes; by default the greatest value plus one.
        dtype: the dtype of the result.
        name: the name scope.
        weights: the weight of each example; 1 by default.

    Raises:
        ValueError: the static shapes are incompatible.
        InvalidArgumentError: a class is negative or, when run, not below `num_classes`.
    """
    with get_default_graph().name_scope(name or "confusion_matrix"):
        truth, guesses = (convert_to_tensor(each) for each in (labels, predictions))
        given = {
            "labels": match_rank(truth, guesses),
            "predictions": match_rank(guesses, truth),
        }
        ids = {what: elementwise.cast(each, int64) for what, each in given.items()}
        shapes = [ids[what].shape for what in ("predictions", "labels")]
        if not shapes[0].is_compatible_with(shapes[1]):
            raise ValueError(
                "Shapes of predictions and labels must be equal, but are "
                f"{shapes[0]} and {shapes[1]}: they are incompatible."
            )
        made = []
        for what, each in ids.items():
            made.append(
                checks.assert_non_negative(each, message=f"`{what}` contains negative values")
            )
        if num_classes is None:
            both = joining.concat(list(ids.values()), 0)
            count = elementwise.cast(reduce.reduce_max(both), int32) + 1
        else:
            count = elementwise.cast(convert_to_tensor(num_classes), int32)
            limit = elementwise.cast(count, int64)
            for what, each in ids.items():
                made.append(checks.assert_less(each, limit, message=f"`{what}` out of bound"))
        with get_default_graph().control_dependencies(made):
            rows, columns = (builtin_ops.identity(each) for each in ids.values())
        if weights is not None:
            weights = convert_to_tensor(weights, name="weights")
            weights.shape.assert_is_compatible_with(columns.shape)
        return count_pairs(rows, columns, count, dtype, weights)


def count_pairs(
    rows: Tensor, columns: Tensor, count: Any, dtype: Any, weights: Tensor | None
) -> Tensor:
    """`confusion_matrix` of classes that are known to be in their range.

    Args:
        rows, columns: int64 vectors of one length.
        count: the number of classes.
        dtype: the dtype of the result.
        weights: what each pair counts; 1 by default.
    """
    wanted = as_dtype(dtype)
    if weights is None:
        values: Tensor = filling.ones_like(rows, dtype=wanted)
    else:
        values = elementwise.cast(weights, wanted)
    places = joining.stack([rows, columns], 1)
    return scatter_nd(places, values, joining.stack([count, count]))
