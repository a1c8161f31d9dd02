"""What TensorFlow 2.15.1 makes of shapes that are only known when a graph runs.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_shapes.py

Writes `shapes.json` beside this file: values of the programs of `snippets_shapes.py`, and the
classes of the errors of its mistakes.
"""

from __future__ import annotations

import tensorflow as tf2  # type: ignore[import-not-found,import-untyped,unused-ignore]
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from golden_values import plain
from snippets_shapes import MISTAKES, Mistake, head_losses, look_at


def _class_of(function: Mistake) -> str:
    try:
        with tf.Graph().as_default():
            function(tf, tf2)
    except Exception as error:  # whatever it is, it is what is asked for
        return type(error).__name__
    raise AssertionError(f"{function.__name__} did not fail")


def main() -> None:
    """Runs all programs and writes the file."""
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    with tf.Graph().as_default():
        values = plain(look_at(tf))
    with tf.Graph().as_default():
        heads = plain(head_losses(tf, tf2))
    write_json(
        "shapes.json",
        {
            "about": {"tensorflow": tf.__version__},
            "values": values,
            "heads": heads,
            "mistakes": {name: _class_of(function) for name, function in MISTAKES.items()},
        },
    )


if __name__ == "__main__":
    main()
