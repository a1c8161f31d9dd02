"""Discrete distributions (Bernoulli, categorical, multinomial), and Dirichlet distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.compat.layers.distributions.continuous import next_seed
from estimatorkit.compat.layers.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
)
from estimatorkit.compat.layers.distributions.divergence import RegisterKL
from estimatorkit.compat.layers.distributions.parameters import (
    ParametricDistribution,
    after,
    check_class_count,
    check_counts,
    logits_and_probs,
)
from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, int32, int64
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.filling import ones_like, zeros, zeros_like
from estimatorkit.ops.array.indexing import one_hot, where
from estimatorkit.ops.array.joining import concat
from estimatorkit.ops.array.random_draws import random_gamma
from estimatorkit.ops.array.rearrange import sequence_mask
from estimatorkit.ops.debug import checks
from estimatorkit.ops.linalg.diagonals import matrix_set_diag
from estimatorkit.ops.math import linalg
from estimatorkit.ops.math.elementwise import cast, lgamma, log, rsqrt, sigmoid, sqrt
from estimatorkit.ops.math.random import multinomial, random_uniform
from estimatorkit.ops.math.reduce import argmax, reduce_max, reduce_min, reduce_sum
from estimatorkit.ops.math.special import digamma, lbeta, xlogy
from estimatorkit.ops.nn.nn import (
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softplus,
    sparse_softmax_cross_entropy_with_logits,
)


class _Choices(Distribution):
    """A distribution with `logits`; if `_classes`, their last dimension is the classes."""

    _classes = True

    def _set_chances(self, arguments: Mapping[str, Any], dtype: DType | None) -> None:
        with get_default_graph().name_scope(arguments["name"]) as scope:
            self._logits, self._probs = logits_and_probs(
                arguments["logits"],
                arguments["probs"],
                arguments["validate_args"],
                self._classes,
            )
        Distribution.__init__(
            self,
            dtype or self._probs.dtype,
            NOT_REPARAMETERIZED,
            arguments["validate_args"],
            arguments["allow_nan_stats"],
            arguments,
            [self._logits, self._probs],
            scope,
        )

    @property
    def logits(self) -> Tensor:
        """The log-probabilities, up to a constant."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._probs

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape[:-1] if self._classes else self._logits.shape

    def _batch_shape_tensor(self) -> Tensor:
        whole = array.shape(self._logits)
        return whole[:-1] if self._classes else whole

    def _event_shape(self) -> TensorShape:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor([], int32)


class Bernoulli(_Choices):
    """The Bernoulli distribution of 0 and 1.

    Args:
        logits: log(p / (1 - p)), floats; or None.
        probs: p, the probability of 1; or None.
        dtype: the dtype of draws, int32 by default.
        validate_args, allow_nan_stats, name: see `Distribution`.

    Raises:
        ValueError: not exactly one of `logits` and `probs` is given.
    """

    _classes = False

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        self._set_chances(locals(), as_dtype(dtype))

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return {"logits": convert_to_tensor(sample_shape, int32)}

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn_shape = concat([[n], self.batch_shape_tensor()], 0)
        drawn = random_uniform(drawn_shape, dtype=self.probs.dtype, seed=seed)
        return cast(drawn < self.probs, self.dtype)

    def _log_prob(self, event: Tensor) -> Tensor:
        if self.validate_args:
            message = "Elements cannot exceed 1."
            event = after(
                [
                    *check_counts(event, "Elements", "bool"),
                    checks.assert_less_equal(event, 1, message=message),
                ],
                event,
            )
        happened = cast(event, self.logits.dtype)
        return -sigmoid_cross_entropy_with_logits(
            labels=happened + zeros_like(self.logits), logits=self.logits + zeros_like(happened)
        )

    def _entropy(self) -> Tensor:
        return self.logits * (1.0 - sigmoid(self.logits)) + softplus(-self.logits)

    def _mean(self) -> Tensor:
        return builtin_ops.identity(self.probs)

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return cast(self.probs > 0.5, self.dtype)


