"""Writes partitioned.json: what TensorFlow gives for the programs of `snippets_partitioned.py`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_partitioned.py
"""

from __future__ import annotations

import snippets_partitioned
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json


def main() -> None:
    """Runs all programs and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    found = {
        name: snippets_partitioned.run_snippet(tf, name) for name in snippets_partitioned.SNIPPETS
    }
    write_json("partitioned.json", {"about": {"tensorflow": tf.__version__}, "snippets": found})


if __name__ == "__main__":
    main()
