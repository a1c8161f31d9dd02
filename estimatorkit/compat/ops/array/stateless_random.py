"""Random draws determined only by a seed of two ints: `tf.random.stateless_*`.

Equal seeds give equal numbers in every run, on every device; they are not TensorFlow's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32, int32, int64, members
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value_as_shape, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.random import get_seed, random_words

_SHAPE, _SEED = np.array([2, 3], np.int32), np.array([1, 2], np.int32)


def _key(seed: Any) -> Any:
    """The JAX key of a seed; int32 and int64 seeds of equal value have the same key."""
    words = jnp.asarray(seed)
    low = words.astype(jnp.uint32)
    if words.dtype.itemsize > 4:
        high = (words - words.astype(jnp.int32)) >> 32
        low ^= high.astype(jnp.uint32) * np.uint32(0x9E3779B9)
    return jax.random.wrap_key_data(low, impl="threefry2x32")


def _full_range(key: Any, shape: Any, dtype: Any) -> Any:
    words = jax.random.bits(key, shape, np.dtype(f"u{dtype.itemsize}"))
    return jax.lax.bitcast_convert_type(words, dtype)


def _quantile_of_normal(log_chance: Any) -> Any:
    """The standard normal quantile of a log-probability; accurate down to -1e4."""
    middle = jax.scipy.special.ndtri(jnp.exp(jnp.maximum(log_chance, -10.0)))
    tail = -jnp.sqrt(-2.0 * jnp.minimum(log_chance, -5.0))
    for _ in range(5):  # Newton's method on a concave function
        now = jax.scipy.special.log_ndtr(tail)
        slope = jnp.exp(jax.scipy.stats.norm.logpdf(tail) - now)
        tail -= (now - jnp.minimum(log_chance, -5.0)) / slope
    return jnp.where(log_chance < -5.0, tail, middle)


def _truncated(
    key: Any, shape: Any, dtype: Any, means: Any, deviations: Any, least: Any, most: Any
) -> Any:
    """Truncated normal draws by inverse transform of log-probabilities, in the farther tail."""
    wide = jnp.promote_types(dtype, np.float32)
    means, deviations, least, most = (
        jnp.asarray(each, wide) for each in (means, deviations, least, most)
    )
    low, high = (least - means) / deviations, (most - means) / deviations
    mirrored = low > 0
    low, high = jnp.where(mirrored, -high, low), jnp.where(mirrored, -low, high)
    uniform = jax.random.uniform(key, shape, wide, minval=np.finfo(wide).tiny)
    below, above = jax.scipy.special.log_ndtr(low), jax.scipy.special.log_ndtr(high)
    drawn = _quantile_of_normal(
        jnp.logaddexp(below + jnp.log1p(-uniform), above + jnp.log(uniform))
    )
    drawn = jnp.where(mirrored, -drawn, drawn) * deviations + means
    return jnp.clip(drawn, least, most).astype(dtype)


def _gamma(key: Any, shape: Any, dtype: Any, alpha: Any) -> Any:
    wide = jnp.promote_types(dtype, np.float32)
    return jax.random.gamma(key, jnp.broadcast_to(alpha, shape).astype(wide), dtype=wide)


def _multinomial(key: Any, shape: Any, dtype: Any, logits: Any) -> Any:
    scores = jnp.asarray(logits)[:, None, :]
    return jax.random.categorical(key, scores.astype(jnp.result_type(scores, 0.0)), shape=shape)


def _register(
    op_type: str,
    draw: Callable[..., Any],
    drawn: Sequence[Sequence[float]],
    accepts: Sequence[str] = (),
    *params: Any,
    dtype: Any,
    gradient: Any = None,
) -> None:
    """Registers an op.

    Args:
        draw: `draw(key, shape, dtype, *params)`.
        drawn: the numbers of the example's shape and seed, which no version may change.
        accepts: the dtypes of the parameters.
        params: the example's parameters.
        dtype: the example's.
    """

    def kernel(shape: Any, seed: Any, *params: Any, dtype: Any) -> Any:
        dims = tuple(int(dim) for dim in np.atleast_1d(shape))
        return draw(_key(seed), dims, dtype.numpy_dtype, *params).astype(dtype.numpy_dtype)

    register(
        op_type,
        kernel,
        infer=lambda inputs, attrs: [Spec(attrs["dtype"], constant_value_as_shape(inputs[0]))],
        gradient=gradient,
        static=(0,),
        accepts=("x", "x uint32", *accepts),
        cases=lambda: [
            Case((_SHAPE, _SEED, *params), {"dtype": dtype}, np.array(drawn, dtype.numpy_dtype))
        ],
    )


_register(
    "StatelessRandomUniform",
    jax.random.uniform,
    ((0.682840109, 0.421869159, 0.491332054), (0.0401903391, 0.341462255, 0.793702722)),
    dtype=float32,
)
_register(
    "StatelessRandomNormal",
    jax.random.normal,
    ((0.475655705, -0.197113931, -0.0217289515), (-1.74848104, -0.408475608, 0.819336414)),
    dtype=float32,
)
_register(
    "StatelessTruncatedNormal",
    lambda key, shape, dtype: jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype),
    ((0.452431321, -0.188036203, -0.0207402054), (-1.54550743, -0.388898164, 0.773339093)),
    dtype=float32,
)
_register(
    "StatelessRandomUniformFullInt",
    _full_range,
    ((-1362190889, 1811914268, 2110255537), (172616543, 1466569306, -886039758)),
    dtype=int32,
)
_register(
    "StatelessRandomUniformInt",
    lambda key, shape, dtype, low, high: jax.random.randint(key, shape, low, high, dtype),
    ((-1, 2, 3), (4, 4, -2)),
    ("x", "x"),
    np.int32(-2),
    np.int32(5),
    dtype=int32,
)
_register(
    "StatelessRandomBinomial",
    lambda key, shape, dtype, counts, chances: jax.random.binomial(
        key, jnp.asarray(counts, np.float32), jnp.asarray(chances, np.float32), shape
    ),
    ((2, 4, 0), (4, 3, 2)),
    ("fx", "fx"),
    np.float32(9),
    np.float32(0.25),
    dtype=int32,
)
_register(
    "StatelessRandomGammaV2",
    _gamma,
    ((0.076849319, 0.891860723, 0.0169965513), (0.0622568578, 0.729103863, 0.238843322)),
    ("f",),
    np.float32(0.7),
    dtype=float32,
    gradient="auto",
)
_register(
    "StatelessRandomPoisson",
    lambda key, shape, dtype, rate: jax.random.poisson(
        key, jnp.broadcast_to(jnp.asarray(rate, np.float32), shape)
    ),
    ((25, 32, 31), (37, 26, 33)),
    ("fx",),
    np.float32(30.0),
    dtype=int32,
)
_register(
    "StatelessParameterizedTruncatedNormal",
    _truncated,
    ((4.08937979, 4.19973946, 4.16509533), (4.70443058, 4.24737406, 4.05434418)),
    ("f", "f", "f", "f"),
    np.float32(0),
    np.float32(1),
    np.float32(4),
    np.float32(9),
    dtype=float32,
    gradient="auto",
)
_register(
    "StatelessMultinomial",
    _multinomial,
    ((0, 2, 0), (0, 0, 2)),
    ("fi",),
    np.zeros((2, 3), np.float32),
    dtype=int32,
)


def _of_seed(
    op_type: str, shape: Any, seed: Any, params: Sequence[Tensor], dtype: Any, name: str | None
) -> Tensor:
    words = convert_to_tensor(seed, name="seed")
    if not words.shape.is_compatible_with([2]):
        raise value_error("seed must have shape [2]", received=words)
    inputs = [as_index_tensor(shape, "shape"), words, *params]
    return registry.output(op_type, inputs, {"dtype": as_dtype(dtype)}, name)


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Uniform draws determined only by the seed.

    Args:
        shape: the shape.
        seed: two ints, int32 or int64.
        minval, maxval: the range, [0, 1) by default; both None for all values of an integer dtype.
        dtype: floating, int32, int64, or (for all values) uint32 or uint64.
        alg: accepted for compatibility only.

    Raises:
        ValueError: the dtype is not one of these, or it is an integer dtype and only one bound is
            given or the bounds are not scalars.
    """
    wanted = as_dtype(dtype)
    accepted = members("fx uint32 uint64")
    if wanted not in accepted:
        problem = f"Argument `dtype` got invalid value {wanted}"
        raise value_error(problem, expected=", ".join(each.name for each in accepted))
    if wanted.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer `dtype` argument {wanted}, argument `minval` and `maxval` must be "
                f"both None or not None. Got `minval`={minval} and `maxval`={maxval}."
            )
        if minval is not None and wanted not in members("x"):
            raise value_error(
                f"Argument `dtype` got invalid value {wanted} when argument `minval` is not None",
                expected="int32 or int64",
            )
    with get_default_graph().name_scope(name or "stateless_random_uniform") as scope:
        if wanted.is_integer and minval is None:
            return _of_seed("StatelessRandomUniformFullInt", shape, seed, (), wanted, scope)
        low = convert_to_tensor(minval, wanted, "min")
        high = convert_to_tensor(1 if maxval is None else maxval, wanted, "max")
        if not wanted.is_integer:
            drawn = _of_seed("StatelessRandomUniform", shape, seed, (), wanted, None)
            return elementwise.add(drawn * (high - low), low, name=scope)
        for what, bound in (("minval", low), ("maxval", high)):
            if bound.shape.rank not in (0, None):
                raise ValueError(f"{what} must be a scalar; got a tensor of shape {bound.shape}")
        bounds = (low, high)
        return _of_seed("StatelessRandomUniformInt", shape, seed, bounds, wanted, scope)


