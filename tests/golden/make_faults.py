"""What TensorFlow 2.15.1 refuses while a graph runs.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= python tests/golden/make_faults.py

Writes `faults.json` beside this file: for each program of `snippets_faults.py`, the class and the
first line of the error, and the class of the error on values that it should take (None).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_faults import FAULTS, STATEFUL, Fault


def _error(fault: Fault, values: Sequence[Any]) -> list[str] | None:
    def run() -> None:
        with tf.Graph().as_default(), tf.device("/cpu:0"):
            fed = [tf.placeholder(each.dtype, each.shape) for each in values]
            made = fault.made(tf, *fed)
            with tf.Session() as session:
                session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
                session.run(made, dict(zip(fed, values, strict=True)))

    error = error_of(run)
    return None if error is None else [error["class"], error["first_line"]]


def main() -> None:
    """Runs all and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    every = FAULTS | STATEFUL
    errors = {name: _error(fault, fault.bad) for name, fault in every.items()}
    refused = {name: _error(fault, fault.good) for name, fault in every.items()}
    wrong = [name for name, error in refused.items() if error is not None]
    print("refused, but should not be:", wrong)
    write_json("faults.json", {"about": {"tensorflow": tf.__version__}, "errors": errors})


if __name__ == "__main__":
    main()
