"""Keras-style models in scikit-learn's tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import estimatorkit as tf
from estimatorkit.compat.keras.wrappers.scikit_learn import KerasClassifier, KerasRegressor

keras = tf.keras
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 2)).astype(np.float32)
WORDS = np.where(X[:, 0] > 0, "right", "left")


def classifier(units: int = 1, rate: float = 0.1, start: float = 0.0) -> Any:
    activation, loss = "sigmoid", "binary_crossentropy"
    if units > 1:
        activation, loss = "softmax", "categorical_crossentropy"
    first = keras.initializers.Constant(start)
    layer = keras.layers.Dense(units, activation, kernel_initializer=first, input_shape=[2])
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.Adam(rate), loss)
    return model


def regressor() -> Any:
    model = keras.Sequential([keras.layers.Dense(1, input_shape=[2])])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    return model


@pytest.mark.slow
@pytest.mark.parametrize("units", [1, 2])
def test_classes_round_trip(units: int) -> None:
    model = KerasClassifier(classifier, units=units, epochs=20, verbose=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    history = model.fit(X, WORDS).history
    assert len(history["loss"]) == 20
    assert history["loss"][-1] < history["loss"][0]
    assert model.classes_.tolist() == ["left", "right"]
    assert model.score(X, WORDS) > 0.9
    probabilities = model.predict_proba(X, batch_size=7)
    assert probabilities.shape == (60, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.predict(X) == WORDS).mean() == model.score(X, WORDS)


@pytest.mark.slow
def test_grid_search_over_model_and_fit_arguments() -> None:
    # One step of 0.1 from -0.5 leaves the signs of the weights wrong, 12 steps do not.
    model = KerasClassifier(build_fn=classifier, verbose=0, epochs=1, start=-0.5)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"epochs": [1, 12]}, cv=2, error_score="raise").fit(X, WORDS)
    assert search.best_params_ == {"epochs": 12}
    assert len(search.best_estimator_.history["loss"]) == 12


@pytest.mark.slow
def test_regressor() -> None:
    y = X @ np.array([1.0, -2.0], np.float32)
    model = KerasRegressor(regressor, verbose=0).fit(X, y[:, None], epochs=60)
    assert model.predict(X).shape == (60,)
    np.testing.assert_allclose(model.predict(X), y, atol=0.6)
    expected = -np.mean((model.predict(X) - y) ** 2)
    np.testing.assert_allclose(model.score(X, y[:, None]), expected, rtol=1e-4)


def test_unknown_arguments_raise() -> None:
    with pytest.raises(ValueError, match=r"epoch is not a legal parameter(.|\n)*'epochs'"):
        KerasClassifier(classifier, epoch=3)
    with pytest.raises(ValueError, match="Invalid parameter 'unit'"):
        KerasClassifier(classifier).set_params(unit=3)
