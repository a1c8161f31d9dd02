"""Names, strings and errors of TensorFlow 2.15.1's graph mode (`tf.compat.v1`, v2 behaviour off).

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_graph.py

Writes `graph.json` beside this file (ten seconds): the results of `snippets_graph.py`,
`snippets_ops.py` and `snippets_errors.py`. A test runs the same functions on this package's module
and compares.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_errors import ERRORS
from snippets_graph import SNIPPETS, run_snippet
from snippets_ops import DEFAULT_NAMES, default_name


def error_in_a_fresh_graph(name: str) -> dict[str, str] | None:
    """Runs a function of `ERRORS` in a fresh graph and describes how it fails."""
    with tf.Graph().as_default():
        return error_of(lambda: ERRORS[name](tf))


def main() -> None:
    """Runs all snippets and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    write_json(
        "graph.json",
        {
            "about": {"tensorflow": tf.__version__},
            "default_names": {name: default_name(tf, name) for name in DEFAULT_NAMES},
            "snippets": {name: run_snippet(tf, name) for name in SNIPPETS},
            "errors": {name: error_in_a_fresh_graph(name) for name in ERRORS},
        },
    )


if __name__ == "__main__":
    main()
