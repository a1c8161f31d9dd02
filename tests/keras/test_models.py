"""Models beyond the golden runs: metrics across calls, generators, masks, names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import estimatorkit as tf
from estimatorkit import keras


def zeros_model() -> Any:
    """A model that gives 0 and does not learn, so that the loss is the mean of squared labels."""
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(3,), kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    return model


def test_metrics_accumulate_after_training() -> None:
    model = zeros_model()
    x = np.ones((4, 3), np.float32)
    model.fit(x, np.ones(4, np.float32), batch_size=2, verbose=0)
    losses = [
        model.train_on_batch(x, np.full(4, label, np.float32), reset_metrics=label == 1)
        for label in (1, 2, 3, 4)
    ]
    np.testing.assert_allclose(losses, [1, 5 / 2, 14 / 3, 30 / 4], rtol=1e-6)


def test_weights_without_labels_raise() -> None:
    x, weights = np.ones((2, 3), np.float32), np.ones(2, np.float32)

    def batches() -> Iterator[Any]:
        while True:
            yield x, None, weights

    with pytest.raises(ValueError, match="sample_weight is given without y"):
        zeros_model().fit(batches(), steps_per_epoch=2, verbose=0)
    with pytest.raises(ValueError, match="sample_weight is given without y"):
        zeros_model().fit(x, sample_weight=weights, verbose=0)


def test_summary_of_layer_range() -> None:
    model = keras.Sequential(
        [keras.Input((2,)), *(keras.layers.Dense(2, name=name) for name in "abc")]
    )
    lines: list[str] = []
    model.summary(print_fn=lines.append, layer_range=("b", "c"))
    assert [line.split()[0] for line in lines if "(Dense)" in line] == ["b", "c"]


def test_shared_layer_survives_pop() -> None:
    shared = keras.layers.Dense(2)
    first = keras.Sequential([keras.Input((2,)), shared])
    second = keras.Sequential([keras.Input((2,)), shared, keras.layers.Dense(3)])
    second.pop()
    x = np.ones((1, 2), np.float32)
    np.testing.assert_array_equal(second.predict(x), first.predict(x))


@pytest.mark.slow
def test_masked_steps_are_excluded() -> None:
    inputs = keras.Input((3, 2))
    outputs = keras.layers.Dense(1, kernel_initializer="zeros")(keras.layers.Masking()(inputs))
    model = keras.Model(inputs, outputs)
    plain = ["mae", keras.metrics.RootMeanSquaredError()]
    model.compile("sgd", "mse", metrics=plain, weighted_metrics=["mae"])
    x = np.ones((2, 3, 2), np.float32)
    x[0, 1:] = 0
    labels = np.arange(6, dtype=np.float32).reshape(2, 3, 1)  # 0; 3, 4, 5 count
    weights = np.array([1, 2], np.float32)
    np.testing.assert_allclose(
        model.evaluate(x, labels, verbose=0), [50 / 4, 3, (50 / 4) ** 0.5, 3], rtol=1e-6
    )
    np.testing.assert_allclose(
        model.evaluate(x, labels, sample_weight=weights, verbose=0),
        [100 / 4, 3, (50 / 4) ** 0.5, 24 / 7],
        rtol=1e-6,
    )


@pytest.mark.slow
def test_outputs_have_separate_metric_state() -> None:
    inputs = keras.Input((2,))
    outputs = [
        keras.layers.Dense(1, kernel_initializer="zeros", name=name)(inputs) for name in "ab"
    ]
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse", metrics=[keras.metrics.MeanAbsoluteError(name="mae")])
    labels = [np.full(4, label, np.float32) for label in (1, 3)]
    logs = model.evaluate(np.ones((4, 2), np.float32), labels, verbose=0, return_dict=True)
    assert (logs["a_mae"], logs["b_mae"]) == (1, 3)


class Smallest(keras.metrics.Metric):  # type: ignore[misc]
    """A metric whose variable does not begin with 0."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.least = self.add_weight("least", initializer=keras.initializers.Constant(100.0))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.least.assign(tf.minimum(self.least, tf.reduce_min(y_true)))

    def result(self) -> Any:
        return self.least


@pytest.mark.slow
def test_metrics_restart_each_epoch() -> None:
    model = zeros_model()
    with model.graph.as_default():
        model.compile("sgd", "mse", metrics=[Smallest(name="least")])
    x, labels = np.ones((4, 3), np.float32), np.array([7, 5, 6, 8], np.float32)
    history = model.fit(x, labels, batch_size=2, epochs=2, verbose=0).history
    assert history["least"] == [5, 5]
    assert model.evaluate(x, labels + 1, verbose=0)[1] == 6


