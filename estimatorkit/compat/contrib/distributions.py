"""`contrib.distributions` beyond `distributions`: vectors, and batches as one event."""

from __future__ import annotations

import math
from typing import Any

from estimatorkit.compat.layers.distributions import (
    FULLY_REPARAMETERIZED,
    Categorical,
    Distribution,
    RegisterKL,
    kl_divergence,
)
from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.linalg.diagonals import matrix_diag
from estimatorkit.ops.math import elementwise, random, reduce
from estimatorkit.ops.nn import nn


class OneHotCategorical(Categorical):
    """A distribution over one-hot vectors (`tf.contrib.distributions.OneHotCategorical`).

    The arguments are those of `Categorical`.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "OneHotCategorical",
    ) -> None:
        super().__init__(logits, probs, dtype, validate_args, allow_nan_stats, name)

    def _event_shape(self) -> TensorShape:
        return self.logits.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return array.shape(self.logits)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return self._one_hot(super()._sample_n(n, seed))

    def _log_prob(self, x: Tensor) -> Tensor:
        logs = nn.log_softmax(self.logits)
        chosen = elementwise.cast(x, logs.dtype) + filling.zeros_like(self.probs)
        terms = indexing.where(chosen > 0.0, chosen * logs, filling.zeros_like(chosen))
        return reduce.reduce_sum(terms, -1)  # 0 * -inf counts as 0 for classes that are not chosen

    def _cdf(self, k: Tensor) -> Tensor:
        raise NotImplementedError("cdf is not implemented: OneHotCategorical")

    def _mean(self) -> Tensor:
        return builtin_ops.identity(self.probs)

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return self._one_hot(super()._mode())

    def _one_hot(self, classes: Tensor) -> Tensor:
        numbers = elementwise.cast(classes, int32)
        return indexing.one_hot(numbers, self.event_size, dtype=self.dtype)


class MultivariateNormalDiag(Distribution):
    """A vector of independent normals (`tf.contrib.distributions.MultivariateNormalDiag`).

    Args:
        loc: the means, `batch shape + (k,)`; 0 by default.
        scale_diag: the standard deviations; 1 by default.
        scale_identity_multiplier: added to them, or used instead; of the batch's shape.
        validate_args, allow_nan_stats, name: see `Distribution`.

    Raises:
        ValueError: neither `loc` nor `scale_diag` is given.
    """

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        parameters = dict(locals())
        if loc is None and scale_diag is None:
            raise ValueError("loc or scale_diag must be given: they have the number of dimensions")
        with get_default_graph().name_scope(name) as scope:
            like = convert_to_tensor(scale_diag if loc is None else loc, name="loc")
            place = filling.zeros_like(like) if loc is None else like
            wide = filling.zeros_like(like)
            if scale_diag is not None:
                wide = wide + convert_to_tensor(scale_diag, like.dtype, name="scale_diag")
            if scale_identity_multiplier is not None:
                factor = convert_to_tensor(scale_identity_multiplier, like.dtype, name="multiplier")
                wide = wide + factor[..., None]
            elif scale_diag is None:
                wide = filling.ones_like(like)
            self._loc = place + filling.zeros_like(wide)
            self._scale = wide + filling.zeros_like(place)
        super().__init__(
            self._loc.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            graph_parents=[self._loc, self._scale],
            name=scope,
        )

    @property
    def loc(self) -> Tensor:
        """The means."""
        return self._loc

    @property
    def scale_diag(self) -> Tensor:
        """The standard deviations."""
        return self._scale

    def _batch_shape(self) -> TensorShape:
        return self._loc.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return array.shape(self._loc)[:-1]

    def _event_shape(self) -> TensorShape:
        return self._loc.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return array.shape(self._loc)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = joining.concat([[n], array.shape(self._loc)], 0)
        return self._loc + self._scale * random.random_normal(shape, dtype=self.dtype, seed=seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        z = (x - self._loc) / self._scale
        logs = -0.5 * elementwise.square(z) - elementwise.log(elementwise.abs(self._scale))
        return reduce.reduce_sum(logs - 0.5 * math.log(2.0 * math.pi), -1)

    def _entropy(self) -> Tensor:
        logs = elementwise.log(elementwise.abs(self._scale))
        return reduce.reduce_sum(logs + 0.5 * math.log(2.0 * math.pi * math.e), -1)

    def _mean(self) -> Tensor:
        return builtin_ops.identity(self._loc)

    def _mode(self) -> Tensor:
        return builtin_ops.identity(self._loc)

    def _stddev(self) -> Tensor:
        return elementwise.abs(self._scale)

    def _covariance(self) -> Tensor:
        return matrix_diag(elementwise.square(self._scale))


class Independent(Distribution):
    """A batch of distributions as one distribution of arrays
    (`tf.contrib.distributions.Independent`).

    Args:
        distribution: the batch.
        reinterpreted_batch_ndims: the number of trailing batch axes that become part of an event;
            all but the first by default.
        validate_args: see `Distribution`.
        name: the name scope.

    Raises:
        ValueError: `reinterpreted_batch_ndims` is not given, and the batch's rank is unknown.
    """

    def __init__(
        self,
        distribution: Distribution,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        if reinterpreted_batch_ndims is None:
            rank = distribution.batch_shape.rank
            if rank is None:
                raise ValueError("reinterpreted_batch_ndims must be given: the rank is unknown")
            reinterpreted_batch_ndims = max(rank - 1, 0)
        self._distribution, self._count = distribution, int(reinterpreted_batch_ndims)
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            allow_nan_stats=distribution.allow_nan_stats,
            parameters=parameters,
            name=name or f"Independent{distribution.name.removesuffix('/')}",
        )

    @property
    def distribution(self) -> Distribution:
        """The batch of distributions."""
        return self._distribution

    @property
    def reinterpreted_batch_ndims(self) -> int:
        """The number of batch axes that are part of an event."""
        return self._count

    def _batch_shape(self) -> TensorShape:
        shape = self.distribution.batch_shape
        return shape if shape.rank is None else shape[: shape.rank - self._count]

    def _batch_shape_tensor(self) -> Tensor:
        shape = self.distribution.batch_shape_tensor()
        return shape[: array.size(shape) - self._count]

    def _event_shape(self) -> TensorShape:
        shape = self.distribution.batch_shape
        if shape.rank is None:
            return shape
        return shape[shape.rank - self._count :].concatenate(self.distribution.event_shape)

    def _event_shape_tensor(self) -> Tensor:
        shape = self.distribution.batch_shape_tensor()
        behind = shape[array.size(shape) - self._count :]
        return joining.concat([behind, self.distribution.event_shape_tensor()], 0)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return self.distribution.sample([n], seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._summed(self.distribution.log_prob(x))

    def _entropy(self) -> Tensor:
        return self._summed(self.distribution.entropy())

    def _mean(self) -> Tensor:
        return self.distribution.mean()

    def _variance(self) -> Tensor:
        return self.distribution.variance()

    def _mode(self) -> Tensor:
        return self.distribution.mode()

    def _summed(self, value: Tensor) -> Tensor:
        """Sums a value over the batch axes that are part of an event."""
        return reduce.reduce_sum(value, list(range(-self._count, 0))) if self._count else value


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _normal_vectors(
    a: MultivariateNormalDiag, b: MultivariateNormalDiag, name: str | None = None
) -> Tensor:
    ratio = elementwise.square(a.scale_diag / b.scale_diag)
    distance = elementwise.square((a.loc - b.loc) / b.scale_diag)
    return reduce.reduce_sum(0.5 * (distance + ratio - 1.0 - elementwise.log(ratio)), -1)


@RegisterKL(Independent, Independent)
def _independent(a: Independent, b: Independent, name: str | None = None) -> Tensor:
    return a._summed(kl_divergence(a.distribution, b.distribution))
