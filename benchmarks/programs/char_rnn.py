"""A character model in the manner of the popular char-rnn scripts: two LSTM layers of 128 over
Shakespeare.

The training graph unrolls 50 steps (``tf.nn.static_rnn``), the state is fed from batch to batch,
60 batches of 50; then a second graph of one step restores the checkpoint and samples 300
characters, one ``sess.run`` each.
"""

import os
import tempfile
import time

import numpy as np
from texts import characters

import estimatorkit.compat.v1 as tf

HIDDEN, LAYERS, LENGTH, BATCH, STEPS = 128, 2, 50, 50, 60


class Model:
    """The language model; for sampling it is built for one sequence of one character."""

    def __init__(self, vocabulary, training=True):
        batch, length = (BATCH, LENGTH) if training else (1, 1)
        cell_class = tf.nn.rnn_cell.LSTMCell
        self.cell = cell = tf.nn.rnn_cell.MultiRNNCell([cell_class(HIDDEN) for _ in range(LAYERS)])
        self.input_data = tf.placeholder(tf.int32, [batch, length])
        self.targets = tf.placeholder(tf.int32, [batch, length])
        self.initial_state = cell.zero_state(batch, tf.float32)
        with tf.variable_scope("rnnlm"):
            softmax_w = tf.get_variable("softmax_w", [HIDDEN, vocabulary])
            softmax_b = tf.get_variable("softmax_b", [vocabulary])
        embedding = tf.get_variable("embedding", [vocabulary, HIDDEN])
        inputs = tf.nn.embedding_lookup(embedding, self.input_data)
        inputs = [tf.squeeze(part, [1]) for part in tf.split(inputs, length, 1)]
        outputs, self.final_state = tf.nn.static_rnn(
            cell, inputs, initial_state=self.initial_state, scope="rnnlm"
        )
        output = tf.reshape(tf.concat(outputs, 1), [-1, HIDDEN])
        self.logits = tf.matmul(output, softmax_w) + softmax_b
        self.probs = tf.nn.softmax(self.logits)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(self.targets, [-1]), logits=self.logits
        )
        with tf.name_scope("cost"):
            self.cost = tf.reduce_sum(losses) / batch / length
        if not training:
            return
        self.lr = tf.Variable(0.0, trainable=False)
        variables = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, variables), 5.0)
        with tf.name_scope("optimizer"):
            optimizer = tf.train.AdamOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(zip(grads, variables, strict=True))
        tf.summary.histogram("logits", self.logits)
        tf.summary.histogram("loss", losses)
        tf.summary.scalar("train_loss", self.cost)


def train(numbers, vocabulary, out):
    model = Model(vocabulary)
    count = len(numbers) // (BATCH * LENGTH)
    x = numbers[: count * BATCH * LENGTH]
    y = np.append(x[1:], x[0])
    x_batches = np.split(x.reshape(BATCH, -1), count, 1)
    y_batches = np.split(y.reshape(BATCH, -1), count, 1)
    summaries = tf.summary.merge_all()
    writer = tf.summary.FileWriter(os.path.join(out, "logs"))
    history = []
    with tf.Session() as sess:
        writer.add_graph(sess.graph)
        sess.run(tf.global_variables_initializer())
        saver = tf.train.Saver(tf.global_variables())
        epochs = -(-STEPS // count)
        for epoch in range(epochs):
            sess.run(tf.assign(model.lr, 0.005 * 0.97**epoch))
            state = sess.run(model.initial_state)
            for b in range(min(count, STEPS - epoch * count)):
                start = time.time()
                feed = {model.input_data: x_batches[b], model.targets: y_batches[b]}
                for i, (c, h) in enumerate(model.initial_state):
                    feed[c] = state[i].c
                    feed[h] = state[i].h
                fetches = [summaries, model.cost, model.final_state, model.train_op]
                summary, loss, state, _ = sess.run(fetches, feed)
                step = epoch * count + b
                writer.add_summary(summary, step)
                history.append(loss)
                if step % 20 == 0:
                    seconds = time.time() - start
                    print(f"{step}/{STEPS} (epoch {epoch}), train_loss = {loss:.3f}, {seconds:.3f}")
        print("saved", os.path.basename(saver.save(sess, os.path.join(out, "model.ckpt"), STEPS)))
    return np.mean(history[-20:])


def sample(alphabet, out, prime="The ", count=300):
    model = Model(len(alphabet), training=False)
    random = np.random.RandomState(1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        saver = tf.train.Saver(tf.global_variables())
        saver.restore(sess, tf.train.latest_checkpoint(out))
        state = sess.run(model.cell.zero_state(1, tf.float32))
        for character in prime[:-1]:
            feed = {model.input_data: [[alphabet.index(character)]], model.initial_state: state}
            state = sess.run(model.final_state, feed)
        text = prime
        for _ in range(count):
            feed = {model.input_data: [[alphabet.index(text[-1])]], model.initial_state: state}
            probs, state = sess.run([model.probs, model.final_state], feed)
            weights = np.cumsum(probs[0])
            text += alphabet[int(np.searchsorted(weights, random.rand() * weights[-1]))]
    return text


numbers, alphabet = characters()
with tempfile.TemporaryDirectory() as out:
    tf.set_random_seed(1)
    loss = train(numbers, len(alphabet), out)
    tf.reset_default_graph()
    print(sample(alphabet, out))
print(f"figure loss {loss:.4f}")
