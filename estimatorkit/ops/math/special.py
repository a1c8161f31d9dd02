"""Special functions: inverse hyperbolic, gamma, beta, complex numbers, bits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import complex64, complex128, float32, float64
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register, same_as_input
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import LazyFunctions
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.axes import in_range, register_with_axis, with_axis
from estimatorkit.ops.math.broadcasting import broadcast
from estimatorkit.ops.math.derivatives import passed, with_partials
from estimatorkit.ops.math.elementwise import Binary, Unary, function_of_two

scipy_special = LazyFunctions("scipy.special")

_ANY = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 1.25]], np.float32)
_POSITIVE = np.abs(_ANY) + np.float32(0.25)
_ABOVE_ONE = _POSITIVE + np.float32(1.0)
_UNIT = np.tanh(_ANY) * np.float32(0.9)
_INSIDE = (_UNIT + np.float32(1.0)) / np.float32(2.0)
_OTHER = np.array([0.75, 1.5, 2.25], np.float32)
_INTS = np.array([[6, 3, 12], [1, 8, 5]], np.int32)
_SHIFTS = np.array([1, 2, 0], np.int32)


def _unary(
    op_type: str,
    kernel: Callable[..., Any],
    twin: Callable[..., Any],
    sample: Any,
    doc: str,
    gradient: Any = "auto",
    accepts: str = "f",
) -> Unary:
    register(
        op_type,
        kernel,
        infer=same_as_input(),
        numpy_kernel=lambda x: np.asarray(twin(x)).astype(x.dtype),
        gradient=gradient,
        accepts=accepts,
        cases=lambda: [Case((sample,))],
    )

    def function(x: Any, name: str | None = None) -> Tensor:
        return make(op_type, {"x": x}, name=name)

    function.__name__ = function.__qualname__ = op_type.lower()
    function.__doc__ = f"{doc}\n\nArgs:\n    x: floats.\n    name: the operation's name."
    return function


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Computes 16-bit inputs in float32, as JAX lacks 16-bit forms of these functions."""

    def call(*inputs: Any) -> Any:
        arrays = [jnp.asarray(each) for each in inputs]
        dtype = jnp.promote_types(arrays[0].dtype, np.float32)
        return function(*(each.astype(dtype) for each in arrays)).astype(arrays[0].dtype)

    return call


_SQRT_PI = float(np.sqrt(np.pi))


def _trigamma(x: Any) -> Any:
    return _polygamma(jnp.ones((), x.dtype), x)


def _hurwitz_zeta(x: Any, q: Any) -> Any:
    # JAX returns NaN at infinity, where the sum is 0.
    infinite = jnp.isposinf(q) & (x > 1)
    found = _wide(jax.scipy.special.zeta)(x, jnp.where(infinite, 1, q))
    return jnp.where(infinite, jnp.zeros((), x.dtype), found)


def _derivative_of_digamma(n: Any, x: Any) -> Any:
    infinite = jnp.isposinf(x) & (n > 0)
    whole = jnp.where(n == jnp.floor(n), n, -1).astype(np.int32)  # -1 gives NaN, as 0.5 does
    found = _wide(lambda x: jax.scipy.special.polygamma(whole, x))(jnp.where(infinite, 1, x))
    return jnp.where(infinite, jnp.zeros((), x.dtype), found)


_zeta: Callable[..., Any] = with_partials(
    _hurwitz_zeta, None, lambda t, y, x, q: t * (-x * _zeta(x + 1, q))
)
_polygamma: Callable[..., Any] = with_partials(
    _derivative_of_digamma, None, lambda t, y, n, x: t * _polygamma(n + 1, x)
)
_digamma = with_partials(
    # At 0 it is NaN in TensorFlow, and in JAX 0.10.
    lambda x: jnp.where(x == 0, jnp.nan, _wide(jax.scipy.special.digamma)(x)),
    lambda t, y, x: t * _trigamma(x),
)
_bessel_i0 = with_partials(_wide(jax.scipy.special.i0), lambda t, y, x: t * _bessel_i1(x))
_bessel_i1: Callable[..., Any] = with_partials(
    _wide(jax.scipy.special.i1),
    # At 0 it is 1/2.
    lambda t, y, x: t * jnp.where(x == 0, 0.5, _bessel_i0(x) - y / jnp.where(x == 0, 1, x)),
)

