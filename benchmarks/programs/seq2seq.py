"""Dates to their standard form by an encoder and a decoder with attention, the small translation
task of tutorials.

Made-up dates ("monday, march 3, 1997") become "1997-03-03". The encoder is a GRU of 64 in each
direction by ``tf.nn.bidirectional_dynamic_rnn``; the decoder's ten steps are a Python loop with
additive attention by raw operations (Bahdanau et al. 2014), taught with the right characters for
200 batches of 64, and a second, greedy decoder that shares the variables reads its own output at
the end.
"""

import datetime

import numpy as np

import estimatorkit.compat.v1 as tf

SOURCE = 30
TARGET = 10
HIDDEN = 64
BATCH = 64
STEPS = 200
FORMATS = ("%d %b %Y", "%B %d, %Y", "%A, %B %d, %Y", "%d/%m/%Y", "%d %B %Y", "%a %d %b %Y")
LETTERS = "\0 abcdefghijklmnopqrstuvwxyz0123456789/,"
DIGITS = "0123456789-^"


def dates(count, random):
    """Sources and targets as rows of character numbers."""
    sources = np.zeros((count, SOURCE), np.int32)
    targets = np.zeros((count, TARGET), np.int32)
    first = datetime.date(1970, 1, 1)
    for row in range(count):
        date = first + datetime.timedelta(days=int(random.randint(0, 20000)))
        text = date.strftime(FORMATS[random.randint(len(FORMATS))]).lower()[:SOURCE]
        sources[row, : len(text)] = [LETTERS.index(character) for character in text]
        targets[row] = [DIGITS.index(character) for character in date.isoformat()]
    return sources, targets


def encoder(source):
    table = tf.get_variable("letters", [len(LETTERS), 32])
    lengths = tf.reduce_sum(tf.sign(source), 1)
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(HIDDEN),
        tf.nn.rnn_cell.GRUCell(HIDDEN),
        tf.nn.embedding_lookup(table, source),
        sequence_length=lengths,
        dtype=tf.float32,
    )
    return tf.concat(outputs, 2), tf.sequence_mask(lengths, SOURCE)


def attention(memory, mask, state):
    w_memory = tf.get_variable("w_memory", [2 * HIDDEN, HIDDEN])
    w_state = tf.get_variable("w_state", [HIDDEN, HIDDEN])
    v = tf.get_variable("v", [HIDDEN])
    keys = tf.reshape(
        tf.matmul(tf.reshape(memory, [-1, 2 * HIDDEN]), w_memory), [-1, SOURCE, HIDDEN]
    )
    query = tf.expand_dims(tf.matmul(state, w_state), 1)
    scores = tf.reduce_sum(v * tf.tanh(keys + query), 2)
    scores = tf.where(mask, scores, -1e9 * tf.ones_like(scores))
    weights = tf.nn.softmax(scores)
    return tf.reduce_sum(tf.expand_dims(weights, 2) * memory, 1), weights


def greedy_digit(logits):
    return tf.cast(tf.argmax(logits, 1), tf.int32)


def decoder(memory, mask, target=None):
    """Logits of the ten steps; without a target each step reads the character before from its
    own output."""
    table = tf.get_variable("digits", [len(DIGITS), 16])
    w_out = tf.get_variable("w_out", [HIDDEN, len(DIGITS)])
    b_out = tf.get_variable("b_out", [len(DIGITS)], initializer=tf.zeros_initializer())
    cell = tf.nn.rnn_cell.GRUCell(HIDDEN)
    rows = tf.shape(memory)[0]
    state = cell.zero_state(rows, tf.float32)
    before = tf.fill([rows], DIGITS.index("^"))
    logits, maps = [], []
    for step in range(TARGET):
        with tf.variable_scope("step", reuse=tf.AUTO_REUSE):
            context, weights = attention(memory, mask, state)
            inputs = tf.concat([tf.nn.embedding_lookup(table, before), context], 1)
            output, state = cell(inputs, state)
        logits.append(tf.matmul(output, w_out) + b_out)
        maps.append(weights)
        before = greedy_digit(logits[-1]) if target is None else target[:, step]
    return tf.stack(logits, 1), tf.stack(maps, 1)


random = np.random.RandomState(1)
tf.set_random_seed(1)
train_x, train_y = dates(10000, random)
test_x, test_y = dates(500, random)
source = tf.placeholder(tf.int32, [None, SOURCE])
target = tf.placeholder(tf.int32, [None, TARGET])
with tf.variable_scope("encoder"):
    memory, mask = encoder(source)
with tf.variable_scope("decoder"):
    logits, _ = decoder(memory, mask, target)
with tf.variable_scope("decoder", reuse=True):
    greedy_logits, alignment = decoder(memory, mask)
greedy = tf.argmax(greedy_logits, 2)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits))
train = tf.train.AdamOptimizer(0.005).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(1, STEPS + 1):
        rows = random.randint(0, len(train_x), BATCH)
        _, value = sess.run([train, loss], {source: train_x[rows], target: train_y[rows]})
        if step % 50 == 0:
            print(f"step {step}: loss {value:.4f}")
    guesses = sess.run(greedy, {source: test_x})
    maps = sess.run(alignment, {source: test_x[:5]})
    for row in range(5):
        text = "".join(LETTERS[number] for number in test_x[row]).strip("\0")
        guess = "".join(DIGITS[number] for number in guesses[row])
        print(f"{text} -> {guess}, the year is read at {maps[row, 3].argmax()}")
print(f"figure accuracy {np.mean(guesses == test_y):.4f}")
