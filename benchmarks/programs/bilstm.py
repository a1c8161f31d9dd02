"""A bidirectional LSTM that classifies movie reviews, in the manner of the many
text-classification repositories.

Word embeddings of 100, ``tf.nn.bidirectional_dynamic_rnn`` with LSTM cells of 128 and the
sentences' lengths, the mean of the outputs, dropout, Adam; one pass of 88 batches of 64, an
evaluation every 44, the best model saved.
"""

import os
import tempfile

import numpy as np
from texts import sentences

import estimatorkit.compat.v1 as tf

EMBEDDING, HIDDEN, BATCH, STEPS, EVERY, LEARNING_RATE = 100, 128, 64, 88, 44, 0.002


class BiLSTM:
    """Sentence classifier."""

    def __init__(self, length, vocabulary, classes):
        self.x = tf.placeholder(tf.int32, [None, length], name="x")
        self.lengths = tf.placeholder(tf.int32, [None], name="lengths")
        self.y = tf.placeholder(tf.int64, [None], name="y")
        self.keep_prob = tf.placeholder_with_default(1.0, [], name="keep_prob")
        with tf.variable_scope("embedding"):
            table = tf.get_variable(
                "table",
                [vocabulary, EMBEDDING],
                initializer=tf.random_uniform_initializer(-0.25, 0.25),
            )
            inputs = tf.nn.dropout(tf.nn.embedding_lookup(table, self.x), keep_prob=self.keep_prob)
        with tf.variable_scope("bilstm"):
            forward = tf.nn.rnn_cell.LSTMCell(HIDDEN)
            backward = tf.nn.rnn_cell.LSTMCell(HIDDEN)
            forward = tf.nn.rnn_cell.DropoutWrapper(forward, output_keep_prob=self.keep_prob)
            backward = tf.nn.rnn_cell.DropoutWrapper(backward, output_keep_prob=self.keep_prob)
            outputs, _ = tf.nn.bidirectional_dynamic_rnn(
                forward, backward, inputs, sequence_length=self.lengths, dtype=tf.float32
            )
            outputs = tf.concat(outputs, 2)
        mask = tf.expand_dims(tf.sequence_mask(self.lengths, length, tf.float32), 2)
        total = tf.reduce_sum(outputs * mask, 1)
        mean = total / tf.expand_dims(tf.cast(self.lengths, tf.float32), 1)
        logits = tf.layers.dense(mean, classes, name="logits")
        self.loss = tf.losses.sparse_softmax_cross_entropy(labels=self.y, logits=logits)
        right = tf.equal(tf.argmax(logits, 1), self.y)
        self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        self.global_step = tf.train.get_or_create_global_step()
        self.train_op = tf.train.AdamOptimizer(LEARNING_RATE).minimize(
            self.loss, global_step=self.global_step
        )


def evaluate(sess, model, x, lengths, y):
    """Loss and accuracy over the development set, batch by batch, the last one smaller."""
    sums = np.zeros(2)
    for start in range(0, len(x), 256):
        rows = slice(start, start + 256)
        feed = {model.x: x[rows], model.lengths: lengths[rows], model.y: y[rows]}
        sums += np.array(sess.run([model.loss, model.accuracy], feed)) * len(x[rows])
    return sums / len(x)


def main():
    np.random.seed(1)
    tf.set_random_seed(1)
    x, lengths, y, vocabulary = sentences(length=40, smallest_count=2)
    dev = tuple(part[-1000:] for part in (x, lengths, y))
    x, lengths, y = (part[:-1000] for part in (x, lengths, y))
    model = BiLSTM(x.shape[1], vocabulary, 2)
    saver = tf.train.Saver(max_to_keep=1)
    best = 0.0
    with tempfile.TemporaryDirectory() as out, tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        order = np.random.permutation(len(x))
        for start in range(0, STEPS * BATCH, BATCH):
            rows = order[start : start + BATCH]
            feed = {model.x: x[rows], model.lengths: lengths[rows], model.y: y[rows]}
            feed[model.keep_prob] = 0.5
            fetches = [model.train_op, model.global_step, model.loss, model.accuracy]
            _, step, loss, accuracy = sess.run(fetches, feed)
            if step % 10 == 0:
                print(f"step {step}: loss {loss:.4f}, accuracy {accuracy:.3f}")
            if step % EVERY == 0:
                dev_loss, dev_accuracy = evaluate(sess, model, *dev)
                print(f"development set: loss {dev_loss:.4f}, accuracy {dev_accuracy:.3f}")
                if dev_accuracy > best:
                    best = dev_accuracy
                    saver.save(sess, os.path.join(out, "model"), global_step=step)
    print(f"figure accuracy {best:.4f}")


if __name__ == "__main__":
    main()
