"""Variable initializers, with the formulas of `tf.initializers`.

An initializer is called with `(shape, dtype=None, partition_info=None)` and returns a tensor.
Sources: Glorot & Bengio 2010, He et al. 2015, LeCun et al. 2012.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_array, constant, make
from estimatorkit.core.dtypes import DType, as_dtype, float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import Case, register, same_as_input
from estimatorkit.core.shapes import as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import filling
from estimatorkit.ops.array.array import reshape, transpose
from estimatorkit.ops.math import random


class Initializer:
    """Base class of initializers: serializable objects that return an initial value when called."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Returns an initial value.

        Args:
            shape: the variable's shape, fully defined.
            dtype: the initializer's own by default.
            partition_info: for a slice of a partitioned variable, its `PartitionInfo`. Initializers
                whose scale depends on the shape use the shape of the whole variable.
        """
        raise TypeError(f"{type(self).__name__} does not implement __call__.")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            key: value.name if hasattr(value, "as_numpy_dtype") else value
            for key, value in vars(self).items()
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """Creates an initializer from the result of `get_config`."""
        return cls(**config)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.get_config().items())
        return f"{type(self).__name__}({arguments})"


class Zeros(Initializer):
    """Initializes to zeros."""

    def __init__(self, dtype: Any = float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return filling.zeros(shape, dtype or self.dtype)


class Ones(Initializer):
    """Initializes to ones."""

    def __init__(self, dtype: Any = float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return filling.ones(shape, dtype or self.dtype)


class Constant(Initializer):
    """Initializes to a constant: a scalar, or an array with as many elements as the variable."""

    def __init__(self, value: Any = 0, dtype: Any = float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value={value} of type: {type(value).__name__}. Expected "
                "Python scalar, list or tuple of values, or numpy.ndarray."
            )
        self.value = value
        self.dtype = as_dtype(dtype)
        self.verify_shape = verify_shape

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        wanted = as_dtype(dtype or self.dtype)
        if self.verify_shape and np.shape(self.value) != tuple(as_shape(shape).as_list()):
            raise TypeError(
                f"Expected Tensor's shape: {as_shape(shape)}, but got {np.shape(self.value)}."
            )
        if np.ndim(self.value) == 0:
            return filling.fill(shape, constant(as_array(self.value, wanted)))
        return constant(self.value, wanted, shape, verify_shape=self.verify_shape)

    def get_config(self) -> dict[str, Any]:
        """The value and its dtype, as in Keras."""
        return {"value": self.value, "dtype": self.dtype.name}


def _floating(dtype: Any) -> DType:
    """Returns `dtype` as a `DType`; raises ValueError if it is not floating."""
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(
            f"Argument `dtype` is expected to be floating point. Received: {wanted!r}."
        )
    return wanted


class RandomUniform(Initializer):
    """Draws from the uniform distribution over [minval, maxval).

    Args:
        minval, maxval: the bounds; 0 and 1 by default (integers need a maxval).
        seed: see `set_random_seed`.
        dtype: floating, or an integer dtype.
    """

    def __init__(
        self,
        minval: Any = 0,
        maxval: Any = None,
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        wanted = as_dtype(dtype or self.dtype)
        return random.random_uniform(shape, self.minval, self.maxval, wanted, self.seed)


class RandomNormal(Initializer):
    """Draws from a normal distribution."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = float32
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        wanted = dtype or self.dtype
        return random.random_normal(shape, self.mean, self.stddev, wanted, self.seed)


