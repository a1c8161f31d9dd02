"""Array and math functions: lists for axes, static shapes, what is computed, refused arguments.

`SNIPPETS`: each gives what a session is to fetch. `ARRAY_ERRORS`: each must be refused, when it is
built or when it is fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_ROWS = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def unknown(tf: Any, value: Any = _ROWS, shape: Any = None) -> Any:
    """A value that is not known before the graph runs; its shape neither, by default."""
    return tf.placeholder_with_default(value, shape)


def first_dimension(tensor: Any) -> Any:
    """As a module sees it that does not know `compat.v1`."""
    return tensor.shape[0]


def _list_axes(tf: Any) -> Any:
    x = tf.constant(_ROWS)
    return [tf.expand_dims(x, [1]), tf.squeeze(x[:1], [0]), tf.squeeze(x[:1], axis=0)]


def _computed_axes(tf: Any) -> Any:
    x, y = unknown(tf), unknown(tf, shape=[None, 3])
    behind = tf.range(1, tf.rank(x))
    return [
        tf.reduce_sum(x, axis=behind),
        tf.reduce_max(x, axis=behind, keepdims=True),
        tf.reduce_mean(y, axis=tf.range(1, tf.rank(y))),
        tf.transpose(x, tf.range(tf.rank(x))[::-1]),
        tf.matrix_transpose(x),
        tf.reverse(x, tf.rank(x) - tf.constant([1])),
        *tf.gradients(tf.reduce_sum(x * x, axis=behind), x),
    ]


def _indexing(tf: Any) -> Any:
    x = unknown(tf, shape=[2, 3])
    rows = tf.boolean_mask(unknown(tf), unknown(tf, np.array([False, True]), [None]))
    return [
        rows,
        x[x > 1.5],
        x[np.array(0)],
        x[tf.constant(1), np.int64(2)],
        x[np.array([True, False])],
    ]


def _splits(tf: Any) -> Any:
    x, one = unknown(tf, shape=[2, 3]), unknown(tf, np.int32(1), [])
    sizes = unknown(tf, np.array([2, 1], np.int32))
    return [
        *tf.split(x, [tf.constant(1), tf.constant(2)], axis=1),
        *tf.split(x, [one, 3 - one], axis=1),
        *tf.split(x, sizes, axis=1, num=2),
        *tf.split(x, 3, axis=-1),
    ]


def _partition(tf: Any) -> Any:
    x, numbers = tf.constant(_ROWS), unknown(tf, np.array([1, 0], np.int32), [2])
    return [
        *tf.dynamic_partition(x, numbers, 3),
        *tf.dynamic_partition(x, [[0, 1, 0], [1, 1, 0]], 2),
        *tf.dynamic_partition(x, 1, 2),
        *tf.gradients(tf.dynamic_partition(x * x, numbers, 2)[0], x),
    ]


def _stitch(tf: Any) -> Any:
    x = tf.constant(_ROWS)
    return [
        tf.dynamic_stitch([[0, 2], 1], [x, x[0]]),
        tf.dynamic_stitch([unknown(tf, np.array([1, 0], np.int32), [2])], [x]),
    ]


def _linspace(tf: Any) -> Any:
    return [
        tf.linspace([0.0, 5.0], [10.0, 40.0], 3, axis=-1),
        tf.linspace(1, 4, 3),
        tf.linspace(1.0, 5.0, 1),
    ]


def _products(tf: Any) -> Any:
    x = tf.constant(_ROWS)
    return [
        tf.linalg.matvec(x, [1.0, 2.0, 3.0]),
        tf.linalg.matvec(x, [1.0, 2.0], transpose_a=True),
        *tf.linalg.normalize(x + 1.0, axis=1),
        *tf.linalg.normalize(x),
    ]


def _special(tf: Any) -> Any:
    x = tf.constant([[0.5, 1.5, 2.5], [-1.0, 0.0, 3.0]])
    return [
        tf.math.cumulative_logsumexp(x, axis=1),
        tf.math.cumulative_logsumexp(x, axis=0, exclusive=True),
        tf.math.cumulative_logsumexp(x, axis=-1, reverse=True),
        tf.math.cumulative_logsumexp(x, axis=-1, reverse=True, exclusive=True),
        tf.math.bessel_i0(x),
        tf.math.bessel_i1(x),
        tf.math.erfcinv([0.25, 1.5]),
        tf.math.polyval([tf.constant(2.0), 1.0, -3.0], x),
        tf.math.reciprocal_no_nan(x),
        tf.math.xlog1py(x[:1], [1.0, 2.0, 0.0]),
        tf.truncatemod(tf.constant([-7, 7]), [3, -3]),
        *tf.shape_n([x, x[0]]),
    ]


def _scatter(tf: Any) -> Any:
    x = tf.constant(_ROWS)
    return [
        tf.tensor_scatter_nd_max(x, [[0], [1]], [[9.0, 0.0, 9.0], [0.0, 9.0, 0.0]]),
        tf.tensor_scatter_nd_min(x, [[1, 0]], [-2.0]),
    ]


def _complex(tf: Any) -> Any:
    x = tf.constant([[3.0 + 4.0j, 1.0j], [0.0, 2.0 - 2.0j]], tf.complex64)
    return [
        tf.abs(x),
        tf.imag(tf.matmul(x, x, adjoint_a=True)),
        tf.real(tf.matmul(x, x, adjoint_b=True)),
        tf.real(tf.norm(x)),
        tf.linalg.svd(x, compute_uv=False),
        tf.cast(x, tf.float32),
        tf.imag(tf.matrix_transpose(x, conjugate=True)),
        tf.logical_not(tf.equal(x, 0)),
    ]


_STACK = np.array([[[0, 2, 1], [4, 5, 6], [7, 8, 1]], [[2, 1, 0], [1, 3, 1], [0, 1, 4]]], float)
_RIGHT = np.array([[1, 2], [3, 4], [5, 7]], float)


def _matrix_functions(tf: Any) -> Any:
    square, tall = tf.constant(_STACK[1]), tf.constant(_RIGHT)
    root, inverse = tf.linalg.sqrtm(square), tf.linalg.pinv(tall)
    return [
        *(root, inverse, tf.real(tf.linalg.logm(_STACK[1].astype(np.complex128)))),
        tf.linalg.pinv(_STACK[1], rcond=0.5),
        tf.linalg.matrix_rank(np.stack([_STACK[1], np.ones((3, 3))])),
        *(tf.linalg.matrix_rank(tall, tol=1.0), tf.matrix_square_root(square)),
        *(tf.gradients(root**3, square), tf.gradients(inverse**3, tall)),
    ]


def _places(tf: Any) -> Any:
    spaces = unknown(tf, np.array([5, 3], np.int32))
    return [
        *(tf.unravel_index([2, 5], [2, 3]), tf.unravel_index(22, [2, 3, 4])),
        tf.unravel_index(unknown(tf, np.array([2, 5], np.int32)), [2, 3]),
        *tf.required_space_to_batch_paddings([5, 3], [2, 2]),
        *tf.required_space_to_batch_paddings(spaces, [2, 4], [[1, 0], [2, 0]]),
        *(tf.roll(_ROWS, [1, 1], [1, 1]), tf.roll(_ROWS, 2, -1)),
        tf.searchsorted([[1, 2, 3]], [1, 2]),
        tf.searchsorted([[1, 2, 3], [2, 2, 4]], [[1], [2]], side="right"),
        tf.broadcast_dynamic_shape(unknown(tf, np.array([2, 1, 3], np.int32)), [4, 1]),
    ]


def _parts_of_unknown_shape(tf: Any) -> Any:
    parts = [unknown(tf, np.arange(4.0 * n, dtype=np.float32).reshape(n, 4)) for n in (3, 2, 2)]
    ids = tf.constant([[0, 1, 2], [6, 5, 3]])
    return [
        tf.nn.embedding_lookup(parts, ids),
        tf.nn.embedding_lookup(parts, unknown(tf, [5, 6, 1]), partition_strategy="div"),
        tf.nn.embedding_lookup(parts[0], ids[0], max_norm=1.5),
    ]


def _segments_of_integers(tf: Any) -> Any:
    most = np.iinfo(np.int32).max
    rows = (tf.constant([most, most, 1, 2]), unknown(tf, np.array([[most], [most], [1], [2]])))
    return [
        each(x, [0, 0, 1, 3])
        for x in rows
        for each in (tf.segment_sum, tf.segment_prod, tf.segment_max, tf.segment_mean)
    ]


def _means_of_integers(tf: Any) -> Any:
    limits = [
        np.array([most, most - 1, 1], dtype)
        for dtype in ("int8", "uint8", "int32", "int64", "uint64")
        for most in (np.iinfo(dtype).max,)
    ]
    return [tf.reduce_mean(made) for x in limits for made in (tf.constant(x), unknown(tf, x))]


def _float_arrays_for_integers(tf: Any) -> Any:
    x = np.arange(6.0)
    return [
        tf.reshape(x, np.array([2.0, 3.0])),
        tf.tile(x[:2], np.array([2.0])),
        tf.fill(np.array([2.0]), 1),
        tf.zeros(np.array([2.0])),
        tf.transpose([[1, 2]], np.array([1.0, 0.0])),
        tf.pad([1, 2], np.array([[1.0, 2.0]])),
        tf.reduce_sum(x, np.array(0.0)),
        tf.one_hot(np.array([0.0, 1.0]), np.array(3.0)),
        tf.repeat([1, 2], np.array([1.0, 2.0])),
        *tf.nn.top_k(x, np.array(2.0)),
    ]


def _tensors_for_counts(tf: Any) -> Any:
    one, rows = tf.constant(1), [[1, 2], [3, 4]]
    return [
        *tf.nn.top_k([1.0, 3.0, 2.0], tf.constant(2, tf.int64)),
        tf.nn.in_top_k([[1.0, 2.0]], [1], one),
        tf.nn.in_top_k([[1.0, 2.0], [2.0, 1.0]], [1, 1], unknown(tf, np.int32(1), [])),
        tf.gather_nd(rows, [[0], [1]], batch_dims=one),
        tf.boolean_mask(rows, [True, False], axis=one),
    ]


def _unknown_ranks(tf: Any) -> Any:
    """Linear algebra of tensors whose rank is known when they are computed."""
    stack, one = unknown(tf, _STACK), unknown(tf, _STACK[0])
    right = unknown(tf, np.stack([_RIGHT, -_RIGHT]))
    wide = unknown(tf, _STACK[:, :2])
    return [
        *(tf.norm(stack), tf.norm(stack, 1), tf.norm(stack, "fro", [-2, -1])),
        tf.tensordot(stack, one, [[1], [0]]),
        tf.tensordot(stack, one, 1),
        tf.linalg.lstsq(stack, right),
        tf.linalg.lstsq(wide, right[:, :2], l2_regularizer=0.5),
        tf.linalg.lstsq(wide, right[:, :2], fast=False),
        *(tf.diag_part(one), tf.diag_part(unknown(tf, np.arange(16.0).reshape(2, 2, 2, 2)))),
        tf.linalg.svd(unknown(tf, _STACK + 1j), compute_uv=False),
        tf.gather(stack, [[1, 0], [2, 2]], batch_dims=-1, axis=1),
        tf.random_shuffle(unknown(tf, 3)),
    ]


def _eigenvalues(tf: Any) -> Any:
    """Gradients are of the lower triangle, and those of a broadcast batch of all its matrices."""
    x = tf.constant(_STACK)
    values, vectors = tf.self_adjoint_eig(x)
    solved = tf.matrix_triangular_solve(x[:, 1:, :2], tf.constant(_RIGHT[:2]))
    return [
        *tf.gradients(tf.reduce_sum(values**2 * [1.0, 2.0, 3.0]), x),
        *tf.gradients(tf.reduce_sum(vectors**4), x),
        solved,
        *tf.gradients(tf.reduce_sum(solved**2 * np.arange(8.0).reshape(2, 2, 2)), x),
    ]


def _infinities(tf: Any) -> Any:
    orders = tf.constant([1.0, np.inf, 1.0, np.inf, np.nan, 0.0, 0.0, np.inf, 0.0, 2.0, -1.0])
    points = tf.constant([np.inf, 1.0, 0.0, np.inf, 1.0, 1.0, 0.0, 0.0, np.inf, np.nan, 1.0])
    return [
        *(tf.igamma(orders, points), tf.igammac(orders, points)),
        *(tf.linspace(0.0, np.inf, 4), tf.linspace(np.float64(-np.inf), np.inf, 2)),
        *(tf.linspace([np.inf, 1.0], [0.0, 2.0], 3), tf.linspace(1.0, 2.0, 0)),
        tf.is_nan(tf.real(tf.linalg.logm(np.zeros([2, 2], np.complex64)))),
        tf.real(tf.bitcast(np.array([[1.0, 2.0]], np.float32), tf.complex64)),
        tf.bitcast(np.array([1 + 2j], np.complex64), tf.float32),
    ]


def _loops(tf: Any) -> Any:
    """A loop gives the kind of sequence that its body gave: its length and the first's place."""

    def last(variables: Any, body: Any, **how: Any) -> Any:
        found = tf.while_loop(lambda *_: tf.constant(False), body, variables, **how)
        kind = {list: 1, tuple: 2, dict: 3}.get(type(found), 0)
        inner = {list: 1, tuple: 2, dict: 3}.get(type(found[0]) if kind in (1, 2) else None, 0)
        return tf.constant([kind, inner])

    zero = tf.constant(0)
    return [
        last([zero, zero], lambda a, b: (a, b)),
        last((zero, zero), lambda a, b: [a, b]),
        last([zero], lambda a: (a,)),
        last([zero], lambda a: a, return_same_structure=True),
        last([(zero, zero)], lambda a: [a]),
        last([{"a": zero, "b": zero}], lambda a: [a]),
        last([(zero, zero)], lambda a: (a[0], a[1]), maximum_iterations=2),
    ]


