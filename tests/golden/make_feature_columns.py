"""Feature columns in TensorFlow 2.15.1's graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_feature_columns.py

Writes `feature_columns.json` beside this file: what `snippets_feature_columns.py` gives (floats
with 7 digits), checksums of 10,000 rows, errors (`snippets_feature_column_errors.py`). A test runs
the same on this package.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import snippets_feature_columns as snippets
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_feature_column_errors import ERRORS
from tensorflow.python.feature_column import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    feature_column_v2,
)


def main() -> None:
    """Runs all and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.txt"
        path.write_text("\n".join(snippets.VOCABULARY) + "\n", "utf-8")
        cases = {name: _case(name, str(path)) for name in snippets.CASES}
    content = {
        "about": {"tensorflow": tf.__version__},
        "cases": cases,
        "big": _big(),
        "errors": {name: _error(name) for name in ERRORS},
    }
    write_json("feature_columns.json", content)


def _case(name: str, path: str) -> Any:
    with tf.Graph().as_default():
        return rounded(snippets.run(tf, snippets.CASES[name], path))


def rounded(value: Any) -> Any:
    """Arrays as lists, floats with 7 digits."""
    if isinstance(value, dict):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _big() -> dict[str, Any]:
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        features = {key: tf.constant(value) for key, value in snippets.big_features().items()}
        columns = snippets.big_columns(tf)
        cache = feature_column_v2.FeatureTransformationCache(features)
        ids = {
            name: column.get_sparse_tensors(cache, None).id_tensor
            for name, column in columns.items()
        }
        session.run(tf.tables_initializer())
        for name, value in session.run(ids).items():
            values = np.asarray(value.values).astype("<i8")
            found[name] = {
                "sha256": hashlib.sha256(values.tobytes()).hexdigest(),
                "count": len(values),
                "first": values[:20].tolist(),
            }
    return found


def _error(name: str) -> Any:
    with tf.Graph().as_default():
        return error_of(lambda: ERRORS[name](tf))


if __name__ == "__main__":
    main()