class Categorical(_Choices):
    """The categorical distribution of class numbers.

    Args:
        logits: log-probabilities up to a constant, `batch shape + (classes,)`; or None.
        probs: probabilities; or None.
        dtype: the dtype of draws, int32 by default.
        validate_args, allow_nan_stats, name: see `Distribution`.

    Raises:
        ValueError: not exactly one of `logits` and `probs` is given.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        self._set_chances(locals(), as_dtype(dtype))
        self._logits.shape.with_rank_at_least(1)

    @property
    def event_size(self) -> Tensor:
        """The number of classes, an int32 scalar."""
        known = self.logits.shape[-1:].as_list()[0] if self.logits.shape.rank else None
        return convert_to_tensor(array.shape(self.logits)[-1] if known is None else known, int32)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        rows = array.reshape(self.logits, [-1, self.event_size])
        drawn = multinomial(rows, n, seed, output_dtype=int64 if self.dtype.size > 4 else int32)
        shape = concat([[n], self.batch_shape_tensor()], 0)
        return cast(array.reshape(array.transpose(drawn), shape), self.dtype)

    def _class(self, k: Tensor, like: Tensor) -> Tensor:
        """Classes as int32, broadcast with `like`'s batch (all but its last dimension)."""
        if not (k.dtype.is_integer or k.dtype.is_floating):
            raise TypeError(f"`value` should have integer `dtype` or `self.dtype` ({self.dtype})")
        if self.validate_args:
            k = after(check_counts(k, "Elements", "int32"), k)
        return cast(k, int32) + cast(zeros_like(like[..., 0]), int32)

    def _log_prob(self, k: Tensor) -> Tensor:
        chosen = self._class(k, self.logits)
        logits = self.logits + cast(zeros_like(chosen), self.logits.dtype)[..., None]
        return -sparse_softmax_cross_entropy_with_logits(labels=chosen, logits=logits)

    def _cdf(self, k: Tensor) -> Tensor:
        below = sequence_mask(self._class(k, self.probs), self.event_size)
        return reduce_sum(where(below, self.probs, zeros_like(self.probs)), -1)

    def _entropy(self) -> Tensor:
        return -reduce_sum(log_softmax(self.logits) * self.probs, -1)

    def _mode(self) -> Tensor:
        return cast(argmax(self.logits, -1), self.dtype)


def _counts(logits: Tensor, total_count: Tensor, seed: int | None) -> Tensor:
    """Counts the draws of each class, in the shape and dtype of `logits`.

    XLA needs a static number of draws: each row draws the largest total, and draws beyond the row's
    own total are not counted.
    """
    counts = cast(total_count, int32)
    most = reduce_max(counts)
    totals = counts + cast(zeros_like(logits[..., 0]), int32)
    size = array.shape(logits)[-1]
    drawn = multinomial(array.reshape(logits, [-1, size]), most, seed, output_dtype=int32)
    counted = cast(sequence_mask(array.reshape(totals, [-1]), most), logits.dtype)
    hits = reduce_sum(one_hot(drawn, size, dtype=logits.dtype) * counted[..., None], -2)
    return array.reshape(hits, array.shape(logits))


def _log_combinations(n: Tensor, counts: Tensor) -> Tensor:
    """The log multinomial coefficient of `counts` in `n` draws."""
    return lgamma(n + 1.0) - reduce_sum(lgamma(counts + 1.0), -1)


def _total_checks(total: Tensor, counts: Tensor, message: str) -> list[Any]:
    sums = checks.assert_equal(total, reduce_sum(counts, -1), message=message)
    return [*check_counts(counts), sums]


def _covariance(column: Tensor, row: Tensor, variance: Tensor) -> Tensor:
    """-column row^T, with `variance` as the diagonal."""
    return matrix_set_diag(-linalg.matmul(column[..., None], row[..., None, :]), variance)


