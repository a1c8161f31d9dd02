"""Translation in small, as the tutorials do it: embeddings, an encoder, a decoder that reads the
right words by ``tf.nn.dynamic_rnn``, and greedy decoding by ``tf.while_loop``, whose output grows
by a word a step.

Twelve batches of 16, whose sources have 4 to 15 words and whose targets, the source reversed, have
one more for the end; after each the sources of the batch are translated, in twice their length at
most. GRUs of 32 units, clipped gradients, Adam. The figure ``words`` counts all words of the
translations, without their ends.
"""

import numpy as np
from epochs import two_epochs, weights

import estimatorkit.compat.v1 as tf

BATCH, WORDS, EMBEDDING, UNITS, LENGTHS = 16, 24, 16, 32, range(4, 16)
START, END = 0, 1


def batch(length, random):
    """Sources, and their reversals with the end."""
    words = random.randint(2, WORDS, (BATCH, length))
    return words, np.pad(words[:, ::-1], [(0, 0), (0, 1)], constant_values=END)


def projected(output):
    return tf.layers.dense(output, WORDS, use_bias=False, name="projection", reuse=tf.AUTO_REUSE)


def greedy(cell, state, table, limit):
    """The most likely words, one after the other until each row has its end."""
    rows = tf.shape(state)[0]

    def unfinished(time, words, state, finished):
        return tf.logical_and(time < limit, tf.logical_not(tf.reduce_all(finished)))

    def step(time, words, state, finished):
        output, state = cell(tf.nn.embedding_lookup(table, words[:, -1]), state)
        word = tf.argmax(projected(output), 1, output_type=tf.int32)
        word = tf.where(finished, tf.fill([rows], END), word)
        words = tf.concat([words, tf.expand_dims(word, 1)], 1)
        return time + 1, words, state, tf.logical_or(finished, tf.equal(word, END))

    first = tf.constant(0), tf.fill([rows, 1], START), state, tf.fill([rows], False)
    shapes = [value.get_shape() for value in first]
    shapes[1] = tf.TensorShape([None, None])
    return tf.while_loop(unfinished, step, first, shape_invariants=tuple(shapes))[1][:, 1:]


source = tf.placeholder(tf.int32, [None, None])
target = tf.placeholder(tf.int32, [None, None])
with tf.variable_scope("model", initializer=weights):
    with tf.variable_scope("encoder"):
        table = tf.get_variable("embeddings", [WORDS, EMBEDDING])
        embedded = tf.nn.embedding_lookup(table, source)
        cell = tf.nn.rnn_cell.GRUCell(UNITS)
        _, state = tf.nn.dynamic_rnn(cell, embedded, dtype=tf.float32)
    with tf.variable_scope("decoder"):
        table = tf.get_variable("embeddings", [WORDS, EMBEDDING])
        before = tf.concat([tf.fill([tf.shape(target)[0], 1], START), target[:, :-1]], 1)
        cell = tf.nn.rnn_cell.GRUCell(UNITS)
        embedded = tf.nn.embedding_lookup(table, before)
        output, _ = tf.nn.dynamic_rnn(cell, embedded, initial_state=state)
        logits = projected(output)
        translation = greedy(cell, state, table, 2 * tf.shape(source)[1])
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
loss = tf.reduce_mean(losses)
parameters = tf.trainable_variables()
gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, parameters), 5.0)
optimizer = tf.train.AdamOptimizer(0.01)
train_op = optimizer.apply_gradients(list(zip(gradients, parameters, strict=True)))

random = np.random.RandomState(1)
batches = [batch(length, random) for length in LENGTHS]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())

    said = []

    def epoch():
        for words, reversals in batches:
            _, value = sess.run([train_op, loss], {source: words, target: reversals})
            said.append(np.sum(sess.run(translation, {source: words}) != END))
        return value

    two_epochs(epoch)
    print(f"figure words {sum(said)}")
