"""Random draws beyond the uniform and the normal: gamma, Poisson, crops, and stateless ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32, int64
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops import array, elementwise, indexing, joining, random
from estimatorkit.core.ops.random import get_seed
from estimatorkit.core.random_bits import threefry_key
from estimatorkit.core.registry import Case, Spec, constant_value_as_shape, register
from estimatorkit.core.tensor import Tensor

_SHAPE = np.array([2, 3], np.int32)


def _dims(shape: Any) -> tuple[int, ...]:
    return tuple(int(dim) for dim in np.atleast_1d(shape))


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    shape = constant_value_as_shape(inputs[0])
    return [Spec(attrs.get("dtype", inputs[1].dtype), shape.concatenate(inputs[1].shape))]


register(
    "RandomGamma",
    lambda shape, alpha, *, key: jax.random.gamma(
        threefry_key(key), alpha, (*_dims(shape), *np.shape(alpha)), alpha.dtype
    ),
    infer=_infer,
    gradient=None,
    static=(0,),
    random=True,
    pure=False,
    cases=lambda: [Case((_SHAPE, np.array([0.5, 3.0], np.float32)))],
    accepts=("x", "d float16"),
)
register(
    "RandomPoisson",
    lambda shape, rate, dtype, *, key: jax.random.poisson(
        threefry_key(key), rate, (*_dims(shape), *np.shape(rate))
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
    """Draws from gamma distributions, without a derivative with respect to alpha.

    Args:
        shape: the shape of the draws for each alpha.
        alpha: the shapes of the distributions.
        beta: their rates, 1 by default.
        dtype: the dtype.
        seed: of the draws.
        name: the name scope.

    Returns:
        `shape + alpha's shape`.
    """
    with get_default_graph().name_scope(name or "random_gamma"):
        shapes = convert_to_tensor(alpha, as_dtype(dtype), "alpha")
        inputs = [as_index_tensor(shape, "shape"), shapes]
        drawn = registry.output("RandomGamma", inputs, {"_seed": get_seed(seed)})
        return drawn if beta is None else drawn / convert_to_tensor(beta, drawn.dtype)


def random_poisson(
    lam: Any, shape: Any, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Draws from Poisson distributions.

    Args:
        lam: their rates.
        shape: the shape of the draws for each rate.
        dtype: the dtype.
        seed: of the draws.
        name: the name scope.

    Returns:
        `shape + lam's shape`.
    """
    with get_default_graph().name_scope(name or "random_poisson"):
        rates = convert_to_tensor(lam, name="lam")
        inputs = [as_index_tensor(shape, "shape"), rates]
        attrs = {"dtype": as_dtype(dtype), "_seed": get_seed(seed)}
        return registry.output("RandomPoisson", inputs, attrs)


def categorical(
    logits: Any,
    num_samples: int,
    dtype: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`multinomial` by its newer name."""
    return random.multinomial(logits, num_samples, seed, name, output_dtype=dtype or int64)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of a tensor of a given size, at a random place.

    Args:
        value: a tensor.
        size: ints, one for each dimension; -1 for the whole dimension.
        seed: of the draw.
        name: the name scope.

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
                raise ValueError(
                    explain(
                        "Need value.shape >= size, got",
                        expected=f"at most {have} in dimension {at}",
                        received=length,
                        made_at=x.op.source,
                    )
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


def _stateless(op_type: str, draw: Callable[..., Any]) -> None:
    def kernel(shape: Any, seed: Any, dtype: Any) -> Any:
        words = jax.numpy.asarray(seed).astype(np.uint32)
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        return draw(key, _dims(shape), dtype.numpy_dtype)

    register(
        op_type,
        kernel,
        infer=lambda inputs, attrs: [Spec(attrs["dtype"], constant_value_as_shape(inputs[0]))],
        gradient=None,
        static=(0,),
        accepts=("x", "x"),
        cases=lambda: [
            Case(
                (_SHAPE, np.array([1, 2], np.int32)),
                {"dtype": float32},
                np.asarray(kernel(_SHAPE, np.array([1, 2], np.int32), float32)),
            )
        ],
    )


_stateless("StatelessRandomUniform", jax.random.uniform)
_stateless("StatelessRandomNormal", jax.random.normal)
_stateless(
    "StatelessTruncatedNormal",
    lambda key, shape, dtype: jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype),
)


def _of_seed(op_type: str, shape: Any, seed: Any, dtype: Any, name: str | None) -> Tensor:
    words = convert_to_tensor(seed, name="seed")
    if not words.shape.is_compatible_with([2]):
        raise ValueError(explain("seed must have shape [2]", received=words))
    inputs = [as_index_tensor(shape, "shape"), words]
    return registry.output(op_type, inputs, {"dtype": as_dtype(dtype)}, name)


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = 1,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Uniform draws that follow from the seed alone.

    Args:
        shape: the shape.
        seed: two ints.
        minval, maxval: the range.
        dtype: a floating dtype.
        name: the name scope.
    """
    with get_default_graph().name_scope(name or "stateless_random_uniform"):
        drawn = _of_seed("StatelessRandomUniform", shape, seed, dtype, None)
        low = convert_to_tensor(minval, drawn.dtype)
        return drawn * (convert_to_tensor(maxval, drawn.dtype) - low) + low


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Normal draws that follow from the seed alone; see `stateless_uniform`."""
    with get_default_graph().name_scope(name or "stateless_random_normal"):
        drawn = _of_seed("StatelessRandomNormal", shape, seed, dtype, None)
        return elementwise.add(drawn * stddev, mean)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Normal draws within two standard deviations, from the seed alone; see `stateless_uniform`."""
    with get_default_graph().name_scope(name or "stateless_truncated_normal"):
        drawn = _of_seed("StatelessTruncatedNormal", shape, seed, dtype, None)
        return elementwise.add(drawn * stddev, mean)
