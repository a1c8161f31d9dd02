"""Word vectors by skip-gram and noise-contrastive estimation, as the basic word2vec tutorial
trains them.

50,000 words of text8, vectors of 128, windows of one word, batches of 128, 64 noise words,
gradient descent at 1.0 for 1,500 steps; the nearest words of 16 frequent words are printed at
the start and the end, summaries and a checkpoint written.
"""

import collections
import os
import random
import tempfile

import numpy as np
from texts import text8

import estimatorkit.compat.v1 as tf

vocabulary_size = 50000
batch_size = 128
embedding_size = 128
skip_window = 1
num_skips = 2
num_sampled = 64
num_steps = 1501
valid_size = 16
valid_window = 100

data, names = text8(vocabulary_size)
data_index = 0
random.seed(1)
np.random.seed(1)


def generate_batch():
    """The next words and as many of their neighbours as num_skips says."""
    global data_index
    batch = np.ndarray(shape=(batch_size), dtype=np.int32)
    labels = np.ndarray(shape=(batch_size, 1), dtype=np.int32)
    span = 2 * skip_window + 1
    buffer = collections.deque(maxlen=span)
    buffer.extend(data[data_index : data_index + span])
    data_index += span
    for i in range(batch_size // num_skips):
        context = [w for w in range(span) if w != skip_window]
        for j, word in enumerate(random.sample(context, num_skips)):
            batch[i * num_skips + j] = buffer[skip_window]
            labels[i * num_skips + j, 0] = buffer[word]
        buffer.append(data[data_index])
        data_index += 1
    data_index -= span
    return batch, labels


valid_examples = np.random.choice(valid_window, valid_size, replace=False)
graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(1)
    with tf.name_scope("inputs"):
        train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
        train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
        valid_dataset = tf.constant(valid_examples, dtype=tf.int32)
    with tf.device("/cpu:0"):
        with tf.name_scope("embeddings"):
            embeddings = tf.Variable(
                tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0)
            )
            embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        with tf.name_scope("weights"):
            deviation = 1.0 / np.sqrt(embedding_size)
            nce_weights = tf.Variable(
                tf.truncated_normal([vocabulary_size, embedding_size], stddev=deviation)
            )
        with tf.name_scope("biases"):
            nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
    with tf.name_scope("loss"):
        loss = tf.reduce_mean(
            tf.nn.nce_loss(
                weights=nce_weights,
                biases=nce_biases,
                labels=train_labels,
                inputs=embed,
                num_sampled=num_sampled,
                num_classes=vocabulary_size,
            )
        )
    tf.summary.scalar("loss", loss)
    with tf.name_scope("optimizer"):
        optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
    normalized_embeddings = embeddings / norm
    valid_embeddings = tf.nn.embedding_lookup(normalized_embeddings, valid_dataset)
    similarity = tf.matmul(valid_embeddings, normalized_embeddings, transpose_b=True)
    merged = tf.summary.merge_all()
    init = tf.global_variables_initializer()
    saver = tf.train.Saver()

with tempfile.TemporaryDirectory() as log_dir, tf.Session(graph=graph) as session:
    writer = tf.summary.FileWriter(log_dir, session.graph)
    init.run()
    average_loss = 0
    for step in range(num_steps):
        batch_inputs, batch_labels = generate_batch()
        feed_dict = {train_inputs: batch_inputs, train_labels: batch_labels}
        _, summary, loss_val = session.run([optimizer, merged, loss], feed_dict=feed_dict)
        average_loss += loss_val
        writer.add_summary(summary, step)
        if step % 500 == 0:
            if step > 0:
                average_loss /= 500
            print(f"Average loss at step {step}: {average_loss:.3f}")
            final_loss, average_loss = average_loss, 0
        if step % (num_steps - 1) == 0:
            sim = similarity.eval()
            for i in range(valid_size):
                nearest = (-sim[i, :]).argsort()[1:9]
                words = ", ".join(names[number] for number in nearest)
                print(f"Nearest to {names[valid_examples[i]]}: {words}")
    final_embeddings = normalized_embeddings.eval()
    saver.save(session, os.path.join(log_dir, "model.ckpt"))
    writer.close()
print("vectors", final_embeddings.shape)
print(f"figure loss {final_loss:.4f}")