asinh = _unary(
    "Asinh", jnp.arcsinh, np.arcsinh, _ANY, "The inverse hyperbolic sine of x.", accepts="fc"
)
acosh = _unary(
    "Acosh",
    with_partials(jnp.arccosh, lambda t, y, x: t / jnp.sinh(y)),
    np.arccosh,
    _ABOVE_ONE,
    "The inverse hyperbolic cosine of x.",
    accepts="fc",
)
atanh = _unary(
    "Atanh", jnp.arctanh, np.arctanh, _UNIT, "The inverse hyperbolic tangent of x.", accepts="fc"
)
erfc = _unary("Erfc", jax.scipy.special.erfc, scipy_special.erfc, _ANY, "1 - erf(x).")
erfinv = _unary(
    "Erfinv",
    with_partials(
        _wide(jax.lax.erf_inv), lambda t, y, x: t * (0.5 * _SQRT_PI * jnp.exp(jnp.square(y)))
    ),
    scipy_special.erfinv,
    _UNIT,
    "The inverse of erf.",
)
ndtri = _unary(
    "Ndtri",
    with_partials(
        _wide(jax.scipy.special.ndtri),
        lambda t, y, x: t * (np.sqrt(2).item() * _SQRT_PI * jnp.exp(jnp.square(y) / 2)),
    ),
    scipy_special.ndtri,
    _INSIDE,
    "The quantile function of the standard normal distribution, the inverse of its CDF.",
)
log_ndtr = _unary(
    "LogNdtr",
    _wide(jax.scipy.special.log_ndtr),
    scipy_special.log_ndtr,
    _ANY,
    "The logarithm of the distribution function of the normal distribution.",
)
digamma = _unary(
    "Digamma",
    _digamma,
    lambda x: np.where(x == 0, np.nan, scipy_special.digamma(x)),
    _POSITIVE,
    "The derivative of the logarithm of the gamma function.",
)
bessel_i0e = _unary(
    "BesselI0e",
    _wide(jax.scipy.special.i0e),
    scipy_special.i0e,
    _ANY,
    "The modified Bessel function of the first kind of order 0, times exp(-|x|).",
)
bessel_i1e = _unary(
    "BesselI1e",
    _wide(jax.scipy.special.i1e),
    scipy_special.i1e,
    _ANY,
    "The modified Bessel function of the first kind of order 1, times exp(-|x|).",
)
bessel_i0 = _unary(
    "BesselI0",
    _bessel_i0,
    scipy_special.i0,
    _ANY,
    "The modified Bessel function of the first kind of order 0.",
)
bessel_i1 = _unary(
    "BesselI1",
    _bessel_i1,
    scipy_special.i1,
    _ANY,
    "The modified Bessel function of the first kind of order 1.",
)
rint = _unary(
    "Rint", jnp.rint, np.rint, _ANY, "The nearest integer, halves rounded to even.", gradient=None
)


def _binary(
    op_type: str,
    kernel: Callable[..., Any],
    twin: Callable[..., Any],
    samples: tuple[Any, Any],
    doc: str,
    accepts: str = "f",
    gradient: Any = "auto",
    parameters: tuple[str, str] = ("x", "y"),
) -> Binary:
    register(
        op_type,
        kernel,
        infer=broadcast(),
        numpy_kernel=lambda x, y: np.asarray(twin(x, y)).astype(x.dtype),
        gradient=gradient,
        accepts=accepts,
        cases=lambda: [Case(samples)],
    )
    return function_of_two(op_type, doc, parameters)


def _no_nan(x: Any, y: Any) -> Any:
    return jnp.where(y == 0, jnp.zeros((), x.dtype), x * y)