def _scaled(
    op_type: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: str
) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        drawn = _of_seed(op_type, shape, seed, (), dtype, None)
        scale = convert_to_tensor(stddev, drawn.dtype, "stddev")
        shift = convert_to_tensor(mean, drawn.dtype, "mean")
        return elementwise.add(drawn * scale, shift, name=scope)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normal draws determined only by the seed; see `stateless_uniform`."""
    given = name or "stateless_random_normal"
    return _scaled("StatelessRandomNormal", shape, seed, mean, stddev, dtype, given)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Truncated normal draws determined only by the seed; see `stateless_normal`.

    Draws are within two standard deviations of the mean.
    """
    given = name or "stateless_truncated_normal"
    return _scaled("StatelessTruncatedNormal", shape, seed, mean, stddev, dtype, given)


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = int32, name: Any = None
) -> Tensor:
    """Binomial draws determined only by the seed.

    Args:
        shape: the shape of the result, to whose last dimensions `counts` and `probs` broadcast.
        seed: two ints.
        counts: the numbers of trials.
        probs: the probabilities of success.
        output_dtype: the dtype of the draws.
    """
    with get_default_graph().name_scope(name or "stateless_random_binomial") as scope:
        chances = convert_to_tensor(probs, name="probs")
        params = (convert_to_tensor(counts, name="counts"), chances)
        return _of_seed("StatelessRandomBinomial", shape, seed, params, output_dtype, scope)


