"""Cross-entropies as functions, as `tf.keras.losses`: one value per example.

Predictions are probabilities, or logits if `from_logits` is True. Probabilities are kept 1e-7
away from 0 and 1, so that a sure and wrong prediction costs 16 at most and has no gradient: where
they come straight out of a softmax or sigmoid of the graph, its logits are taken instead
(`logits_behind`), as Keras does.
"""

from __future__ import annotations

import warnings
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.registry import lookup
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.backend_state import epsilon
from estimatorkit.keras.error_functions import as_floats, clip
from estimatorkit.layers.engine.call_record import set_mask
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.train.checks import offer_step_check


def logits_behind(
    output: Tensor, from_logits: bool, op_type: str, what: str, axis: int | None = None
) -> tuple[Tensor, bool]:
    """The input of the softmax or sigmoid that made `output`, if any.

    Args:
        output: predictions.
        from_logits: whether they are logits.
        op_type: 'Softmax' or 'Sigmoid'.
        what: the loss, for the warning.
        axis: the axis of the classes.

    Returns:
        Logits and True, or `output` and `from_logits`.
    """
    op = output.op
    if not lookup(op_type).made(op):
        return output, from_logits
    if axis is not None and not _same_axis(axis, op.attrs["axis"], output.shape.rank):
        return output, from_logits
    if from_logits:
        warnings.warn(
            f'"`{what}` received `from_logits=True`, but the `output` argument was produced by a '
            f"{op_type} activation and thus does not represent logits. Was this intended?",
            stacklevel=3,
        )
    return op.inputs[0], True


def _same_axis(one: int, two: int, rank: int | None) -> bool:
    return one == two or (rank is not None and one % rank == two % rank)


def _smoothed(truth: Tensor, smoothing: Any, target: Any) -> Tensor:
    if isinstance(smoothing, (int, float)) and smoothing == 0:
        return truth
    smoothed: Tensor = truth * (1.0 - smoothing) + smoothing * target
    return smoothed


def _smoothed_classes(truth: Tensor, smoothing: Any, axis: int) -> Tensor:
    if isinstance(smoothing, (int, float)) and smoothing == 0:
        return truth
    classes = elementwise.cast(array.shape(truth)[axis], truth.dtype)
    return _smoothed(truth, smoothing, 1.0 / classes)


def _shares(output: Tensor, axis: int) -> Tensor:
    """Probabilities that sum to 1, kept away from 0 and 1."""
    return clip(output / reduce.reduce_sum(output, axis, True), epsilon(), 1.0 - epsilon())


def categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """-sum(label * log(probability)) over the classes.

    Args:
        y_true: probabilities of the classes, such as one-hot labels, `(..., classes)`.
        y_pred: predicted probabilities, `(..., classes)`; they are divided by their sum.
        from_logits: whether `y_pred` contains logits.
        label_smoothing: labels become (1 - label_smoothing) * label + label_smoothing / classes.
        axis: the axis of the classes.

    Returns:
        `(...)`, of the dtype of `y_pred`.

    Raises:
        ValueError: the shapes are incompatible.
    """
    truth, output = as_floats(y_true, y_pred)
    truth = _smoothed_classes(truth, label_smoothing, axis)
    output, known = logits_behind(output, from_logits, "Softmax", "categorical_crossentropy", axis)
    if known:
        return nn.softmax_cross_entropy_with_logits_v2(labels=truth, logits=output, axis=axis)
    return elementwise.negative(
        reduce.reduce_sum(truth * elementwise.log(_shares(output, axis)), axis)
    )


def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """The cross-entropy, with each class's term times alpha * (1 - probability)**gamma.

    Lin et al. 2018, "Focal Loss for Dense Object Detection".

    Args:
        y_true, y_pred, from_logits, label_smoothing, axis: see `categorical_crossentropy`.
        alpha: the weight of every class.
        gamma: the focusing parameter: the larger, the less well-classified examples count.
    """
    truth, output = as_floats(y_true, y_pred)
    truth = _smoothed_classes(truth, label_smoothing, -1)
    what = "categorical_focal_crossentropy"
    output, known = logits_behind(output, from_logits, "Softmax", what, axis)
    if known:
        output = nn.softmax(output, axis)
    shares = _shares(output, axis)
    parts = elementwise.pow(1.0 - shares, gamma) * alpha * (-truth * elementwise.log(shares))
    return reduce.reduce_sum(parts, axis)


