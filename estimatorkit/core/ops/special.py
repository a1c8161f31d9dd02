"""Functions beyond the common ones: inverse hyperbolic, gamma, beta, complex numbers, bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import complex64, complex128, float32, float64
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops import elementwise, reduce
from estimatorkit.core.ops.elementwise import function_of_two
from estimatorkit.core.registry import Case, Spec, broadcast, register, same_as_input
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import LazyFunctions

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
) -> Callable[..., Tensor]:
    register(
        op_type,
        kernel,
        infer=same_as_input(),
        numpy_kernel=lambda x: np.asarray(twin(x)).astype(x.dtype),
        gradient=gradient,
        accepts="f",
        cases=lambda: [Case((sample,))],
    )

    def function(x: Any, name: str | None = None) -> Tensor:
        return make(op_type, {"x": x}, name=name)

    function.__name__ = function.__qualname__ = op_type.lower()
    function.__doc__ = f"{doc}\n\nArgs:\n    x: floats.\n    name: the operation's name."
    return function


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """JAX has no 16-bit forms of these: computed in float32."""

    def call(*inputs: Any) -> Any:
        arrays = [jnp.asarray(each) for each in inputs]
        dtype = jnp.promote_types(arrays[0].dtype, np.float32)
        return function(*(each.astype(dtype) for each in arrays)).astype(arrays[0].dtype)

    return call


asinh = _unary("Asinh", jnp.arcsinh, np.arcsinh, _ANY, "The inverse hyperbolic sine of x.")
acosh = _unary("Acosh", jnp.arccosh, np.arccosh, _ABOVE_ONE, "The inverse hyperbolic cosine of x.")
atanh = _unary("Atanh", jnp.arctanh, np.arctanh, _UNIT, "The inverse hyperbolic tangent of x.")
erfc = _unary("Erfc", jax.scipy.special.erfc, scipy_special.erfc, _ANY, "1 - erf(x).")
erfinv = _unary(
    "Erfinv", _wide(jax.lax.erf_inv), scipy_special.erfinv, _UNIT, "The inverse of erf."
)
ndtri = _unary(
    "Ndtri",
    _wide(jax.scipy.special.ndtri),
    scipy_special.ndtri,
    _INSIDE,
    "The quantile of the normal distribution.",
)
digamma = _unary(
    "Digamma",
    _wide(jax.scipy.special.digamma),
    scipy_special.digamma,
    _POSITIVE,
    "The derivative of the logarithm of the gamma function.",
)
bessel_i0e = _unary(
    "BesselI0e",
    _wide(jax.scipy.special.i0e),
    scipy_special.i0e,
    _ANY,
    "The modified Bessel function of order 0, times exp(-|x|).",
)
bessel_i1e = _unary(
    "BesselI1e",
    _wide(jax.scipy.special.i1e),
    scipy_special.i1e,
    _ANY,
    "The modified Bessel function of order 1, times exp(-|x|).",
)
rint = _unary(
    "Rint", jnp.rint, np.rint, _ANY, "The nearest integer, halves to even.", gradient=None
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
) -> Callable[..., Tensor]:
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


multiply_no_nan = _binary(
    "MulNoNan",
    _no_nan,
    lambda x, y: np.where(y == 0, 0, x * y),
    (_ANY, _OTHER),
    "x y, and 0 where y is 0 even if x is infinite or NaN.",
)
xlogy = _binary(
    "Xlogy",
    _wide(jax.scipy.special.xlogy),
    scipy_special.xlogy,
    (_POSITIVE, _OTHER),
    "x log(y), and 0 where x is 0.",
)
xdivy = _binary(
    "Xdivy",
    lambda x, y: jnp.where(x == 0, jnp.zeros((), x.dtype), x / jnp.where(x == 0, 1, y)),
    lambda x, y: np.where(x == 0, 0, x / y),
    (_ANY, _OTHER),
    "x / y, and 0 where x is 0.",
)
igamma = _binary(
    "Igamma",
    _wide(jax.scipy.special.gammainc),
    scipy_special.gammainc,
    (np.broadcast_to(_OTHER, (2, 3)).copy(), _POSITIVE),
    "The lower regularized incomplete gamma function of order a, at x.",
    gradient=None,
    parameters=("a", "x"),
)
igammac = _binary(
    "Igammac",
    _wide(jax.scipy.special.gammaincc),
    scipy_special.gammaincc,
    (np.broadcast_to(_OTHER, (2, 3)).copy(), _POSITIVE),
    "The upper regularized incomplete gamma function of order a, at x.",
    gradient=None,
    parameters=("a", "x"),
)
polygamma = _binary(
    "Polygamma",
    _wide(lambda n, x: jax.scipy.special.polygamma(n.astype(np.int32), x)),
    lambda n, x: scipy_special.polygamma(n.astype(int), x),
    (np.array([1.0, 2.0, 3.0], np.float32), _POSITIVE + np.float32(0.5)),
    "The derivative of order a of the digamma function, at x.",
    gradient=None,
    parameters=("a", "x"),
)
zeta = _binary(
    "Zeta",
    _wide(jax.scipy.special.zeta),
    scipy_special.zeta,
    (_ABOVE_ONE + np.float32(0.5), _OTHER),
    "The Hurwitz zeta function: the sum of (k + q)^-x over all k from 0.",
    gradient=None,
    parameters=("x", "q"),
)
nextafter = _binary(
    "NextAfter",
    jnp.nextafter,
    np.nextafter,
    (_ANY, _OTHER),
    "The next number after x1 towards x2.",
    gradient=None,
    parameters=("x1", "x2"),
)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of the last dimension."""
    with get_default_graph().name_scope(name or "lbeta"):
        values = convert_to_tensor(x)
        one = reduce.reduce_sum(elementwise.lgamma(values), [-1])
        return one - elementwise.lgamma(reduce.reduce_sum(values, [-1]))


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function."""
    return make("Betainc", {"a": a, "b": b, "x": x}, name=name, same_dtype=True)


register(
    "Betainc",
    _wide(jax.scipy.special.betainc),
    infer=broadcast(),
    numpy_kernel=lambda a, b, x: scipy_special.betainc(a, b, x).astype(a.dtype),
    gradient=None,
    accepts="f",
    cases=lambda: [Case((_POSITIVE, np.broadcast_to(_OTHER, (2, 3)).copy(), _INSIDE))],
)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    from estimatorkit.core.ops.nn import softplus

    with get_default_graph().name_scope(name or "LogSigmoid") as scope:
        return elementwise.negative(softplus(-convert_to_tensor(x, name="x")), name=scope)


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


real = _part("Real", jnp.real, np.real, "The real part.")
imag = _part("Imag", jnp.imag, np.imag, "The imaginary part.")
angle = _part("Angle", jnp.angle, np.angle, "The angle of complex numbers (radians).")


def _float_part(x: Any) -> Any:
    return x if x.dtype == np.float64 else x.astype(np.float32)


register(
    "Conj",
    lambda x: jnp.conj(jnp.asarray(x)),
    infer=same_as_input(),
    numpy_kernel=np.conj,
    accepts="fic",
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
    """The complex conjugate; real tensors as they are."""
    tensor = convert_to_tensor(x, name="x")
    return make("Conj", {"x": tensor}, name=name) if tensor.dtype.is_complex else tensor


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Complex numbers of their real and imaginary parts, both float32 or both float64."""
    from estimatorkit.core.errors import explain

    tensor = convert_to_tensor(real, name="real")
    if tensor.dtype not in (float32, float64):
        raise TypeError(
            explain(
                "real and imag have incorrect types",
                expected="float32 or float64",
                received=tensor,
            )
        )
    return make("Complex", {"real": tensor, "imag": imag}, name=name, same_dtype=True)


