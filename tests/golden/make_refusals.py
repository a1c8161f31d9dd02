"""How TensorFlow 2.15.1 refuses arguments of `tf.nn`, `tf.losses` and `tf.metrics`, and shapes.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_refusals.py

Writes `refusals.json` beside this file: the errors of `snippets_refusals.py` and
`snippets_unknown_shapes.py`.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_refusals import REFUSALS
from snippets_unknown_shapes import UNKNOWN_SHAPES


def _run(refusal: Any) -> object:
    with tf.Graph().as_default():
        made = refusal(tf)
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            return session.run(made)


def main() -> None:
    """Runs all and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    refusals = REFUSALS | UNKNOWN_SHAPES
    errors = {name: error_of(lambda each=each: _run(each)) for name, each in refusals.items()}
    write_json("refusals.json", {"about": {"tensorflow": tf.__version__}, "errors": errors})


if __name__ == "__main__":
    main()
