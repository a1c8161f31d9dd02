"""Areas under curves by log odds, compared with scikit-learn's exact ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

import estimatorkit as tf
from estimatorkit.keras.metric_classes.odds_curves import AreaByOdds

metrics = tf.keras.metrics


def scored(rows: int, share: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Labels, a share of which is 1, and probabilities that are as rare."""
    random = np.random.default_rng(0)
    labels = random.random(rows) < share
    odds = random.normal(np.log(share) + 1.5 * labels, 1.5)
    return labels.astype(np.float32), (1 / (1 + np.exp(-odds))).astype(np.float32)


@pytest.mark.parametrize("share", [0.4, 0.03, 0.002])
def test_rare_classes_have_the_areas_of_scikit_learn(share: float) -> None:
    labels, scores = scored(20_000, share)
    weights = np.random.default_rng(1).integers(1, 4, 20_000).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        made = [AreaByOdds("ROC"), metrics.AveragePrecision(), metrics.AUC()]
        updates = [
            each.update_state(labels[part], scores[part], weights[part])
            for each in made
            for part in (slice(8_000), slice(8_000, None))
        ]
        session.run(tf.local_variables_initializer())
        session.run(updates)
        area, average, even = session.run([each.result() for each in made])
    exact = roc_auc_score(labels, scores, sample_weight=weights)
    assert area == pytest.approx(exact, abs=5e-5)
    assert average == pytest.approx(
        average_precision_score(labels, scores, sample_weight=weights), abs=5e-4
    )
    if share < 0.01:  # the reason for these metrics
        assert abs(even - exact) > 0.01


def test_extreme_probabilities_and_one_class_have_an_area() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        both, none = metrics.AveragePrecision(), metrics.AveragePrecision()
        updates = [
            both.update_state([0.0, 0.0, 1.0, 1.0], [0.0, 1e-30, 0.5, 1.0]),
            none.update_state([0.0, 0.0], [0.1, 0.2]),
        ]
        session.run(tf.local_variables_initializer())
        session.run(updates)
        assert session.run([both.result(), none.result()]) == [1.0, 0.0]


def test_config_round_trips_and_buckets_are_checked() -> None:
    metric = metrics.AveragePrecision(num_buckets=64)
    assert metric.get_config() == {
        "name": "average_precision",
        "dtype": "float32",
        "num_buckets": 64,
    }
    assert metrics.get(metrics.serialize(metric)).num_buckets == 64
    with pytest.raises(ValueError, match="AveragePrecision needs buckets"):
        metrics.AveragePrecision(num_buckets=0)
