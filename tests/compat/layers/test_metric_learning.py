"""Embedding losses against their definitions, written as loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

RANDOM = np.random.RandomState(7)
LABELS = np.array([0, 1, 0, 2, 1, 0, 2, 3])
EMBEDDINGS = RANDOM.normal(size=[8, 3]).astype(np.float32)
OTHERS = RANDOM.normal(size=[8, 3]).astype(np.float32)
DISTANCES = np.linalg.norm(EMBEDDINGS[:, None] - EMBEDDINGS[None], axis=-1)
PAIRS = [(i, j) for i in range(8) for j in range(8) if i != j and LABELS[i] == LABELS[j]]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


def losses() -> Any:
    return tf.contrib.losses.metric_learning


@pytest.mark.parametrize("margin", [0.25, 5.0])
def test_triplet_semihard_loss(margin: float) -> None:
    squared = DISTANCES**2
    total = 0.0
    for i, j in PAIRS:
        negatives = squared[i, LABELS[i] != LABELS]
        farther = negatives[negatives > squared[i, j]]
        chosen = farther.min() if len(farther) else negatives.max()
        total += max(margin + squared[i, j] - chosen, 0.0)
    found = run(losses().triplet_semihard_loss(LABELS, EMBEDDINGS, margin))
    np.testing.assert_allclose(found, total / len(PAIRS), 1e-5)


def test_lifted_struct_loss() -> None:
    total = 0.0
    for i, j in PAIRS:
        powers = [np.exp(1.0 - DISTANCES[k, LABELS[k] != LABELS]).sum() for k in (i, j)]
        total += max(np.log(sum(powers)) + DISTANCES[i, j], 0.0) ** 2
    found = run(losses().lifted_struct_loss(LABELS, EMBEDDINGS))
    np.testing.assert_allclose(found, total / (2 * len(PAIRS)), 1e-5)


def test_contrastive_loss() -> None:
    near = np.array([1, 0, 1, 0, 0, 0, 1, 1])
    distances = np.linalg.norm(EMBEDDINGS - OTHERS, axis=1)
    expected = np.where(near, distances**2, np.maximum(2.0 - distances, 0.0) ** 2).mean()
    found = run(losses().contrastive_loss(near, EMBEDDINGS, OTHERS, margin=2.0))
    np.testing.assert_allclose(found, expected, 1e-5)


@pytest.mark.parametrize("print_losses", [False, True])
def test_npairs_loss(print_losses: bool) -> None:
    logits = EMBEDDINGS @ OTHERS.T
    targets = (LABELS[:, None] == LABELS).astype(float)
    targets /= targets.sum(1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    squares = sum((each**2).sum(1).mean() for each in (EMBEDDINGS, OTHERS))
    expected = -(targets * logs).sum(1).mean() + 0.25 * 0.01 * squares
    found = losses().npairs_loss(LABELS, EMBEDDINGS, OTHERS, 0.01, print_losses)
    np.testing.assert_allclose(run(found), expected, 1e-5)


def test_distance_gradients_are_finite_at_0() -> None:
    rows = tf.constant(np.repeat(EMBEDDINGS[:2], 2, axis=0))
    for squared in (False, True):
        distances = losses().pairwise_distance(rows, squared)
        found, gradient = run([distances, tf.gradients(distances, rows)[0]])
        np.testing.assert_allclose(found[0, 2], DISTANCES[0, 1] ** (1 + squared), 1e-5)
        assert found[0, 1] == found[0, 0] == 0
        assert np.isfinite(gradient).all()


def test_labels_must_be_vector() -> None:
    for loss in (losses().triplet_semihard_loss, losses().lifted_struct_loss):
        with pytest.raises(ValueError, match="labels must be a vector"):
            loss(LABELS[:, None], EMBEDDINGS)
    with pytest.raises(AttributeError, match="triplet_semihard_loss"):
        _ = losses().cluster_loss
