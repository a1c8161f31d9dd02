"""Checks of labels and weights: shapes and dtypes while the graph is built, values inside the step.

XLA cannot raise errors, so value checks are step checks on a few scalars (a minimum, a maximum, a
count), which are tested before results are used (`runtime.steps.step_checks`).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column import Features, NumericColumn, numeric_column
from estimatorkit.ops.array import array
from estimatorkit.ops.debug.shape_matching import ensure_leading
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.train.checks import add_step_check


def checked_labels(labels: Any, logits: Tensor, dimension: int) -> Tensor:
    """Reshapes labels to `(batch, ..., dimension)`, if the shape is known.

    Args:
        labels: of that shape or, where `dimension` is 1, without the last dimension.
        logits: `(batch, ..., n)`.
        dimension: the number of labels per example.

    Raises:
        ValueError: there are none, or the shape is another.
    """
    if labels is None:
        raise value_error(
            "You must provide a labels Tensor. Given: None",
            hint="check that your data contains your label feature, and that input_fn returns "
            "(features, labels)",
        )
    if isinstance(labels, dict):
        raise value_error(
            "labels must be one tensor for this head",
            received=f"a dict with keys {sorted(labels)}",
            hint="return the labels themselves from input_fn",
        )
    if isinstance(labels, (SparseTensor, SparseTensorValue)):
        raise value_error(
            "SparseTensor labels are not supported. Labels must be a Tensor of shape "
            f"[D0, D1, ..., DN, {dimension}], e.g. [batch_size, {dimension}]",
            received=labels,
            hint=f"use sparse.to_dense in input_fn: each example must have {dimension} value(s)",
        )
    tensor = convert_to_tensor(labels, name="labels")
    if None not in (tensor.shape.rank, logits.shape.rank):
        if tensor.shape.rank == logits.shape.rank - 1:  # type: ignore[operator]
            tensor = array.expand_dims(tensor, -1)
        received = tensor.shape[-1] if tensor.shape.rank else None
        if tensor.shape.rank != logits.shape.rank or received not in (None, dimension):
            raise value_error(
                f"Mismatched label shape. Expected labels dimension={dimension}.  "
                f"Received {received}",
                expected=f"{logits.shape[:-1].concatenate([dimension])}"
                + (f" or {logits.shape[:-1]}" if dimension == 1 else ""),
                received=f"{tensor.name} {tensor.shape}",
                made_at=tensor.op.source,
                hint="if your classifier expects one-hot encoding label, check n_classes "
                "and the shape of your label; class indices have shape (batch,)",
            )
    return tensor


def as_batch_of(logits: Tensor, labels: Tensor, dimension: int) -> Tensor:
    """Labels in the batch of `logits`.

    Args:
        logits: `(batch, ..., n)`.
        labels: `(batch, ..., dimension)`; for a `dimension` of 1 also `(batch, ...)`.
        dimension: the number of labels per example.

    Raises:
        InvalidArgumentError: when run: they have another shape.
    """
    what = f"labels shape must be [D0, D1, ... DN, {dimension}]"
    return ensure_leading(labels, logits, [dimension], what, "labels")


def check_label_range(
    labels: Tensor, n_classes: int, problem: str | None = None, version: Literal[1, 2] = 2
) -> None:
    """Adds a step check that labels are in [0, n_classes).

    Args:
        labels: numbers.
        n_classes: the number of classes.
        problem: the beginning of the error message; by default the violated bound.
        version: the major version of TensorFlow whose message to use.
    """
    must = "Labels must be" if version == 2 else "Labels must"

    def check(values: list[NDArray[Any]]) -> None:
        lows, highs = values
        wrong = ~((lows >= 0) & (highs <= n_classes - 1))
        if wrong.any():
            step = int(np.argmax(wrong))
            low, high = lows[step].item(), highs[step].item()
            too_low = not low >= 0
            raise InvalidArgumentError.explained(
                problem or (f"{must} >= 0" if too_low else f"{must} <= n_classes - 1"),
                expected=f"labels in [0, {n_classes - 1}], n_classes={n_classes}",
                received=f"minimum {low:g}, maximum {high:g} in a batch",
                made_at=labels.op.source,
                hint=_range_hint(low, high, n_classes),
                op=labels.op,
            )

    add_step_check([reduce.reduce_min(labels), reduce.reduce_max(labels)], check, labels)


def _range_hint(low: float, high: float, n_classes: int) -> str:
    if low == 1 and high == n_classes:
        return f"labels seem to be 1..{n_classes}: subtract 1 in input_fn"
    if low == -1 and high == 1 and n_classes == 2:
        return "labels seem to be -1 and 1: use (labels + 1) // 2 in input_fn"
    if high == high and high >= n_classes and low >= 0:
        return f"n_classes={int(high) + 1}, or subtract 1 if labels start at 1"
    return "use class indices from 0, or strings and label_vocabulary"


def check_finite_labels(labels: Tensor) -> None:
    """Adds a step check that labels are finite."""

    def check(values: list[NDArray[Any]]) -> None:
        (counts,) = values
        if counts.any():
            raise InvalidArgumentError.explained(
                "Labels must be finite",
                expected="finite numbers",
                received=f"{int(counts[counts > 0][0])} NaN or infinite labels in a batch",
                made_at=labels.op.source,
                hint="look for empty cells in the label column",
                op=labels.op,
            )

    wrong = elementwise.logical_not(elementwise.is_finite(labels))
    add_step_check([reduce.reduce_sum(elementwise.cast(wrong, int32))], check, labels)


def weights_of(
    features: Any, weight_column: Any, logits: Tensor, allow_per_logit: bool
) -> Tensor | None:
    """The examples' weights, `(batch, ..., 1)` or, if allowed, in the shape of `logits`.

    Adds a step check that they are numbers >= 0.

    Args:
        features: tensors by key.
        weight_column: a key, a `NumericColumn`, or None: there are no weights.
        logits: `(batch, ..., n)`.
        allow_per_logit: whether weights may be per logit.

    Raises:
        TypeError: `weight_column` is something else.
        ValueError: the feature is missing, holds strings or has another shape.
    """
    if weight_column is None:
        return None
    column = numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, NumericColumn):
        raise TypeError(
            "Weight column must be either a string or NumericColumn. "
            f"Given type: {type(weight_column)}."
        )
    weights: Tensor = Features(features).transformed(column)
    weights = _one_each(weights, logits, column, allow_per_logit)

    def check(values: list[NDArray[Any]]) -> None:
        (lows,) = values
        wrong = ~(lows >= 0)
        if wrong.any():
            raise InvalidArgumentError.explained(
                f"weights in column {column.key!r} must be >= 0",
                expected="numbers >= 0",
                received=f"{float(lows[wrong][0]):g} in a batch",
                made_at=weights.op.source,
                hint="use the weight 0 for examples to ignore",
                op=weights.op,
            )

    # The minimum of numbers with a NaN among them is NaN.
    add_step_check([reduce.reduce_min(elementwise.cast(weights, float32))], check, weights)
    return weights


def _one_each(
    weights: Tensor, logits: Tensor, column: NumericColumn, allow_per_logit: bool
) -> Tensor:
    """Weights as `(batch, ..., 1)` or, if allowed, in the shape of `logits`."""
    dimension = logits.shape[-1]
    last = [1, dimension] if allow_per_logit and dimension not in (1, None) else [1]
    forms = ["[D0, D1, ... DN]", "[D0, D1, ... DN, 1]", "[D0, D1, ... DN, logits_dimension]"]
    named = forms if allow_per_logit else forms[:2]
    what = f"weights shape must be {', '.join(named[:-1])} or {named[-1]}"
    ranks = (weights.shape.rank, logits.shape.rank)
    if None not in ranks and ranks[0] == ranks[1] and weights.shape[-1] not in (None, *last):
        raise value_error(
            what,
            expected=" or ".join(str(logits.shape[:-1].concatenate([each])) for each in last),
            received=f"weight column {column.key!r}, {weights.shape}",
            made_at=weights.op.source,
            hint="use one weight per example",
        )
    return ensure_leading(weights, logits, last, what, "weights")
