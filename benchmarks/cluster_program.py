"""What `clusters.py` starts in each process of a cluster, under either package.

    python cluster_program.py MODULE MODEL MODEL_DIR LOG_STEPS

It trains until it is killed. The log tells the steps of all workers a second.
"""

from __future__ import annotations

import importlib
import logging
import sys

import numpy as np

MODELS = {
    # columns, hidden units, classes, batch size, examples
    "iris": (4, [10, 10], 3, 32, 120),
    "mnist_dnn": (784, [256, 128], 10, 128, 10_000),
}


def main(module: str, model: str, model_dir: str, log_steps: int) -> None:
    """Trains a classifier as the environment says."""
    logging.getLogger().addHandler(logging.StreamHandler(sys.stderr))
    tf = importlib.import_module(module)
    tf.logging.set_verbosity(tf.logging.INFO)
    width, hidden, classes, batch, count = MODELS[model]
    random = np.random.RandomState(0)
    features = {"x": random.rand(count, width).astype(np.float32)}
    labels = random.randint(0, classes, count).astype(np.int32)

    def train_input() -> object:
        data = tf.data.Dataset.from_tensor_slices((features, labels))
        return data.shuffle(count).repeat().batch(batch)

    config = tf.estimator.RunConfig(
        model_dir=model_dir,
        save_checkpoints_secs=3600,
        save_summary_steps=None,
        log_step_count_steps=log_steps,
        # TensorFlow's workers would wait 5 seconds more each.
        experimental_max_worker_delay_secs=0,
    )
    classifier = tf.estimator.DNNClassifier(
        hidden, [tf.feature_column.numeric_column("x", [width])], n_classes=classes, config=config
    )
    tf.estimator.train_and_evaluate(
        classifier,
        tf.estimator.TrainSpec(train_input, max_steps=10**9),
        tf.estimator.EvalSpec(train_input, steps=1),
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
