"""Continuous distributions: normal, Laplace, Student's t, uniform, gamma, beta and others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from estimatorkit.compat.layers.distributions.distribution import FULLY_REPARAMETERIZED
from estimatorkit.compat.layers.distributions.divergence import RegisterKL
from estimatorkit.compat.layers.distributions.parameters import ParametricDistribution
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.filling import ones_like, zeros_like
from estimatorkit.ops.array.indexing import where
from estimatorkit.ops.array.random_draws import random_gamma
from estimatorkit.ops.debug import checks
from estimatorkit.ops.math import special
from estimatorkit.ops.math.elementwise import (
    abs as absolute,
    exp,
    floor,
    is_nan,
    lgamma,
    log,
    log1p,
    logical_or,
    rsqrt,
    sign,
    sqrt,
    square,
    squared_difference,
)
from estimatorkit.ops.math.random import random_normal, random_uniform
from estimatorkit.ops.math.special import betainc, digamma, igamma, xlogy
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


class Laplace(_LocationScale):
    """The Laplace distribution.

    Args:
        loc: the mean, floats.
        scale: the spread, > 0.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    _names = ("loc", "scale")

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        number = self.dtype.as_numpy_dtype
        least = np.nextafter(number(-1.0), number(0.0))  # log1p(-1) would be infinite
        drawn = random_uniform(self._drawn_shape(n), least, 1.0, self.dtype, seed)
        return self.loc - self.scale * sign(drawn) * log1p(-absolute(drawn))

    def _log_prob(self, x: Tensor) -> Tensor:
        return -absolute(self._standard(x)) - (math.log(2.0) + log(self.scale))

    def _cdf(self, x: Tensor) -> Tensor:
        z = self._standard(x)
        return 0.5 + 0.5 * sign(z) * (1.0 - exp(-absolute(z)))

    def _log_cdf(self, x: Tensor) -> Tensor:
        z = self._standard(x)
        return where(z < 0.0, z - math.log(2.0), log1p(-0.5 * exp(-absolute(z))))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return self._log_cdf(2.0 * self.loc - x)

    def _entropy(self) -> Tensor:
        return math.log(2.0) + 1.0 + log(self._broadcast(self.scale))

    def _mean(self) -> Tensor:
        return self._broadcast(self.loc)

    def _stddev(self) -> Tensor:
        return math.sqrt(2.0) * self._broadcast(self.scale)

    def _mode(self) -> Tensor:
        return self._mean()


