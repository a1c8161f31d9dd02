"""Random draws beyond the uniform and the normal: gamma, Poisson, truncated normal, crops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value_as_shape, register
from estimatorkit.core.sizes import dims_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import random, reduce
from estimatorkit.ops.math.random import get_seed
from estimatorkit.runtime.xla.random_bits import threefry_key

_SHAPE = np.array([2, 3], np.int32)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    shape = constant_value_as_shape(inputs[0])
    return [Spec(attrs.get("dtype", inputs[1].dtype), shape.concatenate(inputs[1].shape))]


_ALPHAS = np.array([0.5, 3.0], np.float32)
register(
    "RandomGammaGrad",
    lambda alpha, sample: jax.lax.random_gamma_grad(
        *jax.numpy.broadcast_arrays(jax.numpy.asarray(alpha), jax.numpy.asarray(sample))
    ),
    infer=lambda inputs, attrs: [Spec(inputs[1].dtype, inputs[1].shape)],
    gradient="undefined",
    accepts="d",
    cases=lambda: [
        Case(
            (_ALPHAS, np.array([0.5, 2.0], np.float32)),
            {},
            np.array([1.3373528, 0.8565715], np.float32),
        )
    ],
)


def _gamma_gradient(op: Any, dy: Any) -> list[Any]:
    """The implicit derivative of a draw (Figurnov, Mohamed & Mnih 2018), as in TensorFlow."""
    alpha, sample = op.inputs[1], op.outputs[0]
    slope = registry.output("RandomGammaGrad", [alpha, sample])
    count = reduce.reduce_prod(op.inputs[0])
    draws = reduce.reduce_sum(
        array.reshape(dy * slope, joining.concat([[count], array.shape(alpha)], 0)), 0
    )
    return [None, draws]


register(
    "RandomGamma",
    lambda shape, alpha, *, key: jax.random.gamma(
        threefry_key(key), alpha, (*dims_of(shape), *np.shape(alpha)), alpha.dtype
    ),
    infer=_infer,
    gradient=_gamma_gradient,
    static=(0,),
    random=True,
    pure=False,
    cases=lambda: [Case((_SHAPE, np.array([0.5, 3.0], np.float32)))],
    accepts=("x", "d float16"),
)
register(
    "RandomPoisson",
    lambda shape, rate, dtype, *, key: jax.random.poisson(
        threefry_key(key), rate, (*dims_of(shape), *np.shape(rate))
    ).astype(dtype.numpy_dtype),
    infer=_infer,
    gradient=None,
    static=(0,),
    random=True,
    pure=False,
    cases=lambda: [Case((_SHAPE, np.array([0.5, 30.0], np.float32)), {"dtype": float32})],
    accepts=("x", "dx float16"),
)


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from gamma distributions, differentiable with respect to their parameters.

    Args:
        shape: the shape of the draws for each pair of alpha and beta.
        alpha: the shape parameters of the distributions.
        beta: the rate parameters, broadcast with `alpha`; 1 by default.
        dtype: the dtype.
        seed: see `set_random_seed`.

    Returns:
        A tensor whose shape is `shape` followed by that of `alpha + beta`.
    """
    with get_default_graph().name_scope(name or "random_gamma"):
        shapes = convert_to_tensor(alpha, as_dtype(dtype), "alpha")
        rates = None if beta is None else convert_to_tensor(beta, shapes.dtype, "beta")
        if rates is not None:  # a separate draw for each rate
            shapes = shapes + filling.zeros_like(rates)
        inputs = [as_index_tensor(shape, "shape"), shapes]
        drawn = registry.output("RandomGamma", inputs, {"_seed": get_seed(seed)})
        return drawn if rates is None else drawn / rates


def random_poisson(
    lam: Any, shape: Any, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Draws from Poisson distributions.

    Args:
        lam: the rates of the distributions.
        shape: the shape of the draws for each rate.
        dtype: the dtype.
        seed: see `set_random_seed`.

    Returns:
        A tensor whose shape is `shape` followed by that of `lam`.
    """
    with get_default_graph().name_scope(name or "random_poisson"):
        rates = convert_to_tensor(lam, name="lam")
        inputs = [as_index_tensor(shape, "shape"), rates]
        attrs = {"dtype": as_dtype(dtype), "_seed": get_seed(seed)}
        return registry.output("RandomPoisson", inputs, attrs)


def categorical(
    logits: Any,
    num_samples: Any,
    dtype: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The newer name of `multinomial`."""
    return random.multinomial(logits, num_samples, seed, name, output_dtype=dtype or int64)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Crops a tensor to a given size at a random offset.

    Args:
        value: a tensor.
        size: ints, one for each dimension; -1 for the whole dimension.
        seed: see `set_random_seed`.

    Raises:
        ValueError: the size is known to be larger than the tensor.
    """
    with get_default_graph().name_scope(name or "random_crop"):
        x = convert_to_tensor(value, name="value")
        wanted = as_index_tensor(size, "size")
        known = registry.constant_value(wanted)
        for at, length in enumerate([] if known is None else known.tolist()):
            have = x.shape[at] if x.shape.rank is not None else None
            if have is not None and length > have:
                raise value_error(
                    "Need value.shape >= size, got",
                    expected=f"at most {have} in dimension {at}",
                    received=length,
                    made_at=x.op.source,
                )
        starts = []
        shape = array.shape(x)
        for at in range(wanted.shape[0] or 0):
            whole = known is not None and known[at] == -1
            room = shape[at] - (shape[at] if whole else wanted[at]) + 1
            own = None if seed is None else seed + at
            starts.append(random.random_uniform([], 0, room, dtype=room.dtype, seed=own))
        begin = joining.stack(starts)
        return indexing.slice_(x, begin, wanted)
