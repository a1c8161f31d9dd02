"""A neural Turing machine (Graves et al. 2014) that learns to copy, unrolled in Python as the
early repositories had it.

A controller LSTM of 100, one head that reads and one that writes, a memory of 128 rows of 20;
sequences of 6 vectors of 8 bits, so 14 steps are unrolled. RMSProp at 0.001 with every gradient
clipped to 10, 30 batches of 16.
"""

import numpy as np

import estimatorkit.compat.v1 as tf

ROWS, WIDTH, CONTROLLER, SHIFTS, BITS, LENGTH, BATCH, STEPS = 128, 20, 100, 3, 8, 6, 16, 30


def linear(inputs, size, name):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [inputs.get_shape()[1], size])
        b = tf.get_variable("b", [size], initializer=tf.zeros_initializer())
        return tf.matmul(inputs, w) + b


def cosine(memory, key):
    """Similarity of each row of the memory with the key."""
    dot = tf.squeeze(tf.matmul(memory, tf.expand_dims(key, 2)), [2])
    norms = tf.sqrt(tf.reduce_sum(tf.square(memory), 2)) * tf.norm(key, axis=1, keepdims=True)
    return dot / (norms + 1e-3)


def shift(weights, kernel):
    """Circular convolution of the weights with a kernel of three numbers."""
    left = tf.concat([weights[:, 1:], weights[:, :1]], 1)
    right = tf.concat([weights[:, -1:], weights[:, :-1]], 1)
    return kernel[:, :1] * left + kernel[:, 1:2] * weights + kernel[:, 2:] * right


def address(output, memory, before, name):
    """Where a head looks: by content, then by location."""
    with tf.variable_scope(name):
        key = tf.tanh(linear(output, WIDTH, "key"))
        strength = tf.nn.softplus(linear(output, 1, "strength"))
        gate = tf.sigmoid(linear(output, 1, "gate"))
        kernel = tf.nn.softmax(linear(output, SHIFTS, "shift"))
        gamma = 1 + tf.nn.softplus(linear(output, 1, "gamma"))
        content = tf.nn.softmax(strength * cosine(memory, key))
        mixed = gate * content + (1 - gate) * before
        powered = tf.pow(shift(mixed, kernel) + 1e-6, gamma)
        return powered / tf.reduce_sum(powered, 1, keepdims=True)


class NTMCell:
    """One step of the machine; the state is a dictionary of tensors."""

    def __init__(self):
        self.controller = tf.nn.rnn_cell.BasicLSTMCell(CONTROLLER)

    def start(self, batch):
        first = tf.one_hot(tf.zeros([batch], tf.int32), ROWS)
        memory = tf.get_variable("memory", [ROWS, WIDTH], initializer=tf.constant_initializer(1e-3))
        read = tf.get_variable("read", [1, WIDTH], initializer=tf.random_normal_initializer(0, 0.1))
        return {
            "memory": tf.tile(tf.expand_dims(memory, 0), [batch, 1, 1]),
            "read": tf.tile(tf.tanh(read), [batch, 1]),
            "read_weights": first,
            "write_weights": first,
            "controller": self.controller.zero_state(batch, tf.float32),
        }

    def __call__(self, inputs, state):
        output, controller = self.controller(
            tf.concat([inputs, state["read"]], 1), state["controller"]
        )
        memory = state["memory"]
        read_weights = address(output, memory, state["read_weights"], "read_head")
        write_weights = address(output, memory, state["write_weights"], "write_head")
        read = tf.squeeze(tf.matmul(tf.expand_dims(read_weights, 1), memory), [1])
        erase = tf.sigmoid(linear(output, WIDTH, "erase"))
        add = tf.tanh(linear(output, WIDTH, "add"))
        column = tf.expand_dims(write_weights, 2)
        memory = memory * (1 - column * tf.expand_dims(erase, 1)) + column * tf.expand_dims(add, 1)
        logits = linear(tf.concat([output, read], 1), BITS, "output")
        return logits, {
            "memory": memory,
            "read": read,
            "read_weights": read_weights,
            "write_weights": write_weights,
            "controller": controller,
        }


random = np.random.RandomState(1)
tf.set_random_seed(1)
inputs = [tf.placeholder(tf.float32, [BATCH, BITS + 2], f"input_{i}") for i in range(LENGTH + 2)]
targets = [tf.placeholder(tf.float32, [BATCH, BITS], f"target_{i}") for i in range(LENGTH)]
cell, logits = NTMCell(), []
with tf.variable_scope("ntm", initializer=tf.glorot_uniform_initializer()):
    state = cell.start(BATCH)
    with tf.variable_scope("step") as scope:
        for step, vector in enumerate(inputs + [tf.zeros([BATCH, BITS + 2])] * LENGTH):
            if step > 0:
                scope.reuse_variables()
            output, state = cell(vector, state)
            if step >= LENGTH + 2:
                logits.append(output)
losses = [
    tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logit, labels=target))
    for logit, target in zip(logits, targets, strict=True)
]
loss = tf.add_n(losses) / LENGTH
optimizer = tf.train.RMSPropOptimizer(1e-3, decay=0.95, momentum=0.9)
grads = optimizer.compute_gradients(loss)
train_op = optimizer.apply_gradients([(tf.clip_by_value(g, -10, 10), v) for g, v in grads])

history = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(1, STEPS + 1):
        bits = random.randint(0, 2, (LENGTH, BATCH, BITS))
        feed = dict(zip(targets, bits, strict=True))
        marks = np.zeros((LENGTH + 2, BATCH, BITS + 2))
        marks[0, :, BITS] = marks[-1, :, BITS + 1] = 1
        marks[1:-1, :, :BITS] = bits
        feed.update(zip(inputs, marks, strict=True))
        _, value = sess.run([train_op, loss], feed)
        history.append(value)
        if step % 10 == 0:
            print(f"step {step}: loss {value:.4f}")
print(f"figure loss {np.mean(history[-10:]):.4f}")
