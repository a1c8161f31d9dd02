"""Programs that use models: building by hand, list outputs, custom optimizers, wrong labels,
premade models.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf

keras = tf.keras
LAYERS = keras.layers


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def linear(loss: Any = "mse", optimizer: Any = "sgd", units: int = 1) -> Any:
    model = keras.Sequential([LAYERS.Dense(units, input_shape=(2,), kernel_initializer="zeros")])
    model.compile(optimizer, loss)
    return model


ONES, TARGETS = np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)


def test_sequential_with_input_shape_needs_no_build() -> None:
    model = keras.Sequential([LAYERS.Dense(3, input_shape=(4,)), LAYERS.Dense(2)])
    model.build()
    assert model.built
    assert len(model.weights) == 4
    unknown = keras.Sequential([LAYERS.Dense(3)])
    with pytest.raises(ValueError, match="You must provide an `input_shape` argument"):
        unknown.build()
    unknown.build((None, 4))
    assert unknown.weights[0].shape.as_list() == [4, 3]


@pytest.mark.slow
def test_predict_of_one_listed_output_returns_array() -> None:
    inputs = keras.Input((2,))
    output = LAYERS.Dense(3)(inputs)
    for model in (keras.Model(inputs, [output]), keras.Model([inputs], [output])):
        assert model.predict(ONES).shape == (8, 3)
        assert model.predict_on_batch(ONES).shape == (8, 3)
        assert model(tf.ones([1, 2])).shape.as_list() == [1, 3]
        assert len(model.outputs) == 1
    two = keras.Model(inputs, [output, output]).predict(ONES)
    assert [each.shape for each in two] == [(8, 3)] * 2
    model = keras.Model(inputs, [output])
    model.compile("sgd", "mse")
    model.fit(ONES, [np.ones((8, 3))], verbose=0)


def test_integer_input_shape() -> None:
    assert keras.Input(shape=3).shape.as_list() == [None, 3]
    assert LAYERS.Input(1, batch_size=2).shape.as_list() == [2, 1]


@pytest.mark.parametrize("kind", ["keras", "train"])
def test_iterations_count_training_steps(kind: str) -> None:
    optimizer: Any = keras.optimizers.SGD(0.1)
    if kind == "train":
        optimizer = tf.train.GradientDescentOptimizer(0.1)
    model = linear(optimizer=optimizer)
    model.fit(ONES, TARGETS, batch_size=2, epochs=3, verbose=0)
    assert model.optimizer is optimizer
    assert keras.backend.get_value(optimizer.iterations) == 12


def test_iterations_outside_graph() -> None:
    model = linear(optimizer=keras.optimizers.SGD(0.1))
    model.fit(ONES, TARGETS, batch_size=4, verbose=0)
    found: list[int] = []

    def ask() -> None:
        found.append(int(keras.backend.get_value(model.optimizer.iterations)))

    thread = threading.Thread(target=ask)  # which is in no `with graph.as_default()`
    thread.start()
    thread.join()
    assert found == [2]


def test_overridden_optimizer_updates_are_used() -> None:
    class Mine(keras.optimizers.Optimizer):  # type: ignore[misc,name-defined]
        def get_updates(self, loss: Any, params: Any) -> list[Any]:
            gradients = self.get_gradients(loss, params)
            pairs = zip(params, gradients, strict=True)
            return [tf.assign_sub(each, 0.1 * gradient) for each, gradient in pairs]

        def get_config(self) -> dict[str, Any]:
            return {}

    model = linear(optimizer=Mine("Mine"))
    history = model.fit(ONES, TARGETS, batch_size=8, epochs=3, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [1.0, 0.16, 0.0256], rtol=1e-5)


# -- labels and data that do not fit


@pytest.mark.slow
@pytest.mark.parametrize("label", [7, -1])
@pytest.mark.parametrize("given", ["name", "object", "function"])
def test_invalid_labels_raise(label: int, given: str) -> None:
    losses: dict[str, Any] = {
        "name": "sparse_categorical_crossentropy",
        "object": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "function": lambda y, p: keras.losses.sparse_categorical_crossentropy(y, p, True),
    }
    model = linear(losses[given], units=3)
    labels = np.array([0, 1, 2, label, 0, 1, 2, 0])
    words = rf"label value of {label} which is outside the valid range of \[0, 3\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        model.evaluate(ONES, labels, verbose=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        model.fit(ONES, labels, batch_size=2, verbose=0)
    labels[3] = 2
    model = linear(losses[given], units=3)
    assert np.isfinite(model.evaluate(ONES, labels, verbose=0))
    assert np.isfinite(model.fit(ONES, labels, batch_size=2, verbose=0).history["loss"]).all()


def test_ignored_class_labels_are_accepted() -> None:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    labels = np.array([0, 1, 2, -1, 0, 1, 2, -1])
    assert np.isfinite(linear(loss, units=3).evaluate(ONES, labels, verbose=0))


@pytest.mark.slow
def test_estimator_from_model_refuses_invalid_labels(tmp_path: Path) -> None:
    estimator = keras.estimator.model_to_estimator(
        linear("sparse_categorical_crossentropy", units=3), model_dir=tmp_path
    )

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensors((ONES[:2], np.array([0, 7])))

    with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 7"):
        estimator.train(input_fn, steps=1)


def test_warning_names_batch_with_nan(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x = ONES.copy()
    x[5, 0] = np.nan
    with caplog.at_level(logging.WARNING):
        model = linear()
        history = model.fit(x, TARGETS, batch_size=2, epochs=2, shuffle=False, verbose=0)
    assert np.isnan(history.history["loss"]).all()
    told = [record.getMessage() for record in caplog.records if "NaN" in record.getMessage()]
    assert len(told) == 1
    assert "in batch 2," in told[0]
    assert "because x of this batch" in told[0]
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        linear().evaluate(ONES, np.full((8, 1), np.nan), verbose=0)
    assert "because y of this batch" in caplog.text


@pytest.mark.slow
def test_replaced_nan_does_not_warn(caplog: pytest.LogCaptureFixture) -> None:
    inputs = keras.Input((2,))
    known = tf.where(tf.is_nan(inputs), tf.zeros_like(inputs), inputs)
    model = keras.Model(inputs, LAYERS.Dense(1)(known))
    model.compile("sgd", "mse")
    x = ONES.copy()
    x[5, 0] = np.nan
    with caplog.at_level(logging.WARNING):
        history = model.fit(x, TARGETS, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert "NaN" not in caplog.text


# -- premade models


# -- files


def test_files_in_keras_cache_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "keras" / "datasets"
    folder.mkdir(parents=True)
    (folder / "words.txt").write_bytes(b"one\n")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.setenv("ESTIMATORKIT_CACHE_DIR", str(tmp_path / "own"))
    path = keras.utils.get_file("words.txt", "https://nowhere.invalid/words.txt")
    assert Path(path) == folder / "words.txt"
    with pytest.raises(tf.errors.UnavailableError):
        keras.utils.get_file("words.txt", "https://nowhere.invalid/w", file_hash="0" * 64)
    assert (folder / "words.txt").exists()
