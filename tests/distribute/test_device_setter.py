"""`replica_device_setter`: all of TensorFlow's device choices, and the strategies."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.snippets_device_setter import ERRORS, SNIPPETS, devices_of

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "device_setter.json").read_text(encoding="utf-8")
)
HANDLES = ("VarHandleOp", "MutableHashTableV2", "HashTableV2")


@pytest.mark.parametrize("name", SNIPPETS)
def test_devices_match_tensorflow(name: str) -> None:
    theirs, ours = GOLDEN[name], devices_of(tf, name)
    missing = [each for each, (kind, _) in theirs.items() if kind in HANDLES and each not in ours]
    assert not missing
    different = {}
    for each in theirs.keys() & ours.keys():
        (kind, expected), (_, found) = theirs[each], ours[each]
        if "/Initializer/" in each and expected == "":
            # TensorFlow says by other means that these run where the variable is.
            expected = ours[each.partition("/Initializer/")[0]][1]
        if kind == "FIFOQueueV2":  # it asks for a processor without a number
            expected = expected.removesuffix("/device:CPU:*")
        if found != expected:
            different[each] = (expected, found)
    assert not different


@pytest.mark.parametrize("name", ERRORS)
def test_errors_begin_like_tensorflow(name: str) -> None:
    expected = GOLDEN["errors"][name]
    with pytest.raises((TypeError, ValueError)) as caught:
        ERRORS[name](tf)
    assert type(caught.value).__name__ == expected["class"]
    assert str(caught.value).startswith(expected["first_line"])


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


def test_greedy_strategy_picks_least_loaded_server() -> None:
    strategy = tf.contrib.training.GreedyLoadBalancingStrategy(
        2, tf.contrib.training.byte_size_load_fn
    )
    with (
        tf.Graph().as_default(),
        tf.device(tf.train.replica_device_setter(ps_tasks=2, ps_strategy=strategy)),
    ):
        made = [
            tf.get_variable(f"v{at}", [size], dtype, initializer=tf.zeros_initializer())
            for at, (size, dtype) in enumerate(
                [(10, tf.float32), (4, tf.float64), (3, tf.float32), (1, tf.float32)]
            )
        ]
        # 40 bytes; 32 bytes; 12 bytes more there; the first is the lightest again.
        assert [each.device[-1] for each in made] == ["0", "1", "1", "0"]
        assert tf.contrib.training.byte_size_load_fn(made[1].op) == 32
        assert tf.contrib.training.byte_size_load_fn(tf.zeros([3], tf.int64).op) == 24
        with pytest.raises(ValueError, match="single output"):
            tf.contrib.training.byte_size_load_fn(tf.group(made[0].initializer))
        with pytest.raises(ValueError, match="not fully defined"):
            tf.contrib.training.byte_size_load_fn(tf.placeholder(tf.float32, [None]).op)


def test_random_strategy_is_equal_in_all_processes() -> None:
    first, second = (tf.contrib.training.RandomStrategy(5, seed=3) for _ in range(2))
    dealt = [first(None) for _ in range(100)]
    assert dealt == [second(None) for _ in range(100)]
    assert set(dealt) == set(range(5))


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
