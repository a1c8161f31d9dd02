"""The image networks of `contrib.slim.nets`: AlexNet, OverFeat, VGG.

Each returns the logits and its end points, tensors by alias such as 'vgg_16/conv1/conv1_1'. Build
it within `slim.arg_scope` of its `..._arg_scope()`, which sets regularizers and initializers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from estimatorkit.compat.arg_scope import arg_scope
from estimatorkit.compat.contrib.layer_functions import (
    conv2d,
    dropout,
    fully_connected,
    max_pool2d,
    repeat,
)
from estimatorkit.compat.contrib.layer_utils import convert_collection_to_dict
from estimatorkit.compat.contrib.layers import l2_regularizer
from estimatorkit.ops.array import array
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Constant, TruncatedNormal, Zeros
from estimatorkit.ops.variables.variable_scope import variable_scope


def _arguments(weight_decay: float, bias: float, pooling: str | None) -> Any:
    with (
        arg_scope(
            [conv2d, fully_connected],
            activation_fn=nn.relu,
            weights_regularizer=l2_regularizer(weight_decay),
            biases_initializer=Constant(bias),
        ),
        arg_scope([conv2d], padding="SAME") as scope,
    ):
        if pooling is None:
            return scope
        with arg_scope([max_pool2d], padding=pooling) as scope:
            return scope


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The layers' arguments of VGG, for `slim.arg_scope`."""
    return _arguments(weight_decay, 0.0, None)


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The layers' arguments of AlexNet, for `slim.arg_scope`."""
    return _arguments(weight_decay, 0.1, "VALID")


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The layers' arguments of OverFeat, for `slim.arg_scope`."""
    return _arguments(weight_decay, 0.0, "VALID")


def _finish(net: Any, squeezed: bool, name: str, points: Any) -> tuple[Any, Any]:
    """The logits, squeezed if requested, and the end points including them."""
    if squeezed:
        net = array.squeeze(net, [1, 2], name="fc8/squeezed")
        points[f"{name}/fc8"] = net
    return net, points


def _classifier(
    net: Any,
    sizes: tuple[int, int, int],
    window: int,
    is_training: Any,
    keep_prob: float,
    last: dict[str, Any],
) -> Any:
    """Fully connected layers as convolutions: 'fc6' over a window, 'fc7', and the logits 'fc8'."""
    net = conv2d(net, sizes[0], [window, window], padding="VALID", scope="fc6")
    net = dropout(net, keep_prob, is_training=is_training, scope="dropout6")
    net = conv2d(net, sizes[1], [1, 1], scope="fc7")
    net = dropout(net, keep_prob, is_training=is_training, scope="dropout7")
    none = {"activation_fn": None, "normalizer_fn": None}
    return conv2d(net, sizes[2], [1, 1], scope="fc8", **none, **last)


@contextmanager
def _collecting(scope: Any, default: str, inputs: Any, layers: Sequence[Any]) -> Iterator[Any]:
    with variable_scope(scope, default, [inputs]) as inner:
        collection = inner.original_name_scope + "_end_points"
        with arg_scope(list(layers), outputs_collections=collection):
            yield inner, collection


def _vgg(name: str, depths: tuple[int, ...]) -> Callable[..., tuple[Any, Any]]:
    def network(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: Any = name,
    ) -> tuple[Any, Any]:
        with _collecting(scope, name, inputs, [conv2d, max_pool2d]) as (inner, collection):
            net = inputs
            for number, (depth, width) in enumerate(
                zip(depths, (64, 128, 256, 512, 512), strict=True), 1
            ):
                net = repeat(net, depth, conv2d, width, [3, 3], scope=f"conv{number}")
                net = max_pool2d(net, [2, 2], scope=f"pool{number}")
            sizes = (4096, 4096, num_classes)
            net = _classifier(net, sizes, 7, is_training, dropout_keep_prob, {})
            points = convert_collection_to_dict(collection)
            return _finish(net, spatial_squeeze, inner.name, points)

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"""VGG with {sum(depths) + 3} layers (Simonyan & Zisserman 2015).

    Args:
        inputs: images, floats `(batch, height, width, channels)`; 224 x 224 gives one place.
        num_classes: the number of logits.
        is_training: whether elements are dropped out.
        dropout_keep_prob: the probability that an element is kept.
        spatial_squeeze: whether the logits are `(batch, num_classes)`, which needs one place;
            otherwise they have one row for each place.
        scope: the variable scope, '{name}' by default.

    Returns:
        The logits, and the end points by alias.
    """
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


vgg_a = _vgg("vgg_a", (1, 1, 2, 2, 2))
vgg_16 = vgg_d = _vgg("vgg_16", (2, 2, 3, 3, 3))
vgg_19 = vgg_e = _vgg("vgg_19", (2, 2, 4, 4, 4))


def _wide(
    name: str,
    convolutions: Sequence[tuple[str, int, list[int], dict[str, Any]]],
    hidden: tuple[int, int],
    window: int,
    image_size: int,
    paper: str,
) -> Callable[..., tuple[Any, Any]]:
    def network(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: Any = name,
    ) -> tuple[Any, Any]:
        layers = [conv2d, fully_connected, max_pool2d]
        with _collecting(scope, name, inputs, layers) as (inner, collection):
            net = inputs
            for part, width, size, more in convolutions:
                if width:
                    net = conv2d(net, width, size, scope=part, **more)
                else:
                    net = max_pool2d(net, size, scope=part, **more)
            with arg_scope(
                [conv2d],
                weights_initializer=TruncatedNormal(0.0, 0.005),
                biases_initializer=Constant(0.1),
            ):
                sizes = (*hidden, num_classes)
                last = {"biases_initializer": Zeros()}
                net = _classifier(net, sizes, window, is_training, dropout_keep_prob, last)
            points = convert_collection_to_dict(collection)
            return _finish(net, spatial_squeeze, inner.name, points)

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"""{paper}. Arguments and results are those of `vgg_16`."""
    network.default_image_size = image_size  # type: ignore[attr-defined]
    return network


alexnet_v2 = _wide(
    "alexnet_v2",
    [
        ("conv1", 64, [11, 11], {"stride": 4, "padding": "VALID"}),
        ("pool1", 0, [3, 3], {"stride": 2}),
        ("conv2", 192, [5, 5], {}),
        ("pool2", 0, [3, 3], {"stride": 2}),
        ("conv3", 384, [3, 3], {}),
        ("conv4", 384, [3, 3], {}),
        ("conv5", 256, [3, 3], {}),
        ("pool5", 0, [3, 3], {"stride": 2}),
    ],
    (4096, 4096),
    5,
    224,
    "AlexNet as in 'One weird trick' (Krizhevsky 2014)",
)
overfeat = _wide(
    "overfeat",
    [
        ("conv1", 64, [11, 11], {"stride": 4, "padding": "VALID"}),
        ("pool1", 0, [2, 2], {}),
        ("conv2", 256, [5, 5], {"padding": "VALID"}),
        ("pool2", 0, [2, 2], {}),
        ("conv3", 512, [3, 3], {}),
        ("conv4", 1024, [3, 3], {}),
        ("conv5", 1024, [3, 3], {}),
        ("pool5", 0, [2, 2], {}),
    ],
    (3072, 4096),
    6,
    231,
    "OverFeat (Sermanet et al. 2014)",
)
