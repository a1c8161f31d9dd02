"""Training by `fit`, one function each for every package with Keras's names.

A call is a whole `fit`, which is how people use it: what it costs to begin one counts. PyTorch,
which has no `fit`, runs the same epochs in a loop (`participants/pytorch.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.workloads import Array, iris_data, mnist_shaped_data


@dataclass(frozen=True)
class Fit:
    """What a call of a workload trains with.

    Attributes:
        x: float32, the first axis the examples.
        y: class numbers.
        epochs: of a call.
        batch_size: the last batch of an epoch may be smaller.
        classes: how many.
    """

    x: Array
    y: Array
    epochs: int
    batch_size: int
    classes: int


def iris() -> Fit:
    """120 examples of 4 features, 20 epochs of 4 batches."""
    features, labels = iris_data()
    return Fit(np.stack(list(features.values()), axis=1), labels, 20, 32, 3)


def mnist_dnn() -> Fit:
    """12,800 pictures of 784 pixels, an epoch of 100 batches."""
    features, labels = mnist_shaped_data()
    return Fit(features["x"][:12_800], labels[:12_800], 1, 128, 10)


def mnist_cnn() -> Fit:
    """5,120 pictures of 28 x 28 pixels, an epoch of 40 batches."""
    features, labels = mnist_shaped_data()
    return Fit(features["x"][:5_120].reshape(-1, 28, 28, 1), labels[:5_120], 1, 128, 10)


DATA: dict[str, Callable[[], Fit]] = {
    "fit_iris": iris,
    "fit_mnist_dnn": mnist_dnn,
    "fit_mnist_cnn": mnist_cnn,
}


def layers_of(name: str, keras: Any) -> list[Any]:
    """The hidden layers of a workload's network."""
    layers = keras.layers
    if name == "fit_iris":
        return [layers.Dense(10, activation="relu"), layers.Dense(10, activation="relu")]
    if name == "fit_mnist_dnn":
        return [layers.Dense(256, activation="relu"), layers.Dense(128, activation="relu")]
    return [
        layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dense(128, activation="relu"),
        layers.Dropout(0.2),
    ]


def fit(name: str, keras: Any) -> Callable[[], object]:
    """Returns a call that trains a workload's network further.

    Args:
        name: the workload.
        keras: `tf.keras`, Keras 3 or `estimatorkit.keras`.
    """
    data = DATA[name]()
    first = keras.layers.InputLayer(data.x.shape[1:])
    last = keras.layers.Dense(data.classes, activation="softmax")
    model = keras.Sequential([first, *layers_of(name, keras), last])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

    def call() -> object:
        return model.fit(data.x, data.y, batch_size=data.batch_size, epochs=data.epochs, verbose=0)

    call()
    return call
