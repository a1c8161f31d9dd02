"""MNIST by hand: softmax regression as a graph, a session, and a loop of one's own.

No estimator here: this page shows what stands below them.

* A graph describes a computation, and computes nothing. `logits` below is a `Tensor`: what will be
  there once somebody runs the graph.
* A `Session` runs it. `session.run(train_step, feed_dict={...})` fills the placeholders with one
  batch, computes what `train_step` needs and nothing else, and keeps the variables' new values.
* A `Dataset` can stand where the placeholders stood: the batches are then tensors of the graph
  like all others, nothing is fed, and the loop is `session.run(train_step)`.

Both loops see the same batches in the same order, so that both reach the same accuracy. Run it with

    python examples/mnist_softmax.py [--steps 1000] [--batch_size 100] [--learning_rate 0.5]

After 1000 steps about 92 % of the 10,000 test pictures are told right: the best one can expect of a
model that gives each pixel one weight a digit. The next pages do better.
"""

from __future__ import annotations

import argparse

import numpy as np

import estimatorkit as tf


def load():
    """Pictures as rows of 784 numbers from 0 (white) to 1 (black), labels 0 to 9."""
    parts = tf.datasets.mnist.load_data()
    return [
        (images.reshape(-1, 784).astype(np.float32) / 255, labels.astype(np.int64))
        for images, labels in parts
    ]


def model(images, labels, learning_rate):
    """The graph: from pictures and labels to a step of training and an accuracy."""
    # Zeros are a good beginning here, where there is one layer; they are none for a deep network.
    weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
    biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
    logits = tf.matmul(images, weights) + biases
    # tf.log(tf.nn.softmax(logits)) is minus infinity for a probability that rounds to 0; the loss
    # function takes the logits, and stays finite.
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    # minimize adds the gradients to the graph, and the operations that change the variables.
    train_step = tf.train.GradientDescentOptimizer(learning_rate).minimize(loss)
    is_correct = tf.equal(tf.argmax(logits, 1), labels)
    return train_step, loss, tf.reduce_mean(tf.cast(is_correct, tf.float32))


def batches(images, labels, batch_size):
    """Shuffled again in each epoch; the seed makes the order the same for both loops."""
    pairs = tf.data.Dataset.from_tensor_slices((images, labels))
    return pairs.shuffle(len(images), seed=1).repeat().batch(batch_size)


def by_feed_dict(train, test, steps, batch_size, learning_rate):
    """Python holds the pictures, and hands the graph one batch a step."""
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.placeholder(tf.float32, [None, 784], name="images")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        train_step, loss, accuracy = model(images, labels, learning_rate)
        batch = batches(*train, batch_size).make_one_shot_iterator().get_next()
        session.run(tf.global_variables_initializer())
        for step in range(steps):
            # Any arrays would do here: this is where a program puts pictures of its own.
            batch_images, batch_labels = session.run(batch)
            feed = {images: batch_images, labels: batch_labels}
            session.run(train_step, feed_dict=feed)
            if step % 100 == 0:
                # Several things at once are computed once: the logits are the same for both.
                now = session.run([loss, accuracy], feed_dict=feed)
                print("step {:4d}: loss {:.3f}, accuracy {:.2f} on its batch".format(step, *now))
        test_images, test_labels = test
        return session.run(accuracy, feed_dict={images: test_images, labels: test_labels})


def by_dataset(train, test, steps, batch_size, learning_rate):
    """The pictures are part of the graph; an iterator that can be set anew serves two datasets."""
    with tf.Graph().as_default(), tf.Session() as session:
        to_train = batches(*train, batch_size)
        to_test = tf.data.Dataset.from_tensor_slices(test).batch(len(test[1]))
        iterator = tf.data.Iterator.from_structure(
            tf.data.get_output_types(to_train), tf.data.get_output_shapes(to_train)
        )
        train_step, _, accuracy = model(*iterator.get_next(), learning_rate)
        session.run([tf.global_variables_initializer(), iterator.make_initializer(to_train)])
        for _ in range(steps):
            session.run(train_step)
        session.run(iterator.make_initializer(to_test))
        return session.run(accuracy)


def main(steps=1000, batch_size=100, learning_rate=0.5):
    train, test = load()
    fed = by_feed_dict(train, test, steps, batch_size, learning_rate)
    print(f"\nby feed_dict: {fed:.4f} of the test pictures are told right")
    read = by_dataset(train, test, steps, batch_size, learning_rate)
    print(f"by a Dataset: {read:.4f}")
    return {"accuracy": float(fed), "accuracy_by_dataset": float(read)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000, help="training steps")
    parser.add_argument("--batch_size", type=int, default=100, help="pictures in a batch")
    parser.add_argument("--learning_rate", type=float, default=0.5, help="of gradient descent")
    main(**vars(parser.parse_args()))
