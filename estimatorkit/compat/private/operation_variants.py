"""Functions of TensorFlow's private modules only: variants with version 2's argument orders
(`dropout_v2`), and gradients of single operations (`gen_nn_ops.relu_grad`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from estimatorkit import image, nn
from estimatorkit.compat.arguments import with_arguments
from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import filling
from estimatorkit.ops.math import elementwise, reduce

# -- version 2's argument orders


_as = partial(with_arguments, __name__)
# Parts of partitioned tables are contiguous in version 2.
_of_tables = partial(with_arguments, __name__, partition_strategy="div")
_LOSS = (
    "weights biases labels inputs num_sampled num_classes num_true sampled_values "
    "remove_accidental_hits"
)
nce_loss_v2 = _of_tables("nce_loss_v2", nn.nce_loss, f"{_LOSS} name")
sampled_softmax_loss_v2 = _of_tables(
    "sampled_softmax_loss_v2", nn.sampled_softmax_loss, f"{_LOSS} seed name"
)
embedding_lookup_v2 = _of_tables(
    "embedding_lookup_v2", nn.embedding_lookup, "params ids max_norm name"
)
embedding_lookup_sparse_v2 = _of_tables(
    "embedding_lookup_sparse_v2",
    nn.embedding_lookup_sparse,
    "params sp_ids sp_weights combiner max_norm name",
)
safe_embedding_lookup_sparse_v2 = _of_tables(
    "safe_embedding_lookup_sparse_v2",
    nn.safe_embedding_lookup_sparse,
    "embedding_weights sparse_ids sparse_weights combiner default_id max_norm name",
)
pool_v2 = _as(
    "pool_v2",
    nn.pool,
    "input window_shape pooling_type strides padding data_format dilations=dilation_rate name",
    {"padding": "VALID"},
)
crelu_v2 = _as("crelu_v2", nn.crelu, "features axis name")
moments_v2 = _as("moments_v2", nn.moments, "x axes shift keepdims name", {"keepdims": False})
weighted_moments_v2 = _as(
    "weighted_moments_v2",
    nn.weighted_moments,
    "x axes frequency_weights keepdims name",
    {"keepdims": False},
)
sigmoid_cross_entropy_with_logits_v2 = _as(
    "sigmoid_cross_entropy_with_logits_v2",
    nn.sigmoid_cross_entropy_with_logits,
    "labels logits name",
)
weighted_cross_entropy_with_logits_v2 = _as(
    "weighted_cross_entropy_with_logits_v2",
    nn.weighted_cross_entropy_with_logits,
    "labels logits pos_weight name",
    dict.fromkeys(("labels", "logits", "pos_weight"), inspect.Parameter.empty),
)
sparse_softmax_cross_entropy_with_logits_v2 = _as(
    "sparse_softmax_cross_entropy_with_logits_v2",
    nn.sparse_softmax_cross_entropy_with_logits,
    "labels logits name",
    dict.fromkeys(("labels", "logits"), inspect.Parameter.empty),
)
draw_bounding_boxes_v2 = _as(
    "draw_bounding_boxes_v2",
    image.draw_bounding_boxes,
    "images boxes colors name",
    {"colors": inspect.Parameter.empty},
)


def dropout_v2(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """`nn.dropout` with the dropout rate as an argument."""
    if isinstance(rate, (list, tuple)):
        raise ValueError(f"rate must be a scalar tensor or a float, got {rate}")
    return nn.dropout(x, noise_shape=noise_shape, seed=seed, name=name, rate=rate)


# -- gradients of single operations


def _slope(function: Callable[[Tensor], Tensor], x: Any, dy: Any, name: str | None) -> Tensor:
    with get_default_graph().name_scope(name or "gradient") as scope:
        given = convert_to_tensor(x)
        incoming = convert_to_tensor(dy, given.dtype)
        [found] = gradients(function(given), [given], [incoming])
        return builtin_ops.identity(found, name=scope)


def _of_features(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def gradient(gradients: Any, features: Any, name: str | None = None, **rest: Any) -> Tensor:
        return _slope(lambda x: function(x, **rest), features, gradients, name)

    gradient.__doc__ = f"The gradient of `{function.__name__}` at `features`, times `gradients`."
    return gradient


relu_grad = _of_features(nn.relu)
relu6_grad = _of_features(nn.relu6)
leaky_relu_grad = _of_features(nn.leaky_relu)
softplus_grad = _of_features(nn.softplus)
softsign_grad = _of_features(nn.softsign)


def elu_grad(gradients: Any, outputs: Any, name: str | None = None) -> Tensor:
    """The gradient of `elu` at given `outputs`, times `gradients`."""
    y = convert_to_tensor(outputs)
    dy = convert_to_tensor(gradients, y.dtype)
    return elementwise.multiply(dy, elementwise.minimum(y, 0) + 1, name=name)


def bias_add_grad(out_backprop: Any, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """The gradient of `bias_add` with respect to the bias: sums over all axes but the channels."""
    dy = convert_to_tensor(out_backprop)
    channels = 1 if data_format.startswith("NC") else (dy.shape.rank or 1) - 1
    axes = [axis for axis in range(dy.shape.rank or 0) if axis != channels]
    return reduce.reduce_sum(dy, axes, name=name)


def _of_maximum(pool: Callable[..., Any]) -> Callable[..., Tensor]:
    def gradient(
        orig_input: Any,
        orig_output: Any,
        grad: Any,
        ksize: Any,
        strides: Any,
        padding: Any,
        explicit_paddings: Sequence[int] = (),
        data_format: str | None = None,
        name: str | None = None,
    ) -> Tensor:
        pads: Any = padding
        if padding == "EXPLICIT":
            sides = list(explicit_paddings)
            pads = [sides[at : at + 2] for at in range(0, len(sides), 2)]
        layout = {} if data_format is None else {"data_format": data_format}
        return _slope(lambda x: pool(x, ksize, strides, pads, **layout), orig_input, grad, name)

    gradient.__doc__ = f"The gradient of `{pool.__name__}` at `orig_input`, times `grad`."
    return gradient


max_pool_grad = _of_maximum(nn.max_pool)
max_pool3d_grad = _of_maximum(nn.max_pool3d)


def _of_mean(pool: Callable[..., Any]) -> Callable[..., Tensor]:
    def gradient(
        orig_input_shape: Any,
        grad: Any,
        ksize: Any,
        strides: Any,
        padding: Any,
        data_format: str | None = None,
        name: str | None = None,
    ) -> Tensor:
        layout = {} if data_format is None else {"data_format": data_format}
        dy = convert_to_tensor(grad)
        x = filling.zeros(as_index_tensor(orig_input_shape, "shape"), dy.dtype)
        return _slope(lambda x: pool(x, ksize, strides, padding, **layout), x, dy, name)

    gradient.__doc__ = f"The gradient of `{pool.__name__}` of an input of a shape, times `grad`."
    return gradient


avg_pool_grad = _of_mean(nn.avg_pool)
avg_pool3d_grad = _of_mean(nn.avg_pool3d)
