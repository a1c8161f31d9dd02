"""A replica of a synchronous training, by a session of its own; its argument is JSON.

It says 'step 3' for each step that it gets, and at the end in JSON which batch it has used at which
step, and if it is the chief the variables.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

OPTIONS: dict[str, Any] = {
    "cluster": {},  # addresses by job and number
    "index": 0,  # of the worker
    "aggregate": 1,  # replicas_to_aggregate
    "total": 1,  # total_num_replicas
    "last_step": None,
    "most_runs": None,  # after so many its input ends
    "behind": 0,  # it gives gradients for a step only when the others are so many steps further
    "scale": 1.0,  # of its batches
    "kind": "monitored",  # or 'supervised'
}


class Model:
    """Dense weights, and a table of whose rows a batch uses a few, some of them twice.

    Args:
        tf: the package.
    """

    def __init__(self, tf: Any) -> None:
        self.step = tf.train.get_or_create_global_step()
        self.weights = tf.get_variable("weights", [3], initializer=tf.ones_initializer())
        self.table = tf.get_variable("table", [6, 2], initializer=tf.ones_initializer())
        self._batch = tf.placeholder(tf.float32, [3])
        self._rows = tf.placeholder(tf.int32, [4])
        found = tf.reduce_sum(self.weights * self._batch)
        self.loss = tf.square(found + tf.reduce_sum(tf.gather(self.table, self._rows)) - 1.0)
        self.variables = {
            "global_step": self.step,
            "weights": self.weights,
            "table": self.table,
        }

    def feeds(self, number: int, scale: float = 1.0) -> dict[Any, Any]:
        """A batch."""
        rng = np.random.default_rng(number)
        batch = rng.normal(size=3).astype(np.float32) * np.float32(scale)
        return {self._batch: batch, self._rows: rng.integers(0, 6, 4)}


def optimizer(tf: Any) -> Any:
    """What applies gradients."""
    return tf.train.MomentumOptimizer(0.001, 0.5)


class Replica:
    """This process.

    Args:
        tf: the package.
        options: see `OPTIONS`.
    """

    def __init__(self, tf: Any, options: dict[str, Any]) -> None:
        self._tf = tf
        self._options = options
        cluster = {
            job: {int(index): address for index, address in tasks.items()}
            for job, tasks in options["cluster"].items()
        }
        self._index: int = options["index"]
        self._is_chief = self._index == 0
        self._server = tf.train.Server(cluster, "worker", self._index)
        worker = f"/job:worker/task:{self._index}"
        with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
            self._model = Model(tf)
            self._optimizer = tf.train.SyncReplicasOptimizer(
                optimizer(tf), options["aggregate"], options["total"]
            )
            self._train_op = self._optimizer.minimize(self._model.loss, self._model.step)
        (self._own_step,) = tf.local_variables()
        self._runs: list[tuple[int, int]] = []

    def run(self) -> None:
        """Trains, and says what there is to say."""
        found = getattr(self, self._options["kind"])()
        values = {name: np.asarray(value).tolist() for name, value in (found or {}).items()}
        print(json.dumps({"runs": self._runs, "variables": values}), flush=True)

    def monitored(self) -> Any:
        """By a monitored session."""
        tf, options = self._tf, self._options
        final = tf.train.FinalOpsHook(self._model.variables if self._is_chief else None)
        hooks = [final, self._optimizer.make_session_run_hook(self._is_chief, num_tokens=0)]
        if options["last_step"] is not None:
            hooks.append(tf.train.StopAtStepHook(last_step=options["last_step"]))
        with tf.train.MonitoredTrainingSession(
            self._server.target, self._is_chief, hooks=hooks
        ) as session:
            while not session.should_stop() and len(self._runs) != options["most_runs"]:
                self._step(
                    session.run,
                    lambda fetch: session.run_step_fn(
                        lambda step_context: step_context.session.run(fetch)
                    ),
                )
        return final.final_ops_values

    def supervised(self) -> Any:
        """By a supervisor."""
        made = self._optimizer
        tokens, runner = made.get_init_tokens_op(0), made.get_chief_queue_runner()
        supervisor = self._tf.train.Supervisor(
            is_chief=self._is_chief,
            local_init_op=made.chief_init_op if self._is_chief else made.local_step_init_op,
            ready_for_local_init_op=made.ready_for_local_init_op,
            global_step=self._model.step,
            recovery_wait_secs=1,
        )
        with supervisor.managed_session(self._server.target) as session:
            if self._is_chief:
                session.run(tokens)
                supervisor.start_queue_runners(session, [runner])
            while session.run(self._model.step) < self._options["last_step"]:
                self._step(session.run, session.run)
            return session.run(self._model.variables) if self._is_chief else None

    def _step(self, run: Callable[..., Any], read: Callable[..., Any]) -> None:
        """One step.

        Args:
            run: runs it.
            read: reads without being a step.
        """
        options, number = self._options, 1000 * self._index + len(self._runs)
        step = int(read(self._own_step))
        if options["behind"]:
            until = min(step + options["behind"], options["last_step"])
            while int(read(self._model.step)) < until:
                time.sleep(0.01)
        self._runs.append((step, number))
        # After the last step others are no further: what it gives would be in time.
        is_late = not options["behind"] or step < options["last_step"]
        scale = options["scale"] if is_late else 1.0
        reached = run(self._train_op, self._model.feeds(number, scale))
        print(f"step {reached}", flush=True)


if __name__ == "__main__":
    import estimatorkit

    Replica(estimatorkit, {**OPTIONS, **json.loads(sys.argv[1])}).run()
