"""The lecture on TensorFlow's internals (gradients, control flow, functions, devices), by its
slides.

What a slide leaves out (shapes, the cell) is filled in; `tf.cross_entropy` is no function of any
TensorFlow, its meaning is written out.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit import function


def test_feed_and_fetch_by_name() -> None:
    a = tf.constant(2.0, name="a")
    b = tf.placeholder_with_default(3.0, [], name="b")
    tf.multiply(a, b, name="f")
    with tf.Session() as session:
        assert session.run("f:0", {"b:0": 5.0}) == 10.0


@pytest.mark.slow
def test_forward_and_backward() -> None:
    examples = tf.placeholder(tf.float32)
    labels = tf.placeholder(tf.int32)
    weight = tf.Variable(tf.zeros([784, 10]))
    bias = tf.Variable(tf.zeros([10]))
    y = tf.matmul(tf.reshape(examples, [-1, 784]), weight) + bias
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=y)
    )
    lr = 0.5
    weights_grad, bias_grad = tf.gradients(loss, [weight, bias])
    new_weights = tf.assign_sub(weight, lr * weights_grad)
    new_bias = tf.assign_sub(bias, lr * bias_grad)
    train_op = tf.group([new_weights, new_bias])
    init = tf.initialize_all_variables()
    random = np.random.default_rng(0)
    batch_ys = random.integers(0, 10, 100)
    batch_xs = random.random((100, 784)) * 0.1 + np.eye(10)[batch_ys].repeat(79, 1)[:, :784]
    sess = tf.Session()
    sess.run(init)
    before = sess.run(loss, feed_dict={examples: batch_xs, labels: batch_ys})
    for _ in range(20):
        sess.run(train_op, feed_dict={examples: batch_xs, labels: batch_ys})
    after = sess.run(loss, feed_dict={examples: batch_xs, labels: batch_ys})
    np.testing.assert_allclose(before, np.log(10), rtol=1e-5)
    assert after < 0.05 * before
    sess.close()


def test_while_loop() -> None:
    i = tf.constant(0)
    c = lambda i: tf.less(i, 10)  # noqa: E731
    b = lambda i: tf.add(i, 1)  # noqa: E731
    r = tf.while_loop(c, b, [i])
    with tf.Session() as session:
        assert session.run(r) == 10


@pytest.mark.slow
def test_function_as_operation() -> None:
    class Model:
        _dtype = tf.float32

        def build(self) -> object:
            @function.Defun(*[self._dtype] * 2, func_name="BatchNorm")
            def BatchNorm(h, gamma):  # type: ignore[no-untyped-def]
                # Uses a simple two-pass algorithm to compute mean and var for
                # numerical stability.
                mean = tf.reduce_mean(h, [0])
                var = tf.reduce_mean(tf.square(h - mean), [0])
                epsilon = tf.constant(1e-8)
                rstd = tf.rsqrt(var + epsilon)
                return gamma * (h - mean) * rstd

            return BatchNorm

    batch_norm = Model().build()
    h = tf.placeholder(tf.float32, [8, 3])
    gamma = tf.Variable(2.0)
    layers = h
    for _ in range(5):
        layers = batch_norm(layers, gamma)  # type: ignore[operator]
    (slope,) = tf.gradients(tf.reduce_sum(layers * layers), [gamma])
    values = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    expected = 2.0 * (values - values.mean(0)) / values.std(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        result, gradient = session.run([layers, slope], {h: values})
    assert [op.type for op in tf.get_default_graph().get_operations()].count("Call") == 5
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(gradient, 8 * 3 * 2 * 2.0, rtol=1e-3)
    (traced,) = batch_norm.functions  # type: ignore[attr-defined]
    assert traced.traces <= 2  # once forward and once for the derivative, not five times


STACKED = """
import numpy as np
import estimatorkit as tf

def LSTMCell(input, mprev, cprev):
    gates = tf.matmul(tf.concat([input, mprev], 1), weights[d])
    i, j, f, o = tf.split(gates, 4, 1)
    c = tf.sigmoid(f + 1.0) * cprev + tf.sigmoid(i) * tf.tanh(j)
    return tf.sigmoid(o) * tf.tanh(c), c

x = tf.unstack(tf.constant(np.random.default_rng(0).normal(size=(8, 2, 5)).astype("f")))
weights = [tf.Variable(np.random.default_rng(k + 1).normal(size=(10, 20)).astype("f"))
           for k in range(4)]
DEVICES

config = tf.ConfigProto(device_count={"CPU": 4}, allow_soft_placement=True)
with tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())
    plan = session.plan(m[3])
    print(repr(session.run(m[3]).tolist()))
    print(len({segment.device for segment in plan.segments}))
    print(plan.describe().count("Send("), plan.describe().count("Recv("))
"""
LOOP = """
m, c = [None] * 4, [None] * 4
mprev, cprev = [tf.zeros([2, 5])] * 4, [tf.zeros([2, 5])] * 4
for i in range(8):
    for d in range(4):  # d is depth
        with tf.device("/cpu:%d" % DEVICE):
            input = x[i] if d == 0 else m[d-1]
            m[d], c[d] = LSTMCell(
                input, mprev[d], cprev[d])
            mprev[d] = m[d]
            cprev[d] = c[d]
"""


def run_stacked(device: str) -> list[str]:
    program = textwrap.dedent(STACKED).replace("DEVICES", LOOP.replace("DEVICE", device, 1))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_stacked_lstms_on_several_devices() -> None:
    """The same numbers on one device and on four; the plan shows what is sent."""
    one, several = run_stacked("0"), run_stacked("d")
    np.testing.assert_allclose(eval_list(several[0]), eval_list(one[0]), rtol=1e-5, atol=1e-6)
    assert (one[1], several[1]) == ("1", "4")
    sent, received = map(int, several[2].split())
    assert sent == received
    assert sent >= 3  # at least once from each layer to the next
    assert one[2] == "0 0"


def eval_list(text: str) -> object:
    import json

    return json.loads(text)


def test_gpu_names_fall_back_to_cpu() -> None:
    """The slides' '/gpu:%d' runs on a machine without a GPU."""
    with tf.device("/gpu:3"):
        a = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3])
        b = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2])
        c = tf.matmul(a, b)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(c), [[22.0, 28.0], [49.0, 64.0]])
