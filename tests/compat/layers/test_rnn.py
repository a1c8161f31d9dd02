"""Recurrent cells and networks against TensorFlow: variables, values, gradients, errors.

Then dropout (by its properties), second derivatives, and what stays the same without a golden file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_rnn import LENGTHS, RNN, RNN_ERRORS, VALUES_ONLY, numbers, run
from tests.sweep import sweep

FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN = json.loads((FOLDER / "rnn.json").read_text("utf-8"))
ARRAYS = dict(np.load(FOLDER / "rnn.npz"))
rnn_cell = tf.nn.rnn_cell

# Words of TensorFlow's messages that ours begin with, too.
WORDS = {
    "dynamic_no_dtype": "If no initial_state is provided, argument `dtype` must be specified",
    "static_no_dtype": "If no initial_state is provided, argument `dtype` must be specified",
    "dynamic_rank": 'Input tensor should have rank >= 2. Received input=Tensor("ones:0", ',
    "dynamic_no_cell": "The argument 'cell' (GRU) is not an RNNCell",
    "static_no_cell": "The argument 'cell' (GRU) is not an RNNCell",
    "dropout_no_cell": "The argument 'cell' (GRU) is not an RNNCell",
    "bidirectional_no_cell": "The argument 'cell_bw' (None) is not an RNNCell",
    "lengths_rank": "Argument sequence_length must be a vector of ",
    "variables_twice": "Variable rnn/gru_cell/gates/kernel already exists, disallowed.",
    "static_no_list": "Argument `inputs` must be a sequence. Received: Tensor(",
    "static_nothing": "Argument `inputs` must not be empty.",
    "multi_nothing": "Must specify at least one cell for MultiRNNCell.",
    "multi_no_list": "cells must be a list or tuple, but received: <",
    "multi_state": "Expected state to be a tuple of length 1, but received: Tensor(",
    "keep_too_much": "Parameter input_keep_prob must be between 0 and 1. Received 1.5",
    "keep_negative": "Parameter state_keep_prob must be between 0 and 1. Received -0.5",
    "variational_no_dtype": "When variational_recurrent=True, dtype must be provided",
    "variational_no_size": "When variational_recurrent=True and input_keep_prob < 1.0 or is ",
    "state_depth": "Dimensions must be equal, but are ",
}


@sweep("name", sorted(RNN), quick=3)
def test_networks(name: str) -> None:
    found, facts = run(tf, RNN[name], name not in VALUES_ONLY), GOLDEN["rnn"][name]
    assert found["variables"] == facts["variables"]
    assert found["none"] == facts["none"]
    for ours, theirs in zip(found["shapes"], facts["shapes"], strict=True):
        if theirs is not None:
            assert all(b in (None, a) for a, b in zip(ours, theirs, strict=True))
    for what in ("values", "gradients"):
        assert len(found[what]) == sum(key.startswith(f"{name}/{what}/") for key in ARRAYS)
        for at, value in enumerate(found[what]):
            expected = ARRAYS[f"{name}/{what}/{at}"]
            assert value.dtype == expected.dtype
            np.testing.assert_allclose(
                value, expected, rtol=2e-5, atol=1e-5, err_msg=f"{what} {at}"
            )


@pytest.mark.parametrize("name", sorted(RNN_ERRORS))
def test_errors(name: str) -> None:
    got, golden = error_of(lambda: run(tf, RNN_ERRORS[name])), GOLDEN["errors"][name]
    assert got is not None
    assert got["class"] == golden["class"], got
    words = WORDS.get(name, "")
    assert golden["first_line"].startswith(words)
    assert got["first_line"].startswith(words)


class _Still(rnn_cell.RNNCell):  # type: ignore[misc,name-defined]
    """A cell whose output and two states are its inputs."""

    @property
    def state_size(self) -> Any:
        return rnn_cell.LSTMStateTuple(200, 200)

    @property
    def output_size(self) -> Any:
        return 200

    def call(self, inputs: Any, state: Any) -> Any:
        return inputs, rnn_cell.LSTMStateTuple(inputs, inputs)


def _dropped(**options: Any) -> tuple[Any, Any, Any]:
    """What `DropoutWrapper` leaves of ones in 3 sequences of 4 steps: outputs, memory, output."""
    with tf.Graph().as_default(), tf.Session() as session:
        cell = rnn_cell.DropoutWrapper(_Still(), seed=3, **options)
        outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([3, 4, 200]), dtype=tf.float32)
        found, (memory, output) = session.run([outputs, state])
        return found, memory, output


@pytest.mark.slow
def test_cell_dropout() -> None:
    outputs, memory, output = _dropped(output_keep_prob=0.25)
    assert set(np.unique(outputs)) == {0.0, 4.0}
    assert abs((outputs > 0).mean() - 0.25) < 0.045  # five standard deviations
    assert (outputs[:, 0] != outputs[:, 1]).any()
    assert (memory == 1).all()
    assert (output == 1).all()
    outputs, memory, output = _dropped(state_keep_prob=0.5)
    assert (outputs == 1).all()
    assert (memory == 1).all()  # an LSTM's memory is never dropped
    assert set(np.unique(output)) == {0.0, 2.0}
    outputs, memory, output = _dropped(input_keep_prob=0.5)
    assert set(np.unique(outputs)) == {0.0, 2.0}
    np.testing.assert_array_equal(memory, outputs[:, -1])


def test_variational_dropout_is_equal_in_all_steps() -> None:
    outputs, memory, output = _dropped(
        input_keep_prob=0.5,
        output_keep_prob=0.5,
        state_keep_prob=0.5,
        variational_recurrent=True,
        input_size=200,
        dtype=tf.float32,
    )
    assert set(np.unique(outputs)) == {0.0, 4.0}
    assert (outputs == outputs[:1, :1]).all()
    assert set(np.unique(memory)) == {0.0, 2.0}
    kept = output[memory > 0]
    assert set(np.unique(kept)) == {0.0, 4.0}  # by another draw than the inputs
    assert not output[memory == 0].any()


@pytest.mark.slow
def test_state_dropout_filter() -> None:
    outputs, memory, output = _dropped(
        state_keep_prob=0.5,
        dropout_state_filter_visitor=lambda state: rnn_cell.LSTMStateTuple(c=True, h=False),
    )
    assert (outputs == 1).all()
    assert set(np.unique(memory)) == {0.0, 2.0}
    assert (output == 1).all()


class CountedCell(rnn_cell.BasicRNNCell):
    """A cell of somebody's own, whose steps may differ."""

    calls = 0

    def call(self, inputs: Any, state: Any) -> Any:
        self.calls += 1
        return super().call(inputs, state)


