"""A process of a training with parameter servers whose numbers depend on all its steps.

Its argument is JSON (see `OPTIONS`). With one worker they are the same in each training.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import estimatorkit as tf

OPTIONS: dict[str, Any] = {"model_dir": None, "max_steps": 40, "width": 8}


def main(options: dict[str, Any]) -> None:
    """Trains, as whatever the environment says."""
    width = options["width"]
    x = np.random.default_rng(3).normal(size=(64, width)).astype(np.float32)
    y = (x @ np.linspace(-1, 1, width) + 1).astype(np.float32)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(16)

    columns = [tf.feature_column.numeric_column("x", [width])]
    config = tf.estimator.RunConfig(
        options["model_dir"],
        tf_random_seed=3,
        save_checkpoints_steps=20,
        log_step_count_steps=10,
        experimental_max_worker_delay_secs=0,
    )
    tf.estimator.train_and_evaluate(
        tf.estimator.LinearRegressor(columns, optimizer="Adam", config=config),
        tf.estimator.TrainSpec(input_fn, options["max_steps"]),
        tf.estimator.EvalSpec(input_fn, steps=1),
    )


if __name__ == "__main__":
    main({**OPTIONS, **json.loads(sys.argv[1])})
