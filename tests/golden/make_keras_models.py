"""Keras models of TensorFlow 2.15.1: what training, evaluating and predicting give.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_keras_models.py

Writes `keras_models.json` (the results of `snippets_keras_models.py`) beside this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from snippets_keras_models import SNIPPETS


def rounded(value: Any) -> Any:
    """Numbers with the digits that a float32 has."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return np.vectorize(lambda each: float(f"{each:.8g}"), [object])(array).tolist()
    return array.tolist()


def main() -> None:
    """Runs all snippets and writes the file."""
    results = {}
    for name, snippet in SNIPPETS.items():
        tf.keras.backend.clear_session()
        results[name] = rounded(snippet(tf, tf.keras))
        print(name)
    write_json("keras_models.json", {"about": {"tensorflow": tf.__version__}, "results": results})


if __name__ == "__main__":
    main()