@pytest.mark.slow
def test_list_of_steps_is_one_loop() -> None:
    steps = [tf.constant(numbers(seed, 2, 3)) for seed in range(4)]
    cells = rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(3), rnn_cell.GRUCell(2)])
    outputs, last = tf.nn.static_rnn(cells, steps, dtype=tf.float32)
    types = [op.type for op in tf.get_default_graph().get_operations()]
    assert (types.count("Scan"), types.count("MatMul")) == (1, 0)
    assert [output.shape.as_list() for output in outputs] == [[2, 2]] * 4
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*session.run([outputs[-1], last[1]]))
    pinned = rnn_cell.DeviceWrapper(rnn_cell.GRUCell(2), "/cpu:0")
    tf.nn.static_rnn(pinned, steps, dtype=tf.float32, scope="pinned")
    own = CountedCell(2)
    tf.nn.static_rnn(own, steps, dtype=tf.float32, scope="own")
    assert own.calls == 4
    types = [op.type for op in tf.get_default_graph().get_operations()]
    assert (types.count("Scan"), types.count("MatMul")) == (1, 4 * 2 + 4)


@pytest.mark.slow
def test_loop_matches_unrolled_second_derivatives() -> None:
    x = tf.placeholder_with_default(numbers(0, 2, 3, 3), [2, 3, 3])
    cell = CountedCell(2)
    with tf.variable_scope("both") as scope:
        looped, _ = tf.nn.dynamic_rnn(cell, x, [3, 2], dtype=tf.float32, scope=scope)
    with tf.variable_scope(scope, reuse=True) as scope:
        steps, _ = tf.nn.static_rnn(
            cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=[3, 2], scope=scope
        )
    assert cell.calls == 1 + 3
    weights, _ = cell.trainable_variables[:2]
    found = []
    for outputs in (looped, tf.stack(steps, 1)):
        slope = tf.gradients(tf.reduce_sum(outputs**3), weights)[0]
        found.append([outputs, slope, *tf.gradients(tf.reduce_sum(slope * slope), [weights, x])])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for seed, variable in enumerate(tf.trainable_variables()):
            variable.load(numbers(seed, *variable.shape.as_list()) * np.float32(0.5), session)
        one, other = session.run(found)
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        assert np.abs(theirs).max() > 1e-4


@pytest.mark.slow
def test_outputs_after_end_are_zero_and_states_stay() -> None:
    cell = rnn_cell.GRUCell(3)
    x = tf.constant(numbers(0, 3, 3, 4))
    outputs, state = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, last = session.run([outputs, state])
    for row, length in enumerate(LENGTHS):
        assert not found[row, length:].any()
        expected = found[row, length - 1] if length else 0
        np.testing.assert_allclose(last[row], expected, rtol=1e-6, atol=1e-7)  # XLA computes both


