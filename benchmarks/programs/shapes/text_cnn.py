"""A convolutional network over sentences after Kim (2014), whose batches are padded to their
longest sentence only: 24 batches of 32, of 6 to 52 words; widths of 3, 4 and 5, the maximum over
time, Adam."""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

BATCH, WORDS, EMBEDDING, FILTERS, LONGEST = 32, 500, 32, 32, range(6, 54, 2)


def batch(longest, random):
    """Padded sentences, of which those with more words of the lower half are of class 1."""
    words = random.randint(1, WORDS, (BATCH, longest))
    lengths = random.randint(5, longest + 1, BATCH)
    lengths[0] = longest
    words[np.arange(longest) >= lengths[:, None]] = 0
    lower = np.sum((words > 0) & (words < WORDS // 2), 1)
    return words, (2 * lower > lengths).astype(np.int32)


sentences = tf.placeholder(tf.int32, [None, None])
labels = tf.placeholder(tf.int32, [None])
with tf.variable_scope("model", initializer=weights):
    table = tf.get_variable("embeddings", [WORDS, EMBEDDING])
    embedded = tf.nn.embedding_lookup(table, sentences)
    pooled = []
    for width in (3, 4, 5):
        hidden = tf.layers.conv1d(embedded, FILTERS, width, activation=tf.nn.relu)
        pooled.append(tf.reduce_max(hidden, 1))
    logits = tf.layers.dense(tf.concat(pooled, 1), 2)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
loss = tf.reduce_mean(losses)
train_op = tf.train.AdamOptimizer(0.002).minimize(loss)

random = np.random.RandomState(1)
batches = [batch(longest, random) for longest in LONGEST]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        for words, classes in batches:
            _, value = sess.run([train_op, loss], {sentences: words, labels: classes})
        return value

    two_epochs(epoch)
