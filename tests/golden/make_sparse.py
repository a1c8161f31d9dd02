"""Sparse tensors, sets and edit distances in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_sparse.py

Writes `sparse.json` beside this file: the results of `snippets_sparse.py`, which a test runs on
this package's module and compares.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_sparse import SNIPPETS, SPARSE_ERRORS, run


def main() -> None:
    """Runs all snippets and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    write_json(
        "sparse.json",
        {
            "about": {"tensorflow": tf.__version__},
            "snippets": {name: run(tf, snippet) for name, snippet in SNIPPETS.items()},
            "errors": {
                name: error_of(lambda snippet=snippet: run(tf, snippet))
                for name, snippet in SPARSE_ERRORS.items()
            },
        },
    )


if __name__ == "__main__":
    main()
