"""A process of a training whose data are dealt out; the variables say how often each was trained.

Its argument is JSON (see `OPTIONS`). Each unit is a number and gives so many elements, the unit and
its epoch; a step adds 1 to the counter of both.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit import distribute
from estimatorkit.distribute.cluster_task import ClusterTask
from estimatorkit.distribute.tasks import membership as members

OPTIONS: dict[str, Any] = {
    "model_dir": None,
    "max_steps": None,
    "units": 12,
    "elements": 5,  # of a unit
    "epochs": 2,
    "save_steps": 20,  # between checkpoints
    "secs": 0.0,  # that an element takes
    "replicas": 0,  # so many are synchronous; 0 for none
    "silent_secs": 60.0,  # after which a process is taken for gone
    "gates": {},  # by role: numbers of elements before which the input waits for 'open-NUMBER'
}


def main(options: dict[str, Any]) -> None:
    """Trains, as whatever the environment says."""
    members.SILENT_SECS = options["silent_secs"]
    task = ClusterTask.of_environment()
    role = f"{task.type} {task.index}"
    folder = Path(options["model_dir"])
    gates = options["gates"].get(role, [])
    count = 0

    def wait(unit: Any) -> Any:
        nonlocal count
        while count in gates and not (folder / f"open-{count}").exists():
            time.sleep(0.02)
        time.sleep(options["secs"])
        count += 1
        print(f"element {count}", flush=True)
        return unit

    def elements_of(unit: Any) -> Any:
        elements = tf.data.Dataset.from_tensors(unit).repeat(options["elements"])
        return elements.map(lambda each: tf.py_func(wait, [each], tf.int64, stateful=True))

    def data() -> Any:
        units = tf.data.Dataset.range(options["units"])
        return distribute.dynamically_sharded(units, elements_of, options["epochs"], seed=5)

    def model_fn(features: Any, mode: str) -> Any:
        unit = tf.reshape(features, [1])
        counts = tf.get_variable("counts", [options["units"]], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.cast(unit, tf.float32))
        step, hooks = tf.train.get_global_step(), []
        with tf.control_dependencies([tf.scatter_add(counts, unit, [1.0])]):
            if options["replicas"]:
                weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
                optimizer = tf.train.SyncReplicasOptimizer(
                    tf.train.GradientDescentOptimizer(0.1), options["replicas"]
                )
                hooks = [optimizer.make_session_run_hook(task.is_chief)]
                train_op = optimizer.minimize(loss * weight, step)
            else:
                train_op = step.assign_add(1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)

    config = tf.estimator.RunConfig(
        model_dir=options["model_dir"],
        save_checkpoints_steps=options["save_steps"],
        save_summary_steps=None,
        experimental_max_worker_delay_secs=0,
    )
    tf.estimator.train_and_evaluate(
        tf.estimator.Estimator(model_fn, config=config),
        tf.estimator.TrainSpec(data, options["max_steps"]),
        tf.estimator.EvalSpec(lambda: tf.data.Dataset.from_tensors(np.int64(0)), steps=1),
    )


if __name__ == "__main__":
    main({**OPTIONS, **json.loads(sys.argv[1])})
