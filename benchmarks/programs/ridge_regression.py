"""Linear regression by raw operations, in the manner of the first examples of many collections:
weight decay, full batches of a table of houses, 2,000 steps with the cost every 100."""

import os

import numpy as np

import estimatorkit.compat.v1 as tf

path = os.path.join(os.environ["ESTIMATORKIT_DATA_DIR"], "boston", "housing.data")
table = np.loadtxt(path).astype(np.float32)
features = (table[:, :-1] - table[:, :-1].mean(0)) / table[:, :-1].std(0)
prices = table[:, -1:]

X = tf.placeholder(tf.float32, [None, 13], name="X")
Y = tf.placeholder(tf.float32, [None, 1], name="Y")
W = tf.Variable(tf.zeros([13, 1]), name="weight")
b = tf.Variable(0.0, name="bias")
predicted = tf.matmul(X, W) + b
cost = tf.reduce_mean(tf.square(predicted - Y)) + 0.1 * tf.nn.l2_loss(W)
optimizer = tf.train.GradientDescentOptimizer(0.05).minimize(cost)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(3000):
        sess.run(optimizer, {X: features, Y: prices})
        if (epoch + 1) % 100 == 0:
            value = sess.run(cost, {X: features, Y: prices})
            print(f"Epoch: {epoch + 1:04d} cost={value:.9f} b={sess.run(b):.4f}")
print(f"figure cost {value:.4f}")
