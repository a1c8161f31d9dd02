"""Names of ops to which none was given: a table of single ops by the expression that makes them.

`make_graph.py` runs the rows on `tf.compat.v1`, tests run them on what stands in for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _of(tf: Any) -> dict[str, Any]:
    return {
        "x": tf.constant([[1.0, 2.0], [3.0, 4.0]], name="x"),
        "i": tf.constant([1, 0], name="i"),
        "p": tf.constant([True, False], name="p"),
        "s": tf.constant(["a", "b"], name="s"),
        "image": tf.zeros([1, 4, 4, 1], name="image"),
    }


# Expression: how to make it. Each is made alone in a fresh graph that holds what `_of` makes.
DEFAULT_NAMES: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "reduce_mean(x)": lambda tf, v: tf.reduce_mean(v["x"]),
    "reduce_sum(x)": lambda tf, v: tf.reduce_sum(v["x"]),
    "reduce_max(x)": lambda tf, v: tf.reduce_max(v["x"]),
    "reduce_min(x)": lambda tf, v: tf.reduce_min(v["x"]),
    "reduce_prod(x)": lambda tf, v: tf.reduce_prod(v["x"]),
    "reduce_all(p)": lambda tf, v: tf.reduce_all(v["p"]),
    "reduce_any(p)": lambda tf, v: tf.reduce_any(v["p"]),
    "reduce_logsumexp(x)": lambda tf, v: tf.reduce_logsumexp(v["x"]),
    "matmul(x, x)": lambda tf, v: tf.matmul(v["x"], v["x"]),
    "tensordot(x, x, 1)": lambda tf, v: tf.tensordot(v["x"], v["x"], 1),
    "einsum": lambda tf, v: tf.einsum("ij,jk->ik", v["x"], v["x"]),
    "nn.relu(x)": lambda tf, v: tf.nn.relu(v["x"]),
    "nn.relu6(x)": lambda tf, v: tf.nn.relu6(v["x"]),
    "nn.elu(x)": lambda tf, v: tf.nn.elu(v["x"]),
    "nn.leaky_relu(x)": lambda tf, v: tf.nn.leaky_relu(v["x"]),
    "nn.softplus(x)": lambda tf, v: tf.nn.softplus(v["x"]),
    "nn.softmax(x)": lambda tf, v: tf.nn.softmax(v["x"]),
    "nn.log_softmax(x)": lambda tf, v: tf.nn.log_softmax(v["x"]),
    "sigmoid(x)": lambda tf, v: tf.sigmoid(v["x"]),
    "tanh(x)": lambda tf, v: tf.tanh(v["x"]),
    "nn.bias_add": lambda tf, v: tf.nn.bias_add(v["x"], [1.0, 2.0]),
    "nn.xw_plus_b": lambda tf, v: tf.nn.xw_plus_b(v["x"], v["x"], [1.0, 2.0]),
    "nn.l2_loss(x)": lambda tf, v: tf.nn.l2_loss(v["x"]),
    "nn.l2_normalize(x, 1)": lambda tf, v: tf.nn.l2_normalize(v["x"], 1),
    "nn.dropout(x, 0.5)": lambda tf, v: tf.nn.dropout(v["x"], rate=0.5),
    "nn.top_k(x)": lambda tf, v: tf.nn.top_k(v["x"]).values,
    "nn.in_top_k": lambda tf, v: tf.nn.in_top_k(v["x"], v["i"], 1),
    "nn.conv2d": lambda tf, v: tf.nn.conv2d(
        v["image"], tf.zeros([2, 2, 1, 1]), strides=[1, 1, 1, 1], padding="SAME"
    ),
    "nn.max_pool": lambda tf, v: tf.nn.max_pool(
        v["image"], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
    ),
    "nn.avg_pool": lambda tf, v: tf.nn.avg_pool(
        v["image"], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
    ),
    "nn.embedding_lookup": lambda tf, v: tf.nn.embedding_lookup(v["x"], v["i"]),
    "nn.softmax_cross_entropy_with_logits": lambda tf, v: tf.nn.softmax_cross_entropy_with_logits(
        labels=v["x"], logits=v["x"]
    ),
    "nn.softmax_cross_entropy_with_logits_v2": lambda tf, v: (
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=v["x"], logits=v["x"])
    ),
    "nn.sparse_softmax_cross_entropy_with_logits": lambda tf, v: (
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=v["i"], logits=v["x"])
    ),
    "nn.sigmoid_cross_entropy_with_logits": lambda tf, v: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=v["x"], logits=v["x"]
    ),
    "losses.mean_squared_error": lambda tf, v: tf.losses.mean_squared_error(v["x"], v["x"]),
    "losses.absolute_difference": lambda tf, v: tf.losses.absolute_difference(v["x"], v["x"]),
    "losses.softmax_cross_entropy": lambda tf, v: tf.losses.softmax_cross_entropy(v["x"], v["x"]),
    "losses.sparse_softmax_cross_entropy": lambda tf, v: tf.losses.sparse_softmax_cross_entropy(
        v["i"], v["x"]
    ),
    "losses.sigmoid_cross_entropy": lambda tf, v: tf.losses.sigmoid_cross_entropy(v["x"], v["x"]),
    "cast(x, int32)": lambda tf, v: tf.cast(v["x"], tf.int32),
    "cast(x, float32)": lambda tf, v: tf.cast(v["x"], tf.float32),
    "to_float(i)": lambda tf, v: tf.to_float(v["i"]),
    "reshape(x, [4])": lambda tf, v: tf.reshape(v["x"], [4]),
    "squeeze(image)": lambda tf, v: tf.squeeze(v["image"]),
    "expand_dims(x, 0)": lambda tf, v: tf.expand_dims(v["x"], 0),
    "transpose(x)": lambda tf, v: tf.transpose(v["x"]),
    "concat([x, x], 0)": lambda tf, v: tf.concat([v["x"], v["x"]], 0),
    "concat([x], 0)": lambda tf, v: tf.concat([v["x"]], 0),
    "stack([x, x])": lambda tf, v: tf.stack([v["x"], v["x"]]),
    "unstack(x)": lambda tf, v: tf.unstack(v["x"])[0],
    "split(x, 2)": lambda tf, v: tf.split(v["x"], 2)[1],
    "tile(x, [2, 1])": lambda tf, v: tf.tile(v["x"], [2, 1]),
    "pad(x, ...)": lambda tf, v: tf.pad(v["x"], [[1, 0], [0, 1]]),
    "slice": lambda tf, v: tf.slice(v["x"], [0, 0], [1, 1]),
    "gather(x, i)": lambda tf, v: tf.gather(v["x"], v["i"]),
    "gather_nd(x, [[0, 1]])": lambda tf, v: tf.gather_nd(v["x"], [[0, 1]]),
    "boolean_mask(x, p)": lambda tf, v: tf.boolean_mask(v["x"], v["p"]),
    "where(p)": lambda tf, v: tf.where(v["p"]),
    "where(p, x, x)": lambda tf, v: tf.where(v["p"], v["x"], v["x"]),
    "argmax(x, 1)": lambda tf, v: tf.argmax(v["x"], 1),
    "argmin(x, 1)": lambda tf, v: tf.argmin(v["x"], 1),
    "one_hot(i, 3)": lambda tf, v: tf.one_hot(v["i"], 3),
    "zeros([2])": lambda tf, v: tf.zeros([2]),
    "ones([2])": lambda tf, v: tf.ones([2]),
    "fill([2], 7)": lambda tf, v: tf.fill([2], 7),
    "zeros_like(x)": lambda tf, v: tf.zeros_like(v["x"]),
    "ones_like(x)": lambda tf, v: tf.ones_like(v["x"]),
    "eye(2)": lambda tf, v: tf.eye(2),
    "range(3)": lambda tf, v: tf.range(3),
    "linspace": lambda tf, v: tf.linspace(0.0, 1.0, 3),
    "random_normal([2])": lambda tf, v: tf.random_normal([2]),
    "random_uniform([2])": lambda tf, v: tf.random_uniform([2]),
    "truncated_normal([2])": lambda tf, v: tf.truncated_normal([2]),
    "random_shuffle(x)": lambda tf, v: tf.random_shuffle(v["x"]),
    "shape(x)": lambda tf, v: tf.shape(v["x"]),
    "size(x)": lambda tf, v: tf.size(v["x"]),
    "rank(x)": lambda tf, v: tf.rank(v["x"]),
    "identity(x)": lambda tf, v: tf.identity(v["x"]),
    "stop_gradient(x)": lambda tf, v: tf.stop_gradient(v["x"]),
    "no_op()": lambda tf, v: tf.no_op(),
    "group(x)": lambda tf, v: tf.group(v["x"]),
    "tuple([x])": lambda tf, v: tf.tuple([v["x"]])[0],
    "add(x, x)": lambda tf, v: tf.add(v["x"], v["x"]),
    "subtract(x, x)": lambda tf, v: tf.subtract(v["x"], v["x"]),
    "multiply(x, x)": lambda tf, v: tf.multiply(v["x"], v["x"]),
    "divide(x, x)": lambda tf, v: tf.divide(v["x"], v["x"]),
    "div(x, x)": lambda tf, v: tf.div(v["x"], v["x"]),
    "truediv(x, x)": lambda tf, v: tf.truediv(v["x"], v["x"]),
    "floordiv(x, x)": lambda tf, v: tf.floordiv(v["x"], v["x"]),
    "mod(x, x)": lambda tf, v: tf.mod(v["x"], v["x"]),
    "pow(x, x)": lambda tf, v: tf.pow(v["x"], v["x"]),
    "negative(x)": lambda tf, v: tf.negative(v["x"]),
    "square(x)": lambda tf, v: tf.square(v["x"]),
    "sqrt(x)": lambda tf, v: tf.sqrt(v["x"]),
    "rsqrt(x)": lambda tf, v: tf.rsqrt(v["x"]),
    "exp(x)": lambda tf, v: tf.exp(v["x"]),
    "log(x)": lambda tf, v: tf.log(v["x"]),
    "log1p(x)": lambda tf, v: tf.log1p(v["x"]),
    "abs(x)": lambda tf, v: tf.abs(v["x"]),
    "sign(x)": lambda tf, v: tf.sign(v["x"]),
    "floor(x)": lambda tf, v: tf.floor(v["x"]),
    "ceil(x)": lambda tf, v: tf.ceil(v["x"]),
    "round(x)": lambda tf, v: tf.round(v["x"]),
    "maximum(x, x)": lambda tf, v: tf.maximum(v["x"], v["x"]),
    "minimum(x, x)": lambda tf, v: tf.minimum(v["x"], v["x"]),
    "squared_difference(x, x)": lambda tf, v: tf.squared_difference(v["x"], v["x"]),
    "add_n([x, x])": lambda tf, v: tf.add_n([v["x"], v["x"]]),
    "cumsum(x)": lambda tf, v: tf.cumsum(v["x"]),
    "clip_by_value(x, 0, 1)": lambda tf, v: tf.clip_by_value(v["x"], 0.0, 1.0),
    "clip_by_norm(x, 1)": lambda tf, v: tf.clip_by_norm(v["x"], 1.0),
    "clip_by_global_norm([x], 1)": lambda tf, v: tf.clip_by_global_norm([v["x"]], 1.0)[0][0],
    "global_norm([x])": lambda tf, v: tf.global_norm([v["x"]]),
    "norm(x)": lambda tf, v: tf.norm(v["x"]),
    "equal(x, x)": lambda tf, v: tf.equal(v["x"], v["x"]),
    "not_equal(x, x)": lambda tf, v: tf.not_equal(v["x"], v["x"]),
    "less(x, x)": lambda tf, v: tf.less(v["x"], v["x"]),
    "greater(x, x)": lambda tf, v: tf.greater(v["x"], v["x"]),
    "logical_and(p, p)": lambda tf, v: tf.logical_and(v["p"], v["p"]),
    "logical_or(p, p)": lambda tf, v: tf.logical_or(v["p"], v["p"]),
    "logical_not(p)": lambda tf, v: tf.logical_not(v["p"]),
    "is_nan(x)": lambda tf, v: tf.is_nan(v["x"]),
    "as_string(i)": lambda tf, v: tf.as_string(v["i"]),
    "string_join([s, s])": lambda tf, v: tf.string_join([v["s"], v["s"]]),
    "string_to_number(s)": lambda tf, v: tf.string_to_number(v["s"]),
    "string_to_hash_bucket_fast(s)": lambda tf, v: tf.string_to_hash_bucket_fast(v["s"], 10),
    "unique(i)": lambda tf, v: tf.unique(v["i"])[0],
    "segment_sum(x, ...)": lambda tf, v: tf.segment_sum(v["x"], [0, 0]),
    "unsorted_segment_sum(x, ...)": lambda tf, v: tf.unsorted_segment_sum(v["x"], [1, 0], 2),
    "matrix_inverse(x)": lambda tf, v: tf.matrix_inverse(v["x"]),
    "cond": lambda tf, v: tf.cond(tf.constant(True), lambda: v["x"], lambda: -v["x"]),
    "while_loop": lambda tf, v: tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)]),
    "map_fn": lambda tf, v: tf.map_fn(lambda row: row * 2.0, v["x"]),
    "py_func": lambda tf, v: tf.py_func(lambda value: value, [v["x"]], tf.float32),
    "summary.scalar('loss', ...)": lambda tf, v: tf.summary.scalar("loss", tf.reduce_sum(v["x"])),
    "summary.histogram('h', x)": lambda tf, v: tf.summary.histogram("h", v["x"]),
    "train.get_or_create_global_step()": lambda tf, v: tf.train.get_or_create_global_step(),
    "metrics.mean(x) value": lambda tf, v: tf.metrics.mean(v["x"])[0],
    "metrics.mean(x) update": lambda tf, v: tf.metrics.mean(v["x"])[1],
    "metrics.accuracy update": lambda tf, v: tf.metrics.accuracy(v["i"], v["i"])[1],
}


def default_name(tf: Any, expression: str) -> list[Any]:
    """Makes `expression` of `DEFAULT_NAMES` in a fresh graph.

    Returns:
        Its name, the op's type, and where it is a tensor its dtype's name and its shape as string.
    """
    with tf.Graph().as_default():
        made = DEFAULT_NAMES[expression](tf, _of(tf))
        operation = getattr(made, "op", made)
        facts = [made.name, operation.type]
        if operation is not made:
            facts += [made.dtype.base_dtype.name, str(made.shape)]
        return facts
