"""The layer functions of `contrib.layers` (and `contrib.slim`), on top of `tf.layers`.

They differ in names ('weights', 'biases'), in defaults (ReLU, padding 'SAME'), in normalizers
applied before the activation, and in collections of variables and outputs. `_call` implements that;
a table maps each function to its layer.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.compat.arg_scope import add_arg_scope
from estimatorkit.compat.arguments import signature_of
from estimatorkit.compat.contrib.layer_utils import collect_named_outputs
from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.shapes import TensorShape
from estimatorkit.layers import functional
from estimatorkit.layers.convolutional.convolution_by_channel import DepthwiseConv2D
from estimatorkit.layers.engine.scoped import scoped
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.sliding_windows import is_channels_first
from estimatorkit.ops.variables.initializers import Ones, Zeros
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope

_MORE = {"DepthwiseConv2D": scoped(DepthwiseConv2D)}

# The names in `contrib.layers` of the variables of `tf.layers`.
_NAMES = {
    "kernel": "weights",
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}
_BATCH_NORM_NAMES = ("beta", "gamma", "moving_mean", "moving_variance")


def custom_getter(collections: Any) -> Callable[..., Any]:
    """A custom getter that renames variables and adds them to collections."""

    def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        outer, _, own = name.rpartition("/")
        own = _NAMES.get(own, own)
        more = collections.get(own) if isinstance(collections, Mapping) else collections
        more = [more] if isinstance(more, str) else list(more or ())
        given = kwargs.get("collections") or [GraphKeys.GLOBAL_VARIABLES]
        kwargs["collections"] = list(dict.fromkeys([*given, GraphKeys.MODEL_VARIABLES, *more]))
        if kwargs.get("regularizer") is not None:
            scope = f"{name}/Regularizer/"
            kwargs["regularizer"] = functools.partial(_loss, kwargs["regularizer"], scope)
        return getter(f"{outer}/{own}" if outer else own, *args, **kwargs)

    return get


def _loss(regularizer: Callable[[Any], Any], scope: str, weights: Any) -> Any:
    """A regularization loss, scoped by the layer's own name of the variable."""
    with get_default_graph().name_scope(scope):
        return regularizer(weights)


def _channels_first(data_format: Any) -> bool:
    if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise value_error(
            "data_format has to be either NCHW or NHWC.",
            expected="one of these, or their like for other ranks",
            received=data_format,
        )
    return is_channels_first(data_format)


def require_rank(inputs: Any) -> TensorShape:
    """The static shape of inputs; raises ValueError if their rank is unknown."""
    tensor = convert_to_tensor(inputs, name="inputs")
    if tensor.shape.rank is None:
        raise ValueError(f"Inputs {tensor.name} has undefined rank.")
    return tensor.shape