def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Gamma draws determined only by the seed.

    Args:
        shape: the shape of the result, to whose last dimensions `alpha` and `beta` broadcast.
        seed: two ints.
        alpha: the shape parameters of the distributions.
        beta: the rate parameters, 1 by default.
        dtype: a floating dtype.
    """
    with get_default_graph().name_scope(name or "stateless_random_gamma") as scope:
        shapes = convert_to_tensor(alpha, as_dtype(dtype), "alpha")
        rates = convert_to_tensor(1 if beta is None else beta, shapes.dtype, "beta")
        drawn = _of_seed("StatelessRandomGammaV2", shape, seed, (shapes,), dtype, None)
        return elementwise.divide(drawn, rates, name=scope)


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Poisson draws of rates `lam`, determined only by the seed; see `stateless_binomial`."""
    with get_default_graph().name_scope(name or "stateless_random_poisson") as scope:
        rates = (convert_to_tensor(lam, name="lam"),)
        return _of_seed("StatelessRandomPoisson", shape, seed, rates, dtype, scope)


def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Truncated normal draws with given parameters and bounds, determined only by the seed.

    Args:
        shape: the shape of the result, to whose last dimensions the parameters broadcast.
        seed: two ints.
        means, stddevs: the means and standard deviations before truncation.
        minvals, maxvals: the bounds.
    """
    scope_name = name or "stateless_parameterized_truncated_normal"
    with get_default_graph().name_scope(scope_name) as scope:
        mean = convert_to_tensor(means, name="means")
        rest = [convert_to_tensor(each, mean.dtype) for each in (stddevs, minvals, maxvals)]
        op_type = "StatelessParameterizedTruncatedNormal"
        return _of_seed(op_type, shape, seed, [mean, *rest], mean.dtype, scope)


def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Truncated normal draws, with one distribution per row of the result.

    Args:
        shape: the shape, the number of distributions first.
        means, stddevs, minvals, maxvals: scalars, or a number for each distribution.
        dtype: a floating dtype.
        seed: see `set_random_seed`.
    """
    with get_default_graph().name_scope(name or "parameterized_truncated_normal") as scope:
        dims = as_index_tensor(shape, "shape")
        rank = dims.shape[0] or 0
        params = []
        for given in (means, stddevs, minvals, maxvals):
            each = convert_to_tensor(given, as_dtype(dtype))
            ones = [1] * (rank - 1) if each.shape.rank == 1 else []
            params.append(array.reshape(each, [-1, *ones]) if ones else each)
        op_type = "StatelessParameterizedTruncatedNormal"
        return _of_seed(op_type, dims, random_words(get_seed(seed)), params, dtype, scope)


