"""Losses of embeddings: those of one class shall be near, those of different classes apart.

Labels are a vector of classes, embeddings floats `(batch, size)`; each loss is a scalar. Source:
`tf.contrib.losses.metric_learning`.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.filling import zeros_like
from estimatorkit.ops.debug.debug import Print
from estimatorkit.ops.linalg.diagonals import matrix_set_diag
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.linalg import matmul
from estimatorkit.ops.nn import nn


def _same_class(labels: Any) -> Tensor:
    """Whether the labels of a row and a column are equal: bool `(batch, batch)`."""
    vector = convert_to_tensor(labels, name="labels")
    if vector.shape.rank not in (None, 1):
        raise value_error("labels must be a vector", received=vector.shape)
    return elementwise.equal(array.reshape(vector, [-1, 1]), array.reshape(vector, [1, -1]))


def _positives(same: Tensor, like: Tensor) -> Tensor:
    """1 where two different examples have one class, else 0."""
    pairs = elementwise.cast(same, like.dtype)
    return matrix_set_diag(pairs, zeros_like(pairs[0]))


def pairwise_distance(feature: Any, squared: bool = False) -> Tensor:
    """Euclidean distances `(n, n)` of the rows of a matrix.

    Args:
        feature: floats `(n, size)`.
        squared: whether their squares are given.
    """
    rows = convert_to_tensor(feature, name="feature")
    squares = reduce.reduce_sum(elementwise.square(rows), 1, keepdims=True)
    products = matmul(rows, rows, transpose_b=True)
    distances = elementwise.maximum(squares + array.transpose(squares) - 2.0 * products, 0.0)
    if not squared:
        none = elementwise.cast(distances <= 0.0, distances.dtype)
        # The root's derivative at 0 is infinite.
        distances = elementwise.sqrt(distances + none * 1e-16) * (1.0 - none)
    return matrix_set_diag(distances, zeros_like(distances[0]))


def _largest(values: Tensor, mask: Tensor) -> Tensor:
    """The largest value of the last axis where the mask is 1; the smallest of all if none is."""
    least = reduce.reduce_min(values, -1, keepdims=True)
    return reduce.reduce_max((values - least) * mask, -1, keepdims=True) + least


def contrastive_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0
) -> Tensor:
    """The mean over pairs of d^2 for equal classes, max(margin - d, 0)^2 for others.

    Args:
        labels: 1 for pairs of one class, 0 for others, `(batch,)`.
        embeddings_anchor, embeddings_positive: the pairs.
        margin: from which distance d on others are apart.
    """
    squares = elementwise.squared_difference(embeddings_anchor, embeddings_positive)
    distances = elementwise.sqrt(reduce.reduce_sum(squares, 1))
    near = elementwise.cast(labels, distances.dtype)
    apart = elementwise.square(elementwise.maximum(margin - distances, 0.0))
    each = near * elementwise.square(distances) + (1.0 - near) * apart
    return reduce.reduce_mean(each, name="contrastive_loss")


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """Pairs of one class against the nearest example of another class that is farther.

    Where none is farther, against the farthest; distances are squared (Schroff et al. 2015).

    Args:
        labels: classes `(batch,)`.
        embeddings: normalized embeddings.
        margin: by how much the other one shall be farther.

    Raises:
        ValueError: `labels` is not a vector.
    """
    distances = pairwise_distance(embeddings, squared=True)
    same = _same_class(labels)
    others = elementwise.cast(elementwise.logical_not(same), distances.dtype)
    candidates = distances[:, None, :]
    farther = elementwise.cast(candidates > distances[:, :, None], distances.dtype)
    farther = farther * others[:, None, :]
    exists = reduce.reduce_max(farther, -1)
    nearest = -_largest(-candidates, farther)[..., 0]
    negatives = exists * nearest + (1.0 - exists) * _largest(distances, others)
    positives = _positives(same, distances)
    excess = elementwise.maximum((margin + distances - negatives) * positives, 0.0)
    return elementwise.truediv(
        reduce.reduce_sum(excess), reduce.reduce_sum(positives), name="triplet_semihard_loss"
    )


def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """Pairs of one class against all examples of others that either has (Song et al. 2016).

    Args:
        labels: classes `(batch,)`.
        embeddings: not normalized.
        margin: by how much others shall be farther.

    Raises:
        ValueError: `labels` is not a vector.
    """
    distances = pairwise_distance(embeddings)
    same = _same_class(labels)
    others = elementwise.cast(elementwise.logical_not(same), distances.dtype)
    nearness = margin - distances
    row = _largest(nearness, others)
    largest = elementwise.maximum(row, array.transpose(row))
    powers = elementwise.exp(nearness[:, None, :] - largest[:, :, None]) * others[:, None, :]
    sums = reduce.reduce_sum(powers, -1)
    each = largest + elementwise.log(sums + array.transpose(sums)) + distances
    positives = _positives(same, distances)
    total = reduce.reduce_sum(elementwise.square(elementwise.maximum(each * positives, 0.0)))
    return elementwise.truediv(
        0.25 * total, reduce.reduce_sum(positives) / 2.0, name="liftedstruct_loss"
    )


def npairs_loss(
    labels: Any,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:
    """Cross entropy of the products of each anchor with all positives (Sohn 2016).

    Args:
        labels: classes `(batch,)`.
        embeddings_anchor, embeddings_positive: pairs of one class; not normalized.
        reg_lambda: the factor of the embeddings' squares.
        print_losses: whether both parts are printed.

    Raises:
        ValueError: `labels` is not a vector.
    """
    lengths = [
        reduce.reduce_mean(reduce.reduce_sum(elementwise.square(each), 1))
        for each in (embeddings_anchor, embeddings_positive)
    ]
    penalty = 0.25 * reg_lambda * (lengths[0] + lengths[1])
    logits = matmul(embeddings_anchor, embeddings_positive, transpose_b=True)
    same = elementwise.cast(_same_class(labels), logits.dtype)
    targets = same / reduce.reduce_sum(same, 1, keepdims=True)
    entropy = reduce.reduce_mean(
        nn.softmax_cross_entropy_with_logits(labels=targets, logits=logits), name="xentropy"
    )
    if print_losses:
        entropy = Print(entropy, ["cross entropy:", entropy, "l2loss:", penalty])
    return penalty + entropy


__all__ = [
    "contrastive_loss",
    "lifted_struct_loss",
    "npairs_loss",
    "pairwise_distance",
    "triplet_semihard_loss",
]
