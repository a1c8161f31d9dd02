"""Probability distributions (`tf.distributions`): samples, densities, statistics, divergences.

`distribution` holds the base class, `parameters` the base of distributions with tensor parameters,
`continuous` and `discrete` the distributions, `divergence` the Kullback-Leibler divergences.
"""

from __future__ import annotations

from estimatorkit.compat.layers.distributions.continuous import (
    Beta,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    Uniform,
)
from estimatorkit.compat.layers.distributions.discrete import (
    Bernoulli,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Multinomial,
)
from estimatorkit.compat.layers.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    ReparameterizationType,
)
from estimatorkit.compat.layers.distributions.divergence import RegisterKL, kl_divergence
from estimatorkit.lazy import listing

__all__ = [
    "FULLY_REPARAMETERIZED",
    "NOT_REPARAMETERIZED",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "Gamma",
    "Laplace",
    "Multinomial",
    "Normal",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "kl_divergence",
]
__dir__ = listing(__name__)