def stateless_multinomial(
    logits: Any, num_samples: int, seed: Any, output_dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Draws class indices with the probabilities softmax(logits), determined only by the seed.

    Args:
        logits: `(batch, classes)`.
        num_samples: the number of draws for each row.
        seed: two ints.
        output_dtype: int64 or int32.

    Returns:
        `(batch, num_samples)`.
    """
    with get_default_graph().name_scope(name or "stateless_multinomial") as scope:
        given = convert_to_tensor(logits, name="logits")
        rows = given.shape.with_rank(2)[0]
        shape = [array.shape(given)[0] if rows is None else rows, num_samples]
        return _of_seed("StatelessMultinomial", shape, seed, (given,), output_dtype, scope)


def stateless_categorical(
    logits: Any, num_samples: int, seed: Any, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """The newer name of `stateless_multinomial`."""
    scope = name or "stateless_categorical"
    return stateless_multinomial(logits, num_samples, seed, dtype, scope)


# -- seeds of seeds


def stateless_split(
    seed: Any, num: Any = 2, alg: Any = "auto_select", name: str | None = None
) -> Tensor:
    """Derives `num` new seeds from a seed: `(num, 2)`, of its dtype."""
    words = convert_to_tensor(seed, name="seed")
    return _of_seed("StatelessRandomUniformFullInt", [num, 2], words, (), words.dtype, name)


def _fold_in(seed: Any, data: Any) -> Any:
    number = jnp.asarray(data)
    key = jax.random.fold_in(_key(seed), number.astype(jnp.uint32))
    return _full_range(key, (2,), number.dtype)


register(
    "StatelessFoldIn",
    _fold_in,
    infer=lambda inputs, attrs: [Spec(inputs[1].dtype, TensorShape([2]))],
    gradient=None,
    accepts=("x", "x"),
    cases=lambda: [Case((_SEED, np.int32(3)), {}, np.array([-95766399, -969848126], np.int32))],
)


def stateless_fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """Derives a new seed from a seed and the integer `data`: `(2,)`, of the dtype of `data`."""
    number = convert_to_tensor(data, name="data")
    return registry.output("StatelessFoldIn", [convert_to_tensor(seed, name="seed"), number])


register(
    "StatelessShuffle",
    lambda value, seed: jax.random.permutation(_key(seed), value, axis=0),
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)],
    gradient=None,
    cases=lambda: [Case((np.zeros((3, 2), np.float32), _SEED), {}, np.zeros((3, 2), np.float32))],
)


def stateless_shuffle(
    value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None
) -> Tensor:
    """Shuffles the first dimension of `value`, determined only by the seed."""
    inputs = [convert_to_tensor(value, name="value"), convert_to_tensor(seed, name="seed")]
    return registry.output("StatelessShuffle", inputs, None, name)
