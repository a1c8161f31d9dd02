"""Distributions of TensorFlow 2.15.1's `tf.compat.v1.distributions`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_distributions.py

Writes `distributions.json` beside this file: what `snippets_distributions.py` gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from golden_values import plain
from snippets_distributions import DISTRIBUTIONS, REFUSALS, extremes, facts, functions


def _run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return plain(session.run(make()))


def _facts(case: str) -> Any:
    with tf.Graph().as_default():
        return facts(tf, case)


def main() -> None:
    """Runs all programs and writes the file."""
    tf.disable_eager_execution()
    write_json(
        "distributions.json",
        {
            "about": {"tensorflow": tf.__version__},
            "functions": {case: _run(lambda c=case: functions(tf, c)) for case in DISTRIBUTIONS},
            "facts": {case: _facts(case) for case in DISTRIBUTIONS},
            "extremes": {
                kind: _run(lambda k=kind: extremes(tf, np.dtype(k).type))
                for kind in ("float32", "float64")
            },
            "refusals": {
                case: error_of(lambda p=program: _run(lambda: p(tf.distributions)))["class"]
                for case, program in REFUSALS.items()
            },
        },
    )


if __name__ == "__main__":
    main()
