"""A small Transformer by raw operations, in the manner of the repositories that followed Vaswani
et al. (2017).

An encoder and a decoder of two layers, 64 wide, with 4 heads, layer norm by ``tf.nn.moments``,
residual dropout, sinusoidal positions, smoothed labels and Adam on the warm-up schedule learn to
reverse sequences of 10 symbols: 250 batches of 64, then greedy decoding that runs the graph once
a position.
"""

import numpy as np

import estimatorkit.compat.v1 as tf

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS, INNER, BATCH, STEPS = 22, 10, 64, 4, 2, 256, 64, 250
GO = 1


def normalize(inputs, epsilon=1e-8, scope="ln"):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        mean, variance = tf.nn.moments(inputs, [-1], keep_dims=True)
        shape = inputs.get_shape()[-1:]
        beta = tf.get_variable("beta", shape, initializer=tf.zeros_initializer())
        gamma = tf.get_variable("gamma", shape, initializer=tf.ones_initializer())
        return gamma * (inputs - mean) / ((variance + epsilon) ** 0.5) + beta


def positions():
    angles = np.arange(LENGTH)[:, None] / np.power(10000, 2 * (np.arange(WIDTH) // 2) / WIDTH)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return tf.convert_to_tensor(angles, tf.float32)


def multihead_attention(queries, keys, rate, training, causal=False, scope="attention"):
    with tf.variable_scope(scope):
        q = tf.layers.dense(queries, WIDTH, use_bias=False)
        k = tf.layers.dense(keys, WIDTH, use_bias=False)
        v = tf.layers.dense(keys, WIDTH, use_bias=False)
        q, k, v = (tf.concat(tf.split(part, HEADS, axis=2), axis=0) for part in (q, k, v))
        scores = tf.matmul(q, tf.transpose(k, [0, 2, 1])) / (WIDTH // HEADS) ** 0.5
        if causal:
            lower = tf.linalg.band_part(tf.ones_like(scores[0, :, :]), -1, 0)
            mask = tf.tile(tf.expand_dims(lower, 0), [tf.shape(scores)[0], 1, 1])
            scores = tf.where(tf.equal(mask, 0), tf.ones_like(scores) * -1e9, scores)
        weights = tf.layers.dropout(tf.nn.softmax(scores), rate, training=training)
        outputs = tf.concat(tf.split(tf.matmul(weights, v), HEADS, axis=0), axis=2)
        return normalize(outputs + queries)


def feedforward(inputs, scope="feedforward"):
    with tf.variable_scope(scope):
        outputs = tf.layers.dense(inputs, INNER, activation=tf.nn.relu)
        return normalize(tf.layers.dense(outputs, WIDTH) + inputs)


def embed(numbers, table, rate, training):
    vectors = tf.nn.embedding_lookup(table, numbers) * WIDTH**0.5 + positions()
    return tf.layers.dropout(vectors, rate, training=training)


def label_smoothing(inputs, epsilon=0.1):
    return (1 - epsilon) * inputs + epsilon / VOCABULARY


def transformer(x, before, training, rate=0.1):
    table = tf.get_variable(
        "embeddings", [VOCABULARY, WIDTH], initializer=tf.random_normal_initializer(0, WIDTH**-0.5)
    )
    with tf.variable_scope("encoder"):
        memory = embed(x, table, rate, training)
        for layer in range(LAYERS):
            with tf.variable_scope(f"layer_{layer}"):
                memory = multihead_attention(memory, memory, rate, training)
                memory = feedforward(memory)
    with tf.variable_scope("decoder"):
        output = embed(before, table, rate, training)
        for layer in range(LAYERS):
            with tf.variable_scope(f"layer_{layer}"):
                output = multihead_attention(output, output, rate, training, True, "own")
                output = multihead_attention(output, memory, rate, training, scope="other")
                output = feedforward(output)
    return tf.einsum("ntd,dk->ntk", output, tf.transpose(table))


def noam_scheme(step, warmup=150.0, peak=0.004):
    step = tf.cast(step + 1, tf.float32)
    return peak * warmup**0.5 * tf.minimum(step * warmup**-1.5, step**-0.5)


def batch(random, count):
    x = random.randint(2, VOCABULARY, (count, LENGTH)).astype(np.int32)
    return x, x[:, ::-1]


random = np.random.RandomState(1)
tf.set_random_seed(1)
x = tf.placeholder(tf.int32, [None, LENGTH])
y = tf.placeholder(tf.int32, [None, LENGTH])
training = tf.placeholder_with_default(False, [])
before = tf.concat([tf.fill([tf.shape(y)[0], 1], GO), y[:, :-1]], 1)
logits = transformer(x, before, training)
smooth = label_smoothing(tf.one_hot(y, depth=VOCABULARY))
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=smooth))
guess = tf.argmax(logits, 2)
global_step = tf.train.get_or_create_global_step()
lr = noam_scheme(global_step)
train_op = tf.train.AdamOptimizer(lr, 0.9, 0.98, 1e-9).minimize(loss, global_step=global_step)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(STEPS):
        x_batch, y_batch = batch(random, BATCH)
        feed = {x: x_batch, y: y_batch, training: True}
        _, step, value, rate = sess.run([train_op, global_step, loss, lr], feed)
        if step % 50 == 0:
            print(f"step {step}: loss {value:.4f}, learning rate {rate:.5f}")
    x_test, y_test = batch(random, 200)
    decoded = np.zeros_like(x_test)
    for position in range(LENGTH):
        decoded[:, position] = sess.run(guess, {x: x_test, y: decoded})[:, position]
print(f"figure accuracy {np.mean(decoded == y_test):.4f}")