class StudentT(_LocationScale):
    """Student's t distribution, moved and scaled.

    Args:
        df: degrees of freedom, > 0.
        loc: the mean where `df` > 1.
        scale: the scale, which is not the standard deviation.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    _names = ("df", "loc", "scale")
    df: Tensor

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        return [checks.assert_positive(given["df"])]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        normal = random_normal(self._drawn_shape(n), dtype=self.dtype, seed=seed)
        df = self._broadcast(self.df)
        chi_squared = random_gamma([n], 0.5 * df, 0.5, self.dtype, next_seed(seed))
        return normal * rsqrt(chi_squared / df) * self.scale + self.loc

    def _log_prob(self, x: Tensor) -> Tensor:
        half_above = 0.5 * (self.df + 1.0)
        shape = -half_above * log1p(square(self._standard(x)) / self.df)
        return shape - (
            log(absolute(self.scale))
            + 0.5 * log(self.df)
            + 0.5 * math.log(math.pi)
            + lgamma(0.5 * self.df)
            - lgamma(half_above)
        )

    def _cdf(self, x: Tensor) -> Tensor:
        y = (x - self.loc) / absolute(self.scale)
        part = self.df / (square(y) + self.df)
        tail = 0.5 * betainc(0.5 * self.df * ones_like(part), 0.5 * ones_like(part), part)
        return where(y < 0.0, tail, 1.0 - tail)

    def _entropy(self) -> Tensor:
        df = self._broadcast(self.df)
        half, half_above = 0.5 * df, 0.5 * (df + 1.0)
        log_beta = lgamma(half) + 0.5 * math.log(math.pi) - lgamma(half_above)
        spread = log(absolute(self.scale)) + 0.5 * log(df) + log_beta
        return spread + half_above * (digamma(half_above) - digamma(half))

    def _mean(self) -> Tensor:
        message = "mean not defined for components of df <= 1"
        return self._where_above(1.0, [self.df], self._broadcast(self.loc), message)

    def _variance(self) -> Tensor:
        df = self._broadcast(self.df)
        finite = df > 2.0
        value = square(self.scale) * df / where(finite, df - 2.0, ones_like(df))
        value = where(finite, value, math.inf * ones_like(df))
        message = "variance not defined for components of df <= 1"
        return self._where_above(1.0, [self.df], value, message)

    def _mode(self) -> Tensor:
        return self._broadcast(self.loc)


class Uniform(ParametricDistribution):
    """The uniform distribution of [low, high).

    Args:
        low: the lower bounds, floats.
        high: the upper bounds, > `low`.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    _names = ("low", "high")
    low: Tensor
    high: Tensor

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        message = "uniform not defined when low >= high."
        return [checks.assert_less(given["low"], given["high"], message=message)]

    def range(self, name: str = "range") -> Tensor:
        """`high - low`."""
        with self._name_scope(name):
            return self.high - self.low

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_uniform(self._drawn_shape(n), dtype=self.dtype, seed=seed)
        return self.low + self.range() * drawn

    def _prob(self, x: Tensor) -> Tensor:
        each = self._broadcast(x)
        outside = logical_or(each < self.low, each >= self.high)
        density = where(outside, zeros_like(each), ones_like(each) / self.range())
        return where(is_nan(each), each, density)

    def _cdf(self, x: Tensor) -> Tensor:
        each = self._broadcast(x)
        inside = where(each < self.low, zeros_like(each), (each - self.low) / self.range())
        return where(each >= self.high, ones_like(each), inside)

    def _entropy(self) -> Tensor:
        return log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / math.sqrt(12.0)


class Gamma(ParametricDistribution):
    """The gamma distribution.

    Args:
        concentration: the shape, > 0.
        rate: the inverse scale, > 0.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    _names: ClassVar[tuple[str, ...]] = ("concentration", "rate")
    concentration: Tensor
    rate: Tensor

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        return [checks.assert_positive(each) for each in given.values()]

    def _positive(self, x: Tensor) -> Tensor:
        checks.assert_same_float_dtype([x], self.dtype)
        return self._checked(x, lambda: checks.assert_positive(x))

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_gamma([n], self._broadcast(self.concentration), None, self.dtype, seed)
        return drawn / self.rate

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._positive(x)
        return xlogy(self.concentration - 1.0, x) - self.rate * x - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        return lgamma(self.concentration) - self.concentration * log(self.rate)

    def _cdf(self, x: Tensor) -> Tensor:
        scaled = self.rate * self._positive(x)
        return igamma(self.concentration * ones_like(scaled), scaled)

    def _entropy(self) -> Tensor:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1.0 - a) * digamma(a)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / square(self.rate)

    def _stddev(self) -> Tensor:
        return sqrt(self.concentration) / self.rate

    def _mode(self) -> Tensor:
        value = (self.concentration - 1.0) / self.rate
        message = "mode not defined when any concentration <= 1"
        return self._where_above(1.0, [self.concentration], value, message)


class Exponential(Gamma):
    """The exponential distribution: gamma with the concentration 1.

    Args:
        rate: the inverse of the mean, > 0.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    _names = ("rate",)

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)
        self.concentration = ones_like(self.rate)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        least = np.finfo(self.dtype.as_numpy_dtype).tiny  # log(0) would be infinite
        drawn = random_uniform(self._drawn_shape(n), least, 1.0, self.dtype, seed)
        return -log(drawn) / self.rate


