"""Distributions of `tf.distributions`, values for their functions, programs that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

METHODS = "entropy mean variance stddev covariance mode batch_shape_tensor event_shape_tensor"
OF_VALUES = "prob log_prob cdf log_cdf survival_function log_survival_function"

# By name: the distribution, values of its functions, one for its divergence or None.
DISTRIBUTIONS: dict[str, Callable[[Any], tuple[Any, Any, Any]]] = {
    "normal": lambda d: (d.Normal([1.0, 2.0], [[3.0], [0.5]]), [-30.0, 0.3], d.Normal(0.0, 1.0)),
    "laplace": lambda d: (d.Laplace([1.0, 2.0], [[3.0], [0.5]]), [-30.0, 2.3], None),
    "student": lambda d: (
        d.StudentT([0.5, 1.5, 3.0], [0.0, 1.0, 2.0], [1.0, 2.0, 0.3]),
        [-3.0, 2.3, 0.1],
        None,
    ),
    "uniform": lambda d: (d.Uniform([0.0, 1.0], [2.0, 5.0]), [-3.0, 2.3], None),
    "gamma": lambda d: (d.Gamma([0.5, 3.0], [2.0, 5.0]), [0.3, 2.3], d.Gamma(1.0, 2.0)),
    "exponential": lambda d: (d.Exponential([0.5, 3.0]), [0.3, 2.3], d.Gamma(1.0, 2.0)),
    "beta": lambda d: (d.Beta([0.5, 3.0], [2.0, 5.0]), [0.3, 0.2], d.Beta(1.0, 2.0)),
    "bernoulli": lambda d: (d.Bernoulli([0.5, -3.0]), [0, 1], d.Bernoulli(probs=0.3)),
    "categorical": lambda d: (
        d.Categorical([[0.5, -3.0, 1.0], [1.0, 2.0, 3.0]]),
        [[0, 1], [2, 0]],
        d.Categorical(probs=[0.3, 0.5, 0.2]),
    ),
    "multinomial": lambda d: (
        d.Multinomial([4.0, 2.0], probs=[0.3, 0.5, 0.2]),
        [[1.0, 2.0, 1.0], [0.0, 0.0, 2.0]],
        None,
    ),
    "dirichlet": lambda d: (
        d.Dirichlet([1.5, 3.0, 2.0]),
        [[0.3, 0.5, 0.2], [0.6, 0.3, 0.1]],
        d.Dirichlet([1.0, 1.0, 1.0]),
    ),
    "dirichlet_multinomial": lambda d: (
        d.DirichletMultinomial(4.0, [0.5, 3.0, 1.0]),
        [[1.0, 2.0, 1.0], [0.0, 0.0, 4.0]],
        None,
    ),
}

REFUSALS: dict[str, Callable[[Any], Any]] = {
    "scale": lambda d: d.Normal([1.0], [-5.0], validate_args=True).mean(),
    "gamma mode": lambda d: d.Gamma([5.5, 1.0], [1.0, 1.0], allow_nan_stats=False).mode(),
    "student mean": lambda d: d.StudentT([1.0, 0.5], 0.0, 1.0, allow_nan_stats=False).mean(),
    "uniform": lambda d: d.Uniform([1.0], [0.5], validate_args=True).mean(),
    "beta sample": lambda d: d.Beta(1.0, 2.0, validate_args=True).prob(1.5),
    "no chances": lambda d: d.Bernoulli(),
    "integer logits": lambda d: d.Bernoulli(logits=1),
    "probs": lambda d: d.Bernoulli(probs=[1.01, 0.2], validate_args=True).probs,
    "fractional event": lambda d: d.Bernoulli(probs=0.1, validate_args=True).prob(0.5),
    "negative class": lambda d: d.Categorical([1.0, 2.0], validate_args=True).prob(-1),
    "one class": lambda d: d.Multinomial(4.0, probs=[[0.1], [0.2]], validate_args=True),
    "concentration": lambda d: d.Dirichlet([-1.0, 2.0], validate_args=True).concentration,
    "no divergence": lambda d: d.kl_divergence(d.Normal(0.0, 1.0), d.Uniform(0.0, 1.0)),
    "sample shape": lambda d: d.Normal(0.0, 1.0).sample([[1]]),
    "no cdf": lambda d: d.Bernoulli(0.0).cdf(0),
}


def functions(tf: Any, case: str) -> dict[str, Any]:
    """What a distribution's methods give, those that it has, and gradients of `log_prob`."""
    made, values, other = DISTRIBUTIONS[case](tf.distributions)
    found: dict[str, Any] = {}
    for name in (*METHODS.split(), *OF_VALUES.split()):
        arguments = (values,) if name in OF_VALUES.split() else ()
        try:
            found[name] = getattr(made, name)(*arguments)
        except NotImplementedError:
            continue
    if other is not None:
        found["kl_divergence"] = made.kl_divergence(other)
        found["cross_entropy"] = made.cross_entropy(other)
    return found


def facts(tf: Any, case: str) -> list[Any]:
    """Words, names and static shapes of a distribution."""
    made, values, _ = DISTRIBUTIONS[case](tf.distributions)
    return [
        str(made),
        repr(made),
        sorted(made.parameters),
        repr(made.reparameterization_type),
        made.sample().shape.as_list(),
        made.sample([2, 3]).shape.as_list(),
        made.log_prob(values).shape.as_list(),
    ]


def extremes(tf: Any, dtype: Any) -> list[Any]:
    """The normal distribution far from its mean: values and gradients."""
    loc, scale = tf.constant(0.0, dtype), tf.constant(1.0, dtype)
    made = tf.distributions.Normal(loc, scale)
    far = np.array([-100.0, -20.0, -5.0, 0.0, 5.0, 20.0, 100.0], dtype)
    results = [getattr(made, name)(far) for name in OF_VALUES.split()]
    chances = tf.constant(np.array([0.0, np.exp(-32.0), 0.5, 1 - np.exp(-32.0), 1.0], dtype))
    return [
        *results,
        *(tf.gradients(result, [loc, scale]) for result in results),
        made.quantile(chances[1:4]),
    ]
