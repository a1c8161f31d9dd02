"""Initializers of layers and their lookup by name (`tf.keras.initializers`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import float32
from estimatorkit.layers.serialization import Registry
from estimatorkit.lazy import listing
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
