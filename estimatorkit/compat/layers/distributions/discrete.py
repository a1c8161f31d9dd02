"""Discrete distributions (Bernoulli, categorical, multinomial), and Dirichlet distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.compat.layers.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
)
from estimatorkit.compat.layers.distributions.divergence import RegisterKL
from estimatorkit.compat.layers.distributions.parameters import (
    after,
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
from estimatorkit.ops.array.filling import zeros_like
from estimatorkit.ops.array.indexing import where
from estimatorkit.ops.array.joining import concat
from estimatorkit.ops.array.rearrange import sequence_mask
from estimatorkit.ops.debug import checks
from estimatorkit.ops.math.elementwise import cast, sigmoid
from estimatorkit.ops.math.random import multinomial, random_uniform
from estimatorkit.ops.math.reduce import argmax, reduce_sum
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
