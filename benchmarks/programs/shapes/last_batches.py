"""A multi-layer perceptron on data sets of many sizes, whose last batches are smaller than the
others, each by another number: 20 sets of 4 batches of 32 and a rest, read by an iterator that is
initialized anew for each; Adam."""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

BATCH, WIDTH, CLASSES = 32, 20, 5
SIZES = [4 * BATCH + 1 + 11 * number % 31 for number in range(20)]


def examples(size, random):
    """Features, and the classes that a matrix finds in them."""
    features = random.randn(size, WIDTH).astype(np.float32)
    return features, np.argmax(features @ separating, 1).astype(np.int32)


random = np.random.RandomState(1)
separating = random.randn(WIDTH, CLASSES)
sets = [examples(size, random) for size in SIZES]
all_features = tf.placeholder(tf.float32, [None, WIDTH])
all_labels = tf.placeholder(tf.int32, [None])
dataset = tf.data.Dataset.from_tensor_slices((all_features, all_labels)).batch(BATCH)
iterator = tf.data.make_initializable_iterator(dataset)
features, labels = iterator.get_next()
with tf.variable_scope("model", initializer=weights):
    hidden = tf.layers.dense(features, 64, activation=tf.nn.relu)
    hidden = tf.layers.dense(hidden, 32, activation=tf.nn.relu)
    logits = tf.layers.dense(hidden, CLASSES)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
loss = tf.reduce_mean(losses)
train_op = tf.train.AdamOptimizer(0.005).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        for each in sets:
            feed = dict(zip((all_features, all_labels), each, strict=True))
            sess.run(iterator.initializer, feed)
            while True:
                try:
                    _, value = sess.run([train_op, loss])
                except tf.errors.OutOfRangeError:
                    break
        return value

    two_epochs(epoch)
