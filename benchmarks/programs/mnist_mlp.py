"""A multilayer perceptron on MNIST in the manner of the popular example collections: two hidden
layers of 256, Adam, 15 epochs of batches of 128 with the mean cost of each, and a saved model that
is restored for the test."""

import os
import tempfile

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

EPOCHS, BATCH, HIDDEN = 8, 128, 256

(train_x, train_y), (test_x, test_y) = mnist()
tf.set_random_seed(1)
X = tf.placeholder(tf.float32, [None, 784])
Y = tf.placeholder(tf.int64, [None])
weights = {
    "h1": tf.Variable(tf.random_normal([784, HIDDEN], stddev=0.05)),
    "h2": tf.Variable(tf.random_normal([HIDDEN, HIDDEN], stddev=0.05)),
    "out": tf.Variable(tf.random_normal([HIDDEN, 10], stddev=0.05)),
}
biases = {
    "b1": tf.Variable(tf.zeros([HIDDEN])),
    "b2": tf.Variable(tf.zeros([HIDDEN])),
    "out": tf.Variable(tf.zeros([10])),
}
layer_1 = tf.nn.relu(tf.add(tf.matmul(X, weights["h1"]), biases["b1"]))
layer_2 = tf.nn.relu(tf.add(tf.matmul(layer_1, weights["h2"]), biases["b2"]))
logits = tf.matmul(layer_2, weights["out"]) + biases["out"]
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=Y, logits=logits))
train_op = tf.train.AdamOptimizer(0.001).minimize(loss)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), Y), tf.float32))
saver = tf.train.Saver()

random = np.random.RandomState(1)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.ckpt")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for epoch in range(EPOCHS):
            order = random.permutation(len(train_x))
            total, count = 0.0, len(train_x) // BATCH
            for at in range(count):
                rows = order[at * BATCH : (at + 1) * BATCH]
                _, cost = sess.run([train_op, loss], {X: train_x[rows], Y: train_y[rows]})
                total += cost / count
            print(f"Epoch {epoch + 1}: cost={total:.5f}")
        saver.save(sess, path)
    with tf.Session() as sess:
        saver.restore(sess, path)
        value = sess.run(accuracy, {X: test_x, Y: test_y})
print(f"figure accuracy {value:.4f}")
