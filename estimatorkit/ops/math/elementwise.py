"""Element-wise ops with NumPy broadcasting: arithmetic, comparisons, logic, functions.

One row of the tables below is one op: its type (also its default name), its JAX function and its
NumPy reference. Inputs of a binary op must have one dtype; Python numbers take the dtype of the
other operand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.composite import on_values
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool_,
    float32,
    float64,
    int32,
    int64,
)
from estimatorkit.core.errors import UnimplementedError, type_error
from estimatorkit.core.faults import Fault, FaultTest, at, refused
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import Case, Spec, check_allowed, register, same_as_input
from estimatorkit.core.sizes import is_symbolic
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor, operators
from estimatorkit.lazy import LazyFunctions
from estimatorkit.ops.math.broadcasting import broadcast
from estimatorkit.ops.math.derivatives import guarded, passed, with_partials


def _nonzero_divisor(position: int, divisor: Any) -> list[Fault]:
    """The test that the divisor of integers is not 0."""
    if divisor.dtype.kind not in "iu":
        return []

    def text(index: tuple[int, ...], _: tuple[int, ...]) -> str:
        return f"Integer division by zero: y{at(index)} = 0"

    return [Fault(position, divisor == 0, (), text)]


scipy_special = LazyFunctions("scipy.special")

_ANY = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 1.25]], np.float32)
_OTHER = np.array([0.5, -1.25, 1.5], np.float32)
_POSITIVE = np.abs(_ANY) + np.float32(0.1)
_UNIT = np.tanh(_ANY) * np.float32(0.9)
_INTS = np.array([[7, -3, 4], [2, 9, -6]], np.int32)
_OTHER_INTS = np.array([2, 3, -4], np.int32)
_BOOLS = np.array([[True, False], [False, True]])
# Functions that are 0 at 0 also apply to sparse tensors, as in TensorFlow.
_OF_SPARSE = frozenset({"Neg", "Abs", "Sign", "Square", "Sqrt", "Erf", "Tanh"})


class Unary(Protocol):
    """The type of a public function of one tensor."""

    def __call__(self, x: Any, name: str | None = None) -> Tensor: ...


class Binary(Protocol):
    """The type of a public function of two tensors."""

    def __call__(self, x: Any, y: Any, name: str | None = None) -> Tensor: ...


def _unary(
    op_type: str,
    kernel: Callable[..., Any],
    numpy_kernel: Callable[..., Any],
    sample: Any,
    doc: str,
    result: DType | None = None,
    gradient: Any = "auto",
    accepts: str = "fc",
    infer: Any = None,
    row_gradient: Any = None,
) -> Unary:
    register(
        op_type,
        kernel,
        infer=infer or (broadcast(result) if result else same_as_input()),
        numpy_kernel=numpy_kernel,
        gradient=gradient,
        row_gradient=row_gradient,
        accepts=accepts,
        cases=lambda: [Case((sample,))],
    )

    def function(x: Any, name: str | None = None) -> Tensor:
        return make(op_type, {"x": x}, name=name)

    function.__name__ = function.__qualname__ = op_type.lower()
    or_sparse = " or `SparseTensor`" if op_type in _OF_SPARSE else ""
    function.__doc__ = (
        f"{doc}\n\nArgs:\n    x: a tensor{or_sparse}.\n    name: the operation's name."
    )
    return on_values(SparseTensor)(function) if op_type in _OF_SPARSE else function


def _binary(
    op_type: str,
    kernel: Callable[..., Any],
    numpy_kernel: Callable[..., Any],
    samples: tuple[Any, Any],
    doc: str,
    result: DType | None = None,
    gradient: Any = "auto",
    accepts: str = "fic",
    parameters: tuple[str, str] = ("x", "y"),
    fault: FaultTest | None = None,
) -> Binary:
    register(
        op_type,
        kernel,
        fault=fault,
        broadcasts=True,
        infer=broadcast(result),
        numpy_kernel=numpy_kernel,
        gradient=gradient,
        accepts=accepts,
        cases=lambda: [Case(samples), Case((samples[0], samples[0][:, :1]))],
    )
    return function_of_two(op_type, doc, parameters)


def function_of_two(op_type: str, doc: str, parameters: tuple[str, str] = ("x", "y")) -> Binary:
    """The public function of a binary operation.

    Args:
        op_type: the operation's type.
        doc: the first line of its docstring.
        parameters: the operands' names, those of TensorFlow's function.
    """

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return make(op_type, {"x": x, "y": y}, name=name, same_dtype=True)

    signature = inspect.signature(function)
    x, y, *rest = signature.parameters.values()
    signature = signature.replace(
        parameters=[x.replace(name=parameters[0]), y.replace(name=parameters[1]), *rest]
    )

    def renamed(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs)
        return function(*given.args, **given.kwargs)

    if parameters != ("x", "y"):
        vars(renamed)["__signature__"] = signature
    public = function if parameters == ("x", "y") else renamed
    public.__name__ = public.__qualname__ = op_type.lower()
    public.__doc__ = (
        f"{doc}\n\nArgs:\n    {', '.join(parameters)}: tensors of one dtype whose shapes broadcast "
        "together.\n    name: the operation's name."
    )
    return public


# At a tie the gradient goes to the first input, as in TensorFlow (jnp.maximum would split it in
# halves); beside NaN to the second.
def _extreme(function: Callable[..., Any], first: Callable[..., Any]) -> Callable[..., Any]:
    return with_partials(
        function,
        lambda t, z, x, y: jnp.where(first(x, y), t, jnp.zeros((), t.dtype)),
        lambda t, z, x, y: jnp.where(first(x, y), jnp.zeros((), t.dtype), t),
    )


def _exact_quotient(x: Any, y: Any) -> Any:
    """x / y, rounded as a division is.

    XLA multiplies by the reciprocal of a divisor that is constant or broadcast: 49 / 49 would be
    0.99999994, and its floor 0. A divisor that seems to depend on x is divided by.
    """
    return x / y if x.dtype.kind == "c" else x / jnp.where(x != x, x, y)


def _seemingly_of(x: Any, y: Any) -> Any:
    """y as a divisor that seems to depend on x; beside NaN it differs in the last digit."""
    if x.dtype.kind == "c":
        return y
    finfo: Any = jnp.finfo
    return jnp.where(x != x, y * (1 + float(finfo(x.dtype).eps)), y)


_quotient = with_partials(
    _exact_quotient,
    lambda t, z, x, y: t / _seemingly_of(x, y),  # not by the divisor above, NaN beside NaN
    lambda t, z, x, y: t * (-x / y / y),
)


def _rounded_down_quotient(x: Any, y: Any) -> Any:
    x, y = jnp.asarray(x), jnp.asarray(y)
    return jnp.floor(_quotient(x, y)) if x.dtype.kind in "fV" else jnp.floor_divide(x, y)


def _numpy_rounded_down_quotient(x: Any, y: Any) -> Any:
    return np.floor(x / y) if x.dtype.kind in "fV" else np.floor_divide(x, y)


def _logarithm_or_zero(x: Any) -> Any:
    """log(x), or 0 where it has no derivative: so powers of 0 have one by their exponent."""
    inside = x != 0 if x.dtype.kind == "c" else x > 0
    return jnp.where(inside, jnp.log(jnp.where(inside, x, 1)), 0).astype(x.dtype)


def _power_of(x: Any, y: Any) -> Any:
    power = jnp.power(x, y)
    if power.dtype.kind != "c":
        return power
    # XLA's is NaN at 0, where positive powers are 0.
    return jnp.where((x == 0) & (jnp.real(y) > 0), jnp.zeros((), power.dtype), power)


_power: Callable[..., Any] = with_partials(
    _power_of,
    lambda t, z, x, y: t * (y * _power(x, y - 1)),
    lambda t, z, x, y: t * (z * _logarithm_or_zero(x)),
)


def truncated_quotient(x: Any, y: Any) -> Any:
    """x / y, rounded towards zero."""
    if x.dtype.kind in "fV":
        return (jnp if isinstance(x, jax.Array) else np).trunc(x / y)
    rounded_down = x // y
    return rounded_down + ((rounded_down * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)


_floats = (_ANY, _OTHER)
_ints = (_INTS, _OTHER_INTS)

add = _binary("Add", jnp.add, np.add, _floats, "x + y.", accepts="fics")
subtract = _binary("Sub", jnp.subtract, np.subtract, _floats, "x - y.")
multiply = _binary("Mul", jnp.multiply, np.multiply, _floats, "x * y.")
realdiv = _binary(
    "RealDiv", _quotient, np.true_divide, _floats, "x / y of floating inputs.", accepts="fc"
)


def _nonzero(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    if 0 in np.shape(inputs[0]):  # nothing is divided
        return []
    return _nonzero_divisor(1, inputs[1])


floordiv_op = _binary(  # for floats the floor of the quotient, even if one is infinite
    "FloorDiv",
    _rounded_down_quotient,
    _numpy_rounded_down_quotient,
    _ints,
    "x // y, rounded down.",
    fault=_nonzero,
    gradient=None,
    accepts="fi",
)
truncatediv = _binary(
    "TruncateDiv",
    truncated_quotient,
    truncated_quotient,
    _ints,
    "x / y, rounded towards zero.",
    fault=_nonzero,
    gradient=None,
    accepts="fi",
)
truncatemod = _binary(
    "TruncateMod",
    with_partials(jnp.fmod, passed, lambda t, z, x, y: -t * jnp.trunc(x / y)),
    np.fmod,
    _ints,
    "x - y truncatediv(x, y): the remainder with the sign of x, as in C.",
    fault=_nonzero,
    accepts="fx",
)
floormod = _binary(
    "FloorMod",
    with_partials(jnp.mod, passed, lambda t, z, x, y: -t * _rounded_down_quotient(x, y)),
    np.mod,
    _ints,
    "x % y with the sign of y, as in Python.",
    fault=_nonzero,
    accepts="fi",
)


def _negative_power(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    power = inputs[1]
    if power.dtype.kind != "i":
        return []
    return [refused(1, power < 0, "Integers to negative integer powers are not allowed: y{at}")]


pow = _binary(
    "Pow",
    _power,
    np.power,
    (_POSITIVE, _OTHER),
    "x to the power y.",
    fault=_negative_power,
    accepts="fnc",
)
maximum = _binary(
    "Maximum",
    _extreme(jnp.maximum, jnp.greater_equal),
    np.maximum,
    _floats,
    "The greater of x and y.",
    accepts="fi",
)
minimum = _binary(
    "Minimum",
    _extreme(jnp.minimum, jnp.less_equal),
    np.minimum,
    _floats,
    "The lesser of x and y.",
    accepts="fi",
)
squared_difference = _binary(
    "SquaredDifference",
    lambda x, y: jnp.conj(x - y) * (x - y),
    lambda x, y: np.conj(x - y) * (x - y),
    _floats,
    "conj(x - y) * (x - y): the squared difference, for complex x and y its squared magnitude.",
    accepts="fcx",
)
atan2 = _binary(
    "Atan2",
    jnp.arctan2,
    np.arctan2,
    _floats,
    "The angle of the point (x, y): the arc tangent of y / x in the right quadrant.",
    accepts="f",
    parameters=("y", "x"),
)

equal = _binary("Equal", jnp.equal, np.equal, _ints, "x == y.", bool_, None, accepts="")
not_equal = _binary(
    "NotEqual", jnp.not_equal, np.not_equal, _ints, "x != y.", bool_, None, accepts=""
)
less = _binary("Less", jnp.less, np.less, _floats, "x < y.", bool_, None, accepts="fi")
less_equal = _binary(
    "LessEqual", jnp.less_equal, np.less_equal, _floats, "x <= y.", bool_, None, accepts="fi"
)
greater = _binary("Greater", jnp.greater, np.greater, _floats, "x > y.", bool_, None, accepts="fi")
greater_equal = _binary(
    "GreaterEqual",
    jnp.greater_equal,
    np.greater_equal,
    _floats,
    "x >= y.",
    bool_,
    None,
    accepts="fi",
)
_bools = (_BOOLS, _BOOLS[0])
logical_and = _binary(
    "LogicalAnd", jnp.logical_and, np.logical_and, _bools, "x and y.", bool_, None, accepts="b"
)
logical_or = _binary(
    "LogicalOr", jnp.logical_or, np.logical_or, _bools, "x or y.", bool_, None, accepts="b"
)
logical_xor = _binary(
    "LogicalXor",
    jnp.logical_xor,
    np.logical_xor,
    _bools,
    "Whether exactly one of x and y is true.",
    bool_,
    None,
    accepts="b",
)
logical_not = _unary(
    "LogicalNot", jnp.logical_not, np.logical_not, _BOOLS, "Not x.", gradient=None, accepts="b"
)

negative = _unary(
    "Neg",
    jnp.negative,
    np.negative,
    _ANY,
    "-x.",
    accepts="fnc",
    row_gradient=lambda op, slices: [-slices],
)


def _abs_gradient(op: Any, dy: Any) -> Any:
    (x,) = op.inputs
    if x.dtype.is_complex:
        return [div_no_nan(cast(dy, x.dtype) * x, cast(op.outputs[0], x.dtype))]
    return [dy * make("Sign", {"x": x})]  # at 0; jnp.abs gives 1


abs = _unary(
    "Abs",
    jnp.abs,
    np.abs,
    _ANY,
    "The absolute value of x; of complex numbers their magnitude, which is real.",
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype.real_dtype, inputs[0].shape)],
    gradient=_abs_gradient,
    accepts="fnc",
)
_sign = _unary("Sign", jnp.sign, np.sign, _ANY, "-1, 0 or 1, by the sign of x.", accepts="fnc")


@on_values(SparseTensor)
def sign(x: Any, name: str | None = None) -> Tensor:
    """-1, 0 or 1, by the sign of x; of complex numbers x / |x|.

    Args:
        x: a tensor or `SparseTensor`.
        name: the operation's name.
    """
    tensor = convert_to_tensor(x, name="x")
    if not tensor.dtype.is_complex:
        return _sign(tensor, name=name)
    return div_no_nan(tensor, cast(abs(tensor), tensor.dtype), name=name)


square = _unary("Square", jnp.square, np.square, _ANY, "x squared.", accepts="fic")
sqrt = _unary(
    "Sqrt", guarded(jnp.sqrt, lambda y: 0.5 / y), np.sqrt, _POSITIVE, "The square root of x."
)
rsqrt = _unary(
    "Rsqrt",
    guarded(jax.lax.rsqrt, lambda y: -0.5 * y**3),
    lambda x: 1 / np.sqrt(x),
    _POSITIVE,
    "1 / sqrt(x).",
)
_reciprocal = guarded(jnp.reciprocal, lambda y: -(y**2))
reciprocal = _unary(
    "Reciprocal",
    _reciprocal,
    np.reciprocal,
    _POSITIVE,
    "1 / x.",
)
exp = _unary("Exp", jnp.exp, np.exp, _ANY, "e to the power x.")
expm1 = _unary("Expm1", jnp.expm1, np.expm1, _ANY, "exp(x) - 1, accurate for small x.")
log = _unary(
    "Log",
    with_partials(jnp.log, lambda t, y, x: t * _reciprocal(x)),
    np.log,
    _POSITIVE,
    "The natural logarithm of x.",
)
log1p = _unary("Log1p", jnp.log1p, np.log1p, _POSITIVE, "log(1 + x), accurate for small x.")
sin = _unary("Sin", jnp.sin, np.sin, _ANY, "The sine of x (radians).")
cos = _unary("Cos", jnp.cos, np.cos, _ANY, "The cosine of x (radians).")
tan = _unary("Tan", jnp.tan, np.tan, _UNIT, "The tangent of x (radians).")
asin = _unary("Asin", jnp.arcsin, np.arcsin, _UNIT, "The arc sine of x.")
acos = _unary("Acos", jnp.arccos, np.arccos, _UNIT, "The arc cosine of x.")
atan = _unary("Atan", jnp.arctan, np.arctan, _ANY, "The arc tangent of x.")
sinh = _unary("Sinh", jnp.sinh, np.sinh, _ANY, "The hyperbolic sine of x.")
cosh = _unary("Cosh", jnp.cosh, np.cosh, _ANY, "The hyperbolic cosine of x.")
tanh = _unary("Tanh", jnp.tanh, np.tanh, _ANY, "The hyperbolic tangent of x.")


def _numpy_sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else scipy_special.expit(x)


sigmoid = _unary("Sigmoid", jax.nn.sigmoid, _numpy_sigmoid, _ANY, "1 / (1 + exp(-x)).")
erf = _unary("Erf", jax.lax.erf, scipy_special.erf, _ANY, "The error function of x.", accepts="f")
lgamma = _unary(
    "Lgamma",
    jax.lax.lgamma,
    lambda x: np.where(x == -np.inf, np.inf, scipy_special.gammaln(x)).astype(x.dtype),
    _POSITIVE,
    "log of the absolute value of the gamma function of x.",
    accepts="f",
)
floor = _unary(
    "Floor", jnp.floor, np.floor, _ANY, "The greatest integer <= x.", gradient=None, accepts="f"
)
ceil = _unary(
    "Ceil", jnp.ceil, np.ceil, _ANY, "The least integer >= x.", gradient=None, accepts="f"
)
round = _unary(
    "Round",
    jnp.round,
    np.round,
    _ANY,
    "The nearest integer, halves to even.",
    gradient=None,
    accepts="fic",
)
is_nan = _unary("IsNan", jnp.isnan, np.isnan, _ANY, "Whether x is NaN.", bool_, None, accepts="f")
is_inf = _unary(
    "IsInf", jnp.isinf, np.isinf, _ANY, "Whether x is infinite.", bool_, None, accepts="f"
)
is_finite = _unary(
    "IsFinite",
    jnp.isfinite,
    np.isfinite,
    _ANY,
    "Whether x is neither NaN nor infinite.",
    bool_,
    None,
    accepts="f",
)


def _cast(x: Any, dtype: Any, module: Any = jnp) -> Any:
    array = module.asarray(x)
    if is_symbolic(array):
        return array
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = module.real(array)  # the imaginary part is discarded
    if dtype.is_integer and jnp.issubdtype(array.dtype, np.floating):
        return _truncated(array, dtype.numpy_dtype, module)
    return array.astype(dtype.numpy_dtype)


def _truncated(x: Any, dtype: Any, module: Any) -> Any:
    """Floats as integers, on every device what a C program on x86 computes, as in TensorFlow.

    What exceeds 32 or 64 bits, and NaN, is the least integer; narrower integers wrap.
    """
    size = np.dtype(dtype).itemsize
    wide = np.dtype(np.int32 if size <= 2 or dtype == np.int32 else np.int64)
    limit = 2.0 ** (8 * wide.itemsize - 1)
    large = dtype == np.uint64 and (x >= limit) & (x < 2 * limit)
    inside = (x >= -limit) & (x < limit)
    small = module.where(inside, x, module.zeros((), x.dtype)).astype(wide)
    result = module.where(inside, small, np.array(-limit, wide)).astype(dtype)
    if dtype == np.uint64:
        part = module.where(large, x, module.zeros((), x.dtype)).astype(dtype)
        result = module.where(large, part, result)
    return result


def _row_gradient_of_cast(op: Any, slices: IndexedSlices) -> list[IndexedSlices]:
    attrs = {"dtype": op.inputs[0].dtype}
    return [slices.with_values(make("Cast", {"x": slices.all_values}, attrs))]


CAST = register(
    "Cast",
    _cast,
    moves=True,
    row_gradient=_row_gradient_of_cast,
    infer=lambda inputs, attrs: [Spec(attrs["dtype"], inputs[0].shape)],
    numpy_kernel=lambda x, dtype: _cast(x, dtype, np),
    cases=lambda: [
        Case((_INTS,), {"dtype": float32}),
        Case((_ANY,), {"dtype": float64}),
        Case((_BOOLS,), {"dtype": int64}),
    ],
)


@on_values(SparseTensor, IndexedSlices)
def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Converts a tensor to another dtype.

    Args:
        x: a numeric or bool tensor, a sparse one or an `IndexedSlices`.
        dtype: the target dtype; floats are truncated towards zero when cast to integers, and
            complex numbers lose their imaginary part when cast to real dtypes.

    Raises:
        UnimplementedError: x holds strings (use `string_to_number`), or shall do so.
    """
    tensor = convert_to_tensor(x, name="x")
    wanted = as_dtype(dtype)
    if tensor.dtype is wanted:
        return tensor
    if tensor.dtype.on_host or wanted.on_host:
        raise UnimplementedError.explained(
            f"Cast string to {wanted.name} is not supported"
            if tensor.dtype.on_host
            else f"Cast {tensor.dtype.name} to string is not supported",
            received=tensor,
            made_at=tensor.op.source,
            hint="use string_to_number / as_string",
        )
    return make("Cast", {"x": tensor}, {"dtype": wanted}, name)


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 3.

    Integers of 8 and 16 bits are converted to float32, larger ones to float64.
    """
    with get_default_graph().name_scope(name or "truediv") as scope:
        return realdiv(*_inexact(*_as_pair(x, y)), name=scope)


def _inexact(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The operands of a division, with integers converted to floats.

    Raises:
        TypeError: the dtypes differ.
    """
    if x.dtype is not y.dtype:
        raise type_error(
            f"`x` and `y` must have the same dtype, got {x.dtype!r} != {y.dtype!r}",
            received=f"{x.name} and {y.name}",
            made_at=y.op.source,
            hint=f"use cast(y, {x.dtype.name})",
        )
    if not x.dtype.is_integer:
        return x, y
    wide = float32 if x.dtype.size <= 2 else float64
    return cast(x, wide), cast(y, wide)