@pytest.mark.slow
def test_dict_outputs_are_named_by_keys() -> None:
    inputs = keras.Input((2,))
    outputs = {key: keras.layers.Dense(1, kernel_initializer="zeros")(inputs) for key in "ba"}
    model = keras.Model(inputs, outputs)
    model.compile("sgd", {"a": "mse", "b": "mae"})
    labels = {"a": np.full(4, 3, np.float32), "b": np.full(4, 3, np.float32)}
    logs = model.evaluate(np.ones((4, 2), np.float32), labels, verbose=0, return_dict=True)
    assert logs == {"loss": 12, "a_loss": 9, "b_loss": 3}
    assert sorted(model.predict(np.ones((4, 2), np.float32))) == ["a", "b"]


def test_dict_inputs_are_matched_by_keys() -> None:
    a, b = keras.Input((1,)), keras.Input((1,))
    model = keras.Model({"a": a, "b": b}, keras.layers.Subtract()([a, b]))
    one, three = np.ones((1, 1), np.float32), np.full((1, 1), 3, np.float32)
    assert model.predict({"b": one, "A": one, "a": three}) == 2
    with pytest.raises(ValueError, match=r"no value for its inputs \['b'\]"):
        model.predict({"a": one, "c": three})


@pytest.mark.slow
def test_stateful_layers_keep_state_in_predict_and_evaluate() -> None:
    def model(steps: int, stateful: bool) -> Any:
        layer = keras.layers.SimpleRNN(
            *(1, "linear", False), stateful=stateful, batch_input_shape=(1, steps, 1)
        )
        made = keras.Sequential([layer])
        made.compile("sgd", "mse")
        made.set_weights([np.full((1, 1), 1, np.float32), np.full((1, 1), 0.5, np.float32)])
        return made

    x = np.arange(1, 5, dtype=np.float32).reshape(1, 4, 1)
    whole = model(4, False).predict(x)
    parts = model(2, True)
    first = parts.predict(x[:, :2])
    np.testing.assert_allclose(parts.predict(x[:, 2:]), whole)
    parts.reset_states()
    np.testing.assert_allclose(parts.evaluate(x[:, :2], np.zeros((1, 1))), first.item() ** 2)
    np.testing.assert_allclose(parts.predict(x[:, 2:]), whole)


