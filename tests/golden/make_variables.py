"""Writes variables.json: what TensorFlow gives for the programs of `snippets_variables.py`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_variables.py
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_variables import ERRORS, SNIPPETS, run_snippet


def error_in_a_fresh_graph(name: str) -> dict[str, str] | None:
    """Runs a function of `ERRORS` in a fresh graph and describes how it fails."""
    with tf.Graph().as_default():
        return error_of(lambda: ERRORS[name](tf))


def main() -> None:
    """Runs all programs and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    write_json(
        "variables.json",
        {
            "about": {"tensorflow": tf.__version__},
            "snippets": {name: run_snippet(tf, name) for name in SNIPPETS},
            "errors": {name: error_in_a_fresh_graph(name) for name in ERRORS},
        },
    )


if __name__ == "__main__":
    main()
