"""MNIST with summaries in the manner of the TensorBoard tutorial: mean, deviation, extremes and
histograms of weights, biases and activations, merged and written at each of 300 steps, and a test
every ten."""

import os
import tempfile

import numpy as np
from data import mnist

import estimatorkit.compat.v1 as tf

STEPS, BATCH = 300, 100


def variable_summaries(var):
    with tf.name_scope("summaries"):
        mean = tf.reduce_mean(var)
        tf.summary.scalar("mean", mean)
        with tf.name_scope("stddev"):
            stddev = tf.sqrt(tf.reduce_mean(tf.square(var - mean)))
        tf.summary.scalar("stddev", stddev)
        tf.summary.scalar("max", tf.reduce_max(var))
        tf.summary.scalar("min", tf.reduce_min(var))
        tf.summary.histogram("histogram", var)


def nn_layer(inputs, input_dim, output_dim, layer_name, act=tf.nn.relu):
    with tf.name_scope(layer_name):
        with tf.name_scope("weights"):
            weights = tf.Variable(tf.truncated_normal([input_dim, output_dim], stddev=0.1))
            variable_summaries(weights)
        with tf.name_scope("biases"):
            biases = tf.Variable(tf.constant(0.1, shape=[output_dim]))
            variable_summaries(biases)
        with tf.name_scope("Wx_plus_b"):
            preactivate = tf.matmul(inputs, weights) + biases
            tf.summary.histogram("pre_activations", preactivate)
        activations = act(preactivate, name="activation")
        tf.summary.histogram("activations", activations)
        return activations


(train_x, train_y), (test_x, test_y) = mnist()
tf.set_random_seed(1)
with tf.name_scope("input"):
    x = tf.placeholder(tf.float32, [None, 784], name="x-input")
    y_ = tf.placeholder(tf.int64, [None], name="y-input")
with tf.name_scope("input_reshape"):
    tf.summary.image("input", tf.reshape(x, [-1, 28, 28, 1]), 10)
hidden1 = nn_layer(x, 784, 500, "layer1")
with tf.name_scope("dropout"):
    keep_prob = tf.placeholder(tf.float32)
    tf.summary.scalar("dropout_keep_probability", keep_prob)
    dropped = tf.nn.dropout(hidden1, keep_prob)
y = nn_layer(dropped, 500, 10, "layer2", act=tf.identity)
with tf.name_scope("cross_entropy"):
    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=y_, logits=y)
tf.summary.scalar("cross_entropy", cross_entropy)
with tf.name_scope("train"):
    train_step = tf.train.AdamOptimizer(0.001).minimize(cross_entropy)
with tf.name_scope("accuracy"):
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y, 1), y_), tf.float32))
tf.summary.scalar("accuracy", accuracy)
merged = tf.summary.merge_all()

random = np.random.RandomState(1)
with tempfile.TemporaryDirectory() as folder, tf.Session() as sess:
    train_writer = tf.summary.FileWriter(os.path.join(folder, "train"), sess.graph)
    test_writer = tf.summary.FileWriter(os.path.join(folder, "test"))
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS):
        if step % 10 == 0:
            feed = {x: test_x[:2000], y_: test_y[:2000], keep_prob: 1.0}
            summary, value = sess.run([merged, accuracy], feed)
            test_writer.add_summary(summary, step)
            if step % 50 == 0:
                print(f"Accuracy at step {step}: {value}")
        else:
            rows = random.randint(0, len(train_x), BATCH)
            feed = {x: train_x[rows], y_: train_y[rows], keep_prob: 0.9}
            summary, _ = sess.run([merged, train_step], feed)
            train_writer.add_summary(summary, step)
    train_writer.close()
    test_writer.close()
print(f"figure accuracy {value:.4f}")