def _computed_along(tf: Any) -> Any:
    """Axes and sizes that only a run knows, of operations whose static ranks stay."""
    x, one = tf.constant(_ROWS), unknown(tf, np.int32(1), [])
    picked = tf.gather(x, [2, 0], axis=one)
    return [
        picked,
        tf.concat([x, picked], one),
        tf.argmax(x, one),
        tf.cumsum(x, one, reverse=True),
        tf.split(x, 2, one - 1)[0],
        tf.roll(x, [2], [one]),
        tf.transpose(x, [one, 0]),
        tf.reduce_sum(x, [one]),
        tf.nn.softmax(x, one - 1),
        tf.linalg.diag_part(x, k=one),
        tf.tensordot(x, x, tf.stack([[one], [one]])),
        tf.bincount(tf.constant([1, 1]), minlength=one * 4),
        *tf.gradients(picked * picked, x),
    ]


def _shapes_without_feeds(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [2, 3])
    return [tf.shape(x), tf.size(x), tf.rank(x), tf.shape(x) * 2]


def _edges(tf: Any) -> Any:
    x = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 2, 3))
    pair = tf.constant([1 + 2j], tf.complex64)
    return [
        tf.stack([]),
        tf.reshape(np.zeros([2, 0], np.float32), [-1, 0]),
        tf.transpose(x, [0, 1, -1]),
        tf.gather(x, [[1, 0], [0, 1]], batch_dims=-1, axis=-1),
        tf.bitcast(pair, tf.float32),
        tf.bitcast(pair, tf.int64),
        tf.imag(tf.bitcast(tf.constant([1.0, 2.0]), tf.complex64)),
        tf.global_norm([]),
    ]


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("assert_shapes", "assert_shapes computed", "assert_shapes rank", "assert_shapes sparse"),
    *("broadcast computed", "broadcast_dynamic_shape", "edit_distance", "infinities"),
    *("logm of floats", "matrix functions", "pinv of integers", "places", "sparse product"),
    *("where of a vector and a scalar", "where of columns", "where_v2"),
}
SNIPPETS: dict[str, Callable[[Any], Any]] = {
    "linear algebra of unknown ranks": _unknown_ranks,
    "eigenvalues and batches": _eigenvalues,
    "infinities": _infinities,
    "kinds of loops": _loops,
    "computed along": _computed_along,
    "shapes without feeds": _shapes_without_feeds,
    "edges": _edges,
    "where_v2": lambda tf: [
        tf.where_v2([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]),
        tf.where_v2([[True], [False]], [1, 2], 3),
        tf.where([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]),
    ],
    "cond of one and a list of one": lambda tf: [
        tf.cond(unknown(tf, True, []), lambda: 1, lambda: [2]),
        tf.cond(unknown(tf, False, []), lambda: (1,), lambda: 2),
    ],
    "dtypes by number": lambda tf: [
        tf.cast([1, 0], 10),
        tf.zeros([2], np.int64(1)),
        tf.constant([1], 103),
    ],
    "segments of integers": _segments_of_integers,
    "means of integers": _means_of_integers,
    "float arrays for integers": _float_arrays_for_integers,
    "tensors for counts": _tensors_for_counts,
    "counts of a long constant": lambda tf: tf.gather(
        tf.math.bincount(np.arange(10000) % 9000), [0, 999, 1000, 8999]
    ),
    "parts_of_unknown_shape": _parts_of_unknown_shape,
    "axes as lists": _list_axes,
    "computed axes": _computed_axes,
    "indexing": _indexing,
    "splits": _splits,
    "dynamic_partition": _partition,
    "dynamic_stitch": _stitch,
    "linspace": _linspace,
    "products": _products,
    "special functions": _special,
    "scatter": _scatter,
    "complex numbers": _complex,
    "matrix functions": _matrix_functions,
    "places": _places,
}

