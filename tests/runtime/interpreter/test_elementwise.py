"""Elementwise rules give what XLA does, with special values of each dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from estimatorkit.runtime.interpreter.table import program_of
from tests.runtime.interpreter.compare import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    SIGNED,
    check,
    pairs,
    values,
)
from tests.sweep import sweep

EXACT = [lax.ceil, lax.floor, lax.is_finite, lax.neg, lax.abs, lax.sign, jnp.isnan]
EXACT += [lambda x, how=how: lax.round(x, how) for how in lax.RoundingMethod]
EXACT += [lax.square, lax.sqrt, lambda x: lax.integer_pow(x, 2), lambda x: lax.integer_pow(x, 0)]
SMOOTH = [lax.exp, lax.expm1, lax.log, lax.log1p, lax.logistic, lax.rsqrt, lax.cbrt]
SMOOTH += [lax.sin, lax.cos, lax.tan, lax.sinh, lax.cosh, lax.tanh, lax.asinh]
SMOOTH += [lax.asin, lax.acos, lax.atan, lax.acosh, lax.atanh]
POWERS = [lambda x, y=y: lax.integer_pow(x, y) for y in (1, 3, 4, 7, -1, -2, -3)]
COMPARED = [lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge]
TOTAL = [lambda a, b, p=p: p.bind(a, b) for p in (lax.eq_to_p, lax.lt_to_p, lax.le_to_p)]
BITS = [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor]


@sweep("dtype", FLOATS, quick=1)
def test_functions_of_a_float(dtype):
    check([*EXACT, *POWERS], values(dtype))
    check(SMOOTH, values(dtype), tolerance=4, absolute=1e-30)
    if dtype != "bfloat16":  # in which XLA's has two correct digits
        check([lax.exp2], values(dtype), tolerance=4)


@sweep("dtype", FLOATS, quick=1)
def test_functions_of_two_floats(dtype):
    check([*COMPARED, *TOTAL, lax.max, lax.min, lax.nextafter], *pairs(dtype))
    check([lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.atan2, lax.pow], *pairs(dtype))


@sweep("dtype", INTEGERS, quick=1)
def test_functions_of_integers(dtype):
    check([*COMPARED, *TOTAL, *BITS, lax.max, lax.min, lax.mulhi], *pairs(dtype))
    check([lax.add, lax.sub, lax.mul, lax.div, lax.rem], *pairs(dtype))
    of_one = [lax.sign, lax.neg, lax.bitwise_not, lax.clz, lax.population_count, lax.square]
    of_one += [lambda x, y=y: lax.integer_pow(x, y) for y in (0, 1, 2, 3, 5)]
    check([*of_one, *([lax.abs] if dtype in SIGNED else [])], values(dtype))


@sweep("dtype", INTEGERS, quick=1)
def test_shifts_by_any_number(dtype):
    x, _ = pairs(dtype)
    counts = np.tile(np.array([0, 1, 5, 7, 8, 31, 32, 63, 64, 100, -1], np.int64), len(x))[: len(x)]
    shifts = [lax.shift_left, lax.shift_right_arithmetic, lax.shift_right_logical]
    check(shifts, x, counts.astype(dtype))


def test_booleans():
    a, b = pairs(np.bool_)
    check([*COMPARED, *TOTAL, *BITS, lax.max, lax.min, lambda a, _: lax.bitwise_not(a)], a, b)


@sweep("dtype", COMPLEX, quick=1)
def test_complex_numbers(dtype):
    x = values(dtype)
    check([lax.real, lax.imag, lax.conj, lax.neg, lax.abs, lax.sign, lax.square], x)
    smooth = [lax.exp, lax.exp2, lax.log, lax.sqrt, lax.rsqrt, lax.sin, lax.cos, lax.tanh]
    smooth += [lax.expm1, lax.log1p, lax.logistic, lax.asinh, lax.atan, lax.acos, *POWERS]
    check(smooth, x, tolerance=8)
    y = x[::-1].copy()
    check([lax.add, lax.sub, lax.mul, lax.div, lax.pow, lax.eq, lax.ne], x, y, tolerance=8)
    check([lax.complex], *pairs(x.real.dtype))
    check([lax.conj], values(x.real.dtype))
    check([lax.max, lax.min], x, y)
    check([lax.atan2], x, y, tolerance=8, xla=True)


@sweep("dtype", [*FLOATS, "int32", "uint8", "bool"], quick=2)
def test_choices(dtype):
    a, b = pairs(dtype)
    which = np.arange(len(a), dtype=np.int32) % 6 - 1
    three = [lambda which, a, b: lax.select_n(which, a, b, a, b)]
    check(three, which, a, b)
    check([lax.select_n], which > 1, a, b)
    check([lambda which, a, b: lax.select_n(which[0], a, b)], which > 1, a, b)
    check([lambda a, b: lax.select_n(jnp.int32(7), a, b, b, a)], a, b)
    check([lambda a, b: lax.clamp(b, a, b[::-1]), lambda a, b: lax.clamp(b[2], a, b[3])], a, b)
    check([lambda a: lax.max(a, jnp.zeros_like(a)), lambda a: lax.min(jnp.zeros_like(a), a)], a)
    check([lambda a: lax.max(a, -jnp.zeros_like(a)) if a.dtype != bool else a], a)


def test_powers_of_floats_to_integers():
    x = values(np.float32)
    y = np.arange(len(x), dtype=np.int32) - 8
    check([lax.pow], x, y)
    check([lax.pow], values(np.complex64)[: len(y)], y[: len(values(np.complex64))], tolerance=8)


@sweep("dtype", FLOATS, quick=1)
def test_numbers_without_axes_and_arrays_without_elements(dtype):
    functions = [lax.exp, lax.logistic, lax.sign, lax.neg, lax.tanh, lambda x: lax.max(x, x)]
    functions += [lambda x: lax.convert_element_type(x, "int8"), lambda x: lax.clamp(x, x, x)]
    functions += [lax.rsqrt, lambda x: lax.integer_pow(x, -3), lax.round, lax.erf, lax.lgamma]
    for x in (np.array(1.5, dtype), np.ones((0,), dtype), np.ones((2, 0, 3), dtype)):
        check(functions, x, tolerance=4)


def test_numbers_of_numpy_are_arrays():
    check([lax.exp, lambda x: lax.select_n(x > 0, x, -x), lax.is_finite], np.float32(0.5))
    check([lax.clz, lambda x: lax.div(x, x - x), lambda x: lax.rem(x, x - x)], np.int32(7))


KINDS = ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", *FLOATS, *COMPLEX]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@sweep("dtype", KINDS, quick=1)
def test_conversions(dtype):
    x = values(dtype)
    if np.dtype(dtype).kind not in "biuc":
        limits = [2.0**e * s for e in (7, 8, 15, 16, 31, 32, 53, 63, 64) for s in (1, -1)]
        limits += [127.5, -128.9, -0.9, 1e10]
        with np.errstate(over="ignore"):
            x = np.concatenate([x, np.array(limits).astype(dtype)])
    check([lambda x, to=to: lax.convert_element_type(x, to) for to in KINDS], x)


def test_bits_of_one_type_as_another():
    x = values(np.float32, count=7)[:16].reshape(2, 8)
    check([lambda x, to=to: lax.bitcast_convert_type(x, to) for to in ("int32", "uint8")], x)
    check([lambda x: lax.bitcast_convert_type(x, "bfloat16")], x)
    words = np.arange(48, dtype=np.uint8).reshape(2, 3, 8)
    check([lambda x: lax.bitcast_convert_type(x, jnp.uint64)], words)
    check([lambda x: lax.bitcast_convert_type(x[..., ::2], jnp.float32)], words)
    check([lambda x: lax.bitcast_convert_type(x, jnp.uint16)], words[..., :2].copy())
    check([lambda x: lax.bitcast_convert_type(x, jnp.float32)], np.int32(7))


@sweep("dtype", FLOATS, quick=1)
def test_reduced_precision(dtype):
    with np.errstate(over="ignore"):
        x = np.concatenate([values(dtype), np.geomspace(1e-30, 1e30, 61).astype(dtype)])
    formats = [(5, 10), (8, 7), (4, 3), (8, 23), (11, 52), (2, 0), (5, 52)]
    check([lambda x, f=f: lax.reduce_precision(x, f[0], f[1]) for f in formats], x)


@sweep("dtype", FLOATS, quick=1)
def test_special_functions(dtype):
    x = values(dtype)
    check([lax.erf, lax.erfc, lax.erf_inv], x, tolerance=8)
    check([lax.bessel_i0e, lax.bessel_i1e], x, tolerance=8)
    check([lax.lgamma, lax.digamma], x, tolerance=8, absolute=2e-6)


@pytest.mark.slow
@sweep("dtype", FLOATS, quick=1)
def test_special_functions_of_more_operands(dtype):
    a, x = pairs(dtype, finite=True)
    a, x = np.abs(a) + np.asarray(0.5, dtype), np.abs(x)
    check([lax.igamma, lax.igammac], a, x, tolerance=64, absolute=2e-5)
    order = np.round(np.clip(a, 1, 5))
    positive = np.clip(x, 0.125, None)
    check([lax.polygamma], order, positive, tolerance=64)
    check([lax.zeta], order + 1, positive, tolerance=16)
    share = (x / np.asarray(101, dtype)).astype(dtype)
    small = np.clip(a, None, 8)
    check([lax.betainc], small, small[::-1].copy(), share, tolerance=64, absolute=1e-6)


@pytest.mark.slow
def test_special_functions_outside_their_domain_are_xla_s():
    a, x = pairs(np.float32)
    check([lax.igamma, lax.igammac, lax.zeta, lax.polygamma], a, x, xla=True)
    check([lambda a, x: lax.betainc(a, x, x)], a, x, xla=True)


def test_rules_compute_in_float32_what_xla_does():
    x = values(np.float16)
    check(
        [lambda x: lax.exp(lax.exp(x)), lambda x: jax.nn.gelu(x), jax.nn.softplus], x, tolerance=4
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_functions_of_many_numbers(dtype):
    x = np.concatenate([np.linspace(-6, 6, 5001), values(np.float64)]).astype(dtype)
    check([lax.erf, lax.erfc], x, tolerance=2, absolute=1e-37)
    x = np.concatenate([np.linspace(-1, 1, 5001), [-0.0, 1 - 1e-7, 1e-20, 2.0, np.nan]])
    check([lax.erf_inv], x.astype(dtype), tolerance=2)


@sweep("dtype", ["float32", "float64", "int8", "bfloat16", "complex64", "bool"], quick=2)
def test_choices_of_many_numbers(dtype):
    a, b = np.resize(values(dtype), (80, 60)), np.resize(values(dtype)[::-1], (80, 60))
    which = np.random.default_rng(0).random((80, 60)) < 0.5
    functions = [lambda which, a, b, at=at: jnp.where(which[at, 0], a, b) for at in (0, 1, 2)]
    functions += [lax.select_n, lambda which, a, b: lax.select_n(which, jnp.zeros_like(a), a)]
    check(functions, which, a, b)


def test_a_choice_has_memory_of_its_own():
    x = np.ones((100, 100), np.float32)
    for choose in (lambda which, x: lax.select_n(which, x, x), lambda w, x: jnp.where(w, x, x)):
        made = program_of(jax.make_jaxpr(choose)(np.bool_(True), x))
        assert not np.may_share_memory(made(np.bool_(True), x)[0], x)
