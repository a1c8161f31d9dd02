"""Learning-rate schedules of TensorFlow 2.15.1's `tf.compat.v1.train`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_schedules.py

Writes `schedules.json` beside this file: the rates of `snippets_schedules.py` at its steps.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_schedules import ERRORS, PIECES, SCHEDULES, STEP_DTYPES, look_at


def main() -> None:
    """Runs all schedules and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    found = {
        name: {dtype: look_at(tf, schedule, dtype) for dtype in STEP_DTYPES}
        for name, schedule in SCHEDULES.items()
    }
    found |= {
        name: {dtype: look_at(tf, schedule, dtype) for dtype in STEP_DTYPES[:2]}
        for name, schedule in PIECES.items()
    }
    write_json(
        "schedules.json",
        {
            "about": {"tensorflow": tf.__version__},
            "schedules": found,
            "errors": {name: error_of(lambda f=f: f(tf)) for name, f in ERRORS.items()},
        },
    )


if __name__ == "__main__":
    main()