class Beta(ParametricDistribution):
    """The beta distribution of numbers in (0, 1).

    Args:
        concentration1: the exponent of x, plus 1; > 0.
        concentration0: the exponent of 1 - x, plus 1; > 0.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    _names = ("concentration1", "concentration0")
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        message = "Concentration parameter must be positive."
        return [checks.assert_positive(each, message=message) for each in given.values()]

    @property
    def total_concentration(self) -> Tensor:
        """`concentration1 + concentration0`."""
        return self.concentration1 + self.concentration0

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        first, second = (
            random_gamma([n], self._broadcast(each), None, self.dtype, its_seed)
            for each, its_seed in (
                (self.concentration1, seed),
                (self.concentration0, next_seed(seed)),
            )
        )
        return first / (first + second)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._checked(
            x,
            lambda: checks.assert_positive(x, message="sample must be positive"),
            lambda: checks.assert_less(x, ones_like(x), message="sample must be less than `1`."),
        )
        shape = xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * log1p(-x)
        return shape - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        logs = lgamma(self.concentration1) + lgamma(self.concentration0)
        return logs - lgamma(self.total_concentration)

    def _cdf(self, x: Tensor) -> Tensor:
        like = ones_like(x)
        return betainc(self.concentration1 * like, self.concentration0 * like, self._broadcast(x))

    def _entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self.total_concentration
        weighted = (a - 1.0) * digamma(a) + (b - 1.0) * digamma(b)
        return self._log_normalization() - weighted + (total - 2.0) * digamma(total)

    def _mean(self) -> Tensor:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration)

    def _mode(self) -> Tensor:
        value = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        message = "Mode undefined for concentration1 <= 1 or concentration0 <= 1."
        return self._where_above(1.0, self._tensors(), value, message)


class NormalWithSoftplusScale(Normal):
    """`Normal` with the scale softplus(`scale`)."""

    _functions = MappingProxyType({"scale": softplus})


class LaplaceWithSoftplusScale(Laplace):
    """`Laplace` with the scale softplus(`scale`)."""

    _functions = MappingProxyType({"scale": softplus})


class StudentTWithAbsDfSoftplusScale(StudentT):
    """`StudentT` with floor(abs(`df`)) degrees of freedom and the scale softplus(`scale`)."""

    _functions = MappingProxyType({"df": lambda df: floor(absolute(df)), "scale": softplus})


class GammaWithSoftplusConcentrationRate(Gamma):
    """`Gamma` with softplus of both parameters."""

    _functions = MappingProxyType({"concentration": softplus, "rate": softplus})


class ExponentialWithSoftplusRate(Exponential):
    """`Exponential` with the rate softplus(`rate`)."""

    _functions = MappingProxyType({"rate": softplus})


class BetaWithSoftplusConcentration(Beta):
    """`Beta` with softplus of both parameters."""

    _functions = MappingProxyType({"concentration1": softplus, "concentration0": softplus})


@RegisterKL(Normal, Normal)
def _kl_normal(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_normal_normal"):
        ratio = square(a.scale) / square(b.scale)
        distance = squared_difference(a.loc, b.loc) / (2.0 * square(b.scale))
        return distance + 0.5 * (ratio - 1.0 - log(ratio))


@RegisterKL(Gamma, Gamma)
def _kl_gamma(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_gamma_gamma"):
        return (
            (a.concentration - b.concentration) * digamma(a.concentration)
            + lgamma(b.concentration)
            - lgamma(a.concentration)
            + b.concentration * (log(a.rate) - log(b.rate))
            + a.concentration * (b.rate / a.rate - 1.0)
        )


@RegisterKL(Beta, Beta)
def _kl_beta(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_beta_beta"):
        return (
            b._log_normalization()
            - a._log_normalization()
            - digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
        )
