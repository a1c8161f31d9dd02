"""Functions of TensorFlow 2.15.1's `tf.keras.backend`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_keras_backend.py

Writes `keras_backend.json` beside this file: what the programs of `snippets_keras_backend.py` give.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from golden_values import plain
from snippets_keras_backend import FACTS, NUMBERS


def _run(program: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        made = program(tf.keras.backend)
        session.run(tf.global_variables_initializer())
        return plain(session.run(made))


def main() -> None:
    """Runs all programs and writes the file."""
    tf.disable_eager_execution()
    with tf.Graph().as_default():
        facts = FACTS(tf.keras.backend)
    write_json(
        "keras_backend.json",
        {
            "about": {"tensorflow": tf.__version__},
            "numbers": {name: _run(program) for name, program in NUMBERS.items()},
            "facts": facts,
        },
    )


if __name__ == "__main__":
    main()
