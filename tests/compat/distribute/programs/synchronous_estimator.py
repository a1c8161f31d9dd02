"""A process of a synchronous training by an estimator, whose gradients are the same for all.

Its argument is JSON (see `OPTIONS`). After n updates the weights are -n and -2 n.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import estimatorkit as tf

OPTIONS: dict[str, Any] = {
    "model_dir": None,
    "max_steps": None,
    "aggregate": 1,  # replicas_to_aggregate
    "total": 1,  # total_num_replicas
}


def main(options: dict[str, Any]) -> None:
    """Trains, as whatever the environment says."""

    def model_fn(features: Any, mode: str, config: Any) -> Any:
        weights = tf.get_variable("weights", [2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(weights * features)
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(1.0), options["aggregate"], options["total"]
        )
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=optimizer.minimize(loss, tf.train.get_global_step()),
            training_hooks=[optimizer.make_session_run_hook(config.is_chief)],
        )

    def batches() -> Any:
        return tf.data.Dataset.from_tensors(np.float32([1.0, 2.0])).repeat()

    config = tf.estimator.RunConfig(
        model_dir=options["model_dir"],
        save_checkpoints_steps=50,
        save_summary_steps=None,
        experimental_max_worker_delay_secs=0,
    )
    tf.estimator.train_and_evaluate(
        tf.estimator.Estimator(model_fn, config=config),
        tf.estimator.TrainSpec(batches, options["max_steps"]),
        tf.estimator.EvalSpec(batches, steps=1),
    )


if __name__ == "__main__":
    main({**OPTIONS, **json.loads(sys.argv[1])})
