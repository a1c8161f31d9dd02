"""Keras losses against TensorFlow 2.15.1: values, configs and errors."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as ek
import estimatorkit as tf
from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.keras import backend, losses
from estimatorkit.keras.engine.compiled import CompiledLoss
from estimatorkit.layers import losses as layers_losses
from estimatorkit.ops.nn import nn
from estimatorkit.runtime.session import Session
from tests.golden.snippets_losses import (
    ARRAYS,
    EXTREME,
    FITTED_SHAPES,
    FUNCTIONS,
    KERAS,
    REDUCTIONS,
    fitted,
    from_probabilities,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feed: Any = None) -> Any:
    with Session() as session:
        return session.run(fetches, feed)


def check(found: dict[str, Any], golden: dict[str, Any], rtol: float = 1e-5) -> None:
    assert sorted(found) == sorted(golden)
    for name, expected in golden.items():
        assert found[name].dtype == expected["dtype"], name
        values = np.array([float(each) for each in expected["values"]])
        np.testing.assert_allclose(
            found[name], values.reshape(expected["shape"]), rtol, 1e-6, err_msg=name
        )


def test_every_loss_and_reduction_matches_tensorflow() -> None:
    made = {
        f"{name}/{reduction}": make(losses, reduction)(*map(tf.constant, ARRAYS[arrays]))
        for name, (arrays, make) in KERAS.items()
        for reduction in REDUCTIONS
    }
    check(run(made), GOLDEN["keras"])


def test_every_function_and_alias_matches_tensorflow() -> None:
    check(
        run({name: loss(losses, ARRAYS) for name, loss in FUNCTIONS.items()}), GOLDEN["functions"]
    )


def test_softmax_and_sigmoid_outputs_use_logits() -> None:
    found = run(from_probabilities(tf))
    check(found, GOLDEN["from probabilities"])
    assert found["categorical"][0] == 400.0  # -log(1e-7) = 16 is the most that a probability costs


def test_confident_wrong_prediction_has_gradient() -> None:
    logits = tf.constant(EXTREME)
    loss = losses.CategoricalCrossentropy()(np.eye(3)[:2], tf.nn.softmax(logits))
    np.testing.assert_allclose(
        run(tf.gradients(loss, logits)[0]), [[-0.5, 0, 0.5], [0.5, -0.5, 0]], atol=1e-6
    )


def test_softmax_over_other_axis_is_not_logits() -> None:
    shares = tf.nn.softmax(tf.constant(ARRAYS["one hot"][1]), axis=0)
    one_hot = ARRAYS["one hot"][0]
    found = run(
        [
            losses.categorical_crossentropy(one_hot, shares),
            losses.categorical_crossentropy(one_hot, builtin_ops.identity(shares)),
        ]
    )
    np.testing.assert_array_equal(*found)


def test_probabilities_passed_as_logits_warn() -> None:
    shares = tf.nn.softmax(tf.constant(EXTREME))
    with pytest.warns(UserWarning, match="does not represent logits"):
        losses.categorical_crossentropy(np.eye(3)[:2], shares, from_logits=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses.categorical_crossentropy(np.eye(3)[:2], EXTREME, from_logits=True)


@pytest.mark.parametrize("name", sorted(KERAS))
def test_configs_match_tensorflow_and_round_trip(name: str) -> None:
    loss = KERAS[name][1](losses, "sum")
    golden = {key: value for key, value in GOLDEN["configs"][name].items() if key != "fn"}
    assert loss.get_config() == golden
    written = losses.serialize(loss)
    assert written["class_name"] == GOLDEN["serialized"][name]["class_name"]
    for each in (written, GOLDEN["serialized"][name]):
        again = losses.deserialize(json.loads(json.dumps(each)))
        assert type(again) is type(loss)
        assert again.get_config() == golden


def test_names_resolve_in_fixed_table() -> None:
    assert losses.get("mse") is losses.get("mean_squared_error") is losses.mean_squared_error
    assert isinstance(losses.get("Huber"), losses.Huber)
    assert losses.get({"class_name": "Huber", "config": {"delta": 2.0}})._fn_kwargs["delta"] == 2.0
    assert losses.get(None) is None
    assert losses.get(losses.hinge) is losses.hinge
    assert losses.serialize(losses.mse) == "mean_squared_error"
    assert losses.deserialize({"class_name": "function", "config": "mae"}) is losses.mae
    with pytest.raises(ValueError, match="Unknown loss function: 'mean_squared_eror'") as error:
        losses.get("mean_squared_eror")
    assert "mean_squared_error" in str(error.value)
    with pytest.raises(ValueError, match="Unknown loss function"):
        losses.get("os.system")
    with pytest.raises(ValueError, match="Could not interpret loss function identifier"):
        losses.get(3)
    own = losses.deserialize("mine", {"mine": losses.mse})
    assert own is losses.mse


def test_names_of_both_versions() -> None:
    assert ek.losses.mean_squared_error is layers_losses.mean_squared_error
    assert ek.losses.MeanSquaredError is losses.MeanSquaredError
    assert ek.losses.sparse_categorical_crossentropy is losses.sparse_categorical_crossentropy
    loss = ek.losses.MeanSquaredError(reduction=ek.losses.Reduction.SUM)
    assert loss.reduction == losses.Reduction.SUM
    assert losses.Huber(reduction=ek.losses.Reduction.AUTO).reduction == "sum_over_batch_size"


def test_custom_losses() -> None:
    class Cubed(losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return nn.relu(y_pred - y_true) ** 3.0

    loss = Cubed(reduction=losses.Reduction.SUM, name="cubed")
    value = loss(np.array([[1.0], [2.0]]), tf.constant([[3.0], [3.0]], tf.float64), [1.0, 10.0])
    assert value.name.startswith("cubed/")
    assert run(value) == 8.0 + 10.0
    with pytest.raises(ValueError, match="Invalid Reduction Key: summ"):
        Cubed(reduction="summ")
    with pytest.raises(NotImplementedError):
        losses.Loss()([1.0], [1.0])
    function = losses.LossFunctionWrapper(losses.huber, name="h", delta=2.0)
    assert run(function([[0.0]], [[1.0]])) == 0.5


def test_masked_steps_are_excluded() -> None:
    guesses = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 3, 2))
    labels = np.zeros((2, 3, 2), np.float32)
    guesses._keras_mask = tf.constant([[True, True, False], [True, False, False]])
    each = (np.arange(12).reshape(2, 3, 2) ** 2).mean(-1)
    mask = np.array([[1, 1, 0], [1, 0, 0]])
    weights = np.array([[1.0], [2.0]], np.float32)
    found = run(
        [
            losses.MeanSquaredError()(labels, guesses),
            losses.MeanSquaredError("sum")(labels, guesses, weights),
        ]
    )
    np.testing.assert_allclose(found, [(each * mask).sum() / 3, (each * mask * weights).sum()])


def test_columns_and_vectors_are_aligned() -> None:
    column, vector = np.array([[1.0], [2.0], [4.0]], np.float32), np.array([1.0, 1.0, 1.0])
    loss = losses.MeanSquaredError("none")
    weights = np.array([1.0, 2.0, 3.0], np.float32)
    found = run(
        [
            loss(vector, column),
            loss(column, vector),
            loss(vector, column[:, 0], weights),
            losses.MeanSquaredError()(vector, column),
        ]
    )
    np.testing.assert_allclose(found[0], [0, 1, 9])
    np.testing.assert_allclose(found[1], [0, 1, 9])
    np.testing.assert_allclose(found[2], [0, 2, 27])
    np.testing.assert_allclose(found[3], 10 / 3, rtol=1e-6)


def test_epsilon_comes_from_backend() -> None:
    before = backend.epsilon()
    backend.set_epsilon(1e-2)
    try:
        loss = losses.binary_crossentropy([[1.0]], [[0.0]])
    finally:
        backend.set_epsilon(before)
    np.testing.assert_allclose(run(loss), -np.log([0.02]), rtol=1e-5)


def test_outer_broadcast_is_refused() -> None:
    with pytest.raises(ValueError, match="Shapes of y_true and y_pred are incompatible"):
        losses.mean_squared_error(np.zeros(4), np.zeros((4, 1)))
    with pytest.raises(ValueError, match="weights can not be broadcast"):
        losses.MeanSquaredError()(np.zeros((4, 2)), np.zeros((4, 2)), np.ones(3))


def test_auto_reduction() -> None:
    assert losses.MeanSquaredError()._get_reduction() == "sum_over_batch_size"
    assert losses.MeanSquaredError("sum")._get_reduction() == "sum"


def _container(function: Any) -> Any:
    loss = CompiledLoss(function, None, ["output"])
    return lambda labels, predictions: loss([labels], [predictions], [None])[0]


@pytest.mark.parametrize("labels", FITTED_SHAPES)
@pytest.mark.parametrize("predictions", FITTED_SHAPES)
def test_function_gets_shapes_as_from_tensorflow(labels: Any, predictions: Any) -> None:
    golden = GOLDEN["fitted"][f"{labels} {predictions}"]
    if golden is None:
        with pytest.raises(ValueError, match=r"(?i)shape|broadcast"):
            fitted(_container, tf, labels, predictions)
        return
    value, *expected = golden
    loss, shapes = fitted(_container, tf, labels, predictions)
    assert shapes == expected
    check({"loss": run(loss)}, {"loss": value})


@pytest.mark.parametrize("batch", [None, 3])
def test_function_that_would_pair_examples_is_told(batch: int | None, caplog: Any) -> None:
    labels, steps = tf.placeholder(tf.float32, [batch]), tf.placeholder(tf.float32, [batch, 2, 1])
    absolute = _container(lambda truth, guesses: tf.abs(truth - guesses))
    with caplog.at_level("WARNING", "estimatorkit"):
        absolute(labels[:, None], steps)  # as (batch, 1) and (batch, 2)
        assert not caplog.records
        absolute(labels, steps)
    assert "pairs each example with all others" in caplog.text

    class Absolute(losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return tf.abs(y_true - y_pred)

    caplog.clear()
    Absolute(name="absolute")(labels, steps)
    assert "The loss absolute gets labels of shape" in caplog.text
    for function in (losses.MeanSquaredError(), losses.Huber(), losses.BinaryCrossentropy()):
        with pytest.raises(ValueError, match="Shapes of y_true and y_pred are incompatible"):
            function(labels, steps)


def test_index_of_dimension_that_keras_removes_is_an_error() -> None:
    last = _container(lambda truth, guesses: tf.reduce_mean(tf.abs(guesses[:, :, 0] - truth)))
    labels, steps = (tf.placeholder(tf.float32, [None, *rest]) for rest in ([1], [2, 1]))
    with pytest.raises(ValueError, match="Index out of range"):
        last(labels, steps)
