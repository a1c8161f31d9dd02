"""Names of operations in the graphs of TensorFlow 2.15.1's premade estimators.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_premade_names.py

Writes `premade_names.json` beside this file: what `snippets_premade_names.py` gives for the
estimators of both versions.
"""

from __future__ import annotations

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from snippets_premade_names import graphs


def main() -> None:
    """Builds all graphs and writes the file."""
    tf.compat.v1.disable_eager_execution()
    v1 = tf.compat.v1
    write_json("premade_names.json", {version: graphs(tf, v1, version) for version in ("v1", "v2")})


if __name__ == "__main__":
    main()
