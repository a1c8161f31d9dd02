"""Operations on special values: NaN, infinities, zeros of both signs, ties, bounds, limits.

A row is a function of (tf, x) or (tf, x, y). `UNARY` rows get the points of their dtype, `BINARY`
rows all pairs of a few of them, `ROWS` a matrix whose rows hold NaN, infinities and ties in
different places. `outcome` builds the values, the first and the second gradients of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = (*FLOATS, "complex64", "int8", "int32", "int64", "uint8", "uint64")

Row = Callable[..., Any]
Array = NDArray[Any]

_NAN, _INF = np.nan, np.inf
_POINTS = (
    *(_NAN, _INF, -_INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 6.0),
    *(7.0, 0.25, -0.75, 12.0, -12.0, 100.0, -100.0, 30000.0),
)
_PAIRED = (_NAN, _INF, -_INF, 0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 2.5, -5.5)
_MATRIX = (
    *((_NAN, 1.0, 2.0), (1.0, _NAN, 2.0), (2.0, 1.0, _NAN), (_NAN, _NAN, _NAN)),
    *((_INF, -_INF, 1.0), (-_INF, -_INF, -_INF), (_INF, _INF, 1.0), (_NAN, _INF, -_INF)),
    *((0.0, -0.0, 0.0), (-0.0, 0.0, -0.0), (2.0, 2.0, 1.0), (3.0, 3.0, 3.0), (0.0, 2.0, 0.0)),
    *((-1.0, -3.0, -2.0), (1.0, 2.0, 3.0)),
)

_FINITE = (
    *((2.0, 1.0, -1.0), (0.0, -0.0, 0.0), (-0.0, 0.0, -0.0), (2.0, 2.0, 1.0), (3.0, 3.0, 3.0)),
    *((0.0, 2.0, 0.0), (-1.0, -3.0, -2.0), (0.5, 0.25, 4.0), (-2.0, 0.0, 2.0), (1.0, 1.0, -1.0)),
    *((-3.0, 5.0, -3.0), (1.5, 2.5, 3.5), (4.0, -4.0, 4.0), (0.0, 0.0, 7.0), (1.0, 2.0, 3.0)),
)


def points(kind: str, dtype: str, numpy_dtype: Any) -> tuple[Array, ...]:
    """The inputs of the rows of one kind.

    Args:
        kind: 'unary', 'binary', 'rows' or 'finite rows'.
        dtype: its name.
        numpy_dtype: the dtype as NumPy's (bfloat16 differs between packages).
    """
    given = {"unary": _POINTS, "binary": _PAIRED, "rows": _MATRIX, "finite rows": _FINITE}
    values: Array = np.array(given[kind])
    if dtype in COMPLEX:  # results at infinities are nowhere defined
        finite = np.nan_to_num(values, nan=0.0, posinf=2.0, neginf=-0.5)
        values = finite + 1j * finite[::-1]
    elif dtype in INTEGERS:
        limits = np.iinfo(dtype)
        finite = np.nan_to_num(values, nan=5.0, posinf=9.0, neginf=4.0)
        values = np.clip(finite, limits.min, limits.max).astype(np.int64)
        if values.ndim == 1:
            values = np.array([*values.tolist(), limits.max, limits.min, limits.max - 1], dtype)
    if kind != "binary":
        return (values.astype(numpy_dtype),)
    left, right = np.meshgrid(values, values, indexing="ij")
    return left.reshape(-1).astype(numpy_dtype), right.reshape(-1).astype(numpy_dtype)


def _function(tf: Any, name: str) -> Any:
    for part in name.split("."):
        tf = getattr(tf, part)
    return tf


def _named(*names: str) -> dict[str, Row]:
    return {name: lambda tf, *inputs, name=name: _function(tf, name)(*inputs) for name in names}


def _number(tf: Any, like: Any, value: float) -> Any:
    return tf.cast(value, like.dtype)


UNARY: dict[str, Row] = {
    **_named(
        *("abs", "negative", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1"),
        *("log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
        *("asinh", "acosh", "atanh", "sigmoid", "log_sigmoid", "erf", "erfc", "lgamma", "digamma"),
        *("math.erfinv", "math.ndtri", "floor", "ceil", "round", "rint", "is_nan", "is_inf"),
        *("is_finite", "nn.relu", "nn.relu6", "nn.elu", "nn.selu", "nn.softplus", "nn.softsign"),
        *("nn.leaky_relu", "nn.swish", "nn.crelu", "conj", "real", "imag", "angle"),
        *("math.reciprocal_no_nan", "math.bessel_i0", "math.bessel_i0e", "math.bessel_i1"),
        *("math.bessel_i1e", "math.erfcinv", "zeros_like", "ones_like"),
    ),
    **{
        f"cast to {dtype}": lambda tf, x, dtype=dtype: tf.cast(x, dtype)
        for dtype in ("bool", *INTEGERS, *FLOATS, *COMPLEX)
    },
    "clip_by_value": lambda tf, x: tf.clip_by_value(x, _number(tf, x, 1), _number(tf, x, 3)),
    "leaky_relu 2": lambda tf, x: tf.nn.leaky_relu(x, 2.0),
    "leaky_relu -1": lambda tf, x: tf.nn.leaky_relu(x, -1.0),
    "unsafe where": lambda tf, x: tf.where(x > 0, tf.sqrt(x), tf.zeros_like(x)),
    "safe log": lambda tf, x: tf.where(x > 0, tf.log(x), tf.zeros_like(x)),
    "x ** 2": lambda tf, x: x**2,
    "x ** 3": lambda tf, x: x**3,
    "x ** 0": lambda tf, x: x**0,
    "x ** 1": lambda tf, x: x**1,
    "x ** 0.5": lambda tf, x: x**0.5,
    "x ** -1": lambda tf, x: x ** _number(tf, x, -1),
    "2 ** x": lambda tf, x: _number(tf, x, 2) ** x,
    "0 ** x": lambda tf, x: _number(tf, x, 0) ** x,
    "searchsorted": lambda tf, x: tf.searchsorted([_number(tf, x, 0), _number(tf, x, 3)], x),
    "searchsorted right": lambda tf, x: tf.searchsorted(
        [_number(tf, x, 0), _number(tf, x, 3)], x, side="right"
    ),
    "polyval": lambda tf, x: tf.math.polyval([_number(tf, x, 2), _number(tf, x, 1)], x),
    "scalar_mul": lambda tf, x: tf.scalar_mul(_number(tf, x, 0), x),
    "logits": lambda tf, x: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.ones_like(x), logits=x
    ),
    "weighted logits": lambda tf, x: tf.nn.weighted_cross_entropy_with_logits(
        labels=tf.zeros_like(x), logits=x, pos_weight=_number(tf, x, 2)
    ),
    "poisson": lambda tf, x: tf.nn.log_poisson_loss(tf.ones_like(x), x),
    "as complex": lambda tf, x: tf.complex(x, x),
    "magnitude": lambda tf, x: tf.abs(tf.complex(x, tf.zeros_like(x))),
    "zeta of 2": lambda tf, x: tf.zeta(_number(tf, x, 2), x),
    "trigamma": lambda tf, x: tf.polygamma(_number(tf, x, 1), x),
    "fill": lambda tf, x: tf.where(tf.equal(x, x), x, tf.zeros_like(x)),
    "mod 3": lambda tf, x: x % _number(tf, x, 3),
    "invert": lambda tf, x: tf.bitwise.invert(x),
}

BINARY: dict[str, Row] = {
    **_named(
        *("add", "subtract", "multiply", "div", "divide", "truediv", "floordiv", "truncatediv"),
        *("truncatemod", "floormod", "mod", "pow", "maximum", "minimum", "squared_difference"),
        *("atan2", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("div_no_nan", "math.multiply_no_nan", "math.xlogy", "math.xdivy", "math.xlog1py"),
        *("math.nextafter", "bitwise.bitwise_and", "bitwise.bitwise_or", "bitwise.bitwise_xor"),
        *("zeta", "polygamma", "igamma", "igammac", "setdiff1d", "math.bincount"),
    ),
    "x % y": lambda tf, x, y: x % y,
    "x // y": lambda tf, x, y: x // y,
    "x / y": lambda tf, x, y: x / y,
    "sigmoid_cross_entropy": lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=y, logits=x
    ),
    "where": lambda tf, x, y: tf.where(x > y, x, y),
    "clip": lambda tf, x, y: tf.clip_by_value(x, y, _number(tf, x, 3)),
    "add_n": lambda tf, x, y: tf.add_n([x, y, x]),
    "absolute difference": lambda tf, x, y: tf.abs(x - y),
    "distance": lambda tf, x, y: tf.sqrt(tf.square(x - y)),
    "cosine": lambda tf, x, y: tf.losses.cosine_distance(
        tf.stack([x, y], 1), tf.stack([y, y], 1), 1
    ),
    "stacked max": lambda tf, x, y: tf.reduce_max(tf.stack([x, y], 1), 1),
    "left_shift": lambda tf, x, y: tf.bitwise.left_shift(x, y % _number(tf, x, 7)),
    "right_shift": lambda tf, x, y: tf.bitwise.right_shift(x, y % _number(tf, x, 7)),
}


_REDUCED = (
    *("reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_logsumexp"),
    *("math.reduce_std", "math.reduce_variance", "math.reduce_euclidean_norm", "norm", "argmax"),
    *("argmin", "cumsum", "cumprod", "math.cumulative_logsumexp", "math.l2_normalize", "sort"),
    *("argsort", "count_nonzero"),
)


def _along(axis: int) -> dict[str, Row]:
    return {
        f"{name} {axis}": lambda tf, x, name=name: _function(tf, name)(x, axis=axis)
        for name in _REDUCED
    }


_IDS = np.array([0, 0, 0, 1, 1, 2, 4, 4, 5, 5, 6, 6, 7, 8, 8])


def _segments(kind: str) -> dict[str, Row]:
    return {
        f"segment_{kind}": lambda tf, x: getattr(tf, f"segment_{kind}")(x, _IDS),
        f"unsorted_segment_{kind}": lambda tf, x: getattr(tf, f"unsorted_segment_{kind}")(
            x, _IDS, 10
        ),
    }


def _vector(tf: Any, x: Any) -> Any:
    return tf.reshape(x, [-1])


ROWS: dict[str, Row] = {
    **_along(0),
    **_along(1),
    **_segments("sum"),
    **_segments("mean"),
    **_segments("prod"),
    **_segments("max"),
    **_segments("min"),
    **{
        f"{name} of all": lambda tf, x, name=name: _function(tf, name)(_vector(tf, x))
        for name in (
            *("math.cumulative_logsumexp", "cumsum", "cumprod", "nn.l2_loss", "unique"),
            *("unique_with_counts", "count_nonzero", "nn.softmax", "nn.log_softmax", "norm"),
            *("reduce_sum", "reduce_mean", "reduce_prod", "math.reduce_std", "reduce_max"),
            *("math.reduce_variance", "math.reduce_euclidean_norm", "math.l2_normalize"),
            *("math.is_non_decreasing", "math.is_strictly_increasing", "nn.zero_fraction"),
            *("sort", "argsort", "argmax", "argmin", "where", "math.bincount", "reduce_min"),
        )
    },
    "clip_by_norm": lambda tf, x: tf.clip_by_norm(x, 2.0),
    "histogram": lambda tf, x: tf.histogram_fixed_width(x, [_number(tf, x, 0), _number(tf, x, 6)]),
    "setdiff1d": lambda tf, x: tf.setdiff1d(_vector(tf, x), _vector(tf, x)[2:6]),
    "global_norm": lambda tf, x: tf.global_norm([x, x]),
    "clip_by_global_norm": lambda tf, x: tf.clip_by_global_norm([x], 3.0)[0],
    "moments 0": lambda tf, x: tf.nn.moments(x, [0]),
    "weighted_moments": lambda tf, x: tf.nn.weighted_moments(x, [0], tf.ones_like(x)),
    "norm 1": lambda tf, x: tf.norm(x, ord=1),
    "norm 3": lambda tf, x: tf.norm(x, ord=3),
    "norm inf": lambda tf, x: tf.norm(x, ord=np.inf),
    "cross_entropy": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.ones_like(x), logits=x
    ),
    "huber": lambda tf, x: tf.losses.huber_loss(tf.zeros_like(x), x),
    "hinge": lambda tf, x: tf.losses.hinge_loss(tf.ones_like(x), x),
    "log_loss": lambda tf, x: tf.losses.log_loss(tf.ones_like(x), x),
    "top_k": lambda tf, x: tf.nn.top_k(x, 2),
    "top_k 3": lambda tf, x: tf.nn.top_k(x, 3),
    "sort descending": lambda tf, x: tf.sort(x, direction="DESCENDING"),
    "argsort descending": lambda tf, x: tf.argsort(x, direction="DESCENDING"),
    "in_top_k": lambda tf, x: tf.nn.in_top_k(x, np.arange(15) % 3, 2),
    "max_pool": lambda tf, x: tf.nn.max_pool(
        tf.reshape(x, [1, 15, 3, 1]), [1, 2, 2, 1], [1, 2, 1, 1], "VALID"
    ),
    "avg_pool": lambda tf, x: tf.nn.avg_pool(
        tf.reshape(x, [1, 15, 3, 1]), [1, 2, 2, 1], [1, 2, 1, 1], "VALID"
    ),
    "softmax": lambda tf, x: tf.nn.softmax(x),
    "log_softmax": lambda tf, x: tf.nn.log_softmax(x),
    "softmax_cross_entropy": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.one_hot(np.arange(15) % 3, 3, dtype=x.dtype), logits=x
    ),
    "sparse_softmax_cross_entropy": lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=np.arange(15) % 3, logits=x
    ),
    "matmul": lambda tf, x: tf.matmul(x, tf.transpose(x)),
    "matmul zeros": lambda tf, x: tf.matmul(x, tf.zeros([3, 2], x.dtype)),
    "segment_sqrt_n": lambda tf, x: tf.unsorted_segment_sqrt_n(x, _IDS, 10),
    "sparse_segment_mean": lambda tf, x: tf.sparse_segment_mean(x, np.arange(15), _IDS),
    "reduce_max of nothing": lambda tf, x: tf.reduce_max(x[:0], 0),
    "reduce_min of nothing": lambda tf, x: tf.reduce_min(x[:0], 0),
    "reduce_mean of nothing": lambda tf, x: tf.reduce_mean(x[:0], 0),
    "reduce_prod of nothing": lambda tf, x: tf.reduce_prod(x[:0], 0),
    "reduce_std of nothing": lambda tf, x: tf.math.reduce_std(x[:0], 0),
    "logsumexp of nothing": lambda tf, x: tf.reduce_logsumexp(x[:0], 0),
    "embedding mean": lambda tf, x: tf.nn.embedding_lookup_sparse(
        x,
        tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 4, 10], tf.int64), [3, 2]),
        None,
        combiner="sqrtn",
    ),
    "moments": lambda tf, x: tf.nn.moments(x, [1]),
    "batch_normalization": lambda tf, x: tf.nn.batch_normalization(
        x, x[:1], x[:1], None, None, 0.0
    ),
    "lrn": lambda tf, x: tf.nn.local_response_normalization(tf.reshape(x, [1, 5, 3, 3])),
    "dropout 0": lambda tf, x: tf.nn.dropout(x, rate=0.0),
    "clip_by_norm 1": lambda tf, x: tf.clip_by_norm(x, 1.0, axes=[1]),
    "unit": lambda tf, x: x / tf.norm(x, axis=1, keepdims=True),
    "transpose conjugate": lambda tf, x: tf.transpose(x, conjugate=True),
    "cosine similarity": lambda tf, x: tf.reduce_sum(
        tf.nn.l2_normalize(x, 1) * tf.nn.l2_normalize(x[::-1], 1), 1
    ),
    "sparse softmax": lambda tf, x: (
        tf.sparse_softmax(
            tf.SparseTensor(
                [[0, 0], [0, 1], [0, 2], [1, 0]], tf.concat([x[10], x[4, :1]], 0), [2, 3]
            )
        ).values
    ),
    "dynamic_partition": lambda tf, x: tf.dynamic_partition(
        x, np.arange(15, dtype=np.int32) % 2, 2
    ),
    "gather twice": lambda tf, x: tf.gather(x, [0, 0, 12]),
    "scatter_nd": lambda tf, x: tf.scatter_nd([[0], [0], [2]], x[10:13], [3, 3]),
    "tensor_scatter_max": lambda tf, x: tf.tensor_scatter_nd_max(x, [[8], [9]], x[10:12]),
    "tensor_scatter_min": lambda tf, x: tf.tensor_scatter_nd_min(x, [[8], [9]], x[10:12]),
}

KINDS: Mapping[str, Mapping[str, Row]] = {
    **{"unary": UNARY, "binary": BINARY},
    **{"rows": ROWS, "finite rows": ROWS},
}

# Rows that need names of TensorFlow 1.
LEGACY = {"sparse_segment_mean", "sparse softmax"}


def depths(kind: str, dtype: str) -> tuple[str, ...]:
    """What is recorded, the most that TensorFlow can: of whole rows gradients at finite numbers."""
    if kind == "rows" or dtype not in ("float32", "complex64"):
        return ("value",)
    return ("second", "gradient", "value")[dtype == "complex64" :]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [each for part in result for each in _flat(part)]
    return [result]


def outcome(tf: Any, row: Row, inputs: Any, upto: str = "second") -> dict[str, Any]:
    """The tensors of a row: its outputs, its first and second gradients by each input.

    The cotangent of the first gradient is 1, 2, 3, 4, 5, 1, ..., that of the second 1. A gradient
    is left out where there is none.

    Args:
        tf: the module.
        row: the row.
        inputs: its inputs.
        upto: 'value', 'gradient' or 'second': what to leave out after.
    """
    outputs = _flat(row(tf, *inputs))
    found = {f"value {at}": output for at, output in enumerate(outputs)}
    smooth = [each for each in outputs if each.dtype.is_floating or each.dtype.is_complex]
    if upto == "value" or not smooth or inputs[0].dtype.is_integer:
        return found
    first = tf.gradients(smooth, inputs, [_weights(tf, each) for each in smooth])
    dense = {at: tf.convert_to_tensor(each) for at, each in enumerate(first) if each is not None}
    found.update({f"gradient {at}": each for at, each in dense.items()})
    if upto == "gradient" or not dense:
        return found
    second = tf.gradients([*dense.values()], inputs, [*map(tf.ones_like, dense.values())])
    for at, each in enumerate(second):
        if each is not None:
            found[f"second {at}"] = tf.convert_to_tensor(each)
    return found


def _weights(tf: Any, output: Any) -> Any:
    return tf.reshape(tf.cast(1 + tf.range(tf.size(output)) % 5, output.dtype), tf.shape(output))


def stored(value: Any) -> Array:
    """A value as the file holds it: complex numbers as pairs, bfloat16 as float32."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
