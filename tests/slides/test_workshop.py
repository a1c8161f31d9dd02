"""The workshop (matrices, softmax regression on MNIST, a first graph, word2vec), by its slides."""

from __future__ import annotations

import math
import zipfile
from collections import Counter, deque

import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.compat import mnist_input_data as input_data
from tests.slides.data import data_dir


def test_what_does_tensorflow_code_look_like(capsys: pytest.CaptureFixture[str]) -> None:
    sess = tf.InteractiveSession()  # don't mess with passing around a session
    ml_is_fun = tf.constant([6.2, 12.0, 5.9], shape=[1, 3])
    python_is_ok_too = tf.constant([9.3, 1.7, 8.8], shape=[3, 1])
    matrices_omg = tf.matmul(ml_is_fun, python_is_ok_too)
    print(matrices_omg)  # => Tensor("MatMul:0", shape=(1, 1), dtype=float32)
    value = matrices_omg.eval()
    print(value)  # => [[ 129.97999573]]
    sess.close()  # let's be responsible about this
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'Tensor("MatMul:0", shape=(1, 1), dtype=float32)'
    np.testing.assert_allclose(value, [[129.97999573]], rtol=1e-6)


@pytest.mark.slow
def test_softmax_regression_on_mnist() -> None:
    """Slides 36 to 40; the slide's `feed=` is the `feed_dict=` that it means."""
    mnist = input_data.read_data_sets(
        str(data_dir("mnist")), one_hot=True, reshape=False, validation_size=0, seed=1
    )
    tf.set_random_seed(1)
    X = tf.placeholder(tf.float32, [None, 28, 28, 1])
    W = tf.Variable(tf.zeros([784, 10]))
    b = tf.Variable(tf.zeros([10]))
    init = tf.initialize_all_variables()
    # model
    Y = tf.nn.softmax(tf.matmul(tf.reshape(X, [-1, 784]), W) + b)
    # placeholder for correct answers
    Y_ = tf.placeholder(tf.float32, [None, 10])
    # loss function
    cross_entropy = -tf.reduce_sum(Y_ * tf.log(Y))
    # % of correct answers found in batch
    is_correct = tf.equal(tf.argmax(Y, 1), tf.argmax(Y_, 1))
    accuracy = tf.reduce_mean(tf.cast(is_correct, tf.float32))
    optimizer = tf.train.GradientDescentOptimizer(0.003)
    train_step = optimizer.minimize(cross_entropy)
    sess = tf.Session()
    sess.run(init)
    for i in range(1000):
        # load batch of images and correct answers
        batch_X, batch_Y = mnist.train.next_batch(100)
        train_data = {X: batch_X, Y_: batch_Y}
        # train
        sess.run(train_step, feed_dict=train_data)
        # success ?
        if i % 100 == 0:
            a, c = sess.run([accuracy, cross_entropy], feed_dict=train_data)
            assert np.isfinite(c)
    # success on test data ?
    test_data = {X: mnist.test.images, Y_: mnist.test.labels}
    a, c = sess.run([accuracy, cross_entropy], feed_dict=test_data)
    assert a >= 0.90
    steps = [segment for segment in sess.plan(train_step, [X, Y_]).segments]
    assert len(steps) == 1  # a step is one XLA call
    sess.close()


def test_first_graph(capfd: pytest.CaptureFixture[str]) -> None:
    """Slides 43 to 47, with the exercise's m4; the slide feeds a placeholder that nothing uses."""
    graph = tf.Graph()
    m1 = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], dtype=np.float32)
    with graph.as_default():
        # Input data.
        m1_input = tf.placeholder(tf.int32, shape=[4, 2])
        # Ops and variables pinned to the CPU because of missing GPU implementation
        with tf.device("/cpu:0"):
            m2 = tf.Variable(tf.random_uniform([2, 3], -1.0, 1.0))
            m3 = tf.matmul(m1, m2)
            # This is an identity op with the side effect of printing data when evaluating.
            m3 = tf.Print(m3, [m3], message="m3 is: ")
            m4 = m3 + m3
            # Add variable initializer.
            init = tf.initialize_all_variables()
    with tf.Session(graph=graph) as session:
        # We must initialize all variables before we use them.
        init.run()
        print("Initialized")
        print("m2: {}".format(m2))  # noqa: UP032
        print("eval m2: {}".format(m2.eval()))  # noqa: UP032
        feed_dict = {m1_input: m1}
        result = session.run([m3], feed_dict=feed_dict)
        print("\nresult: {}\n".format(result))  # noqa: UP032
        weights, both = session.run([m2, [m3, m4]], feed_dict=feed_dict)
    printed = capfd.readouterr()
    assert "Initialized" in printed.out
    assert "m2: <tf.Variable" in printed.out
    np.testing.assert_allclose(result[0], m1 @ weights, rtol=1e-6)
    np.testing.assert_allclose(both[1], 2 * both[0], rtol=1e-6)
    assert printed.err.count("m3 is: [") == 2


