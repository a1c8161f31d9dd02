"""A perceptron fed by queues, as scripts did before ``tf.data``: CSV files through
``string_input_producer``, ``TextLineReader``, ``decode_csv`` and ``shuffle_batch``, with a
coordinator and its queue runners, 3,000 batches of 64."""

import os
import tempfile

import numpy as np

import estimatorkit.compat.v1 as tf

STEPS, BATCH, COLUMNS = 3000, 64, 10

random = np.random.RandomState(1)
tf.set_random_seed(1)
with tempfile.TemporaryDirectory() as folder:
    names = []
    weights = random.randn(COLUMNS)
    for number in range(4):
        x = random.randn(5000, COLUMNS)
        y = (np.tanh(x) @ weights + 0.5 * x[:, 0] * x[:, 1] > 0).astype(int)
        names.append(os.path.join(folder, f"part{number}.csv"))
        with open(names[-1], "w", encoding="utf-8") as out:
            for row, label in zip(x, y, strict=True):
                out.write(",".join(f"{each:.5f}" for each in row) + f",{label}\n")

    filename_queue = tf.train.string_input_producer(names, shuffle=True, seed=1)
    _, line = tf.TextLineReader().read(filename_queue)
    *features, label = tf.decode_csv(line, record_defaults=[[0.0]] * COLUMNS + [[0]])
    x_batch, y_batch = tf.train.shuffle_batch(
        [tf.stack(features), label], BATCH, capacity=2000, min_after_dequeue=1000, seed=1
    )
    hidden = tf.layers.dense(x_batch, 128, activation=tf.nn.relu)
    hidden = tf.layers.dense(hidden, 64, activation=tf.nn.relu)
    logits = tf.layers.dense(hidden, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(y_batch, logits)
    right = tf.equal(tf.argmax(logits, 1), tf.cast(y_batch, tf.int64))
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    train_op = tf.train.AdamOptimizer(0.002).minimize(loss)

    history = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        try:
            for step in range(STEPS):
                if coord.should_stop():
                    break
                _, cost, part = sess.run([train_op, loss, accuracy])
                history.append(part)
                if step % 500 == 0:
                    print(f"step {step}: loss {cost:.4f}")
        finally:
            coord.request_stop()
        coord.join(threads)
print(f"figure accuracy {np.mean(history[-300:]):.4f}")
