"""Fractional pooling in TensorFlow 2.15.1's graph mode: where its windows began, and what it gave.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_fractional_pooling.py

Writes `fractional_pooling.npz` beside this file. For each of max and avg, overlapping or not:
`<kind>/<overlapping>/<what>` with what one of value, rows, columns, output, gradient. The numbers
are rounded, so that windows have several greatest ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_npz
from snippets_nn import numbers

PARTS = ("value", "rows", "columns", "output", "gradient")


def main() -> None:
    """Runs TensorFlow and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    arrays: dict[str, Any] = {}
    for kind in ("max", "avg"):
        for overlapping in (False, True):
            x = tf.constant(np.round(numbers(0, 2, 11, 9, 2) * 2) / 2)
            function = getattr(tf.nn, f"fractional_{kind}_pool")
            found = function(
                x,
                [1.0, 1.7, 1.4, 1.0],
                overlapping=overlapping,
                deterministic=True,
                seed=3,
                seed2=5,
            )
            weights = np.cos(np.arange(2 * 6 * 6 * 2, dtype=np.float32)).reshape(2, 6, 6, 2)
            slope = tf.gradients(found[0], x, weights)[0]
            with tf.Session() as session:
                value, (result, rows, columns), gradient = session.run([x, found, slope])
            parts = (value, rows, columns, result, gradient)
            prefix = f"{kind}/{int(overlapping)}"
            arrays.update(
                {f"{prefix}/{what}": part for what, part in zip(PARTS, parts, strict=True)}
            )
    write_npz("fractional_pooling.npz", arrays)


if __name__ == "__main__":
    main()
