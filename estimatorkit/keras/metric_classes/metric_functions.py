"""Accuracies as functions, as `tf.keras.metrics`: one value per example, 1 if it is correct."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.error_functions import as_floats
from estimatorkit.ops.array import array, ranking
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether predictions equal labels, element by element.

    Args:
        y_true: labels of any shape.
        y_pred: predictions of the same shape.

    Returns:
        float32, of the same shape.
    """
    truth = convert_to_tensor(y_true, name="y_true")
    guesses = elementwise.cast(convert_to_tensor(y_pred, name="y_pred"), truth.dtype)
    truth.shape.assert_is_compatible_with(guesses.shape)
    return elementwise.cast(elementwise.equal(truth, guesses), float32)


def binary_matches(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """Whether thresholded predictions equal labels in {0, 1}, element by element."""
    truth, guesses = as_floats(y_true, y_pred)
    decided = elementwise.cast(elementwise.greater(guesses, threshold), guesses.dtype)
    return elementwise.cast(elementwise.equal(truth, decided), float32)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """The fraction of thresholded predictions that equal the labels, over the last axis.

    Args:
        y_true: 0 or 1, `(..., d)`.
        y_pred: probabilities `(..., d)`.
        threshold: predictions above it count as 1.

    Returns:
        float32 `(...)`.
    """
    return reduce.reduce_mean(binary_matches(y_true, y_pred, threshold), -1)


def sparse_categorical_matches(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the class with the highest score is the label, of the shape of the labels."""
    scores = convert_to_tensor(y_pred, name="y_pred")
    truth = convert_to_tensor(y_true, name="y_true")
    best = reduce.argmax(scores, -1)
    if truth.shape.rank is not None and truth.shape.rank == scores.shape.rank:
        best = array.expand_dims(best, -1)
    return elementwise.cast(elementwise.equal(truth, elementwise.cast(best, truth.dtype)), float32)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the class with the highest score is the label: 1 or 0 for each example.

    Args:
        y_true: class indices `(...)` or `(..., 1)`.
        y_pred: scores `(..., classes)`.

    Returns:
        float32 `(...)`.
    """
    matches = sparse_categorical_matches(y_true, y_pred)
    if matches.shape.rank is not None and matches.shape.rank > 1 and matches.shape[-1] == 1:
        matches = array.squeeze(matches, [-1])
    return matches


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the class with the highest score is the one with the highest label, 1 or 0.

    Args:
        y_true: probabilities of classes, such as one-hot labels, `(..., classes)`.
        y_pred: scores `(..., classes)`.

    Returns:
        float32 `(...)`.
    """
    return sparse_categorical_matches(reduce.argmax(convert_to_tensor(y_true), -1), y_pred)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the label is among the k classes with the highest scores; ties count as matches.

    Args:
        y_true: class indices `(...)` or `(..., 1)`.
        y_pred: scores `(..., classes)`.
        k: the number of classes.

    Returns:
        float32, of the shape of `y_true`.
    """
    scores = convert_to_tensor(y_pred, name="y_pred")
    truth = convert_to_tensor(y_true, name="y_true")
    flat = array.reshape(truth, [-1])
    if scores.shape.rank is None or scores.shape.rank > 2:
        scores = array.reshape(scores, [-1, scores.shape[-1]])
    hits = ranking.in_top_k(scores, elementwise.cast(flat, int32), k)
    matches = elementwise.cast(hits, float32)
    return matches if truth.shape.rank == 1 else array.reshape(matches, array.shape(truth))


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the class with the highest label is among the k classes with the highest scores.

    Args:
        y_true: probabilities of classes, such as one-hot labels, `(..., classes)`.
        y_pred: scores `(..., classes)`.
        k: the number of classes.
    """
    classes = reduce.argmax(convert_to_tensor(y_true), -1)
    return sparse_top_k_categorical_accuracy(classes, y_pred, k)


def cosine_proximity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """The cosine similarity of labels and predictions: 1 if their directions agree."""
    truth, guesses = (nn.l2_normalize(each, axis) for each in as_floats(y_true, y_pred))
    return reduce.reduce_sum(truth * guesses, axis)