class Multinomial(_Choices):
    """The multinomial distribution of class counts.

    Args:
        total_count: the number of draws, floats >= 0 of the batch's shape.
        logits: log-probabilities up to a constant, `batch shape + (classes,)`; or None.
        probs: probabilities; or None.
        validate_args, allow_nan_stats, name: see `Distribution`.

    Raises:
        ValueError: not exactly one of `logits` and `probs` is given.
    """

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        self._set_chances(locals(), None)
        with get_default_graph().name_scope(self.name):
            count = convert_to_tensor(total_count, name="total_count")
            self.total_count = after(check_counts(count), count) if validate_args else count
            self._mean_val = self.total_count[..., None] * self.probs

    def _batch_shape(self) -> TensorShape:
        return self._mean_val.shape.with_rank_at_least(1)[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return array.shape(self._mean_val)[:-1]

    def _event_shape(self) -> TensorShape:
        return self._mean_val.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return array.shape(self._mean_val)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        whole = concat([[n], array.shape(self._mean_val)], 0)
        return _counts(self.logits + zeros(whole, self.dtype), self.total_count, seed)

    def _log_prob(self, counts: Tensor) -> Tensor:
        if self.validate_args:
            message = "counts must sum to `self.total_count`"
            counts = after(_total_checks(self.total_count, counts, message), counts)
        weighted = reduce_sum(counts * log_softmax(self.logits), -1)
        return weighted + _log_combinations(self.total_count, counts)

    def _mean(self) -> Tensor:
        return builtin_ops.identity(self._mean_val)

    def _every_probs(self) -> Tensor:
        return self.probs * ones_like(self.total_count)[..., None]

    def _covariance(self) -> Tensor:
        return _covariance(self._mean_val, self._every_probs(), self._variance())

    def _variance(self) -> Tensor:
        return self._mean_val - self._mean_val * self._every_probs()


class _Concentrations(ParametricDistribution):
    """A distribution with one concentration per class in the last dimension."""

    _event_rank = 1
    _names = ("concentration",)
    concentration: Tensor

    @property
    def total_concentration(self) -> Tensor:
        """The sum of the concentrations over the last dimension."""
        return reduce_sum(self.concentration, -1)

    def _mean_probs(self) -> Tensor:
        return self.concentration / self.total_concentration[..., None]

    def _scaled_mean(self) -> tuple[Tensor, Tensor]:
        """A scale, and a share of it for each class: their product's complement is the variance."""
        raise NotImplementedError

    def _covariance(self) -> Tensor:
        _, x = self._scaled_mean()
        return _covariance(x, x, self._variance())

    def _variance(self) -> Tensor:
        scale, x = self._scaled_mean()
        return x * (scale - x)


class Dirichlet(_Concentrations):
    """The Dirichlet distribution of class probabilities.

    Args:
        concentration: > 0, `batch shape + (classes,)`.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        self._set_parameters(locals(), FULLY_REPARAMETERIZED)

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        alpha = given["concentration"]
        start = "Concentration parameter must"
        return [
            checks.assert_positive(alpha, message=f"{start} be positive."),
            checks.assert_rank_at_least(alpha, 1, message=f"{start} have >=1 dimensions."),
            checks.assert_less(1, array.shape(alpha)[-1], message=f"{start} have event_size >= 2."),
        ]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_gamma([n], self.concentration, None, self.dtype, seed)
        return drawn / reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._checked(
            x,
            lambda: checks.assert_positive(x, message="samples must be positive"),
            lambda: checks.assert_near(
                convert_to_tensor(1, self.dtype),
                reduce_sum(x, -1),
                message="sample last-dimension must sum to `1`",
            ),
        )
        return reduce_sum(xlogy(self.concentration - 1.0, x), -1) - lbeta(self.concentration)

    def _classes(self) -> Tensor:
        return cast(self.event_shape_tensor()[0], self.dtype)

    def _entropy(self) -> Tensor:
        total = self.total_concentration
        weighted = reduce_sum((self.concentration - 1.0) * digamma(self.concentration), -1)
        return lbeta(self.concentration) + (total - self._classes()) * digamma(total) - weighted

    def _mean(self) -> Tensor:
        return self._mean_probs()

    def _scaled_mean(self) -> tuple[Tensor, Tensor]:
        scale = rsqrt(1.0 + self.total_concentration[..., None])
        return scale, scale * self._mean_probs()

    def _mode(self) -> Tensor:
        value = (self.concentration - 1.0) / (self.total_concentration[..., None] - self._classes())
        # One undefined element leaves the whole event undefined.
        least = reduce_min(self.concentration, -1, keepdims=True) * ones_like(value)
        message = "Mode undefined when any concentration <= 1"
        return self._where_above(1.0, [least], value, message)


class DirichletMultinomial(_Concentrations):
    """The Dirichlet-multinomial distribution of class counts.

    Args:
        total_count: the number of draws, floats >= 0 of the batch's shape.
        concentration: of the probabilities, > 0, `batch shape + (classes,)`.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        self._set_parameters(locals(), NOT_REPARAMETERIZED)
        with get_default_graph().name_scope(self.name):
            count = convert_to_tensor(total_count, self.dtype, name="total_count")
            self.total_count = after(check_counts(count), count) if validate_args else count

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        alpha = given["concentration"]
        message = "Concentration parameter must be positive."
        return [*check_class_count(alpha), checks.assert_positive(alpha, message=message)]

    def _batch_shape(self) -> TensorShape:
        return self._mean().shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return array.shape(self._mean())[:-1]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        alpha = self.concentration * ones_like(self.total_count)[..., None]
        chances = log(random_gamma([n], alpha, None, self.dtype, seed))
        return _counts(chances, self.total_count, next_seed(seed))

    def _log_prob(self, counts: Tensor) -> Tensor:
        if self.validate_args:
            message = "counts last-dimension must sum to `self.total_count`"
            counts = after(_total_checks(self.total_count, counts, message), counts)
        ordered = lbeta(self.concentration + counts) - lbeta(self.concentration)
        return ordered + _log_combinations(self.total_count, counts)

    def _mean(self) -> Tensor:
        return self.total_count[..., None] * self._mean_probs()

    def _scaled_mean(self) -> tuple[Tensor, Tensor]:
        total, count = self.total_concentration[..., None], self.total_count[..., None]
        scale = sqrt((1.0 + total / count) / (1.0 + total))
        return count * scale, scale * self._mean()


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_bernoulli_bernoulli"):
        happening = softplus(-b.logits) - softplus(-a.logits)
        failing = softplus(b.logits) - softplus(a.logits)
        return sigmoid(a.logits) * happening + sigmoid(-a.logits) * failing


@RegisterKL(Categorical, Categorical)
def _kl_categorical(a: Categorical, b: Categorical, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_categorical_categorical"):
        difference = log_softmax(a.logits) - log_softmax(b.logits)
        return reduce_sum(softmax(a.logits) * difference, -1)


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_dirichlet_dirichlet"):
        total = digamma(a.total_concentration)[..., None]
        difference = (a.concentration - b.concentration) * (digamma(a.concentration) - total)
        return reduce_sum(difference, -1) - lbeta(a.concentration) + lbeta(b.concentration)
