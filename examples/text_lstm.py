"""Praise or not, once more: an LSTM reads the sentence word by word (Hochreiter 1997).

A convolution (`sentence_cnn.py`) sees five words at most; a recurrent network carries a state from
word to word, and what it has read last is the whole sentence. New here:

* sentences have different lengths. The array that holds them is padded with zeros, and
  `Embedding(mask_zero=True)` tells all layers after it which words are there: the LSTM keeps its
  state where none is, so that the result is that of the sentence alone;
* `Bidirectional`: a second LSTM reads from the end;
* `fit` with a callback that lets the learning stop when the sentences kept apart get no better.

    python examples/text_lstm.py [--epochs 6] [--units 64] [--model_dir runs/lstm]

About three in four of 1,066 sentences that the training never saw are told right.
"""

from __future__ import annotations

import argparse
import os

import estimatorkit as tf
from estimatorkit import keras

WORDS = 10_000  # the most frequent ones have a row each; the others share that of UNKNOWN
UNKNOWN = "<unknown>"
LENGTH = 59  # words in the longest sentence of the data set


def load(examples=None):
    """`(train ids, labels), (test ids, labels), tokenizer`; ids are `(sentences, LENGTH)`."""
    (train, train_labels), (test, test_labels) = tf.datasets.movie_reviews.load_data()
    tokenizer = keras.preprocessing.text.Tokenizer(WORDS, filters="", oov_token=UNKNOWN)
    tokenizer.fit_on_texts(train)
    return (
        (ids_of(train[:examples], tokenizer), train_labels[:examples]),
        (ids_of(test, tokenizer), test_labels),
        tokenizer,
    )


def ids_of(sentences, tokenizer):
    """The words' numbers, from 1; 0 fills up to LENGTH."""
    numbers = tokenizer.texts_to_sequences(sentences)
    return keras.preprocessing.sequence.pad_sequences(numbers, LENGTH, padding="post")


def build(units, embedding_size):
    """Words to rows, rows to the two directions' last states, these to one probability."""
    model = keras.Sequential(
        [
            keras.layers.Embedding(WORDS, embedding_size, mask_zero=True, input_length=LENGTH),
            keras.layers.SpatialDropout1D(0.4),  # drops whole coordinates of a sentence's words
            keras.layers.Bidirectional(keras.layers.LSTM(units)),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model


def main(epochs=6, units=64, embedding_size=64, examples=None, seed=None, model_dir=None):
    keras.utils.set_random_seed(0 if seed is None else seed)
    train, (test_ids, test_labels), tokenizer = load(examples)
    model = build(units, embedding_size)
    model.summary()

    # A tenth of the training part chooses the epoch; the test part is looked at once, at the end.
    callbacks = [keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)]
    if model_dir is not None:
        os.makedirs(model_dir, exist_ok=True)
        callbacks.append(keras.callbacks.CSVLogger(os.path.join(model_dir, "epochs.csv")))
    history = model.fit(
        *train, batch_size=64, epochs=epochs, validation_split=0.1, verbose=2, callbacks=callbacks
    )
    loss, accuracy = model.evaluate(test_ids, test_labels, batch_size=1066, verbose=0)
    print(f"\nafter {len(history.epoch)} epochs: accuracy {accuracy:.4f}, loss {loss:.4f}")

    sentences = [
        "a gripping , beautifully acted film .",
        "a dull , predictable mess .",
        "too long , but never boring .",
    ]
    for sentence, (praise,) in zip(
        sentences, model.predict(ids_of(sentences, tokenizer), verbose=0), strict=True
    ):
        print(f"{praise:5.0%} praise: {sentence}")
    return {"accuracy": float(accuracy), "loss": float(loss), "epochs": len(history.epoch)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6, help="epochs at most")
    parser.add_argument("--units", type=int, default=64, help="numbers in the state of each LSTM")
    parser.add_argument("--embedding_size", type=int, default=64, help="numbers for a word")
    parser.add_argument("--examples", type=int, help="train on so many sentences only")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--model_dir", help="where the figures of each epoch are kept")
    main(**vars(parser.parse_args()))
