"""Padding, skip-grams, windows and tokenizers of TensorFlow 2.15.1.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_preprocessing.py

Writes `preprocessing.json` beside this file: what the calls of `snippets_preprocessing.py` give.
"""

from __future__ import annotations

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_preprocessing import ERRORS, SNIPPETS


def main() -> None:
    """Runs all calls and writes the file."""
    modules = tf.keras.preprocessing.sequence, tf.keras.preprocessing.text
    values = {name: snippet(*modules) for name, snippet in SNIPPETS.items()}
    errors = {
        name: error_of(lambda snippet=snippet: snippet(*modules))
        for name, snippet in ERRORS.items()
    }
    write_json(
        "preprocessing.json",
        {"about": {"tensorflow": tf.__version__}, "values": values, "errors": errors},
    )


if __name__ == "__main__":
    main()
