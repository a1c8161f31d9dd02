"""Files of earlier releases are read: checkpoints with slots, graphs, exports, Keras files.

`tests/golden/make_release.py` writes those of a release.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit import keras
from estimatorkit.storage.checkpoint import load_variable
from tests.golden import release_models as models

RELEASES = sorted(path for path in (Path(__file__).parents[1] / "golden/releases").iterdir())


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy, since training writes to it."""
    return Path(shutil.copytree(request.param, tmp_path / "release"))


def facts(release: Path) -> Any:
    return json.loads((release / "facts.json").read_text())


def test_there_are_releases() -> None:
    assert RELEASES


@pytest.mark.parametrize("name", models.ESTIMATORS)
def test_checkpoints_are_restored_and_trained(name: str, release: Path) -> None:
    make, data, rows = models.ESTIMATORS[name]
    known = facts(release)[name]
    estimator = make(release / name)
    latest = estimator.latest_checkpoint()
    for key, total in known["sums"].items():
        assert np.nansum(load_variable(latest, key)) == pytest.approx(total, abs=1e-5), key
    found = models.probabilities(estimator, rows)
    np.testing.assert_allclose(found, known["probabilities"], atol=1e-5)
    estimator.train(data, steps=2)
    trained = 2 if name == "network" else 0  # all trees have grown
    assert estimator.get_variable_value("global_step") == known["step"] + trained


def test_saved_graphs_are_imported(release: Path) -> None:
    known = facts(release)["network"]
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(
            str(release / f"network/model.ckpt-{known['step']}.meta")
        )
        assert saver is not None
        saver.restore(session, str(release / f"network/model.ckpt-{known['step']}"))
        values = session.run({each.op.name: each for each in tf.trainable_variables()})
    assert values
    for key, value in values.items():
        assert value.sum() == pytest.approx(known["sums"][key], abs=1e-5)


def test_exports_are_served(release: Path) -> None:
    with tf.load_predictor(release / "export") as predict:
        found = predict(models.ROWS, "predict")["probabilities"]
    np.testing.assert_allclose(found, facts(release)["network"]["probabilities"], atol=1e-5)


def test_saved_models_are_loaded(release: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(release / "export/1"))
        signature = meta.signature_def["predict"]
        feeds = {signature.inputs[key].name: value for key, value in models.ROWS.items()}
        wanted = graph.get_tensor_by_name(signature.outputs["probabilities"].name)
        found = session.run(wanted, feeds)
    np.testing.assert_allclose(found, facts(release)["network"]["probabilities"], atol=1e-5)


def test_keras_files_are_loaded(release: Path) -> None:
    model = keras.models.load_model(str(release / "model.keras"))
    found = model.predict(models.X[:3], verbose=0)
    np.testing.assert_allclose(found, facts(release)["keras"], atol=1e-5)
    model.fit(models.X, models.LABELS, batch_size=4, verbose=0)
