"""The tests of `tests/distribute/test_servers.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from tests.compat.train.test_partitioned_is_whole import MODELS
from tests.distribute.conftest import Running
from tests.distribute.test_servers import WORKERS, losses
from tests.train.test_partitioned_is_whole import OPTIMIZERS, check_model

pytestmark = pytest.mark.multiprocess


@pytest.mark.slow
def test_recurrent_network_matches_one_process(running: Running) -> None:
    tf.set_random_seed(3)
    with tf.device(
        tf.train.replica_device_setter(worker_device=WORKERS[1], cluster=running.cluster)
    ):
        x = tf.placeholder(tf.float32, [2, 4, 3])
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(5), x, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(outputs - 0.5))
        step = tf.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {x: np.random.default_rng(0).normal(size=(2, 4, 3))}
    with tf.Session(running.master) as several, tf.Session() as one:
        found = losses(several, [loss, step], feeds)
        np.testing.assert_allclose(found, losses(one, [loss, step], feeds), rtol=1e-6)
    assert found[-1] < found[0]


@pytest.mark.slow
def test_partitioned_remote_table_matches_local_table(running: Running) -> None:
    place = tf.train.replica_device_setter(worker_device=WORKERS[1], cluster=running.cluster)
    lookup, make = "sampled softmax", OPTIMIZERS["momentum"]
    check_model(lookup, MODELS[lookup], make, "three", running.master, place)
