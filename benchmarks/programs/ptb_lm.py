"""A word-level language model after the PTB tutorial's small configuration (Zaremba et al.
2014), on a novel.

Two raw LSTM cells of 200 units unrolled 20 steps, batches of 20, gradients clipped to a global
norm of 5, gradient descent at a learning rate that is assigned before each pass, the state
carried from batch to batch by feeding it. Two passes of 36 batches; the perplexity of a
validation part follows each and of a test part the last one.
"""

import time

import numpy as np
from texts import book

import estimatorkit.compat.v1 as tf


class SmallConfig:
    """The tutorial's small configuration, with fewer passes and batches."""

    init_scale = 0.1
    learning_rate = 1.0
    max_grad_norm = 5
    num_layers = 2
    num_steps = 20
    hidden_size = 200
    max_epoch = 1
    max_max_epoch = 2
    lr_decay = 0.5
    batch_size = 20
    vocab_size = 10000


class EvalConfig(SmallConfig):
    """One word at a time."""

    batch_size = 1
    num_steps = 1


class PTBModel:
    """The language model."""

    def __init__(self, is_training, config):
        self.config = config
        batch, steps, size = config.batch_size, config.num_steps, config.hidden_size
        self.input_data = tf.placeholder(tf.int32, [batch, steps])
        self.targets = tf.placeholder(tf.int32, [batch, steps])
        cells = [
            tf.nn.rnn_cell.BasicLSTMCell(
                size, forget_bias=0.0, state_is_tuple=True, reuse=not is_training
            )
            for _ in range(config.num_layers)
        ]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=True)
        self.initial_state = state = cell.zero_state(batch, tf.float32)
        with tf.device("/cpu:0"):
            embedding = tf.get_variable("embedding", [config.vocab_size, size], dtype=tf.float32)
            inputs = tf.nn.embedding_lookup(embedding, self.input_data)
        outputs = []
        with tf.variable_scope("RNN"):
            for time_step in range(steps):
                if time_step > 0:
                    tf.get_variable_scope().reuse_variables()
                cell_output, state = cell(inputs[:, time_step, :], state)
                outputs.append(cell_output)
        self.final_state = state
        output = tf.reshape(tf.concat(outputs, 1), [-1, size])
        softmax_w = tf.get_variable("softmax_w", [size, config.vocab_size], dtype=tf.float32)
        softmax_b = tf.get_variable("softmax_b", [config.vocab_size], dtype=tf.float32)
        logits = tf.nn.xw_plus_b(output, softmax_w, softmax_b)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(self.targets, [-1]), logits=logits
        )
        self.cost = tf.reduce_sum(losses) / batch
        if not is_training:
            return
        self.lr = tf.Variable(0.0, trainable=False)
        variables = tf.trainable_variables()
        gradients = tf.gradients(self.cost, variables)
        gradients, _ = tf.clip_by_global_norm(gradients, config.max_grad_norm)
        optimizer = tf.train.GradientDescentOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(
            zip(gradients, variables, strict=True),
            global_step=tf.train.get_or_create_global_step(),
        )
        self.new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self.lr_update = tf.assign(self.lr, self.new_lr)


def batches(words, batch, steps, limit):
    width = len(words) // batch
    rows = words[: batch * width].reshape(batch, width)
    for i in range(min(limit, (width - 1) // steps)):
        start = i * steps
        yield rows[:, start : start + steps], rows[:, start + 1 : start + steps + 1]


def run_epoch(session, model, words, limit, eval_op=None):
    """The perplexity of the words."""
    config = model.config
    start, costs, iters = time.time(), 0.0, 0
    state = session.run(model.initial_state)
    fetches = {"cost": model.cost, "final_state": model.final_state}
    if eval_op is not None:
        fetches["eval_op"] = eval_op
    for step, (x, y) in enumerate(batches(words, config.batch_size, config.num_steps, limit)):
        feed_dict = {model.input_data: x, model.targets: y}
        for i, (c, h) in enumerate(model.initial_state):
            feed_dict[c] = state[i].c
            feed_dict[h] = state[i].h
        values = session.run(fetches, feed_dict)
        costs += values["cost"]
        state = values["final_state"]
        iters += config.num_steps
        if eval_op is not None and step % 20 == 10:
            speed = iters * config.batch_size / (time.time() - start)
            print(
                f"{step}: perplexity {np.exp(costs / iters):.3f}, speed {speed:.0f} words a second"
            )
    return np.exp(costs / iters)


config, eval_config = SmallConfig(), EvalConfig()
words, _ = book(vocabulary=config.vocab_size)
train_words, valid_words, test_words = np.split(words, [150000, 170000])
tf.set_random_seed(1)
initializer = tf.random_uniform_initializer(-config.init_scale, config.init_scale)
with tf.variable_scope("model", reuse=None, initializer=initializer):
    m = PTBModel(is_training=True, config=config)
with tf.variable_scope("model", reuse=True, initializer=initializer):
    mvalid = PTBModel(is_training=False, config=config)
    mtest = PTBModel(is_training=False, config=eval_config)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for i in range(config.max_max_epoch):
        lr_decay = config.lr_decay ** max(i + 1 - config.max_epoch, 0.0)
        session.run(m.lr_update, {m.new_lr: config.learning_rate * lr_decay})
        print(f"Epoch {i + 1}, learning rate {session.run(m.lr):.3f}")
        print(f"training perplexity {run_epoch(session, m, train_words, 36, m.train_op):.3f}")
        print(f"validation perplexity {run_epoch(session, mvalid, valid_words, 10):.3f}")
    perplexity = run_epoch(session, mtest, test_words, 300)
print(f"figure perplexity {perplexity:.3f}")