def _incomplete_gamma(function: Callable[..., Any], lower: bool, module: Any = jnp) -> Any:
    """The function outside its domain (where it is NaN), of infinite orders and points, and the
    lower one at 0, as in TensorFlow.
    """

    def kernel(a: Any, x: Any) -> Any:
        limited = module.isposinf(a) & (x >= 0) & ~module.isinf(x)
        zero = ((x == 0) & lower) | (module.isposinf(a) & module.isposinf(x))
        found = function(module.where(limited, 1, a), module.where(limited, 1, x))
        found = module.where((a <= 0) | (x < 0), module.asarray(np.nan, found.dtype), found)
        found = module.where(limited, module.asarray(1 - lower, found.dtype), found)
        return module.where(zero, module.asarray(0, found.dtype), found)

    return kernel


multiply_no_nan = _binary(
    "MulNoNan",
    with_partials(
        _no_nan,
        lambda t, z, x, y: t * y,  # the product's derivatives, at 0, too
        lambda t, z, x, y: t * x,
    ),
    lambda x, y: np.where(y == 0, 0, x * y),
    (_ANY, _OTHER),
    "x * y, or 0 where y is 0, even if x is infinite or NaN.",
    accepts="fc",
)
xlogy = _binary(
    "Xlogy",
    lambda x, y: jnp.where(x == 0, jnp.zeros((), x.dtype), x * jnp.log(jnp.where(x == 0, 1, y))),
    lambda x, y: np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y))),
    (_POSITIVE, _OTHER),
    "x * log(y), or 0 where x is 0.",
    accepts="fc",
)
xdivy = _binary(
    "Xdivy",
    lambda x, y: jnp.where(x == 0, jnp.zeros((), x.dtype), x / jnp.where(x == 0, 1, y)),
    lambda x, y: np.where(x == 0, 0, x / y),
    (_ANY, _OTHER),
    "x / y, or 0 where x is 0.",
    accepts="fc",
)
xlog1py = _binary(
    "Xlog1py",
    lambda x, y: jnp.where(x == 0, jnp.zeros((), x.dtype), x * jnp.log1p(jnp.where(x == 0, 1, y))),
    lambda x, y: np.where(x == 0, 0, x * np.log1p(np.where(x == 0, 1, y))),
    (_POSITIVE, _OTHER),
    "x * log(1 + y), or 0 where x is 0.",
    accepts="fc",
)
igamma = _binary(
    "Igamma",
    _incomplete_gamma(_wide(jax.scipy.special.gammainc), True),
    _incomplete_gamma(scipy_special.gammainc, True, np),
    (np.broadcast_to(_OTHER, (2, 3)).copy(), _POSITIVE),
    "The lower regularized incomplete gamma function of order a, at x.",
    parameters=("a", "x"),
)
igammac = _binary(
    "Igammac",
    _incomplete_gamma(_wide(jax.scipy.special.gammaincc), False),
    _incomplete_gamma(scipy_special.gammaincc, False, np),
    (np.broadcast_to(_OTHER, (2, 3)).copy(), _POSITIVE),
    "The upper regularized incomplete gamma function of order a, at x.",
    parameters=("a", "x"),
)


polygamma = _binary(
    "Polygamma",
    _polygamma,
    lambda n, x: np.where(
        n == np.floor(n), scipy_special.polygamma(np.maximum(n, 0).astype(int), x), np.nan
    ),
    (np.array([1.0, 2.0, 3.0], np.float32), _POSITIVE + np.float32(0.5)),
    "The derivative of order a of the digamma function, at x.",
    parameters=("a", "x"),
    accepts="d",
)
zeta = _binary(
    "Zeta",
    _zeta,
    scipy_special.zeta,
    (_ABOVE_ONE + np.float32(0.5), _OTHER),
    "The Hurwitz zeta function: the sum of (k + q)^-x over all k from 0.",
    parameters=("x", "q"),
    accepts="d",
)
nextafter = _binary(
    "NextAfter",
    with_partials(jnp.nextafter, passed, None),
    np.nextafter,
    (_ANY, _OTHER),
    "The next representable number after x1 in the direction of x2.",
    parameters=("x1", "x2"),
    accepts="d",
)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the beta function, along the last dimension."""
    with get_default_graph().name_scope(name or "lbeta"):
        values = convert_to_tensor(x)
        one = reduce.reduce_sum(elementwise.lgamma(values), [-1])
        return one - elementwise.lgamma(reduce.reduce_sum(values, [-1]))


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function."""
    return make("Betainc", {"a": a, "b": b, "x": x}, name=name, same_dtype=True)