_X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
ARRAY_ERRORS: dict[str, Callable[[Any], Any]] = {
    "range_of_a_vector": lambda tf: tf.range([1, 2]),
    "stack axis": lambda tf: tf.stack([_X, _X], axis=5),
    "unstack axis": lambda tf: tf.unstack(tf.constant(_X), axis=2),
    "unstack num": lambda tf: tf.unstack(tf.constant(_X), num=3),
    "concat scalars": lambda tf: tf.concat([tf.constant(1), tf.constant(2)], 0),
    "concat axis": lambda tf: tf.concat([_X, _X], 2),
    "split evenly": lambda tf: tf.split(tf.range(4), 3),
    "split sum": lambda tf: tf.split(tf.range(4), [1, 2]),
    "split unknown": lambda tf: tf.split(tf.range(4), unknown(tf, np.array([1, 3], np.int32))),
    "argmax axis list": lambda tf: tf.argmax(_X, [1]),
    "argmax dtype": lambda tf: tf.argmax(_X, 1, output_type=tf.float32),
    "reduce axis float": lambda tf: tf.reduce_sum(_X, axis=tf.constant(0.5)),
    "reduce axis range": lambda tf: tf.reduce_sum(_X, axis=2),
    "expand_dims axis": lambda tf: tf.expand_dims(_X, 4),
    "squeeze axis": lambda tf: tf.squeeze(tf.constant(_X), [2]),
    "cumsum axis": lambda tf: tf.cumsum(_X, 2),
    "pad mode": lambda tf: tf.pad(_X, [[0, 0], [0, 0]], mode="NONE"),
    "pad negative": lambda tf: tf.pad(_X, [[-1, 0], [0, 0]]),
    "scatter_nd shapes": lambda tf: tf.scatter_nd([[0], [1]], [1.0, 2.0, 3.0], [4]),
    "scatter_nd empty": lambda tf: tf.scatter_nd([[0]], [1.0], [0]),
    "segment ids rank": lambda tf: tf.segment_sum(_X, [[0, 0, 0], [1, 1, 1]]),
    "segment ids order": lambda tf: tf.segment_sum(_X, [1, 0]),
    "partition range": lambda tf: tf.dynamic_partition([1.0, 2.0], [0, 7], 2),
    "partition shape": lambda tf: tf.dynamic_partition(_X, [0, 1, 0], 2),
    "stitch lengths": lambda tf: tf.dynamic_stitch([[0, 1]], [_X, _X]),
    "invert_permutation": lambda tf: tf.invert_permutation([[0, 1]]),
    "division of dtypes": lambda tf: tf.constant([1]) / tf.constant([2.0]),
    "scalar_mul": lambda tf: tf.scalar_mul(tf.constant([1.0, 2.0]), tf.constant(1.0)),
    "mask of a scalar": lambda tf: tf.constant(_X)[tf.constant(True)],
    "index": lambda tf: tf.constant(_X)[1.5],
    "tensordot axis": lambda tf: tf.tensordot(_ROWS, _ROWS, [[0], [5]]),
    "norm axis": lambda tf: tf.norm(tf.constant(_ROWS), axis=[1]),
    "einsum label": lambda tf: tf.einsum("ij->ik", tf.constant(_ROWS)),
    "matrix_diag of a scalar": lambda tf: tf.matrix_diag(3.0),
    "sparse product": lambda tf: tf.sparse_tensor_dense_matmul(
        tf.SparseTensor(*(unknown(tf, np.array(each)) for each in ([[0, 1]], [1.0], [2, 3]))),
        np.ones([4, 2]),
    ),
    "multinomial of floats": lambda tf: tf.multinomial([[1.0, 2.0]], 1, output_dtype=tf.float32),
    "linspace num": lambda tf: tf.linspace(0.0, 1.0, -1),
    "variance of integers": lambda tf: tf.math.reduce_variance([1, 2]),
    "polyval": lambda tf: tf.math.polyval(tf.constant([1.0]), 2.0),
    "eye": lambda tf: tf.eye(2.5),
    "unknown shape": lambda tf: tf.convert_to_tensor(tf.TensorShape([1, None])),
    "unknown dimension": lambda tf: tf.convert_to_tensor(tf.TensorShape([None]).dims[0]),
    "shape of floats": lambda tf: tf.convert_to_tensor(tf.TensorShape([1, 2]), tf.float32),
    "too many elements": lambda tf: tf.constant([1, 2, 3], shape=[2]),
    "ragged": lambda tf: tf.constant([[1, 2], [3]]),
    "transpose a vector": lambda tf: tf.matrix_transpose([1, 2, 3]),
    "two axes": lambda tf: tf.expand_dims(1, axis=[0, 1]),
    "reverse twice": lambda tf: tf.reverse(_X, [0, -2]),
    "reverse computed": lambda tf: tf.reverse(_X, unknown(tf, np.array([7], np.int32))),
    "axes of rank 2": lambda tf: tf.reduce_sum(_X, np.array([[0], [1]])),
    "one_hot depth": lambda tf: tf.one_hot([0, 1], -1),
    "one_hot axis": lambda tf: tf.one_hot([[0]], 3, axis=-3),
    "gather_nd rank": lambda tf: tf.gather_nd(_X, 0),
    "fill dims": lambda tf: tf.fill([[1]], 0),
    "fill value": lambda tf: tf.fill([2], [1, 2]),
    "slice rank": lambda tf: tf.slice(_X, [0], [1]),
    "slice begin": lambda tf: tf.slice([1, 2, 3], [4], [-1]),
    "concat nothing": lambda tf: tf.concat([], 0),
    "split -1 twice": lambda tf: tf.split([1, 2, 3], [-1, 2, -1]),
    "matmul twice": lambda tf: tf.matmul(_X, _X, transpose_a=True, adjoint_a=True),
    "cross": lambda tf: tf.cross([1.0, 2.0], [1.0, 2.0]),
    "set_diag": lambda tf: tf.matrix_set_diag([[1.0, 2.0], [3.0, 4.0]], [1.0]),
    "diag_part": lambda tf: tf.diag_part([[1.0, 2.0]]),
    "diag": lambda tf: tf.diag(1.0),
    "top_k": lambda tf: tf.nn.top_k([1.0, 2.0], -1),
    "in_top_k": lambda tf: tf.nn.in_top_k([1.0], [0], 1),
    "setdiff1d": lambda tf: tf.setdiff1d([1], [[1]]),
    "range": lambda tf: tf.range(10, 0),
    "bitcast": lambda tf: tf.bitcast([1.0], tf.int64),
    "edit_distance": lambda tf: tf.edit_distance(
        tf.SparseTensor([[0, 0]], [1], [1, 1]), tf.SparseTensor([[0, 0]], [1.0], [1, 1])
    ),
    "sparse_split": lambda tf: tf.sparse_split(
        sp_input=tf.SparseTensor([[0]], [1], [3]), num_split=0, axis=0
    ),
    "slice end": lambda tf: tf.slice(_X, [0, 1], [1, 5]),
    "pad reflected": lambda tf: tf.pad([1, 2, 3], [[3, 1]], "REFLECT"),
    "one_hot values": lambda tf: tf.one_hot([0, 1], 2, on_value=1.0, off_value=1),
    "two names of axes": lambda tf: tf.reduce_sum(_X, axis=0, reduction_indices=[1]),
    "reverse_sequence": lambda tf: tf.reverse_sequence(_X, [2], seq_axis=1),
    "sequence_mask": lambda tf: tf.sequence_mask([1], maxlen=[2]),
    "roll axis": lambda tf: tf.roll([1, 2], 1, 3),
    "roll shifts": lambda tf: tf.roll([1, 2], [1, 2], [0]),
    "roll a scalar": lambda tf: tf.roll(1, 1, 0),
    "histogram range": lambda tf: tf.histogram_fixed_width([1.0], [5.0, 0.0]),
    "histogram bins": lambda tf: tf.histogram_fixed_width([1.0], [0.0, 5.0], nbins=-5),
    "broadcast_dynamic_shape": lambda tf: tf.broadcast_dynamic_shape([2, 3], [3, 3]),
    "broadcast computed": lambda tf: tf.broadcast_dynamic_shape(
        unknown(tf, np.array([2, 3], np.int32)), [3, 3]
    ),
    "unravel_index": lambda tf: tf.unravel_index([2, 6], [2, 3]),
    "sparse_concat axis": lambda tf: tf.sparse_concat(
        5, [tf.SparseTensor([[0, 0]], [1], [1, 1])] * 2
    ),
    "sparse_concat ranks": lambda tf: tf.sparse_concat(
        0, [tf.SparseTensor([[0, 0]], [1], [1, 1]), tf.SparseTensor([[0]], [1], [1])]
    ),
    "space_to_batch": lambda tf: tf.required_space_to_batch_paddings([5, 3], [2, 2, 1]),
    "logm of floats": lambda tf: tf.linalg.logm([[1.0, 0.0], [0.0, 1.0]]),
    "pinv of integers": lambda tf: tf.linalg.pinv([[1, 2]]),
    "assert_shapes": lambda tf: tf.debugging.assert_shapes(
        [(tf.zeros([2, 3]), ("N", "Q")), (tf.zeros([3, 4]), ("N", "D"))]
    ),
    "assert_shapes computed": lambda tf: tf.debugging.assert_shapes(
        {unknown(tf): ("N", "Q"), unknown(tf, _ROWS[0]): ("N",)}
    ),
    "assert_shapes rank": lambda tf: tf.debugging.assert_shapes([(unknown(tf), ("N", 3, "Q"))]),
    "assert_shapes sparse": lambda tf: tf.debugging.assert_shapes(
        [(tf.SparseTensor([[0, 0]], [1], [2, 3]), (..., 4))]
    ),
    "float for an axis": lambda tf: tf.reduce_sum(_X, 0.0),
    "floats for a shape": lambda tf: tf.reshape(_X, [3.0, 2.0]),
    "float for k": lambda tf: tf.nn.top_k(_X, 2.0),
    "where of a vector and a scalar": lambda tf: tf.where([True, False], [1, 2], 3),
    "where of columns": lambda tf: tf.where([[True], [False]], _X, _X),
    "where computed": lambda tf: tf.where(
        unknown(tf, np.array([True, False])), unknown(tf, np.array([1, 2])), unknown(tf, 3)
    ),
    "a dimension of -1": lambda tf: tf.placeholder(tf.float32, (-1, 10)),
    "concat of two variables": lambda tf: tf.concat(tf.Variable([1.0]), tf.Variable([2.0])),
    "sparse_to_dense: rows of values": lambda tf: tf.sparse_to_dense([[0, 1]], [2, 2], [[1]]),
    "sparse_to_dense: a vector of defaults": lambda tf: tf.sparse_to_dense(
        [[0, 1]], [2, 2], [1], default_value=[1]
    ),
    "sparse_to_dense: too many values": lambda tf: tf.sparse_to_dense(
        unknown(tf, np.array([[0, 1]])), unknown(tf, np.array([2, 2])), unknown(tf, np.ones(3))
    ),
    "sparse_to_dense: out of order": lambda tf: tf.sparse_to_dense([3, 1], [4], [1, 2]),
    "sparse_to_dense: out of range": lambda tf: tf.sparse_to_dense(
        [4], [4], 1, validate_indices=False
    ),
    "axis out of range": lambda tf: tf.concat([[1], [2]], unknown(tf, np.int32(3), [])),
    "axis of argmax": lambda tf: tf.argmax([1], 1),
    "axis and dim": lambda tf: tf.expand_dims([1], axis=0, dim=0),
    "no axis": lambda tf: tf.expand_dims([1]),
    "negative multiples": lambda tf: tf.tile([1], [-1]),
    "clip that broadcasts": lambda tf: tf.clip_by_value([1.0], [2.0, 3.0], 4.0),
    "split into others": lambda tf: tf.split([1, 2, 3], [1, 2], num=3),
    "broadcast to another": lambda tf: tf.broadcast_to([1, 2], [2, 3]),
    "feed of an axis": lambda tf: tf.Session().run(
        *(lambda axis: (tf.gather(_ROWS, [0], axis=axis), {axis: 1}))(tf.constant(0))
    ),
    "dtype of an input": lambda tf: tf.regex_replace(tf.constant([1.0]), "a", "b"),
}
