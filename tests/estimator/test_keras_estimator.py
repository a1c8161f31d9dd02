"""`model_to_estimator`: models of this package and of Keras 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.run_config import RunConfig

_RANDOM = np.random.default_rng(0)
X = _RANDOM.normal(size=(32, 3)).astype(np.float32)
Y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25
CONFIG = RunConfig(save_summary_steps=None, log_step_count_steps=None, tf_random_seed=1)


def rows(epochs: int = 1) -> Dataset:
    return Dataset.from_tensor_slices((X, Y)).repeat(epochs).batch(8)


def compiled(optimizer: Any = "sgd") -> Any:
    """Normalizes, with moving averages, and a line."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.BatchNormalization(momentum=0.5, input_shape=(3,), name="norm"),
            layers.Dense(1, name="line"),
        ]
    )
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


@pytest.mark.slow
def test_starts_with_model_weights_and_leaves_them_unchanged(tmp_path: Path) -> None:
    model = compiled()
    weights = model.get_weights()
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=tmp_path, config=CONFIG)
    loss, mae = model.evaluate(X, Y, verbose=0)
    before = estimator.evaluate(rows)
    np.testing.assert_allclose([before["loss"], before["mae"]], [loss, mae], rtol=1e-5)
    (first, *_) = estimator.predict(rows)
    np.testing.assert_allclose(first["line"], model.predict(X, verbose=0)[0], rtol=1e-5)
    assert estimator.latest_checkpoint() is None
    estimator.train(lambda: rows(50))
    after = estimator.evaluate(rows)
    assert after["global_step"] == 200
    assert after["loss"] < 0.1 * before["loss"]
    for kept, given in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(kept, given)


@pytest.mark.slow
def test_trains_like_the_model(tmp_path: Path) -> None:
    """Losses, updates of moving averages, and the optimizer's own variables."""
    model = compiled(tf.keras.optimizers.Adam(0.05))
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=tmp_path, config=CONFIG)
    estimator.train(rows)
    model.fit(X, Y, batch_size=8, epochs=1, shuffle=False, verbose=0)
    for variable, expected in zip(model.weights, model.get_weights(), strict=True):
        found = estimator.get_variable_value(variable.op.name)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_metric_and_signature_names(tmp_path: Path) -> None:
    estimator = tf.keras.estimator.model_to_estimator(
        compiled(),
        model_dir=tmp_path,
        config=CONFIG,
        metric_names_map={"mae": "error"},
        export_outputs={"line": "mine"},
    )
    estimator.train(rows)
    assert set(estimator.evaluate(rows)) == {"error", "loss", "global_step"}

    def raw() -> Any:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        return tf.estimator.export.TensorServingInputReceiver(x, {"x": x})

    with tf.estimator.load_predictor(
        estimator.export_saved_model(tmp_path / "out", raw)
    ) as predictor:
        assert set(predictor.signatures) == {"serving_default", "mine"}
        expected = [row["line"] for row in estimator.predict(rows)]
        np.testing.assert_allclose(predictor({"x": X}, "mine")["line"], expected, rtol=1e-5)


@pytest.mark.slow
def test_unsupported_models_raise() -> None:
    make = tf.keras.estimator.model_to_estimator
    with pytest.raises(ValueError, match="Either keras_model or keras_model_path"):
        make()
    with pytest.raises(ValueError, match="but not both"):
        make(compiled(), "a/path")
    with pytest.raises(ValueError, match="has not been compiled yet"):
        make(tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))]))
    with pytest.raises(TypeError, match="not a model"):
        make("model")
    predictions = make(compiled(), config=CONFIG, export_outputs={"lien": "mine"}).predict(rows)
    with pytest.raises(KeyError, match=r"Missed keys: \['lien'\]"):
        next(predictions)
    model = compiled()
    (name,) = model.input_names
    with pytest.raises(KeyError, match=rf"features keys: \['z'\]\n\tMissed keys: \['{name}'\]"):
        make(model, config=CONFIG).train(lambda: ({"z": X}, Y), steps=1)
    with pytest.raises(KeyError, match=r"labels keys: \['z'\]\n\tMissed keys: \['line'\]"):
        make(model, config=CONFIG).train(lambda: (X, {"z": Y}), steps=1)
    for renamed, problem in (({"z": ""}, "do not exist"), ({"mae": "m", "z": ""}, "unexpected")):
        with pytest.raises(ValueError, match=f"Invalid `metric_names_map`.*{problem}"):
            make(model, config=CONFIG, metric_names_map=renamed).evaluate(rows)


def test_example_weights_match_test_on_batch() -> None:
    inputs = tf.keras.layers.Input(shape=(1,), name="x")
    model = tf.keras.Model(inputs, inputs)
    model.compile(loss="mean_absolute_error", optimizer="adam")
    features, weights = np.array([[0.0], [0], [1], [1]], np.float32), np.float32([0, 0.4, 1, 1])
    labels = np.array([[0.0], [1], [0], [1]], np.float32)
    estimator = tf.keras.estimator.model_to_estimator(model, config=CONFIG)
    found = estimator.evaluate(lambda: ({"features": features, "sample_weights": weights}, labels))
    assert found["loss"] == pytest.approx(model.test_on_batch(features, labels, weights))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras's own
def test_keras_3_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras", reason="NOT TESTED: models of Keras 3, for want of keras")
    inputs = keras.Input((3,))
    outputs = keras.layers.Dense(1, name="line")(keras.layers.BatchNormalization()(inputs))
    model = keras.Model(inputs, outputs)
    model.compile("adam", "mse", metrics=["mae"])
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=tmp_path, config=CONFIG)
    loss, mae = model.evaluate(X, Y, batch_size=8, verbose=0)
    before = estimator.evaluate(rows)
    np.testing.assert_allclose([before["loss"], before["mae"]], [loss, mae], rtol=1e-4)
    estimator.train(lambda: rows(2))
    model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    for variable in (*model.trainable_variables, *model.non_trainable_variables):
        found = estimator.get_variable_value(variable.path)
        np.testing.assert_allclose(found, np.asarray(variable.value), rtol=1e-3, atol=1e-5)
