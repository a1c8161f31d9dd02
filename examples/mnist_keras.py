"""MNIST in the style of Keras: layers in a row, `compile`, `fit`; then the same as an estimator.

The network of `mnist_cnn.py`, told by its layers only. `fit` is the loop for one's own desk, with
callbacks at the end of each epoch; an estimator is the loop for long trainings that are stopped and
taken up again, evaluated on the way, and exported. `model_to_estimator` goes from one to the other,
and takes the weights along: what `fit` has learned is where the estimator begins. New here:

* `keras.Sequential` and `compile`: loss, metrics and optimizer by their names;
* `fit` with callbacks: `EarlyStopping` ends a training that no longer gets better, and gives the
  best epoch's weights back; `CSVLogger` keeps the figures;
* `model_to_estimator`, trained on by `train_and_evaluate`.

    python examples/mnist_keras.py [--epochs 2] [--steps 500] [--model_dir runs/mnist_keras]

It prints how many of the test pictures are told right after `fit`, and after the estimator's steps.
"""

from __future__ import annotations

import argparse
import os
import tempfile

import numpy as np

import estimatorkit as tf
from estimatorkit import keras


def load(examples):
    """Pictures `(count, 28, 28, 1)` of 0 to 1 and labels, to train and to test with."""
    return [
        ((images[:examples, ..., np.newaxis] / 255).astype(np.float32), labels[:examples])
        for images, labels in keras.datasets.mnist.load_data()
    ]


def build():
    """The slides' network; each layer's input is the output of the one before it."""
    model = keras.Sequential(
        [
            keras.layers.Conv2D(32, kernel_size=(3, 3), activation="relu", input_shape=(28, 28, 1)),
            keras.layers.MaxPooling2D(pool_size=(2, 2)),
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    # Labels are numbers from 0 to 9; 'categorical_crossentropy' would want rows of 0 and 1.
    model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    return model


def main(epochs=2, steps=500, batch_size=128, examples=None, seed=None, model_dir=None):
    keras.utils.set_random_seed(0 if seed is None else seed)
    (train_x, train_y), (test_x, test_y) = load(examples)
    model = build()
    model.summary()

    # 1. fit: from NumPy arrays; a twelfth of them is kept to choose the best epoch by.
    model_dir = model_dir or tempfile.mkdtemp(prefix="mnist_keras_")
    os.makedirs(model_dir, exist_ok=True)
    history = model.fit(
        train_x,
        train_y,
        batch_size=batch_size,
        epochs=epochs,
        validation_split=1 / 12,
        verbose=2,
        callbacks=[
            keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True),
            keras.callbacks.CSVLogger(os.path.join(model_dir, "epochs.csv")),
        ],
    )
    _, fitted = model.evaluate(test_x, test_y, batch_size=1000, verbose=0)
    print(f"\nafter {len(history.epoch)} epochs of fit: accuracy {fitted:.4f}\n")

    # 2. The same model as an estimator. Its features are called as the model's input is.
    (name,) = model.input_names
    classifier = keras.estimator.model_to_estimator(
        model, model_dir=model_dir, config=tf.estimator.RunConfig(tf_random_seed=seed)
    )

    def train_input_fn():
        pairs = tf.data.Dataset.from_tensor_slices(({name: train_x}, train_y))
        return pairs.shuffle(len(train_y)).repeat().batch(batch_size)

    def eval_input_fn():
        return tf.data.Dataset.from_tensor_slices(({name: test_x}, test_y)).batch(1000)

    metrics, _ = tf.estimator.train_and_evaluate(
        classifier,
        tf.estimator.TrainSpec(train_input_fn, max_steps=steps),
        tf.estimator.EvalSpec(eval_input_fn, steps=None),
    )
    print("\nafter {global_step} more steps: accuracy {accuracy:.4f}".format(**metrics))
    return {**metrics, "fit_accuracy": float(fitted), "epochs": len(history.epoch)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2, help="epochs of fit")
    parser.add_argument("--steps", type=int, default=500, help="steps of the estimator after it")
    parser.add_argument("--batch_size", type=int, default=128, help="pictures in a batch")
    parser.add_argument("--examples", type=int, help="so many pictures only")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--model_dir", help="where the model is kept; default: a temporary folder")
    main(**vars(parser.parse_args()))
