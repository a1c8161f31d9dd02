"""Writes the files of the models of `release_models.py` by this version of the package.

    python -m tests.golden.make_release

To be run, and its folder kept, for each release: every later one reads it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

import estimatorkit as tf
from estimatorkit.storage.checkpoint import list_variables, load_variable
from tests.golden import release_models as models

RELEASES = Path(__file__).parent / "releases"


def main() -> None:
    folder = RELEASES / tf.__version__
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    facts: dict[str, object] = {}
    for name, (make, data, rows) in models.ESTIMATORS.items():
        estimator = make(folder / name).train(data, steps=4)
        facts[name] = {
            "step": int(estimator.get_variable_value("global_step")),
            "probabilities": models.probabilities(estimator, rows),
            "sums": {
                key: float(np.nansum(load_variable(estimator.latest_checkpoint(), key)))
                for key, _ in list_variables(str(folder / name))
                if load_variable(estimator.latest_checkpoint(), key).dtype.kind == "f"
            },
        }
        if name == "network":
            receive = tf.estimator.export.serving_input_receiver_fn_from_columns(models.columns())
            made = Path(estimator.export_saved_model(str(folder / "export"), receive).decode())
            made.rename(folder / "export" / "1")
    for path in folder.rglob("*"):
        if "tfevents" in path.name or path.name.startswith("writer.lock"):
            path.unlink()
    with tf.Graph().as_default():
        model = models.keras_model()
        model.fit(models.X, models.LABELS, batch_size=4, epochs=2, verbose=0)
        model.save(str(folder / "model.keras"))
        facts["keras"] = model.predict(models.X[:3], verbose=0).tolist()
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
