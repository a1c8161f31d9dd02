"""Calls of Keras's layers: one table, and what TensorFlow or estimatorkit makes of it.

`make_layers.py` runs `observe` with TensorFlow and stores what it gives; the tests run it with
estimatorkit. Nothing here imports either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class LayerCase:
    """A layer and a call of it.

    Attributes:
        kind: the name of the class.
        shapes: those of the inputs; several are given as a list, but to `MultiHeadAttention`.
        arguments: of the constructor.
        call: more arguments of the call; lists are arrays.
        integers: the inputs count up to this number; None for floats.
    """

    kind: str
    shapes: tuple[tuple[int, ...], ...]
    arguments: Mapping[str, Any]
    call: Mapping[str, Any]
    integers: int | None = None


def case(kind: str, *shapes: tuple[int, ...], **arguments: Any) -> LayerCase:
    """A case; `call` and `integers` among the arguments are those of `LayerCase`."""
    call, integers = arguments.pop("call", {}), arguments.pop("integers", None)
    return LayerCase(kind, shapes, arguments, call, integers)


_STEPS, _IMAGE, _VOLUME = (2, 5, 3), (2, 5, 4, 3), (2, 4, 3, 4, 2)
_IMAGE_FIRST, _VOLUME_FIRST = (2, 3, 5, 4), (2, 2, 4, 3, 4)
_TRAINING = {"training": True}
_MASK = [[True, True, False, True, False], [True, False, False, False, False]]
_QUERY_MASK = [[True, True, False], [True, False, True]]

_TABLE: dict[str, list[LayerCase]] = {
    "dense": [
        case("Dense", (3, 4), units=2),
        case("Dense", _STEPS, units=4, activation="tanh", use_bias=False),
        case("Dense", (3, 4), units=2, activation="softmax", kernel_regularizer="l2"),
        case("Embedding", (2, 3), integers=5, input_dim=5, output_dim=3),
        case("EinsumDense", _STEPS, equation="abc,cd->abd", output_shape=(None, 4), bias_axes="d"),
        case("EinsumDense", _STEPS, equation="...x,xy->...y", output_shape=4, bias_axes="y"),
        case("EinsumDense", _STEPS, equation="ab...,bc->ac...", output_shape=2, bias_axes="c"),
        case("EinsumDense", _STEPS, equation="abc,bcd->ad", output_shape=4, activation="relu"),
    ],
    "convolution": [
        case("Conv1D", _STEPS, filters=2, kernel_size=3),
        case("Conv1D", _STEPS, filters=2, kernel_size=2, padding="causal", dilation_rate=2),
        case("Conv1D", _STEPS, filters=2, kernel_size=2, padding="same", strides=2),
        case("Conv1D", (2, 2, 5, 3), filters=2, kernel_size=3, activation="relu"),
        case("Conv2D", _IMAGE, filters=2, kernel_size=3),
        case("Conv2D", _IMAGE, filters=2, kernel_size=(3, 2), strides=(2, 1), padding="same"),
        case("Conv2D", _IMAGE, filters=3, kernel_size=2, groups=3, activation="elu"),
        case("Conv2D", _IMAGE, filters=2, kernel_size=2, dilation_rate=(2, 1), use_bias=False),
        case("Conv3D", _VOLUME, filters=2, kernel_size=(2, 1, 2), strides=(1, 2, 1)),
        case("Conv3D", _VOLUME, filters=2, kernel_size=2, padding="same"),
        case("DepthwiseConv1D", _STEPS, kernel_size=3, depth_multiplier=2),
        case("DepthwiseConv2D", _IMAGE, kernel_size=3, depth_multiplier=2),
        case(
            "DepthwiseConv2D", _IMAGE, kernel_size=2, strides=2, padding="same", activation="relu"
        ),
        case("SeparableConv1D", _STEPS, filters=2, kernel_size=3, padding="same"),
        case("SeparableConv1D", _STEPS, filters=2, kernel_size=2, padding="causal"),
        case("SeparableConv2D", _IMAGE, filters=2, kernel_size=3, depth_multiplier=2),
        case("SeparableConv2D", _IMAGE, filters=2, kernel_size=2, strides=2, padding="same"),
        case("LocallyConnected1D", _STEPS, filters=2, kernel_size=2, strides=2),
        case("LocallyConnected2D", _IMAGE, filters=2, kernel_size=(2, 3), strides=(2, 1)),
        case("LocallyConnected2D", _IMAGE, filters=2, kernel_size=2, use_bias=False),
        case(
            *("LocallyConnected1D", (2, 3, 5)),
            **{"filters": 2, "kernel_size": 2, "data_format": "channels_first"},
        ),
        case(
            *("LocallyConnected2D", _IMAGE_FIRST),
            **{"filters": 2, "kernel_size": (2, 3), "data_format": "channels_first"},
        ),
    ],
    "transposed": [
        case("Conv1DTranspose", _STEPS, filters=2, kernel_size=3, strides=2),
        case("Conv1DTranspose", _STEPS, filters=2, kernel_size=3, padding="same", strides=2),
        case("Conv2DTranspose", _IMAGE, filters=2, kernel_size=3),
        case("Conv2DTranspose", _IMAGE, filters=2, kernel_size=2, strides=3),
        case("Conv2DTranspose", _IMAGE, filters=2, kernel_size=3, strides=2, padding="same"),
        case(
            *("Conv2DTranspose", _IMAGE),
            **{"filters": 2, "kernel_size": 3, "strides": 2, "output_padding": 1},
        ),
        case(
            *("Conv2DTranspose", _IMAGE),
            **{"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same"},
            output_padding=(1, 0),
        ),
        case("Conv2DTranspose", _IMAGE, filters=2, kernel_size=2, dilation_rate=2),
        case("Conv3DTranspose", (2, 2, 3, 2, 2), filters=2, kernel_size=2, strides=(1, 2, 1)),
        case("Conv3DTranspose", (2, 2, 3, 2, 2), filters=2, kernel_size=2, padding="same"),
    ],
    "pooling": [
        case("MaxPooling1D", _STEPS),
        case("MaxPooling1D", _STEPS, pool_size=3, strides=1, padding="same"),
        case("MaxPooling2D", _IMAGE),
        case("MaxPooling2D", _IMAGE, pool_size=(3, 2), strides=(1, 2), padding="same"),
        case("MaxPooling3D", _VOLUME),
        case("AveragePooling1D", _STEPS, padding="same"),
        case("AveragePooling2D", _IMAGE, pool_size=3, strides=1),
        case("AveragePooling2D", _IMAGE, pool_size=3, strides=2, padding="same"),
        case("AveragePooling3D", _VOLUME, pool_size=2, padding="same"),
        case("GlobalMaxPooling1D", _STEPS),
        case("GlobalMaxPooling2D", _IMAGE, keepdims=True),
        case("GlobalMaxPooling2D", _IMAGE_FIRST, data_format="channels_first"),
        case("GlobalMaxPooling3D", _VOLUME),
        case("GlobalAveragePooling1D", _STEPS),
        case("GlobalAveragePooling1D", _STEPS, call={"mask": _MASK}),
        case("GlobalAveragePooling2D", _IMAGE),
        case("GlobalAveragePooling2D", _IMAGE_FIRST, data_format="channels_first", keepdims=True),
        case("GlobalAveragePooling3D", _VOLUME, keepdims=True),
    ],
    "reshaping": [
        case("Flatten", _IMAGE),
        case("Flatten", _IMAGE_FIRST, data_format="channels_first"),
        case("Reshape", _IMAGE, target_shape=(5, 12)),
        case("Reshape", _IMAGE, target_shape=(-1, 6)),
        case("Permute", _IMAGE, dims=(3, 1, 2)),
        case("RepeatVector", (2, 3), n=4),
        case("Cropping1D", _STEPS),
        case("Cropping1D", _STEPS, cropping=(0, 2)),
        case("Cropping2D", _IMAGE, cropping=1),
        case("Cropping2D", _IMAGE_FIRST, cropping=((0, 2), (1, 0)), data_format="channels_first"),
        case("Cropping3D", _VOLUME, cropping=((1, 2), (1, 1), (0, 2))),
        case("ZeroPadding1D", _STEPS, padding=2),
        case("ZeroPadding2D", _IMAGE, padding=(1, 2)),
        case("ZeroPadding2D", _IMAGE_FIRST, padding=((0, 1), (2, 0)), data_format="channels_first"),
        case("ZeroPadding3D", (2, 2, 1, 2, 2), padding=1),
        case("UpSampling1D", _STEPS, size=3),
        case("UpSampling2D", _IMAGE),
        case("UpSampling2D", _IMAGE_FIRST, size=(1, 3), data_format="channels_first"),
        case("UpSampling2D", _IMAGE, size=(2, 3), interpolation="bilinear"),
        case("UpSampling3D", (2, 2, 1, 2, 2), size=(1, 3, 2)),
    ],
    "noise": [
        case("Dropout", (2, 3), rate=0.5),
        case("Dropout", (2, 3), rate=0.0, call=_TRAINING),
        case("SpatialDropout1D", _STEPS, rate=0.5),
        case("SpatialDropout2D", _IMAGE, rate=0.5),
        case("SpatialDropout3D", _VOLUME, rate=0.5),
        case("GaussianNoise", (2, 3), stddev=0.5),
        case("GaussianDropout", (2, 3), rate=0.5),
        case("AlphaDropout", (2, 3), rate=0.5),
        case("ActivityRegularization", (2, 3), l1=0.1, l2=0.2),
    ],
    "normalization": [
        case("BatchNormalization", (4, 3)),
        case("BatchNormalization", (4, 3), momentum=0.9, call=_TRAINING),
        case("BatchNormalization", _STEPS, axis=1, epsilon=0.1, center=False, call=_TRAINING),
        case("BatchNormalization", _STEPS, call={**_TRAINING, "mask": _MASK}),
        case("BatchNormalization", _IMAGE, momentum=0.8, call=_TRAINING),
        case("BatchNormalization", _IMAGE_FIRST, axis=1, scale=False, call=_TRAINING),
        case("BatchNormalization", _IMAGE, axis=[1, 3], momentum=0.5, call=_TRAINING),
        case("BatchNormalization", _VOLUME, momentum=0.5, call=_TRAINING),
        case("BatchNormalization", _IMAGE, momentum=0.5, fused=False, call=_TRAINING),
        case("BatchNormalization", (4, 3), trainable=False, call=_TRAINING),
        case("LayerNormalization", (4, 3)),
        case("LayerNormalization", _IMAGE, axis=[1, 3], epsilon=0.1),
        case("LayerNormalization", _STEPS, axis=1, center=False),
        case("LayerNormalization", _STEPS, axis=[1, 2], scale=False),
        case("GroupNormalization", (*_IMAGE[:3], 4), groups=2),
        case("GroupNormalization", (2, 4, 3), groups=-1, axis=1),
        case("UnitNormalization", _STEPS),
        case("UnitNormalization", _STEPS, axis=[1, 2]),
    ],
    "activations": [
        *(
            case("Activation", (2, 5), activation=name)
            for name in (
                *("elu", "exponential", "gelu", "hard_sigmoid", "linear", "relu", "selu"),
                *("sigmoid", "softmax", "softplus", "softsign", "swish", "tanh"),
            )
        ),
        case("Identity", (2, 5)),
        case("Masking", _STEPS),
        case("ReLU", (2, 5)),
        case("ReLU", (2, 5), max_value=0.5, negative_slope=0.1, threshold=0.2),
        case("LeakyReLU", (2, 5), alpha=0.2),
        case("ELU", (2, 5), alpha=0.5),
        case("ThresholdedReLU", (2, 5), theta=0.3),
        case("PReLU", _STEPS),
        case("PReLU", _IMAGE, shared_axes=[1, 2]),
        case("Softmax", _STEPS, axis=1),
        case("Softmax", _STEPS, axis=[1, 2]),
        case("Softmax", (2, 5), call={"mask": _MASK}),
    ],
    "merging": [
        case("Add", (2, 3), (2, 3), (2, 3)),
        case("Add", (2, 4, 3), (2, 3)),
        case("Subtract", (2, 3), (2, 3)),
        case("Multiply", (2, 4, 3), (2, 1, 3)),
        case("Average", (2, 3), (2, 3), (2, 3)),
        case("Maximum", (2, 3), (2, 3)),
        case("Minimum", (2, 3), (2, 3)),
        case("Concatenate", (2, 3), (2, 1)),
        case("Concatenate", (2, 3, 2), (2, 1, 2), axis=1),
        case("Dot", (2, 3), (2, 3), axes=1),
        case("Dot", (2, 3), (2, 3), axes=-1, normalize=True),
        case("Dot", (2, 4, 3), (2, 3, 2), axes=(2, 1)),
        case("Dot", (2, 4, 3), (2, 4), axes=1),
    ],
    "preprocessing": [
        case("Rescaling", (2, 3), scale=0.5, offset=-1.0),
        case("Normalization", (3, 4), mean=[0.1, 0.2, 0.3, 0.4], variance=[0.5, 1.0, 2.0, 0.0]),
        case("Normalization", _STEPS, axis=None, mean=0.5, variance=4.0, invert=True),
        case("Normalization", _STEPS, axis=1),
        case("Discretization", (2, 5), bin_boundaries=[-0.5, 0.0, 0.5]),
        case("Discretization", (5, 1), bin_boundaries=[-0.5, 0.5], output_mode="one_hot"),
        case("CategoryEncoding", (2, 3), integers=4, num_tokens=4),
        case("CategoryEncoding", (5,), integers=4, num_tokens=4, output_mode="one_hot"),
        case("CategoryEncoding", (2, 3), integers=4, num_tokens=4, output_mode="count"),
        case("Hashing", (2, 3), integers=100, num_bins=7),
        case("Hashing", (2, 3), integers=100, num_bins=7, salt=[3, 4], output_mode="multi_hot"),
        case("Hashing", (2, 3), integers=100, num_bins=7, mask_value=4),
    ],
    "attention": [
        case("Attention", (2, 3, 4), (2, 5, 4)),
        case("Attention", (2, 3, 4), (2, 5, 2), (2, 5, 4), use_scale=True),
        case("Attention", (2, 3, 4), (2, 5, 4), score_mode="concat", use_scale=True),
        case("Attention", (2, 3, 4), (2, 3, 4), call={"use_causal_mask": True}),
        case("Attention", (2, 3, 4), (2, 5, 4), call={"mask": [_QUERY_MASK, _MASK]}),
        case("AdditiveAttention", (2, 3, 4), (2, 5, 4)),
        case("AdditiveAttention", (2, 3, 4), (2, 5, 4), use_scale=False),
        case("MultiHeadAttention", (2, 3, 4), (2, 5, 4), num_heads=2, key_dim=3),
        case(
            *("MultiHeadAttention", (2, 3, 4), (2, 5, 2), (2, 5, 3)),
            **{"num_heads": 2, "key_dim": 3, "value_dim": 2, "output_shape": 3},
            call={"return_attention_scores": True},
        ),
        case(
            *("MultiHeadAttention", (2, 3, 4), (2, 3, 4)),
            **{"num_heads": 1, "key_dim": 2, "use_bias": False},
            call={"use_causal_mask": True},
        ),
        case(
            *("MultiHeadAttention", (2, 2, 3, 4), (2, 2, 3, 4)),
            **{"num_heads": 2, "key_dim": 2, "attention_axes": (2,)},
        ),
    ],
}

CASES: dict[str, dict[str, LayerCase]] = {
    family: {f"{each.kind} {number}": each for number, each in enumerate(cases)}
    for family, cases in _TABLE.items()
}
# Classes that are names of TensorFlow 1.
LEGACY = {"LocallyConnected1D", "LocallyConnected2D"}
# TensorFlow's kernels for CPUs take channels last: those are run so, and turned around.
CHANNELS_FIRST = {
    *("Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D"),
    *("SeparableConv2D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"),
    *("MaxPooling1D", "MaxPooling2D", "MaxPooling3D"),
    *("AveragePooling1D", "AveragePooling2D", "AveragePooling3D"),
}


def wave(shape: Iterable[int], start: float, step: float) -> NDArray[np.float32]:
    """Numbers in [-1, 1] that repeat late: what inputs, weights and factors are made of."""
    shape = tuple(shape)
    return np.sin(start + step * np.arange(np.prod(shape))).astype(np.float32).reshape(shape)


def inputs_of(one: LayerCase) -> list[NDArray[Any]]:
    """The inputs of a case."""
    if one.integers is not None:
        return [np.arange(np.prod(each)).reshape(each) * 2 % one.integers for each in one.shapes]
    return [wave(each, 0.3 + number, 0.71) for number, each in enumerate(one.shapes)]


def weight_value(name: str, shape: Iterable[int], number: int) -> NDArray[np.float32]:
    """The value of a weight; variances are positive."""
    value = 0.8 * wave(shape, 0.9 + number, 1.37)
    return value * value + np.float32(0.5) if "variance" in name else value


def called(tf: Any, layer: Any, one: LayerCase, tensors: list[Any]) -> Any:
    """The outputs of a layer."""
    more = {
        key: [tf.constant(each) for each in value]
        if isinstance(value, list) and isinstance(value[0][0], list)
        else tf.constant(value)
        if isinstance(value, list)
        else value
        for key, value in one.call.items()
    }
    if one.kind == "MultiHeadAttention":
        return layer(*tensors, **more)
    return layer(tensors[0] if len(tensors) == 1 else tensors, **more)


def observe(
    tf: Any, layers: Any, cases: Mapping[str, LayerCase]
) -> tuple[dict[str, dict[str, Any]], dict[str, NDArray[Any]]]:
    """What layers give, all in one graph.

    Args:
        tf: `tensorflow.compat.v1` or `estimatorkit`.
        layers: `tf.keras.layers` of either.
        cases: by name.

    Returns:
        For each case its weights (names and shapes) and which gradients there are; and arrays by
        '<case>/<what>/<number>': 'outputs', 'gradients' (of the weights, then of the inputs),
        'losses', and 'updated' (the weights after the updates).
    """
    facts: dict[str, dict[str, Any]] = {}
    fetches: dict[str, list[Any]] = {}
    feeds: dict[Any, Any] = {}
    assigns, updates = [], []
    with tf.Graph().as_default(), tf.Session() as session:
        for name, one in cases.items():
            tensors = []
            for value in inputs_of(one):
                tensors.append(tf.placeholder(value.dtype, [None, *value.shape[1:]]))
                feeds[tensors[-1]] = value
            layer = getattr(layers, one.kind)(**one.arguments)
            outputs = called(tf, layer, one, tensors)
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            for number, weight in enumerate(layer.weights):
                value = weight_value(weight.name, weight.shape.as_list(), number)
                assigns.append(tf.assign(weight, tf.cast(value, weight.dtype)))
            trained = list(layer.trainable_weights)
            sources = trained + [each for each in tensors if each.dtype.is_floating]
            total = tf.add_n(
                [
                    tf.reduce_sum(tf.cast(each, "float32") * wave(_sizes(each, one), 0.5, 1.3))
                    for each in outputs
                ]
            )
            slopes = tf.gradients(total, sources)
            slopes = [None if each is None else tf.convert_to_tensor(each) for each in slopes]
            fetches[f"{name}/outputs"] = outputs
            fetches[f"{name}/gradients"] = [each for each in slopes if each is not None]
            fetches[f"{name}/losses"] = list(layer.losses)
            own = list(layer.updates)
            updates += own
            facts[name] = {
                "weights": [[_inner(w.name, layer.name), w.shape.as_list()] for w in layer.weights],
                "trained": len(trained),
                "gradients": [each is not None for each in slopes],
                "updates": len(own),
                "shapes": [_dims(each) for each in outputs],
            }
            if own:
                fetches[f"{name}/updated"] = list(layer.non_trainable_weights)
        session.run(assigns)
        before = {key: value for key, value in fetches.items() if not key.endswith("/updated")}
        found, _ = session.run([before, updates], feeds)
        found.update(session.run({key: fetches[key] for key in fetches if key not in before}))
    arrays = {
        f"{key}/{number}": np.asarray(value)
        for key, values in found.items()
        for number, value in enumerate(values)
    }
    return facts, arrays


def _sizes(tensor: Any, one: LayerCase) -> list[int]:
    return [one.shapes[0][0] if each is None else each for each in tensor.shape.as_list()]


def _dims(tensor: Any) -> Any:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def _inner(name: str, layer: str) -> str:
    """A weight's name below its layer."""
    return name.split(":")[0].removeprefix(f"{layer}/")
