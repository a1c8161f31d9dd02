"""Functions that only TensorFlow's private modules have: version 2's orders of arguments beside
version 1's (`dropout_v2`), and gradients of single operations (`gen_nn_ops.relu_grad`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit import image, nn
from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import filling
from estimatorkit.ops.math import elementwise, reduce

# -- version 2's orders of arguments


def _without_strategy(function: Callable[..., Any], name: str, *order: str) -> Callable[..., Any]:
    """A function of partitioned tables by version 2's order of arguments: parts are contiguous."""

    def version_2(*arguments: Any, **named: Any) -> Any:
        if len(arguments) > len(order):
            raise TypeError(
                f"{name}() takes at most {len(order)} positional arguments, got {len(arguments)}"
            )
        given = dict(zip(order, arguments, strict=False))
        return function(**given, **named, partition_strategy="div")

    version_2.__name__ = version_2.__qualname__ = name
    version_2.__doc__ = f"`{function.__name__}` with the arguments {', '.join(order)}."
    return version_2


_LOSS = (
    *("weights", "biases", "labels", "inputs", "num_sampled", "num_classes", "num_true"),
    *("sampled_values", "remove_accidental_hits"),
)
nce_loss_v2 = _without_strategy(nn.nce_loss, "nce_loss_v2", *_LOSS, "name")
sampled_softmax_loss_v2 = _without_strategy(
    nn.sampled_softmax_loss, "sampled_softmax_loss_v2", *_LOSS, "seed", "name"
)
embedding_lookup_v2 = _without_strategy(
    nn.embedding_lookup, "embedding_lookup_v2", "params", "ids", "max_norm", "name"
)
embedding_lookup_sparse_v2 = _without_strategy(
    nn.embedding_lookup_sparse,
    *("embedding_lookup_sparse_v2", "params", "sp_ids", "sp_weights", "combiner", "max_norm"),
    "name",
)
safe_embedding_lookup_sparse_v2 = _without_strategy(
    nn.safe_embedding_lookup_sparse,
    *("safe_embedding_lookup_sparse_v2", "embedding_weights", "sparse_ids", "sparse_weights"),
    *("combiner", "default_id", "max_norm", "name"),
)


def dropout_v2(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """`nn.dropout` by the rate of what is dropped."""
    if isinstance(rate, (list, tuple)):
        raise ValueError(f"rate must be a scalar tensor or a float, got {rate}")
    return nn.dropout(x, noise_shape=noise_shape, seed=seed, name=name, rate=rate)


def pool_v2(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """`nn.pool` with version 2's order of arguments."""
    rest = (padding, dilations, strides, name, data_format)
    return nn.pool(input, window_shape, pooling_type, *rest)


def crelu_v2(features: Any, axis: int = -1, name: str | None = None) -> Any:
    """`nn.crelu` with version 2's order of arguments."""
    return nn.crelu(features, axis=axis, name=name)


def moments_v2(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """`nn.moments` with version 2's order of arguments."""
    return nn.moments(x, axes, shift, name, keepdims=keepdims)


def weighted_moments_v2(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> Any:
    """`nn.weighted_moments` with version 2's order of arguments."""
    return nn.weighted_moments(x, axes, frequency_weights, name, keepdims=keepdims)


def sigmoid_cross_entropy_with_logits_v2(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Any:
    """`nn.sigmoid_cross_entropy_with_logits` with arguments by position."""
    return nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def weighted_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> Any:
    """`nn.weighted_cross_entropy_with_logits` with arguments by position."""
    return nn.weighted_cross_entropy_with_logits(labels, logits, pos_weight, name)


def sparse_softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, name: str | None = None
) -> Any:
    """`nn.sparse_softmax_cross_entropy_with_logits` with arguments by position."""
    return nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def draw_bounding_boxes_v2(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Any:
    """`image.draw_bounding_boxes` with version 2's order of arguments."""
    return image.draw_bounding_boxes(images, boxes, name, colors)


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
    """The gradient of `elu` where it has given `outputs`, times `gradients`."""
    y = convert_to_tensor(outputs)
    dy = convert_to_tensor(gradients, y.dtype)
    return elementwise.multiply(dy, elementwise.minimum(y, 0) + 1, name=name)


def bias_add_grad(out_backprop: Any, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """The gradient of `bias_add` with respect to the bias: sums over all but the channels."""
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
