"""An LSTM of 32 units by ``tf.nn.dynamic_rnn`` over batches as long as their longest sequence: 24
batches of 16, of 5 to 28 steps, each length once, trained by Adam."""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

BATCH, WIDTH, UNITS, LENGTHS = 16, 8, 32, range(5, 29)


def batch(length, random):
    """Sequences, their lengths, and what the last state shall be."""
    sequences = random.rand(BATCH, length, WIDTH).astype(np.float32)
    lengths = random.randint(1, length + 1, BATCH).astype(np.int32)
    return sequences, lengths, random.rand(BATCH, UNITS).astype(np.float32)


x = tf.placeholder(tf.float32, [BATCH, None, WIDTH])
lengths = tf.placeholder(tf.int32, [BATCH])
y = tf.placeholder(tf.float32, [BATCH, UNITS])
with tf.variable_scope("model", initializer=weights):
    cell = tf.nn.rnn_cell.LSTMCell(UNITS)
    outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)
loss = tf.reduce_mean(tf.square(state.h - y))
train_op = tf.train.AdamOptimizer(0.01).minimize(loss)

random = np.random.RandomState(1)
batches = [batch(length, random) for length in LENGTHS]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        for each in batches:
            feed = dict(zip((x, lengths, y), each, strict=True))
            _, value = sess.run([train_op, loss], feed)
        return value

    two_epochs(epoch)
