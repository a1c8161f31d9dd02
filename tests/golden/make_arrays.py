"""Array and math functions in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_arrays.py

Writes `arrays.json` beside this file: the results of `snippets_arrays.py` and its errors, which a
test compares with those of this package.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_arrays import ARRAY_ERRORS, SNIPPETS
from snippets_sparse import run


def main() -> None:
    """Runs all snippets and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    write_json(
        "arrays.json",
        {
            "about": {"tensorflow": tf.__version__},
            "snippets": {name: run(tf, snippet) for name, snippet in SNIPPETS.items()},
            "errors": {
                name: error_of(lambda snippet=snippet: run(tf, snippet))
                for name, snippet in ARRAY_ERRORS.items()
            },
        },
    )


if __name__ == "__main__":
    main()
