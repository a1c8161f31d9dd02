"""Trainings by `SyncReplicasOptimizer` in one process, as functions of the module used as `tf`.

One replica computes all gradients that an update takes, in order, so that the numbers are certain.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

OPTIMIZERS: dict[str, tuple[str, dict[str, float]]] = {
    "sgd": ("GradientDescentOptimizer", {"learning_rate": 0.1}),
    "momentum": ("MomentumOptimizer", {"learning_rate": 0.05, "momentum": 0.9}),
    "adagrad": ("AdagradOptimizer", {"learning_rate": 0.1}),
    "adam": ("AdamOptimizer", {"learning_rate": 0.02}),
}
AGGREGATED = (1, 2, 3)
RUNS = 13


class Model:
    """A dense variable, and a table of which each batch uses a few rows.

    Args:
        tf: the module.
        optimizer: a key of `OPTIMIZERS`.
        aggregated: how many gradients make an update.
        averaged: whether there are moving averages.
    """

    def __init__(self, tf: Any, optimizer: str, aggregated: int, averaged: bool = False) -> None:
        self.tf = tf
        self.step = tf.train.get_or_create_global_step()
        dense = tf.get_variable("dense", [3], initializer=tf.ones_initializer())
        table = tf.get_variable("table", [6, 2], initializer=tf.ones_initializer())
        unused = tf.get_variable("unused", [], initializer=tf.zeros_initializer())
        self.variables = [dense, table]
        self.batch = tf.placeholder(tf.float32, [3])
        self.rows = tf.placeholder(tf.int32, [3])
        error = tf.reduce_sum(dense * self.batch) + tf.reduce_sum(tf.gather(table, self.rows))
        name, arguments = OPTIMIZERS[optimizer]
        averages = tf.train.ExponentialMovingAverage(0.5) if averaged else None
        self.optimizer = tf.train.SyncReplicasOptimizer(
            getattr(tf.train, name)(**arguments),
            replicas_to_aggregate=aggregated,
            total_num_replicas=1,
            variable_averages=averages,
            variables_to_average=[dense] if averaged else None,
        )
        pairs = self.optimizer.compute_gradients(
            tf.square(error - 1.0), var_list=[dense, table, unused]
        )
        self.train_op = self.optimizer.apply_gradients(pairs, global_step=self.step)
        if averages is not None:
            self.variables.append(averages.average(dense))

    def session(self, num_tokens: int) -> Any:
        """A monitored session."""
        hook = self.optimizer.make_session_run_hook(True, num_tokens)
        return self.tf.train.MonitoredTrainingSession(hooks=[hook], stop_grace_period_secs=1)

    def feeds(self, number: int) -> dict[Any, Any]:
        """What a run is fed."""
        batch = np.float32([number % 3, 1, number % 2]) / 2
        # In order, and none twice: TensorFlow's accumulators mix up rows otherwise.
        return {self.batch: batch, self.rows: [number % 3, 3 + number % 2, 5]}


def trained(
    tf: Any, optimizer: str, aggregated: int, averaged: bool = False, pause: float = 0.0
) -> dict[str, Any]:
    """The steps that the runs give, the variables after some of them, and all variables' names.

    Args:
        tf, optimizer, aggregated, averaged: see `Model`.
        pause: seconds before variables are read: TensorFlow moves averages after a run's end.
    """
    with tf.Graph().as_default():
        model = Model(tf, optimizer, aggregated, averaged)
        steps, values = [], {}
        with model.session(num_tokens=aggregated - 1) as session:
            for number in range(RUNS):
                steps.append(int(session.run(model.train_op, model.feeds(number))))
                # A run that takes one of the first tokens may come back before an update.
                if number % aggregated == aggregated - 1 and number >= aggregated:
                    time.sleep(pause)
                    found = session.run(model.variables)
                    values[str(number)] = [value.ravel().tolist() for value in found]
        return {
            "steps": steps,
            "values": values,
            "global": sorted(each.name for each in tf.global_variables()),
            "local": [each.name for each in tf.local_variables()],
            "slots": model.optimizer.get_slot_names(),
        }


def handles(tf: Any) -> dict[str, list[str]]:
    """The names of accumulators and queues."""
    with tf.Graph().as_default() as graph:
        Model(tf, "sgd", 2)
        kinds = {
            "accumulators": (
                *("ConditionalAccumulator", "SparseConditionalAccumulator"),
                "ResourceConditionalAccumulator",
            ),
            "queues": ("FIFOQueueV2",),
        }
        return {
            kind: [op.name for op in graph.get_operations() if op.type in types]
            for kind, types in kinds.items()
        }


ERRORS = (
    "no pairs",
    "no global step",
    "no gradients",
    "runner too early",
    "tokens too early",
    "too few tokens",
    "hook too early",
)


def fail(tf: Any, name: str) -> None:
    """Fails in one of the ways of `ERRORS`."""
    with tf.Graph().as_default():
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 3, 1)
        variable = tf.get_variable("x", [], initializer=tf.ones_initializer())
        step = tf.train.get_or_create_global_step()
        if name == "no pairs":
            optimizer.apply_gradients([], step)
        elif name == "no global step":
            optimizer.minimize(variable * 2.0)
        elif name == "no gradients":
            optimizer.minimize(tf.constant(1.0), step)
        elif name == "runner too early":
            optimizer.get_chief_queue_runner()
        elif name == "tokens too early":
            optimizer.get_init_tokens_op()
        elif name == "hook too early":
            optimizer.make_session_run_hook(True).begin()
        else:
            optimizer.minimize(variable * 2.0, step)
            optimizer.get_init_tokens_op(1)