def _as_pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(x, Tensor) and (isinstance(y, Tensor) or hasattr(y, "_as_tensor")):
        y = convert_to_tensor(y, name="y")
        return convert_to_tensor(x, name="x", dtype_hint=y.dtype), y
    x = convert_to_tensor(x, name="x")
    return x, convert_to_tensor(y, name="y", dtype_hint=x.dtype)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 3; see `truediv`."""
    return truediv(x, y, name)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 2: floor division for integers, exact division for floats."""
    with get_default_graph().name_scope(name or "div") as scope:
        x, y = _as_pair(x, y)
        exact = x.dtype.is_floating or x.dtype.is_complex
        return (realdiv if exact else floordiv_op)(x, y, name=scope)


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x // y, rounded down, for integers and floats."""
    with get_default_graph().name_scope(name or "floordiv") as scope:
        return floordiv_op(*_as_pair(x, y), name=scope)


def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, or 0 where y is 0; integers are converted to floats as in `truediv`."""
    with get_default_graph().name_scope(name or "div_no_nan") as scope:
        one, two = _inexact(*_as_pair(x, y))
        return make("DivNoNan", {"x": one, "y": two}, name=scope)


_div_no_nan: Callable[..., Any] = with_partials(
    lambda x, y: jnp.where(
        y == 0, jnp.zeros((), x.dtype), _exact_quotient(x, jnp.where(y == 0, 1, y))
    ),
    lambda t, z, x, y: t * _div_no_nan(jnp.ones((), x.dtype), y),
    lambda t, z, x, y: t * _div_no_nan(_div_no_nan(-x, y), y),
)
register(
    "DivNoNan",
    _div_no_nan,
    infer=broadcast(),
    accepts="fc",
    numpy_kernel=lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)).astype(x.dtype),
    cases=lambda: [Case((_ANY, _OTHER)), Case((np.ones(2, np.float32), np.zeros(2, np.float32)))],
)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, or 0 where x is 0.

    Raises:
        TypeError: x holds no floating or complex numbers.
    """
    with get_default_graph().name_scope(name or "reciprocal_no_nan") as scope:
        divisor = convert_to_tensor(x, name="x")
        check_allowed(divisor, "fc", "reciprocal_no_nan", "x")
        one = convert_to_tensor(1, divisor.dtype, name="one")
        return div_no_nan(one, divisor, name=scope)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Tensor:
    """`cast` to bfloat16."""
    return cast(x, bfloat16, name)


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """`cast` to float32."""
    return cast(x, float32, name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """`cast` to int32."""
    return cast(x, int32, name)


def to_int64(x: Any, name: str = "ToInt64") -> Tensor:
    """`cast` to int64."""
    return cast(x, int64, name)


@on_values(IndexedSlices)
def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor:
    """Clips values to [clip_value_min, clip_value_max].

    An `IndexedSlices` has its rows clipped and remains an `IndexedSlices`, so that optimizers do
    not update the other rows.
    """
    with get_default_graph().name_scope(name or "clip_by_value") as scope:
        found = maximum(minimum(t, clip_value_max), clip_value_min, name=scope)
        if not isinstance(t, IndexedSlices):  # the bounds may be broadcast, not the values
            convert_to_tensor(t).shape.assert_is_compatible_with(found.shape)
        return found


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape and dtype.

    Raises:
        ValueError: the list is empty, or shapes differ.
    """
    from estimatorkit.core import registry

    tensors = [convert_to_tensor(each) for each in inputs]
    if not tensors:
        raise ValueError(
            "add_n: inputs must be a list of at least one tensor with the same dtype and shape."
        )
    if len(tensors) == 1:
        return identity_of(tensors[0], name)
    registry.check_same_dtype("AddN", tensors, name)
    return registry.output("AddN", tensors, name=name)


def identity_of(x: Tensor, name: str | None) -> Tensor:
    """x itself, or its identity with a name."""
    return x if name is None else make("Identity", {"input": x}, name=name)


def _infer_add_n(inputs: Any, attrs: Any) -> list[Spec]:
    shape = inputs[0].shape
    for other in inputs[1:]:
        shape = shape.merge_with(other.shape)
    return [Spec(inputs[0].dtype, shape)]


def _sum(*inputs: Any) -> Any:
    for index, each in enumerate(inputs):
        if each.shape != inputs[0].shape:
            raise ValueError(
                "Inputs to operation of type AddN must have the same size and shape. Input 0: "
                f"{list(inputs[0].shape)} != input {index}: {list(each.shape)}"
            )
    return sum(inputs[1:], inputs[0])


register(
    "AddN",
    _sum,
    row_gradient=lambda op, slices: [slices] * len(op.inputs),
    infer=_infer_add_n,
    accepts="fic",
    numpy_kernel=_sum,
    cases=lambda: [Case((_ANY, _POSITIVE, _UNIT))],
)


def _or_bits(logical: Callable[..., Tensor], bits: str) -> Callable[..., Tensor]:
    """The logical operation for bools, the bitwise one for integers."""

    def function(*operands: Any, name: str | None = None) -> Tensor:
        given = _as_pair(*operands) if len(operands) == 2 else [convert_to_tensor(operands[0])]
        if not given[0].dtype.is_integer:
            return logical(*given, name=name)
        return make(bits, dict(zip("xy", given, strict=False)), name=name, same_dtype=True)

    return function


def _where_operator(name: str, function: Callable[..., Tensor], default: str | None) -> None:
    def operate(*operands: Any) -> Tensor:
        return function(*operands, **({"name": default} if default else {}))

    operators[name] = operate


for _method, _function, _name in (
    ("add", add, "add"),
    ("sub", subtract, "sub"),
    ("mul", multiply, "mul"),
    ("truediv", truediv, None),
    ("floordiv", floordiv, None),
    ("mod", floormod, "mod"),
    ("pow", pow, "pow"),
    ("neg", negative, None),
    ("abs", abs, None),
    ("invert", _or_bits(logical_not, "Invert"), None),
    ("less", less, None),
    ("and", _or_bits(logical_and, "BitwiseAnd"), "and"),
    ("less_equal", less_equal, None),
    ("or", _or_bits(logical_or, "BitwiseOr"), "or"),
    ("xor", _or_bits(logical_xor, "BitwiseXor"), "xor"),
    ("greater", greater, None),
    ("greater_equal", greater_equal, None),
):
    _where_operator(_method, _function, _name)
