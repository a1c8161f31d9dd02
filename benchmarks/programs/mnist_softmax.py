"""Softmax regression on MNIST in the manner of the first tutorial: one matrix, plain gradient
descent, 3,000 batches of 100 by ``feed_dict``."""

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH = 3000, 100

(train_x, train_y), (test_x, test_y) = mnist()
one_hot = np.eye(10, dtype=np.float32)

x = tf.placeholder(tf.float32, [None, 784])
y_ = tf.placeholder(tf.float32, [None, 10])
W = tf.Variable(tf.zeros([784, 10]))
b = tf.Variable(tf.zeros([10]))
y = tf.matmul(x, W) + b
cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

random = np.random.RandomState(1)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS):
        rows = random.randint(0, len(train_x), BATCH)
        feed = {x: train_x[rows], y_: one_hot[train_y[rows]]}
        if step % 500 == 0:
            print("step", step, "accuracy", sess.run(accuracy, feed))
        sess.run(train_step, feed)
    value = sess.run(accuracy, {x: test_x, y_: one_hot[test_y]})
print(f"figure accuracy {value:.4f}")
