"""Recurrent networks in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_rnn.py

Writes `rnn.npz` (what the programs of `snippets_rnn.py` give, and its gradients) and `rnn.json`
(variables, static shapes, which gradients there are, errors) beside this file.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json, write_npz
from snippets_rnn import RNN, RNN_ERRORS, VALUES_ONLY, run


def main() -> None:
    """Runs all snippets and writes the files."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    arrays, facts = {}, {}
    for name, snippet in RNN.items():
        result = run(tf, snippet, name not in VALUES_ONLY)
        for what in ("values", "gradients"):
            arrays.update({f"{name}/{what}/{at}": v for at, v in enumerate(result.pop(what))})
        facts[name] = result
    write_npz("rnn.npz", arrays)
    errors = {
        name: error_of(lambda snippet=snippet: run(tf, snippet))
        for name, snippet in RNN_ERRORS.items()
    }
    write_json(
        "rnn.json", {"about": {"tensorflow": tf.__version__}, "rnn": facts, "errors": errors}
    )


if __name__ == "__main__":
    main()
