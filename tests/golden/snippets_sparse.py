"""Programs with sparse tensors, sets and edit distances, as functions of the module used as `tf`.

`SNIPPETS`: each gives what a session is to fetch. `SPARSE_ERRORS`: each gives what fails when it
is fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def sample(tf: Any, dtype: str = "float32") -> Any:
    """A sparse `(3, 4)`."""
    values = np.array([1.5, -2.0, 3.0, 0.5], dtype)
    return tf.SparseTensor([[0, 1], [0, 2], [2, 0], [2, 3]], values, [3, 4])


def other(tf: Any) -> Any:
    """Another, with two places in common."""
    values = np.array([2.0, 7.0, -3.0], np.float32)
    return tf.SparseTensor([[0, 2], [1, 1], [2, 0]], values, [3, 4])


def words(tf: Any) -> Any:
    """A sparse tensor of strings, with an empty row."""
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "b", "c"], [3, 2])


def dense(tf: Any) -> Any:
    """A dense `(4, 2)`."""
    return tf.constant(np.arange(8, dtype=np.float32).reshape(4, 2) - np.float32(2.5))


def gradient(tf: Any, y: Any, *xs: Any) -> Any:
    """The gradients of the sum of the squares of y."""
    return tf.gradients(tf.reduce_sum(y * y), list(xs))


def _matmul(tf: Any) -> Any:
    a, b = sample(tf), dense(tf)
    y = tf.sparse_tensor_dense_matmul(a, b)
    return [y, *gradient(tf, y, a.values, b)]


def _matmul_adjoint(tf: Any) -> Any:
    a = sample(tf)
    b = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    y = tf.sparse_tensor_dense_matmul(a, b, adjoint_a=True, adjoint_b=True)
    return [y, *gradient(tf, y, a.values, b)]


def _fed(tf: Any) -> Any:
    a = tf.sparse_placeholder(tf.float32, [None, 4])
    b = dense(tf)
    y = tf.sparse_tensor_dense_matmul(a, b)
    feeds = {a: tf.SparseTensorValue([[0, 1], [1, 3]], [2.0, 3.0], [2, 4])}
    return [y, *gradient(tf, y, a.values, b)], feeds


def _to_dense(tf: Any) -> Any:
    a = sample(tf)
    y = tf.sparse_tensor_to_dense(a, default_value=9.0)
    return [y, *gradient(tf, y, a.values)]


def _slice(tf: Any) -> Any:
    a = sample(tf)
    y = tf.sparse_slice(a, [0, 1], [2, 9])
    return [y, *gradient(tf, y.values, a.values)]


def _cwise(tf: Any) -> Any:
    a = sample(tf)
    b = tf.constant([[2.0], [4.0], [8.0]])
    product, quotient = a * b, a / b
    return [
        product,
        quotient,
        *gradient(tf, product.values, a.values, b),
        *gradient(tf, quotient.values, a.values, b),
    ]


def _add(tf: Any) -> Any:
    a, b = sample(tf), other(tf)
    total = tf.sparse_add(a, b)
    return [total, tf.sparse_add(a, b, threshold=0.6), *gradient(tf, total.values, a.values)]


def _add_dense(tf: Any) -> Any:
    a = sample(tf)
    b = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    total = tf.sparse_add(a, b)
    return [total, *gradient(tf, total, a.values, b)]


def _reduce(tf: Any) -> Any:
    a = sample(tf)
    by_row = tf.sparse_reduce_sum(a, 1)
    return [
        by_row,
        tf.sparse_reduce_sum(a),
        tf.sparse_reduce_sum(a, [0], keepdims=True),
        tf.sparse_reduce_max(a, -1),
        tf.sparse_reduce_sum_sparse(a, [0]),
        tf.sparse_reduce_max_sparse(a, [1], keepdims=True),
        *gradient(tf, by_row, a.values),
    ]


def _fill(tf: Any) -> Any:
    a = sample(tf)
    filled, empty = tf.sparse_fill_empty_rows(a, 5.0)
    return [filled, empty, *gradient(tf, filled.values, a.values)]


def _softmax(tf: Any) -> Any:
    a = sample(tf)
    y = tf.sparse_softmax(a)
    return [y, *gradient(tf, y.values, a.values)]


def _segments(tf: Any) -> Any:
    x = dense(tf)
    ids, segments = tf.constant([0, 2, 1, 1]), tf.constant([0, 0, 2, 2])
    found = [
        function(x, ids, segments)
        for function in (
            tf.sparse_segment_sum,
            tf.sparse_segment_mean,
            tf.sparse_segment_sqrt_n,
        )
    ]
    more = tf.sparse_segment_mean(x, ids, segments, num_segments=4)
    return [*found, more, *(gradient(tf, y, x)[0] for y in [*found, more])]


def _concat(tf: Any) -> Any:
    a, b = sample(tf), other(tf)
    wide = tf.sparse_concat(1, [a, b])
    tall = tf.sparse_concat(0, [a, tf.SparseTensor([[0, 0]], [8.0], [1, 2])], None, True)
    return [wide, tall]


def _mask(tf: Any) -> Any:
    rows = tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([4, 1, 7]))
    masked = tf.sparse_mask(rows, [1, 9])
    return [masked.values, masked.indices]


def _sets(tf: Any) -> Any:
    a = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0]], [5, 3, 3, 8], [3, 3])
    b = tf.constant([[3, 9], [7, 9], [1, 1]])
    return [
        tf.sets.intersection(a, tf.sparse.from_dense(b)),
        tf.sets.union(b, a),
        tf.sets.difference(b, b + 2),
        tf.sets.difference(b, b + 2, aminusb=False),
        tf.sets.size(a),
    ]


def _distance(tf: Any) -> Any:
    one = tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 0]], ["a", "b", "c", "d"], [4, 2])
    two = tf.SparseTensor(
        [[0, 0], [0, 1], [0, 2], [1, 0], [3, 0]], ["x", "a", "b", "y", "d"], [4, 3]
    )
    return [tf.edit_distance(one, two), tf.edit_distance(two, one, normalize=False)]


def _counts(tf: Any) -> list[Any]:
    places, shape = [[0, 0], [0, 3], [1, 1], [1, 2]], [3, 4]
    ids = tf.SparseTensor(places, [2, 2, 5, 0], shape)
    weights = tf.SparseTensor(places, [1.0, 2.0, 3.0, 4.0], shape)
    matrix = tf.constant([[1, 1, 7], [2, 2, 0]])
    return [
        tf.sparse.bincount(ids),
        tf.sparse.bincount(ids, axis=-1, minlength=8),
        tf.sparse.bincount(ids, axis=-1, maxlength=3),
        tf.sparse.bincount(ids, weights, axis=-1),
        tf.sparse.bincount(matrix, axis=-1, binary_output=True),
        tf.sparse.bincount(matrix, weights=tf.cast(matrix, tf.float32)),
    ]


def _crosses(tf: Any) -> list[Any]:
    columns = [tf.constant([["x", "y"], ["z", "x"], ["y", ""]]), words(tf)]
    numbers = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [1, -2, 3], [3, 2])
    return [
        tf.sparse.cross(columns),
        tf.sparse.cross([*columns, numbers], separator="_Y_"),
        tf.sparse.cross_hashed(columns),
        tf.sparse.cross_hashed([columns[0], numbers], num_buckets=100, hash_key=7),
    ]


def _mapped(tf: Any) -> list[Any]:
    return [
        tf.map_fn(lambda row: tf.sparse.reduce_sum(row), sample(tf), dtype=tf.float32),
        tf.map_fn(
            lambda pair: tf.sparse.to_dense(pair[0]) + pair[1],
            (sample(tf), tf.constant([10.0, 20.0, 30.0])),
            dtype=tf.float32,
        ),
        tf.vectorized_map(
            lambda pair: (pair[0] * pair[1], tf.cast(pair[0], tf.int32)),
            (tf.constant([1.0, 2.0, 3.0]), tf.constant([[1.0, 2.0]])),
        ),
    ]


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("add", "add_dense", "add_shapes", "add_unsorted", "distance", "extremes"),
    *("extremes_out_of_bounds", "extremes_shapes", "indicator", "mapped", "matmul"),
    *("matmul_adjoint", "matmul_fed", "reduce", "segments", "segments_out_of_order", "sets"),
    *("softmax",),
}
SNIPPETS: dict[str, Callable[[Any], Any]] = {
    "matmul": _matmul,
    "matmul_adjoint": _matmul_adjoint,
    "matmul_fed": _fed,
    "to_dense": _to_dense,
    "to_dense_words": lambda tf: tf.sparse.to_dense(words(tf)),
    "sparse_to_dense": lambda tf: [
        tf.sparse_to_dense([1, 3], [5], [7, 8], -1),
        tf.sparse_to_dense([[0, 1], [2, 0]], [3, 2], 4.0),
        tf.sparse_to_dense(2, [4], 1),
    ],
    "from_dense": lambda tf: tf.sparse.from_dense([[0, 3, 0], [4, 0, 0]]),
    "eye": lambda tf: [tf.sparse.eye(2, 3), tf.sparse.eye(2, dtype="int32")],
    "slice": _slice,
    "split": lambda tf: tf.sparse_split(sp_input=sample(tf), num_split=3, axis=1),
    "reshape": lambda tf: tf.sparse_reshape(sample(tf), [2, -1]),
    "expand_dims": lambda tf: [tf.sparse.expand_dims(sample(tf), axis) for axis in (0, 1, -1)],
    "reorder": lambda tf: tf.sparse_reorder(
        tf.SparseTensor([[2, 0], [0, 1], [0, 0]], [1, 2, 3], [3, 2])
    ),
    "transpose": lambda tf: tf.sparse_transpose(sample(tf)),
    "retain": lambda tf: tf.sparse_retain(sample(tf), [True, False, False, True]),
    "fill": _fill,
    "fill_words": lambda tf: tf.sparse_fill_empty_rows(words(tf), "?"),
    "reset_shape": lambda tf: [
        tf.sparse_reset_shape(words(tf)),
        tf.sparse_reset_shape(words(tf), [5, 2]),
    ],
    "concat": _concat,
    "merge": lambda tf: tf.sparse_merge(
        tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [4, 3, 1], [2, 2]),
        tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [0.5, 1.0, 2.0], [2, 2]),
        6,
    ),
    "indicator": lambda tf: tf.sparse_to_indicator(
        tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [4, 3, 1], [2, 2]), 6
    ),
    "mask": _mask,
    "cwise": _cwise,
    "dense_times_sparse": lambda tf: tf.constant([[2.0], [4.0], [8.0]]) * sample(tf),
    "add": _add,
    "add_dense": _add_dense,
    "add_unsorted": lambda tf: tf.sparse_add(
        tf.SparseTensor([[2, 0], [0, 0], [0, 0]], [1.0, 2.0, 3.0], [3, 4]), sample(tf)
    ),
    "extremes": lambda tf: [
        tf.sparse_maximum(sample(tf), other(tf)),
        tf.sparse_minimum(sample(tf), other(tf)),
    ],
    "reduce": _reduce,
    "softmax": _softmax,
    "segments": _segments,
    "sets": _sets,
    "distance": _distance,
    "counts": _counts,
    "crosses": _crosses,
    "mapped": _mapped,
}

SPARSE_ERRORS: dict[str, Callable[[Any], Any]] = {
    "out_of_bounds": lambda tf: tf.sparse_to_dense([1, 5], [5], [7, 8]),
    "out_of_order": lambda tf: tf.sparse_to_dense([3, 1], [5], [7, 8]),
    "repeated": lambda tf: tf.sparse_to_dense([1, 1], [5], [7, 8]),
    "reshape": lambda tf: tf.sparse_reshape(sample(tf), [5, -1]),
    "add_shapes": lambda tf: tf.sparse_add(sample(tf), tf.SparseTensor([[0, 0]], [1.0], [2, 4])),
    "extremes_shapes": lambda tf: tf.sparse_minimum(
        sample(tf), tf.SparseTensor([[0, 0]], [1.0], [2, 4])
    ),
    "extremes_out_of_bounds": lambda tf: tf.sparse_maximum(
        sample(tf), tf.SparseTensor([[5, 0]], [1.0], [3, 4])
    ),
    "counted_out_of_bounds": lambda tf: tf.sparse.bincount(
        tf.SparseTensor([[5, 0]], [1], [3, 4]), axis=-1
    ),
    "parts_do_not_fit": lambda tf: tf.SparseTensor([[0, 1]], [1, 2], [3, 4]),
    "dense_for_sparse": lambda tf: tf.sparse_reorder([[1, 2]]),
    "negative_counted": lambda tf: tf.sparse.bincount(tf.SparseTensor([[0]], [-1], [2]), axis=-1),
    "segments_out_of_order": lambda tf: tf.sparse_segment_sum(dense(tf), [0, 1], [1, 0]),
}


def run(tf: Any, snippet: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """What a snippet fetches: dtype, static shape where it has one, and value of each leaf."""
    return [
        {"dtype": str(array.dtype), "shape": shape, "value": array.tolist()}
        for array, shape in zip(*run_arrays(tf, snippet), strict=True)
    ]


def run_arrays(tf: Any, snippet: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
    """The values of the leaves of what a snippet fetches, and their static shapes."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = snippet(tf)
        fed = isinstance(made, tuple) and isinstance(made[1], dict)
        fetches, feeds = made if fed else (made, {})
        shapes: list[Any] = []
        values: list[Any] = []
        _flatten(session.run(fetches, feeds), values)
        _shapes(fetches, shapes)
    return [np.asarray(value) for value in values], shapes


def as_numbers(value: Any) -> Any:
    """An array that can be kept without pickle: complex numbers as pairs, a string as its bytes."""
    if value.dtype.kind == "c":
        return np.stack([value.real, value.imag], -1)
    if value.dtype.kind in "OS":
        return np.frombuffer(value.item(), np.uint8)
    return value


def _flatten(value: Any, found: list[Any]) -> None:
    if isinstance(value, (list, tuple)):
        for each in value:
            _flatten(each, found)
    else:
        found.append(value)


def _shapes(fetch: Any, found: list[Any]) -> None:
    """The static shapes; that of a sparse tensor once, beside its shape."""
    if isinstance(fetch, (list, tuple)):
        for each in fetch:
            _shapes(each, found)
    elif hasattr(fetch, "dense_shape") and hasattr(fetch, "get_shape"):
        found += [None, None, _plain(fetch.get_shape())]
    else:
        found.append(_plain(fetch.shape))


def _plain(shape: Any) -> Any:
    return None if shape.rank is None else shape.as_list()
