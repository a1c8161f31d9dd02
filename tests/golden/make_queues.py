"""Queues and sessions of TensorFlow 2.15.1: what runners say of themselves, recovery, errors.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_queues.py

Writes `queues.json` beside this file: what `snippets_queues.py` gives.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_queues import ERRORS, SNIPPETS, fail


def main() -> None:
    """Runs all snippets and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    found = {}
    for name, snippet in SNIPPETS.items():
        with tf.Graph().as_default():
            found[name] = snippet(tf)
    errors = {name: error_of(lambda name=name: fail(tf, name)) for name in ERRORS}
    write_json(
        "queues.json",
        {"about": {"tensorflow": tf.__version__}, "snippets": found, "errors": errors},
    )


if __name__ == "__main__":
    main()
