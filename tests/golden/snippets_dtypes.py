"""Operations of every dtype: what they give, of which dtype, and which dtypes they refuse.

`ROWS` has expressions of `x` and `y`, two `(2, 3)` tensors of one dtype that are not known before
the graph runs. `make_dtypes.py` runs them in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128", "bool", "string"),
)
_X = np.array([[1, 2, 3], [0, 3, 2]])
_Y = np.array([[2, 1, 2], [3, 1, 1]])

Row = Callable[[Any, Any, Any], Any]

# Those that take one or two tensors, by their names below `tf`.
_UNARY = (
    *("abs", "negative", "sign", "square", "sqrt", "reciprocal", "exp", "asinh", "atanh"),
    *("sigmoid", "floor", "round", "is_nan", "logical_not", "conj", "real", "imag", "angle"),
    *("nn.relu", "nn.relu6", "nn.leaky_relu", "zeros_like", "ones_like", "reduce_sum"),
    *("reduce_max", "reduce_any", "reduce_logsumexp", "math.reduce_std", "math.reduce_variance"),
    *("math.reduce_euclidean_norm", "count_nonzero", "argmax", "cumsum", "linalg.trace", "norm"),
    *("linalg.adjoint", "nn.l2_normalize", "math.top_k", "invert_permutation", "where"),
    *("linalg.diag_part", "math.reciprocal_no_nan", "math.cumulative_logsumexp"),
    *("math.is_non_decreasing", "math.is_strictly_increasing"),
)
_BINARY = (
    *("add", "subtract", "multiply", "div", "truediv", "floordiv", "truncatediv", "truncatemod"),
    *("floormod", "pow", "maximum", "squared_difference", "atan2", "equal", "less"),
    *("logical_and", "div_no_nan", "math.multiply_no_nan", "math.xlogy", "math.xdivy"),
    *("math.xlog1py", "math.nextafter", "bitwise.bitwise_and", "zeta", "polygamma"),
)


def _named(name: str, count: int) -> Row:
    def row(tf: Any, x: Any, y: Any) -> Any:
        function = tf
        for part in name.split("."):
            function = getattr(function, part)
        return function(x, y) if count == 2 else function(x)

    return row


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("set_size", "sparse_maximum", "sparse_reduce_sum", "sparse_segment_mean"),
    *("sparse_segment_sum ids", "sparse_softmax", "total_variation"),
}
ROWS: dict[str, Row] = {
    **{name: _named(name, 1) for name in _UNARY},
    **{name: _named(name, 2) for name in _BINARY},
    "x & y": lambda tf, x, y: x & y,
    "x ^ y": lambda tf, x, y: x ^ y,
    "~x": lambda tf, x, y: ~x,
    "1 / x": lambda tf, x, y: 1 / x,
    "matmul": lambda tf, x, y: tf.matmul(x, y, transpose_b=True),
    "matvec": lambda tf, x, y: tf.linalg.matvec(x, y[0]),
    "matrix_transpose": lambda tf, x, y: tf.linalg.matrix_transpose(x, conjugate=True),
    "pad": lambda tf, x, y: tf.pad(x, [[1, 0], [0, 2]]),
    "pad with": lambda tf, x, y: tf.pad(x, [[1, 0], [0, 2]], constant_values=y[0, 0]),
    "pad a scalar": lambda tf, x, y: tf.pad(x[0, 0], tf.zeros([0, 2], tf.int32)),
    "reverse": lambda tf, x, y: tf.reverse(x, [1]),
    "one_hot": lambda tf, x, y: tf.one_hot(x, 4),
    "one_hot values": lambda tf, x, y: tf.one_hot([0, 1], 3, x[0, 0], y[0, 0]),
    "gather indices": lambda tf, x, y: tf.gather([[1.0], [2.0], [3.0], [4.0]], x),
    "gather_nd indices": lambda tf, x, y: tf.gather_nd([[1.0, 2.0], [3.0, 4.0]], x[:, :1]),
    "embedding ids": lambda tf, x, y: tf.nn.embedding_lookup(tf.ones([4, 2]), x),
    "scatter_nd": lambda tf, x, y: tf.scatter_nd([[0], [2]], x, [4, 3]),
    "tensor_scatter": lambda tf, x, y: tf.tensor_scatter_nd_update(x, [[0, 1]], y[0, :1]),
    "tensor_scatter_max": lambda tf, x, y: tf.tensor_scatter_nd_max(x, [[0, 1]], y[0, :1]),
    "segment_sum": lambda tf, x, y: tf.segment_sum(x, [0, 1]),
    "segment_mean": lambda tf, x, y: tf.segment_mean(x, [0, 0]),
    "segment ids": lambda tf, x, y: tf.segment_sum([1.0, 2.0], x[0, :2]),
    "unsorted_segment_prod": lambda tf, x, y: tf.unsorted_segment_prod(x, [1, 0], 3),
    "number of segments": lambda tf, x, y: tf.unsorted_segment_sum([1.0, 2.0], [0, 1], x[1, 1]),
    "sparse_segment_mean": lambda tf, x, y: tf.sparse_segment_mean(x, [0, 1], [0, 1]),
    "sparse_segment_sum ids": lambda tf, x, y: tf.sparse_segment_sum(
        [1.0, 2.0, 3.0], x[0, :2], [0, 1]
    ),
    "dynamic_partition": lambda tf, x, y: tf.dynamic_partition(x, [1, 0], 2),
    "partitions": lambda tf, x, y: tf.dynamic_partition([1.0, 2.0], x[0, :2], 5),
    "dynamic_stitch": lambda tf, x, y: tf.dynamic_stitch([[1], [0]], [x[:1], y[:1]]),
    "targets of in_top_k": lambda tf, x, y: tf.nn.in_top_k(
        [[0.1, 0.9, 0.2, 0.0], [0.8, 0.2, 0.1, 0.0]], x[:, 0], 1
    ),
    "k of top_k": lambda tf, x, y: tf.nn.top_k([1.0, 2.0, 3.0, 4.0], x[0, 1]).values,
    "computed axis": lambda tf, x, y: tf.reduce_sum([[1.0, 2.0], [3.0, 4.0]], x[0, 0]),
    "computed permutation": lambda tf, x, y: tf.transpose([[1.0, 2.0]], x[0, :2] - x[0, 0]),
    "dims of fill": lambda tf, x, y: tf.fill(x[0], 1.0),
    "shape of reshape": lambda tf, x, y: tf.reshape(tf.range(6.0), x[0, 1:]),
    "multiples of tile": lambda tf, x, y: tf.tile([1.0, 2.0], x[0, 1:2]),
    "begin of slice": lambda tf, x, y: tf.slice([1.0, 2.0, 3.0], x[0, :1], [1]),
    "index": lambda tf, x, y: tf.constant([1.0, 2.0, 3.0, 4.0])[x[0, 0]],
    "repeats": lambda tf, x, y: tf.repeat([1, 2, 3], x[0]),
    "linspace": lambda tf, x, y: tf.linspace(x[0, 0], y[0, 0], 3),
    "scalar_mul": lambda tf, x, y: tf.scalar_mul(x[0, 0], y),
    "sequence_mask": lambda tf, x, y: tf.sequence_mask(x, 5),
    "det": lambda tf, x, y: tf.matrix_determinant(x[:, :2]),
    "sparse_reduce_sum": lambda tf, x, y: tf.sparse_reduce_sum(
        tf.SparseTensor([[0, 0]], x[0, :1], [2, 2])
    ),
    "sparse_maximum": lambda tf, x, y: (
        tf.sparse_maximum(
            tf.SparseTensor([[0, 0]], x[0, :1], [2, 2]),
            tf.SparseTensor([[0, 0]], y[0, :1], [2, 2]),
        ).values
    ),
    "sparse_softmax": lambda tf, x, y: (
        tf.sparse_softmax(tf.SparseTensor([[0, 0]], x[0, :1], [2, 2])).values
    ),
    "set_size": lambda tf, x, y: tf.sets.set_size(tf.SparseTensor([[0, 0]], x[0, :1], [2, 2])),
    "resize_bilinear": lambda tf, x, y: tf.image.resize_bilinear(
        tf.reshape(x, [1, 2, 3, 1]), [3, 3]
    ),
    "total_variation": lambda tf, x, y: tf.image.total_variation(tf.reshape(x, [2, 3, 1])),
    "random_uniform": lambda tf, x, y: tf.shape(tf.random_uniform([2], dtype=x.dtype, maxval=2)),
    "shape of random_uniform": lambda tf, x, y: tf.shape(tf.random_uniform(x[0])),
}


def _values(array: Any, dtype: str, tf: Any) -> Any:
    if dtype == "string":
        return np.array([[str(each).encode() for each in row] for row in array], object)
    if dtype.startswith("complex"):
        array = array + 0.5j * (array - 1)
    return array.astype(tf.as_dtype(dtype).as_numpy_dtype)


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [each for part in result for each in _flat(part)]
    return [result]


def _written(value: Any) -> Any:
    array = np.array(value, object) if isinstance(value, bytes) else np.asarray(value)
    flat = array.reshape(-1).tolist()
    if array.dtype == object:
        values: list[Any] = [each.decode() for each in flat]
    elif array.dtype.kind == "c":
        values = [[each.real, each.imag] for each in flat]
    else:
        values = [repr(each) if each != each else each for each in flat]
    return {"shape": list(array.shape), "values": values}


def run(tf: Any, row: Row, dtype: str) -> Any:
    """What a row gives for a dtype.

    Returns:
        The class of the error with which TensorFlow or this package refuses to build it; otherwise
        for each result its dtype, shape and values. Without the latter where the run fails (there
        is no kernel for the dtype).
    """
    with tf.Graph().as_default():
        x, y = (tf.placeholder_with_default(_values(each, dtype, tf), [2, 3]) for each in (_X, _Y))
        try:
            results = _flat(row(tf, x, y))
        except (TypeError, ValueError) as error:
            return type(error).__name__
        except tf.errors.UnimplementedError:  # strings, in a cast that this package does not build
            return "TypeError"
        found = [{"dtype": each.dtype.name} for each in results]
        with tf.Session() as session:
            try:
                values = session.run(results)
            except tf.errors.OpError:
                return found
        return [{**each, **_written(value)} for each, value in zip(found, values, strict=True)]
