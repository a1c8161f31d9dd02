"""An encoder and a decoder, LSTMs of 32 units by ``tf.nn.dynamic_rnn``, with attention after Luong
et al. (2015): 24 batches of 16, whose sources have 6 to 29 steps and whose targets have 4 to 26, in
24 pairs; Adam."""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

BATCH, SYMBOLS, EMBEDDING, UNITS = 16, 20, 16, 32
PAIRS = [(6 + step, 4 + 7 * step % 23) for step in range(24)]


def batch(source_length, target_length, random):
    """Sources and their lengths, targets and their lengths: symbol 1 + number of the source."""
    rows = random.randint(2, SYMBOLS, (BATCH, max(source_length, target_length)))
    source_lengths = random.randint(2, source_length + 1, BATCH)
    target_lengths = random.randint(2, target_length + 1, BATCH)
    return rows[:, :source_length], source_lengths, rows[:, :target_length], target_lengths


source = tf.placeholder(tf.int32, [None, None])
source_lengths = tf.placeholder(tf.int32, [None])
target = tf.placeholder(tf.int32, [None, None])
target_lengths = tf.placeholder(tf.int32, [None])
with tf.variable_scope("model", initializer=weights):
    table = tf.get_variable("symbols", [SYMBOLS, EMBEDDING])
    with tf.variable_scope("encoder"):
        memory, state = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.LSTMCell(UNITS),
            tf.nn.embedding_lookup(table, source),
            sequence_length=source_lengths,
            dtype=tf.float32,
        )
    with tf.variable_scope("decoder"):
        before = tf.concat([tf.ones_like(target[:, :1]), target[:, :-1]], 1)
        output, _ = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.LSTMCell(UNITS),
            tf.nn.embedding_lookup(table, before),
            sequence_length=target_lengths,
            initial_state=state,
        )
    with tf.variable_scope("attention"):
        keys = tf.layers.dense(memory, UNITS, use_bias=False, name="keys")
        scores = tf.matmul(output, keys, transpose_b=True)
        seen = tf.expand_dims(tf.sequence_mask(source_lengths, tf.shape(source)[1]), 1)
        scores += (1.0 - tf.cast(seen, tf.float32)) * -1e9
        context = tf.matmul(tf.nn.softmax(scores), memory)
        joined = tf.concat([output, context], 2)
        hidden = tf.layers.dense(joined, UNITS, activation=tf.tanh, name="hidden")
    logits = tf.layers.dense(hidden, SYMBOLS, name="logits")
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
mask = tf.sequence_mask(target_lengths, tf.shape(target)[1], tf.float32)
loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
train_op = tf.train.AdamOptimizer(0.005).minimize(loss)

random = np.random.RandomState(1)
batches = [batch(*pair, random) for pair in PAIRS]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        for each in batches:
            feed = dict(zip((source, source_lengths, target, target_lengths), each, strict=True))
            _, value = sess.run([train_op, loss], feed)
        return value

    two_epochs(epoch)