class TruncatedNormal(RandomNormal):
    """Draws from a normal distribution truncated at two standard deviations from the mean."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        wanted = dtype or self.dtype
        return random.truncated_normal(shape, self.mean, self.stddev, wanted, self.seed)


# The standard deviation of a standard normal truncated at two standard deviations: dividing by
# it preserves the requested variance.
_TRUNCATED_STDDEV = 0.87962566103423978


class VarianceScaling(Initializer):
    """Draws values with variance `scale / n`, where n is the number of inputs or outputs.

    Args:
        scale: a positive factor.
        mode: "fan_in" (n is the number of inputs), "fan_out" (of outputs) or "fan_avg" (their
            mean).
        distribution: "truncated_normal" ("normal"), "untruncated_normal" or "uniform".
        seed: see `set_random_seed`.
        dtype: floating.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        modes = ("fan_in", "fan_out", "fan_avg")
        distributions = ("normal", "truncated_normal", "untruncated_normal", "uniform")
        if scale <= 0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in modes:
            raise ValueError(f"Argument `mode` should be one of {modes}. Received: {mode}")
        if distribution.lower() not in distributions:
            raise ValueError(
                f"Argument `distribution` should be one of {distributions}. Received: "
                f"{distribution}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution.lower()
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        wanted = dtype or self.dtype
        whole = shape if partition_info is None else partition_info.full_shape
        fan_in, fan_out = _fans(as_shape(whole).as_list())
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.random_uniform(shape, -limit, limit, wanted, self.seed)
        stddev = math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return random.random_normal(shape, 0.0, stddev, wanted, self.seed)
        return random.truncated_normal(shape, 0.0, stddev / _TRUNCATED_STDDEV, wanted, self.seed)


def _fans(dims: list[Any]) -> tuple[float, float]:
    if len(dims) < 1:
        return 1.0, 1.0
    if len(dims) == 1:
        return float(dims[0]), float(dims[0])
    window = math.prod(dims[:-2])
    return float(dims[-2] * window), float(dims[-1] * window)


class UniformUnitScaling(Initializer):
    """Draws uniformly from [-l, l], l = factor * sqrt(3 / inputs), which preserves the input's
    scale.

    Args:
        factor: 1.0 for a linear layer, about 1.43 for relu, 1.15 for tanh (Sussillo & Abbott 2014).
        seed: see `set_random_seed`.
        dtype: floating.
    """

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        whole = shape if partition_info is None else partition_info.full_shape
        dims = [int(dim or 0) for dim in as_shape(whole).as_list()]
        limit = self.factor * math.sqrt(3.0 / max(1.0, math.prod(dims[:-1])))
        return random.random_uniform(shape, -limit, limit, dtype or self.dtype, self.seed)


class Orthogonal(Initializer):
    """An orthogonal matrix times `gain` (Saxe et al. 2014).

    Shapes of more than two dimensions are flattened to a matrix whose columns are the last axis.
    If there are fewer rows than columns, the rows are orthogonal.

    Args:
        gain: a factor.
        seed: see `set_random_seed`.
        dtype: floating.

    Raises:
        ValueError: called with a shape of fewer than two dimensions.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        dims = [int(dim or 0) for dim in as_shape(shape).as_list()]
        if len(dims) < 2:
            raise value_error(
                "The tensor to initialize must be at least two-dimensional",
                received=f"shape {dims}",
            )
        rows, columns = math.prod(dims[:-1]), dims[-1]
        flat = [max(rows, columns), min(rows, columns)]
        drawn = random.random_normal(flat, 0.0, 1.0, dtype or self.dtype, self.seed)
        basis = make("OrthogonalBasis", {"matrix": drawn})
        if rows < columns:
            basis = transpose(basis)
        return reshape(basis, dims) * self.gain


def _orthogonal_basis(matrix: Any, xp: Any = jnp) -> Any:
    """Orthonormal basis of the columns of `matrix`, with signs that make it Haar-distributed."""
    wide = matrix.astype(jnp.promote_types(matrix.dtype, jnp.float32))
    basis, triangle = xp.linalg.qr(wide)
    return (basis * xp.sign(xp.diagonal(triangle))).astype(matrix.dtype)


_BASIS = np.array([[0.6, 0.8], [0.8, -0.6]], np.float32)

register(
    "OrthogonalBasis",
    _orthogonal_basis,
    numpy_kernel=lambda matrix: _orthogonal_basis(matrix, np),
    infer=same_as_input(),
    gradient=None,
    accepts="f",
    cases=lambda: [
        Case((np.array([[3.0, 1.0], [4.0, 1.0]], np.float32),), {}, _BASIS),
    ],
)


class Identity(Initializer):
    """The identity matrix times `gain`.

    Raises:
        ValueError: called with a shape that does not have two dimensions.
    """

    def __init__(self, gain: float = 1.0, dtype: Any = float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        dims = [int(dim or 0) for dim in as_shape(shape).as_list()]
        if len(dims) != 2:
            raise value_error("Identity: the variable must be a matrix", received=f"shape {dims}")
        row, column = (0, 0) if partition_info is None else partition_info.var_offset
        values = np.eye(dims[0], dims[1], row - column) * self.gain
        return constant(values.astype(as_dtype(dtype or self.dtype).numpy_dtype))


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 2 / inputs, for relu (He et al. 2015)."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 2 / inputs, for relu (He et al. 2015)."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 1 / inputs (LeCun et al. 2012)."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 1 / inputs (LeCun et al. 2012)."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


class GlorotUniform(VarianceScaling):
    """Uniform over [-l, l], l = sqrt(6 / (inputs + outputs)); the default of `get_variable`."""

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotNormal(VarianceScaling):
    """Truncated normal with variance 2 / (inputs + outputs)."""

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"seed": self.seed, "dtype": self.dtype.name}
