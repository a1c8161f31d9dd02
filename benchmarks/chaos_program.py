"""What `chaos.py` starts in each process of its cluster.

    python chaos_program.py MODEL_DIR UNITS EPOCHS

Linear classification of points whose classes are known, dealt out in units; the parameter servers
count how often each unit was trained.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit import distribute

WIDTH, BATCH, BATCHES = 20, 32, 20
"""Numbers of a point, points of a batch, batches of a unit."""


def points_of(unit: int) -> tuple[Any, Any]:
    """The points of a unit and their classes."""
    random = np.random.RandomState(unit)
    points = random.randn(BATCHES * BATCH, WIDTH).astype(np.float32)
    direction = np.random.RandomState(12345).randn(WIDTH)
    return points, (points @ direction > 0).astype(np.int32)


def main(model_dir: str, units: int, epochs: int) -> None:
    """Trains as the environment says."""
    all_points, all_labels = zip(*map(points_of, range(units)), strict=True)
    points = np.stack(all_points).reshape(units, BATCHES, BATCH, WIDTH)
    labels = np.stack(all_labels).reshape(units, BATCHES, BATCH)

    def train_input() -> Any:
        def elements(unit: Any, x: Any, y: Any) -> Any:
            batches = tf.data.Dataset.from_tensor_slices((x, y))
            return batches.map(lambda x, y: ({"x": x, "unit": unit}, y))

        numbers = np.arange(units)
        dealt = tf.data.Dataset.from_tensor_slices((numbers, points, labels))
        return distribute.dealt_out(dealt, elements, epochs=epochs, seed=1)

    def test_input() -> Any:
        x, y = points_of(10**6)
        features = {"x": x, "unit": np.zeros(len(x), np.int64)}
        return tf.data.Dataset.from_tensor_slices((features, y)).batch(200)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        logits = tf.layers.dense(features["x"], 2)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == tf.estimator.ModeKeys.EVAL:
            right = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
            tf.get_variable("trained", [units], tf.int64, tf.zeros_initializer(), trainable=False)
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": right})
        trained = tf.get_variable(
            "trained", [units], tf.int64, tf.zeros_initializer(), trainable=False
        )
        count = tf.scatter_add(trained, tf.reshape(features["unit"], [1]), np.ones(1, np.int64))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(train, count))

    config = tf.estimator.RunConfig(
        model_dir, tf_random_seed=1, save_checkpoints_secs=3, log_step_count_steps=2000
    )
    estimator = tf.estimator.Estimator(model_fn, config=config)
    metrics, _ = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_input),
        tf.estimator.EvalSpec(test_input, steps=None, start_delay_secs=0, throttle_secs=10),
    )
    if metrics is not None:
        print(f"ACCURACY {float(metrics['accuracy']):.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
