"""Embeddings of numbers for networks on tables: each feature by weights of its own.

`PeriodicEmbedding` is that of RealMLP (Holzmueller et al. 2024, arXiv:2407.04491),
`PiecewiseLinearEncoding` and `PiecewiseLinearEmbedding` are those of Gorishniy et al. 2022
(arXiv:2203.05556), with bins from `quantile_boundaries`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, check_floating, known_dimension
from estimatorkit.layers.initializers import RandomNormal, RandomUniform
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import elementwise, linalg


class PeriodicEmbedding(ConfiguredLayer):
    """Each number x as `[x, W cos(2 pi w x + b) + c]`, with weights of its own (RealMLP's "PBLD").

    Inputs: floats `(batch, n)`, or `(batch, members, n)` for an ensemble whose members have weights
    of their own. Outputs: `(batch, [members,] n * units)`, or `(batch, [members,] n, units)` if not
    flattened. Variables, each with the shape `([members,] n)` in front: `frequencies` (w) and
    `phases` (b) `(frequencies,)`, `kernel` (W) `(frequencies, units - 1)`, `bias` (c)
    `(units - 1,)`. Initially w ~ N(0, sigma^2), b is uniform in [-pi, pi], W and c in
    [-1, 1] / sqrt(frequencies). Source: Holzmueller et al. 2024, arXiv:2407.04491; without b, and
    with sines, Gorishniy et al. 2022, arXiv:2203.05556, section 3.3.

    Args:
        units: the numbers that stand for one, itself among them; 4 by default.
        frequencies: the number of cosines of each; 16 by default.
        sigma: the standard deviation of the initial frequencies; 0.1 by default.
        flatten: whether to join all numbers in one axis; True by default.
        members_first: whether inputs of rank 3 and outputs are `(members, batch, ...)`; False by
            default.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `units` is less than 2, or `frequencies` or `sigma` is not positive.
    """

    units: int
    frequencies: int
    sigma: float
    flatten: bool
    members_first: bool

    def __init__(
        self,
        units: int = 4,
        frequencies: int = 16,
        sigma: float = 0.1,
        flatten: bool = True,
        members_first: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if units < 2 or frequencies < 1 or sigma <= 0:
            raise value_error(
                "A PeriodicEmbedding has too few numbers",
                expected="units of at least 2, frequencies and sigma above 0",
                received=f"units={units}, frequencies={frequencies}, sigma={sigma}",
            )
        self.keep_arguments(locals())

    def build(self, input_shape: Any) -> None:
        """Makes the weights of each number."""
        check_floating(self)
        own = shape_of_example(self, input_shape)
        cosines, linear = self.frequencies, self.units - 1
        limit = 1 / math.sqrt(cosines)
        weights: dict[str, tuple[list[int], Any]] = {
            "frequencies": ([cosines], RandomNormal(stddev=self.sigma)),
            "phases": ([cosines], RandomUniform(-math.pi, math.pi)),
            "kernel": ([cosines, linear], RandomUniform(-limit, limit)),
            "bias": ([linear], RandomUniform(-limit, limit)),
        }
        self._frequencies, self._phases, self.kernel, self.bias = (
            self.add_weight(name, own + shape, initializer=initializer)
            for name, (shape, initializer) in weights.items()
        )
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        # Examples come behind numbers: the products, each number's own, then need no copies of
        # their inputs, which took 40 % of the time.
        axes = [*range(len(inputs.shape.as_list()))]
        behind = axes.copy()
        behind.append(behind.pop(1 if self.members_first and len(axes) == 3 else 0))
        x = array.expand_dims(array.transpose(inputs, behind), -1)
        frequencies, phases, bias = (
            array.expand_dims(each, -2) for each in (self._frequencies, self._phases, self.bias)
        )
        cosines = elementwise.cos(x * (2 * math.pi * frequencies) + phases)
        mixed = linalg.matmul(cosines, self.kernel) + bias
        before = [behind.index(axis) for axis in axes]
        found = array.transpose(joining.concat([x, mixed], -1), [*before, len(axes)])
        return flat(found) if self.flatten else found


class _PiecewiseLinear(ConfiguredLayer):
    """The base class: numbers as shares of the bins between boundaries."""

    def _keep(self, boundaries: Sequence[Sequence[float] | NDArray[Any]]) -> None:
        """Checks and keeps the boundaries, and makes arrays of the bins of all features."""
        self.boundaries = [[float(each) for each in of_one] for of_one in boundaries]
        for of_one in self.boundaries:
            if len(of_one) < 2 or not np.isfinite(of_one).all() or np.any(np.diff(of_one) <= 0):
                raise value_error(
                    "boundaries of a feature do not rise",
                    expected="at least 2 finite numbers for each feature, each above the last",
                    received=of_one,
                    hint="quantile_boundaries makes them of values",
                )
        counts = [len(of_one) - 1 for of_one in self.boundaries]
        shape = (len(counts), max(counts, default=0))
        # Bins that a feature does not have are always 0; the outermost are not bounded outwards.
        self._low, self._width = np.zeros(shape), np.ones(shape)
        self._least, self._most = np.zeros(shape), np.zeros(shape)
        for at, (of_one, count) in enumerate(zip(self.boundaries, counts, strict=True)):
            self._low[at, :count], self._width[at, :count] = of_one[:-1], np.diff(of_one)
            self._most[at, :count] = 1.0
            self._least[at, 0], self._most[at, count - 1] = -np.inf, np.inf
        self._there = np.flatnonzero(np.arange(shape[1]) < np.array(counts)[:, None])

    def build(self, input_shape: Any) -> None:
        """Checks the number of features."""
        check_floating(self)
        width = known_dimension(input_shape, -1, self)
        if input_shape.rank != 2 or width != len(self.boundaries):
            raise value_error(
                f"`{self.name}` has the boundaries of other features",
                expected=f"inputs (batch, {len(self.boundaries)})",
                received=str(input_shape),
            )
        super().build(input_shape)

    def encoded(self, inputs: Tensor) -> Tensor:
        """The encodings, `(batch, n, bins)`: 0 in bins that a feature does not have."""
        low, width, least, most = (
            constant(each.astype(inputs.dtype.numpy_dtype))
            for each in (self._low, self._width, self._least, self._most)
        )
        shares = (array.expand_dims(inputs, -1) - low) / width
        return elementwise.minimum(elementwise.maximum(shares, least), most)


class PiecewiseLinearEncoding(_PiecewiseLinear):
    """Each number as the shares of bins that lie below it (arXiv:2203.05556, section 3.2).

    The share of bin t between boundaries b_t and b_(t+1) is (x - b_t) / (b_(t+1) - b_t), at least 0
    but in the first bin and at most 1 but in the last, so that numbers outside of the boundaries
    differ too. There are no variables.

    Inputs: floats `(batch, n)`. Outputs: `(batch, bins of all features)`, in the features' order.

    Args:
        boundaries: for each feature, rising numbers: one more than bins.
        kwargs: as for `Layer`.

    Raises:
        ValueError: boundaries do not rise, or inputs are not `(batch, n)`.
    """

    def __init__(self, boundaries: Sequence[Sequence[float] | NDArray[Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._keep(boundaries)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        found = flat(self.encoded(inputs))
        if len(self._there) == self._low.size:
            return found
        return indexing.gather(found, constant(self._there), axis=-1)


class PiecewiseLinearEmbedding(_PiecewiseLinear):
    """Each number x as `W PLE(x) + v x + c`, with weights of its own.

    PLE is `PiecewiseLinearEncoding`; W is 0 at first, v and c are uniform in [-1, 1] / sqrt(units):
    the form that TabM has (Gorishniy et al. 2025, arXiv:2410.24210; "version B" of the authors'
    package rtdl_num_embeddings).

    Inputs: floats `(batch, n)`. Outputs: `(batch, n * units)`, or `(batch, n, units)` if not
    flattened. Variables: `kernel` (W) `(n, most bins, units)`, `slope` (v) and `bias` (c)
    `(n, units)`.

    Args:
        boundaries: see `PiecewiseLinearEncoding`.
        units: the numbers that stand for one; 16 by default.
        activation: a function or its name; none by default.
        flatten: whether to join all numbers in one axis; True by default.
        kwargs: as for `Layer`.

    Raises:
        ValueError: boundaries do not rise, or inputs are not `(batch, n)`.
    """

    units: int
    flatten: bool

    def __init__(
        self,
        boundaries: Sequence[Sequence[float] | NDArray[Any]],
        units: int = 16,
        activation: Any = None,
        flatten: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep(units=units, activation=activation, flatten=flatten)
        self._keep(boundaries)

    def build(self, input_shape: Any) -> None:
        """Makes the weights of each number."""
        super().build(input_shape)
        count, bins = self._low.shape
        limit = 1 / math.sqrt(self.units)
        self.kernel = self.add_weight("kernel", [count, bins, self.units], initializer="zeros")
        self.slope, self.bias = (
            self.add_weight(name, [count, self.units], initializer=RandomUniform(-limit, limit))
            for name in ("slope", "bias")
        )

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        linear = array.expand_dims(inputs, -1) * self.slope + self.bias
        found = self.activation(einsum("bnk,nku->bnu", self.encoded(inputs), self.kernel) + linear)
        return flat(found) if self.flatten else found


def robust_statistics(values: NDArray[Any]) -> tuple[float, float]:
    """The center and the spread of numbers (RealMLP, arXiv:2407.04491).

    The center is the median. The spread is the difference of the quartiles; if they are equal, half
    of that of the greatest and the least value, which is 0 for constants.

    Args:
        values: float64 `(n,)`, none of them NaN; both results are 0 if there are none.
    """
    if not values.size:
        return 0.0, 0.0
    least, low, middle, high, most = np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])
    return float(middle), float(high - low or (most - least) / 2)


def quantile_boundaries(values: Any, bins: int = 48) -> list[NDArray[np.float64]]:
    """The boundaries of bins that hold about equally many values (arXiv:2203.05556, section 3.2.1).

    Args:
        values: numbers `(rows, n)`; NaN is ignored.
        bins: the most bins of a feature; equal quantiles count once.

    Returns:
        For each feature, at least 2 rising numbers, from its least value to its greatest. A
        constant c gets [c, c + 1], and a feature without values [0, 1].

    Raises:
        ValueError: `values` has not two dimensions, or `bins` is not positive.
    """
    table = np.asarray(values, np.float64)
    if table.ndim != 2 or bins < 1:
        raise value_error(
            "quantile_boundaries takes a table",
            expected="values (rows, n), and bins of at least 1",
            received=f"values {table.shape}, bins={bins}",
        )
    shares = np.linspace(0.0, 1.0, bins + 1)
    return [_boundaries(column[~np.isnan(column)], shares) for column in table.T]


def _boundaries(values: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.unique(np.quantile(values, shares)) if values.size else np.zeros(1)
    return found if len(found) > 1 else np.array([found[0], found[0] + 1.0])


# -- what layers with weights for each number share


def shape_of_example(layer: Any, input_shape: Any) -> list[int]:
    """The static shape of one example, that of its members if there are any, which weights of each
    number have.

    Args:
        layer: if it has `members_first`, inputs of rank 3 are `(members, batch, n)`.
        input_shape: that of the inputs.
    """
    first = layer.members_first and input_shape.rank == 3
    axes = (0, 2) if first else range(1, input_shape.rank)
    return [known_dimension(input_shape, axis, layer) for axis in axes]


def flat(given: Tensor) -> Tensor:
    """Joins the last two axes; the length of the first alone may be unknown."""
    lengths = [-1 if each is None else each for each in given.shape.as_list()]
    return array.reshape(given, [*lengths[:-2], lengths[-2] * lengths[-1]])


__all__ = [
    "PeriodicEmbedding",
    "PiecewiseLinearEmbedding",
    "PiecewiseLinearEncoding",
    "quantile_boundaries",
    "robust_statistics",
]
