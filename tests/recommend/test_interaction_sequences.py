"""Sequence and multi-task layers against DeepCTR and the papers' formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.keras import layers
from estimatorkit.recommend.dien import auxiliary_loss
from estimatorkit.recommend.esmm import logit_of_product

GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "recommend_sequences.npz")
RANDOM = np.random.default_rng(5)


def golden(case: str, what: str) -> list[Any]:
    """The arrays of a case, in order."""
    found = [key for key in GOLDEN.files if key.startswith(f"{case}/{what}/")]
    return [GOLDEN[key] for key in sorted(found, key=lambda key: int(key.rpartition("/")[2]))]


def run(fetches: Any, variables: Any = (), values: Any = ()) -> Any:
    """Runs with new values of variables."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for variable, value in zip(variables, values, strict=True):
            variable.load(np.reshape(value, variable.shape.as_list()), session)
        return session.run(fetches)


def dice(x: Any) -> Any:
    layer = layers.Dice()
    return layer(x), layer.weights


def attention(softmax: bool) -> Callable[..., Any]:
    def call(query: Any, keys: Any, lengths: Any) -> Any:
        layer = layers.TargetAttention((4, 2), "sigmoid", softmax)
        return layer([query, keys, lengths]), layer.weights

    return call


def evolution(update: str) -> Callable[..., Any]:
    def call(keys: Any, scores: Any, lengths: Any) -> Any:
        layer = layers.RNN(layers.AUGRUCell(3, update))
        mask = tf.sequence_mask(lengths, tf.shape(keys)[1])
        return layer((keys, scores), mask=mask), layer.weights

    return call


def auxiliary(states: Any, clicked: Any, unclicked: Any) -> Any:
    mask = tf.ones(tf.shape(states)[:2], tf.bool)
    loss = auxiliary_loss(states, clicked, unclicked, mask, (100, 50))
    return loss, tf.trainable_variables()


def mixture(x: Any) -> Any:
    layer = layers.MultiGateMixtureOfExperts(2, 3, (4, 3), (2,))
    return layer(x), layer.weights


def extraction(x: Any) -> Any:
    layer = layers.ProgressiveLayeredExtraction(2, 2, 2, 1, (4, 3))
    return layer(x), layer.weights


def entire_space(x: Any) -> Any:
    towers = [(layers.Dense(2, "relu"), layers.Dense(1, use_bias=False)) for _ in range(2)]
    ctr, cvr = (last(hidden(x)) for hidden, last in towers)
    weights = [v for tower in towers for layer in tower for v in layer.weights]
    return [tf.sigmoid(ctr), tf.sigmoid(logit_of_product(ctr, cvr))], weights


CASES: dict[str, Callable[..., Any]] = {
    "dice": dice,
    "attention": attention(False),
    "attention_softmax": attention(True),
    "agru": evolution("replace"),
    "augru": evolution("released"),
    "auxiliary": auxiliary,
    "mmoe": mixture,
    "ple": extraction,
    "esmm": entire_space,
}


