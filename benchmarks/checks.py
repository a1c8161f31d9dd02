"""What the checks of values cost: `Session.run` of training steps, with and without them.

Each program is built twice in one process, once under ESTIMATORKIT_CHECKS=0 when it is compiled.
Blocks of steps alternate, and the figure is the median of the blocks' ratios:

    PYTHONPATH=. python benchmarks/checks.py [NAME ...]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import estimatorkit.compat.v1 as tf
from benchmarks.census_program import census, columns as census_columns

BLOCKS = 60
BLOCK_SECS = 0.1

Step = Callable[[], Any]
RANDOM = np.random.default_rng(0)


def _fed(loss: Any, optimizer: Any, feeds: dict[Any, Any]) -> Step:
    """A step by `feed_dict`, whose loss is fetched."""
    train = optimizer.minimize(loss)
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    return lambda: session.run([train, loss], feeds)


def iris() -> Step:
    x, y = tf.placeholder(tf.float32, [32, 4]), tf.placeholder(tf.int64, [32])
    hidden = x
    for _ in range(2):
        hidden = tf.layers.dense(hidden, 10, tf.nn.relu)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(hidden, 3))
    feeds = {x: RANDOM.normal(size=(32, 4)), y: RANDOM.integers(0, 3, 32)}
    return _fed(loss, tf.train.AdagradOptimizer(0.05), feeds)


def census_wide_deep() -> Step:
    features, labels = census()
    rows = tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(128)
    batch, y = rows.make_one_shot_iterator().get_next()
    linear, deep = census_columns(tf)
    net = tf.feature_column.input_layer(batch, deep)
    for width in (100, 75, 50, 25):
        net = tf.layers.dense(net, width, tf.nn.relu)
    logits = tf.layers.dense(net, 1) + tf.feature_column.linear_model(batch, linear)
    loss = tf.losses.sigmoid_cross_entropy(tf.reshape(y, [-1, 1]), logits)
    return _fed(loss, tf.train.AdagradOptimizer(0.05), {})


def word2vec() -> Step:
    words, size = 50_000, 128
    x, y = tf.placeholder(tf.int32, [128]), tf.placeholder(tf.int32, [128, 1])
    table = tf.get_variable("table", [words, size])
    weights, biases = tf.get_variable("weights", [words, size]), tf.get_variable("biases", [words])
    rows = tf.nn.embedding_lookup(table, x)
    loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, y, rows, 64, words))
    feeds = {x: RANDOM.integers(0, words, 128), y: RANDOM.integers(0, words, (128, 1))}
    return _fed(loss, tf.train.GradientDescentOptimizer(1.0), feeds)


def criteo() -> Step:
    ids, numbers = tf.placeholder(tf.int64, [2048, 26]), tf.placeholder(tf.float32, [2048, 13])
    y = tf.placeholder(tf.float32, [2048, 1])
    sizes = [int(10 ** (1 + 4 * number / 25)) for number in range(26)]  # 10 to 100,000
    tables = [tf.get_variable(f"table_{n}", [size, 16]) for n, size in enumerate(sizes)]
    looked = [tf.nn.embedding_lookup(table, ids[:, n]) for n, table in enumerate(tables)]
    net = tf.concat([*looked, numbers], 1)
    for width in (256, 128):
        net = tf.layers.dense(net, width, tf.nn.relu)
    loss = tf.losses.sigmoid_cross_entropy(y, tf.layers.dense(net, 1))
    drawn = np.stack([RANDOM.integers(0, size, 2048) for size in sizes], 1)
    feeds = {ids: drawn, numbers: RANDOM.normal(size=(2048, 13)), y: RANDOM.random((2048, 1)) > 0.5}
    return _fed(loss, tf.train.AdagradOptimizer(0.05), feeds)


def text_lstm() -> Step:
    words, y = tf.placeholder(tf.int32, [32, 50]), tf.placeholder(tf.int64, [32])
    lengths = tf.placeholder(tf.int32, [32])
    rows = tf.nn.embedding_lookup(tf.get_variable("table", [20_000, 64]), words)
    cell = tf.nn.rnn_cell.LSTMCell(64)
    _, (_, last) = tf.nn.dynamic_rnn(cell, rows, lengths, dtype=tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(last, 2))
    feeds = {
        words: RANDOM.integers(0, 20_000, (32, 50)),
        lengths: RANDOM.integers(1, 51, 32),
        y: RANDOM.integers(0, 2, 32),
    }
    return _fed(loss, tf.train.AdamOptimizer(), feeds)


PROGRAMS = {each.__name__: each for each in (iris, census_wide_deep, word2vec, criteo, text_lstm)}


def _seconds(step: Step, count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        step()
    return time.perf_counter() - started


def compare(program: Callable[[], Step]) -> str:
    """The time of a step without checks, and the cost of checks."""
    steps = []
    for checks in "01":
        os.environ["ESTIMATORKIT_CHECKS"] = checks
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            steps.append(program())
        _seconds(steps[-1], 20)  # compiled
    count = max(1, int(BLOCK_SECS / _seconds(steps[0], 50) * 50))
    blocks = []
    for number in range(BLOCKS):
        order = (0, 1) if number % 2 else (1, 0)
        times = {which: _seconds(steps[which], count) / count for which in order}
        blocks.append([times[0], times[1]])
    found = np.array(blocks)
    ratios = found[:, 1] / found[:, 0]
    low, middle, high = np.percentile(ratios - 1, [25, 50, 75]) * 100
    without = np.median(found[:, 0]) * 1e6
    return f"{without:9.1f} us  {middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        print(f"{name:18}{compare(PROGRAMS[name])}", flush=True)


if __name__ == "__main__":
    main()
