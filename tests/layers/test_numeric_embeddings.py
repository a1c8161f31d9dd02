"""Layers of networks on tables: the papers' formulas in NumPy, first values, members, configs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.layers.numeric_embeddings import quantile_boundaries

layers = tf.keras.layers
Weights = list[np.ndarray[Any, Any]]
BOUNDARIES = [[-1.0, 0.0, 0.5, 2.0], [0.0, 1.0], [-2.0, -0.5, 1.0]]


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        graph.seed = 1
        yield graph


def _periodic(x: Any, w: Weights) -> Any:
    cosines = np.cos(2 * np.pi * x[..., None] * w[0] + w[1])
    found = np.concatenate([x[..., None], (cosines[..., None] * w[2]).sum(-2) + w[3]], -1)
    return found.reshape(*x.shape[:-1], -1)


def _shares(x: Any) -> list[Any]:
    """Equation 1 of arXiv:2203.05556, a feature, a value and a bin at a time."""
    found = []
    for column, bounds in zip(x.T, BOUNDARIES, strict=True):
        last = len(bounds) - 2
        shares = np.zeros([len(x), last + 1])
        for row, value in enumerate(column):
            for at, (low, high) in enumerate(pairwise(bounds)):
                if value < low and at > 0:
                    shares[row, at] = 0
                elif value >= high and at < last:
                    shares[row, at] = 1
                else:
                    shares[row, at] = (value - low) / (high - low)
        found.append(shares)
    return found


def _encoding(x: Any, w: Weights) -> Any:
    return np.concatenate(_shares(x), 1)


def _piecewise(x: Any, w: Weights) -> Any:
    kernel, slope, bias = w
    each = [shares @ kernel[at, : shares.shape[1]] for at, shares in enumerate(_shares(x))]
    return (np.stack(each, 1) + x[..., None] * slope + bias).reshape(len(x), -1)


def _shared(x: Any, w: Weights) -> Any:
    kernel, r, s, bias = w
    of = [x[:, i] if x.ndim == 3 else x for i in range(len(r))]
    return np.stack([(given * r[i]) @ kernel * s[i] + bias[i] for i, given in enumerate(of)], 1)


def _separate(x: Any, w: Weights) -> Any:
    of = [x[:, i] if x.ndim == 3 else x for i in range(len(w[0]))]
    return np.stack([given @ w[0][i] + w[1][i] for i, given in enumerate(of)], 1)


def _ntk(x: Any, w: Weights) -> Any:
    return _separate(x, [w[0] / np.sqrt(x.shape[-1]), w[1]])


def _ntk_shared(x: Any, w: Weights) -> Any:
    return _shared(x, [w[0] / np.sqrt(x.shape[-1]), *w[1:]])


def _scaling(x: Any, w: Weights) -> Any:
    return (x[:, None] if w[0].ndim == x.ndim else x) * w[0]


def _parametric(x: Any, w: Weights) -> Any:
    return (1 - w[0]) * x + w[0] * np.maximum(x, 0)


FORMULAS: list[tuple[Callable[[], Any], Callable[[Any, Weights], Any], tuple[int, ...]]] = [
    (lambda: layers.PeriodicEmbedding(sigma=0.5), _periodic, (5, 3)),
    (lambda: layers.PeriodicEmbedding(3, 8), _periodic, (5, 2, 3)),
    (lambda: layers.PiecewiseLinearEncoding(BOUNDARIES), _encoding, (9, 3)),
    (lambda: layers.PiecewiseLinearEmbedding(BOUNDARIES, 4), _piecewise, (9, 3)),
    (lambda: layers.MemberDense(4, 2), _shared, (5, 3)),
    (lambda: layers.MemberDense(4, 2), _shared, (5, 2, 3)),
    (lambda: layers.MemberDense(4, 2, parametrization="ntk"), _ntk_shared, (5, 2, 3)),
    (lambda: layers.MemberDense(4, 2, shared=False), _separate, (5, 3)),
    (lambda: layers.MemberDense(4, 2, shared=False), _separate, (5, 2, 3)),
    (lambda: layers.MemberDense(4, 2, False, parametrization="ntk"), _ntk, (5, 2, 3)),
    (layers.ScalingLayer, _scaling, (5, 3)),
    (lambda: layers.ScalingLayer(members=2), _scaling, (5, 3)),
    (lambda: layers.ScalingLayer(members=2), _scaling, (5, 2, 3)),
    (layers.ParametricActivation, _parametric, (5, 3)),
    (layers.ParametricActivation, _parametric, (5, 2, 3)),
]


@pytest.mark.parametrize(
    ("make", "formula", "shape"),
    FORMULAS,
    ids=[f"{formula.__name__[1:]}{len(shape)}" for _, formula, shape in FORMULAS],
)
def test_layers_match_papers(
    make: Callable[[], Any], formula: Callable[[Any, Weights], Any], shape: tuple[int, ...]
) -> None:
    random = np.random.RandomState(3)
    x = random.normal(size=shape).astype("float32")
    config = json.loads(json.dumps(layers.serialize(make())))
    given = tf.keras.Input(shape[1:])
    outputs = layers.deserialize(config)(given)
    model = tf.keras.Model(given, outputs)
    values = [random.normal(0, 0.5, each.shape.as_list()) for each in model.weights]
    model.set_weights(values)
    expected = formula(x, values)
    assert outputs.shape.as_list()[1:] == list(expected.shape[1:])
    np.testing.assert_allclose(model.predict(x), expected, rtol=1e-5, atol=1e-5)


def first_values(layer: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    layer(tf.placeholder(tf.float32, [None, *shape]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(layer.weights)
    names = [each.op.name.split("/")[-1] for each in layer.weights]
    return dict(zip(names, values, strict=True))


def test_first_values_of_periodic_embedding_are_those_of_paper() -> None:
    found = first_values(layers.PeriodicEmbedding(sigma=0.1), (300,))
    assert found["frequencies"].std() == pytest.approx(0.1, rel=0.05)
    assert abs(found["phases"]).max() <= np.pi
    assert found["phases"].std() == pytest.approx(np.pi / np.sqrt(3), rel=0.05)
    for name in ("kernel", "bias"):
        assert 0.24 < abs(found[name]).max() <= 0.25  # 1 / sqrt(16)


def test_members_that_share_kernel_differ_by_first_scale_only() -> None:
    layer = layers.MemberDense(50, 6, input_scale_initializer="random_signs")
    found = first_values(layer, (40,))
    assert set(np.unique(found["input_scale"])) == {-1.0, 1.0}
    assert abs(found["input_scale"].mean()) < 0.3
    assert (found["output_scale"] == 1.0).all()
    assert (found["bias"] == found["bias"][0]).all()
    for name in ("kernel", "bias"):
        assert found[name].std() == pytest.approx(1 / np.sqrt(3 * 40), rel=0.25)


def test_members_with_own_kernels_start_apart() -> None:
    found = first_values(layers.MemberDense(50, 6, False, parametrization="ntk"), (40,))
    assert found["kernel"].shape == (6, 40, 50)
    for name in ("kernel", "bias"):
        assert found[name].std() == pytest.approx(1.0, rel=0.1)
        assert not np.allclose(found[name][0], found[name][1])


@pytest.mark.parametrize("shared", [False, True])
def test_members_first_is_another_order_of_axes_only(shared: bool) -> None:
    x = np.random.RandomState(2).normal(size=(5, 3)).astype("float32")
    found, gradients, values = [], [], []
    for first in (False, True):
        parts = [
            layers.ScalingLayer(members=2, members_first=first),
            layers.PeriodicEmbedding(3, 8, sigma=0.5, members_first=first),
            layers.MemberDense(40, 2, shared, parametrization="ntk", members_first=first),
            layers.ParametricActivation("mish", members_first=first),
            layers.MemberDense(4, 2, shared, members_first=first),
        ]
        net = tf.constant(x)
        for part in parts:
            net = part(net)
        weights = [each for part in parts for each in part.weights]
        if not values:
            random = np.random.RandomState(3)
            values = [random.normal(0, 0.5, each.shape.as_list()) for each in weights]
        with tf.Session() as session:
            for weight, value in zip(weights, values, strict=True):
                weight.load(value.astype("float32"), session)
            found.append(session.run(net))
            gradients.append(session.run(tf.gradients(tf.tanh(net), weights)))
    np.testing.assert_allclose(np.swapaxes(found[1], 0, 1), found[0], rtol=1e-5, atol=1e-6)
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("float32", 2e-6)])
def test_mish_is_its_formula_for_small_and_large_numbers(dtype: str, tolerance: float) -> None:
    x = np.array([-60.0, -9.0, -1.0, -1e-3, 0.0, 1e-3, 2.0, 5.4, 5.6, 19.0, 21.0, 200.0], dtype)
    fed = tf.placeholder(dtype, [None])
    mish = tf.keras.activations.mish(fed)
    with tf.Session() as session:
        found, slope = session.run([mish, tf.gradients(mish, fed)[0]], {fed: x})
    wide = x.astype(np.float64)
    formula = wide * np.tanh(np.logaddexp(wide, 0))
    np.testing.assert_allclose(found, formula, rtol=tolerance, atol=1e-7)
    step = 1e-6
    above, below = ((wide + d) * np.tanh(np.logaddexp(wide + d, 0)) for d in (step, -step))
    np.testing.assert_allclose(slope, (above - below) / (2 * step), atol=max(tolerance, 1e-5))


def test_scaling_and_activation_start_as_if_they_were_not_there() -> None:
    x = tf.constant([[-1.0, 2.0]])
    found = [layers.ScalingLayer()(x), layers.ParametricActivation("selu")(x), tf.nn.selu(x)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        scaled, activated, selu = session.run(found)
    np.testing.assert_array_equal(scaled, [[-1.0, 2.0]])
    np.testing.assert_array_equal(activated, selu)


def test_embeddings_may_keep_axis_of_features() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert layers.PeriodicEmbedding(flatten=False)(x).shape.as_list() == [None, 3, 4]
    embedding = layers.PiecewiseLinearEmbedding(BOUNDARIES, 5, flatten=False)
    assert embedding(x).shape.as_list() == [None, 3, 5]


def test_quantile_boundaries_hold_equally_many_values() -> None:
    values = np.random.RandomState(0).normal(size=(1000, 1))
    (found,) = quantile_boundaries(values, 10)
    counts, _ = np.histogram(values, found)
    assert (counts == 100).all()
    assert (found[0], found[-1]) == (values.min(), values.max())


def test_quantile_boundaries_of_few_and_missing_values_rise() -> None:
    missing = np.full(6, np.nan)
    few = [0.0, 0.0, 0.0, 0.0, 1.0, np.nan]
    table = np.stack([few, np.full(6, 7.0), missing], 1)
    found = quantile_boundaries(table, 4)
    for boundaries, expected in zip(found, ([0.0, 1.0], [7.0, 8.0], [0.0, 1.0]), strict=True):
        np.testing.assert_array_equal(boundaries, expected)
    layers.PiecewiseLinearEncoding(found)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: layers.PeriodicEmbedding(1), "too few numbers"),
        (lambda: layers.PiecewiseLinearEncoding([[0.0, 1.0], [1.0]]), "do not rise"),
        (lambda: layers.PiecewiseLinearEncoding([[0.0, 1.0, 1.0]]), "do not rise"),
        (lambda: layers.PiecewiseLinearEncoding(BOUNDARIES)(tf.ones([2, 2])), "of other features"),
        (lambda: layers.MemberDense(4, 0), "cannot be made"),
        (lambda: layers.MemberDense(4, 3)(tf.ones([2, 5, 7])), "other members"),
        (lambda: layers.ScalingLayer(members=3)(tf.ones([2, 5, 7])), "other members"),
        (
            lambda: layers.ScalingLayer(members=3, members_first=True)(tf.ones([5, 3, 7])),
            r"\(3, batch, n\)",
        ),
        (lambda: quantile_boundaries([1.0, 2.0]), "takes a table"),
    ],
)
def test_invalid_arguments_raise(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
