"""What TensorFlow 2.15.1's `gfile.GFile` does in every mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_gfile.py

Writes `gfile.json` beside this file: what the calls of `snippets_gfile.py` return in each mode, and
what is in the file afterwards.
"""

from __future__ import annotations

import tempfile

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from snippets_gfile import MODES, folders, results

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_json(
            "gfile.json",
            {"folders": folders(tf), **{mode: results(tf, mode, folder) for mode in MODES}},
        )
