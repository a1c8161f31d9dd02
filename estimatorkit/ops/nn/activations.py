"""Activations and losses made of other operations: `crelu`, `swish`, `xw_plus_b`, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import constant_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """Concatenates the ReLU of x and that of -x along an axis (Shang et al. 2016)."""
    with get_default_graph().name_scope(name or "CRelu") as scope:
        x = convert_to_tensor(features, name="features")
        return nn.relu(joining.concat([x, -x], axis), name=scope)


def swish(features: Any, beta: Any = 1.0, name: str | None = None) -> Tensor:
    """x * sigmoid(beta * x), also called swish (Ramachandran et al. 2017)."""
    with get_default_graph().name_scope(name or "swish") as scope:
        x = convert_to_tensor(features, name="features")
        steeper = x if isinstance(beta, (int, float)) and beta == 1 else beta * x
        return elementwise.multiply(x, elementwise.sigmoid(steeper), name=scope)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """The matrix product of x and the weights, plus the biases.

    Args:
        x: `(batch, n)`.
        weights: `(n, m)`.
        biases: `(m,)`.
    """
    with get_default_graph().name_scope(name or "xw_plus_b") as scope:
        return nn.bias_add(linalg.matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """The ReLU of `xw_plus_b(x, weights, biases)`."""
    with get_default_graph().name_scope(name or "relu_layer") as scope:
        return nn.relu(xw_plus_b(x, weights, biases), name=scope)


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """Sigmoid cross-entropy with positive labels weighted by `pos_weight`.

    Args:
        labels: of the dtype and shape of the logits; `targets` is an older name.
        logits: floats.
        pos_weight: a number or a tensor that broadcasts.

    Raises:
        ValueError: the shapes differ.
    """
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        z = convert_to_tensor(logits, name="logits")
        y = convert_to_tensor(targets if labels is None else labels, z.dtype, name="labels")
        if not y.shape.is_compatible_with(z.shape):
            raise value_error(
                f"`logits` and `labels` must have the same shape, received ({z.shape} vs "
                f"{y.shape})",
                made_at=y.op.source,
            )
        weight = 1 + (pos_weight - 1) * y
        # log(1 + exp(-|z|)) + max(-z, 0), which does not overflow.
        stable = elementwise.log1p(elementwise.exp(-elementwise.abs(z))) + nn.relu(-z)
        return elementwise.add((1 - y) * z, weight * stable, name=scope)


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Poisson loss of a log rate: exp(log_input) - log_input * targets.

    Args:
        targets: counts, of the shape of `log_input`.
        log_input: logs of rates.
        compute_full_loss: add Stirling's approximation of log(targets!), for targets above 1.

    Raises:
        ValueError: the shapes differ.
    """
    with get_default_graph().name_scope(name or "log_poisson_loss") as scope:
        rate = convert_to_tensor(log_input, name="log_input")
        counts = convert_to_tensor(targets, rate.dtype, name="targets")
        if not counts.shape.is_compatible_with(rate.shape):
            raise value_error(
                "`log_input` and `targets` must have the same shape, received "
                f"({rate.shape} vs {counts.shape})",
                made_at=counts.op.source,
            )
        loss = elementwise.exp(rate) - rate * counts
        if compute_full_loss:
            stirling = (
                counts * elementwise.log(counts)
                - counts
                + 0.5 * elementwise.log(2.0 * np.pi * counts)
            )
            small = elementwise.logical_and(
                elementwise.greater_equal(counts, 0.0), elementwise.less_equal(counts, 1.0)
            )
            loss = loss + indexing.where(small, filling.zeros_like(counts), stirling)
        return elementwise.add(loss, filling.zeros_like(loss), name=scope)


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The sum of per-example losses divided by the batch size.

    Args:
        per_example_loss: `(batch, ...)`.
        sample_weight: weights of the losses, `(batch,)` or a shape that broadcasts.
        global_batch_size: the number of examples on all devices; the batch size of
            `per_example_loss` by default.

    Raises:
        ValueError: the losses are scalar, or the batch size is not.
        TypeError: the batch size is not an integer.
        InvalidArgumentError: the batch size is known to be negative.
    """
    losses = convert_to_tensor(per_example_loss)
    if losses.shape.rank == 0:
        raise value_error(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1",
            received=losses,
            made_at=losses.op.source,
        )
    if sample_weight is not None:
        weights = elementwise.cast(convert_to_tensor(sample_weight), losses.dtype)
        for _ in range((losses.shape.rank or 0) - (weights.shape.rank or 0)):
            weights = array.expand_dims(weights, -1) if weights.shape.rank else weights
        losses = losses * weights
    if global_batch_size is None:
        size = array.shape(losses)[0]
    else:
        size = convert_to_tensor(global_batch_size)
        known = constant_value(size)
        if size.shape.rank not in (0, None):
            raise ValueError(f"global_batch_size must be scalar. Received {global_batch_size}")
        if not size.dtype.is_integer:
            raise TypeError(f"global_batch_size must be an integer. Received {global_batch_size}")
        if known is not None and known < 0:
            raise InvalidArgumentError(
                None, size.op, f"global_batch_size must be non-negative. Received {known}"
            )
    return elementwise.div_no_nan(reduce.reduce_sum(losses), elementwise.cast(size, losses.dtype))


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of regularization losses divided by the number of training replicas, here one."""
    return reduce.reduce_sum(convert_to_tensor(regularization_loss))
