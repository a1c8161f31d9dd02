"""Monitored sessions of TensorFlow 2.15.1: the order of hooks, files, steps, errors.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_monitored.py

Writes `monitored.json` beside this file: what `snippets_monitored.py` gives.
"""

from __future__ import annotations

import contextlib
import tempfile

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_monitored import ERRORS, SNIPPETS, fail


def main() -> None:
    """Runs all snippets and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    found = {}
    for name, snippet in SNIPPETS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = snippet(tf, folder)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some leave files
        errors = {name: error_of(lambda name=name: fail(tf, name)) for name in ERRORS}
        tf.summary.FileWriterCache.clear()
    write_json(
        "monitored.json",
        {"about": {"tensorflow": tf.__version__}, "snippets": found, "errors": errors},
    )


if __name__ == "__main__":
    main()
