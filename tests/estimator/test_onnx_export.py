"""`export_onnx`: numeric models as ONNX, run by onnxruntime (extra `[onnx]`)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.estimator.export import serving_input_receiver_fn_from_columns
from estimatorkit.estimator.serving.onnx_export import export_onnx
from tests.estimator.exported import columns, shared_model

INSTALLED = all(importlib.util.find_spec(name) for name in ("jax2onnx", "onnxruntime"))
_RANDOM = np.random.default_rng(0)
_DATA = {
    "x": _RANDOM.normal(size=(16, 3)).astype(np.float32),
    "z": _RANDOM.normal(size=(16, 1)).astype(np.float32),
}


def _columns() -> list[Any]:
    column = tf.feature_column
    return [
        column.numeric_column("x", shape=(3,)),
        column.bucketized_column(column.numeric_column("z"), [0.0, 1.0]),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="the extra [onnx] is not installed")
@pytest.mark.parametrize("kind", ["DNNClassifier", "LinearRegressor"])
def test_onnxruntime_matches_estimator(kind: str, tmp_path: Path) -> None:
    onnxruntime = importlib.import_module("onnxruntime")
    options = {"hidden_units": [4], "n_classes": 3} if kind == "DNNClassifier" else {}
    config = tf.estimator.RunConfig(log_step_count_steps=None)
    model = getattr(tf.estimator, kind)(
        feature_columns=_columns(), model_dir=tmp_path / "model", config=config, **options
    )
    labels = np.arange(16) % 3 if options else _DATA["x"][:, 0]
    model.train(
        lambda: tf.data.Dataset.from_tensor_slices((_DATA, labels)).batch(8).repeat(), steps=3
    )
    receiver = serving_input_receiver_fn_from_columns(_columns())
    functions = {key: each for key, each in vars(jnp).items() if callable(each)}
    outputs = export_onnx(model, tmp_path / "model.onnx", receiver)
    assert [key for key, each in functions.items() if getattr(jnp, key) is not each] == []
    assert not {"classes", "all_classes"} & set(outputs)  # strings
    runtime = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert {each.shape[0] for each in runtime.get_inputs()} == {"batch"}
    found = dict(zip(outputs, runtime.run(outputs, _DATA), strict=True))
    expected = list(
        model.predict(lambda: tf.data.Dataset.from_tensor_slices(_DATA).batch(5), outputs)
    )
    for key, values in found.items():
        wanted = np.stack([each[key] for each in expected])
        np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not INSTALLED, reason="the extra [onnx] is not installed")
def test_strings_are_refused(tmp_path: Path) -> None:
    receiver = serving_input_receiver_fn_from_columns(columns())
    with pytest.raises(errors.UnimplementedError, match="outputs that need the host"):
        export_onnx(shared_model(), tmp_path / "model.onnx", receiver)
    assert not list(tmp_path.iterdir())


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax2onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"jax2onnx is needed.*estimatorkit\[onnx\]"):
        export_onnx(None, tmp_path / "model.onnx", lambda: None)
