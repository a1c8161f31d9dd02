"""Layers of `contrib.layers`: instance and group normalization, biases, maxout, spatial softmax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.compat.arg_scope import add_arg_scope
from estimatorkit.compat.contrib.layer_functions import custom_getter, require_rank
from estimatorkit.compat.contrib.layer_utils import collect_named_outputs
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.joining import concat, stack
from estimatorkit.ops.array.rearrange import linspace
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.sliding_windows import is_channels_first
from estimatorkit.ops.variables.initializers import Constant, Ones, Zeros
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope


def _channels_first(data_format: str) -> bool:
    if data_format not in ("NCHW", "NHWC"):
        raise value_error("data_format has to be either NCHW or NHWC.", received=data_format)
    return is_channels_first(data_format)


def _normalize(
    x: Tensor,
    axes: Sequence[int],
    channels: int,
    shape: Sequence[int],
    epsilon: float,
    wanted: Mapping[str, bool],
    initializers: Mapping[str, Any] | None,
    trainable: bool,
    name: str | None = None,
) -> Tensor:
    """Normalizes to mean 0 and variance 1 over `axes`, then applies 'gamma' and 'beta'."""
    made: dict[str, Tensor | None] = {"beta": None, "gamma": None}
    for own, default in (("beta", Zeros()), ("gamma", Ones())):
        if wanted[own]:
            variable = get_variable(
                own,
                [channels],
                x.dtype,
                (initializers or {}).get(own, default),
                trainable=trainable,
            )
            made[own] = array.reshape(variable, shape)
    mean, variance = nn.moments(x, list(axes), keepdims=True)
    return nn.batch_normalization(x, mean, variance, made["beta"], made["gamma"], epsilon, name)


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Mapping[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """Normalizes each channel of each example over all positions (Ulyanov et al. 2016).

    Args:
        inputs: floats of known rank and number of channels.
        center, scale: whether to add a `beta` (shift), multiply by a `gamma` (scale).
        epsilon: added to the variance.
        activation_fn: applied to the result; none by default.
        param_initializers: of `beta` and `gamma`, by name.
        reuse, variables_collections, outputs_collections, trainable: see `fully_connected`.
        data_format: 'NHWC' or 'NCHW'.
        scope: the variable scope; 'InstanceNorm', made unique, by default.

    Raises:
        ValueError: the rank or the number of channels is unknown.
    """
    x = convert_to_tensor(inputs, name="inputs")
    rank = len(require_rank(x))
    axis = 1 if _channels_first(data_format) else rank - 1
    channels = x.shape.as_list()[axis]
    if channels is None:
        raise ValueError(f"Inputs {x.name} has undefined channels dimension {x.shape}.")
    with variable_scope(
        scope, "InstanceNorm", [x], reuse=reuse, custom_getter=custom_getter(variables_collections)
    ) as inner:
        axes = [each for each in range(1, rank) if each != axis]
        shape = [channels if each == axis else 1 for each in range(rank)]
        wanted = {"beta": center, "gamma": scale}
        outputs = _normalize(
            x,
            axes,
            channels,
            shape,
            epsilon,
            wanted,
            param_initializers,
            trainable,
            name="instancenorm",
        )
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        collect_named_outputs(outputs_collections, inner.name, outputs)
        return outputs


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Sequence[int] = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Mapping[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Tensor:
    """Normalizes groups of channels over some axes of each example (Wu & He 2018).

    Args:
        inputs: floats of known rank; the channels and the reduced axes have known lengths.
        groups: the number of groups; must divide the number of channels.
        channels_axis: the axis of channels.
        reduction_axes: the axes to normalize over, together with a group's channels.
        center, scale, epsilon, activation_fn, param_initializers: see `instance_norm`.
        reuse, variables_collections, outputs_collections, trainable: see `fully_connected`.
        scope: the variable scope; 'GroupNorm', made unique, by default.
        mean_close_to_zero: accepted for compatibility only: variances are exact either way.

    Raises:
        ValueError: a length is unknown, an axis does not exist, or `groups` is not a divisor.
    """
    x = convert_to_tensor(inputs, name="inputs")
    rank = len(require_rank(x))
    dims = x.shape.as_list()
    if not all(-rank <= each < rank for each in (channels_axis, *reduction_axes)):
        raise value_error("Axis is out of bounds.", expected=f"in [-{rank}, {rank})")
    axis = channels_axis % rank
    reduced = [each % rank for each in reduction_axes]
    channels = dims[axis]
    if channels is None:
        raise ValueError(f"Inputs {x.name} has undefined channel dimension: {axis}.")
    for each in reduced:
        if dims[each] is None:
            raise ValueError(f"Inputs {x.name} has undefined dimensions {each}.")
        if each == axis:
            raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")
    group = [groups, channels // groups]
    whole = array.shape(x)
    split = concat([whole[:axis], group, whole[axis + 1 :]], 0)
    with variable_scope(
        scope, "GroupNorm", [x], reuse=reuse, custom_getter=custom_getter(variables_collections)
    ) as inner:
        axes = [axis + 1, *(each + (each > axis) for each in reduced)]
        shape = [1] * axis + group + [1] * (rank - axis - 1)
        wanted = {"beta": center, "gamma": scale}
        grouped = array.reshape(x, split)
        grouped.set_shape([*dims[:axis], *group, *dims[axis + 1 :]])
        normal = _normalize(
            grouped, axes, channels, shape, epsilon, wanted, param_initializers, trainable
        )
        outputs = array.reshape(normal, whole)
        outputs.set_shape(x.shape)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        collect_named_outputs(outputs_collections, inner.name, outputs)
        return outputs


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = "zeros",
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """Adds the variable `biases` to the channels.

    Args:
        inputs: floats of known rank and number of channels.
        activation_fn: applied to the result; none by default.
        initializer, regularizer: of `biases`.
        reuse, variables_collections, outputs_collections, trainable: see `fully_connected`.
        data_format: 'NHWC', or 'NCHW' for a tensor of rank 4.
        scope: the variable scope; 'BiasAdd', made unique, by default.

    Raises:
        ValueError: the rank or the number of channels is unknown, or does not fit the format.
    """
    first = _channels_first(data_format)
    with variable_scope(
        scope, "BiasAdd", [inputs], reuse=reuse, custom_getter=custom_getter(variables_collections)
    ) as inner:
        x = convert_to_tensor(inputs, name="inputs")
        if x.shape.rank is None:
            raise ValueError("Dims of shape must be known but is None")
        if first and x.shape.rank != 4:
            raise ValueError("Data format NCHW only supports 4D Tensor")
        channels = x.shape.as_list()[1 if first else -1]
        if channels is None:
            raise ValueError("`C` dimension must be known but is None")
        biases = get_variable(
            "biases",
            [channels],
            x.dtype,
            Zeros() if initializer == "zeros" else initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        outputs = nn.bias_add(x, biases, data_format=data_format)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        collect_named_outputs(outputs_collections, inner.name, outputs)
        return outputs


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Tensor:
    """The maximum over groups of `length / num_units` elements of an axis (Goodfellow et al. 2013).

    Args:
        inputs: a tensor of known rank.
        num_units: the length of the axis in the result; must divide its length.
        axis: the axis.
        scope: the variable scope; 'MaxOut', made unique, by default.

    Raises:
        ValueError: the length is unknown, or not a multiple of `num_units`.
    """
    with variable_scope(scope, "MaxOut", [inputs]):
        x = convert_to_tensor(inputs, name="inputs")
        rank = len(require_rank(x))
        dims = x.shape.as_list()
        features = dims[axis]
        if features is None or features % num_units:
            raise ValueError(
                f"number of features({features}) is not a multiple of num_units({num_units})"
            )
        at = axis % rank
        sizes: list[Any] = [
            array.shape(x)[each] if dim is None else dim for each, dim in enumerate(dims)
        ]
        sizes[at] = num_units
        parts = array.reshape(x, stack([*sizes, features // num_units]))
        found = reduce.reduce_max(parts, -1)
        found.set_shape([num_units if each == at else dim for each, dim in enumerate(dims)])
        return found


def spatial_softmax(
    features: Any,
    temperature: float | None = None,
    name: str | None = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Tensor:
    """The expected position under each channel's spatial softmax (Levine et al. 2015).

    Args:
        features: floats of rank 4 with a known number of channels.
        temperature: the initial value of the variable `temperature`, 1 by default.
        name: the variable scope; 'spatial_softmax', made unique, by default.
        variables_collections, trainable: see `fully_connected`.
        data_format: 'NHWC' or 'NCHW'.

    Returns:
        `(batch, 2 channels)`: row and column of each channel, both in [-1, 1].

    Raises:
        ValueError: the number of channels is unknown.
    """
    first = _channels_first(data_format)
    with variable_scope(
        name, "spatial_softmax", custom_getter=custom_getter(variables_collections)
    ):
        x = convert_to_tensor(features, name="features")
        x = x if first else array.transpose(x, [0, 3, 1, 2])
        channels = x.shape.as_list()[1]
        if channels is None:
            raise ValueError(
                "The num_channels dimension of the inputs to `spatial_softmax` should be defined. "
                "Found `None`."
            )
        size = array.shape(x)
        start = Ones() if temperature is None else Constant(temperature)
        variable = get_variable("temperature", [], float32, start, trainable=trainable)
        flat = array.reshape(x, stack([-1, channels, size[2] * size[3]]))
        chances = array.reshape(nn.softmax(flat / variable), size)
        rows, columns = (linspace(-1.0, 1.0, size[each]) for each in (2, 3))
        row = reduce.reduce_sum(reduce.reduce_sum(chances, 3) * rows, 2)
        column = reduce.reduce_sum(reduce.reduce_sum(chances, 2) * columns, 2)
        places = array.reshape(stack([row, column], -1), [-1, 2 * channels])
        return elementwise.cast(places, x.dtype)
