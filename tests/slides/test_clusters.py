"""The slides' programs for clusters: each task a process, and the client one more.

Addresses are free ports of this machine, and what a slide leaves out (`...`) is a small model; the
rest is as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.distribute.processes import Processes, free_cluster, known_token, target

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
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(data * weights, 1) - goal))
            global_step = tf.Variable(0)
            train_op = tf.train.AdagradOptimizer(0.5, use_locking=this_task_index == 0).minimize(
                loss, global_step=global_step)
        sv = tf.train.Supervisor(is_chief=(this_task_index == 0))
        with sv.managed_session(server.target) as session:
            step = own = 0
            while not sv.should_stop() and step < 200:
                # Run a training step asynchronously.
                _, step = session.run([train_op, global_step])
                own += 1
            print(json.dumps([own, float(session.run(loss)), session.run(weights).tolist(),
                              weights.device]))
    """


def test_full_graph_replication_with_two_workers(processes: Processes) -> None:
    cluster = free_cluster(ps=1, worker=2)

    def start(job: str, index: int) -> Any:
        arguments = json.dumps(cluster), job, index
        return processes.program(f"{job} {index}", FULL_GRAPH, *arguments)

    server = start("ps", 0)
    workers = [start("worker", index) for index in (1, 0)]
    found = [worker.answer() for worker in workers]
    assert server.runs
    for own, loss, weights, device in found:
        assert own > 0
        assert loss < 1e-3
        np.testing.assert_allclose(weights, [1, -2, 3, 0.5], atol=0.05)
        assert device == "/job:ps/task:0"
    with tf.Session(target(cluster, "ps", 0)) as session:
        with tf.device("/job:ps/task:0"):
            steps = tf.Variable(0, name="Variable_1")
        assert session.run(steps) == sum(own for own, *_ in found)


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
                value, _ = session.run([losses_avg, train_op])
                step = session.run(global_step)
                found.append([float(value), *session.run(beta).tolist()])
    print(json.dumps([found, told]))
    """


def test_sub_graph_replication_from_outside_of_the_cluster(processes: Processes) -> None:
    cluster = free_cluster(master=1, worker=2)
    processes.tasks(cluster)
    client = processes.program("client", SUB_GRAPH, target(cluster, "master", 0))
    alone = processes.program("alone", SUB_GRAPH, "")
    (found, told), (expected, _) = client.answer(), alone.answer()
    assert len(found) == 20
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[-1][0] < found[0][0]
    for task in ("/job:master/task:0", "/job:worker/task:0", "/job:worker/task:1"):
        assert f"of {task}" in told