# -- bits


def _bits(op_type: str, kernel: Any, twin: Any, samples: tuple[Any, Any], doc: str) -> Any:
    return _binary(op_type, kernel, twin, samples, doc, accepts="i", gradient=None)


_pair = (_INTS, np.array([3, 5, 10], np.int32))
bitwise_and = _bits("BitwiseAnd", jnp.bitwise_and, np.bitwise_and, _pair, "x & y, bit by bit.")
bitwise_or = _bits("BitwiseOr", jnp.bitwise_or, np.bitwise_or, _pair, "x | y, bit by bit.")
bitwise_xor = _bits("BitwiseXor", jnp.bitwise_xor, np.bitwise_xor, _pair, "x ^ y, bit by bit.")
left_shift = _bits(
    "LeftShift", jnp.left_shift, np.left_shift, (_INTS, _SHIFTS), "x moved left by y bits."
)
right_shift = _bits(
    "RightShift", jnp.right_shift, np.right_shift, (_INTS, _SHIFTS), "x moved right by y bits."
)
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
    """All bits of x flipped."""
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
    """A scalar times a tensor, or times the rows of an `IndexedSlices`."""
    from estimatorkit.core.indexed_slices import IndexedSlices

    if isinstance(x, IndexedSlices):
        return IndexedSlices(  # type: ignore[return-value]
            elementwise.multiply(scalar, x.values), x.indices, x.dense_shape
        )
    return elementwise.multiply(scalar, x, name=name)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The variance (of the population) along axes, or of all elements."""
    with get_default_graph().name_scope(name or "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        mean = reduce.reduce_mean(x, axis, True)
        return reduce.reduce_mean(elementwise.square(x - mean), axis, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The standard deviation (of the population) along axes, or of all elements."""
    with get_default_graph().name_scope(name or "reduce_std"):
        return elementwise.sqrt(reduce_variance(input_tensor, axis, keepdims))


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The root of the sum of squares along axes, or of all elements."""
    with get_default_graph().name_scope(name or "EuclideanNorm"):
        return elementwise.sqrt(reduce.reduce_sum(elementwise.square(input_tensor), axis, keepdims))


def _cumprod(x: Any, axis: int, exclusive: bool, reverse: bool, module: Any = jnp) -> Any:
    x = module.asarray(x)
    if reverse:
        x = module.flip(x, axis)
    result = module.cumprod(x, axis=axis, dtype=x.dtype)
    if exclusive:
        ones = module.ones_like(module.take(x, np.array([0]), axis=axis))
        rest = module.take(result, np.arange(x.shape[axis] - 1), axis=axis)
        result = module.concatenate([ones, rest], axis)
    return module.flip(result, axis) if reverse else result


register(
    "Cumprod",
    _cumprod,
    infer=same_as_input(),
    numpy_kernel=lambda x, axis, exclusive, reverse: _cumprod(x, axis, exclusive, reverse, np),
    accepts="fic",
    cases=lambda: [
        Case((_POSITIVE,), {"axis": 1, "exclusive": False, "reverse": False}),
        Case((_POSITIVE,), {"axis": 0, "exclusive": True, "reverse": True}),
    ],
)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The product of all elements up to each along an axis.

    Args:
        x: a tensor.
        axis: the axis.
        exclusive: leave out the element itself.
        reverse: go from the end.
        name: the operation's name.
    """
    attrs = {"axis": int(axis), "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return make("Cumprod", {"x": x}, attrs, name)