def text8_words(count: int) -> list[str]:
    with zipfile.ZipFile(data_dir("text") / "text8-head.zip") as archive:
        return archive.read("text8").decode().split()[:count]


def skip_grams(words: list[int], seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(word, a word beside it) for a window of one in both directions."""
    window: deque[int] = deque(maxlen=3)
    pairs = []
    for word in words:
        window.append(word)
        if len(window) == 3:
            left, middle, right = window
            pairs += [(middle, left), (middle, right)]
    shuffled = np.random.default_rng(seed).permutation(np.array(pairs, np.int32))
    return shuffled[:, 0], shuffled[:, 1:]


@pytest.mark.slow
def test_word2vec() -> None:
    """Slides 58 to 60, on the first words of text8; `nce_loss` takes the slide's argument order."""
    words = text8_words(200_000)
    counts = Counter(words).most_common(1999)
    index = {word: number + 1 for number, (word, _) in enumerate(counts)}
    vocabulary_size, embedding_size, batch_size, num_sampled = 2000, 32, 128, 16
    inputs, labels = skip_grams([index.get(word, 0) for word in words], seed=1)
    valid_examples = np.array([index["four"], index["he"]])
    tf.set_random_seed(1)
    graph = tf.get_default_graph()
    # Input data.
    train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
    train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
    valid_dataset = tf.constant(valid_examples, dtype=tf.int32)
    # Ops and variables pinned to the CPU because of missing GPU implementation
    with tf.device("/cpu:0"):
        # Look up embeddings for inputs.
        embeddings = tf.Variable(tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
        embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        # Construct the variables for the NCE loss
        nce_weights = tf.Variable(
            tf.truncated_normal(
                [vocabulary_size, embedding_size], stddev=1.0 / math.sqrt(embedding_size)
            )
        )
        nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
    # Compute the average NCE loss for the batch.
    loss = tf.reduce_mean(
        tf.nn.nce_loss(nce_weights, nce_biases, embed, train_labels, num_sampled, vocabulary_size)
    )
    # Construct the SGD optimizer using a learning rate of 1.0.
    optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    # Compute the cosine similarity between minibatch examples and all embeddings.
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized_embeddings = embeddings / norm
    valid_embeddings = tf.nn.embedding_lookup(normalized_embeddings, valid_dataset)
    similarity = tf.matmul(valid_embeddings, normalized_embeddings, transpose_b=True)
    losses = []
    with tf.Session(graph=graph) as session:
        tf.initialize_all_variables().run()
        for step in range(9000):
            chosen = slice(step * batch_size % 300_000, step * batch_size % 300_000 + batch_size)
            feed_dict = {train_inputs: inputs[chosen], train_labels: labels[chosen]}
            # We perform one update step by evaluating the optimizer op (including it
            # in the list of returned values for session.run()
            _, loss_val = session.run([optimizer, loss], feed_dict=feed_dict)
            losses.append(loss_val)
        sim = similarity.eval()
    assert np.mean(losses[-200:]) < 0.25 * np.mean(losses[:50])
    names = ["UNK", *index]
    nearest = [names[at] for at in (-sim[0]).argsort()[1:11]]
    assert (
        len({"one", "two", "three", "five", "six", "seven", "eight", "nine", "zero"} & set(nearest))
        >= 5
    ), nearest
