"""The tests of `tests/layers/test_recurrent.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.layers.recurrent import recurrent_v1
from estimatorkit.core.conversion import constant
from estimatorkit.keras import layers
from tests.golden.snippets_recurrent import numbers
from tests.layers.test_recurrent import CHEAP, evaluate, graph

__all__ = ["graph"]


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
