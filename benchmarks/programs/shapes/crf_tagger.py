"""A sequence tagger, BiLSTM and a linear-chain CRF by ``tf.scan`` (Huang et al. 2015), over batches
as wide as their longest sentence: 16 batches of 20, of 5 to 35 words; Adam."""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

BATCH, WORDS, TAGS, EMBEDDING, HIDDEN, WIDTHS = 20, 200, 4, 32, 32, range(5, 37, 2)


def batch(width, random):
    """Sentences, whose tags follow from a word and the word before it, and their lengths."""
    words = random.randint(1, WORDS, (BATCH, width))
    tags = (words + np.pad(words, [(0, 0), (1, 0)])[:, :-1]) % TAGS
    return words, tags, random.randint(3, width + 1, BATCH)


def sequence_score(scores, tags, lengths, transitions):
    """The score of the given tags: their unary scores and the transitions between them."""
    length = tf.shape(scores)[1]
    mask = tf.sequence_mask(lengths, length, tf.float32)
    unary = tf.reduce_sum(scores * tf.one_hot(tags, TAGS), 2) * mask
    pairs = tf.gather(tf.reshape(transitions, [-1]), tags[:, :-1] * TAGS + tags[:, 1:])
    return tf.reduce_sum(unary, 1) + tf.reduce_sum(pairs * mask[:, 1:], 1)


def log_norm(scores, lengths, transitions):
    """The logarithm of the sum over all sequences of tags, by the forward algorithm."""
    by_time = tf.transpose(scores, [1, 0, 2])

    def forward(before, current):
        alpha, time = before[0], before[1] + 1
        step = tf.expand_dims(alpha, 2) + tf.expand_dims(transitions, 0)
        new = tf.reduce_logsumexp(step, 1) + current
        keep = tf.tile(tf.expand_dims(time < lengths, 1), [1, TAGS])
        return tf.where(keep, new, alpha), time

    alphas, _ = tf.scan(forward, by_time[1:], initializer=(by_time[0], tf.constant(0)))
    return tf.reduce_logsumexp(alphas[-1], 1)


word_ids = tf.placeholder(tf.int32, [None, None])
labels = tf.placeholder(tf.int32, [None, None])
sequence_lengths = tf.placeholder(tf.int32, [None])
with tf.variable_scope("model", initializer=weights):
    table = tf.get_variable("embeddings", [WORDS, EMBEDDING])
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.LSTMCell(HIDDEN),
        tf.nn.rnn_cell.LSTMCell(HIDDEN),
        tf.nn.embedding_lookup(table, word_ids),
        sequence_length=sequence_lengths,
        dtype=tf.float32,
    )
    logits = tf.layers.dense(tf.concat(outputs, 2), TAGS)
    transitions = tf.get_variable("transitions", [TAGS, TAGS])
score = sequence_score(logits, labels, sequence_lengths, transitions)
loss = tf.reduce_mean(log_norm(logits, sequence_lengths, transitions) - score)
train_op = tf.train.AdamOptimizer(0.005).minimize(loss)

random = np.random.RandomState(1)
batches = [batch(width, random) for width in WIDTHS]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        for each in batches:
            feed = dict(zip((word_ids, labels, sequence_lengths), each, strict=True))
            _, value = sess.run([train_op, loss], feed)
        return value

    two_epochs(epoch)