def _betainc_gradient(op: Any, dy: Tensor) -> list[Any]:
    from estimatorkit.core.vjp import vjp

    return [None, None, *vjp(op, [dy], (2,))]  # as in TensorFlow: with respect to x only


register(
    "Betainc",
    _wide(jax.scipy.special.betainc),
    infer=broadcast(),
    numpy_kernel=lambda a, b, x: scipy_special.betainc(a, b, x).astype(a.dtype),
    gradient=_betainc_gradient,
    accepts="d",
    cases=lambda: [Case((_POSITIVE, np.broadcast_to(_OTHER, (2, 3)).copy(), _INSIDE))],
)


def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse of erfc, for x in (0, 2)."""
    with get_default_graph().name_scope(name or "erfcinv"):
        half: Tensor = ndtri(0.5 * convert_to_tensor(x, name="start"))
        return half * float(-np.sqrt(0.5))


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    with get_default_graph().name_scope(name or "LogSigmoid") as scope:
        return elementwise.negative(
            make("Softplus", {"features": -convert_to_tensor(x, name="x")}), name=scope
        )


# -- complex numbers

_COMPLEX = np.array([1.0 + 2.0j, -0.5j, 3.0 - 1.0j], np.complex64)


def _real_dtype(dtype: Any) -> Any:
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def _part(op_type: str, kernel: Callable[..., Any], twin: Callable[..., Any], doc: str) -> Any:
    register(
        op_type,
        lambda x: kernel(jnp.asarray(x)),
        infer=lambda inputs, attrs: [Spec(_real_dtype(inputs[0].dtype), inputs[0].shape)],
        numpy_kernel=twin,
        accepts="fc",
        cases=lambda: [Case((_COMPLEX,))],
    )

    def function(input: Any, name: str | None = None) -> Tensor:
        return make(op_type, {"input": input}, name=name)

    function.__name__ = function.__qualname__ = op_type.lower()
    function.__doc__ = f"{doc}\n\nArgs:\n    input: a tensor.\n    name: the operation's name."
    return function


_real = _part("Real", jnp.real, np.real, "The real part.")
_imag = _part("Imag", jnp.imag, np.imag, "The imaginary part.")


def _angle(x: Any, module: Any = jnp) -> Any:
    if x.dtype.kind == "c":
        return module.angle(x)
    return module.where(x < 0, np.asarray(np.pi, x.dtype), np.zeros((), x.dtype))


angle = _part(
    "Angle",
    _angle,
    lambda x: _angle(x, np),
    "The angles of complex numbers in radians; of real ones 0 or pi.",
)


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part of complex numbers; real tensors are returned unchanged.

    Raises:
        TypeError: the input holds no numbers.
    """
    tensor = _numbers(input, "input")
    found: Tensor = _real(tensor, name) if tensor.dtype.is_complex else tensor
    return found


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part of complex numbers; zeros for others."""
    tensor = convert_to_tensor(input, name="input")
    if tensor.dtype.is_complex:
        found: Tensor = _imag(tensor, name)
        return found
    return _zeros_like(tensor, name)


def _zeros_like(x: Tensor, name: str | None = None) -> Tensor:
    return make("ZerosLike", {"x": x}, {"dtype": x.dtype}, name or "zeros_like")


def _numbers(value: Any, name: str) -> Tensor:
    tensor = convert_to_tensor(value, name=name)
    if tensor.dtype.kind not in "fic":
        raise type_error(
            f"Expected numeric or variant tensor, got dtype {tensor.dtype!r}",
            received=tensor,
            made_at=tensor.op.source,
        )
    return tensor


def _float_part(x: Any) -> Any:
    return x if x.dtype == np.float64 else x.astype(np.float32)


register(
    "Conj",
    lambda x: jnp.conj(jnp.asarray(x)),
    infer=same_as_input(),
    numpy_kernel=np.conj,
    accepts="c",
    cases=lambda: [Case((_COMPLEX,))],
)
register(
    "Complex",
    lambda real, imag: jax.lax.complex(*map(_float_part, jnp.broadcast_arrays(real, imag))),
    infer=lambda inputs, attrs: [
        Spec(
            complex128 if inputs[0].dtype is float64 else complex64,
            broadcast()(inputs, attrs)[0].shape,
        )
    ],
    cases=lambda: [Case((_ANY, _OTHER), {}, (_ANY + 1j * _OTHER).astype(np.complex64))],
)


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; real tensors are returned unchanged."""
    tensor = _numbers(x, "x")
    return make("Conj", {"x": tensor}, name=name) if tensor.dtype.is_complex else tensor


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Builds complex numbers from real and imaginary parts, both float32 or both float64."""
    tensor = convert_to_tensor(real, name="real")
    if tensor.dtype not in (float32, float64):
        raise type_error(
            "real and imag have incorrect types",
            expected="float32 or float64",
            received=tensor,
        )
    return make("Complex", {"real": tensor, "imag": imag}, name=name, same_dtype=True)


# -- polynomials


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
    """Evaluates a polynomial by Horner's method.

    Args:
        coeffs: a list of tensors, that of the highest power first; an empty list gives 0.
        x: where to evaluate it; the result has its dtype.

    Raises:
        ValueError: the coefficients are not a list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    with get_default_graph().name_scope(name or "polyval"):
        at = convert_to_tensor(x, name="x")
        terms = [convert_to_tensor(each, at.dtype) for each in coeffs]
        total = terms[0] if terms else _zeros_like(at)
        for each in terms[1:]:
            total = each + total * at
        return total


