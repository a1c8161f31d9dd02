"""Keras's layers in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_layers.py

Writes `layers.npz` (what the layers of `golden_layers.py` give, and gradients) and `layers.json`
(their weights, static shapes, constructors) beside this file.
"""

from __future__ import annotations

import inspect

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json, write_npz
from golden_layers import CASES, observe


def main() -> None:
    """Runs all cases and writes the files."""
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    facts, arrays = {}, {}
    for cases in CASES.values():
        some, values = observe(tf.compat.v1, tf.keras.layers, cases)
        facts.update(some)
        arrays.update(values)
    kinds = sorted({case.kind for cases in CASES.values() for case in cases.values()})
    constructors = {
        kind: {
            name: _plain(each.default)
            for name, each in inspect.signature(
                getattr(tf.keras.layers, kind).__init__
            ).parameters.items()
            if name != "self" and each.kind is each.POSITIONAL_OR_KEYWORD
        }
        for kind in kinds
    }
    functions = {
        name: {
            each.name: _plain(each.default)
            for each in inspect.signature(getattr(tf.compat.v1.layers, name)).parameters.values()
            if each.kind is each.POSITIONAL_OR_KEYWORD
        }
        for name in sorted(dir(tf.compat.v1.layers))
        if callable(getattr(tf.compat.v1.layers, name)) and name != "experimental"
    }
    write_npz("layers.npz", arrays)
    write_json(
        "layers.json",
        {
            "about": {"tensorflow": tf.__version__},
            "layers": facts,
            "constructors": constructors,
            "functions": functions,
        },
    )


def _plain(value: object) -> object:
    """A default as a plain value: an object by the name of its class, none by a word."""
    if value is inspect.Parameter.empty:
        return "required"
    plain = value is None or isinstance(value, (bool, int, float, str, tuple))
    return value if plain else type(value).__name__


if __name__ == "__main__":
    main()
