"""MNIST on a cluster, in the manner of the distributed example of the first tutorials: the script
starts a parameter server and a second worker of itself, variables are placed by
``replica_device_setter``, and a ``Supervisor``'s session on ``grpc://`` trains 400 steps."""

import os
import socket
import subprocess
import sys
import tempfile

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH, HIDDEN = 400, 100, 100


def train(cluster, index, folder):
    server = tf.train.Server(cluster, job_name="worker", task_index=index)
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        hid_w = tf.Variable(tf.truncated_normal([784, HIDDEN], stddev=1.0 / 28), name="hid_w")
        hid_b = tf.Variable(tf.zeros([HIDDEN]), name="hid_b")
        sm_w = tf.Variable(tf.truncated_normal([HIDDEN, 10], stddev=0.1), name="sm_w")
        sm_b = tf.Variable(tf.zeros([10]), name="sm_b")
        x = tf.placeholder(tf.float32, [None, 784])
        y_ = tf.placeholder(tf.int64, [None])
        logits = tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(x, hid_w, hid_b)), sm_w, sm_b)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_, logits=logits)
        )
        train_step = tf.train.AdamOptimizer(0.002).minimize(loss, global_step=global_step)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y_), tf.float32))
        init_op = tf.global_variables_initializer()
    supervisor = tf.train.Supervisor(
        is_chief=index == 0,
        logdir=folder if index == 0 else None,
        init_op=init_op,
        recovery_wait_secs=1,
        global_step=global_step,
    )
    (train_x, train_y), (test_x, test_y) = mnist()
    random = np.random.RandomState(index)
    config = tf.ConfigProto(
        allow_soft_placement=True, device_filters=["/job:ps", f"/job:worker/task:{index}"]
    )
    with supervisor.prepare_or_wait_for_session(server.target, config=config) as sess:
        step = local = 0
        while step < STEPS:
            rows = random.randint(0, len(train_x), BATCH)
            _, step = sess.run([train_step, global_step], {x: train_x[rows], y_: train_y[rows]})
            local += 1
            if local % 100 == 0:
                print(
                    f"Worker {index}: training step {local} done (global step: {step})", flush=True
                )
        return sess.run(accuracy, {x: test_x, y_: test_y})


def main():
    if len(sys.argv) > 1:
        job, index, *hosts = sys.argv[1:]
        cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
        if job == "ps":
            tf.train.Server(cluster, job_name="ps", task_index=0).join()
        with tempfile.TemporaryDirectory() as folder:
            train(cluster, int(index), folder)
        return
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    hosts = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    others = [
        subprocess.Popen(  # noqa: S603 - this file
            [sys.executable, os.path.abspath(__file__), job, number, *hosts]
        )
        for job, number in (("ps", "0"), ("worker", "1"))
    ]
    try:
        cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
        with tempfile.TemporaryDirectory() as folder:
            value = train(cluster, 0, folder)
        others[1].wait()
    finally:
        for each in others:
            each.kill()
            each.wait()
    print(f"figure accuracy {value:.4f}")


main()