@pytest.mark.parametrize("case", CASES)
def test_results_match_deepctr(case: str) -> None:
    with tf.Graph().as_default():
        outputs, weights = CASES[case](*map(tf.constant, golden(case, "inputs")))
        values = golden(case, "weights")
        assert [v.shape.num_elements() for v in weights] == [each.size for each in values]
        found = run(outputs if isinstance(outputs, list) else [outputs], weights, values)
    for one, other in zip(found, golden(case, "outputs"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_dice_uses_batch_moments_in_training() -> None:
    x = RANDOM.normal(2.0, 3.0, size=(64, 2)).astype(np.float32)
    with tf.Graph().as_default():
        layer = layers.Dice(alpha_initializer=tf.constant_initializer(0.25))
        found = run(layer(tf.constant(x), training=True))
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    gate = sigmoid((x - x.mean(0)) / np.sqrt(x.var(0) + 1e-9))
    np.testing.assert_allclose(found, gate * x + (1 - gate) * 0.25 * x, rtol=1e-4, atol=1e-5)


def test_attention_matches_paper_and_ignores_masked_steps() -> None:
    query, keys = RANDOM.normal(size=(2, 3)), RANDOM.normal(size=(2, 4, 3))
    with tf.Graph().as_default():
        layer = layers.TargetAttention((5,), "tanh")
        inputs = [tf.constant(query, tf.float32), tf.constant(keys, tf.float32)]
        mask = tf.constant([[True, True, False, True], [False] * 4])
        outputs = layer(inputs, mask=[None, mask], return_attention_scores=True)
        (found, scores), weights = run([outputs, layer.weights])
    q = np.repeat(query[:, None], 4, 1)
    inputs = np.concatenate([q, keys, q - keys, q * keys], -1)
    expected = (np.tanh(inputs @ weights[0] + weights[1]) @ weights[2] + weights[3])[..., 0]
    expected *= [[1, 1, 0, 1], [0] * 4]
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found, np.einsum("bt,btn->bn", expected, keys), rtol=1e-4, atol=1e-6)


def test_attentional_update_gate_matches_paper() -> None:
    steps, scores = RANDOM.normal(size=(2, 4, 3)), RANDOM.uniform(size=(2, 4, 1))
    scores[:, 2] = 0  # a step without attention changes nothing
    with tf.Graph().as_default():
        layer = layers.RNN(layers.AUGRUCell(3), return_sequences=True)
        inputs = (tf.constant(steps, tf.float32), tf.constant(scores, tf.float32))
        found, weights = run([layer(inputs), layer.weights])
    kernel, recurrent, bias = weights
    state, expected = np.zeros((2, 3)), []
    for step in range(4):
        x = steps[:, step] @ kernel + bias
        update = sigmoid(-(x[:, :3] + state @ recurrent[:, :3])) * scores[:, step]
        reset = sigmoid(x[:, 3:6] + state @ recurrent[:, 3:6])
        candidate = np.tanh(x[:, 6:] + (reset * state) @ recurrent[:, 6:])
        state = (1 - update) * state + update * candidate
        expected.append(state)
    np.testing.assert_allclose(found, np.stack(expected, 1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[:, 2], found[:, 1])


@pytest.mark.slow
def test_layers_work_in_keras_models() -> None:
    with tf.Graph().as_default():
        query, keys = tf.keras.Input([3]), tf.keras.Input([None, 3])
        net = layers.TargetAttention((4,))([query, layers.Masking()(keys)])
        net = layers.MultiGateMixtureOfExperts(2, 2, (4,), dropout=0.5)(net)
        net = layers.ProgressiveLayeredExtraction(2, expert_units=(4,))(layers.add(net))
        model = tf.keras.Model([query, keys], layers.Dense(1)(layers.concatenate(net)))
        model.compile("adam", "mse")
        data = [RANDOM.normal(size=(8, 3)), RANDOM.normal(size=(8, 4, 3))]
        model.fit(data, RANDOM.normal(size=(8, 1)), epochs=1, verbose=0)
        copy = tf.keras.Model.from_config(model.get_config())
        copy.set_weights(model.get_weights())
        np.testing.assert_allclose(copy.predict(data), model.predict(data), rtol=1e-5)


def test_invalid_arguments_raise() -> None:
    with tf.Graph().as_default():
        one, wider = tf.zeros([2, 3]), tf.zeros([2, 4, 5])
        with pytest.raises(ValueError, match="called on a list of inputs"):
            layers.TargetAttention()(one)
        with pytest.raises(ValueError, match="query and keys do not fit"):
            layers.TargetAttention()([one, wider])
        with pytest.raises(ValueError, match="update is not known"):
            layers.AUGRUCell(2, "scaled")
        with pytest.raises(ValueError, match="num_experts must be a positive int"):
            layers.MultiGateMixtureOfExperts(2, 0)
