"""A process of a synchronous training over several; its argument is JSON (see `OPTIONS`).

Says 'step 3' after each call of the loop, and at the end in JSON its losses and metrics.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook
from tests.distribute.programs import mirrored
from tests.distribute.programs.mirrored import X, Y

OPTIONS: dict[str, Any] = {
    "model_dir": "",
    "max_steps": 40,
    "examples": 100,  # cut into batches of 8, which the processes take in turn
    "forever": True,  # or once through the examples
    "shuffle": False,
    "delay": 0.0,  # seconds before each batch
    "sleep": [0, 0, 0.0],  # this process, before this batch of its own, so many seconds
    "end": None,  # [process, step, 'kill', 'error' or 'exit'], the first time
    "chief_hook": False,  # one that fetches
    "dropout": False,
    "evaluate": False,
    "roles": False,  # train_and_evaluate
    "seconds": 7200,  # session_creation_timeout_secs
    "stuck": 600.0,  # stuck_secs
    "layers": [1, 1],  # of each process
    "dynamic": False,  # an embedding table without a fixed size
    "mnist": False,
}


class Watch(SessionRunHook):
    """Keeps losses, and ends the process where it is asked to."""

    def __init__(self, options: dict[str, Any], number: int) -> None:
        self.losses: list[float] = []
        self._end = options["end"]
        self._number = number
        self._mark = Path(f"{options['model_dir']}.ended")

    def after_steps(self, steps: FinishedSteps) -> None:
        """Looks how far the training is."""
        self.losses.extend(map(float, steps.losses))
        print("step", steps.last, flush=True)
        if self._end is None or self._number != self._end[0] or steps.last < self._end[1]:
            return
        if not self._mark.exists():
            self._mark.touch()
            if self._end[2] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self._end[2] == "exit":
                sys.exit(3)
            raise ValueError("an error of this process alone")


def number_of_process() -> int:
    """Which of the processes this is, by the environment."""
    if "JAX_PROCESS_ID" in os.environ:
        return int(os.environ["JAX_PROCESS_ID"])
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    return int(task["index"]) + (task["type"] == "worker" and "chief" in os.environ["TF_CONFIG"])


def model(options: dict[str, Any], number: int, config: Any) -> Any:
    """The estimator."""
    if options["mnist"]:
        column = tf.feature_column.numeric_column("image", [784])
        return tf.estimator.DNNClassifier([256, 128], [column], n_classes=10, config=config)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        hidden = features
        if options["dropout"]:
            hidden = tf.layers.dropout(hidden, 0.3, training=True)
        for _ in range(options["layers"][number] - 1):
            hidden = tf.layers.dense(hidden, 4)
        if options["dynamic"]:
            ids = tf.feature_column.categorical_column_with_identity("id", 2**40)
            table = tf.feature_column.EmbeddingTable(dynamic=True)
            column = tf.feature_column.embedding_column(ids, 4, table=table)
            rounded = {"id": tf.cast(features[:, 0] * 9, tf.int64)}
            hidden += tf.feature_column.input_layer(rounded, [column])
        outputs = tf.layers.dense(hidden, 1, name="linear")
        loss = tf.losses.mean_squared_error(labels, outputs)
        if mode == tf.estimator.ModeKeys.EVAL:
            above, chance = labels > 0, tf.sigmoid(outputs)
            groups = tf.cast(tf.math.floormod(features[:, :1] * 100, 7.0), tf.int64)
            metrics = {
                "auc": tf.metrics.auc(above, chance),
                "group auc": tf.metrics.group_auc(above, chance, groups),
            }
            return tf.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        update = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        hooks = [tf.train.LoggingTensorHook({"outputs": outputs}, every_n_iter=3)]
        return tf.EstimatorSpec(
            mode,
            loss=loss,
            train_op=update,
            training_chief_hooks=hooks if options["chief_hook"] else [],
        )

    return tf.Estimator(model_fn, config=config)


def main() -> None:
    """Trains."""
    options = {**OPTIONS, **json.loads(sys.argv[1])}
    number = number_of_process()
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    config = tf.RunConfig(
        options["model_dir"],
        tf_random_seed=3,
        train_distribute=strategy,
        eval_distribute=strategy if options["evaluate"] else None,
        log_step_count_steps=None,
        save_checkpoints_steps=10,
        session_creation_timeout_secs=options["seconds"],
        stuck_secs=options["stuck"],
    )
    batches = mirrored.cut(options["examples"], 8)

    def each(pipelines: int, pipeline: int) -> Iterator[Any]:
        given = itertools.cycle(batches) if options["forever"] else batches
        at = 0
        for at, batch in enumerate(itertools.islice(given, pipeline, None, pipelines)):
            who, when, seconds = options["sleep"]
            time.sleep(seconds if (who, when) == (pipeline, at) else options["delay"])
            yield batch

    def input_fn(input_context: Any) -> Any:
        pipelines, pipeline = input_context.num_input_pipelines, input_context.input_pipeline_id
        print("pipeline", pipeline, "of", pipelines, flush=True)
        if options["mnist"]:
            (images, labels), _ = tf.datasets.mnist.load_data()
            features = {"image": images[:12800].reshape(-1, 784).astype(np.float32) / 255}
            data = tf.data.Dataset.from_tensor_slices((features, labels[:12800].astype(np.int32)))
            return data.repeat().batch(64).shard(pipelines, pipeline)
        if options["shuffle"]:
            data = tf.data.Dataset.from_tensor_slices((X[:100], Y[:100]))
            return data.shard(pipelines, pipeline).shuffle(50, seed=1).repeat().batch(8)
        shapes = [None, 4], [None, 1]
        return tf.data.Dataset.from_generator(
            lambda: each(pipelines, pipeline), (tf.float32, tf.float32), shapes
        )

    def evaluated(input_context: Any = None) -> Any:
        data = tf.data.Dataset.from_tensor_slices((X[:97], Y[:97])).batch(8)
        if input_context is None:
            return data
        return data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

    estimator = model(options, number, config)
    watch = Watch(options, number)
    found: dict[str, Any] = {}
    if options["roles"]:
        metrics, _ = tf.estimator.train_and_evaluate(
            estimator,
            tf.estimator.TrainSpec(input_fn, options["max_steps"], hooks=[watch]),
            tf.estimator.EvalSpec(lambda: evaluated(), start_delay_secs=0, throttle_secs=0),
        )
        found["metrics"] = metrics
    else:
        estimator.train(input_fn, max_steps=options["max_steps"], hooks=[watch])
    if options["evaluate"]:
        found["metrics"] = estimator.evaluate(evaluated)
        alone = model(options, number, tf.RunConfig(options["model_dir"]))
        found["alone"] = alone.evaluate(lambda: evaluated())
    print(json.dumps({"losses": watch.losses, **found}, default=float), flush=True)


if __name__ == "__main__":
    main()
