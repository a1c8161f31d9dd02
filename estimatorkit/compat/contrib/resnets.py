"""The residual networks of `contrib.slim.nets`: `resnet_v1`, `resnet_v2`, `resnet_utils`.

A network is a list of blocks, a block a list of bottleneck units. Version 1 (He et al. 2015)
normalizes after each convolution, version 2 (He et al. 2016) before. With `output_stride`, later
units dilate their convolutions instead of striding, for dense predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from estimatorkit.compat.arg_scope import add_arg_scope, arg_scope
from estimatorkit.compat.contrib.layer_functions import batch_norm, conv2d, max_pool2d
from estimatorkit.compat.contrib.layer_utils import (
    collect_named_outputs,
    convert_collection_to_dict,
    last_dimension,
)
from estimatorkit.compat.contrib.layers import l2_regularizer, variance_scaling_initializer
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.ops.array import filling
from estimatorkit.ops.math import reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.variable_scope import variable_scope


class Block(NamedTuple):
    """A block of a network.

    Attributes:
        scope: its variable scope.
        unit_fn: builds a unit.
        args: a dict of arguments for each unit.
    """

    scope: str
    unit_fn: Callable[..., Any]
    args: Sequence[dict[str, Any]]


def subsample(inputs: Any, factor: int, scope: str | None = None) -> Any:
    """Every `factor`-th row and column of images."""
    return inputs if factor == 1 else max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any,
    num_outputs: int,
    kernel_size: int,
    stride: int,
    rate: int = 1,
    scope: str | None = None,
) -> Any:
    """A convolution whose padding is independent of the images' size, for any stride."""
    window: dict[str, Any] = {"stride": stride, "rate": rate, "scope": scope}
    if stride == 1:
        return conv2d(inputs, num_outputs, kernel_size, padding="SAME", **window)
    total = kernel_size + (kernel_size - 1) * (rate - 1) - 1
    ends = [total // 2, total - total // 2]
    padded = filling.pad(inputs, [[0, 0], ends, ends, [0, 0]])
    return conv2d(padded, num_outputs, kernel_size, padding="VALID", **window)


@add_arg_scope
def stack_blocks_dense(
    net: Any,
    blocks: Sequence[Block],
    output_stride: int | None = None,
    outputs_collections: Any = None,
) -> Any:
    """Stacks blocks.

    Args:
        net: images, floats `(batch, height, width, channels)`.
        blocks: the blocks.
        output_stride: the ratio of input to output resolution; None for the strides of the units.
        outputs_collections: collections for the outputs of blocks.

    Raises:
        ValueError: `output_stride` cannot be reached by the units' strides.
    """
    refusal = "The target output_stride cannot be reached."
    stride = rate = 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as scope:
            for number, unit in enumerate(block.args, 1):
                if output_stride is not None and stride > output_stride:
                    raise ValueError(refusal)
                with variable_scope(f"unit_{number}", values=[net]):
                    if stride == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= unit.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        stride *= unit.get("stride", 1)
            net = collect_named_outputs(outputs_collections, scope.name, net)
    if output_stride is not None and stride != output_stride:
        raise ValueError(refusal)
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """The layers' arguments, for `slim.arg_scope`.

    Args:
        weight_decay: the scale of the L2 regularization.
        batch_norm_decay, batch_norm_epsilon, batch_norm_scale: of batch normalization.
    """
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    with (
        arg_scope(
            [conv2d],
            weights_regularizer=l2_regularizer(weight_decay),
            weights_initializer=variance_scaling_initializer(),
            activation_fn=nn.relu,
            normalizer_fn=batch_norm,
            normalizer_params=normalization,
        ),
        arg_scope([batch_norm], **normalization),
        arg_scope([max_pool2d], padding="SAME") as scope,
    ):
        return scope


def _make_bottleneck(version: int) -> Callable[..., Any]:
    default = f"bottleneck_v{version}"
    plain: dict[str, Any] = {"activation_fn": None}
    if version == 2:
        plain["normalizer_fn"] = None

    def bottleneck(
        inputs: Any,
        depth: int,
        depth_bottleneck: int,
        stride: int,
        rate: int = 1,
        outputs_collections: Any = None,
        scope: str | None = None,
    ) -> Any:
        """Convolutions of size 1, 3 and 1 with a residual connection.

        Args:
            inputs: floats `(batch, height, width, channels)`.
            depth: the number of output channels.
            depth_bottleneck: the number of channels of the first two convolutions.
            stride, rate: of the convolution of size 3.
            outputs_collections: collections for the outputs.
            scope: the variable scope.
        """
        with variable_scope(scope, default, [inputs]) as inner:
            start = inputs
            if version == 2:
                start = batch_norm(inputs, activation_fn=nn.relu, scope="preact")
            if depth == last_dimension(inputs.shape, min_rank=4):
                shortcut = subsample(inputs, stride, "shortcut")
            else:
                shortcut = conv2d(start, depth, [1, 1], stride=stride, scope="shortcut", **plain)
            net = conv2d(start, depth_bottleneck, [1, 1], stride=1, scope="conv1")
            net = conv2d_same(net, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
            net = conv2d(net, depth, [1, 1], stride=1, scope="conv3", **plain)
            output = shortcut + net
            if version == 1:
                output = nn.relu(output)
            return collect_named_outputs(outputs_collections, inner.name, output)

    return add_arg_scope(bottleneck)


def _make_network(version: int) -> Callable[..., tuple[Any, Any]]:
    default = f"resnet_v{version}"

    def network(
        inputs: Any,
        blocks: Sequence[Block],
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        include_root_block: bool = True,
        reuse: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """A residual network with given blocks.

        Args:
            inputs: images, floats `(batch, height, width, channels)`.
            blocks: see `Block`.
            num_classes: the number of logits; None returns the features before them.
            is_training: whether batch normalization uses the batch's statistics.
            global_pool: whether to average over all positions before the logits.
            output_stride: see `stack_blocks_dense`.
            include_root_block: whether to begin with a convolution and a pooling of stride 2.
            reuse: whether to reuse variables.
            scope: the variable scope.

        Returns:
            Logits or features `(batch, height, width, channels)`, and the end points by alias.

        Raises:
            ValueError: `output_stride` cannot be reached.
        """
        with variable_scope(scope, default, [inputs], reuse=reuse) as inner:
            collection = inner.original_name_scope + "_end_points"
            with (
                arg_scope(
                    [conv2d, _BOTTLENECKS[version], stack_blocks_dense],
                    outputs_collections=collection,
                ),
                arg_scope([batch_norm], is_training=is_training),
            ):
                net = inputs
                if include_root_block:
                    if output_stride is not None:
                        if output_stride % 4 != 0:
                            raise ValueError("The output_stride needs to be a multiple of 4.")
                        output_stride //= 4
                    plain = {"activation_fn": None, "normalizer_fn": None} if version == 2 else {}
                    with arg_scope([conv2d], **plain):
                        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                    net = max_pool2d(net, [3, 3], stride=2, scope="pool1")
                net = stack_blocks_dense(net, blocks, output_stride)
                if version == 2:
                    net = batch_norm(net, activation_fn=nn.relu, scope="postnorm")
                if global_pool:
                    net = reduce.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
                if num_classes is not None:
                    none = {"activation_fn": None, "normalizer_fn": None}
                    net = conv2d(net, num_classes, [1, 1], scope="logits", **none)
                points = convert_collection_to_dict(collection)
                if num_classes is not None:
                    points["predictions"] = nn.softmax(net, name="predictions")
                return net, points

    network.__name__ = network.__qualname__ = default
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


def _make_block(version: int) -> Callable[..., Block]:
    def block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
        """A block of `num_units` bottlenecks, with the stride in the last one."""
        unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth}
        strides = [*[1] * (num_units - 1), stride]
        return Block(scope, _BOTTLENECKS[version], [{**unit, "stride": each} for each in strides])

    return block


def _make_depth(version: int, units: tuple[int, ...]) -> Callable[..., tuple[Any, Any]]:
    name = f"resnet_v{version}_{3 * sum(units) + 2}"

    def network(
        inputs: Any,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: Any = name,
    ) -> tuple[Any, Any]:
        blocks = [
            _BLOCKS[version](f"block{number}", 32 * 2**number, count, 1 if number == 4 else 2)
            for number, count in enumerate(units, 1)
        ]
        return _NETWORKS[version](
            inputs,
            blocks,
            num_classes,
            is_training,
            global_pool,
            output_stride,
            include_root_block=True,
            reuse=reuse,
            scope=scope,
        )

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"`resnet_v{version}` with blocks of {units} units."
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


_BOTTLENECKS = {version: _make_bottleneck(version) for version in (1, 2)}
_NETWORKS = {version: _make_network(version) for version in (1, 2)}
_BLOCKS = {version: _make_block(version) for version in (1, 2)}
_DEPTHS = ((3, 4, 6, 3), (3, 4, 23, 3), (3, 8, 36, 3), (3, 24, 36, 3))

bottleneck_v1, bottleneck_v2 = _BOTTLENECKS[1], _BOTTLENECKS[2]
resnet_v1, resnet_v2 = _NETWORKS[1], _NETWORKS[2]
resnet_v1_block, resnet_v2_block = _BLOCKS[1], _BLOCKS[2]
resnet_v1_50, resnet_v1_101, resnet_v1_152, resnet_v1_200 = (
    _make_depth(1, units) for units in _DEPTHS
)
resnet_v2_50, resnet_v2_101, resnet_v2_152, resnet_v2_200 = (
    _make_depth(2, units) for units in _DEPTHS
)
