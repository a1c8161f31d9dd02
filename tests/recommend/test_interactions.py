"""Layers of field interactions: the papers' formulas in NumPy, DeepCTR's values, files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.sweep import sweep

GOLDEN = Path(__file__).parents[1] / "golden" / "interactions.npz"
layers = tf.keras.layers
Weights = list[np.ndarray[Any, Any]]


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


# DeepCTR's variables in the order of ours; gates are shared by its layers.
def _as_they_are(weights: Weights) -> Weights:
    return [each[0] if each.shape[:1] == (1,) else each for each in weights]


def _vectors(weights: Weights) -> Weights:
    half = len(weights) // 2
    return [*weights[:half], *(each[:, 0] for each in weights[half:])]


def _transposed(weights: Weights) -> Weights:
    half = len(weights) // 2
    return [*(each.T for each in weights[:half]), *(each[:, 0] for each in weights[half:])]


def _mixture(weights: Weights) -> Weights:
    expand, project, mix = weights[:2], weights[2:4], weights[4:6]
    gates = np.concatenate(weights[8:10], axis=1)
    turned = [[each.transpose(0, 2, 1) for each in some] for some in (expand, mix)]
    return [*project, *turned[0], *turned[1], gates, gates, *(each[:, 0] for each in weights[6:8])]


def _stacked(weights: Weights) -> Weights:
    return [np.stack(weights)]


# By case of the golden file: the layer, and what makes its weights of DeepCTR's.
CASES: dict[str, tuple[Callable[[], Any], Callable[[Weights], Weights]]] = {
    "fm": (layers.FactorizationMachine, _as_they_are),
    "cross_vector": (lambda: layers.CrossNetwork(3), _vectors),
    "cross_matrix": (lambda: layers.CrossNetworkV2(3), _transposed),
    "cross_mix": (lambda: layers.CrossNetworkV2(2, rank=3, experts=2), _mixture),
    "cin_split": (
        lambda: layers.CompressedInteraction([6, 4], True, activation="relu", use_bias=True),
        _as_they_are,
    ),
    "cin_whole": (lambda: layers.CompressedInteraction([6, 4], use_bias=True), _as_they_are),
    "attention": (lambda: layers.FieldAttention(2, 3), _as_they_are),
    "attention_scaled": (
        lambda: layers.FieldAttention(2, 8, use_residual=False, use_scale=True),
        _as_they_are,
    ),
    "senet": (lambda: layers.SqueezeExcitation(2), _as_they_are),
    "bilinear_all": (lambda: layers.BilinearInteraction("all"), _as_they_are),
    "bilinear_each": (lambda: layers.BilinearInteraction("each"), _stacked),
    "bilinear_interaction": (layers.BilinearInteraction, _stacked),
}


def _golden(case: str) -> tuple[Any, Weights, Any]:
    with np.load(GOLDEN) as file:
        count = sum(key.startswith(f"{case}/weight_") for key in file)
        weights = [file[f"{case}/weight_{at}"] for at in range(count)]
        return file[f"{case}/inputs"], weights, file[f"{case}/outputs"]


@sweep("case", CASES, quick=4)
def test_saved_and_loaded_layers_match_deepctr(case: str, tmp_path: Path) -> None:
    inputs, weights, expected = _golden(case)
    make, ours = CASES[case]
    given = tf.keras.Input(inputs.shape[1:])
    model = tf.keras.Model(given, make()(given))
    if weights:
        model.layers[-1].set_weights(ours(weights))
    np.testing.assert_allclose(model.predict(inputs), expected, rtol=1e-5, atol=1e-5)
    model.save(str(tmp_path / "model.h5"))
    again = tf.keras.models.load_model(str(tmp_path / "model.h5"))
    assert again.layers[-1].get_config() == model.layers[-1].get_config()
    np.testing.assert_allclose(again.predict(inputs), expected, rtol=1e-5, atol=1e-5)


# -- the formulas


def _fm(x: Any, w: Weights) -> Any:
    pairs = itertools.combinations(range(x.shape[1]), 2)
    return sum((x[:, i] * x[:, j]).sum(1, keepdims=True) for i, j in pairs)


def _cross(x: Any, w: Weights) -> Any:
    found = x
    for kernel, bias in zip(w[:2], w[2:], strict=True):
        found = np.stack(
            [np.outer(x0, xl) @ kernel[:, 0] + bias + xl for x0, xl in zip(x, found, strict=True)]
        )
    return found


def _cross_low_rank(x: Any, w: Weights) -> Any:
    found = x
    for at in range(2):
        matrix = (w[at][0] @ w[2 + at][0]).T  # U V^T
        found = x * (found @ matrix.T + w[4 + at]) + found
    return found


def _cross_mixture(x: Any, w: Weights) -> Any:
    found = x
    for at in range(2):
        project, expand, mix, gate, bias = (w[2 * kind + at] for kind in range(5))
        scores = 1 / (1 + np.exp(-(found @ gate)))
        terms = [
            scores[:, [i]] * x * (np.tanh(np.tanh(found @ project[i]) @ mix[i]) @ expand[i] + bias)
            for i in range(len(project))
        ]
        found = sum(terms) + found
    return found


def _cin(x: Any, w: Weights) -> Any:
    hidden, outputs = x, []
    for kernel in w:
        maps = np.zeros((len(x), kernel.shape[1], x.shape[2]))
        for i in range(x.shape[1]):
            for j in range(hidden.shape[1]):
                weight = kernel[i * hidden.shape[1] + j]
                maps += weight[None, :, None] * (x[:, i] * hidden[:, j])[:, None]
        hidden = maps
        outputs.append(maps.sum(2))
    return np.concatenate(outputs, 1)


def _attention(x: Any, w: Weights) -> Any:
    query, key, value, residual = w
    heads = []
    for head in range(2):
        part = slice(3 * head, 3 * head + 3)
        scores = (x @ query[:, part]) @ (x @ key[:, part]).transpose(0, 2, 1)
        heads.append(_softmax(scores) @ (x @ value[:, part]))
    return _relu(np.concatenate(heads, -1) + x @ residual)


def _senet(x: Any, w: Weights) -> Any:
    return x * _relu(_relu(x.mean(2) @ w[0]) @ w[1])[:, :, None]


def _bilinear(x: Any, w: Weights) -> Any:
    pairs = enumerate(itertools.combinations(range(x.shape[1]), 2))
    return np.stack([(x[:, i] @ w[0][at]) * x[:, j] for at, (i, j) in pairs], 1)


FORMULAS: list[tuple[Callable[[], Any], Callable[[Any, Weights], Any], tuple[int, ...]]] = [
    (layers.FactorizationMachine, _fm, (3, 5, 4)),
    (layers.CrossNetwork, _cross, (3, 6)),
    (lambda: layers.CrossNetworkV2(rank=2), _cross_low_rank, (3, 6)),
    (
        lambda: layers.CrossNetworkV2(rank=2, experts=3, gate_activation="sigmoid"),
        _cross_mixture,
        (3, 6),
    ),
    (lambda: layers.CompressedInteraction([3, 2]), _cin, (3, 5, 4)),
    (lambda: layers.FieldAttention(2, 3), _attention, (3, 5, 4)),
    (lambda: layers.SqueezeExcitation(2), _senet, (3, 5, 4)),
    (layers.BilinearInteraction, _bilinear, (3, 5, 4)),
]


@pytest.mark.parametrize(
    ("make", "formula", "shape"), FORMULAS, ids=[formula.__name__[1:] for _, formula, _ in FORMULAS]
)
def test_layers_match_papers(
    make: Callable[[], Any], formula: Callable[[Any, Weights], Any], shape: tuple[int, ...]
) -> None:
    random = np.random.RandomState(3)
    x = random.normal(size=shape).astype("float32")
    given = tf.keras.Input(shape[1:])
    model = tf.keras.Model(given, make()(given))
    values = [random.normal(0, 0.5, each.shape.as_list()) for each in model.weights]
    model.set_weights(values)
    np.testing.assert_allclose(model.predict(x), formula(x, values), rtol=1e-5, atol=1e-5)


def test_factorization_machine_pooled_products_sum_to_term() -> None:
    x = tf.constant(np.random.RandomState(0).normal(size=(3, 5, 4)).astype("float32"))
    with tf.Session() as session:
        pooled, term = session.run(
            [layers.FactorizationMachine(False)(x), layers.FactorizationMachine()(x)]
        )
    np.testing.assert_allclose(pooled.sum(1, keepdims=True), term, rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: layers.CrossNetworkV2(experts=2), "rank and experts"),
        (lambda: layers.CompressedInteraction([3, 2], split_half=True), "maps does not fit"),
        (lambda: layers.BilinearInteraction("every"), "bilinear_type is unknown"),
        (lambda: layers.CrossNetwork(0), "num_layers"),
        (lambda: layers.SqueezeExcitation(0), "reduction_ratio"),
        (lambda: layers.FieldAttention(0), "num_heads"),
        (lambda: layers.FactorizationMachine()(tf.ones([2, 3])), r"\(batch, fields, dim\)"),
        (lambda: layers.BilinearInteraction()(tf.ones([2, 1, 3])), "too few fields"),
    ],
)
def test_invalid_arguments_raise(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_stacked_matrices_use_single_matrix_fan() -> None:
    layer = layers.BilinearInteraction()
    layer(tf.ones([2, 26, 8]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        limit = abs(session.run(layer.kernel)).max()
    assert 0.9 * (6 / 16) ** 0.5 < limit <= (6 / 16) ** 0.5
