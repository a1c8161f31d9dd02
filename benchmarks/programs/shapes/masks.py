"""Losses of some of the rows, as detectors and masked language models have them: 24 batches of 64
rows, of which ``tf.boolean_mask`` keeps those that have a class, and ``tf.where`` with
``tf.gather_nd`` the few that have a box, another number of them in each batch; Adam."""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

BATCH, WIDTH, CLASSES, STEPS, NONE = 64, 24, 6, 24, -1


def batch(step, random):
    """Features, classes (of which -1 is none and 0 the background) and boxes."""
    features = random.randn(BATCH, WIDTH).astype(np.float32)
    classes = np.argmax(features[:, :CLASSES], 1)
    classes[random.permutation(BATCH)[: 2 * step + 1]] = NONE
    return features, classes, features[:, :4] * features[:, 4:5]


features = tf.placeholder(tf.float32, [None, WIDTH])
classes = tf.placeholder(tf.int32, [None])
boxes = tf.placeholder(tf.float32, [None, 4])
with tf.variable_scope("model", initializer=weights):
    hidden = tf.layers.dense(features, 64, activation=tf.nn.relu)
    logits = tf.layers.dense(hidden, CLASSES)
    guesses = tf.layers.dense(hidden, 4)
known = tf.not_equal(classes, NONE)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
    labels=tf.boolean_mask(classes, known), logits=tf.boolean_mask(logits, known)
)
objects = tf.where(classes > 0)
distance = tf.abs(tf.gather_nd(guesses, objects) - tf.gather_nd(boxes, objects))
smooth = tf.where(distance < 1.0, 0.5 * tf.square(distance), distance - 0.5)
loss = tf.reduce_mean(losses) + tf.reduce_mean(tf.reduce_sum(smooth, 1))
train_op = tf.train.AdamOptimizer(0.005).minimize(loss)

random = np.random.RandomState(1)
batches = [batch(step, random) for step in range(STEPS)]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    def epoch():
        for each in batches:
            feed = dict(zip((features, classes, boxes), each, strict=True))
            _, value = sess.run([train_op, loss], feed)
        return value

    two_epochs(epoch)
