"""`replica_device_setter`: all of TensorFlow's device choices, and the strategies."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import estimatorkit as tf


def test_graph_def_nodes_have_devices() -> None:
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:3")
    with tf.Graph().as_default() as graph:
        tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        found = {node.name: setter(node) for node in graph.as_graph_def().node}
    assert found["v"] == "/job:ps/task:0"
    assert found["v/read"] == "/job:worker/task:3"


def test_cluster_def_and_spec_count_tasks() -> None:
    spec = tf.train.ClusterSpec({"ps": {1: "a:1", 5: "b:1"}, "worker": ["c:1"]})
    for cluster in (spec, spec.as_cluster_def(), spec.as_dict()):
        setter = tf.train.replica_device_setter(cluster=cluster)
        op = SimpleNamespace(type="VarHandleOp", device="")
        assert [setter(op) for _ in range(3)] == [f"/job:ps/task:{at}" for at in (0, 1, 0)]


def test_estimator_device_function() -> None:
    devices = []

    def model_fn(features: object, labels: object, mode: str) -> tf.estimator.EstimatorSpec:
        made = [tf.get_variable(name, [], initializer=tf.ones_initializer()) for name in "ab"]
        devices.extend(each.device for each in [*made, made[0] * 2.0])
        train = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, loss=made[0] + made[1], train_op=train)

    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")
    config = tf.estimator.RunConfig(device_fn=setter)
    data = tf.data.Dataset.from_tensors(({"x": [1.0]}, [1.0]))
    tf.estimator.Estimator(model_fn, config=config).train(lambda: data, steps=1)
    # The global step was the first.
    assert devices == ["/job:ps/task:1", "/job:ps/task:0", "/job:worker/task:0"]


def test_initial_values_are_computed_on_server() -> None:
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=1)):
        table = tf.get_variable("table", [6, 2], initializer=tf.random_normal_initializer(seed=1))
        given = tf.Variable(tf.random_normal([2], seed=2), name="given")
        assert table.initial_value.device == "/job:ps/task:0"
        assert given.initial_value.device == "/job:worker"  # it was made before
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert np.all(np.isfinite(session.run(table)))
