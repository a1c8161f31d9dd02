"""The tests of `tests/keras/test_model_programs.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from tests.keras.test_model_programs import LAYERS, ONES, TARGETS, graph

__all__ = ["graph"]

keras = tf.keras


def test_linear_model_learns_line() -> None:
    model = keras.experimental.LinearModel(name="line")
    model.compile(keras.optimizers.SGD(0.5), "mse")
    x = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    y = np.array([[1.0], [3.0]], np.float32)
    model.fit(x, y, batch_size=2, verbose=0)
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(kernel, 0.5 * x.T @ y, rtol=1e-6)
    np.testing.assert_allclose(bias, [0.5 * y.sum()], rtol=1e-6)
    assert [each.name for each in model.weights] == ["line/kernel:0", "line/bias:0"]
    np.testing.assert_allclose(model.predict(x), x @ kernel + bias, rtol=1e-6)
    config = model.get_config()
    assert keras.experimental.LinearModel.from_config(config).get_config() == config


def test_linear_model_with_several_inputs() -> None:
    model = keras.experimental.LinearModel(2, "relu", kernel_initializer="ones", use_bias=False)
    inputs = {"b": keras.Input((3,)), "a": keras.Input((2,))}
    assert model(inputs).shape.as_list() == [None, 2]
    assert [each.shape.as_list() for each in model.weights] == [[2, 2], [3, 2]]
    with pytest.raises(ValueError, match="does not match the structure"):
        model({"a": inputs["a"]})
    several = keras.experimental.LinearModel(kernel_initializer="ones")
    several.compile("sgd", "mse")
    found = several.predict([ONES, np.ones((8, 3), np.float32)])
    np.testing.assert_allclose(found, np.full((8, 1), 5.0))


@pytest.mark.slow
def test_wide_deep_model_has_two_optimizers() -> None:
    wide = keras.experimental.LinearModel()
    deep = keras.Sequential([LAYERS.Dense(1, kernel_initializer="zeros")])
    model = keras.experimental.WideDeepModel(wide, deep)
    rates = [keras.optimizers.SGD(0.5), keras.optimizers.SGD(0.25)]
    model.compile(rates, "mse")
    model.fit([ONES, 2 * ONES], TARGETS, batch_size=8, verbose=0)
    np.testing.assert_allclose(wide.get_weights()[0], np.full((2, 1), 1.0), rtol=1e-6)
    np.testing.assert_allclose(deep.get_weights()[0], np.full((2, 1), 1.0), rtol=1e-6)
    assert [keras.backend.get_value(each.iterations) for each in rates] == [1, 1]
    model.compile("sgd", "mse")
    assert model.predict([ONES, ONES]).shape == (8, 1)
    one_input = keras.experimental.WideDeepModel(wide, deep, activation="relu")
    one_input.compile("sgd", "mse")
    assert one_input.predict(-ONES).max() == 0
