"""Distributions against TensorFlow 2.15.1: values, samples and errors."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.golden_files import error_of
from tests.golden.golden_values import plain
from tests.golden.snippets_distributions import (
    DISTRIBUTIONS,
    REFUSALS,
    extremes,
    facts,
    functions,
)
from tests.sweep import sweep

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "distributions.json").read_text("utf-8")
)
d = tf.distributions
kullback_leibler, student_t = (
    importlib.import_module(f"estimatorkit.compat.v1.python.ops.distributions.{name}")
    for name in ("kullback_leibler", "student_t")
)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def flat(value: Any) -> Any:
    """Numbers of a structure of `plain`'s values, with their dtypes and shapes."""
    if isinstance(value, list):
        return [each for part in value for each in flat(part)]
    if "values" not in value:
        return [(key, *each) for key, part in value.items() for each in flat(part)]
    return [(value["dtype"], value["shape"], np.array(value["values"], float))]


def assert_same(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    found, expected = flat(plain(found)), flat(expected)
    assert [each[:-1] for each in found] == [each[:-1] for each in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one[-1], other[-1], tolerance, 2e-6, err_msg=str(one[:-1]))


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_functions_and_properties_match_tensorflow(case: str) -> None:
    assert_same(run(functions(tf, case)), GOLDEN["functions"][case])
    with tf.Graph().as_default():
        assert facts(tf, case) == GOLDEN["facts"][case]


@pytest.mark.parametrize(("kind", "tolerance"), [("float32", 5e-4), ("float64", 2e-5)])
def test_normal_is_exact_in_tails(kind: str, tolerance: float) -> None:
    assert_same(run(extremes(tf, np.dtype(kind).type)), GOLDEN["extremes"][kind], tolerance)


@pytest.mark.parametrize("case", REFUSALS)
def test_errors_match_tensorflow(case: str) -> None:
    error = error_of(lambda: run(REFUSALS[case](d)))
    assert error is not None
    assert error["class"] == GOLDEN["refusals"][case]


@sweep("case", [case for case in DISTRIBUTIONS if case != "student"], quick=1)
def test_sample_mean_and_spread(case: str) -> None:
    made = DISTRIBUTIONS[case](d)[0]
    count = 20_000
    draws = made.sample(count, seed=5)
    if case == "categorical":
        drawn, mean = run([draws, made.probs])
        drawn = np.eye(3)[drawn]
        spread = np.sqrt(mean * (1 - mean))
    else:
        drawn, mean, spread = run([draws, made.mean(), made.stddev()])
    np.testing.assert_array_less(
        abs(drawn.mean(0) - mean), np.broadcast_to(5 * spread / count**0.5, mean.shape)
    )
    np.testing.assert_allclose(drawn.std(0), np.broadcast_to(spread, mean.shape), 0.06)


@pytest.mark.slow
def test_seeds_repeat_samples() -> None:
    made = d.Normal([0.0, 1.0], 2.0)
    first, again, other = (made.sample(3, seed=seed) for seed in (1, 1, 2))
    a, b, c = run([first, again, other])
    np.testing.assert_array_equal(a, b)
    assert (a != c).all()


@pytest.mark.slow
def test_reparameterized_samples_are_differentiable() -> None:
    a = tf.constant([0.5, 3.0])
    drawn = d.Gamma(a, a).sample(50_000, seed=1)
    gradient = run(tf.gradients(tf.reduce_mean(drawn**2, 0), a)[0])
    np.testing.assert_allclose(gradient, [-4.0, -1.0 / 9.0], 0.15)  # of 1 + 1 / a
    assert d.Gamma(1.0, 1.0).reparameterization_type is d.FULLY_REPARAMETERIZED
    chances = tf.constant([0.5])
    made = d.Bernoulli(probs=chances, dtype=tf.float32)
    assert made.reparameterization_type is d.NOT_REPARAMETERIZED
    assert tf.gradients(made.sample(), chances) == [None]


@pytest.mark.slow
def test_dynamic_shapes() -> None:
    scale = tf.placeholder(tf.float32)
    made = d.Normal(0.0, scale)
    assert made.batch_shape.rank is None
    shape, scalar, drawn = run(
        [made.batch_shape_tensor(), made.is_scalar_batch(), made.sample([4, 2])],
        {scale: [1.0, 2.0, 3.0]},
    )
    assert (shape.tolist(), bool(scalar), drawn.shape) == ([3], False, (4, 2, 3))
    logits = tf.placeholder(tf.float32)
    drawn = run(d.Categorical(logits).sample(), {logits: [[-99.0, 99.0], [99.0, -99.0]]})
    assert drawn.tolist() == [1, 0]
    total = tf.placeholder(tf.float32)
    counts = run(d.Multinomial(total, probs=[0.5, 0.5]).sample(3), {total: [2.0, 7.0]})
    np.testing.assert_array_equal(counts.sum(-1), [[2, 7]] * 3)


def test_copy_and_transformed_subclass() -> None:
    made = student_t.StudentTWithAbsDfSoftplusScale([-3.2], [0.0], [1.0], name="t")
    copied = made.copy(loc=[2.0])
    assert type(copied) is type(made)
    df, scale, mode = run([copied.df, copied.scale, copied.mode()])
    np.testing.assert_allclose([df, scale, mode], [[3.0], [np.log1p(np.e)], [2.0]], 1e-6)
    assert (made.name, copied.name) == ("t/", "t_1/")


def test_divergence_of_nearest_classes() -> None:
    class Near(d.Normal):  # type: ignore[misc, name-defined]
        pass

    class Other(d.Distribution):  # type: ignore[misc, name-defined]
        pass

    near, normal = Near(0.0, 1.0), d.Normal(0.0, 1.0)
    with pytest.raises(NotImplementedError, match=r"No KL\(distribution_a \|\| distribution_b\)"):
        d.kl_divergence(Other(tf.float32, d.NOT_REPARAMETERIZED, False, True), normal)
    assert run(d.kl_divergence(near, normal)) == 0

    @d.RegisterKL(Near, d.Normal)
    def divergence(a: Any, b: Any, name: str | None = None) -> Any:
        return tf.constant(7.0)

    assert run(near.kl_divergence(normal)) == 7
    assert run(d.kl_divergence(normal, near)) == 0
    assert kullback_leibler._registered_kl(Near, Near) is divergence
    with pytest.raises(ValueError, match="has already been registered"):
        d.RegisterKL(Near, d.Normal)(divergence)
    with pytest.raises(TypeError, match="kl_fn must be callable"):
        d.RegisterKL(Near, Near)("no function")
    nan = d.Normal(float("nan"), 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned NaN values"):
        run(d.kl_divergence(nan, normal, allow_nan_stats=False))


def test_subclass_needs_one_function_of_each_pair() -> None:
    class Half(d.Distribution):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(tf.float32, d.NOT_REPARAMETERIZED, False, True)

        def _prob(self, x: Any) -> Any:
            return 0.5 + 0.0 * x

        def _cdf(self, x: Any) -> Any:
            return 0.25 * x

        def _variance(self) -> Any:
            return tf.constant(9.0)

    made = Half()
    found = run([made.log_prob(0.0), made.survival_function(1.0), made.stddev()])
    np.testing.assert_allclose(found, [np.log(0.5), 0.75, 3.0], 1e-6)
    with pytest.raises(NotImplementedError, match="mean is not implemented: Half"):
        made.mean()
    with pytest.raises(NotImplementedError, match="_param_shapes not implemented"):
        Half.param_shapes([2])
    assert d.Normal.param_static_shapes([2, 3]) == {"loc": [2, 3], "scale": [2, 3]}


def test_gradients_with_respect_to_parameters() -> None:
    a = tf.constant([0.75, 3.0], tf.float64)
    x = tf.constant([0.5, 2.5], tf.float64)
    made = tf.gradients(tf.igamma(a, x), a)[0]
    step = 1e-5
    lower, upper = tf.igamma(a - step, x), tf.igamma(a + step, x)
    found, difference = run([made, (upper - lower) / (2 * step)])
    np.testing.assert_allclose(found, difference, 1e-6)
    assert tf.gradients(tf.betainc(a, a, x / 3.0), a) == [None]
