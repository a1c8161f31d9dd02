"""A convolutional network on MNIST by raw operations, in the manner of the second tutorial: two
layers of 5 x 5 convolutions with pooling, a dense layer of 1,024 with dropout, Adam at 1e-4, 150
batches of 50."""

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH = 150, 50


def weight_variable(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1))


def bias_variable(shape):
    return tf.Variable(tf.constant(0.1, shape=shape))


def conv2d(x, W):
    return tf.nn.conv2d(x, W, strides=[1, 1, 1, 1], padding="SAME")


def max_pool_2x2(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


(train_x, train_y), (test_x, test_y) = mnist()
tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 784])
y_ = tf.placeholder(tf.int64, [None])
with tf.name_scope("reshape"):
    x_image = tf.reshape(x, [-1, 28, 28, 1])
with tf.name_scope("conv1"):
    h_conv1 = tf.nn.relu(conv2d(x_image, weight_variable([5, 5, 1, 32])) + bias_variable([32]))
h_pool1 = max_pool_2x2(h_conv1)
with tf.name_scope("conv2"):
    h_conv2 = tf.nn.relu(conv2d(h_pool1, weight_variable([5, 5, 32, 64])) + bias_variable([64]))
h_pool2 = max_pool_2x2(h_conv2)
with tf.name_scope("fc1"):
    h_flat = tf.reshape(h_pool2, [-1, 7 * 7 * 64])
    h_fc1 = tf.nn.relu(
        tf.matmul(h_flat, weight_variable([7 * 7 * 64, 1024])) + bias_variable([1024])
    )
keep_prob = tf.placeholder(tf.float32)
h_drop = tf.nn.dropout(h_fc1, keep_prob=keep_prob)
with tf.name_scope("fc2"):
    y_conv = tf.matmul(h_drop, weight_variable([1024, 10])) + bias_variable([10])
cross_entropy = tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_, logits=y_conv)
)
train_step = tf.train.AdamOptimizer(1e-4).minimize(cross_entropy)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y_conv, 1), y_), tf.float32))

random = np.random.RandomState(1)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS):
        rows = random.randint(0, len(train_x), BATCH)
        feed = {x: train_x[rows], y_: train_y[rows]}
        if step % 50 == 0:
            print("step", step, "accuracy", sess.run(accuracy, {**feed, keep_prob: 1.0}))
        sess.run(train_step, {**feed, keep_prob: 0.5})
    value = sess.run(accuracy, {x: test_x[:2000], y_: test_y[:2000], keep_prob: 1.0})
print(f"figure accuracy {value:.4f}")
