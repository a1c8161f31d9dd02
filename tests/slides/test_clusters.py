"""The slides' cluster programs: each task a process, and the client another.

Addresses are free ports of this machine, and what a slide leaves out (`...`) is a small model; the
rest is as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from tests.distribute.processes import (
    Process,
    Processes,
    free_cluster,
    known_token,
    target,
    until,
)

pytestmark = pytest.mark.multiprocess


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts processes, which end with the test."""
    with known_token(), Processes(tmp_path) as started:
        yield started


# -- variables pinned to two parameter servers, worker 7 computes

PINNED = """
    import json
    import sys
    import numpy as np
    import estimatorkit as tf

    r = np.random.default_rng(0)
    images = r.normal(size=(64, 20)).astype(np.float32)
    digits = r.integers(0, 5, 64)

    with tf.device("/job:ps/task:0"):
        weights_1 = tf.Variable(tf.random_normal([20, 16], stddev=0.3, seed=1))
        biases_1 = tf.Variable(tf.ones([16]))

    with tf.device("/job:ps/task:1"):
        weights_2 = tf.Variable(tf.random_normal([16, 5], stddev=0.3, seed=2))
        biases_2 = tf.Variable(tf.ones([5]))

    with tf.device("/job:worker/task:7"):
        input, labels = tf.constant(images), tf.constant(digits)
        layer_1 = tf.nn.relu(tf.matmul(input, weights_1) + biases_1)
        logits = tf.nn.relu(tf.matmul(layer_1, weights_2) + biases_2)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss)

    with tf.Session(sys.argv[1]) as sess:
        sess.run(tf.global_variables_initializer())
        losses = [float(sess.run(loss))]
        for _ in range(100):
            sess.run(train_op)
        losses.append(float(sess.run(loss)))
        told = sess.plan(train_op).describe()
    print(json.dumps([losses, told]))
    """


@pytest.mark.slow
def test_variables_on_two_servers_and_worker_7(processes: Processes) -> None:
    cluster = free_cluster(ps=2, worker=[7])
    processes.tasks(cluster)
    client = processes.program("client", PINNED, target(cluster, "worker", 7))
    alone = processes.program("alone", PINNED, "")
    (losses, told), (expected, _) = client.answer(), alone.answer()
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[1] < losses[0] / 2
    parts = [line for line in told.splitlines() if line.startswith("part ")]
    assert [each.partition(" of ")[2] for each in parts] == [
        *("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:7"),
        *("/job:ps/task:0", "/job:ps/task:1", "this process"),
    ]


# -- full graph replication

FULL_GRAPH = """
    import json
    import sys
    import numpy as np
    import estimatorkit as tf

    cluster_def = {
        job: {int(index): address for index, address in tasks.items()}
        for job, tasks in json.loads(sys.argv[1]).items()
    }
    this_job_name, this_task_index = sys.argv[2], int(sys.argv[3])
    data = np.random.default_rng(3).normal(size=(64, 4)).astype(np.float32)
    goal = (data @ [1.0, -2.0, 3.0, 0.5]).astype(np.float32)

    server = tf.train.Server(cluster_def, job_name=this_job_name,
                             task_index=this_task_index)
    if this_job_name == 'ps':
        server.join()
    elif this_job_name == 'worker':
        with tf.device(tf.train.replica_device_setter(
                worker_device="/job:worker/task:{}".format(this_task_index),
                cluster=cluster_def)):
            # Build the model
            weights = tf.Variable(tf.zeros([4]))
            bias = tf.Variable(tf.zeros([]))
            loss = tf.reduce_mean(
                tf.square(tf.reduce_sum(data * weights, 1) + bias - goal))
            global_step = tf.Variable(0)
            train_op = tf.train.AdagradOptimizer(1.0, use_locking=False).minimize(
                loss, global_step=global_step)
            tf.summary.scalar("loss", loss)
        sv = tf.train.Supervisor(
            is_chief=(this_task_index == 0),
            logdir=sys.argv[4],
            init_op=tf.global_variables_initializer(),
            summary_op=tf.summary.merge_all(),
            saver=tf.train.Saver(),
            global_step=global_step,
            save_summaries_secs=1,
            save_model_secs=1)
        with sv.managed_session(server.target) as session:
            step = own = 0
            while not sv.should_stop() and step < int(sys.argv[5]):
                # Run a training step asynchronously.
                _, step = session.run([train_op, global_step])
                own += 1
                if own == 1:
                    print("begins at", step, flush=True)
            print(json.dumps([own, float(session.run(loss)), session.run(weights).tolist(),
                              weights.device, bias.device]))
    """


class FullGraph:
    """The processes of `FULL_GRAPH`: two parameter servers and two workers.

    Args:
        processes: starts them.
        folder: the logdir.
        steps: how many are made together.
    """

    def __init__(self, processes: Processes, folder: Path, steps: int) -> None:
        self.cluster = free_cluster(ps=2, worker=2)
        self._processes = processes
        self._options = str(folder), steps

    def start(self, job: str, index: int) -> Process:
        arguments = json.dumps(self.cluster), job, index, *self._options
        return self._processes.program(f"{job} {index}", FULL_GRAPH, *arguments)

    def start_all(self) -> list[Process]:
        """The servers, then the workers."""
        return [self.start(*each) for each in (("ps", 0), ("ps", 1), ("worker", 1), ("worker", 0))]


