"""Writes variables.json and layer_programs.json: what TensorFlow gives for the programs of
`snippets_variables.py` and of `snippets_layers.py`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_variables.py
"""

from __future__ import annotations

from typing import Any

import snippets_layers
import snippets_variables
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json


def error_in_a_fresh_graph(mistake: Any) -> dict[str, str] | None:
    """Runs a mistake in a fresh graph and describes how it fails."""
    with tf.Graph().as_default():
        return error_of(lambda: mistake(tf))


def main() -> None:
    """Runs all programs and writes the files."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    programs: dict[str, Any] = {
        "variables.json": snippets_variables,
        "layer_programs.json": snippets_layers,
    }
    for file, module in programs.items():
        content = {
            "about": {"tensorflow": tf.__version__},
            "snippets": {name: module.run_snippet(tf, name) for name in module.SNIPPETS},
            "errors": {name: error_in_a_fresh_graph(each) for name, each in module.ERRORS.items()},
        }
        write_json(file, content)


if __name__ == "__main__":
    main()
