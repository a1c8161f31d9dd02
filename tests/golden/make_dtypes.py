"""Operations of every dtype in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_dtypes.py

Writes `dtypes.json` beside this file: for each row of `snippets_dtypes.py` and each dtype what it
gives, or the class of the error. A test runs the rows on this package's module and compares.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from snippets_dtypes import DTYPES, ROWS, run


def main() -> None:
    """Runs all rows and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    rows = {name: {dtype: run(tf, row, dtype) for dtype in DTYPES} for name, row in ROWS.items()}
    write_json("dtypes.json", {"about": {"tensorflow": tf.__version__}, "rows": rows})


if __name__ == "__main__":
    main()