def sparse_categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    axis: int = -1,
    ignore_class: int | None = None,
) -> Tensor:
    """`categorical_crossentropy` for labels that are class indices.

    Args:
        y_true: integers `(...)` or `(..., 1)`, in [0, classes). In `fit` and `evaluate`, and in
            estimators made from models, others raise an `InvalidArgumentError`.
        y_pred: probabilities `(..., classes)`.
        from_logits: whether `y_pred` contains logits.
        axis: the axis of the classes.
        ignore_class: labels of this class have loss 0, and are excluded from means.

    Returns:
        `(...)`, of the dtype of `y_pred`.
    """
    output = convert_to_tensor(y_pred, name="y_pred")
    if not output.dtype.is_floating:
        output = elementwise.cast(output, float32)
    target = elementwise.cast(convert_to_tensor(y_true, name="y_true"), int64)
    what = "sparse_categorical_crossentropy"
    output, known = logits_behind(output, from_logits, "Softmax", what, axis)
    if not known:
        output = elementwise.log(clip(output, epsilon(), 1.0 - epsilon()))
    rank = output.shape.rank
    if rank is not None and axis % rank != rank - 1:
        order = [each for each in range(rank) if each != axis % rank]
        output = array.transpose(output, [*order, axis % rank])
    if rank is not None and target.shape.rank not in (rank - 1, None):
        target = array.reshape(target, array.shape(output)[:-1])
        target.set_shape(output.shape[:-1])
    if ignore_class is None:
        _check_classes(target, output)
        return nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=output)
    valid = elementwise.not_equal(target, convert_to_tensor(ignore_class, int64))
    known_target = indexing.where(valid, target, filling.zeros_like(target))
    _check_classes(known_target, output)
    losses = nn.sparse_softmax_cross_entropy_with_logits(labels=known_target, logits=output)
    masked = indexing.where(valid, losses, filling.zeros_like(losses))
    set_mask(masked, valid)
    return masked


def _check_classes(labels: Tensor, output: Tensor) -> None:
    """Lets the step that is being built refuse labels that are not class."""
    classes = output.shape[-1] if output.shape.rank else None
    if classes is None:
        return

    def check(values: list[Any]) -> None:
        for low, high in zip(*values, strict=True):
            wrong = low if low < 0 else high
            if low <= high and not 0 <= wrong < classes:
                raise InvalidArgumentError.explained(
                    f"Received a label value of {wrong} which is outside the valid range of "
                    f"[0, {classes})",
                    expected=f"{classes} classes, as the model has outputs: 0 to {classes - 1}",
                    received=f"labels from {low} to {high} in a batch",
                    hint="give the last layer as many outputs as there are classes, and begin "
                    "with class 0",
                    op=labels.op,
                )

    offer_step_check([reduce.reduce_min(labels), reduce.reduce_max(labels)], check)


def _binary(truth: Tensor, output: Tensor, from_logits: bool) -> Tensor:
    """The cross-entropy, element by element."""
    output, known = logits_behind(output, from_logits, "Sigmoid", "binary_crossentropy")
    if known:
        return nn.sigmoid_cross_entropy_with_logits(labels=truth, logits=output)
    chance = clip(output, epsilon(), 1.0 - epsilon())
    right = truth * elementwise.log(chance + epsilon())
    return elementwise.negative(right + (1.0 - truth) * elementwise.log(1.0 - chance + epsilon()))


def binary_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """The mean of -label * log(probability) - (1 - label) * log(1 - probability).

    Args:
        y_true: numbers in [0, 1], `(..., d)`.
        y_pred: probabilities, `(..., d)`.
        from_logits: whether `y_pred` contains logits.
        label_smoothing: labels become (1 - label_smoothing) * label + label_smoothing / 2.
        axis: the axis of the mean.

    Returns:
        `(...)`, of the dtype of `y_pred`.

    Raises:
        ValueError: the shapes are incompatible.
    """
    truth, output = as_floats(y_true, y_pred)
    truth = _smoothed(truth, label_smoothing, 0.5)
    return reduce.reduce_mean(_binary(truth, output, from_logits), axis)


def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """`binary_crossentropy`, with each term times (1 - probability of the label)**gamma.

    Lin et al. 2018, "Focal Loss for Dense Object Detection".

    Args:
        y_true, y_pred, from_logits, label_smoothing, axis: see `binary_crossentropy`.
        apply_class_balancing: whether to weight class 1 by `alpha` and class 0 by 1 - `alpha`.
        alpha: the weight of class 1.
        gamma: the focusing parameter: the larger, the less well-classified examples count.
    """
    truth, output = as_floats(y_true, y_pred)
    truth = _smoothed(truth, label_smoothing, 0.5)
    chance = elementwise.sigmoid(output) if from_logits else output
    likely = truth * chance + (1.0 - truth) * (1.0 - chance)
    losses = elementwise.pow(1.0 - likely, gamma) * _binary(truth, output, from_logits)
    if apply_class_balancing:
        losses = (truth * alpha + (1.0 - truth) * (1.0 - alpha)) * losses
    return reduce.reduce_mean(losses, axis)
