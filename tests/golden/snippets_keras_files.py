"""Models as functions of the module that they use as `keras`, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_random = np.random.default_rng(3)
ROWS = 3


def _array(*shape: int) -> Any:
    return _random.normal(0, 1, (ROWS, *shape)).astype(np.float32)


def _functional(keras: Any) -> Any:
    layers = keras.layers
    a, b = keras.Input([3], name="a"), keras.Input([3], name="b")
    shared = layers.Dense(4, activation="relu", name="shared")
    both = layers.Add(name="added")([shared(a), shared(b)])
    inner = keras.Sequential(
        [
            layers.Dense(5, input_shape=(4,), name="first"),
            layers.BatchNormalization(name="norm"),
            layers.Dense(2, name="second"),
        ],
        name="inner",
    )
    one = inner(both)
    joined = layers.Concatenate(name="joined")([one, inner(shared(b))])
    two = layers.Dense(1, name="last", trainable=False)(joined)
    return keras.Model([a, b], [one, two], name="functional")


def _nested(keras: Any) -> Any:
    layers = keras.layers
    x = keras.Input([4], name="x")
    part = keras.Model(x, layers.Dense(3, activation="tanh", name="inside")(x), name="part")
    y = keras.Input([4], name="y")
    twice = layers.Multiply(name="product")([part(y), layers.Dense(3, name="beside")(y)])
    z = layers.Dense(2, name="end")(part(layers.Dense(4, name="back")(twice)))
    return keras.Model(y, z, name="nested")


def _sequential(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Dense(4, input_shape=(3,), kernel_regularizer="l2", name="x"),
            layers.BatchNormalization(name="n"),
            layers.Dropout(0.5, name="y"),
            layers.Activation("relu", name="r"),
            layers.Dense(1, name="z_with_a_very_long_name_that_does_not_fit_in_its_column_at_all"),
        ],
        name="sequential",
    )


def _recurrent(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Embedding(10, 4, input_length=3, mask_zero=True, name="e"),
            layers.LSTM(3, return_sequences=True, name="l"),
            layers.GRU(2, name="g"),
        ],
        name="recurrent",
    )


def _convolutional(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Conv2D(2, 3, padding="same", input_shape=(4, 4, 1), name="c"),
            layers.MaxPooling2D(name="m"),
            layers.Flatten(name="f"),
            layers.Dense(3, activation="softmax", name="d"),
        ],
        name="convolutional",
    )


MODELS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "functional": (_functional, [_array(3), _array(3)]),
    "nested": (_nested, _array(4)),
    "sequential": (_sequential, _array(3)),
    "recurrent": (_recurrent, np.array([[1, 2, 0], [3, 9, 4], [5, 0, 0]], np.int32)),
    "convolutional": (_convolutional, _array(4, 4, 1)),
}

SUMMARIES: dict[str, tuple[str, dict[str, Any]]] = {
    "functional": ("functional", {}),
    "functional, all of it": (
        "functional",
        {"expand_nested": True, "show_trainable": True, "line_length": 110},
    ),
    "nested": ("nested", {"expand_nested": True}),
    "sequential": ("sequential", {}),
    "recurrent": ("recurrent", {"positions": [0.3, 0.6, 0.8, 1.0]}),
    "convolutional": ("convolutional", {"line_length": 50}),
}


def summary_of(keras: Any, name: str) -> list[str]:
    """The lines of a summary."""
    model, options = SUMMARIES[name]
    lines: list[str] = []
    MODELS[model][0](keras).summary(print_fn=lines.append, **options)
    return [line.rstrip() for line in lines]