@pytest.mark.slow
def test_first_sequential_layer_may_take_dict() -> None:
    class Pick(keras.layers.Layer):  # type: ignore[misc]
        def call(self, inputs: Any) -> Any:
            return inputs["x"]

    model = keras.Sequential([Pick(), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse")
    features = {"x": np.ones((4, 2), np.float32), "y": np.ones((4, 3), np.float32)}
    model.fit(features, np.ones(4, np.float32), batch_size=2, epochs=2, verbose=0)
    assert [each.shape for each in model.get_weights()] == [(2, 1), (1,)]
    assert model.predict(features).shape == (4, 1)


def test_generators_continue_across_calls() -> None:
    labels = iter(range(1, 7))
    batches = ((np.ones((2, 3), np.float32), np.full(2, each, np.float32)) for each in labels)
    model = zeros_model()
    losses = [model.evaluate(batches, steps=2, verbose=0) for _ in range(3)]
    assert losses == [(1 + 4) / 2, (9 + 16) / 2, (25 + 36) / 2]


def test_validation_generator_is_read_once() -> None:
    x = np.ones((2, 3), np.float32)
    labels = iter([1, 2, 3, 4])
    batches = ((x, np.full(2, each, np.float32)) for each in labels)
    history = zeros_model().fit(
        *(x, np.ones(2, np.float32)),
        **{"epochs": 2, "validation_data": batches, "validation_steps": 2, "verbose": 0},
    )
    assert history.history["val_loss"] == [(1 + 4) / 2, (9 + 16) / 2]


def test_numeric_data_frame_becomes_matrix() -> None:
    model = zeros_model()
    model.set_weights([np.array([[1], [10], [100]], np.float32), np.zeros(1, np.float32)])
    frame = pd.DataFrame({"c": [1.0, 2.0], "b": [3.0, 4.0], "a": [5.0, 6.0]})
    np.testing.assert_array_equal(model.predict(frame), [[531], [642]])
    assert model.evaluate(frame, pd.DataFrame({"label": [531.0, 643.0]}), verbose=0) == 0.5


@pytest.mark.parametrize("was", [True, False])
def test_trainable_is_fixed_at_compile(was: bool) -> None:
    judge = keras.Sequential([keras.layers.Dense(1, input_shape=(2,), kernel_initializer="ones")])
    judge.trainable = was
    judge.compile("sgd", "mse")
    judge.trainable = not was
    inputs = keras.layers.Input((2,))
    both = keras.Model(inputs, judge(inputs))
    both.compile("sgd", "mse")
    data = np.ones([2, 2], np.float32), np.zeros([2, 1], np.float32)
    for model, moved in ((judge, was), (both, not was)):
        before = judge.get_weights()[0]
        model.train_on_batch(*data)
        change = before - judge.get_weights()[0]
        assert (change > 0).all() == moved
        assert change.any() == moved
    assert judge.trainable is not was
    judge.compile("sgd", "mse")
    before = judge.get_weights()[0]
    judge.fit(*data, verbose=0)
    assert (before == judge.get_weights()[0]).all() == was


def test_input_layer_input_is_its_output() -> None:
    inputs = keras.layers.Input((2,))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(inputs))
    first, last = model.layers
    assert first.input is first.output is inputs
    assert first.input_shape == (None, 2)
    rows = np.ones([3, 2], np.float32)
    found = keras.backend.function([first.input], [last.output])([rows])
    np.testing.assert_array_equal(found[0], rows.sum(1, keepdims=True))


def two_outputs() -> Any:
    """A model with the outputs "a" and "b" of 2 numbers each."""
    x = keras.Input((3,))
    return keras.Model(x, [keras.layers.Dense(2, name="a")(x), keras.layers.Dense(2, name="b")(x)])


def test_metrics_names_after_compile() -> None:
    model = two_outputs()
    model.add_metric(tf.reduce_sum(model.outputs[0]), name="sum")
    model.compile("sgd", {"a": "mse", "b": "mae"}, {"a": ["accuracy"], "b": ["mae"]})
    names = ["loss", "a_loss", "b_loss", "a_accuracy", "b_mae", "sum"]
    assert model.metrics_names == names
    y = np.ones((4, 2), np.float32)
    history = model.fit(np.ones((4, 3), np.float32), [y, y], verbose=0).history
    assert model.metrics_names == names
    assert history["b_mean_absolute_error"] == history["b_mae"]
    assert "a_acc" in history
    assert "b_mean_squared_error" not in history


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"loss": {"c": "mse"}}, "'c'"),
        ({"loss": ["mse"]}, "one entry for each of 2 outputs"),
        ({"loss_weights": [1.0]}, "one entry for each of 2 outputs"),
        ({"loss_weights": 3}, "Could not interpret loss_weights"),
        ({"metrics": {"c": "mae"}}, "'c'"),
        ({"metrics": ["no metric"]}, "no metric"),
    ],
)
def test_compile_checks_outputs(arguments: Any, problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        two_outputs().compile("sgd", **{"loss": "mse", **arguments})


@pytest.mark.parametrize(
    ("loss", "refused"),
    [
        *(("mse", True), ("binary_crossentropy", True), ("categorical_crossentropy", True)),
        *(("mae", False), ("sparse_categorical_crossentropy", False)),
    ],
)
def test_labels_are_not_broadcast(loss: str, refused: bool) -> None:
    model = keras.Sequential([keras.layers.Dense(3, activation="softmax", input_shape=(2,))])
    model.compile("sgd", loss)
    x, y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
    if not refused:
        model.train_on_batch(x, y)
        return
    with pytest.raises(ValueError, match="expects targets to have the same shape as the output"):
        model.train_on_batch(x, y)


def test_layer_output_belongs_to_model_call() -> None:
    x = keras.Input((None, 3))
    layer = keras.layers.Dense(2)
    model = keras.Model(x, layer(x))
    model.compile("sgd", "mse")
    given = np.ones((4, 5, 3), np.float32)
    model.fit(given, np.ones((4, 5, 2), np.float32), verbose=0)
    model.predict(given)
    model(tf.ones((7, 6, 3)))
    assert layer.output is model.outputs[0]
    assert layer.output_shape == (None, None, 2)
    assert [node.input_tensors for node in layer._inbound_nodes] == [x]
    assert [node.layer for node in model.layers[0]._outbound_nodes] == [layer]
    assert layer._inbound_nodes[0].inbound_layers is model.layers[0]
    with pytest.raises(ValueError, match="has only 1 inbound nodes"):
        layer.get_output_at(1)


def test_layer_and_input_names_are_unique() -> None:
    x = keras.Input((3,))
    y = keras.layers.Dense(3, name="same")(x)
    with pytest.raises(ValueError, match="is used 2 times"):
        keras.Model(x, keras.layers.Dense(2, name="same")(y))
    with pytest.raises(ValueError, match="same input multiple times"):
        keras.Model([x, x], y)


def test_metrics_of_same_name_are_all_returned() -> None:
    class Noted(keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            self.add_metric(tf.reduce_mean(inputs), name="mean")
            return inputs * 2.0

    model = keras.Sequential([Noted(input_shape=(3,)), Noted()])
    model.compile("sgd", "mse")
    x = np.ones((4, 3), np.float32)
    assert model.evaluate(x, x, return_dict=True) == {"loss": 9.0, "mean": 1.0, "mean_1": 2.0}
