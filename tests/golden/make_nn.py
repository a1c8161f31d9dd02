"""`tf.nn` in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_nn.py

Writes `nn.npz` (the results of `snippets_nn.py`) and `nn.json` (static shapes and errors) beside
this file.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json, write_npz
from snippets_nn import NN, NN_ERRORS
from snippets_sparse import run_arrays


def main() -> None:
    """Runs all snippets and writes the files."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    arrays, shapes = {}, {}
    for name, snippet in NN.items():
        values, shapes[name] = run_arrays(tf, snippet)
        arrays.update({f"{name}/{at}": value for at, value in enumerate(values)})
    write_npz("nn.npz", arrays)
    errors = {
        name: error_of(lambda snippet=snippet: run_arrays(tf, snippet))
        for name, snippet in NN_ERRORS.items()
    }
    about = {"tensorflow": tf.__version__}
    write_json("nn.json", {"about": about, "shapes": shapes, "errors": errors})


if __name__ == "__main__":
    main()