def _call(
    kind: str,
    inputs: Any,
    default: str,
    scope: Any,
    *,
    reuse: Any = None,
    activation_fn: Any = None,
    normalizer_fn: Any = None,
    normalizer_params: Mapping[str, Any] | None = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    call: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Any:
    """Builds a layer with the naming, normalizer and collections of `contrib.layers`.

    Args:
        kind: the class of `tf.layers`.
        default: the variable scope if `scope` is None, made unique.
        call: additional arguments of the layer's call.
        arguments: arguments of the class. `_DOCUMENT` describes the others.
    """
    with variable_scope(
        scope, default, [inputs], reuse=reuse, custom_getter=custom_getter(variables_collections)
    ) as inner:
        tensor = convert_to_tensor(inputs, name="inputs")
        made = _MORE.get(kind) or getattr(functional, kind)
        layer = made(**arguments, dtype=tensor.dtype, _scope=inner)
        outputs = layer(tensor, **(call or {}))
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


# -- layers by a table


@dataclasses.dataclass(frozen=True)
class _Layer:
    """A table entry: a function of `contrib.layers` that builds a layer.

    Attributes:
        kind: the class of `tf.layers`.
        scope: the default variable scope.
        own: the arguments specific to it, with their defaults (`...` if required).
        has_weights: whether it has variables, and therefore the arguments in `_OF_WEIGHTS`.
        what: the first line of its docstring.
    """

    kind: str
    scope: str
    own: Mapping[str, Any]
    has_weights: bool
    what: str


# The classes' names of those arguments.
_ARGUMENTS = {
    "kernel_size": "kernel_size",
    "stride": "strides",
    "padding": "padding",
    "rate": "dilation_rate",
    "depth_multiplier": "depth_multiplier",
}
# Their kernels, if there are several or one has another name.
_KERNELS = {"SeparableConv2D": ("depthwise", "pointwise"), "DepthwiseConv2D": ("depthwise",)}
_OF_WEIGHTS: dict[str, Any] = {
    "activation_fn": nn.relu,
    "normalizer_fn": None,
    "normalizer_params": None,
    "weights_initializer": "glorot_uniform",
    "pointwise_initializer": None,  # if any
    "weights_regularizer": None,
    "biases_initializer": "zeros",
    "biases_regularizer": None,
    "reuse": None,
    "variables_collections": None,
}
_WINDOW = {"num_outputs": ..., "kernel_size": ..., "stride": 1, "padding": "SAME"}
_POOLING = {"kernel_size": ..., "stride": 2, "padding": "VALID", "data_format": None}

_TABLE = {
    "fully_connected": _Layer(
        "Dense",
        "fully_connected",
        {"num_outputs": ...},
        True,
        "activation_fn(inputs x weights + biases).",
    ),
    **{
        f"conv{rank}d": _Layer(
            f"Conv{rank}D",
            "Conv",
            {**_WINDOW, "data_format": None, "rate": 1},
            True,
            f"activation_fn(convolution + biases) over {rank} dimension{'s' * (rank > 1)}.",
        )
        for rank in (1, 2, 3)
    },
    "conv2d_transpose": _Layer(
        "Conv2DTranspose",
        "Conv2d_transpose",
        {**_WINDOW, "data_format": None},
        True,
        "activation_fn(transposed convolution + biases).",
    ),
    "separable_conv2d": _Layer(
        "SeparableConv2D",
        "SeparableConv2d",
        {
            **{"num_outputs": ..., "kernel_size": ..., "depth_multiplier": 1, "stride": 1},
            **{"padding": "SAME", "data_format": None, "rate": 1},
        },
        True,
        "activation_fn(each channel convolved by itself, then mixed, + biases).",
    ),
    "max_pool2d": _Layer(
        "MaxPooling2D", "MaxPool2D", _POOLING, False, "The greatest value of each window."
    ),
    "avg_pool2d": _Layer(
        "AveragePooling2D", "AvgPool2D", _POOLING, False, "The mean of each window."
    ),
    "max_pool3d": _Layer(
        "MaxPooling3D", "MaxPool3D", _POOLING, False, "The greatest value of each window."
    ),
    "avg_pool3d": _Layer(
        "AveragePooling3D", "AvgPool3D", _POOLING, False, "The mean of each window."
    ),
    "conv3d_transpose": _Layer(
        "Conv3DTranspose",
        "Conv3d_transpose",
        {**_WINDOW, "data_format": None},
        True,
        "activation_fn(transposed convolution + biases).",
    ),
}
# Argument docs; each function gets those that it has.
_DOCUMENT = {
    "inputs": "floats `(batch, ..., channels)`.",
    "num_outputs": "the number of outputs; None in a separable convolution leaves its channels "
    "unmixed.",
    "kernel_size": "the window's lengths, or one for all.",
    "stride": "steps of the window, or one for all.",
    "rate": "distances of the window's elements, or one for all.",
    "padding": "'SAME' or 'VALID'.",
    "data_format": "of TensorFlow, such as 'NHWC' or 'NCHW'.",
    "depth_multiplier": "how many filters each channel has.",
    "activation_fn": "ReLU by default; None for none.",
    "normalizer_fn": "applied before the activation, instead of a bias.",
    "normalizer_params": "more arguments of `normalizer_fn`.",
    "weights_initializer": "of `weights`; Glorot by default.",
    "weights_regularizer": "of `weights`.",
    "pointwise_initializer": "of `pointwise_weights`; `weights_initializer` by default.",
    "biases_initializer": "of `biases`; None for no bias.",
    "biases_regularizer": "of `biases`.",
    "reuse": "whether to share the variables of a layer of this scope.",
    "variables_collections": "more collections for the variables, or such by the variables' names.",
    "outputs_collections": "collections for the outputs.",
    "trainable": "whether the variables are listed as trainable.",
    "scope": "the variable scope; a default one, made unique, by default.",
}


def _make(name: str, entry: _Layer) -> Callable[..., Any]:
    of_weights = dict(_OF_WEIGHTS) if entry.has_weights else {}
    if entry.kind != "SeparableConv2D":
        of_weights.pop("pointwise_initializer", None)
    last = {"outputs_collections": None, **({"trainable": True} if entry.has_weights else {})}
    arguments = {"inputs": ..., **entry.own, **of_weights, **last, "scope": None}
    signature = signature_of(arguments)

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return _run(entry, dict(bound.arguments))

    function.__name__ = function.__qualname__ = name
    lines = [f"    {each}: {text}" for each, text in _DOCUMENT.items() if each in arguments]
    function.__doc__ = "\n".join([entry.what, "", "Args:", *lines])
    function.__signature__ = signature  # type: ignore[attr-defined]
    return add_arg_scope(function)


def _run(entry: _Layer, given: dict[str, Any]) -> Any:
    if entry.kind == "SeparableConv2D" and given["num_outputs"] is None:
        entry = dataclasses.replace(entry, kind="DepthwiseConv2D")  # the channels stay unmixed
        given = {name: each for name, each in given.items() if name != "num_outputs"}
    taken = {new: given[old] for old, new in _ARGUMENTS.items() if old in given}
    if "padding" in taken:
        first = _channels_first(given["data_format"])
        taken["data_format"] = "channels_first" if first else "channels_last"
    if "num_outputs" in given:
        if not isinstance(given["num_outputs"], (int, np.integer)):
            raise ValueError(
                f"num_outputs type should be one of [int], got {type(given['num_outputs'])}."
            )
        taken["units" if entry.kind == "Dense" else "filters"] = given["num_outputs"]
    if "pool" in entry.kind.lower():
        taken["pool_size"] = taken.pop("kernel_size")
    if entry.has_weights:
        kernel = {
            "initializer": given["weights_initializer"],
            "regularizer": given["weights_regularizer"],
        }
        names = _KERNELS.get(entry.kind, ("kernel",))
        taken |= {f"{name}_{part}": each for name in names for part, each in kernel.items()}
        if "pointwise" in names and given["pointwise_initializer"] is not None:
            taken["pointwise_initializer"] = given["pointwise_initializer"]
        taken |= {
            "use_bias": given["normalizer_fn"] is None and given["biases_initializer"] is not None,
            "bias_initializer": given["biases_initializer"],
            "bias_regularizer": given["biases_regularizer"],
            "trainable": given["trainable"],
        }
    handed = (
        "activation_fn",
        "normalizer_fn",
        "normalizer_params",
        "reuse",
        "variables_collections",
        "outputs_collections",
    )
    more = {name: given[name] for name in handed if name in given}
    return _call(entry.kind, given["inputs"], entry.scope, given["scope"], **more, **taken)


fully_connected = _make("fully_connected", _TABLE["fully_connected"])
conv1d = convolution1d = _make("convolution1d", _TABLE["conv1d"])
conv2d = convolution2d = _make("convolution2d", _TABLE["conv2d"])
conv3d = convolution3d = _make("convolution3d", _TABLE["conv3d"])
conv2d_transpose = convolution2d_transpose = _make(
    "convolution2d_transpose", _TABLE["conv2d_transpose"]
)
separable_conv2d = separable_convolution2d = _make(
    "separable_convolution2d", _TABLE["separable_conv2d"]
)
max_pool2d = _make("max_pool2d", _TABLE["max_pool2d"])
avg_pool2d = _make("avg_pool2d", _TABLE["avg_pool2d"])
max_pool3d = _make("max_pool3d", _TABLE["max_pool3d"])
avg_pool3d = _make("avg_pool3d", _TABLE["avg_pool3d"])
conv3d_transpose = convolution3d_transpose = _make(
    "convolution3d_transpose", _TABLE["conv3d_transpose"]
)


# -- the others


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """`(batch, n)`; see `layers.flatten`.

    Args:
        inputs: a tensor.
        outputs_collections: collections for the outputs.
        scope: the variable scope.
    """
    return _call("Flatten", inputs, "Flatten", scope, outputs_collections=outputs_collections)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Any:
    """`layers.dropout`, with the probability of keeping an element.

    Args:
        inputs: floats.
        keep_prob: the probability that an element is kept.
        noise_shape, seed: see `layers.dropout`.
        is_training: a bool or a boolean tensor.
        outputs_collections: collections for the outputs.
        scope: the variable scope.
    """
    return _call(
        "Dropout",
        inputs,
        "Dropout",
        scope,
        outputs_collections=outputs_collections,
        call={"training": is_training},
        rate=1 - keep_prob,
        noise_shape=noise_shape,
        seed=seed,
    )


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """`layers.batch_normalization` with other names: `decay` is the momentum; no scale by default.

    Args:
        inputs: floats with a known number of channels.
        decay, center, scale, epsilon, fused, renorm, adjustment: see there.
        activation_fn: applied to the result; none by default.
        param_initializers, param_regularizers: by the variables' names: 'beta', 'gamma',
            'moving_mean', 'moving_variance'.
        updates_collections: collections for the updates of the moving averages; None runs the
            updates whenever the outputs are computed in training.
        is_training: a bool or a boolean tensor.
        reuse, variables_collections, outputs_collections, trainable: see `fully_connected`.
        batch_weights, zero_debias_moving_mean: not supported.
        data_format: of TensorFlow, such as 'NHWC' or 'NCHW'.
        scope: the variable scope; 'BatchNorm', made unique, by default.
        renorm_clipping, renorm_decay: accepted for compatibility only.

    Raises:
        ValueError: an argument is not supported.
    """
    require_rank(inputs)
    for refused, value in (
        ("batch_weights", batch_weights is not None),
        ("zero_debias_moving_mean", zero_debias_moving_mean),
    ):
        if value:
            raise value_error(f"batch_norm: {refused} is not supported")
    initial, losses = param_initializers or {}, param_regularizers or {}
    chosen = {f"{name}_initializer": initial[name] for name in _BATCH_NORM_NAMES if name in initial}
    chosen |= {f"{name}_regularizer": losses[name] for name in ("beta", "gamma") if name in losses}
    collected = get_default_graph().get_collection_ref(GraphKeys.UPDATE_OPS)
    count = len(collected)

    def collect_updates(outputs: Any) -> Any:
        updates = collected[count:]
        del collected[count:]
        for update in updates:
            get_default_graph().add_to_collections(updates_collections or (), update)
        if updates_collections is not None:
            return outputs
        with get_default_graph().control_dependencies(updates):
            return builtin_ops.identity(outputs)

    return _call(
        "BatchNormalization",
        inputs,
        "BatchNorm",
        scope,
        reuse=reuse,
        activation_fn=activation_fn,
        normalizer_fn=collect_updates,
        variables_collections=variables_collections,
        outputs_collections=outputs_collections,
        call={"training": is_training},
        axis=1 if _channels_first(data_format) else -1,
        momentum=decay,
        epsilon=epsilon,
        center=center,
        scale=scale,
        fused=fused,
        trainable=trainable,
        renorm=renorm,
        adjustment=adjustment,
        **chosen,
    )


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Layer normalization (Ba et al. 2016).

    Args:
        inputs: floats; the sizes of the variables' axes must be static.
        center, scale: whether there is a `beta` (shift), a `gamma` (scale).
        activation_fn: applied to the result; none by default.
        reuse, variables_collections, outputs_collections, trainable: see `fully_connected`.
        begin_norm_axis: the first of the axes to normalize over.
        begin_params_axis: the first axis of the variables.
        scope: the variable scope; 'LayerNorm', made unique, by default.

    Raises:
        ValueError: a required size is unknown.
    """
    with variable_scope(
        scope,
        "LayerNorm",
        [inputs],
        reuse=reuse,
        custom_getter=custom_getter(variables_collections),
    ) as inner:
        x = convert_to_tensor(inputs, name="inputs")
        dims = require_rank(x).as_list()
        shape = dims[begin_params_axis:]
        if None in shape:
            raise value_error(
                f"Shape of the last dimensions of {x.name} must be known", received=str(x.shape)
            )
        make: dict[str, Any] = {"shape": shape, "dtype": x.dtype, "trainable": trainable}
        beta = get_variable("beta", initializer=Zeros(), **make) if center else None
        gamma = get_variable("gamma", initializer=Ones(), **make) if scale else None
        axes = list(range(begin_norm_axis % len(dims), len(dims)))
        mean, variance = nn.moments(x, axes, keepdims=True)
        epsilon = 1e-3 if x.dtype.name == "float16" else 1e-12
        outputs = nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(x.shape)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """Applies a layer repeatedly with different arguments.

    Args:
        inputs: the inputs of the first layer.
        layer: a function of this module, or a compatible one.
        stack_args: for each layer, its argument after the inputs, or a list of them.
        kwargs: passed to every layer; `scope` is the scope of the stack, 'Stack' by default, within
            which layers are named after the function and their number.
    """
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Stack", [inputs], reuse=kwargs.pop("reuse", None)):
        outputs = convert_to_tensor(inputs)
        base = scope or getattr(layer, "__name__", "stack")
        for number, given in enumerate(stack_args, 1):
            arguments = given if isinstance(given, (list, tuple)) else [given]
            outputs = layer(outputs, *arguments, **kwargs, scope=f"{base}_{number}")
        return outputs


def repeat(
    inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Applies the same layer repeatedly.

    Args:
        inputs: the inputs of the first layer.
        repetitions: the number of layers.
        layer: a function of this module, or a compatible one.
        args, kwargs: passed to every layer; `scope` as for `stack`, 'Repeat' by default.
    """
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        outputs = convert_to_tensor(inputs)
        base = scope or getattr(layer, "__name__", "repeat")
        for number in range(1, repetitions + 1):
            outputs = layer(outputs, *args, **kwargs, scope=f"{base}_{number}")
        return outputs


__all__ = [
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution1d",
    "convolution2d",
    "convolution2d_transpose",
    "convolution3d",
    "convolution3d_transpose",
    "dropout",
    "flatten",
    "fully_connected",
    "layer_norm",
    "max_pool2d",
    "max_pool3d",
    "repeat",
    "separable_conv2d",
    "separable_convolution2d",
    "stack",
]
