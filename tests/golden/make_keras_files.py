"""Models as TensorFlow 2.15.1's `tf.keras` writes them.

Run, with TensorFlow 2.15.1 and h5py:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_keras_files.py

Writes the folder `keras_files` beside this file: for each model of `snippets_keras_files.py` a
whole model in HDF5 (`NAME.h5`) and its weights as a checkpoint of objects (`NAME.index` and data);
and `keras_files.json`: the models as JSON, their predictions, the order of their layers and
variables, summaries.
"""

from __future__ import annotations

import json
import shutil
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import FOLDER, write_json
from snippets_keras_files import MODELS, SUMMARIES, summary_of


def _written(name: str) -> dict[str, Any]:
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(7)
    make, inputs = MODELS[name]
    model = make(tf.keras)
    for variable in model.weights:  # so that none is all zeros or ones
        variable.assign(variable + tf.random.uniform(variable.shape, 0.1, 0.4))
    model.compile(tf.keras.optimizers.legacy.Adam(0.01), loss="mse")
    outputs = model.predict(inputs, verbose=0)
    listed = outputs if isinstance(outputs, list) else [outputs]
    model.fit(inputs, [np.zeros_like(each) for each in listed], epochs=2, verbose=0)
    outputs = model.predict(inputs, verbose=0)
    listed = outputs if isinstance(outputs, list) else [outputs]
    model.save(FOLDER / "keras_files" / f"{name}.h5")
    model.save_weights(FOLDER / "keras_files" / name, save_format="tf")
    return {
        "predictions": [each.astype(float).tolist() for each in listed],
        "layers": [each.name for each in model.layers],
        "shapes": [list(each.shape) for each in model.get_weights()],
        "json": json.loads(model.to_json()),
        "iterations": int(model.optimizer.iterations.numpy()),
        "next_loss": model.evaluate(inputs, [np.zeros_like(each) for each in listed], verbose=0),
    }


def main() -> None:
    """Writes all files."""
    shutil.rmtree(FOLDER / "keras_files", ignore_errors=True)
    (FOLDER / "keras_files").mkdir()
    models = {name: _written(name) for name in MODELS}
    (FOLDER / "keras_files" / "checkpoint").unlink()
    summaries = {}
    for name in SUMMARIES:
        tf.keras.backend.clear_session()
        summaries[name] = summary_of(tf.keras, name)
    write_json(
        "keras_files.json",
        {"about": {"tensorflow": tf.__version__}, "models": models, "summaries": summaries},
    )


if __name__ == "__main__":
    main()
