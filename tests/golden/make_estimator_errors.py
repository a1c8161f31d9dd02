"""Errors of TensorFlow 2.15.1's estimators (`tf.estimator`, v2) for common mistakes.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_estimator_errors.py

Writes `estimator_errors.json` beside this file (twenty seconds): how each function of
`snippets_estimator_errors.py` fails, null for what TensorFlow accepts.
"""

from __future__ import annotations

import tempfile

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_estimator_errors import ERRORS


def error_in_a_fresh_folder(name: str) -> dict[str, str] | None:
    """Runs a function of `ERRORS` with a fresh model_dir and describes how it fails."""
    with tempfile.TemporaryDirectory() as model_dir:
        found = error_of(lambda: ERRORS[name](tf, model_dir))
    if found:
        found["first_line"] = found["first_line"].replace(model_dir, "<model_dir>")
    return found


def main() -> None:
    """Makes all mistakes and writes the file."""
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.FATAL)
    about = {"tensorflow": tf.__version__}
    errors = {name: error_in_a_fresh_folder(name) for name in ERRORS}
    write_json("estimator_errors.json", {"about": about, "errors": errors})


if __name__ == "__main__":
    main()
