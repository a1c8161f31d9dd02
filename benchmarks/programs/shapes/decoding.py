"""Greedy decoding without a cache: a Transformer's decoder of two layers reads a prefix of 1 to 40
symbols, fed at each step, and says which symbol follows; nothing is trained.

The loss is the mean negative logarithm of the probabilities of the symbols that were taken.
"""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

SYMBOLS, WIDTH, HEADS, INNER, LAYERS, ROWS, LONGEST = 60, 32, 4, 64, 2, 4, 40


def normalize(values, name):
    with tf.variable_scope(name):
        mean, variance = tf.nn.moments(values, [-1], keep_dims=True)
        beta = tf.get_variable("beta", [WIDTH], initializer=tf.zeros_initializer())
        gamma = tf.get_variable("gamma", [WIDTH], initializer=tf.ones_initializer())
        return gamma * (values - mean) * tf.rsqrt(variance + 1e-6) + beta


def heads(values, name):
    """[rows, heads, length, width of a head]"""
    values = tf.layers.dense(values, WIDTH, use_bias=False, name=name)
    shape = tf.shape(values)
    parts = tf.reshape(values, [shape[0], shape[1], HEADS, WIDTH // HEADS])
    return tf.transpose(parts, [0, 2, 1, 3])


def self_attention(values):
    query, key, value = (heads(values, name) for name in ("query", "key", "value"))
    scores = tf.matmul(query, key, transpose_b=True) / (WIDTH // HEADS) ** 0.5
    length = tf.shape(values)[1]
    before = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
    mixed = tf.matmul(tf.nn.softmax(scores + (1.0 - before) * -1e9), value)
    joined = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, length, WIDTH])
    return tf.layers.dense(joined, WIDTH, use_bias=False, name="joined")


prefix = tf.placeholder(tf.int32, [None, None])
with tf.variable_scope("model", initializer=weights):
    table = tf.get_variable("symbols", [SYMBOLS, WIDTH])
    places = tf.get_variable("places", [LONGEST, WIDTH])
    values = tf.nn.embedding_lookup(table, prefix) + places[: tf.shape(prefix)[1]]
    for layer in range(LAYERS):
        with tf.variable_scope(f"layer_{layer}"):
            values = normalize(values + self_attention(values), "after_attention")
            inner = tf.layers.dense(values, INNER, activation=tf.nn.relu, name="inner")
            values = normalize(values + tf.layers.dense(inner, WIDTH, name="outer"), "after_inner")
    logits = tf.matmul(values[:, -1], table, transpose_b=True)
following = tf.argmax(logits, 1, output_type=tf.int32)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=following, logits=logits)
loss = tf.reduce_mean(losses)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        symbols = np.arange(ROWS, dtype=np.int32)[:, None]
        total = 0.0
        while symbols.shape[1] <= LONGEST:
            found, value = sess.run([following, loss], {prefix: symbols})
            symbols = np.concatenate([symbols, found[:, None]], 1)
            total += value
        return total / LONGEST

    two_epochs(epoch)
