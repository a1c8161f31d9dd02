"""Recurrent layers and wrappers against TensorFlow; configs, states, dropout, dtypes, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.layers.recurrent import recurrent_v1
from estimatorkit.core.conversion import constant
from estimatorkit.core.graph import Graph
from estimatorkit.keras import layers
from estimatorkit.ops.math import reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from tests.golden.snippets_recurrent import (
    BATCH,
    CASES,
    STATEFUL,
    STEPS,
    UNITS,
    WIDTH,
    numbers,
    run,
    run_stateful,
)

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "recurrent.json").read_text("utf-8"))["cases"]
ARRAYS = dict(np.load(FOLDER / "recurrent.npz"))


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    """All cases, in one graph and one call."""
    return run(tf, layers)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name: str, results: dict[str, dict[str, Any]]) -> None:
    for what in ("values", "gradients"):
        assert len(results[name][what]) == sum(key.startswith(f"{name}/{what}/") for key in ARRAYS)
        for at, value in enumerate(results[name][what]):
            expected = ARRAYS[f"{name}/{what}/{at}"]
            assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(value, expected, 1e-5, 1e-5, err_msg=f"{what} {at}")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_variables_shapes_and_configs(name: str, results: dict[str, dict[str, Any]]) -> None:
    found, golden = results[name], GOLDEN[name]
    assert found["variables"] == golden["variables"]
    for ours, theirs in zip(found["shapes"], golden["shapes"], strict=True):
        assert ours[1:] == theirs[1:]
        assert len({ours[0], theirs[0]} - {None}) < 2  # the batch may be known to one
    plain = json.loads(json.dumps(found["config"]))
    assert {key: plain.get(key, "missing") for key in golden["config"]} == golden["config"]


def test_stateful_layers() -> None:
    found = run_stateful(tf, layers)
    for name in STATEFUL:
        for at, value in enumerate(found[name]):
            np.testing.assert_allclose(value, ARRAYS[f"stateful/{name}/{at}"], 1e-5, 1e-5)


@pytest.mark.parametrize("name", [each for each in CASES if "user" not in each])
def test_config_round_trip(name: str) -> None:
    layer = CASES[name].make(tf, layers)
    config = layers.serialize(layer)
    again = layers.deserialize(json.loads(json.dumps(config)))
    assert type(again) is type(layer)
    assert json.dumps(layers.serialize(again)) == json.dumps(config)


# Orthogonal matrices take a decomposition, which takes seconds to compile.
CHEAP: dict[str, Any] = {"recurrent_initializer": "zeros"}


def evaluate(fetches: Any) -> Any:
    """Values, in a session in which all variables are initialized."""
    with Session() as session:
        session.run(global_variables_initializer())
        return session.run(fetches)


def test_cudnn_weights_match_plain_layers() -> None:
    x = constant(numbers((2, 3, 4), 0.0))
    lstm, gru = layers.CuDNNLSTM(3, name="a"), layers.CuDNNGRU(3, name="b")
    plain, other = layers.LSTM(3), layers.GRU(3)
    outputs = [layer(x) for layer in (lstm, gru, plain, other)]
    assert [each.op.name for each in lstm.weights] == ["a/kernel", "a/recurrent_kernel", "a/bias"]
    assert [each.shape.as_list() for each in lstm.weights] == [[4, 12], [3, 12], [24]]
    assert gru.weights[2].shape.as_list() == [18]
    bias, flat = numbers((24,), 1.0), numbers((18,), 2.0)
    values = {each: numbers(tuple(each.shape.as_list()), 3.0) for each in lstm.weights[:2]}
    loaded = [
        *values.items(),
        *zip(plain.weights, (*values.values(), bias[:12] + bias[12:]), strict=True),
        (lstm.weights[2], bias),
        (gru.weights[2], flat),
        (other.weights[2], flat.reshape(2, 9)),
    ]
    for one, same in zip(gru.weights[:2], other.weights[:2], strict=True):
        loaded += [(each, numbers(tuple(one.shape.as_list()), 4.0)) for each in (one, same)]
    with Session() as session:
        for variable, value in loaded:
            variable.load(value, session)
        a, b, c, d = session.run(outputs)
    np.testing.assert_allclose(a, c, 1e-6, 1e-6)
    np.testing.assert_allclose(b, d, 1e-6, 1e-6)


def test_initial_biases_and_defaults() -> None:
    x = constant(numbers((2, 3, 4), 0.0))
    made = [
        *(layers.LSTM(2, **CHEAP), layers.CuDNNLSTM(2, **CHEAP)),
        layers.LSTM(2, unit_forget_bias=False, **CHEAP),
    ]
    old = recurrent_v1.GRU(2, **CHEAP)
    for layer in (*made, old):
        layer(x)
    one, two, three = evaluate([layer.weights[-1] for layer in made])
    assert one.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert two.tolist() == [*[0] * 10, 1, 1, *[0] * 4]
    assert not three.any()
    assert old.get_config()["recurrent_activation"] == "hard_sigmoid"
    assert recurrent_v1.LSTM(2, "relu").get_config()["recurrent_activation"] == "hard_sigmoid"
    assert old.weights[-1].shape.as_list() == [6]
    assert isinstance(layers.deserialize(layers.serialize(old)), layers.GRU)


@pytest.mark.slow
def test_dropout_is_equal_in_all_steps() -> None:
    x = constant(np.ones((64, 5, 8), np.float32))
    fixed = {"kernel_initializer": "ones", "return_sequences": True, **CHEAP}
    layer = layers.SimpleRNN(3, "linear", dropout=0.5, use_bias=False, **fixed)
    recurrent = layers.SimpleRNN(2, recurrent_dropout=0.5, recurrent_initializer="ones")
    phase = tf.placeholder_with_default(False, [])
    outputs = [
        *(layer(x), layer(x, training=True), layer(x, training=phase)),
        *(recurrent(x, training=True), recurrent(x)),
    ]
    off, on, unfed, dropped, kept = evaluate(outputs)
    assert np.all(off == 8)
    assert np.all(unfed == 8)
    assert np.array_equal(on, np.broadcast_to(on[:, :1], on.shape))
    assert set(np.unique(on)) <= set(range(0, 17, 2))
    assert abs(on.mean() - 8) < 1
    assert len(np.unique(dropped[:, 0])) > 2
    assert len(np.unique(kept[:, 0])) == 1


@pytest.mark.slow
def test_dropout_of_stacked_cells_is_equal_in_all_steps() -> None:
    class Subclass(layers.SimpleRNNCell):  # type: ignore[misc,unused-ignore]
        def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
            return super().call(inputs, states, training=training)

    class Around(layers.Layer):  # type: ignore[misc,unused-ignore]
        state_size = 3

        def __init__(self, cell: Any) -> None:
            super().__init__()
            self.cell = cell

        def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
            return self.cell(inputs, states, training=training)

    x = constant(np.ones((64, 5, 8), np.float32))
    mask = constant(np.ones((64, 5), bool))
    phase = tf.placeholder_with_default(True, [])
    fixed = {"kernel_initializer": "ones", "recurrent_initializer": "zeros", "dropout": 0.5}
    made = [
        layers.RNN(make(), return_sequences=True)
        for make in (
            lambda: Subclass(3, "linear", **fixed),
            lambda: Around(layers.SimpleRNNCell(3, "linear", **fixed)),
            lambda: [Around(layers.SimpleRNNCell(3, "linear", **fixed))],
        )
    ]
    ways: list[dict[str, Any]] = [{"training": True}, {"training": phase, "mask": mask}]
    for on in evaluate([layer(x, **way) for layer in made for way in ways]):
        assert np.array_equal(on, np.broadcast_to(on[:, :1], on.shape))
        assert len(np.unique(on)) > 2
    for off in evaluate([layer(x) for layer in made]):
        assert np.all(off == 8)


def test_cell_subclass_uses_its_own_call() -> None:
    """As `LSTMCell` with layer normalization would do; alone, and in a stack."""

    class Doubled(layers.GRUCell):  # type: ignore[misc,unused-ignore]
        def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
            output, new = super().call(inputs, states, training=training)
            return 2.0 * output, new

    inputs = constant(numbers((BATCH, STEPS, WIDTH), 0.5))
    plain, own = layers.GRU(UNITS), layers.RNN(Doubled(UNITS))
    stack = layers.RNN([Doubled(UNITS), layers.GRUCell(UNITS)], return_sequences=True)
    above = layers.RNN(layers.GRUCell(UNITS), return_sequences=True)
    every = layers.GRU(UNITS, return_sequences=True)
    outputs = [plain(inputs), own(inputs), stack(inputs), above(2.0 * every(inputs))]
    with Session() as session:
        for layer, first in ((plain, 1.0), (own, 1.0), (every, 1.0), (stack, 1.0), (above, 4.0)):
            for number, weight in enumerate(layer.weights):
                weight.load(numbers(tuple(weight.shape.as_list()), first + number), session)
        one, doubled, stacked, expected = session.run(outputs)
    np.testing.assert_allclose(doubled, 2 * one, rtol=1e-6)
    np.testing.assert_allclose(stacked, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_states_are_set_and_reset() -> None:
    x = constant(numbers((2, 3, 2), 0.0))
    layer = layers.LSTM(2, stateful=True, **CHEAP)
    output = layer(x)
    assert len(layer.weights) == 3  # the states are none
    assert [each.shape.as_list() for each in layer.states] == [[2, 2], [2, 2]]
    with Session() as session:
        session.run(global_variables_initializer())
        first, _ = session.run([output, layer.updates])
        assert not np.allclose(session.run(output), first)
        layer.reset_states()
        np.testing.assert_array_equal(session.run(output), first)
        layer.reset_states([np.ones((2, 2)), np.zeros((2, 2))])
        assert session.run(layer.states[0]).tolist() == [[1, 1], [1, 1]]
        with pytest.raises(ValueError, match="expects 2 states"):
            layer.reset_states([np.ones((2, 2))])
        with pytest.raises(ValueError, match="expected shape=\\(2, 2\\)"):
            layer.reset_states([np.ones((2, 3)), np.ones((2, 2))])


@pytest.mark.slow
def test_unknown_steps_and_mixed_precision() -> None:
    x = tf.placeholder(tf.float32, [None, None, 2])
    layer = layers.Bidirectional(
        layers.LSTM(3, return_sequences=True, dtype="mixed_bfloat16", **CHEAP),
        dtype="mixed_bfloat16",
    )
    output = layer(x)
    assert output.dtype.name == "bfloat16"
    assert {each.dtype.name for each in layer.weights} == {"float32"}
    assert output.shape.as_list() == [None, None, 6]
    double = layers.GRU(2, **CHEAP)(tf.cast(x, tf.float64))
    total = reduce.reduce_sum(tf.cast(output, tf.float32))
    gradients = tf.gradients(total, layer.weights)
    with Session() as session:
        session.run(global_variables_initializer())
        found, backs = session.run([output, gradients], {x: numbers((2, 2, 2), 0.0)})
        assert found.shape == (2, 2, 6)
        assert all(each.dtype == np.float32 and np.any(each) for each in backs)
        found = session.run(double, {x: numbers((2, 4, 2), 0.0)})
        assert (found.shape, found.dtype) == ((2, 2), np.float64)


def test_output_masks() -> None:
    from estimatorkit.layers.engine.base import mask_of

    words = tf.placeholder(tf.int32, [None, 4])
    x = layers.Embedding(5, 2, mask_zero=True)(words)
    for make, expected in (
        (lambda: layers.LSTM(2, return_sequences=True), True),
        (lambda: layers.LSTM(2), False),
        (lambda: layers.Bidirectional(layers.GRU(2, return_sequences=True)), True),
        (lambda: layers.TimeDistributed(layers.Dense(2)), True),
    ):
        assert (mask_of(make()(x)) is not None) is expected
    output, state = layers.GRU(2, return_sequences=True, return_state=True)(x)
    assert mask_of(output) is not None
    assert mask_of(state) is None


def test_errors() -> None:
    x = tf.placeholder(tf.float32, [None, None, 2])
    with pytest.raises(ValueError, match="expected a positive integer"):
        layers.LSTM(0)
    with pytest.raises(TypeError, match="multiple values for argument 'units'"):
        layers.LSTM(2, units=3)
    with pytest.raises(TypeError, match="Keyword argument not understood: unit"):
        layers.LSTM(2, unit=3)
    with pytest.raises(ValueError, match="`state_size`"):
        layers.RNN(layers.Dense(2))
    with pytest.raises(ValueError, match="Cannot unroll a RNN"):
        layers.GRU(2, unroll=True)(x)
    with pytest.raises(ValueError, match="needs to know its batch size"):
        layers.GRU(2, stateful=True)(x)
    with pytest.raises(AttributeError, match="must be stateful"):
        layers.GRU(2).reset_states()
    with pytest.raises(ValueError, match="Layer has 2 states but was passed 1"):
        layers.LSTM(2)(x, initial_state=[tf.zeros([1, 2])])
    with pytest.raises(ValueError, match=r"not compatible with `cell\.state_size`"):
        layers.GRU(2)(x, initial_state=tf.zeros([1, 3]))
    with pytest.raises(ValueError, match="does not support constants"):
        layers.RNN(recurrent_v1.GRUCell(2))(x, constants=[tf.zeros([1])])
    with pytest.raises(ValueError, match="Invalid merge mode"):
        layers.Bidirectional(layers.GRU(2), merge_mode="max")
    with pytest.raises(ValueError, match="should have different `go_backwards`"):
        layers.Bidirectional(layers.GRU(2), backward_layer=layers.GRU(2))
    with pytest.raises(ValueError, match="the same value for attribute"):
        layers.Bidirectional(
            layers.GRU(2),
            backward_layer=layers.GRU(2, return_sequences=True, go_backwards=True),
        )
    with pytest.raises(ValueError, match="at least 3 dimensions"):
        layers.TimeDistributed(layers.Dense(2))(tf.zeros([2, 3]))
    layer = layers.GRU(2)
    layer(x)
    with pytest.raises(ValueError, match="expected shape="):
        layer(tf.zeros([2, 3, 4]))


def test_compat_v1_names_have_its_defaults() -> None:
    assert tf.keras.layers.GRU is recurrent_v1.GRU
    assert tf.keras.layers.LSTMCell is recurrent_v1.LSTMCell
    assert tf.keras.layers.Bidirectional is layers.Bidirectional
    assert tf.keras.layers.CuDNNGRU is layers.CuDNNGRU
