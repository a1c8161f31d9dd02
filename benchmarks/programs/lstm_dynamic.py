"""A dynamic recurrent network on toy sequences, after the introductory scripts on sequences of
unequal length.

Each sequence of 5 to 20 numbers either counts up or is random; an LSTM of 64 units runs over it by
``tf.nn.dynamic_rnn`` with ``sequence_length``, the last relevant output is gathered, and gradient
descent at 0.01 runs 500 batches of 128.
"""

import random

import numpy as np

import estimatorkit.compat.v1 as tf


class ToySequences:
    """Counting sequences (class 0) and random ones (class 1), padded with zeros."""

    def __init__(self, n_samples=1000, max_len=20, min_len=5, max_value=1000):
        self.data, self.labels, self.lengths = [], [], []
        for _ in range(n_samples):
            length = random.randint(min_len, max_len)
            self.lengths.append(length)
            if random.random() < 0.5:
                start = random.randint(0, max_value - length)
                values = [[float(i) / max_value] for i in range(start, start + length)]
                self.labels.append([1.0, 0.0])
            else:
                values = [[float(random.randint(0, max_value)) / max_value] for _ in range(length)]
                self.labels.append([0.0, 1.0])
            self.data.append(values + [[0.0] for _ in range(max_len - length)])
        self.batch_id = 0

    def next(self, batch_size):
        if self.batch_id == len(self.data):
            self.batch_id = 0
        rows = slice(self.batch_id, min(self.batch_id + batch_size, len(self.data)))
        self.batch_id = rows.stop
        return self.data[rows], self.labels[rows], self.lengths[rows]


learning_rate = 0.01
training_steps = 500
batch_size = 128
display_step = 100
seq_max_len = 20
n_hidden = 64
n_classes = 2

random.seed(1)
np.random.seed(1)
tf.set_random_seed(1)
trainset = ToySequences(n_samples=1000, max_len=seq_max_len)
testset = ToySequences(n_samples=500, max_len=seq_max_len)

x = tf.placeholder("float", [None, seq_max_len, 1])
y = tf.placeholder("float", [None, n_classes])
seqlen = tf.placeholder(tf.int32, [None])
weights = {"out": tf.Variable(tf.random_normal([n_hidden, n_classes]))}
biases = {"out": tf.Variable(tf.random_normal([n_classes]))}


def dynamic_rnn(x, seqlen, weights, biases):
    cell = tf.nn.rnn_cell.BasicLSTMCell(n_hidden)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, sequence_length=seqlen)
    rows = tf.shape(outputs)[0]
    index = tf.range(0, rows) * seq_max_len + (seqlen - 1)
    outputs = tf.gather(tf.reshape(outputs, [-1, n_hidden]), index)
    return tf.matmul(outputs, weights["out"]) + biases["out"]


pred = dynamic_rnn(x, seqlen, weights, biases)
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=pred, labels=y))
optimizer = tf.train.GradientDescentOptimizer(learning_rate=learning_rate).minimize(cost)
correct_pred = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
accuracy = tf.reduce_mean(tf.cast(correct_pred, tf.float32))
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for step in range(1, training_steps + 1):
        batch_x, batch_y, batch_seqlen = trainset.next(batch_size)
        feed = {x: batch_x, y: batch_y, seqlen: batch_seqlen}
        sess.run(optimizer, feed_dict=feed)
        if step % display_step == 0 or step == 1:
            acc, loss = sess.run([accuracy, cost], feed_dict=feed)
            print(f"Step {step}, minibatch loss {loss:.6f}, training accuracy {acc:.5f}")
    feed = {x: testset.data, y: testset.labels, seqlen: testset.lengths}
    loss, acc = sess.run([cost, accuracy], feed_dict=feed)
    print(f"Testing accuracy {acc:.3f}")
print(f"figure loss {loss:.4f}")
