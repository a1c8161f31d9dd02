"""Gradients of complex numbers in TensorFlow 2.15.1.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_complex.py

Writes `complex.json` beside this file: what `snippets_complex.py` gives, or its errors.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from golden_values import plain
from snippets_complex import GRADIENTS, R, Z


def _run(gradient: Any) -> Any:
    found: list[Any] = []

    def run() -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            z, r = tf.placeholder(tf.complex64, [2]), tf.placeholder(tf.float32, [2])
            found.append(session.run(gradient(tf, z, r), {z: Z, r: R}))

    error = error_of(run)
    return {"error": error} if error else plain(found[0])


def main() -> None:
    """Runs all programs and writes the file."""
    tf.disable_eager_execution()
    write_json(
        "complex.json",
        {
            "about": {"tensorflow": tf.__version__},
            "gradients": {name: _run(each) for name, each in GRADIENTS.items()},
        },
    )


if __name__ == "__main__":
    main()
