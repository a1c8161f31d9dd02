"""The lecture on ridge regression: closed form and gradient descent."""

from __future__ import annotations

import numpy as np

import estimatorkit as tf


def test_d_equals_b_plus_c() -> None:
    b, c = tf.constant(2.0, name="b"), tf.Variable(1.0, name="c")
    d = tf.add(b, c, name="d")
    e = tf.add(c, 2, name="e")
    a = tf.multiply(d, e, name="a")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(a) == 9.0


def test_ridge_regression_by_gradient_descent() -> None:
    random = np.random.default_rng(5)
    features = random.normal(size=(200, 6))
    features = np.hstack([np.ones((200, 1)), features]).astype(np.float32)
    target = (features @ random.normal(size=(7, 1)) + 0.1 * random.normal(size=(200, 1))).astype(
        "f"
    )
    penalty = 1.0

    # Matrix solution.
    X = tf.constant(features, name="X")
    y = tf.constant(target, name="y")
    XT = tf.transpose(X)
    closed = tf.matmul(tf.matmul(tf.matrix_inverse(tf.matmul(XT, X) + penalty * tf.eye(7)), XT), y)

    # Gradient descent.
    with tf.device("/cpu:0"):
        beta = tf.Variable(tf.random_uniform([7, 1], -1.0, 1.0, seed=3), name="beta")
        y_pred = tf.matmul(X, beta, name="predictions")
    penalized_cost = tf.reduce_sum(tf.square(y - y_pred)) + penalty * tf.reduce_sum(tf.square(beta))
    (grads,) = tf.gradients(penalized_cost, [beta])
    training_op = tf.assign(beta, beta - 0.001 * grads)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(500):
            sess.run(training_op)
        found, exact = sess.run([beta, closed])
    np.testing.assert_allclose(found, exact, atol=1e-3)


def test_parts_on_two_devices() -> None:
    with tf.device("/cpu:1"):
        beta = tf.Variable(tf.ones([1, 3]))
    with tf.device("/gpu:0"):
        y_pred = tf.matmul(beta, tf.ones([3, 2]))
    with tf.Session() as session:  # a device that is not there is the default one
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(y_pred), [[3.0, 3.0]])
