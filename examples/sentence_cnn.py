"""Is a sentence of a film review praise or not? A convolutional network over its words.

Kim's network (2014): a sentence is a picture of one row for each word. A filter looks at 3, 4 or 5
words in a row; of all places of the sentence, only its strongest answer counts ("max over time"),
so that "a gripping film" is found wherever it stands. Three sizes, 100 filters each, are 300
numbers a sentence; dropout and one dense layer make two logits of them.

The rows of the words may begin at random, or as `word2vec.py` has learnt them from another text:

    python examples/word2vec.py --save vectors.npz
    python examples/sentence_cnn.py [--vectors vectors.npz] [--epochs 4] [--model_dir runs/cnn]

The 9,596 sentences are few for 20,000 words: the training part is soon known by heart. Of sentences
kept apart Kim's networks told 0.76 right with random rows to begin with, and 0.81 with rows learnt
of 100 billion words of news; 1,066 sentences tell such figures to about 0.013.
"""

from __future__ import annotations

import argparse

import numpy as np

import estimatorkit as tf
from estimatorkit import keras

LENGTH = 59  # words in the longest sentence of the data set
FILTER_WIDTHS = (3, 4, 5)
UNKNOWN = "<unknown>"  # stands for words that the training part does not have


def load():
    """`(train ids, labels), (test ids, labels), words`; ids are int32 `(sentences, LENGTH)`.

    The number 0 pads.
    """
    (train, train_labels), (test, test_labels) = tf.datasets.movie_reviews.load_data()
    tokenizer = keras.preprocessing.text.Tokenizer(filters="", oov_token=UNKNOWN)
    tokenizer.fit_on_texts(train)

    def ids(sentences):
        numbers = tokenizer.texts_to_sequences(sentences)
        return keras.preprocessing.sequence.pad_sequences(numbers, LENGTH, padding="post")

    words = ["<padding>", *tokenizer.word_index]  # in the order of their numbers
    return (ids(train), train_labels), (ids(test), test_labels), words


def first_rows(words, size, path=None, seed=0):
    """The embeddings to begin with, float32 `(words, size)`.

    Args:
        words: one for each row.
        size: the length of a row, where no file says it.
        path: an `.npz` with 'words' and 'vectors'; a word that it lacks gets a random row.
        seed: of the random rows.
    """
    random = np.random.default_rng(seed)
    if path is None:
        return random.uniform(-0.25, 0.25, (len(words), size)).astype(np.float32)
    with np.load(path) as file:
        known, vectors = {word: row for row, word in enumerate(file["words"])}, file["vectors"]
    # The same spread for learnt rows and random ones, as in Kim's paper: none drowns the other.
    rows = first_rows(words, vectors.shape[1], seed=seed)
    vectors = vectors * (rows.std() / vectors.std())
    found = [number for number, word in enumerate(words) if word in known]
    rows[found] = vectors[[known[words[number]] for number in found]]
    print(f"{len(found)} of {len(words)} words begin as {path} has them")
    return rows


def model_fn(features, labels, mode, params):
    """Kim's network; `params`: 'rows' to begin with, 'filters' of each width, 'dropout'."""
    training = mode == tf.estimator.ModeKeys.TRAIN
    rows = params["rows"]
    embeddings = tf.get_variable(
        "embeddings", rows.shape, initializer=tf.constant_initializer(rows)
    )
    net = tf.nn.embedding_lookup(embeddings, features["ids"])  # (batch, LENGTH, size)
    net = tf.layers.dropout(net, params["dropout"] / 2, training=training)
    strongest = []
    for width in FILTER_WIDTHS:
        answers = tf.layers.conv1d(
            net, params["filters"], width, activation=tf.nn.relu, name=f"width_{width}"
        )
        strongest.append(tf.reduce_max(answers, axis=1))  # over time: (batch, filters)
    net = tf.layers.dropout(tf.concat(strongest, axis=1), params["dropout"], training=training)
    logits = tf.layers.dense(net, 1, name="logits")

    # A head makes of logits what mnist_cnn.py spells out: predictions, loss, metrics, exports.
    return tf.estimator.BinaryClassHead().create_estimator_spec(
        features, mode, logits, labels, optimizer=tf.train.AdamOptimizer(0.001)
    )


def input_fn(ids, labels, batch_size, epochs=1, shuffle=False):
    """Batches of sentences and labels, as often as asked for."""

    def batches():
        dataset = tf.data.Dataset.from_tensor_slices(({"ids": ids}, labels))
        if shuffle:
            dataset = dataset.shuffle(len(labels))
        return dataset.repeat(epochs).batch(batch_size)

    return batches


def main(epochs=4.0, vectors=None, filters=100, batch_size=64, seed=None, model_dir=None):
    train, test, words = load()
    classifier = tf.estimator.Estimator(
        model_fn,
        model_dir=model_dir,
        params={
            "rows": first_rows(words, 128, vectors, seed or 0),
            "filters": filters,
            "dropout": 0.5,
        },
        config=tf.estimator.RunConfig(tf_random_seed=seed),
    )
    metrics, _ = tf.estimator.train_and_evaluate(
        classifier,
        tf.estimator.TrainSpec(
            input_fn(*train, batch_size, epochs=None, shuffle=True),
            max_steps=round(epochs * len(train[1]) / batch_size),
        ),
        tf.estimator.EvalSpec(input_fn(*test, 1066), steps=None),
    )
    print(
        "\nafter {global_step} steps: accuracy {accuracy:.4f}, area under the ROC curve "
        "{auc:.4f}".format(**metrics)
    )
    return metrics


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=float, default=4.0, help="times through the sentences")
    parser.add_argument("--vectors", help="what word2vec.py --save has written; default: random")
    parser.add_argument("--filters", type=int, default=100, help="filters of each width")
    parser.add_argument("--batch_size", type=int, default=64, help="sentences in a batch")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--model_dir", help="where the model is kept; default: a temporary folder")
    main(**vars(parser.parse_args()))
