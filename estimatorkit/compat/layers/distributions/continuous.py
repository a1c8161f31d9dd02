"""Continuous distributions: normal, Laplace, Student's t, uniform, gamma, beta and others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from estimatorkit.compat.layers.distributions.distribution import FULLY_REPARAMETERIZED
from estimatorkit.compat.layers.distributions.divergence import RegisterKL
from estimatorkit.compat.layers.distributions.parameters import ParametricDistribution
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.debug import checks
from estimatorkit.ops.math import special
from estimatorkit.ops.math.elementwise import (
    log,
    square,
    squared_difference,
)
from estimatorkit.ops.math.random import random_normal
from estimatorkit.ops.nn.nn import softplus


def next_seed(seed: int | None) -> int | None:
    """Derives the seed of a second draw."""
    return None if seed is None else seed + 1


class _LocationScale(ParametricDistribution):
    """A location-scale family: a standard distribution, times `scale`, plus `loc`."""

    loc: Tensor
    scale: Tensor

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        return [checks.assert_positive(given["scale"])]

    def _standard(self, x: Tensor) -> Tensor:
        with get_default_graph().name_scope("standardize"):
            return (x - self.loc) / self.scale


class Normal(_LocationScale):
    """The normal distribution.

    Args:
        loc: the mean, floats.
        scale: the standard deviation, > 0.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    _names = ("loc", "scale")

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_normal(self._drawn_shape(n), dtype=self.dtype, seed=seed)
        return drawn * self.scale + self.loc

    def _log_prob(self, x: Tensor) -> Tensor:
        half_log_2_pi = 0.5 * math.log(2.0 * math.pi)
        return -0.5 * square(self._standard(x)) - (half_log_2_pi + log(self.scale))

    def _cdf(self, x: Tensor) -> Tensor:
        return 0.5 * special.erfc(-math.sqrt(0.5) * self._standard(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return 0.5 * special.erfc(math.sqrt(0.5) * self._standard(x))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return special.log_ndtr(self._standard(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return special.log_ndtr(-self._standard(x))

    def _quantile(self, p: Tensor) -> Tensor:
        return special.ndtri(p) * self.scale + self.loc

    def _entropy(self) -> Tensor:
        return 0.5 * math.log(2.0 * math.pi * math.e) + log(self._broadcast(self.scale))

    def _mean(self) -> Tensor:
        return self._broadcast(self.loc)

    def _stddev(self) -> Tensor:
        return self._broadcast(self.scale)

    def _mode(self) -> Tensor:
        return self._mean()


class NormalWithSoftplusScale(Normal):
    """`Normal` with the scale softplus(`scale`)."""

    _functions = MappingProxyType({"scale": softplus})


@RegisterKL(Normal, Normal)
def _kl_normal(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_normal_normal"):
        ratio = square(a.scale) / square(b.scale)
        distance = squared_difference(a.loc, b.loc) / (2.0 * square(b.scale))
        return distance + 0.5 * (ratio - 1.0 - log(ratio))
