"""Workloads that are raw graphs, one function each for every package with TensorFlow 1's names.

Each returns a call to time; the participants pass their namespace.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def one_op_call(v1: Any) -> Callable[[], object]:
    """Returns a call that runs `placeholder + constant`, one float fed, the sum fetched.

    Args:
        v1: the namespace with `Graph`, `Session`, `placeholder`, `constant`, `add` and `float32`.

    Raises:
        RuntimeError: the sum is wrong.
    """
    graph = v1.Graph()
    with graph.as_default():
        fed = v1.placeholder(v1.float32, shape=())
        total = v1.add(fed, v1.constant(2.0))
    session = v1.Session(graph=graph)

    def call() -> object:
        return session.run(total, feed_dict={fed: 1.0})

    if float(call()) != 3.0:  # type: ignore[arg-type]
        raise RuntimeError(f"1 + 2 gave {call()!r}")
    return call


def digits(count: int, batch: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Returns batches of learnable pictures, `(batch, 784)` in [0, 1), and one-hot classes."""
    random = np.random.default_rng(1998)
    lit = random.choice(np.array([0.17, 0.23], np.float32), size=(10, 784))
    batches = []
    for _ in range(count):
        labels = random.integers(0, 10, batch)
        pixels = random.random((batch, 784), dtype=np.float32)
        pixels[random.random((batch, 784), dtype=np.float32) > lit[labels]] = 0.0
        batches.append((pixels, np.eye(10, dtype=np.float32)[labels]))
    return batches


def _steps(v1: Any, graph: Any, step: Any, x: Any, y: Any, batch: int) -> Callable[[], object]:
    with graph.as_default():
        init = v1.global_variables_initializer()
    session = v1.Session(graph=graph)
    session.run(init)
    batches = itertools.cycle(digits(50, batch))

    def call() -> object:
        images, labels = next(batches)
        return session.run(step, feed_dict={x: images, y: labels})

    call()
    return call


def softmax_step(v1: Any) -> Callable[[], object]:
    """Returns a call that feeds 100 pictures to a step of softmax regression."""
    graph = v1.Graph()
    with graph.as_default():
        x = v1.placeholder(v1.float32, [None, 784])
        labels = v1.placeholder(v1.float32, [None, 10])
        weights = v1.Variable(v1.zeros([784, 10]))
        bias = v1.Variable(v1.zeros([10]))
        y = v1.nn.softmax(v1.matmul(x, weights) + bias)
        loss = v1.reduce_mean(-v1.reduce_sum(labels * v1.log(y), axis=1))
        step = v1.train.GradientDescentOptimizer(0.05).minimize(loss)
    return _steps(v1, graph, step, x, labels, 100)


def cnn_step(v1: Any) -> Callable[[], object]:
    """Returns a call that feeds 128 pictures to a step of a convolutional network.

    5x5x32, pool, 5x5x64, pool, 1024, 10; Adam.
    """
    graph = v1.Graph()
    with graph.as_default():

        def variable(*shape: int) -> Any:
            return v1.Variable(v1.truncated_normal(list(shape), stddev=0.1, seed=1))

        x = v1.placeholder(v1.float32, [None, 784])
        labels = v1.placeholder(v1.float32, [None, 10])
        h = v1.reshape(x, [-1, 28, 28, 1])
        for taken, given in ((1, 32), (32, 64)):
            filters = variable(5, 5, taken, given)
            convolved = v1.nn.conv2d(h, filters, [1, 1, 1, 1], "SAME") + variable(given)
            h = v1.nn.max_pool(v1.nn.relu(convolved), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        h = v1.reshape(h, [-1, 7 * 7 * 64])
        h = v1.nn.relu(v1.matmul(h, variable(7 * 7 * 64, 1024)) + variable(1024))
        logits = v1.matmul(h, variable(1024, 10)) + variable(10)
        loss = v1.reduce_mean(
            v1.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        )
        step = v1.train.AdamOptimizer(1e-4).minimize(loss)
    return _steps(v1, graph, step, x, labels, 128)


def long_chain(v1: Any) -> Callable[[], object]:
    """Returns a call that builds a graph of 1000 additions, one after the other."""

    def call() -> object:
        with v1.Graph().as_default():
            total = v1.placeholder(v1.float32, [])
            for _ in range(1000):
                total = v1.add(total, total)
            return total

    return call


def deep_gradient(v1: Any) -> Callable[[], object]:
    """Returns a call that builds a network of 50 layers and its gradient."""

    def call() -> object:
        with v1.Graph().as_default():
            h = v1.placeholder(v1.float32, [None, 8])
            weights = [v1.Variable(v1.ones([8, 8])) for _ in range(50)]
            for each in weights:
                h = v1.nn.relu(v1.matmul(h, each) + 1.0)
            return v1.gradients(v1.reduce_mean(h), weights)

    return call


PROGRAMS: dict[str, Callable[[Any], Callable[[], object]]] = {
    "session_run": one_op_call,
    "mnist_softmax": softmax_step,
    "mnist_cnn": cnn_step,
    "build_chain": long_chain,
    "build_gradient": deep_gradient,
}
