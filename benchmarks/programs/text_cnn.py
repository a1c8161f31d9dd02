"""A convolutional network over sentences after Kim (2014), as the well-known TensorFlow script
trains it.

Embedding of 128, filters of 3, 4 and 5 words with 128 channels each, max-pooling over time,
dropout and l2 on the movie reviews, in batches of 64 for 12 steps. A summary at each step holds
the loss, the accuracy, and for every gradient a histogram and the fraction of zeros; every 6
steps the development set is evaluated and a checkpoint saved.
"""

import datetime
import os
import tempfile

import numpy as np
from texts import sentences

import estimatorkit.compat.v1 as tf

EMBEDDING, SIZES, FILTERS, BATCH, STEPS, EVERY = 128, (3, 4, 5), 128, 64, 12, 6


class TextCNN:
    """The network: words to embeddings, convolutions, pooling and a linear layer."""

    def __init__(self, length, classes, vocabulary, l2_lambda=0.0):
        self.input_x = tf.placeholder(tf.int32, [None, length], name="input_x")
        self.input_y = tf.placeholder(tf.float32, [None, classes], name="input_y")
        self.keep_prob = tf.placeholder(tf.float32, name="dropout_keep_prob")
        l2_loss = tf.constant(0.0)
        with tf.device("/cpu:0"), tf.name_scope("embedding"):
            self.table = tf.Variable(
                tf.random_uniform([vocabulary, EMBEDDING], -1.0, 1.0), name="W"
            )
            embedded = tf.expand_dims(tf.nn.embedding_lookup(self.table, self.input_x), -1)
        pooled = []
        for size in SIZES:
            with tf.name_scope(f"conv-maxpool-{size}"):
                shape = [size, EMBEDDING, 1, FILTERS]
                kernel = tf.Variable(tf.truncated_normal(shape, stddev=0.1), name="W")
                bias = tf.Variable(tf.constant(0.1, shape=[FILTERS]), name="b")
                conv = tf.nn.conv2d(
                    embedded, kernel, strides=[1, 1, 1, 1], padding="VALID", name="conv"
                )
                hidden = tf.nn.relu(tf.nn.bias_add(conv, bias), name="relu")
                window = [1, length - size + 1, 1, 1]
                pooled.append(
                    tf.nn.max_pool(
                        hidden, window, strides=[1, 1, 1, 1], padding="VALID", name="pool"
                    )
                )
        total = FILTERS * len(SIZES)
        flat = tf.reshape(tf.concat(pooled, 3), [-1, total])
        with tf.name_scope("dropout"):
            dropped = tf.nn.dropout(flat, self.keep_prob)
        with tf.name_scope("output"):
            w = tf.get_variable("W", [total, classes], initializer=tf.glorot_uniform_initializer())
            b = tf.Variable(tf.constant(0.1, shape=[classes]), name="b")
            l2_loss += tf.nn.l2_loss(w) + tf.nn.l2_loss(b)
            self.scores = tf.nn.xw_plus_b(dropped, w, b, name="scores")
            predictions = tf.argmax(self.scores, 1, name="predictions")
        with tf.name_scope("loss"):
            losses = tf.nn.softmax_cross_entropy_with_logits_v2(
                logits=self.scores, labels=self.input_y
            )
            self.loss = tf.reduce_mean(losses) + l2_lambda * l2_loss
        with tf.name_scope("accuracy"):
            right = tf.equal(predictions, tf.argmax(self.input_y, 1))
            self.accuracy = tf.reduce_mean(tf.cast(right, "float"), name="accuracy")


def batches(x, y, random):
    while True:
        order = random.permutation(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            yield x[order[start : start + BATCH]], y[order[start : start + BATCH]]


x, _, labels, vocabulary = sentences()
y = np.eye(2, dtype=np.float32)[labels]
x_train, x_dev, y_train, y_dev = x[:-1000], x[-1000:], y[:-1000], y[-1000:]
tf.set_random_seed(1)
with tf.Graph().as_default(), tempfile.TemporaryDirectory() as out:
    tf.set_random_seed(1)
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
    with tf.Session(config=config) as sess:
        cnn = TextCNN(x.shape[1], 2, vocabulary, l2_lambda=0.1)
        global_step = tf.Variable(0, name="global_step", trainable=False)
        optimizer = tf.train.AdamOptimizer(1e-3)
        grads_and_vars = optimizer.compute_gradients(cnn.loss)
        train_op = optimizer.apply_gradients(grads_and_vars, global_step=global_step)
        grad_summaries = []
        for g, v in grads_and_vars:
            if g is not None:
                name = v.op.name
                grad_summaries.append(tf.summary.histogram(f"{name}/grad/hist", g))
                zeros = tf.nn.zero_fraction(g)
                grad_summaries.append(tf.summary.scalar(f"{name}/grad/sparsity", zeros))
        measures = [
            tf.summary.scalar("loss", cnn.loss),
            tf.summary.scalar("accuracy", cnn.accuracy),
        ]
        train_summary = tf.summary.merge([*measures, *grad_summaries])
        train_writer = tf.summary.FileWriter(os.path.join(out, "train"), sess.graph)
        dev_summary = tf.summary.merge(measures)
        dev_writer = tf.summary.FileWriter(os.path.join(out, "dev"), sess.graph)
        saver = tf.train.Saver(tf.global_variables(), max_to_keep=5)
        sess.run(tf.global_variables_initializer())
        for x_batch, y_batch in batches(x_train, y_train, np.random.RandomState(1)):
            feed = {cnn.input_x: x_batch, cnn.input_y: y_batch, cnn.keep_prob: 0.5}
            _, step, summary, loss, accuracy = sess.run(
                [train_op, global_step, train_summary, cnn.loss, cnn.accuracy], feed
            )
            now = datetime.datetime.now().isoformat()
            print(f"{now}: step {step}, loss {loss:g}, acc {accuracy:g}")
            train_writer.add_summary(summary, step)
            if step % EVERY == 0:
                feed = {cnn.input_x: x_dev, cnn.input_y: y_dev, cnn.keep_prob: 1.0}
                summary, loss, accuracy = sess.run([dev_summary, cnn.loss, cnn.accuracy], feed)
                dev_writer.add_summary(summary, step)
                print(f"evaluation at {step}: loss {loss:g}, acc {accuracy:g}")
                print("saved", os.path.basename(saver.save(sess, os.path.join(out, "model"), step)))
            if step == STEPS:
                break
print(f"figure accuracy {accuracy:.4f}")
