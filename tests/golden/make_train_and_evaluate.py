"""`train_and_evaluate` of TensorFlow 2.15.1: what is trained, evaluated and exported when; errors.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_train_and_evaluate.py

Writes `train_and_evaluate.json` beside this file: what `snippets_train_and_evaluate.py` gives.
"""

from __future__ import annotations

import tempfile

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_train_and_evaluate import ERRORS, SNIPPETS


def main() -> None:
    """Runs all snippets and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    found = {}
    for snippet in SNIPPETS:
        with tempfile.TemporaryDirectory() as folder:
            found[snippet.__name__] = snippet(tf, folder)
            tf.summary.FileWriterCache.clear()
    errors = {name: error_of(lambda name=name: ERRORS[name](tf)) for name in ERRORS}
    about = {"tensorflow": tf.__version__}
    write_json("train_and_evaluate.json", {"about": about, "snippets": found, "errors": errors})


if __name__ == "__main__":
    main()
