"""Initializers of layers and their lookup by name (`tf.keras.initializers`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import as_dtype, float32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.serialization import Registry
from estimatorkit.lazy import listing
from estimatorkit.ops.math import elementwise, random
from estimatorkit.ops.variables import initializers
from estimatorkit.ops.variables.initializers import (
    Constant as Constant,
    GlorotNormal as GlorotNormal,
    GlorotUniform as GlorotUniform,
    Identity as Identity,
    Initializer as Initializer,
    Ones as Ones,
    Orthogonal as Orthogonal,
    VarianceScaling as VarianceScaling,
    Zeros as Zeros,
    he_normal as _he_normal,
    he_uniform as _he_uniform,
    lecun_normal as _lecun_normal,
    lecun_uniform as _lecun_uniform,
)


class RandomUniform(initializers.RandomUniform):
    """Draws from the uniform distribution over [minval, maxval)."""

    def __init__(
        self,
        minval: Any = -0.05,
        maxval: Any = 0.05,
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        super().__init__(minval, maxval, seed, dtype)


class RandomNormal(initializers.RandomNormal):
    """Draws from a normal distribution."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None, dtype: Any = float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class TruncatedNormal(initializers.TruncatedNormal):
    """Draws from a normal distribution truncated at two standard deviations from the mean."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None, dtype: Any = float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class RandomSigns(Initializer):
    """Draws -1 or 1, each half of the time (BatchEnsemble: Wen et al. 2020, arXiv:2002.06715).

    Args:
        seed: see `set_random_seed`.
        dtype: floating.
    """

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        self.seed = seed
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        positive = random.random_uniform(shape, seed=self.seed) < 0.5
        return elementwise.cast(positive, dtype or self.dtype) * 2.0 - 1.0


glorot_normal, glorot_uniform = GlorotNormal, GlorotUniform
he_normal = HeNormal = _he_normal
he_uniform = HeUniform = _he_uniform
lecun_normal = LecunNormal = _lecun_normal
lecun_uniform = LecunUniform = _lecun_uniform
constant, identity, ones, orthogonal, zeros = Constant, Identity, Ones, Orthogonal, Zeros
normal = random_normal = RandomNormal
uniform = random_uniform = RandomUniform
truncated_normal = TruncatedNormal

_CLASSES = (
    Constant,
    GlorotNormal,
    GlorotUniform,
    Identity,
    Ones,
    Orthogonal,
    RandomNormal,
    RandomSigns,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
    Zeros,
)
_FUNCTIONS = {
    "he_normal": he_normal,
    "he_uniform": he_uniform,
    "lecun_normal": lecun_normal,
    "lecun_uniform": lecun_uniform,
}
_ALIASES = {
    "constant": Constant,
    "glorot_normal": GlorotNormal,
    "glorot_uniform": GlorotUniform,
    "identity": Identity,
    "normal": RandomNormal,
    "ones": Ones,
    "one": Ones,
    "orthogonal": Orthogonal,
    "random_normal": RandomNormal,
    "random_signs": RandomSigns,
    "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal,
    "uniform": RandomUniform,
    "variance_scaling": VarianceScaling,
    "zeros": Zeros,
    "zero": Zeros,
}
# The functions create initializers, and share the names of what they create.
registry = Registry(
    "initializer",
    {
        **{kind.__name__: kind for kind in _CLASSES},
        **_ALIASES,
        **{name: make() for name, make in _FUNCTIONS.items()},
        **{
            "".join(part.capitalize() for part in name.split("_")): make()
            for name, make in _FUNCTIONS.items()
        },
    },
)
get, serialize, deserialize = registry.get, registry.serialize, registry.deserialize

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomSigns",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "deserialize",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "serialize",
    "truncated_normal",
    "uniform",
    "zeros",
]
__dir__ = listing(__name__)
