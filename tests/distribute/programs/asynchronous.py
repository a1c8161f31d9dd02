"""A process of a training with parameter servers; the variables say how many steps there were.

Its argument is JSON (see `OPTIONS`). A step adds 1 to the global step and to three counters, which
are on the parameter servers in turn. The loss of an evaluation is how far the global step is from
40.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.distribute.cluster_task import ClusterTask
from estimatorkit.distribute.tasks import membership as members
from estimatorkit.estimator import cluster_roles

OPTIONS: dict[str, Any] = {
    "model_dir": None,
    "max_steps": 60,
    "worker_steps": None,  # the global step at which workers end, where not at max_steps
    "secs": 0.02,  # that the input of a step takes; what takes less is read in larger blocks
    "save_steps": 20,  # between checkpoints
    "gates": {},  # by role: numbers of steps before which the input waits for 'open-NUMBER'
    "model_secs": 0.0,  # that the model takes to be made
    "wait_secs": 120.0,  # for other processes
    "ahead": None,  # how many steps a worker may be ahead of the slowest
    "stuck_secs": 600.0,
    "width": 1,  # of a counter
    "vocabulary": None,  # of a feature column
    "table": False,  # whether a step adds 1 to the row of its number in a dynamic table, too
    "silent_secs": 60.0,  # after which a process is taken for gone
    "told_secs": None,  # after which an evaluator complains
    "eval_gate": False,  # whether the evaluations of steps after 40 wait for 'open-0'
}


def main(options: dict[str, Any]) -> None:
    """Trains, as whatever the environment says."""
    if options["told_secs"] is not None:
        cluster_roles.NO_CHECKPOINT_SECS = options["told_secs"]
    members.SILENT_SECS = options["silent_secs"]
    task = ClusterTask.of_environment()
    role = f"{task.type} {task.index}"
    folder = Path(options["model_dir"])
    gates = options["gates"].get(role, [])

    def wait_for(gate: int) -> None:
        print(f"gate {gate}", flush=True)
        while not (folder / f"open-{gate}").exists():
            time.sleep(0.02)

    def element(count: Any) -> Any:
        if count in gates:
            wait_for(int(count))
        time.sleep(options["secs"])
        return np.float32(count)

    def data() -> Any:
        counts = tf.data.Dataset.range(10**9)
        return counts.map(lambda each: tf.py_func(element, [each], tf.float32, stateful=True))

    def model_fn(features: Any, mode: str) -> Any:
        step = tf.train.get_global_step()
        time.sleep(options["model_secs"])
        counters = [
            tf.get_variable(
                f"count_{index}", [options["width"]], initializer=tf.zeros_initializer()
            )
            for index in range(3)
        ]
        loss = tf.abs(tf.cast(step, tf.float32) - 40.0) + 0.0 * features
        ones = tf.ones([options["width"]])
        added = [each.assign_add(ones) for each in counters]
        train = tf.group(step.assign_add(1), *added)
        if mode == tf.estimator.ModeKeys.EVAL:

            def evaluated(number: Any) -> Any:
                print(f"evaluating {number}", flush=True)
                if options["eval_gate"] and number > 40:
                    wait_for(0)
                return np.float32(0)

            loss += tf.py_func(evaluated, [step], tf.float32)
        if options["vocabulary"] is not None:
            words = tf.feature_column.categorical_column_with_vocabulary_list(
                "word", options["vocabulary"]
            )
            column = tf.feature_column.indicator_column(words)
            loss += 0.0 * tf.reduce_sum(tf.feature_column.input_layer({"word": ["a"]}, [column]))
        if options["table"]:
            table = tf.feature_column.EmbeddingTable(
                "t", dynamic=True, partitions=2, capacity=8, initializer=tf.zeros_initializer()
            )
            number = tf.feature_column.categorical_column_with_identity("number", 2**62)
            column = tf.feature_column.embedding_column(number, 1, table=table)
            numbers = tf.reshape(tf.cast(features, tf.int64), [1, 1])
            row = tf.feature_column.input_layer({"number": numbers}, [column])
            train = tf.group(train, tf.train.GradientDescentOptimizer(1.0).minimize(-row))
        predictions = features + counters[0]
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train)

    config = tf.estimator.RunConfig(
        model_dir=options["model_dir"],
        save_checkpoints_steps=options["save_steps"],
        keep_checkpoint_max=50,
        save_summary_steps=None,
        log_step_count_steps=10,
        session_creation_timeout_secs=options["wait_secs"],
        experimental_max_worker_delay_secs=0,
        max_steps_ahead=options["ahead"],
        stuck_secs=options["stuck_secs"],
    )

    max_steps = options["max_steps"]
    if task.type == "worker" and options["worker_steps"] is not None:
        max_steps = options["worker_steps"]

    def served() -> Any:
        x = tf.placeholder(tf.float32, [], "x")
        return tf.estimator.export.TensorServingInputReceiver(x, x)

    tf.estimator.train_and_evaluate(
        tf.estimator.Estimator(model_fn, config=config),
        tf.estimator.TrainSpec(data, max_steps),
        tf.estimator.EvalSpec(
            lambda: tf.data.Dataset.from_tensors(np.float32(0)),
            steps=1,
            start_delay_secs=0,
            throttle_secs=0,
            exporters=tf.estimator.BestExporter(serving_input_receiver_fn=served),
        ),
    )


if __name__ == "__main__":
    main({**OPTIONS, **json.loads(sys.argv[1])})
