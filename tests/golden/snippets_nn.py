"""Programs with `tf.nn`, as functions of the module used as `tf` (TensorFlow's version 1 names).

`NN`: each gives what a session is to fetch. `NN_ERRORS`: each gives what fails, at the latest when
it is fetched. Layouts are those that TensorFlow computes on a CPU: channels last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Snippet = Callable[[Any], Any]


def numbers(seed: int, *shape: int) -> Any:
    """Normally distributed float32 numbers, the same with every version of NumPy."""
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def of(tf: Any, seed: int, *shape: int) -> Any:
    """The same as a constant."""
    return tf.constant(numbers(seed, *shape))


def slopes(tf: Any, y: Any, *xs: Any) -> list[Any]:
    """Gradients of y weighted without a pattern, as dense tensors."""
    size = int(np.prod(y.shape.as_list()))
    probe = np.cos(np.arange(size) * 1.7 + 0.3).astype(np.float32).reshape(y.shape.as_list())
    return [tf.convert_to_tensor(each) for each in tf.gradients(y, list(xs), probe)]


def with_slopes(tf: Any, y: Any, *xs: Any) -> list[Any]:
    """A result and its gradients."""
    return [y, *slopes(tf, y, *xs)]


def twice(tf: Any, y: Any, *xs: Any) -> list[Any]:
    """A result, its gradients and the gradients of the squares of these."""
    first = slopes(tf, y, *xs)
    total = tf.add_n([tf.reduce_sum(each * each) for each in first])
    return [y, *first, *(tf.convert_to_tensor(each) for each in tf.gradients(total, list(xs)))]


# -- convolutions


def _conv2d(padding: str) -> Snippet:
    def snippet(tf: Any) -> Any:
        x, found = of(tf, 0, 2, 7, 6, 3), []
        for stride, rows, columns in ((1, 3, 2), (2, 3, 3), (3, 2, 2), (2, 1, 1)):
            w = of(tf, stride, rows, columns, 3, 4)
            y = tf.nn.conv2d(x, w, strides=[1, stride, stride, 1], padding=padding)
            found += with_slopes(tf, y, x, w)
        return found

    return snippet


def _conv2d_dilated(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 9, 8, 3), of(tf, 1, 3, 2, 3, 4)
    return [
        each
        for padding in ("SAME", "VALID")
        for each in with_slopes(
            tf, tf.nn.conv2d(x, w, [1, 1, 1, 1], padding, dilations=[1, 2, 3, 1]), x, w
        )
    ]


def _conv2d_explicit(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 7, 6, 3), of(tf, 1, 3, 2, 3, 4)
    pads = [[0, 0], [1, 2], [0, 1], [0, 0]]
    return with_slopes(tf, tf.nn.conv2d(x, filters=w, strides=[2, 1], padding=pads), x, w)


def _conv2d_groups(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 5, 6, 4), of(tf, 1, 3, 2, 2, 6)
    return tf.nn.conv2d(x, w, 1, "SAME")


def _conv1d(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 9, 3), of(tf, 1, 3, 3, 4)
    return [
        *with_slopes(tf, tf.nn.conv1d(x, w, 2, "SAME"), x, w),
        tf.nn.conv1d(x, w, stride=1, padding="VALID", dilations=2),
        tf.nn.conv1d(value=x, filters=w, stride=3, padding="VALID"),
        *with_slopes(tf, tf.nn.conv1d_transpose(of(tf, 2, 2, 5, 4), w, [2, 9, 3], 2, "SAME"), w),
    ]


def _conv3d(tf: Any) -> Any:
    x, w = of(tf, 0, 1, 4, 5, 6, 2), of(tf, 1, 2, 3, 2, 2, 3)
    y = tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME")
    back = tf.nn.conv3d_transpose(
        y, w, output_shape=[1, 4, 5, 6, 2], strides=[1, 1, 2, 1, 1], padding="SAME"
    )
    return [*with_slopes(tf, y, x, w), back, tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "VALID")]


def _conv2d_transpose(tf: Any) -> Any:
    x, w, found = of(tf, 0, 2, 4, 3, 4), of(tf, 1, 3, 2, 5, 4), []
    for shape, stride, padding in (
        ([2, 8, 6, 5], 2, "SAME"),
        ([2, 7, 5, 5], 2, "SAME"),
        ([2, 9, 6, 5], 2, "VALID"),
        ([2, 10, 7, 5], 2, "VALID"),
        ([2, 4, 3, 5], 1, "SAME"),
    ):
        y = tf.nn.conv2d_transpose(x, w, shape, [1, stride, stride, 1], padding)
        found += with_slopes(tf, y, x, w)
    return found


def _depthwise(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 7, 6, 3), of(tf, 1, 3, 2, 3, 2)
    found = []
    for stride, padding in ((1, "SAME"), (2, "VALID"), (2, "SAME")):
        y = tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], padding)
        found += with_slopes(tf, y, x, w)
    return [
        *found,
        tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 2]),
        tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID", rate=[2, 1]),
        tf.nn.depthwise_conv2d_native(x, w, [1, 2, 2, 1], "SAME"),
    ]


def _separable(tf: Any) -> Any:
    x, w, p = of(tf, 0, 2, 6, 5, 3), of(tf, 1, 3, 3, 3, 2), of(tf, 2, 1, 1, 6, 4)
    y = tf.nn.separable_conv2d(x, w, p, [1, 2, 2, 1], "SAME")
    rated = tf.nn.separable_conv2d(x, w, p, [1, 1, 1, 1], "VALID", rate=[1, 2])
    return [*with_slopes(tf, y, x, w, p), rated]


def _atrous(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 9, 8, 3), of(tf, 1, 3, 3, 3, 4)
    return [
        *with_slopes(tf, tf.nn.atrous_conv2d(x, w, 2, "SAME"), x, w),
        tf.nn.atrous_conv2d(x, w, 2, "VALID"),
        tf.nn.atrous_conv2d(x, w, 1, "VALID"),
    ]


def _atrous_transpose(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 9, 8, 4), of(tf, 1, 3, 3, 3, 4)
    return with_slopes(tf, tf.nn.atrous_conv2d_transpose(x, w, [2, 9, 8, 3], 2, "SAME"), x, w)


def _convolution(tf: Any) -> Any:
    x, w = of(tf, 0, 2, 9, 8, 3), of(tf, 1, 3, 2, 3, 4)
    return [
        tf.nn.convolution(x, w, "SAME"),
        tf.nn.convolution(x, w, "VALID", strides=[2, 1]),
        tf.nn.convolution(x, w, "SAME", dilation_rate=[2, 3]),
        tf.nn.convolution(of(tf, 2, 2, 9, 3), of(tf, 3, 2, 3, 4), "VALID", dilation_rate=[2]),
        tf.nn.convolution(of(tf, 4, 1, 4, 5, 6, 2), of(tf, 5, 2, 2, 2, 2, 3), "SAME"),
    ]


def _backprop_input(tf: Any) -> Any:
    w, dy = of(tf, 1, 3, 2, 3, 4), of(tf, 2, 2, 4, 3, 4)
    return tf.nn.conv2d_backprop_input([2, 7, 6, 3], w, dy, [1, 2, 2, 1], "SAME")


def _backprop_filter(tf: Any) -> Any:
    x, dy = of(tf, 0, 2, 7, 6, 3), of(tf, 2, 2, 4, 3, 4)
    return tf.nn.conv2d_backprop_filter(x, [3, 2, 3, 4], dy, [1, 2, 2, 1], "SAME")


# -- pools


def _pools(padding: str) -> Snippet:
    def snippet(tf: Any) -> Any:
        x, found = of(tf, 0, 2, 7, 6, 3), []
        for pool in (tf.nn.max_pool, tf.nn.avg_pool):
            for size, stride in ((2, 2), (3, 2), (2, 3), (3, 1)):
                y = pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)
                found += with_slopes(tf, y, x)
        return found

    return snippet


def _pools_of_ranks(tf: Any) -> Any:
    line, volume = of(tf, 0, 2, 9, 3), of(tf, 1, 2, 4, 5, 6, 2)
    found = []
    for one, three in ((tf.nn.max_pool1d, tf.nn.max_pool3d), (tf.nn.avg_pool1d, tf.nn.avg_pool3d)):
        found += with_slopes(tf, one(line, 3, 2, "SAME"), line)
        found += with_slopes(tf, three(volume, [1, 2, 3, 2, 1], [1, 2, 1, 2, 1], "SAME"), volume)
        found.append(three(volume, ksize=2, strides=2, padding="VALID"))
    image = of(tf, 2, 2, 5, 5, 2)
    return [
        *found,
        tf.nn.max_pool2d(image, 2, 2, "VALID"),
        tf.nn.avg_pool2d(image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
        tf.nn.max_pool(image, 2, 2, [[0, 0], [1, 0], [0, 1], [0, 0]]),
        tf.nn.pool(image, [2, 3], "MAX", "SAME", strides=[2, 1]),
    ]


def _pool_dilated(tf: Any) -> Any:
    x = of(tf, 0, 2, 7, 6, 3)
    return [
        each
        for kind in ("AVG", "MAX")
        for each in with_slopes(tf, tf.nn.pool(x, [2, 3], kind, "VALID", dilation_rate=[2, 1]), x)
    ]


def _pool_of_equals(tf: Any) -> Any:
    """Where several elements are the greatest, one of them gets the gradient."""
    x = tf.constant(np.array([1, 1, 0, 2, 2, 2, 1, 0, 2, 3, 3, 3], np.float32).reshape(1, 3, 4, 1))
    return [
        each
        for padding in ("SAME", "VALID")
        for each in with_slopes(tf, tf.nn.max_pool(x, 2, 1, padding), x)
    ]


def _argmax(tf: Any) -> Any:
    x = of(tf, 0, 2, 5, 6, 3)
    found = []
    for options in ({}, {"include_batch_in_index": True}):
        y, places = tf.nn.max_pool_with_argmax(x, [1, 2, 3, 1], [1, 2, 2, 1], "SAME", **options)
        found += [places, *with_slopes(tf, y, x)]
    valid = tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    return [*found, *valid]


# -- normalization


def _batch_normalization(tf: Any) -> Any:
    x = of(tf, 0, 4, 3, 2, 5)
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    scale, offset = of(tf, 1, 5), of(tf, 2, 5)
    y = tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)
    bare = tf.nn.batch_normalization(x, mean, variance, None, None, variance_epsilon=0.1)
    only = tf.nn.batch_normalization(x, mean, variance, offset, None, 0.1)
    old = tf.nn.batch_norm_with_global_normalization(
        x, mean, variance, offset, scale, 1e-3, scale_after_normalization=True
    )
    plain = tf.nn.batch_norm_with_global_normalization(
        x, mean, variance, offset, scale, 1e-3, False
    )
    return [*twice(tf, y, x, scale), *slopes(tf, y, offset), bare, only, old, plain]


def _fused(training: bool) -> Snippet:
    def snippet(tf: Any) -> Any:
        x = of(tf, 0, 4, 3, 2, 5)
        scale, offset = of(tf, 1, 5), of(tf, 2, 5)
        moments: dict[str, Any] = {}
        if not training:
            moments = {"mean": of(tf, 3, 5), "variance": tf.constant(numbers(4, 5) ** 2 + 1)}
        y, mean, variance = tf.nn.fused_batch_norm(
            x, scale, offset, epsilon=1e-2, is_training=training, **moments
        )
        return [mean, variance, *twice(tf, y, x, scale), *slopes(tf, y, offset)]

    return snippet


def _moments(tf: Any) -> Any:
    x, found = of(tf, 0, 4, 3, 5), []
    for axes, options in (([0], {}), ([0, 2], {"keep_dims": True}), ([1, 2], {"keepdims": True})):
        mean, variance = tf.nn.moments(x, axes, **options)
        found += [mean, *with_slopes(tf, variance, x)]
    weights = tf.constant(numbers(1, 4, 3, 1) ** 2)
    for options in ({}, {"keepdims": True}):
        mean, variance = tf.nn.weighted_moments(x, [0, 1], weights, **options)
        found += [*with_slopes(tf, mean, x, weights), *with_slopes(tf, variance, x, weights)]
    for shift in (None, tf.constant(0.5)):
        parts = tf.nn.sufficient_statistics(x, [0, 1], shift)
        found += [*parts[:3], *tf.nn.normalize_moments(*parts)]
    return found


def _lrn(tf: Any) -> Any:
    x = of(tf, 0, 2, 3, 2, 7)
    y = tf.nn.lrn(x, 2, 1.5, 0.3, 0.6)
    default = tf.nn.local_response_normalization(x)
    named = tf.nn.lrn(x, depth_radius=1, bias=0.5, alpha=1e-2, beta=0.75)
    return [*with_slopes(tf, y, x), *with_slopes(tf, default, x), named]


def _l2_normalize(tf: Any) -> Any:
    x = of(tf, 0, 3, 4)
    return [
        *twice(tf, tf.nn.l2_normalize(x, 1), x),
        tf.nn.l2_normalize(x, axis=[0, 1]),
        tf.nn.l2_normalize(x, dim=0, epsilon=4.0),
        *with_slopes(tf, tf.nn.l2_normalize(x, 0, epsilon=100.0), x),
        tf.nn.l2_normalize(tf.zeros([2, 2]), 1),
        tf.nn.l2_loss(x),
        tf.nn.zero_fraction([0.0, 1.0, 2.0, 0.0]),
        tf.nn.zero_fraction(tf.constant([[0, 3], [0, 0]])),
    ]


# -- losses


def _softmax_losses(tf: Any) -> Any:
    logits, found = of(tf, 0, 4, 3) * 5.0, []
    labels = tf.nn.softmax(of(tf, 1, 4, 3))
    for loss in (
        tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits),
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits),
    ):
        found += with_slopes(tf, loss, logits)
    found += slopes(tf, loss, labels)
    upright = tf.nn.softmax(of(tf, 4, 4, 3), 0)
    across = tf.nn.softmax_cross_entropy_with_logits_v2(labels=upright, logits=logits, axis=0)
    cube, parts = of(tf, 2, 2, 3, 4), tf.nn.softmax(of(tf, 3, 2, 3, 4), 1)
    return [
        *found,
        *with_slopes(tf, across, logits),
        tf.nn.softmax_cross_entropy_with_logits(labels=parts, logits=cube, dim=1),
        tf.nn.softmax_cross_entropy_with_logits_v2(parts, cube),
        *twice(tf, tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), logits),
    ]


def _sparse_losses(tf: Any) -> Any:
    logits, labels = of(tf, 0, 4, 3) * 5.0, tf.constant([2, 0, 1, 1], tf.int64)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    cube = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.constant([[0, 1, 3], [2, 2, 0]]), logits=of(tf, 1, 2, 3, 4)
    )
    return [*twice(tf, loss, logits), cube]


def _sigmoid_losses(tf: Any) -> Any:
    logits = tf.constant(np.array([[-80, -2, 0], [0.3, 5, 90]], np.float32))
    labels = tf.constant(np.array([[0, 1, 0.5], [0.25, 0, 1]], np.float32))
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    found = with_slopes(tf, loss, logits, labels)
    for weight in (2.5, tf.constant([0.5, 1.0, 3.0])):
        loss = tf.nn.weighted_cross_entropy_with_logits(
            labels=labels, logits=logits, pos_weight=weight
        )
        found += [loss]
    away = of(tf, 0, 2, 3) * 3.0
    loss = tf.nn.weighted_cross_entropy_with_logits(targets=labels, logits=away, pos_weight=3.0)
    return [*found, *twice(tf, loss, away, labels)]


def _log_poisson(tf: Any) -> Any:
    rates, counts = of(tf, 0, 5), tf.constant([0.0, 1.0, 0.5, 3.0, 12.0])
    full = tf.nn.log_poisson_loss(counts, rates, compute_full_loss=True)
    return [*with_slopes(tf, tf.nn.log_poisson_loss(counts, rates), rates, counts), full]


def _average(tf: Any) -> Any:
    losses, cube = of(tf, 0, 4), of(tf, 1, 2, 3)
    average = tf.nn.compute_average_loss
    return [
        *with_slopes(tf, average(losses), losses),
        average(losses, sample_weight=[1.0, 0.0, 2.0, 0.5]),
        average(losses, global_batch_size=8),
        average(cube, sample_weight=[2.0, 3.0]),
        average(cube, sample_weight=0.5),
        average(tf.zeros([0])),
        tf.nn.scale_regularization_loss(cube),
    ]


# -- activations


def _softmaxes(tf: Any) -> Any:
    x, found = of(tf, 0, 2, 3, 4) * 10.0, []
    for function in (tf.nn.softmax, tf.nn.log_softmax):
        found += with_slopes(tf, function(x), x)
        found += with_slopes(tf, function(x, axis=1), x)
        found += [function(x, 0), function(logits=x, dim=-2), function(tf.constant([1.0, 2.0]))]
    return [*found, tf.math.softmax(x, 1), tf.math.log_softmax(x, 0)]


def _activations(tf: Any) -> Any:
    x = tf.constant(np.array([-90, -7, -1.5, -0.25, 0, 0.25, 3, 5.75, 6, 6.5, 90], np.float32))
    nn = tf.nn
    kinds = [nn.relu, nn.relu6, nn.elu, nn.selu, nn.softplus, nn.softsign, nn.leaky_relu]
    kinds += [nn.sigmoid, nn.tanh, nn.swish, nn.crelu]
    found = [each for kind in kinds for each in with_slopes(tf, kind(x), x)]
    return [
        *found,
        *with_slopes(tf, nn.leaky_relu(x, alpha=0.01), x),
        nn.relu(tf.constant([-3, 0, 4])),
        nn.crelu(tf.reshape(x[1:9], [2, 4]), axis=0),
    ]


def _dense_parts(tf: Any) -> Any:
    x, w, b = of(tf, 0, 3, 4), of(tf, 1, 4, 2), of(tf, 2, 2)
    image = of(tf, 3, 2, 3, 2, 2)
    return [
        *with_slopes(tf, tf.nn.xw_plus_b(x, w, b), x, w, b),
        *with_slopes(tf, tf.nn.relu_layer(x, w, b), x, w, b),
        *with_slopes(tf, tf.nn.bias_add(image, b), image, b),
        *with_slopes(tf, tf.nn.bias_add(image, of(tf, 4, 3), data_format="NCHW"), image),
    ]


# -- ranking


def _ranking(tf: Any) -> Any:
    scores = np.array([[1, 2, 3], [3, 3, 1], [np.nan, 1, 2], [5, 1, 2], [np.inf, 1, 2]], "f")
    x = of(tf, 0, 2, 3, 5)
    values, places = tf.nn.top_k(x, 3)
    equal = tf.nn.top_k(tf.constant([2, 5, 5, 1, 5]), k=4)
    return [
        tf.nn.in_top_k(scores, [0, 1, 1, 7, 1], 1),
        tf.nn.in_top_k(scores, [2, 1, 2, 0, 0], k=2),
        tf.nn.in_top_k(predictions=scores, targets=tf.constant([1, 0, 1, -1, 2], tf.int64), k=3),
        places,
        *with_slopes(tf, values, x),
        *tf.nn.top_k(x),
        *equal,
        tf.math.top_k(x, k=5).indices,
    ]


# -- embeddings


def _embedding(tf: Any) -> Any:
    table, ids = of(tf, 0, 7, 3), [[0, 6, 3], [3, 5, 1]]
    found = [*with_slopes(tf, tf.nn.embedding_lookup(table, ids), table)]
    found += with_slopes(tf, tf.nn.embedding_lookup(table, ids, max_norm=1.5), table)
    parts = [of(tf, 1, 3, 3), of(tf, 2, 2, 3), of(tf, 3, 2, 3)]
    for strategy in ("mod", "div"):
        for norm in (None, 1.0):
            rows = tf.nn.embedding_lookup(parts, ids, partition_strategy=strategy, max_norm=norm)
            found += with_slopes(tf, rows, *parts)
    found.append(tf.nn.embedding_lookup([table], ids, max_norm=0.5))
    found.append(tf.nn.embedding_lookup(of(tf, 4, 5), [4, 0], max_norm=0.5))
    return [*found, tf.nn.embedding_lookup(of(tf, 5, 4, 2, 3), [3, 1], max_norm=2.0)]


def _sparse_ids(tf: Any) -> tuple[Any, Any]:
    places = [[0, 0], [0, 2], [1, 1], [3, 0]]
    ids = tf.SparseTensor(places, tf.constant([1, 3, 0, 2], tf.int64), [4, 3])
    return ids, tf.SparseTensor(places, tf.constant([1.0, 2.0, 3.0, 0.5]), [4, 3])


def _embedding_sparse(tf: Any) -> Any:
    table, found = of(tf, 0, 7, 3), []
    ids, weights = _sparse_ids(tf)
    for combiner in ("sum", "mean", "sqrtn"):
        for each in (None, weights):
            y = tf.nn.embedding_lookup_sparse(table, ids, each, combiner=combiner)
            found.append(y)
            found += [tf.convert_to_tensor(g) for g in tf.gradients(y * y, [table])]
    parts = [of(tf, 1, 2, 3), of(tf, 2, 2, 3)]
    for strategy in ("mod", "div"):
        found.append(
            tf.nn.embedding_lookup_sparse(
                parts, ids, weights, strategy, combiner="mean", max_norm=1.0
            )
        )
    return found


def _embedding_safe(tf: Any) -> Any:
    table, found = of(tf, 0, 7, 3), []
    places = [[0, 0], [0, 2], [1, 1], [3, 0], [3, 1]]
    ids = tf.SparseTensor(places, tf.constant([1, 3, -1, 2, 4], tf.int64), [5, 3])
    weights = tf.SparseTensor(places, tf.constant([1.0, 2.0, 3.0, 0.5, -1.0]), [5, 3])
    for options in ({}, {"default_id": 5}, {"combiner": "sum"}, {"max_norm": 0.5}):
        for each in (None, weights):
            found.append(tf.nn.safe_embedding_lookup_sparse([table], ids, each, **options))
    return found


# -- sampled losses


def _sampled(remove: bool) -> Snippet:
    def snippet(tf: Any) -> Any:
        w, b, x = of(tf, 0, 20, 4), of(tf, 1, 20), of(tf, 2, 3, 4)
        found = []
        for labels, true in (([[1], [5], [7]], 1), ([[1, 2], [5, 9], [7, 7]], 2)):
            values = (
                tf.constant([2, 5, 9], tf.int64),
                tf.constant(np.linspace(0.2, 0.6, 3 * true, dtype=np.float32).reshape(3, true)),
                tf.constant([0.4, 0.3, 0.1]),
            )
            for function in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss):
                loss = function(
                    weights=w,
                    biases=b,
                    labels=tf.constant(labels, tf.int64),
                    inputs=x,
                    num_sampled=3,
                    num_classes=20,
                    num_true=true,
                    sampled_values=values,
                    remove_accidental_hits=remove,
                )
                derive = twice if true == 1 else with_slopes
                found += derive(tf, loss, w, b, x)
        return found

    return snippet


def _sampled_of_parts(tf: Any) -> Any:
    parts, b, x = [of(tf, 0, 10, 4), of(tf, 3, 10, 4)], of(tf, 1, 20), of(tf, 2, 3, 4)
    values = (
        tf.constant([2, 5, 13], tf.int64),
        tf.constant([[0.5], [0.3], [0.2]]),
        tf.constant([0.4, 0.3, 0.1]),
    )
    labels = tf.constant([[1], [15], [7]], tf.int64)
    return [
        function(parts, b, labels, x, 3, 20, sampled_values=values, partition_strategy=strategy)
        for function in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss)
        for strategy in ("mod", "div")
    ]


def _accidental(tf: Any) -> Any:
    return tf.nn.compute_accidental_hits(
        tf.constant([[1, 2], [5, 9], [7, 7]], tf.int64), tf.constant([2, 5, 9, 7], tf.int64), 2
    )


def _expected_counts(tf: Any) -> Any:
    """How often classes are expected where each draw is kept: what no seed changes."""
    labels = tf.constant([[0], [3], [9]], tf.int64)
    found = []
    for sampler in (tf.nn.uniform_candidate_sampler, tf.nn.log_uniform_candidate_sampler):
        found.append(sampler(labels, 1, 6, False, 10, seed=1).true_expected_count)
    for options in ({}, {"distortion": 0.5}, {"num_reserved_ids": 2}):
        counts = np.arange(1.0, 11.0 - options.get("num_reserved_ids", 0)).tolist()
        found.append(
            tf.nn.fixed_unigram_candidate_sampler(
                labels, 1, 6, False, 10, unigrams=counts, seed=1, **options
            ).true_expected_count
        )
    every = tf.nn.all_candidate_sampler(labels, 1, 10, True)
    unique = tf.nn.uniform_candidate_sampler(labels, 1, 10, True, 10, seed=1)
    return [*found, *every, tf.sort(unique.sampled_candidates)]


# -- CTC


def _labels(tf: Any) -> Any:
    return tf.SparseTensor(
        [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]], tf.constant([0, 2, 1, 1, 3]), [2, 3]
    )


def _ctc(tf: Any) -> Any:
    logits, lengths, labels = of(tf, 0, 7, 2, 5) * 2.0, [5, 7], _labels(tf)
    found = with_slopes(tf, tf.nn.ctc_loss(labels, logits, lengths), logits)
    across = tf.transpose(logits, [1, 0, 2])
    found.append(
        tf.nn.ctc_loss(labels=labels, inputs=across, sequence_length=lengths, time_major=False)
    )
    found.append(tf.nn.ctc_loss(labels, logits, lengths, preprocess_collapse_repeated=True))
    short = tf.nn.ctc_loss(labels, logits, [5, 2], ignore_longer_outputs_than_inputs=True)
    return [*found, *with_slopes(tf, short, logits), tf.nn.ctc_loss(labels, logits, [5, 3])]


def _ctc_without_merging(tf: Any) -> Any:
    logits, lengths, labels = of(tf, 0, 7, 2, 5) * 2.0, [5, 7], _labels(tf)
    found = with_slopes(
        tf, tf.nn.ctc_loss(labels, logits, lengths, ctc_merge_repeated=False), logits
    )
    collapsed = tf.nn.ctc_loss(
        labels, logits, lengths, preprocess_collapse_repeated=True, ctc_merge_repeated=False
    )
    return [*found, collapsed]


def _batch_normalization_of_mixed_dtypes(tf: Any) -> Any:
    x, moments = tf.cast(of(tf, 0, 3, 2), tf.float16), tf.constant([0.5, 2.0])
    normalized = [
        tf.nn.batch_normalization(x, moments, moments, None, None, 1e-3),
        tf.nn.batch_normalization(x, moments, moments, moments, moments, 1e-3),
    ]
    return [tf.cast(each, tf.float32) for each in normalized]


def _ctc_v2(tf: Any) -> Any:
    logits, lengths = of(tf, 0, 7, 2, 5) * 2.0, tf.constant([5, 7])
    dense = tf.constant([[1, 3, 0], [2, 2, 4]])
    loss = tf.nn.ctc_loss_v2(dense, logits, tf.constant([2, 3]), lengths)
    last = tf.nn.ctc_loss_v2(
        tf.constant([[0, 2, 0], [1, 1, 3]]), logits, [2, 3], lengths, blank_index=-1
    )
    merged = tf.nn.collapse_repeated(tf.constant([[1, 1, 2, 2], [3, 3, 3, 1]]), [4, 3])
    return [*with_slopes(tf, loss, logits), last, *merged]


def _ctc_greedy(tf: Any) -> Any:
    logits, found = of(tf, 0, 9, 3, 3) * 2.0, []
    for merge in (True, False):
        decoded, scores = tf.nn.ctc_greedy_decoder(logits, [9, 4, 6], merge)
        found += [decoded[0], scores]
    return found


def _ctc_beams(tf: Any) -> Any:
    logits, found = of(tf, 0, 9, 3, 4) * 2.0, []
    for merge, width, paths in ((True, 100, 1), (False, 100, 3), (False, 4, 2)):
        decoded, scores = tf.nn.ctc_beam_search_decoder(logits, [9, 4, 6], width, paths, merge)
        found += [*decoded, scores]
    decoded, scores = tf.nn.ctc_beam_search_decoder_v2(logits, [9, 4, 6], top_paths=2)
    return [*found, *decoded, scores]


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("accidental", "beams_leaves", "beams_paths", "ctc", "ctc_beams", "ctc_dense_labels"),
    *("ctc_greedy", "ctc_lengths", "ctc_loss without merging", "ctc_rank", "ctc_v2"),
    *("expected_counts", "greedy_lengths", "sampled", "sampled_of_parts", "sampled_without_hits"),
    *("sampler_too_many", "unigrams_missing"),
}
NN: dict[str, Snippet] = {
    "conv2d_same": _conv2d("SAME"),
    "conv2d_valid": _conv2d("VALID"),
    "conv2d_dilated": _conv2d_dilated,
    "conv2d_explicit": _conv2d_explicit,
    "conv2d_groups": _conv2d_groups,
    "conv1d": _conv1d,
    "conv3d": _conv3d,
    "conv2d_transpose": _conv2d_transpose,
    "depthwise": _depthwise,
    "separable": _separable,
    "atrous": _atrous,
    "convolution": _convolution,
    "atrous_transpose": _atrous_transpose,
    "backprop_input": _backprop_input,
    "backprop_filter": _backprop_filter,
    "pools_same": _pools("SAME"),
    "pools_valid": _pools("VALID"),
    "pools_of_ranks": _pools_of_ranks,
    "pool_dilated": _pool_dilated,
    "pool_of_equals": _pool_of_equals,
    "argmax": _argmax,
    "batch_normalization": _batch_normalization,
    "fused_training": _fused(True),
    "fused_inference": _fused(False),
    "moments": _moments,
    "lrn": _lrn,
    "l2_normalize": _l2_normalize,
    "softmax_losses": _softmax_losses,
    "sparse_losses": _sparse_losses,
    "sigmoid_losses": _sigmoid_losses,
    "log_poisson": _log_poisson,
    "average": _average,
    "softmaxes": _softmaxes,
    "activations": _activations,
    "dense_parts": _dense_parts,
    "ranking": _ranking,
    "embedding": _embedding,
    "embedding_sparse": _embedding_sparse,
    "embedding_safe": _embedding_safe,
    "sampled": _sampled(False),
    "sampled_without_hits": _sampled(True),
    "sampled_of_parts": _sampled_of_parts,
    "accidental": _accidental,
    "expected_counts": _expected_counts,
    "ctc": _ctc,
    "ctc_loss without merging": _ctc_without_merging,
    "batch_normalization of mixed dtypes": _batch_normalization_of_mixed_dtypes,
    "ctc_v2": _ctc_v2,
    "ctc_greedy": _ctc_greedy,
    "ctc_beams": _ctc_beams,
}


def _image(tf: Any) -> Any:
    return tf.ones([1, 5, 5, 3])


NN_ERRORS: dict[str, Snippet] = {
    "softmax_no_labels": lambda tf: tf.nn.softmax_cross_entropy_with_logits(logits=[[1.0]]),
    "sparse_no_logits": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1]),
    "sigmoid_shapes": lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.ones([2, 1]), logits=tf.ones([2, 3])
    ),
    "weighted_shapes": lambda tf: tf.nn.weighted_cross_entropy_with_logits(
        labels=tf.ones([2, 1]), logits=tf.ones([2, 3]), pos_weight=1.0
    ),
    "poisson_shapes": lambda tf: tf.nn.log_poisson_loss(tf.ones([2, 1]), tf.ones([2, 3])),
    "sparse_ranks": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.zeros([2, 1], tf.int32), logits=tf.ones([2, 3])
    ),
    "sparse_scalar_logits": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.constant(0), logits=tf.constant(1.0)
    ),
    "sparse_float_labels": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.zeros([2]), logits=tf.ones([2, 3])
    ),
    "sparse_rows": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.zeros([4], tf.int32), logits=tf.ones([2, 3])
    ),
    "average_of_scalar": lambda tf: tf.nn.compute_average_loss(tf.constant(1.0)),
    "average_by_float": lambda tf: tf.nn.compute_average_loss(tf.ones([2]), None, 2.0),
    "average_by_vector": lambda tf: tf.nn.compute_average_loss(tf.ones([2]), None, [2]),
    "average_by_less": lambda tf: tf.nn.compute_average_loss(tf.ones([2]), None, -2),
    "softmax_of_integers": lambda tf: tf.nn.softmax(tf.constant([1, 2])),
    "softmax_axis": lambda tf: tf.nn.softmax(tf.ones([2, 3]), axis=2),
    "bias_shape": lambda tf: tf.nn.bias_add(tf.ones([2, 3]), tf.ones([4])),
    "bias_rank": lambda tf: tf.nn.bias_add(tf.ones([3]), tf.ones([3])),
    "bias_dtype": lambda tf: tf.nn.bias_add(tf.ones([2, 3]), tf.ones([3], tf.float64)),
    "dropout_rate": lambda tf: tf.nn.dropout(tf.ones([2]), rate=1.5),
    "dropout_keep": lambda tf: tf.nn.dropout(tf.ones([2]), keep_prob=2.0),
    "dropout_nothing": lambda tf: tf.nn.dropout(tf.ones([2])),
    "dropout_integers": lambda tf: tf.nn.dropout(tf.constant([1, 2]), rate=0.5),
    "conv2d_channels": lambda tf: tf.nn.conv2d(_image(tf), tf.ones([3, 3, 2, 4]), 1, "SAME"),
    "conv2d_rank": lambda tf: tf.nn.conv2d(tf.ones([5, 5, 3]), tf.ones([3, 3, 3, 4]), 1, "SAME"),
    "conv2d_padding": lambda tf: tf.nn.conv2d(_image(tf), tf.ones([3, 3, 3, 4]), 1, "FULL"),
    "conv2d_strides": lambda tf: tf.nn.conv2d(
        _image(tf), tf.ones([3, 3, 3, 4]), [1, 2, 3, 4, 5], "SAME"
    ),
    "conv2d_too_large": lambda tf: tf.nn.conv2d(_image(tf), tf.ones([7, 7, 3, 4]), 1, "VALID"),
    "transpose_channels": lambda tf: tf.nn.conv2d_transpose(
        _image(tf), tf.ones([3, 3, 4, 2]), [1, 10, 10, 4], 2, "SAME"
    ),
    "pool_too_large": lambda tf: tf.nn.max_pool(_image(tf), 7, 1, "VALID"),
    "pool_padding": lambda tf: tf.nn.max_pool(_image(tf), 2, 1, "FULL"),
    "pool_rank": lambda tf: tf.nn.max_pool(tf.ones([5]), 2, 1, "SAME"),
    "groups_outputs": lambda tf: tf.nn.conv2d(
        tf.ones([2, 5, 5, 4]), tf.ones([3, 3, 2, 5]), 1, "SAME"
    ),
    "pool_dilated_same": lambda tf: tf.nn.pool(
        _image(tf), [2, 2], "MAX", "SAME", dilation_rate=[2, 2]
    ),
    "pool_dilated_strides": lambda tf: tf.nn.pool(
        _image(tf), [2, 2], "MAX", "VALID", dilation_rate=[2, 2], strides=[2, 2]
    ),
    "pool_dilations": lambda tf: tf.nn.pool(_image(tf), [2, 2], "MAX", "VALID", dilation_rate=[2]),
    "fused_no_mean": lambda tf: tf.nn.fused_batch_norm(
        _image(tf), tf.ones([3]), tf.ones([3]), is_training=False
    )[0],
    "top_k_too_many": lambda tf: tf.nn.top_k(tf.ones([3]), 4),
    "top_k_of_scalar": lambda tf: tf.nn.top_k(tf.constant(1.0), 1),
    "in_top_k_rows": lambda tf: tf.nn.in_top_k(tf.ones([2, 3]), [0, 1, 2], 1),
    "embedding_nothing": lambda tf: tf.nn.embedding_lookup([], [0]),
    "embedding_none": lambda tf: tf.nn.embedding_lookup(None, [0]),
    "embedding_strategy": lambda tf: tf.nn.embedding_lookup(
        [tf.ones([2, 2]), tf.ones([2, 2])], [0], partition_strategy="any"
    ),
    "embedding_floats": lambda tf: tf.nn.embedding_lookup(tf.ones([2, 2]), [1.0]),
    "sparse_dense_ids": lambda tf: tf.nn.embedding_lookup_sparse(tf.ones([2, 2]), [[0]], None),
    "sparse_combiner": lambda tf: tf.nn.embedding_lookup_sparse(
        tf.ones([7, 2]), _sparse_ids(tf)[0], None, combiner="max"
    ),
    "sparse_dense_weights": lambda tf: tf.nn.embedding_lookup_sparse(
        tf.ones([7, 2]), _sparse_ids(tf)[0], [1.0]
    ),
    "safe_nothing": lambda tf: tf.nn.safe_embedding_lookup_sparse([], _sparse_ids(tf)[0]),
    "ctc_dense_labels": lambda tf: tf.nn.ctc_loss([[0]], tf.ones([3, 1, 2]), [3]),
    "ctc_rank": lambda tf: tf.nn.ctc_loss(_labels(tf), tf.ones([3, 2]), [3, 3]),
    "ctc_lengths": lambda tf: tf.nn.ctc_loss(_labels(tf), tf.ones([7, 2, 5]), [7, 9]),
    "greedy_lengths": lambda tf: tf.nn.ctc_greedy_decoder(tf.ones([3, 1, 2]), [4])[1],
    "beams_paths": lambda tf: tf.nn.ctc_beam_search_decoder(
        tf.ones([3, 1, 2]), [3], beam_width=2, top_paths=3
    )[1],
    "beams_leaves": lambda tf: tf.nn.ctc_beam_search_decoder(
        tf.ones([3, 2, 2]), [3, 0], beam_width=4, top_paths=2
    )[1],
    "sampler_too_many": lambda tf: tf.nn.uniform_candidate_sampler(
        tf.constant([[0]], tf.int64), 1, 11, True, 10
    ),
    "unigrams_missing": lambda tf: tf.nn.fixed_unigram_candidate_sampler(
        tf.constant([[0]], tf.int64), 1, 2, True, 10
    ),
}


# -- convolutions of other dtypes, ranks and groups


def _integers(tf: Any) -> Any:
    x = np.arange(2 * 5 * 5 * 2, dtype=np.int32).reshape(2, 5, 5, 2)
    w = np.arange(3 * 3 * 2 * 2, dtype=np.int32).reshape(3, 3, 2, 2) - 8
    return [
        tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"),
        tf.nn.conv2d(x, w, [1, 2, 2, 1], [[0, 0], [1, 2], [0, 1], [0, 0]]),
        tf.nn.conv1d(x[0], w[0], 1, "SAME"),
    ]


def _batches(tf: Any) -> Any:
    x = tf.placeholder_with_default(numbers(1, 2, 3, 4, 4, 2), [None, 3, None, 4, None])
    w = of(tf, 2, 2, 2, 2, 3)
    return [
        tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"),
        tf.nn.conv1d(x, w[0], 1, "VALID"),
    ]


def _groups_of_the_run(tf: Any) -> Any:
    x = tf.placeholder_with_default(numbers(1, 2, 4, 4, 6), [None, None, None, None])
    w = of(tf, 2, 2, 2, 3, 4)
    return [
        tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"),
        *tf.gradients(tf.nn.conv2d(x, w, 1, "SAME"), w),
    ]


def _depthwise_backwards(tf: Any) -> Any:
    x, dy = of(tf, 1, 2, 5, 5, 3), of(tf, 2, 2, 3, 3, 6)
    sizes = tf.placeholder_with_default([2, 3, 3, 2], [4])
    kernel, moves = of(tf, 3, 2, 3, 3, 2), ([1, 2, 2, 1], "SAME")
    return [
        tf.nn.depthwise_conv2d_backprop_input([2, 5, 5, 3], kernel, dy, *moves),
        tf.nn.depthwise_conv2d_native_backprop_input(tf.shape(x), kernel, dy, *moves),
        tf.nn.depthwise_conv2d_backprop_filter(x, [2, 3, 3, 2], dy, *moves),
        tf.nn.depthwise_conv2d_native_backprop_filter(x, sizes, dy, *moves),
    ]


NN |= {
    "convolutions_of_integers": _integers,
    "convolutions_of_batches": _batches,
    "convolutions_in_groups_of_the_run": _groups_of_the_run,
    "depthwise_backwards": _depthwise_backwards,
}
NN_ERRORS |= {
    "convolution_negative_padding": lambda tf: tf.nn.conv2d(
        tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, [[0, 0], [0, -1], [0, 0], [0, 0]]
    ),
    "convolution_empty_filter": lambda tf: tf.nn.conv2d(
        tf.ones([1, 4, 4, 1]), tf.ones([0, 2, 1, 1]), 1, "SAME"
    ),
    "transposed_batch": lambda tf: tf.nn.conv2d_transpose(
        tf.ones([1, 5, 5, 2]), tf.ones([3, 3, 2, 2]), [2, 9, 9, 2], 2, "SAME"
    ),
    "transposed_rank": lambda tf: tf.nn.conv2d_transpose(
        tf.ones([1, 5, 5, 2]), tf.ones([3, 3, 2, 2]), [9, 9, 2], 2, "SAME"
    ),
}


# -- labels that broadcast, ranks that are too small

NN |= {
    "softmax_of_labels_that_broadcast": lambda tf: [
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        for labels, logits in (
            (np.array([[0, 0, 1]], "f"), numbers(1, 2, 3)),
            (np.array([[0.5], [0.1]], "f"), numbers(1, 2, 3)),
            (np.ones([2, 0], "f"), np.ones([2, 0], "f")),
        )
    ],
}
NN_ERRORS |= {
    "softmax_of_a_number": lambda tf: tf.nn.softmax(1.0),
    "bias_of_a_matrix_of_channels": lambda tf: tf.nn.bias_add(
        tf.ones([2, 3]), tf.ones([3]), data_format="NCHW"
    ),
    "bias_of_a_vector_in_the_run": lambda tf: tf.nn.bias_add(
        tf.placeholder_with_default([1.0, 2.0], None), [1.0, 2.0]
    ),
    "fused_of_three_dimensions": lambda tf: tf.nn.fused_batch_norm(
        tf.ones([2, 2, 3]), tf.ones([3]), tf.ones([3])
    )[0],
}
