"""Trainings of TensorFlow 2.15.1's `tf.keras` with its callbacks.

Run, with TensorFlow 2.15.1 and h5py:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_keras_callbacks.py

Writes `keras_callbacks.json` beside this file: what the trainings of `snippets_keras_callbacks.py`
come to, the order of all hooks, and the events of the callback `TensorBoard`.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from snippets_keras_callbacks import CASES, X_TEST, Y_TEST, X, Y, hooks_of, model_of, run


def _run(name: str) -> Any:
    tf.keras.backend.clear_session()
    with tempfile.TemporaryDirectory() as folder:
        return run(tf.keras, name, folder)


def _events() -> dict[str, Any]:
    """[step, value] of all numbers that TensorBoard's callback writes, by folder and tag."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = model_of(tf.keras, 0.1)
        board = tf.keras.callbacks.TensorBoard(folder, histogram_freq=1, update_freq=2)
        model.fit(
            *(X, Y, 4),
            epochs=2,
            verbose=0,
            callbacks=[board],
            validation_data=(X_TEST, Y_TEST),
            shuffle=False,
        )
        for run_name in ("train", "validation"):
            for file in sorted(os.listdir(os.path.join(folder, run_name))):
                path = os.path.join(folder, run_name, file)
                for event in tf.compat.v1.train.summary_iterator(path):
                    for value in event.summary.value:
                        number = tf.make_ndarray(value.tensor)
                        shown = (
                            float(number) if number.shape == () and number.dtype.kind == "f" else 0
                        )
                        found.setdefault(f"{run_name}/{value.tag}", []).append([event.step, shown])
    return {tag: rows for tag, rows in sorted(found.items()) if not tag.endswith("keras")}


def main() -> None:
    """Trains with all callbacks and writes the file."""
    write_json(
        "keras_callbacks.json",
        {
            "about": {"tensorflow": tf.__version__},
            "cases": {name: _run(name) for name in CASES},
            "hooks": hooks_of(tf.keras),
            "events": _events(),
        },
    )


if __name__ == "__main__":
    main()
