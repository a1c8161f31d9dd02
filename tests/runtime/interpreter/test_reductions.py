"""Reductions, cumulative functions and windows give what XLA does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.interpreter.compare import (
    FLOATS,
    INTEGERS,
    check,
    normal,
    values,
)
from tests.sweep import sweep

ALL = (*FLOATS, *INTEGERS)


def over(function, *axes):
    """A reduction of lax over axes."""
    return lambda x: function(x, axes)


NEAR = dict.fromkeys(ALL, 1e-5) | {"float16": 2e-2, "bfloat16": 2e-1}
"""The error of sums that cancel: XLA rounds each step to 16 bits."""


def special(dtype, shape):
    """Numbers with NaN, infinities and zeros of both signs among them."""
    x = normal(dtype, shape)
    if np.dtype(dtype).kind in "iu":
        return x
    drawn = np.random.default_rng(1).choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], size=shape)
    hidden = np.random.default_rng(2).random(shape) < 0.1
    return np.where(hidden, drawn.astype(dtype), x)


EXTREMES = [lax.reduce_max, lax.reduce_min]


@sweep("dtype", ALL, quick=2)
def test_reductions(dtype):
    x = normal(dtype, (3, 4, 5))
    functions = [lax.reduce_sum, lax.reduce_prod, *EXTREMES]
    axes = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    check([over(f, *a) for f in functions for a in axes], x, tolerance=16, absolute=1e-5)
    y = special(dtype, (6, 7))
    check([over(f, *a) for f in EXTREMES for a in [(0,), (1,), (0, 1)]], y)
    check([over(lax.reduce_sum, 0), over(lax.reduce_prod, 1)], y, tolerance=4, absolute=1e-5)
    signs = [lambda x: lax.argmax(x, 0, "int32"), lambda x: lax.argmin(x, 1, "int64")]
    check(signs, y)
    check([over(f, 0) for f in functions], np.ones((4,), dtype))


@sweep("dtype", FLOATS, quick=1)
def test_zeros_of_both_signs(dtype):
    x = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0]], dtype)
    check([over(f, a) for f in [*EXTREMES, lax.reduce_sum] for a in (0, 1)], x)
    check([lambda x, f=f: f(x, 1) for f in (lax.cummax, lax.cummin, lax.cumsum)], x)
    x = np.array([[-0.0, np.nan], [-1.0, -0.0], [1.0, -0.0]], dtype)
    check([over(f, a) for f in EXTREMES for a in (0, 1)], x)
    check([lambda x, f=f: f(x, 0) for f in (lax.cummax, lax.cummin)], x)
    check([lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "SAME")], x)
    around = [(2, 0), (0, 2)]  # windows without elements
    check([lambda x: lax.reduce_window(x, np.inf, lax.min, (2, 2), (1, 1), around)], x)


@sweep("dtype", ["float32", "int32", "bfloat16"], quick=1)
def test_reductions_of_nothing(dtype):
    x = np.zeros((2, 0, 3), dtype)
    functions = [lax.reduce_sum, lax.reduce_prod, *EXTREMES]
    check([over(f, *a) for f in functions for a in [(1,), (0, 1, 2), (0,)]], x)
    check([lambda x: lax.cumsum(x, 1), lambda x: lax.cummax(x, 0)], x)
    check([lambda x: lax.sort(x, dimension=1), lambda x: lax.top_k(x, 2)], x)
    check([lambda x: lax.reduce(x, lax.full((), 2, x.dtype), lax.max, (1,))], x)


@sweep("dtype", ["bool", "int8", "uint16", "int32", "uint64"], quick=1)
def test_reductions_of_bits(dtype):
    x = values(dtype) if dtype == "bool" else values(dtype)[:12]
    x = np.resize(x, (3, 4))
    bits = [lax.reduce_and, lax.reduce_or, lax.reduce_xor]
    check([over(f, *a) for f in [*bits, *EXTREMES] for a in [(0,), (1,), (0, 1)]], x)
    check([over(f, 0) for f in [*bits, *EXTREMES]], np.zeros((0, 3), dtype))
    check([lambda x: lax.argmax(x, 1, "int32"), lambda x: lax.argmin(x, 0, "int32")], x)


def test_complex_reductions():
    x = values(np.complex64)[:24].reshape(4, 6)
    sums = [over(lax.reduce_sum, 0), over(lax.reduce_sum, 0, 1), over(lax.reduce_prod, 1)]
    check([*sums, lambda x: lax.cumsum(x, 1), lambda x: lax.cumprod(x, 0)], x, tolerance=8)
    check([lambda x: lax.cumlogsumexp(x, 0)], x[:2, :2], tolerance=8, xla=True)


@pytest.mark.parametrize(("shape", "axes"), [((50_000, 3), (0,)), ((5, 4_001, 3), (0, 1))])
def test_sums_of_many_numbers_are_accurate(shape, axes):
    x = np.random.default_rng(0).random(shape, np.float32)
    check([over(lax.reduce_sum, *axes)], x, tolerance=2)
    check([lambda x: lax.cumsum(x, 0)], x[:, 0], tolerance=4)


def test_sums_of_the_middle_of_many_numbers():
    x = np.random.default_rng(0).random((2, 3_001, 2), np.float32)
    check([over(lax.reduce_sum, 1), over(lax.reduce_sum, 0, 2), over(lax.reduce_sum, 1, 2)], x)


def test_general_reductions():
    x = special(np.float32, (4, 5))
    start = np.float32(2)
    combined = [lax.add, lax.mul, lax.max, lax.min, lambda a, b: lax.add(b, a)]
    check([lambda x, s, f=f: lax.reduce(x, s, f, (0,)) for f in combined], x, start, absolute=1e-5)
    flags = np.resize(values(np.bool_), (3, 4))
    joined = [lax.bitwise_and, lax.bitwise_or]
    for begin in (np.bool_(True), np.bool_(False)):
        check([lambda x, s, f=f: lax.reduce(x, s, f, (1,)) for f in joined], flags, begin)

    def both(a, b):
        return a[0] * b[0], a[1] + b[1]

    check([lambda x, s: lax.reduce(x, s, lambda a, b: a * b + a + b, (1,))], x, start, xla=True)
    check([lambda x, s: lax.reduce((x, x), (s, s), both, (1,))], x, start, xla=True)


@sweep("dtype", ALL, quick=2)
def test_cumulative_functions(dtype):
    x = normal(dtype, (4, 5))
    functions = [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin]
    every = [(axis, reverse) for axis in (0, 1) for reverse in (False, True)]
    check([lambda x, f=f, e=e: f(x, *e) for f in functions for e in every], x, absolute=1e-5)
    y = special(dtype, (8, 8))
    check([lambda x, f=f, e=e: f(x, *e) for f in functions[2:] for e in every], y)
    if dtype in FLOATS:
        check(
            [lambda x, e=e: lax.cumlogsumexp(x, *e) for e in every], x, tolerance=2, absolute=1e-5
        )
        z = np.array([-np.inf, -np.inf, 0, 1, np.inf, 2], dtype)
        check([lax.cumlogsumexp, lambda x: lax.cumlogsumexp(x, 0, True)], z, tolerance=2)


def test_cumulative_functions_of_rows():
    x = special(np.float32, (3, 5, 100))
    functions = [lax.cummax, lax.cummin]
    check([lambda x, f=f, r=r: f(x, 1, r) for f in functions for r in (True, False)], x)
    y = normal(np.float32, (3, 130, 100))
    check([lambda x, r=r: lax.cumsum(x, 1, r) for r in (True, False)], y, absolute=1e-4)
    check([lambda x, r=r: lax.cumlogsumexp(x, 1, r) for r in (True, False)], y[:, :9], tolerance=2)
    check([lambda x: lax.cumsum(x, 0), lambda x: lax.cumprod(x, 1)], normal(np.int16, x.shape))


WINDOWS = [
    ((1, 2, 2, 1), (1, 2, 2, 1), "VALID", None, None),
    ((1, 3, 3, 1), (1, 2, 2, 1), "SAME", None, None),
    ((1, 3, 2, 1), (1, 1, 1, 1), "SAME", None, None),
    ((2, 1, 7, 3), (1, 1, 1, 1), "VALID", None, None),
    ((1, 2, 3, 1), (1, 1, 2, 1), ((0, 0), (1, 2), (0, 3), (0, 0)), (1, 2, 1, 1), (1, 1, 2, 1)),
    ((1, 2, 2, 1), (1, 1, 1, 1), ((0, 0), (-1, 0), (2, -1), (0, 0)), None, None),
    ((1, 9, 1, 1), (1, 1, 1, 1), "VALID", None, None),
]


def windowed(operation, start, window):
    sizes, strides, padding, base, step = window
    options = {"base_dilation": base, "window_dilation": step}
    return lambda x: lax.reduce_window(x, start(x), operation, sizes, strides, padding, **options)


def lowest(x):
    return np.array(-np.inf if x.dtype.kind in "fV" else np.iinfo(x.dtype).min, x.dtype)


def highest(x):
    return np.array(np.inf if x.dtype.kind in "fV" else np.iinfo(x.dtype).max, x.dtype)


def zero(x):
    return np.array(0, x.dtype)


def one(x):
    return np.array(1, x.dtype)


@sweep("dtype", [*FLOATS, "int32", "uint8"], quick=1)
def test_windows(dtype):
    x = normal(dtype, (2, 7, 8, 3))
    kinds = [(lax.max, lowest), (lax.min, highest), (lax.add, zero), (lax.mul, one)]
    check([windowed(*k, w) for k in kinds for w in WINDOWS], x, tolerance=4, absolute=NEAR[dtype])
    x = special(dtype, (2, 7, 8, 3))
    check([windowed(*k, w) for k in kinds[:2] for w in WINDOWS[:2]], x)
    other = [(lax.add, one), (lax.max, zero), (lax.mul, highest)]
    check([windowed(*k, WINDOWS[1]) for k in other[:2]], x, tolerance=4, absolute=NEAR[dtype])


@sweep("seed", range(12), quick=1)
def test_windows_of_random_sizes(seed):
    draw = np.random.default_rng(seed)
    shape = tuple(draw.integers(1, 9, draw.integers(1, 4)).tolist())
    x = special(np.float32, shape)
    x = np.where(np.isfinite(x), x, np.float32(-0.0))
    functions = []
    for _ in range(3):
        sizes, strides, base, step = (
            tuple(draw.integers(1, most, len(shape)).tolist()) for most in (5, 4, 3, 3)
        )
        padding = draw.integers(-1, 4, (len(shape), 2)).tolist()
        for kind in ((lax.max, lowest), (lax.min, highest), (lax.add, zero), (lax.mul, one)):
            functions.append(windowed(*kind, (sizes, strides, padding, base, step)))
    defined = []
    for function in functions:
        try:
            jax.eval_shape(function, x)
        except (TypeError, ValueError):  # a window is larger than what is left
            continue
        defined.append(function)
    check(defined, x, tolerance=8, absolute=1e-4)


def test_windows_of_another_function_are_xla_s():
    x = normal(np.float32, (2, 7, 8, 3))
    check([windowed(lambda a, b: a * b + a, one, WINDOWS[0])], x, xla=True, tolerance=8)


@sweep("dtype", FLOATS, quick=1)
def test_gradients_of_pooling(dtype):
    x = np.round(normal(dtype, (2, 7, 8, 3)))  # with ties
    weights = normal(dtype, (2, 9, 9, 3), seed=5)
    chosen = [w for w in WINDOWS if w[4] is None][:6]
    kinds = [(lax.max, lowest), (lax.min, highest), (lax.add, zero)]

    def gradient(function):
        def of(x, weights):
            out, pull = jax.vjp(function, x)
            return pull(lax.slice(weights, (0,) * 4, out.shape).astype(x.dtype))

        return of

    some = [w for w in chosen if not isinstance(w[2], tuple)]  # JAX refuses negative padding
    some.append(((1, 2, 3, 1), (1, 1, 2, 1), ((0, 0), (1, 2), (0, 3), (0, 0)), None, None))
    near = {"absolute": NEAR[dtype]}
    check([gradient(windowed(*k, w)) for k in kinds for w in some], x, weights, **near)
    y = special(dtype, x.shape)
    check([gradient(windowed(*k, w)) for k in kinds[:2] for w in some[:3]], y, weights, **near)


def tangent_of(function):
    return lambda x, tangent: jax.jvp(function, (x,), (tangent,))[1]


@sweep("dtype", ["float32", "float64"], quick=1)
def test_tangents_of_pooling(dtype):
    # no ties: which of equals XLA finds depends on the shape
    x, tangent = normal(dtype, (2, 7, 8, 3)), normal(dtype, (2, 7, 8, 3), seed=5)
    kinds = [(lax.max, lowest), (lax.min, highest)]
    every = [tangent_of(windowed(*k, w)) for k in kinds for w in WINDOWS]
    check(every, x, tangent)
    x = np.where(np.random.default_rng(1).random(x.shape) < 0.1, np.asarray(np.nan, dtype), x)
    check([every[0]], x, tangent)


def test_windows_without_elements():
    x = np.zeros((0, 4, 4, 1), np.float32)
    check([windowed(lax.max, lowest, WINDOWS[0]), windowed(lax.add, zero, WINDOWS[1])], x)
    check([jax.grad(lambda x: jnp.sum(windowed(lax.max, lowest, WINDOWS[0])(x)))], x)
    x = np.zeros((1, 1, 1, 1), np.float32)
    check([windowed(lax.max, lowest, WINDOWS[0])], x)
