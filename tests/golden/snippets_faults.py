"""Values that TensorFlow's operations refuse while a graph runs.

`FAULTS`: by name, a function of the module `tf` (`tf.compat.v1`) and of tensors, with arrays for
these that it takes, and arrays that it refuses. `STATEFUL`: the same for functions that make and
assign variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Fault(NamedTuple):
    """A program.

    Attributes:
        made: `made(tf, *tensors)` gives a tensor.
        good: arrays for the tensors.
        bad: arrays that are refused.
        gradient: whether the program has a gradient that is tested, by floats that it multiplies
            its first result by.
    """

    made: Callable[..., Any]
    good: tuple[Any, ...]
    bad: tuple[Any, ...]


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("crop_and_resize", "crop_and_resize 2", "ctc_loss", "ctc_loss 2", "ctc_loss of lengths"),
    *("ctc_loss of lengths 2", "ctc_loss of no labels", "log_uniform_candidate_sampler"),
    *("log_uniform_candidate_sampler 2", "non_max_suppression", "sparse_segment_mean"),
    *("sparse_segment_mean 2", "sparse_segment_mean 3", "sparse_segment_mean 4"),
    *("sparse_segment_mean of 3", "sparse_segment_mean of 3 2", "sparse_segment_sqrt_n"),
    *("sparse_segment_sqrt_n 2", "sparse_segment_sqrt_n 3", "sparse_segment_sqrt_n 4"),
    *("sparse_segment_sqrt_n of 3", "sparse_segment_sqrt_n of 3 2", "sparse_segment_sum"),
    *("sparse_segment_sum 2", "sparse_segment_sum 3", "sparse_segment_sum 4"),
    *("sparse_segment_sum of 3", "sparse_segment_sum of 3 2", "sparse_tensor_dense_matmul"),
    *("sparse_tensor_dense_matmul 2", "uniform_candidate_sampler", "uniform_candidate_sampler 2"),
}
FAULTS: dict[str, Fault] = {}
STATEFUL: dict[str, Fault] = {}

_TABLE = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
_I, _L = np.int32, np.int64


def _ids(*values: Any, dtype: Any = _I) -> Any:
    return np.array(values, dtype)


def _add(name: str, made: Callable[..., Any], good: Sequence[Any], *bad: Sequence[Any]) -> None:
    for number, each in enumerate(bad):
        FAULTS[f"{name}{f' {number + 1}' if number else ''}"] = Fault(
            made, tuple(good), tuple(each)
        )


# -- rows by their number

_add(
    "gather",
    lambda tf, i: tf.gather(_TABLE, i),
    [_ids(1, 3, 0)],
    [_ids(1, 3, 4)],
    [_ids(0, -1, 9)],
)
_add("gather of a scalar", lambda tf, i: tf.gather(_TABLE, i), [_I(3)], [_I(4)])
_add(
    "gather of int64",
    lambda tf, i: tf.gather(_TABLE, i),
    [_ids([1], [2], dtype=_L)],
    [_ids([1], [1 << 40], dtype=_L)],
)
_add("gather of columns", lambda tf, i: tf.gather(_TABLE, i, axis=1), [_ids(2)], [_ids(0, 3)])
_add(
    "gather of a batch",
    lambda tf, i: tf.gather(_TABLE[:2], i, batch_dims=1),
    [_ids([2], [0])],
    [_ids([2], [3])],
)
_add(
    "gather of a given table",
    lambda tf, table, i: tf.gather(table, i),
    [_TABLE, _ids(3)],
    [_TABLE, _ids(0, 4)],
)
_add(
    "gather_nd",
    lambda tf, i: tf.gather_nd(_TABLE, i),
    [_ids([3, 2], [0, 0])],
    [_ids([3, 2], [0, 3])],
    [_ids([-1, 2], [0, 0])],
)
_add(
    "gather_nd of rows",
    lambda tf, i: tf.gather_nd(_TABLE, i),
    [_ids([[3]], [[0]])],
    [_ids([[3]], [[4]])],
)
_add(
    "gather_nd of a batch",
    lambda tf, i: tf.gather_nd(_TABLE[:2], i, batch_dims=1),
    [_ids([2], [0])],
    [_ids([2], [3])],
)
_add(
    "embedding_lookup",
    lambda tf, i: tf.nn.embedding_lookup(_TABLE, i),
    [_ids(3, 0)],
    [_ids(3, 4)],
    [_ids(-1, 0)],
)
_add(
    "embedding_lookup_sparse",
    lambda tf, i: tf.nn.embedding_lookup_sparse(
        _TABLE, tf.SparseTensor([[0, 0], [1, 0], [1, 1]], i, [2, 2]), None, combiner="sum"
    ),
    [_ids(3, 0, 1, dtype=_L)],
    [_ids(3, 0, 4, dtype=_L)],
)
_add(
    "scatter_nd",
    lambda tf, i: tf.scatter_nd(i, [1.0, 2.0], [4]),
    [_ids([3], [0])],
    [_ids([3], [4])],
    [_ids([-1], [4])],
)
_add(
    "scatter_nd of pairs",
    lambda tf, i: tf.scatter_nd(i, [1.0, 2.0], [4, 3]),
    [_ids([3, 1], [0, 2])],
    [_ids([3, 1], [0, 3])],
)
for _name in ("update", "add", "sub", "max", "min"):
    _add(
        f"tensor_scatter_nd_{_name}",
        lambda tf, i, name=f"tensor_scatter_nd_{_name}": getattr(tf, name)(
            tf.constant(_TABLE), i, [[1.0, 2.0, 3.0]]
        ),
        [_ids([3])],
        [_ids([4])],
    )
_add(
    "tensor_scatter_nd_add of pairs",
    lambda tf, i: tf.tensor_scatter_nd_add(tf.constant(_TABLE), i, [1.0, 2.0]),
    [_ids([3, 1], [0, 2])],
    [_ids([3, 1], [-2, 2])],
)
_add("x[i]", lambda tf, i: tf.constant(_TABLE)[i], [_I(3)], [_I(4)], [_I(-5)])
_add("x[:, i]", lambda tf, i: tf.constant(_TABLE)[:, i], [_I(-3)], [_I(3)])
_add(
    "slice",
    lambda tf, i: tf.slice(tf.constant(_TABLE), [i, 0], [2, 2]),
    [_I(2)],
    [_I(3)],
    [_I(-1)],
)

# -- segments

for _name in ("sum", "mean", "max", "min", "prod"):
    _add(
        f"segment_{_name}",
        lambda tf, i, name=f"segment_{_name}": getattr(tf, name)(_TABLE, i),
        [_ids(0, 0, 1, 2)],
        [_ids(0, 1, 0, 2)],
        [_ids(-1, 0, 1, 2)],
    )
for _name in ("sum", "mean", "max", "min", "prod", "sqrt_n"):
    _add(
        f"unsorted_segment_{_name}",
        lambda tf, i, name=f"unsorted_segment_{_name}": getattr(tf.math, name)(_TABLE, i, 3),
        [_ids(2, 0, -1, 2)],
        [_ids(0, 1, 3, 2)],
    )
for _name in ("sum", "mean", "sqrt_n"):
    _add(
        f"sparse_segment_{_name}",
        lambda tf, i, s, name=f"sparse_segment_{_name}": getattr(tf, name)(_TABLE, i, s),
        [_ids(3, 0, 1), _ids(0, 0, 1)],
        [_ids(3, 4, 1), _ids(0, 0, 1)],
        [_ids(3, 0, 1), _ids(0, 1, 0)],
        [_ids(3, 0, -1), _ids(0, 0, 1)],
        [_ids(3, 0, 1), _ids(-1, 0, 1)],
    )
    _add(
        f"sparse_segment_{_name} of 3",
        lambda tf, i, s, name=f"sparse_segment_{_name}": getattr(tf, name)(
            _TABLE, i, s, num_segments=3
        ),
        [_ids(3, 0, 1), _ids(0, 0, 2)],
        [_ids(3, 0, 1), _ids(0, 0, 3)],
        [_ids(3, 4, 1), _ids(0, 0, 1)],
    )

# -- division of integers

for _name in ("floordiv", "div", "truncatediv", "mod", "floormod", "truncatemod"):
    for _dtype in ("int32", "int64", *(() if _name == "truncatemod" else ("int8", "uint8"))):
        _add(
            f"{_name} of {_dtype}",
            lambda tf, x, y, name=_name: getattr(tf, name)(x, y),
            [np.array([7, 6], _dtype), np.array([2, 3], _dtype)],
            [np.array([7, 6], _dtype), np.array([2, 0], _dtype)],
        )
_add("x // y", lambda tf, x, y: x // y, [_I(7), _I(2)], [_I(7), _I(0)])
_add("x % y", lambda tf, x, y: x % y, [_I(7), _ids(2, 3)], [_I(7), _ids(2, 0)])

# -- classes, counts, permutations

_LOGITS = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]], np.float32)
_add(
    "sparse_softmax_cross_entropy",
    lambda tf, i: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=_LOGITS),
    [_ids(2, 0)],
    [_ids(2, 3)],
    [_ids(-1, 0)],
)
_add(
    "losses.sparse_softmax_cross_entropy",
    lambda tf, i: tf.losses.sparse_softmax_cross_entropy(i, _LOGITS),
    [_ids(2, 0, dtype=_L)],
    [_ids(7, 3, dtype=_L)],
)
_add(
    "invert_permutation",
    lambda tf, i: tf.invert_permutation(i),
    [_ids(2, 0, 1)],
    [_ids(2, 0, 3)],
    [_ids(2, 0, 2)],
    [_ids(-1, 0, 2)],
)
_add("bincount", lambda tf, i: tf.math.bincount(i, minlength=3), [_ids(2, 0)], [_ids(2, -1)])
_add(
    "bincount of at most 3",
    lambda tf, i: tf.math.bincount(i, minlength=3, maxlength=3),
    [_ids(2, 0, 5)],
    [_ids(2, -1)],
)
_add(
    "histogram_fixed_width",
    lambda tf, r: tf.histogram_fixed_width([1.0, 2.0], r, nbins=4),
    [np.array([0, 4], np.float32)],
    [np.array([4, 4], np.float32)],
    [np.array([4, 0], np.float32)],
)
_add(
    "unravel_index",
    lambda tf, i: tf.unravel_index(i, [2, 3]),
    [_ids(5, 0)],
    [_ids(5, 6)],
    [_ids(-1, 0)],
)
_add(
    "confusion_matrix",
    lambda tf, i: tf.math.confusion_matrix(i, [0, 1], num_classes=3),
    [_ids(2, 0)],
    [_ids(2, 3)],
    [_ids(-1, 0)],
)

# -- partitions and sequences

_add(
    "dynamic_partition",
    lambda tf, i: tf.dynamic_partition(_TABLE, i, 2)[0],
    [_ids(1, 0, 1, 1)],
    [_ids(1, 0, 2, 1)],
    [_ids(1, 0, -1, 1)],
)
_add(
    "dynamic_stitch",
    lambda tf, i: tf.dynamic_stitch([i, [1]], [_TABLE[:2], _TABLE[2:3]]),
    [_ids(2, 0)],
    [_ids(2, -1)],
)
_add(
    "sparse_to_dense",
    lambda tf, i: tf.sparse_to_dense(i, [4], 1.0),
    [_ids(1, 3)],
    [_ids(1, 4)],
    [_ids(3, 1)],
    [_ids(1, 1)],
    [_ids(-1, 1)],
)
_add(
    "sparse_tensor_dense_matmul",
    lambda tf, i: tf.sparse_tensor_dense_matmul(
        tf.SparseTensor(i, [1.0, 2.0], [2, 4]), tf.constant(_TABLE)
    ),
    [_ids([0, 3], [1, 0], dtype=_L)],
    [_ids([0, 3], [1, 4], dtype=_L)],
    [_ids([0, 3], [2, 0], dtype=_L)],
)
_add(
    "reverse_sequence",
    lambda tf, n: tf.reverse_sequence(tf.constant(_TABLE), n, seq_axis=1),
    [_ids(3, 0, 1, 2)],
    [_ids(4, 0, 1, 2)],
    [_ids(-1, 0, 1, 2)],
)
_add(
    "ctc_loss",
    lambda tf, i: tf.nn.ctc_loss(
        tf.SparseTensor([[0, 0], [0, 1]], i, [1, 2]), np.zeros([4, 1, 3], np.float32), [4]
    ),
    [_ids(0, 1)],
    [_ids(0, 2)],
    [_ids(-1, 1)],
)
_add(
    "ctc_loss of lengths",
    lambda tf, n: tf.nn.ctc_loss(
        tf.SparseTensor([[0, 0], [0, 1]], _ids(0, 0), [1, 2]), np.zeros([4, 1, 3], np.float32), n
    ),
    [_ids(3)],
    [_ids(5)],
    [_ids(1)],
)
_add("range", lambda tf, d: tf.range(0, 6, d), [_I(2)], [_I(0)])

_add("range of floats", lambda tf, d: tf.range(0.0, 6.0, d), [np.float32(2)], [np.float32(0)])
_add(
    "split",
    lambda tf, n: tf.split(tf.constant(_TABLE), tf.stack([n, 1]), 0)[0],
    [_I(3)],
    [_I(2)],
    [_I(4)],
    [_I(-2)],
)
_add(
    "split with a rest",
    lambda tf, n: tf.split(tf.constant(_TABLE), tf.stack([-1, n]), 0)[0],
    [_I(1)],
    [_I(5)],
)
_add(
    "IndexedSlices",
    lambda tf, i: tf.convert_to_tensor(tf.IndexedSlices(tf.ones([2, 3]), i, [4, 3])),
    [_ids(3, -1)],
    [_ids(3, 4)],
)
_add(
    "batch_to_space",
    lambda tf, n: tf.batch_to_space_nd(
        np.zeros([4, 2, 2, 1], np.float32), [2, 2], tf.stack([[n, 0], [0, 0]])
    ),
    [_I(4)],
    [_I(5)],
    [_I(-1)],
)
_add(
    "ctc_loss of no labels",
    lambda tf, i: tf.nn.ctc_loss(
        tf.SparseTensor(i, [0, 0], [2, 2]), np.zeros([4, 2, 3], np.float32), [4, 4]
    ),
    [_ids([0, 0], [1, 0], dtype=_L)],
    [_ids([0, 0], [0, 1], dtype=_L)],
)

# -- numbers

for _dtype in ("int8", "int32", "int64"):
    _add(
        f"pow of {_dtype}",
        lambda tf, x, y: tf.pow(x, y),
        [np.array([2, 0], _dtype), np.array([3, 0], _dtype)],
        [np.array([2, 1], _dtype), np.array([3, -1], _dtype)],
    )
_add(
    "random_uniform",
    lambda tf, n: tf.random_uniform([2], 0, n, tf.int32),
    [_I(1)],
    [_I(0)],
    [_I(-1)],
)
_add("random_normal", lambda tf, n: tf.random_normal([n]), [_I(0)], [_I(-1)])
for _name in ("uniform", "log_uniform"):
    _add(
        f"{_name}_candidate_sampler",
        lambda tf, i, name=f"{_name}_candidate_sampler": getattr(tf.nn, name)(i, 1, 2, True, 4)[0],
        [_ids([3], dtype=_L)],
        [_ids([4], dtype=_L)],
        [_ids([-1], dtype=_L)],
    )

# -- matrices and images

_SINGULAR = np.array([[1, 2], [2, 4]], np.float32)
_REGULAR = np.array([[1, 2], [2, 3]], np.float32)
for _name, _made in {
    "matrix_inverse": lambda tf, x: tf.matrix_inverse(x),
    "matrix_solve": lambda tf, x: tf.matrix_solve(x, np.ones([x.shape[0], 2, 1], np.float32)),
}.items():
    _add(
        _name,
        _made,
        [np.stack([_REGULAR, _REGULAR])],
        [np.stack([_REGULAR, _SINGULAR])],
        [np.zeros([1, 2, 2], np.float32)],
        [np.full([1, 2, 2], np.nan, np.float32)],
    )
_add(
    "matrix_band_part",
    lambda tf, lower, upper: tf.matrix_band_part(_TABLE, lower, upper),
    [_I(4), _I(3)],
    [_I(5), _I(3)],
    [_I(4), _I(4)],
)
_IMAGE = np.zeros([4, 5, 1], np.float32)
for _axis, _name in enumerate(("height", "width")):
    _add(
        f"crop_to_bounding_box of {_name}",
        lambda tf, n, axis=_axis: tf.image.crop_to_bounding_box(
            _IMAGE, *((n, 0) if axis == 0 else (0, n)), 3, 3
        ),
        [_I(1 + _axis)],
        [_I(2 + _axis)],
        [_I(-1)],
    )
_add(
    "crop_and_resize",
    lambda tf, i: tf.image.crop_and_resize(_IMAGE[None], [[0.0, 0.0, 1.0, 1.0]], i, [2, 2]),
    [_ids(0)],
    [_ids(1)],
    [_ids(-1)],
)
_add(
    "non_max_suppression",
    lambda tf, n: tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [1.0], n),
    [_I(0)],
    [_I(-1)],
)
_add(
    "adjust_gamma",
    lambda tf, x: tf.image.adjust_gamma(_IMAGE, x),
    [np.float32(0)],
    [np.float32(-1)],
)

# -- words and classes

for _name in ("one_hot", "multi_hot", "count"):
    _add(
        f"CategoryEncoding {_name}",
        lambda tf, i, mode=_name: tf.keras.layers.CategoryEncoding(3, output_mode=mode)(i),
        [_ids([0], [2], dtype=_L)],
        [_ids([0], [3], dtype=_L)],
        [_ids([0], [-1], dtype=_L)],
    )

# -- tensor arrays


def _written(tf: Any, *indices: Any) -> Any:
    array = tf.TensorArray(tf.float32, 3, element_shape=[])
    for index in indices:
        array = array.write(index, 1.0)
    return array


_add("TensorArray.write", lambda tf, i: _written(tf, i, 1, 2).stack(), [_I(0)], [_I(3)], [_I(-1)])
_add("TensorArray.write twice", lambda tf, i: _written(tf, 0, 1, i).stack(), [_I(2)], [_I(1)])
_add("TensorArray.read", lambda tf, i: _written(tf, 0, 1, 2).read(i), [_I(2)], [_I(3)], [_I(-1)])
_add("TensorArray.read of nothing", lambda tf, i: _written(tf, 0, 2).read(i), [_I(2)], [_I(1)])
_add("TensorArray.gather", lambda tf, i: _written(tf, 0, 1).gather(i), [_ids(1)], [_ids(1, 3)])
_add("TensorArray.stack", lambda tf, i: _written(tf, 0, i).gather([0, 1]), [_I(1)], [_I(2)])
_add(
    "TensorArray.scatter",
    lambda tf, i: (
        tf.TensorArray(tf.float32, 3, element_shape=[]).scatter(i, [1.0, 2.0]).gather([0, 1])
    ),
    [_ids(1, 0)],
    [_ids(1, 3)],
    [_ids(1, 1)],
)

# -- metrics


def _metric(name: str, made: Callable[..., Any], good: Any, *bad: Any) -> None:
    for number, each in enumerate(bad):
        STATEFUL[f"{name}{f' {number + 1}' if number else ''}"] = Fault(
            lambda tf, *tensors: made(tf, *tensors)[1], tuple(good), tuple(each)
        )


for _name in ("mean_iou", "mean_per_class_accuracy"):
    _metric(
        _name,
        lambda tf, x, y, name=_name: getattr(tf.metrics, name)(x, y, 3),
        [_ids(0, 2), _ids(2, 0)],
        [_ids(0, 3), _ids(2, 0)],
        [_ids(0, -1), _ids(2, 0)],
        [_ids(0, 2), _ids(2, 3)],
        [_ids(0, 2), _ids(2, -1)],
    )
for _name, _rest in {
    "auc": (),
    "precision_at_thresholds": ([0.5],),
    "recall_at_thresholds": ([0.5],),
    "true_positives_at_thresholds": ([0.5],),
    "false_negatives_at_thresholds": ([0.5],),
    "sensitivity_at_specificity": (0.5,),
    "specificity_at_sensitivity": (0.5,),
}.items():
    _metric(
        _name,
        lambda tf, x, name=_name, rest=_rest: getattr(tf.metrics, name)([1, 0], x, *rest),
        [np.array([0, 1], np.float32)],
        [np.array([0, 1.5], np.float32)],
        [np.array([-0.5, 1], np.float32)],
        [np.array([np.nan, 1], np.float32)],
    )
_metric(
    "auc of bool",
    lambda tf, x: tf.metrics.auc(tf.constant([True, False]), x),
    [np.array([0, 1], np.float32)],
    [np.array([-0.5, 1.5], np.float32)],
)

# -- variables


def _stateful(name: str, made: Callable[..., Any], good: Any, *bad: Any) -> None:
    def assigned(tf: Any, *tensors: Any) -> Any:
        variable = tf.get_variable("v", initializer=tf.constant(_TABLE))
        return made(tf, variable, *tensors)

    for number, each in enumerate(bad):
        STATEFUL[f"{name}{f' {number + 1}' if number else ''}"] = Fault(
            assigned, tuple(good), tuple(each)
        )


_ROWS = np.full([2, 3], 2, np.float32)
for _name in ("update", "add", "sub", "mul", "div", "max", "min"):
    _stateful(
        f"scatter_{_name}",
        lambda tf, v, i, name=f"scatter_{_name}": getattr(tf, name)(v, i, _ROWS),
        [_ids(3, 0)],
        [_ids(3, 4)],
        [_ids(-1, 0)],
    )
for _name in ("update", "add", "sub"):
    _stateful(
        f"scatter_nd_{_name}",
        lambda tf, v, i, name=f"scatter_nd_{_name}": getattr(tf, name)(v, i, _ROWS),
        [_ids([3], [0])],
        [_ids([3], [4])],
        [_ids([-1], [0])],
    )
_stateful(
    "scatter_nd_add of pairs",
    lambda tf, v, i: tf.scatter_nd_add(v, i, [1.0, 2.0]),
    [_ids([3, 2], [0, 1])],
    [_ids([3, 3], [0, 1])],
)
_stateful(
    "v[i].assign",
    lambda tf, v, i: v[i].assign([1.0, 2.0, 3.0]),
    [_I(-4)],
    [_I(4)],
    [_I(-5)],
)
_stateful(
    "gather of a variable",
    lambda tf, v, i: tf.gather(v, i),
    [_ids(3, 0)],
    [_ids(3, 4)],
)
_stateful(
    "gather_nd of a variable",
    lambda tf, v, i: tf.gather_nd(v, i),
    [_ids([3], [0])],
    [_ids([3], [4])],
)
_stateful(
    "embedding_lookup of a variable",
    lambda tf, v, i: tf.nn.embedding_lookup(v, i),
    [_ids(3, 0)],
    [_ids(3, 4)],
)
_stateful(
    "training",
    lambda tf, v, i: tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(tf.gather(v, i))),
    [_ids(3, 0)],
    [_ids(3, 4)],
)
