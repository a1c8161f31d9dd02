"""A sequence tagger, BiLSTM and a linear-chain CRF (Huang et al. 2015), with the CRF written by
``tf.scan``.

The words of "Alice" are given without capitals and marks, the tags to guess are capital, comma,
another mark or none. Embeddings of 64, an LSTM of 64 each way, log-likelihood by the forward
algorithm, Adam; 2 passes in batches of 20 with Viterbi decoding in NumPy on 200 held-out
sentences after each, as the scripts with ``viterbi_decode`` do.
"""

import numpy as np
from texts import punctuated

import estimatorkit.compat.v1 as tf

TAGS, EMBEDDING, HIDDEN, BATCH, EPOCHS = 4, 64, 64, 20, 2


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


def viterbi_decode(score, transitions):
    """The best sequence of tags for one sentence."""
    trellis = np.zeros_like(score)
    back = np.zeros_like(score, dtype=np.int32)
    trellis[0] = score[0]
    for t in range(1, len(score)):
        v = np.expand_dims(trellis[t - 1], 1) + transitions
        trellis[t] = score[t] + np.max(v, 0)
        back[t] = np.argmax(v, 0)
    path = [np.argmax(trellis[-1])]
    for pointers in reversed(back[1:]):
        path.append(pointers[path[-1]])
    return path[::-1]


words, tags, lengths, vocabulary = punctuated()
np.random.seed(1)
tf.set_random_seed(1)
word_ids = tf.placeholder(tf.int32, [None, None], name="word_ids")
labels = tf.placeholder(tf.int32, [None, None], name="labels")
sequence_lengths = tf.placeholder(tf.int32, [None], name="sequence_lengths")
dropout = tf.placeholder(tf.float32, [], name="dropout")
with tf.variable_scope("words"):
    table = tf.get_variable("embeddings", [vocabulary, EMBEDDING])
    embedded = tf.nn.dropout(tf.nn.embedding_lookup(table, word_ids), dropout)
with tf.variable_scope("bi-lstm"):
    (forward_output, backward_output), _ = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.LSTMCell(HIDDEN),
        tf.nn.rnn_cell.LSTMCell(HIDDEN),
        embedded,
        sequence_length=sequence_lengths,
        dtype=tf.float32,
    )
    output = tf.nn.dropout(tf.concat([forward_output, backward_output], -1), dropout)
with tf.variable_scope("proj"):
    w = tf.get_variable("W", [2 * HIDDEN, TAGS], dtype=tf.float32)
    b = tf.get_variable("b", [TAGS], dtype=tf.float32, initializer=tf.zeros_initializer())
    steps = tf.shape(output)[1]
    flat = tf.matmul(tf.reshape(output, [-1, 2 * HIDDEN]), w) + b
    logits = tf.reshape(flat, [-1, steps, TAGS])
with tf.variable_scope("crf"):
    transitions = tf.get_variable("transitions", [TAGS, TAGS])
    score = sequence_score(logits, labels, sequence_lengths, transitions)
    likelihood = score - log_norm(logits, sequence_lengths, transitions)
loss = tf.reduce_mean(-likelihood)
train_op = tf.train.AdamOptimizer(0.005).minimize(loss)


def minibatches(rows):
    """Batches as wide as their longest sentence."""
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        width = lengths[part].max()
        yield {
            word_ids: words[part, :width],
            labels: tags[part, :width],
            sequence_lengths: lengths[part],
        }


train_rows, test_rows = np.arange(200, len(words)), np.arange(200)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        np.random.shuffle(train_rows)
        for step, feed in enumerate(minibatches(train_rows)):
            _, value = sess.run([train_op, loss], {**feed, dropout: 0.5})
            if step % 20 == 0:
                print(f"epoch {epoch + 1}, step {step}: loss {value:.4f}")
        right = total = 0
        for feed in minibatches(test_rows):
            scores, matrix = sess.run([logits, transitions], {**feed, dropout: 1.0})
            for row, truth, length in zip(
                scores, feed[labels], feed[sequence_lengths], strict=True
            ):
                path = viterbi_decode(row[:length], matrix)
                right += np.sum(path == truth[:length])
                total += length
        print(f"epoch {epoch + 1}: accuracy {right / total:.4f}")
print(f"figure accuracy {right / total:.4f}")