def test_gate_biases() -> None:
    """A GRU's gates start open (1), an LSTM's biases at 0 (forget_bias is added in the step)."""
    x = tf.constant(numbers(0, 3, 4))
    gru, lstm = rnn_cell.GRUCell(3), rnn_cell.LSTMCell(3, initializer=tf.ones_initializer())
    own = rnn_cell.GRUCell(
        3, kernel_initializer=tf.zeros_initializer(), bias_initializer=tf.ones_initializer(),
        name="own",
    )  # fmt: skip
    for cell in (gru, lstm, own):
        cell(x, cell.zero_state(3, tf.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        gates, one, other = session.run([each.variables for each in (gru, lstm, own)])
    np.testing.assert_array_equal(gates[1], np.ones(6))
    np.testing.assert_array_equal(gates[3], np.zeros(3))
    assert np.unique(gates[0]).size == gates[0].size
    np.testing.assert_array_equal(one[0], np.ones((7, 12)))
    np.testing.assert_array_equal(one[1], np.zeros(12))
    assert [each.mean() for each in other] == [0, 1, 0, 1]


def test_zero_states() -> None:
    cell = rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(3, num_proj=2), rnn_cell.GRUCell(4)])
    lstm, gru = cell.zero_state(5, tf.float32)
    assert isinstance(lstm, rnn_cell.LSTMStateTuple)
    assert [each.shape.as_list() for each in (*lstm, gru)] == [[5, 3], [5, 2], [5, 4]]
    assert lstm.dtype == tf.float32
    fed = tf.placeholder(tf.int32, [])
    assert cell.zero_state(fed, tf.float64)[1].shape.as_list() == [None, 4]
    given = rnn_cell.GRUCell(4).get_initial_state(inputs=tf.ones([6, 2]))
    assert given.shape.as_list() == [6, 4]
    assert cell.state_size == (rnn_cell.LSTMStateTuple(3, 2), 4)
    assert cell.output_size == 4
    joined = rnn_cell.MultiRNNCell(
        [rnn_cell.LSTMCell(3, state_is_tuple=False), rnn_cell.GRUCell(4)], state_is_tuple=False
    )
    assert joined.state_size == 10
    assert joined.zero_state(5, tf.float32).shape.as_list() == [5, 10]


@pytest.mark.slow
def test_raw_rnn_loop_state() -> None:
    cell, x = rnn_cell.BasicRNNCell(2), tf.constant(numbers(0, 3, 2, 4))

    def step(time: Any, output: Any, state: Any, carried: Any) -> Any:
        if output is None:
            start = cell.zero_state(2, tf.float32)
            return tf.zeros([2], tf.bool), x[0], start, (tf.zeros([3]), tf.zeros([])), tf.zeros([])
        total = carried + tf.reduce_sum(output)
        emitted = (tf.pad(output, [[0, 0], [0, 1]]), tf.reduce_sum(output, 1))
        done = time >= tf.constant([3, 1])
        return done, tf.gather(tf.identity(x), tf.minimum(time, 2)), state, emitted, total

    (padded, sums), last, total = tf.nn.raw_rnn(cell, step)
    whole, state = tf.nn.dynamic_rnn(
        cell, x, sequence_length=[3, 1], dtype=tf.float32, time_major=True
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([padded.stack(), sums.stack(), last, total])
        outputs, end = session.run([whole, state])
    np.testing.assert_allclose(found[0][..., :2], outputs, rtol=1e-6)
    np.testing.assert_allclose(found[1], outputs.sum(-1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[2], end, rtol=1e-6)
    assert np.isfinite(found[3])
    with pytest.raises(TypeError, match="Argument `loop_fn` must be a callable"):
        tf.nn.raw_rnn(cell, None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_keras_cells_match_keras_layers(kind: str) -> None:
    layers = tf.keras.layers
    make = getattr(layers, f"{kind}Cell")
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = tf.constant(numbers(5, 3, 4, 2))
        networks = {
            "layer": getattr(layers, kind)(2, return_sequences=True)(inputs),
            "dynamic": tf.nn.dynamic_rnn(make(2), inputs, dtype=tf.float32)[0],
            "static": tf.stack(
                tf.nn.static_rnn(make(2), tf.unstack(inputs, axis=1), dtype=tf.float32)[0], 1
            ),
            "multi": tf.nn.dynamic_rnn(
                rnn_cell.MultiRNNCell([rnn_cell.DropoutWrapper(make(2))]), inputs, dtype=tf.float32
            )[0],
        }
        variables = tf.trainable_variables()
        assert len(variables) == 3 * len(networks)
        for number, variable in enumerate(variables):
            shape = tuple(variable.shape.as_list())
            variable.load(numbers(number % 3, *shape), session)
        found = session.run(networks)
    for name, value in found.items():
        np.testing.assert_allclose(value, found["layer"], rtol=1e-5, atol=1e-6, err_msg=name)


def test_sequence_lengths_must_be_vector() -> None:
    with tf.Graph().as_default():
        cell, steps = rnn_cell.GRUCell(2), [tf.zeros([3, 4])]
        assert cell.dtype is None
        for wrong in (4, [1, 2]):
            with pytest.raises(ValueError, match=r"must be a vector|does not match the batch"):
                tf.nn.static_rnn(cell, steps, sequence_length=wrong, dtype=tf.float32)
        with tf.variable_scope("frozen", custom_getter=_not_trainable):
            cell(steps[0], tf.zeros([3, 2]))
        assert cell.dtype == "float32"
        assert (len(cell.non_trainable_variables), cell.trainable_variables) == (4, [])


def _not_trainable(getter: Any, *args: Any, **kwargs: Any) -> Any:
    return getter(*args, **{**kwargs, "trainable": False})
