"""An embedding of MNIST with online triplet mining, in the manner of the popular estimator
project: a small CNN, the batch-all loss by masks over all triplets of a batch of 64, 100 steps,
and the accuracy of the nearest class mean."""

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH, MARGIN = 100, 64, 0.5


def distances(embeddings):
    """Squared distances of all pairs."""
    products = tf.matmul(embeddings, tf.transpose(embeddings))
    norms = tf.diag_part(products)
    found = tf.expand_dims(norms, 0) - 2.0 * products + tf.expand_dims(norms, 1)
    return tf.maximum(found, 0.0)


def triplet_mask(labels):
    """Which (anchor, positive, negative) are three pictures of two classes."""
    different = tf.logical_not(tf.cast(tf.eye(tf.shape(labels)[0]), tf.bool))
    distinct = tf.logical_and(
        tf.logical_and(tf.expand_dims(different, 2), tf.expand_dims(different, 1)),
        tf.expand_dims(different, 0),
    )
    equal = tf.equal(tf.expand_dims(labels, 0), tf.expand_dims(labels, 1))
    valid = tf.logical_and(tf.expand_dims(equal, 2), tf.logical_not(tf.expand_dims(equal, 1)))
    return tf.logical_and(distinct, valid)


def batch_all_triplet_loss(labels, embeddings):
    pairs = distances(embeddings)
    loss = tf.expand_dims(pairs, 2) - tf.expand_dims(pairs, 1) + MARGIN
    mask = tf.cast(triplet_mask(labels), tf.float32)
    loss = tf.maximum(tf.multiply(mask, loss), 0.0)
    positive = tf.reduce_sum(tf.cast(tf.greater(loss, 1e-16), tf.float32))
    return tf.reduce_sum(loss) / (positive + 1e-16), positive / (tf.reduce_sum(mask) + 1e-16)


(train_x, train_y), (test_x, test_y) = mnist()
tf.set_random_seed(1)
images = tf.placeholder(tf.float32, [None, 28, 28, 1])
labels = tf.placeholder(tf.int32, [None])
training = tf.placeholder_with_default(False, [])
out = images
for channels in (32, 64):
    out = tf.layers.conv2d(out, channels, 3, padding="same")
    out = tf.nn.relu(tf.layers.batch_normalization(out, momentum=0.9, training=training))
    out = tf.layers.max_pooling2d(out, 2, 2)
embeddings = tf.layers.dense(tf.reshape(out, [-1, 7 * 7 * 64]), 64)
embeddings = tf.nn.l2_normalize(embeddings, axis=1)
loss, fraction = batch_all_triplet_loss(labels, embeddings)
global_step = tf.train.get_or_create_global_step()
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=global_step)

random = np.random.RandomState(1)
train_x, test_x = train_x.reshape(-1, 28, 28, 1), test_x.reshape(-1, 28, 28, 1)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS):
        rows = random.randint(0, len(train_x), BATCH)
        feed = {images: train_x[rows], labels: train_y[rows], training: True}
        _, value, part = sess.run([train_op, loss, fraction], feed)
        if step % 20 == 0:
            print(f"step {step}: loss {value:.4f}, positive triplets {part:.4f}")
    known = sess.run(embeddings, {images: train_x[:1000]})
    found = sess.run(embeddings, {images: test_x[:1000]})
means = np.stack([known[train_y[:1000] == number].mean(0) for number in range(10)])
guesses = (found @ means.T).argmax(1)
print(f"figure accuracy {np.mean(guesses == test_y[:1000]):.4f}")
