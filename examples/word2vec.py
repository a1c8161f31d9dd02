"""word2vec: what a word means, learnt from the words around it.

Skip-gram (Mikolov et al. 2013): from each word of a text, predict its neighbours. A softmax over
all words would cost too much; `tf.nn.nce_loss` asks instead which of some words is the neighbour
and which were drawn at random (noise-contrastive estimation). What the model predicts is then
thrown away: wanted is the table of weights, in which similar words have come to similar rows.

* The text is an array of numbers, one a word; its windows are a view of it, no copies. The dataset
  gathers a batch of windows at once, and Python never sees a single example.
* Each centre word is looked up once for all its neighbours; the gradient of a lookup has only the
  rows that were taken, and so the optimizer touches only these.
* The estimator runs hundreds of such steps in one call: the sampling, too, is part of the graph.

    python examples/word2vec.py [--steps 10000] [--save vectors.npz] [--whole]

It prints the nearest neighbours of some words, the speed, and, given word2vec's file of questions
(`--questions questions-words.txt`), how many analogies come out: "athens is to greece as oslo is to
...?" After three epochs over the first million words it is one in 25: of so little text no more can
be learnt, but a guess would be right once in 15,000 times. `sentence_cnn.py` begins with what
`--save` has written.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

import estimatorkit as tf

MIN_COUNT = 5  # rarer words are left out: nothing can be learnt of them
FREQUENT = 1e-3  # of words with a larger share of the text, places are left out
WINDOW = 3  # neighbours on either side
BATCH = 256  # centre words


def load(whole=False, words=None):
    """The vocabulary, most frequent word first, and the text as int32 numbers into it."""
    text = tf.datasets.text8.load_data(head=not whole).split()[:words]
    counts = [each for each in Counter(text).most_common() if each[1] >= MIN_COUNT]
    vocabulary = [word for word, _ in counts]
    number = {word: index for index, word in enumerate(vocabulary)}
    return vocabulary, np.array([number[word] for word in text if word in number], np.int32)


def thinned(text, seed):
    """The text without most of its 'the' and 'of': a frequent word is kept less often."""
    share = np.bincount(text) / len(text)
    keep = np.sqrt(FREQUENT / share) + FREQUENT / share  # as in Mikolov's program
    return text[np.random.default_rng(seed).random(len(text)) < keep[text]]


def input_fn(text, window, batch_size, seed):
    """Windows `(batch, 2 * window + 1)` of the text, in another order each time."""
    text = thinned(text, seed)
    windows = np.lib.stride_tricks.sliding_window_view(text, 2 * window + 1)

    def batches():
        dataset = tf.data.Dataset.from_tensor_slices(windows)
        return dataset.shuffle(len(windows)).repeat().batch(batch_size, drop_remainder=True)

    return batches, len(windows)


def model_fn(features, labels, mode, params):
    """Skip-gram; there are no labels, for the text is both question and answer."""
    share, size, window = params["share"], params["size"], features.shape[1] // 2
    words = len(share)
    embeddings = tf.get_variable(
        "embeddings", [words, size], initializer=tf.random_uniform_initializer(-0.5, 0.5)
    )
    # The output layer has as many rows as words, of which a step takes a few. A bias begins as what
    # one would guess of a word without looking: the logarithm of its share of the text.
    weights = tf.get_variable("nce_weights", [words, size], initializer=tf.zeros_initializer())
    guess = tf.constant_initializer(np.log(share))
    biases = tf.get_variable("nce_biases", [words], initializer=guess)

    centre = tf.nn.embedding_lookup(embeddings, features[:, window])
    neighbours = tf.concat([features[:, :window], features[:, window + 1 :]], axis=1)
    # All neighbours of a word at once: they share the words that were drawn.
    losses = tf.nn.nce_loss(
        weights,
        biases,
        labels=neighbours,
        inputs=centre,
        num_sampled=params["sampled"],
        num_classes=words,
        num_true=2 * window,
    )
    # Summed, so that a word's rows move as far for each place where it stands, whatever the batch;
    # Adagrad makes the steps shorter, sooner for frequent words than for rare ones.
    loss = tf.reduce_sum(losses)
    optimizer = tf.train.AdagradOptimizer(0.2)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def nearest(vectors, rows, count):
    """The numbers of the words nearest to `rows`, by the cosine; `vectors` have length 1."""
    similarity = rows @ vectors.T
    return np.argsort(-similarity, axis=1)[:, :count]


def analogies(vocabulary, vectors, path):
    """How many of the questions "a is to b as c is to ...?" have d as the nearest word.

    Returns:
        (right answers, questions whose four words are all in the vocabulary).
    """
    number = {word: index for index, word in enumerate(vocabulary)}
    with open(path, encoding="ascii") as file:
        lines = [line.lower().split() for line in file if not line.startswith(":")]
    known = [line for line in lines if all(word in number for word in line)]
    questions = np.array([[number[word] for word in line] for line in known]).reshape(-1, 4)
    right = 0
    for part in np.array_split(questions, len(questions) // 500 + 1):
        a, b, c, d = part.T
        similarity = (vectors[b] - vectors[a] + vectors[c]) @ vectors.T
        for word in (a, b, c):  # the question's own words are no answers
            similarity[np.arange(len(part)), word] = -np.inf
        right += int(np.sum(similarity.argmax(1) == d))
    return right, len(questions)


def main(
    steps=10000, words=None, whole=False, questions=None, save=None, seed=None, model_dir=None
):
    vocabulary, text = load(whole, words)
    batches, windows = input_fn(text, WINDOW, BATCH, seed or 0)
    print(f"{len(text)} words, {len(vocabulary)} different ones, {windows} windows in an epoch")
    estimator = tf.estimator.Estimator(
        model_fn,
        model_dir=model_dir,
        params={"share": np.bincount(text) / len(text), "size": 128, "sampled": 64},
        config=tf.estimator.RunConfig(tf_random_seed=seed, log_step_count_steps=1000),
    )
    began = time.perf_counter()
    estimator.train(batches, steps=steps)
    epochs = steps * BATCH / windows
    # A word that was thinned out is read, too: it counts for the speed, as in other programs.
    speed = epochs * len(text) / (time.perf_counter() - began)
    print(f"\n{epochs:.1f} epochs, {speed:.0f} words a second, compilation included")

    vectors = estimator.get_variable_value("embeddings")
    if save is not None:
        np.savez(save, words=np.array(vocabulary), vectors=vectors)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = [word for word in ("three", "france", "king", "water", "he") if word in vocabulary]
    rows = vectors[[vocabulary.index(word) for word in asked]]
    for word, found in zip(asked, nearest(vectors, rows, 7), strict=True):
        print(f"{word}:", *(vocabulary[each] for each in found[1:]))  # the first is the word itself
    result = {"vocabulary": len(vocabulary), "words_per_second": speed, "epochs": epochs}
    if questions is not None:
        right, known = analogies(vocabulary, vectors, questions)
        print(f"{right} of {known} analogies are right ({right / max(known, 1):.1%})")
        result.update(right=right, questions=known)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10000, help="training steps")
    parser.add_argument("--words", type=int, help="so many words of the text only")
    parser.add_argument("--whole", action="store_true", help="all 17 million words, not the first")
    parser.add_argument("--questions", help="the file questions-words.txt")
    parser.add_argument("--save", help="an .npz for the words and their vectors")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--model_dir", help="where the model is kept; default: a temporary folder")
    main(**vars(parser.parse_args()))
