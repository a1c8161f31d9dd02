"""Arguments of `tf.nn`, `tf.losses` and `tf.metrics` that TensorFlow refuses.

`REFUSALS`: functions of the module `tf` (`tf.compat.v1`), each giving what must fail, at the latest
when it is fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# Rows that need names of TensorFlow 1.
LEGACY = {
    *("lengths of rnn in a matrix", "moving strides of ctc", "one addition of two points"),
    *("one change of two points", "rnn of a matrix", "rnn of something else"),
    *("rnn without dtype", "static rnn of a tensor", "static rnn of no steps"),
}
REFUSALS: dict[str, Callable[[Any], Any]] = {}
_LOGITS = np.arange(6, dtype=np.float32).reshape(2, 3)
_BITS, _CHANCES = np.array([0, 1]), np.array([0.1, 0.9], np.float32)
_ELEMENT_WISE = (
    *("absolute_difference", "mean_squared_error", "huber_loss", "log_loss"),
    "mean_pairwise_squared_error",
)
_OF_LOGITS = (
    *("hinge_loss", "sigmoid_cross_entropy", "softmax_cross_entropy"),
    "sparse_softmax_cross_entropy",
)


def _loss(name: str, *arguments: Any, **others: Any) -> Callable[[Any], Any]:
    return lambda tf: getattr(tf.losses, name)(*arguments, **others)


def _metric(name: str, *arguments: Any, **others: Any) -> Callable[[Any], Any]:
    def refusal(tf: Any) -> Any:
        given = [tf.constant(each) if isinstance(each, np.ndarray) else each for each in arguments]
        return getattr(tf.metrics, name)(*given, **others)[1]

    return refusal


for _name in (*_ELEMENT_WISE, *_OF_LOGITS):
    REFUSALS |= {
        f"{_name} without labels": _loss(_name, None, _LOGITS),
        f"{_name} without predictions": _loss(_name, _LOGITS, None),
        f"{_name} without weights": _loss(_name, _LOGITS, _LOGITS, weights=None),
        f"{_name} of other labels": _loss(_name, _LOGITS[:, :2], _LOGITS),
    }
    if _name != "mean_pairwise_squared_error":
        REFUSALS[f"{_name} reduced otherwise"] = _loss(_name, _LOGITS, _LOGITS, reduction="mode")

REFUSALS |= {
    "cosine_distance without labels": _loss("cosine_distance", None, _LOGITS, axis=1),
    "cosine_distance without axis": _loss("cosine_distance", _LOGITS, _LOGITS),
    "cosine_distance of other labels": _loss("cosine_distance", _LOGITS[:1], _LOGITS, axis=1),
    "compute_weighted_loss reduced otherwise": _loss(
        "compute_weighted_loss", _LOGITS, reduction="mode"
    ),
    "total loss of none": lambda tf: tf.losses.get_total_loss(),
    "softmax without logits": lambda tf: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=[0.0, 1.0], logits=None
    ),
    "sparse softmax of a scalar": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=0, logits=1.0
    ),
    "sparse softmax of other ranks": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=[[0, 1]], logits=_LOGITS
    ),
    "sparse softmax of other batches": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=[0, 1, 1], logits=_LOGITS
    ),
    "sigmoid of other shapes": lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=_LOGITS[:1], logits=_LOGITS
    ),
    "sigmoid without labels": lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(logits=_LOGITS),
    "weighted sigmoid of other shapes": lambda tf: tf.nn.weighted_cross_entropy_with_logits(
        labels=_LOGITS[:1], logits=_LOGITS, pos_weight=2.0
    ),
    "poisson of other shapes": lambda tf: tf.nn.log_poisson_loss(_LOGITS[:1], _LOGITS),
    "dropout of negative rate": lambda tf: tf.nn.dropout(_LOGITS, rate=-0.5),
    "dropout of rate 1.5": lambda tf: tf.nn.dropout(_LOGITS, rate=1.5),
    "dropout of keep_prob 0": lambda tf: tf.nn.dropout(_LOGITS, keep_prob=0.0),
    "dropout of keep_prob 2": lambda tf: tf.nn.dropout(_LOGITS, keep_prob=2.0),
    "dropout of keep_prob and rate": lambda tf: tf.nn.dropout(_LOGITS, keep_prob=0.5, rate=0.4),
    "dropout of nothing": lambda tf: tf.nn.dropout(_LOGITS),
    "dropout of integers": lambda tf: tf.nn.dropout(np.arange(3), rate=0.5),
    "dropout of a vector of rates": lambda tf: tf.nn.dropout(_LOGITS, rate=tf.constant([0.5, 0.5])),
    "dropout of other noise": lambda tf: tf.nn.dropout(_LOGITS, rate=0.5, noise_shape=[2, 2]),
    "bias of a vector": lambda tf: tf.nn.bias_add(tf.ones([3]), tf.ones([3])),
    "bias of another length": lambda tf: tf.nn.bias_add(tf.ones([2, 3]), tf.ones([2])),
    "bias of a matrix": lambda tf: tf.nn.bias_add(tf.ones([2, 3]), tf.ones([1, 3])),
    "bias of unknown layout": lambda tf: tf.nn.bias_add(
        tf.ones([2, 3]), tf.ones([3]), data_format="HWC"
    ),
    "relu of strings": lambda tf: tf.nn.relu(tf.constant(["a"])),
    "softmax of integers": lambda tf: tf.nn.softmax(np.arange(3)),
    "softmax along no axis": lambda tf: tf.nn.softmax(_LOGITS, axis=2),
    "log_softmax along no axis": lambda tf: tf.nn.log_softmax(_LOGITS, axis=-3),
    "l2_loss of integers": lambda tf: tf.nn.l2_loss(np.arange(3)),
    "lrn of a matrix": lambda tf: tf.nn.lrn(_LOGITS),
    "moments of no axis": lambda tf: tf.nn.moments(tf.constant(_LOGITS), [2])[0],
    "in_top_k of other ranks": lambda tf: tf.nn.in_top_k(_LOGITS, [[0], [1]], 1),
    "in_top_k of a vector": lambda tf: tf.nn.in_top_k([0.1, 0.2], [0], 1),
    "convolution of a vector": lambda tf: tf.nn.conv2d(
        tf.ones([5]), tf.ones([1, 1, 1, 1]), 1, "SAME"
    ),
    "convolution of other channels": lambda tf: tf.nn.conv2d(
        tf.ones([1, 5, 5, 3]), tf.ones([2, 2, 2, 4]), 1, "SAME"
    ),
    "convolution of unknown padding": lambda tf: tf.nn.conv2d(
        tf.ones([1, 5, 5, 3]), tf.ones([2, 2, 3, 4]), 1, "FULL"
    ),
    "convolution without strides": lambda tf: tf.nn.conv2d(
        tf.ones([1, 5, 5, 3]), tf.ones([2, 2, 3, 4]), 0, "SAME"
    ),
    "pooling of nothing": lambda tf: tf.nn.max_pool(tf.ones([1, 4, 4, 1]), 0, 1, "SAME"),
    "pooling without strides": lambda tf: tf.nn.avg_pool(tf.ones([1, 4, 4, 1]), 2, 0, "SAME"),
    "max_pool_v2 of a matrix": lambda tf: tf.nn.max_pool_v2(tf.ones([2, 2]), 2, 2, "SAME"),
    "conv_transpose of a number": lambda tf: tf.nn.conv_transpose(
        tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), 4, 2
    ),
    "conv_transpose of two lengths": lambda tf: tf.nn.conv_transpose(
        tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 4], 2
    ),
    "depth_to_space of blocks of 1": lambda tf: tf.depth_to_space(tf.ones([1, 2, 2, 4]), 1),
    "depth_to_space of other depths": lambda tf: tf.depth_to_space(tf.ones([1, 2, 2, 3]), 2),
    "space_to_depth of other sides": lambda tf: tf.space_to_depth(tf.ones([1, 3, 2, 4]), 2),
    "crelu of strings": lambda tf: tf.nn.crelu(tf.constant(["a"])),
    "xw_plus_b of other shapes": lambda tf: tf.nn.xw_plus_b(
        tf.ones([2, 3]), tf.ones([2, 3]), tf.ones([3])
    ),
    "batch of other means": lambda tf: tf.nn.fused_batch_norm(
        tf.ones([1, 2, 2, 3]), tf.ones([2]), tf.ones([3])
    )[0],
    "confusion of negative labels": lambda tf: tf.confusion_matrix([-1, 0], [0, 1], 3),
    "confusion of great labels": lambda tf: tf.confusion_matrix([0, 3], [0, 1], 3),
    "confusion of great predictions": lambda tf: tf.confusion_matrix([0, 1], [0, 3], 3),
    "confusion of other lengths": lambda tf: tf.confusion_matrix([0, 1, 1], [0, 1], 3),
    "confusion of matrices": lambda tf: tf.confusion_matrix([[0, 1], [1, 0]], [0, 1], 3),
    "confusion of other weights": lambda tf: tf.confusion_matrix(
        [0, 1], [0, 1], 3, weights=[1.0, 1.0, 1.0]
    ),
    "auc of an unknown curve": _metric("auc", [0, 1], [0.1, 0.9], curve="PQ"),
    "auc of an unknown sum": _metric("auc", _BITS, _CHANCES, summation_method="sum"),
    "auc of other labels": _metric("auc", _BITS[:1], _CHANCES),
    "accuracy of other labels": _metric("accuracy", [0, 1, 1], [0, 1]),
    "accuracy of other weights": _metric("accuracy", [0, 1], [0, 1], weights=[1.0, 1.0, 1.0]),
    "mean of other weights": _metric("mean", [0.0, 1.0], weights=[1.0, 1.0, 1.0]),
    "mean_tensor of other weights": _metric("mean_tensor", [0.0, 1.0], weights=[1.0, 1.0, 1.0]),
    "mean_iou of other labels": _metric("mean_iou", _BITS[:1], _BITS, 2),
    "precision of other labels": _metric("precision", [0, 1, 1], [0, 1]),
    "average precision of no class": _metric("average_precision_at_k", [[1]], [[0.1, 0.9]], 0),
    "precision_at_k of a scalar label": _metric("precision_at_k", np.int64(1), [[0.1, 0.9]], 1),
    "sensitivity at 1.5": _metric("sensitivity_at_specificity", [0, 1], [0.1, 0.9], 1.5),
    "specificity at -0.5": _metric("specificity_at_sensitivity", [0, 1], [0.1, 0.9], -0.5),
    "relative errors of other scales": _metric(
        "mean_relative_error", [0.0, 1.0], [0.0, 1.0], [1.0, 1.0, 1.0]
    ),
    "moving strides of ctc": lambda tf: tf.nn.ctc_greedy_decoder(tf.ones([3, 1]), [3])[1],
    "embedding with both norms": lambda tf: tf.nn.embedding_lookup(tf.ones([2, 2]), ["a"]),
    "lengths of rnn in a matrix": lambda tf: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.BasicRNNCell(2), tf.ones([2, 3, 1]), [[3, 3]], dtype=tf.float32
    )[0],
    "rnn without dtype": lambda tf: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.BasicRNNCell(2), tf.ones([2, 3, 1])
    )[0],
    "rnn of a matrix": lambda tf: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.BasicRNNCell(2), tf.ones([2, 3]), dtype=tf.float32
    )[0],
    "static rnn of no steps": lambda tf: tf.nn.static_rnn(
        tf.nn.rnn_cell.BasicRNNCell(2), [], dtype=tf.float32
    )[0],
    "static rnn of a tensor": lambda tf: tf.nn.static_rnn(
        tf.nn.rnn_cell.BasicRNNCell(2), tf.ones([2, 3, 1]), dtype=tf.float32
    )[0],
    "rnn of something else": lambda tf: tf.nn.dynamic_rnn(
        tf.ones([2]), tf.ones([2, 3, 1]), dtype=tf.float32
    )[0],
}
