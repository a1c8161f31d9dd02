"""Losses as functions of the module that they use as `tf`, with the arrays that they are given.

`V1` are those of `tf.losses`, called with labels, predictions, weights and reduction; `KERAS` the
classes of `tf.keras.losses`. Each stands beside the name of its arrays in `ARRAYS`: labels,
predictions and one weight an example. `FUNCTIONS` are the functions of `tf.keras.losses`.
`from_probabilities` asks for losses of what a softmax or sigmoid in the graph gave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROWS = 6


def _arrays() -> dict[str, tuple[Any, Any, Any]]:
    random = np.random.default_rng(7)
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0], np.float32)
    scores = random.normal(0, 2, (ROWS, 3)).astype(np.float32)
    numbers = random.normal(0, 2, (ROWS, 3)).astype(np.float32)
    bits = random.integers(0, 2, (ROWS, 3)).astype(np.float32)
    chances = random.uniform(0, 1, (ROWS, 3)).astype(np.float32)
    chances[0] = [0.0, 1.0, 1e-9]
    classes = np.array([0, 2, 1, 1, 0, 2])
    one_hot = np.eye(3, dtype=np.float32)[classes]
    shares = random.dirichlet([1.0, 1.0, 1.0], ROWS).astype(np.float32)
    shares[1] = [1.0, 0.0, 0.0]
    images = random.dirichlet([1.0, 1.0, 1.0], (ROWS, 2)).astype(np.float32)
    pixels = random.integers(0, 3, (ROWS, 2))
    vectors = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    return {
        "numbers": (numbers, scores, weights),
        "positive": (np.abs(numbers), np.abs(scores), weights),
        "vectors": (vectors, vectors[::-1].copy(), weights),
        "signs": (2 * bits - 1, scores, weights),
        "bits": (bits, scores, weights),
        "chances": (bits, chances, weights),
        "one hot": (one_hot, scores, weights),
        "classes": (classes, scores, weights),
        "column of classes": (classes[:, None], scores, weights),
        "shares": (one_hot, shares, weights),
        "classes of shares": (classes, shares, weights),
        "pixels": (pixels, images, weights),
        "both shares": (shares, shares[::-1].copy(), weights),
    }


ARRAYS = _arrays()
V1_REDUCTIONS = (
    *("none", "weighted_sum", "weighted_mean", "weighted_sum_over_batch_size"),
    "weighted_sum_by_nonzero_weights",
)
REDUCTIONS = ("none", "sum", "sum_over_batch_size")

Loss = Callable[[Any, Any, Any, Any, Any], Any]


def _column(weights: Any) -> Any:
    return weights[:, None]


V1: dict[str, tuple[str, Loss]] = {
    "absolute_difference": (
        "numbers",
        lambda tf, y, p, w, r: tf.losses.absolute_difference(y, p, _column(w), reduction=r),
    ),
    "mean_squared_error": (
        "numbers",
        lambda tf, y, p, w, r: tf.losses.mean_squared_error(y, p, _column(w), reduction=r),
    ),
    "huber_loss": (
        "numbers",
        lambda tf, y, p, w, r: tf.losses.huber_loss(y, p, _column(w), reduction=r),
    ),
    "huber_loss of delta 2": (
        "numbers",
        lambda tf, y, p, w, r: tf.losses.huber_loss(y, p, _column(w), 2.0, reduction=r),
    ),
    "cosine_distance": (
        "vectors",
        lambda tf, y, p, w, r: tf.losses.cosine_distance(y, p, 1, _column(w), reduction=r),
    ),
    "cosine_distance by dim": (
        "vectors",
        lambda tf, y, p, w, r: tf.losses.cosine_distance(
            y, p, weights=_column(w), dim=1, reduction=r
        ),
    ),
    "hinge_loss": (
        "bits",
        lambda tf, y, p, w, r: tf.losses.hinge_loss(y, p, _column(w), reduction=r),
    ),
    "log_loss": (
        "chances",
        lambda tf, y, p, w, r: tf.losses.log_loss(y, p, _column(w), 1e-5, reduction=r),
    ),
    "sigmoid_cross_entropy": (
        "bits",
        lambda tf, y, p, w, r: tf.losses.sigmoid_cross_entropy(y, p, _column(w), 0.2, reduction=r),
    ),
    "softmax_cross_entropy": (
        "one hot",
        lambda tf, y, p, w, r: tf.losses.softmax_cross_entropy(y, p, w, 0.2, reduction=r),
    ),
    "sparse_softmax_cross_entropy": (
        "classes",
        lambda tf, y, p, w, r: tf.losses.sparse_softmax_cross_entropy(y, p, w, reduction=r),
    ),
    "compute_weighted_loss": (
        "numbers",
        lambda tf, y, p, w, r: tf.losses.compute_weighted_loss(p, _column(w), reduction=r),
    ),
}
PAIRWISE: Loss = lambda tf, y, p, w, r: tf.losses.mean_pairwise_squared_error(  # noqa: E731
    y, p, _column(w)
)
"""It takes no reduction."""

Make = Callable[[Any, Any], Any]

KERAS: dict[str, tuple[str, Make]] = {
    "MeanSquaredError": ("numbers", lambda k, r: k.MeanSquaredError(r)),
    "MeanAbsoluteError": ("numbers", lambda k, r: k.MeanAbsoluteError(reduction=r)),
    "MeanAbsolutePercentageError": ("numbers", lambda k, r: k.MeanAbsolutePercentageError(r)),
    "MeanSquaredLogarithmicError": ("positive", lambda k, r: k.MeanSquaredLogarithmicError(r)),
    "LogCosh": ("numbers", lambda k, r: k.LogCosh(r)),
    "Huber": ("numbers", lambda k, r: k.Huber(reduction=r)),
    "Huber of delta 2": ("numbers", lambda k, r: k.Huber(2.0, r)),
    "CosineSimilarity": ("numbers", lambda k, r: k.CosineSimilarity(reduction=r)),
    "Poisson": ("positive", lambda k, r: k.Poisson(r)),
    "KLDivergence": ("both shares", lambda k, r: k.KLDivergence(r)),
    "Hinge": ("signs", lambda k, r: k.Hinge(r)),
    "Hinge of bits": ("bits", lambda k, r: k.Hinge(r)),
    "SquaredHinge": ("bits", lambda k, r: k.SquaredHinge(r)),
    "CategoricalHinge": ("one hot", lambda k, r: k.CategoricalHinge(r)),
    "BinaryCrossentropy": ("chances", lambda k, r: k.BinaryCrossentropy(reduction=r)),
    "BinaryCrossentropy of logits": (
        "bits",
        lambda k, r: k.BinaryCrossentropy(True, 0.2, reduction=r),
    ),
    "BinaryFocalCrossentropy": (
        "chances",
        lambda k, r: k.BinaryFocalCrossentropy(True, 0.3, 1.5, reduction=r),
    ),
    "BinaryFocalCrossentropy of logits": (
        "bits",
        lambda k, r: k.BinaryFocalCrossentropy(from_logits=True, label_smoothing=0.1, reduction=r),
    ),
    "CategoricalCrossentropy": ("shares", lambda k, r: k.CategoricalCrossentropy(reduction=r)),
    "CategoricalCrossentropy of logits": (
        "one hot",
        lambda k, r: k.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1, reduction=r),
    ),
    "CategoricalFocalCrossentropy": (
        "shares",
        lambda k, r: k.CategoricalFocalCrossentropy(0.5, 1.5, label_smoothing=0.1, reduction=r),
    ),
    "CategoricalFocalCrossentropy of logits": (
        "one hot",
        lambda k, r: k.CategoricalFocalCrossentropy(from_logits=True, reduction=r),
    ),
    "SparseCategoricalCrossentropy": (
        "classes of shares",
        lambda k, r: k.SparseCategoricalCrossentropy(reduction=r),
    ),
    "SparseCategoricalCrossentropy of a column": (
        "column of classes",
        lambda k, r: k.SparseCategoricalCrossentropy(True, reduction=r),
    ),
    "SparseCategoricalCrossentropy of pixels": (
        "pixels",
        lambda k, r: k.SparseCategoricalCrossentropy(reduction=r),
    ),
    "SparseCategoricalCrossentropy without a class": (
        "classes",
        lambda k, r: k.SparseCategoricalCrossentropy(True, ignore_class=2, reduction=r),
    ),
}

FUNCTIONS: dict[str, Callable[[Any, dict[str, tuple[Any, Any, Any]]], Any]] = {
    **{
        name: lambda k, a, name=name: getattr(k, name)(*a["numbers"][:2])
        for name in (
            *("mse", "MSE", "mean_squared_error", "mae", "MAE", "mape", "MAPE"),
            *("mean_absolute_error", "mean_absolute_percentage_error", "log_cosh", "logcosh"),
            *("cosine_similarity", "huber"),
        )
    },
    **{
        name: lambda k, a, name=name: getattr(k, name)(*a["positive"][:2])
        for name in ("msle", "MSLE", "mean_squared_logarithmic_error", "poisson")
    },
    **{
        name: lambda k, a, name=name: getattr(k, name)(*a["both shares"][:2])
        for name in ("kld", "KLD", "kl_divergence", "kullback_leibler_divergence")
    },
    **{
        name: lambda k, a, name=name: getattr(k, name)(*a["bits"][:2])
        for name in ("hinge", "squared_hinge", "categorical_hinge")
    },
    "binary_crossentropy": lambda k, a: k.binary_crossentropy(
        *a["chances"][:2], label_smoothing=0.1
    ),
    "binary_crossentropy along rows": lambda k, a: k.binary_crossentropy(*a["chances"][:2], axis=0),
    "binary_focal_crossentropy": lambda k, a: k.binary_focal_crossentropy(
        *a["chances"][:2], gamma=3.0
    ),
    "categorical_crossentropy": lambda k, a: k.categorical_crossentropy(*a["shares"][:2]),
    "categorical_crossentropy of columns": lambda k, a: k.categorical_crossentropy(
        a["shares"][0].T, a["shares"][1].T, axis=0
    ),
    "categorical_focal_crossentropy": lambda k, a: k.categorical_focal_crossentropy(
        *a["shares"][:2], alpha=0.5
    ),
    "sparse_categorical_crossentropy": lambda k, a: k.sparse_categorical_crossentropy(
        *a["classes of shares"][:2]
    ),
    "sparse_categorical_crossentropy of columns": lambda k, a: k.sparse_categorical_crossentropy(
        a["classes of shares"][0], a["classes of shares"][1].T, axis=0
    ),
    "sparse_categorical_crossentropy without a class": (
        lambda k, a: k.sparse_categorical_crossentropy(*a["pixels"][:2], ignore_class=1)
    ),
}

FITTED_SHAPES = ((3,), (3, 1), (3, 2), (3, 1, 1), (3, 2, 1), (3, 2, 2), (3, 2, 2, 1))


def fitted(container: Any, tf: Any, labels: Any, predictions: Any) -> tuple[Any, list[Any]]:
    """What a function of a user gets as a loss of `compile`: the loss, and the shapes.

    Args:
        container: makes the losses of `compile` of a function: `(y, outputs) -> loss`.
    """
    shapes: list[Any] = []

    def mean_absolute(truth: Any, guesses: Any) -> Any:
        shapes.extend([truth.shape.as_list(), guesses.shape.as_list()])
        return tf.reduce_mean(tf.abs(truth - guesses))

    arrays = [
        np.arange(np.prod(shape), dtype=np.float32).reshape(shape) ** power
        for shape, power in ((labels, 1.0), (predictions, 1.5))
    ]
    return container(mean_absolute)(*map(tf.constant, arrays)), shapes


EXTREME = np.array([[-200.0, 0.0, 200.0], [90.0, -90.0, 0.0]], np.float32)
"""Logits whose probabilities are 0 and 1 in float32."""


def from_probabilities(tf: Any) -> dict[str, Any]:
    """Losses of probabilities that come out of a softmax or sigmoid in the graph."""
    k = tf.keras.losses
    logits = tf.constant(EXTREME)
    one_hot = tf.constant([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    chosen, shares, chances = [0, 1], tf.nn.softmax(logits), tf.nn.sigmoid(logits)
    return {
        "categorical": k.categorical_crossentropy(one_hot, shares),
        "sparse": k.sparse_categorical_crossentropy(chosen, shares),
        "binary": k.binary_crossentropy(one_hot, chances),
        "focal": k.binary_focal_crossentropy(one_hot, chances),
        "categorical focal": k.categorical_focal_crossentropy(one_hot, shares),
    }