# -- bits


def _bits(op_type: str, kernel: Any, twin: Any, samples: tuple[Any, Any], doc: str) -> Any:
    return _binary(op_type, kernel, twin, samples, doc, accepts="i", gradient=None)


_pair = (_INTS, np.array([3, 5, 10], np.int32))
bitwise_and = _bits("BitwiseAnd", jnp.bitwise_and, np.bitwise_and, _pair, "Bitwise AND of x and y.")
bitwise_or = _bits("BitwiseOr", jnp.bitwise_or, np.bitwise_or, _pair, "Bitwise OR of x and y.")
bitwise_xor = _bits("BitwiseXor", jnp.bitwise_xor, np.bitwise_xor, _pair, "Bitwise XOR of x and y.")


def _shift(op_type: str, shift: Callable[[Any, Any], Any], doc: str) -> Any:
    def kernel(x: Any, y: Any, module: Any = jnp) -> Any:
        return shift(x, module.clip(y, 0, 8 * x.dtype.itemsize - 1))

    twin = functools.partial(kernel, module=np)
    doc = f"{doc} Where y is out of range, by none or by all but one."
    return _bits(op_type, kernel, twin, (_INTS, _SHIFTS), doc)


left_shift = _shift("LeftShift", lambda x, y: x << y, "x shifted left by y bits.")
right_shift = _shift("RightShift", lambda x, y: x >> y, "x shifted right by y bits.")
register(
    "Invert",
    jnp.bitwise_not,
    infer=same_as_input(),
    numpy_kernel=np.bitwise_not,
    gradient=None,
    accepts="i",
    cases=lambda: [Case((_INTS,))],
)


def invert(x: Any, name: str | None = None) -> Tensor:
    """Inverts all bits of the integers x."""
    return make("Invert", {"x": x}, name=name)


# -- made of others


def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """The sum of a list of tensors (see `add_n`)."""
    return elementwise.add_n(inputs, name=name or "AccumulateNV2")


