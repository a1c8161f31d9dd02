"""Recurrent Keras layers and wrappers in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_recurrent.py

Writes `recurrent.npz` (outputs and gradients of the cases of `snippets_recurrent.py`) and
`recurrent.json` (variables, static shapes, configs) beside this file.
"""

from __future__ import annotations

from typing import Any

import tensorflow  # type: ignore[import-not-found,import-untyped,unused-ignore]
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json, write_npz
from snippets_recurrent import run, run_stateful


def main() -> None:
    """Runs all cases and writes the files."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    layers = tensorflow.keras.layers
    arrays, facts = {}, {}
    for name, result in run(tf, layers).items():
        for what in ("values", "gradients"):
            arrays.update({f"{name}/{what}/{at}": v for at, v in enumerate(result.pop(what))})
        result["config"] = _plain(result["config"])
        facts[name] = result
    for name, values in run_stateful(tf, layers).items():
        arrays.update({f"stateful/{name}/{at}": value for at, value in enumerate(values)})
    write_npz("recurrent.npz", arrays)
    write_json("recurrent.json", {"about": {"tensorflow": tf.__version__}, "cases": facts})


def _plain(config: dict[str, Any]) -> dict[str, Any]:
    """The config without objects, whose form differs by version."""
    return {key: value for key, value in config.items() if not isinstance(value, (dict, list))}


if __name__ == "__main__":
    main()