@pytest.mark.slow
def test_full_graph_replication_with_two_workers(processes: Processes, tmp_path: Path) -> None:
    replicated = FullGraph(processes, tmp_path / "log", 400)
    *servers, one, other = replicated.start_all()
    found = [worker.answer() for worker in (one, other)]
    assert all(server.runs for server in servers)
    for own, loss, weights, *devices in found:
        assert own > 0
        assert loss < 1e-3
        np.testing.assert_allclose(weights, [1, -2, 3, 0.5], atol=0.05)
        assert devices == ["/job:ps/task:0", "/job:ps/task:1"]  # in turn
    with tf.Session(target(replicated.cluster, "ps", 0)) as session:
        with tf.device("/job:ps/task:0"):
            steps = tf.Variable(0, name="Variable_2")
        assert session.run(steps) == sum(own for own, *_ in found)
    (path,) = (tmp_path / "log").glob("events.*")
    events = tf.train.summary_iterator(str(path))
    assert {value.tag for event in events for value in event.summary.value} >= {"loss"}


@pytest.mark.slow
def test_supervisor_resumes_after_all_were_killed(processes: Processes, tmp_path: Path) -> None:
    replicated = FullGraph(processes, tmp_path / "log", 10**6)
    started = replicated.start_all()
    until(lambda: saved_step(tmp_path / "log") > 20, "no checkpoint")
    for process in started:
        process.kill()
    step = saved_step(tmp_path / "log")
    again = replicated.start_all()
    for worker in again[2:]:
        assert int(worker.wait_for("begins at").split()[-1]) >= step


def saved_step(folder: Path) -> int:
    """The step of the newest checkpoint; 0 where there is none."""
    path = tf.train.latest_checkpoint(str(folder))
    return 0 if path is None else int(path.rpartition("-")[2])


# -- sub-graph replication

SUB_GRAPH = """
    import json
    import sys
    import numpy as np
    import estimatorkit as tf

    master, loss_workers = "/job:master", ["/job:worker/task:0", "/job:worker/task:1"]
    data = np.random.default_rng(3).normal(size=(2, 8, 3)).astype(np.float32)

    with tf.Graph().as_default():
        with tf.device(master):
            beta = tf.Variable([0.5, -1.0, 2.0])
            global_step = tf.Variable(0, trainable=False)
        losses = []
        for worker, rows in zip(loss_workers, data):
            with tf.device(worker):
                # Computationally expensive model section
                loss = tf.reduce_mean(tf.square(tf.constant(rows) * beta - 1.0))
                losses.append(loss)
        with tf.device(master):
            losses_avg = tf.add_n(losses) / len(loss_workers)
            train_op = tf.train.AdagradOptimizer(1.0, use_locking=False).minimize(
                losses_avg, global_step=global_step)
        with tf.Session(sys.argv[1]) as session:
            session.run(tf.global_variables_initializer())
            told = session.plan([train_op, losses_avg]).describe()
            found, step = [], 0
            while step < 20:
                _, step = session.run([train_op, global_step])
                value = session.run(losses_avg)
                found.append([float(value), *session.run(beta).tolist()])
    print(json.dumps([found, told]))
    """


@pytest.mark.slow
def test_sub_graph_replication_from_outside_the_cluster(processes: Processes) -> None:
    cluster = free_cluster(master=1, worker=2)
    processes.tasks(cluster)
    client = processes.program("client", SUB_GRAPH, target(cluster, "master", 0))
    alone = processes.program("alone", SUB_GRAPH, "")
    (found, told), (expected, _) = client.answer(), alone.answer()
    assert len(found) >= 20  # the step is read beside what counts it: before, or after
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[-1][0] < found[0][0]
    for task in ("/job:master/task:0", "/job:worker/task:0", "/job:worker/task:1"):
        assert f"of {task}" in told


# -- a Keras model, trained by an estimator in the cluster that TF_CONFIG describes

KERAS_MODEL = """
    import json
    import sys
    import estimatorkit as tf
    from estimatorkit import keras

    (train_x, train_y), (test_x, test_y) = tf.datasets.iris.load_data()
    train_x, test_x = train_x.to_numpy("float32"), test_x.to_numpy("float32")
    model = keras.Sequential([
        keras.layers.Dense(16, activation="relu", input_shape=(4,)),
        keras.layers.Dense(3, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", ["accuracy"])
    name = f"{model.input_names[0]}"

    # Convert a Keras model to tf.estimator.Estimator ...
    estimator = keras.estimator.model_to_estimator(model, model_dir=sys.argv[1])

    def train_input():
        data = tf.data.Dataset.from_tensor_slices(({name: train_x}, train_y.to_numpy()))
        return data.shuffle(200).repeat().batch(30)

    def test_input():
        return tf.data.Dataset.from_tensor_slices(({name: test_x}, test_y.to_numpy())).batch(30)

    # Train locally & distributed
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_input, max_steps=2500),
        tf.estimator.EvalSpec(test_input, start_delay_secs=0),
    )
    print(json.dumps({"accuracy": float(estimator.evaluate(test_input)["accuracy"])}))
    """


@pytest.mark.slow
def test_keras_model_with_tf_config(processes: Processes, tmp_path: Path) -> None:
    """host1 is the chief, and the first of three workers; host4 and host5 hold the parameters."""
    hosts = free_cluster(worker=3, ps=2)
    workers, servers = [*hosts["worker"].values()], [*hosts["ps"].values()]
    cluster = {"chief": workers[:1], "worker": workers, "ps": servers}

    def start(job: str, index: int) -> Process:
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        folder = str(tmp_path / "model")
        return processes.program(
            f"{job} {index}", KERAS_MODEL, folder, TF_CONFIG=json.dumps(config)
        )

    roles = [("ps", 0), ("ps", 1), ("chief", 0), ("worker", 1), ("worker", 2)]
    started = {role: start(*role) for role in roles}
    assert started["chief", 0].answer()["accuracy"] > 0.85
    for process in started.values():
        process.join()