def floor_div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x // y, rounded down."""
    return elementwise.floordiv(x, y, name or "FloorDiv")


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """A scalar times a tensor, or times the rows of an `IndexedSlices`.

    Raises:
        ValueError: `scalar` is not a scalar, or its shape is not known.
    """
    from estimatorkit.core.indexed_slices import IndexedSlices

    if isinstance(x, IndexedSlices):
        return IndexedSlices(  # type: ignore[return-value]
            scalar_mul(scalar, x.all_values, name), x.all_indices, x.dense_shape
        )
    values = convert_to_tensor(x, name="x")
    factor = convert_to_tensor(scalar, values.dtype, name="scalar")
    if factor.shape.rank != 0:
        raise value_error(
            f"The input scalar must be a 0-D value. Received shape {factor.shape}",
            received=factor,
            made_at=factor.op.source,
        )
    return elementwise.multiply(factor, values, name=name)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The population variance along axes, or of all elements; real for complex numbers.

    Raises:
        TypeError: the input holds integers.
    """
    with get_default_graph().name_scope(name or "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        if x.dtype.is_integer:
            raise type_error(
                f"Input must be either real or complex. Received integer type {x.dtype!r}",
                received=x,
                made_at=x.op.source,
                hint="use cast(x, float32)",
            )
        difference = x - reduce.reduce_mean(x, axis, True)
        squares = real(difference * conj(difference))
        return reduce.reduce_mean(squares, axis, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The population standard deviation along axes, or of all elements."""
    with get_default_graph().name_scope(name or "reduce_std"):
        return elementwise.sqrt(reduce_variance(input_tensor, axis, keepdims))


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The Euclidean norm along axes, or of all elements.

    It has the input's dtype; that of integers is rounded towards zero.
    """
    with get_default_graph().name_scope(name or "EuclideanNorm"):
        x = _numbers(input_tensor, "input_tensor")
        wide = elementwise.cast(x, float64) if x.dtype.is_integer else x
        total = reduce.reduce_sum(wide * conj(wide), axis, keepdims)
        return elementwise.cast(elementwise.sqrt(total), x.dtype)


def _cumprod(x: Any, axis: int, exclusive: bool, reverse: bool, module: Any = jnp) -> Any:
    x = module.asarray(x)
    if reverse:
        x = module.flip(x, axis)
    if exclusive:
        x = reduce.moved_by_one(x, axis, 1, module)
    result = module.cumprod(x, axis=axis, dtype=x.dtype)
    return module.flip(result, axis) if reverse else result


register_with_axis(
    "Cumprod",
    _cumprod,
    infer=reduce.infer_along_axis,
    unknown=same_as_input(),
    numpy_kernel=lambda x, axis, exclusive, reverse: _cumprod(x, axis, exclusive, reverse, np),
    accepts="fic",
    cases=lambda: [
        Case((_POSITIVE,), {"axis": 1, "exclusive": False, "reverse": False}),
        Case((_POSITIVE,), {"axis": 0, "exclusive": True, "reverse": True}),
    ],
)


def _cumulative_logsumexp(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    axis = in_range(axis, x.ndim, "cumulative_logsumexp")
    total = jax.lax.cumlogsumexp(x, axis=axis, reverse=reverse)
    if not exclusive:
        return total
    last = x.shape[axis] - 1
    least = jnp.full_like(jax.lax.slice_in_dim(x, 0, min(1, last + 1), axis=axis), -np.inf)
    start, stop = (1, last + 1) if reverse else (0, last)
    kept = jax.lax.slice_in_dim(total, start, max(start, stop), axis=axis)
    return jnp.concatenate([kept, least] if reverse else [least, kept], axis)


register_with_axis(
    "CumulativeLogsumexp",
    _cumulative_logsumexp,
    infer=reduce.infer_along_axis,
    unknown=same_as_input(),
    accepts="f",
    cases=lambda: [
        Case(
            (_ANY,),
            {"axis": 1, "exclusive": False, "reverse": False},
            np.log(np.cumsum(np.exp(_ANY), axis=1)),
        ),
        Case(
            (np.log(np.array([1.0, 2.0, 3.0], np.float32)),),
            {"axis": 0, "exclusive": False, "reverse": True},
            np.log(np.array([6.0, 5.0, 3.0], np.float32)),
        ),
    ],
)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """log(cumsum(exp(x))) along an axis, without overflow; see `cumprod` for the arguments."""
    inputs, attrs = with_axis({"x": x}, axis, "cumulative_logsumexp")
    attrs = {**attrs, "exclusive": exclusive, "reverse": reverse}
    return make("CumulativeLogsumexp", inputs, attrs, name)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The cumulative product along an axis.

    Args:
        x: a tensor.
        axis: the axis.
        exclusive: whether to leave out the element itself.
        reverse: whether to start from the end.
    """
    inputs, attrs = with_axis({"x": x}, axis, "cumprod")
    return make("Cumprod", inputs, {**attrs, "exclusive": exclusive, "reverse": reverse}, name)
