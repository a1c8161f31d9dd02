"""A variational autoencoder on MNIST in the manner of the popular implementations: 500 and 500
units to each side of a code of 20, three epochs of batches of 100, and samples of the prior."""

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

EPOCHS, BATCH, HIDDEN, CODE = 3, 100, 500, 20


def layers(x, *sizes):
    for size in sizes:
        x = tf.layers.dense(x, size, activation=tf.nn.softplus)
    return x


(train_x, _), (test_x, _) = mnist()
tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 784])
h = layers(x, HIDDEN, HIDDEN)
mean, log_variance = tf.layers.dense(h, CODE), tf.layers.dense(h, CODE)
epsilon = tf.random_normal(tf.shape(mean))
z = mean + tf.sqrt(tf.exp(log_variance)) * epsilon
logits = tf.layers.dense(layers(z, HIDDEN, HIDDEN), 784)
decoded = tf.sigmoid(logits)
reconstruction = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
divergence = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), 1)
cost = tf.reduce_mean(reconstruction + divergence)
train_op = tf.train.AdamOptimizer(0.001).minimize(cost)

random = np.random.RandomState(1)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        order = random.permutation(len(train_x))
        total = 0.0
        for at in range(0, len(order), BATCH):
            _, value = sess.run([train_op, cost], {x: train_x[order[at : at + BATCH]]})
            total += value * BATCH / len(order)
        print(f"Epoch: {epoch + 1} cost= {total:.4f}")
    print("samples", sess.run(decoded, {z: random.randn(20, CODE)}).shape)
    value = sess.run(cost, {x: test_x})
print(f"figure cost {value:.4f}")
