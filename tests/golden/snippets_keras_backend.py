"""Programs of `tf.keras.backend`, as functions of that module (`K`): each gives tensors.

`NUMBERS` give what is compared; `SHAPES` give facts without a session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_random = np.random.default_rng(11)


def _array(*shape: int) -> Any:
    return _random.normal(0, 1, shape).astype(np.float32)


A, B, C = _array(2, 3, 4), _array(2, 4, 5), _array(2, 3)
SQUARE = _array(3, 3)
POSITIVE = np.abs(_array(2, 3)) + 0.1
STEPS, KERNEL_1 = _array(2, 6, 3), _array(2, 3, 4)
IMAGES, KERNEL_2 = _array(1, 5, 6, 2), _array(3, 2, 2, 3)
DEPTHWISE, POINTWISE = _array(2, 2, 2, 2), _array(1, 1, 4, 3)
VOLUMES, KERNEL_3 = _array(1, 4, 4, 3, 2), _array(2, 2, 2, 2, 3)
LOCAL_1, LOCAL_2 = _array(3, 6, 2), _array(6, 8, 2)
MASK = np.array([[1, 1, 0, 1, 0, 0], [1, 0, 1, 1, 1, 1]], bool)
CHANCES = _random.dirichlet([1.0] * 4, (2, 6)).astype(np.float32)
LABELS = np.array([[0, 1, 2], [2, 0, 0]], np.int32)
SHARES = _random.dirichlet([1.0] * 3, 2).astype(np.float32)
BITS = np.array([[1, 0, 1], [0, 0, 1]], np.float32)
W = _array(3, 4)

Program = Callable[[Any], Any]


def _loop(K: Any, **options: Any) -> Any:
    def step(row: Any, states: Any) -> Any:
        new = K.tanh(K.dot(row, K.constant(W)) + states[0])
        return new, [new]

    first = K.constant(np.full((2, 4), 0.1, np.float32))
    last, outputs, states = K.rnn(step, K.constant(STEPS), [first], **options)
    return [last, outputs, *states]


def _batch(K: Any) -> Any:
    x = K.constant(IMAGES)
    gamma, beta = K.constant([1.5, 0.5]), K.constant([0.1, -0.1])
    return list(K.normalize_batch_in_training(x, gamma, beta, [0, 1, 2]))


NUMBERS: dict[str, Program] = {
    **{
        f"{name} {axis} {keep}": (
            lambda K, name=name, axis=axis, keep=keep: getattr(K, name)(
                K.constant(A), axis=axis, keepdims=keep
            )
        )
        for name in ("sum", "mean", "prod", "max", "min", "std", "var")
        for axis, keep in ((None, False), (1, False), (-1, True), ((0, 2), False))
    },
    **{
        name: lambda K, name=name: getattr(K, name)(K.constant(C))
        for name in (
            *("abs", "cos", "exp", "sign", "sin", "square", "tanh", "sigmoid", "softmax"),
            *("softplus", "softsign", "hard_sigmoid", "elu", "relu", "round", "sqrt"),
            *("argmax", "argmin", "cumsum", "cumprod", "flatten", "transpose", "l2_normalize"),
        )
    },
    "any all": lambda K: [
        f(K.constant(BITS), axis=axis) for f in (K.any, K.all) for axis in (None, 0, 1)
    ],
    "mean of bools": lambda K: K.mean(K.cast(K.constant(BITS), "bool"), axis=1),
    "log pow clip": lambda K: [
        K.log(K.constant(POSITIVE)),
        K.pow(K.constant(POSITIVE), 3),
        K.clip(K.constant(C), -0.5, 0.5),
        K.clip(K.constant(C), None, 0.0),
        K.clip(K.constant(C), 0.5, -0.5),
    ],
    "relu of numbers": lambda K: [
        K.relu(K.constant(C), alpha=0.1),
        K.relu(K.constant(C), max_value=0.5),
        K.relu(K.constant(C), threshold=0.2),
        K.relu(K.constant(C), alpha=0.1, max_value=0.6, threshold=0.2),
        K.elu(K.constant(C), 0.5),
        K.softmax(K.constant(C), axis=0),
    ],
    "comparisons": lambda K: [
        getattr(K, name)(K.constant(C), K.constant(C[::-1].copy()))
        for name in (
            *("equal", "greater", "greater_equal", "less", "less_equal", "not_equal"),
            *("maximum", "minimum"),
        )
    ],
    "dot": lambda K: [
        K.dot(K.constant(C), K.constant(SQUARE)),
        K.dot(K.constant(A), K.constant(W.T)),
        K.dot(K.constant(A), K.constant(B)),
    ],
    "batch_dot": lambda K: [
        K.batch_dot(K.constant(A), K.constant(B)),
        K.batch_dot(K.constant(A), K.constant(B), axes=[2, 1]),
        K.batch_dot(K.constant(C), K.constant(C), axes=1),
        K.batch_dot(K.constant(A), K.constant(C), axes=1),
        K.batch_dot(K.constant(C), K.constant(A), axes=(1, 1)),
        K.batch_dot(K.constant(A), K.constant(A), axes=2),
    ],
    "shapes": lambda K: [
        K.reshape(K.constant(A), (2, -1)),
        K.permute_dimensions(K.constant(A), (0, 2, 1)),
        K.batch_flatten(K.constant(A)),
        K.expand_dims(K.constant(C)),
        K.expand_dims(K.constant(C), 0),
        K.squeeze(K.constant(C[:1]), 0),
        K.repeat(K.constant(C), 2),
        K.repeat_elements(K.constant(C), 2, axis=1),
        K.tile(K.constant(C), [1, 2]),
        K.tile(K.constant(C[0]), 2),
        K.reverse(K.constant(C), 1),
        K.reverse(K.constant(A), [0, 2]),
        K.concatenate([K.constant(C), K.constant(C)]),
        K.concatenate([K.constant(C), K.constant(C)], axis=0),
        K.stack([K.constant(C), K.constant(C)], axis=1),
        K.gather(K.constant(SQUARE), np.array([2, 0])),
        K.one_hot(np.array([0, 2, 1]), 3),
        K.arange(5),
        K.arange(1, 8, 3),
        K.arange(0, 2, dtype="float32"),
        K.zeros_like(K.constant(C)),
        K.ones_like(K.constant(C), dtype="int32"),
        K.shape(K.constant(A)),
        K.eye(2),
    ],
    "padding": lambda K: [
        K.temporal_padding(K.constant(STEPS), (2, 1)),
        K.spatial_2d_padding(K.constant(IMAGES), ((1, 0), (0, 2))),
        K.spatial_2d_padding(K.constant(IMAGES), ((1, 0), (0, 2)), "channels_first"),
        K.spatial_3d_padding(K.constant(VOLUMES)),
    ],
    "resizing": lambda K: [
        K.resize_images(K.constant(IMAGES), 2, 3, "channels_last"),
        K.resize_images(K.constant(IMAGES), 2, 2, "channels_last", "bilinear"),
        K.resize_images(K.constant(IMAGES), 2, 1, "channels_first"),
        K.resize_volumes(K.constant(VOLUMES), 1, 2, 1, "channels_last"),
    ],
    "conv": lambda K: [
        K.conv1d(K.constant(STEPS), K.constant(KERNEL_1)),
        K.conv1d(K.constant(STEPS), K.constant(KERNEL_1), 2, "same"),
        K.conv1d(K.constant(STEPS), K.constant(KERNEL_1), padding="causal", dilation_rate=2),
        K.conv2d(K.constant(IMAGES), K.constant(KERNEL_2)),
        K.conv2d(K.constant(IMAGES), K.constant(KERNEL_2), (2, 2), "same"),
        K.conv2d(K.constant(IMAGES), K.constant(KERNEL_2), dilation_rate=(1, 2)),
        K.conv3d(K.constant(VOLUMES), K.constant(KERNEL_3), padding="same"),
        K.conv2d_transpose(
            K.constant(IMAGES), K.constant(KERNEL_2[:, :, :, :2]), (1, 7, 7, 2), (1, 1), "valid"
        ),
        K.depthwise_conv2d(K.constant(IMAGES), K.constant(DEPTHWISE), padding="same"),
        K.separable_conv2d(K.constant(IMAGES), K.constant(DEPTHWISE), K.constant(POINTWISE)),
    ],
    "pooling": lambda K: [
        K.pool2d(K.constant(IMAGES), (2, 2)),
        K.pool2d(K.constant(IMAGES), (2, 3), (2, 2), "same", pool_mode="avg"),
        K.pool3d(K.constant(VOLUMES), (2, 2, 2), (2, 2, 1), pool_mode="max"),
        K.pool3d(K.constant(VOLUMES), (2, 2, 2), (2, 2, 1), "same", pool_mode="avg"),
    ],
    "local": lambda K: [
        K.local_conv1d(K.constant(STEPS), K.constant(LOCAL_1), (2,), (2,)),
        K.local_conv2d(K.constant(IMAGES[:, :4, :4]), K.constant(LOCAL_2), (2, 2), (1, 2), (3, 2)),
        K.local_conv2d(
            K.constant(IMAGES[:, :4, :4].transpose(0, 3, 1, 2).copy()),
            *(K.constant(LOCAL_2), (2, 2), (1, 2), (3, 2), "channels_first"),
        ),
    ],
    "normalization": lambda K: [
        K.batch_normalization(
            *(K.constant(C), K.constant(C[0]), K.constant(POSITIVE[0])),
            *(K.constant(C[1]), K.constant(POSITIVE[1])),
        ),
        K.batch_normalization(
            *(K.constant(A), K.constant(W[0]), K.constant(W[1] ** 2), None, None),
            epsilon=0.1,
        ),
        *_batch(K),
    ],
    "bias_add": lambda K: [
        K.bias_add(K.constant(C), K.constant(C[0])),
        K.bias_add(K.constant(IMAGES), K.constant(C[0, :2])),
        K.bias_add(K.constant(IMAGES), K.constant(IMAGES[0])),
        K.bias_add(K.constant(A), K.constant(C[0]), "channels_first"),
    ],
    "losses": lambda K: [
        K.binary_crossentropy(K.constant(BITS), K.constant(SHARES)),
        K.binary_crossentropy(K.constant(BITS), K.constant(C), from_logits=True),
        K.binary_crossentropy(K.constant(BITS), K.sigmoid(K.constant(20 * C))),
        K.categorical_crossentropy(K.constant(BITS), K.constant(SHARES)),
        K.categorical_crossentropy(K.constant(BITS), K.constant(C), from_logits=True),
        K.sparse_categorical_crossentropy(np.array([1, 2]), K.constant(SHARES)),
        K.sparse_categorical_crossentropy(np.array([1, 2]), K.constant(C), from_logits=True),
        K.binary_focal_crossentropy(K.constant(BITS), K.constant(SHARES)),
        K.categorical_focal_crossentropy(K.constant(BITS), K.constant(SHARES)),
    ],
    "choices": lambda K: [
        K.switch(K.constant(1.0) > 0, K.constant(C), K.constant(-C)),
        K.switch(K.constant(C) > 0, K.constant(C), K.constant(-C)),
        K.switch(K.constant(C[:, :1]) > 0, K.constant(C), K.constant(-C)),
        K.in_train_phase(K.constant(C), K.constant(-C), training=True),
        K.in_train_phase(lambda: K.constant(C), K.constant(-C), training=0),
        K.in_test_phase(K.constant(C), K.constant(-C), training=True),
        K.in_top_k(K.constant(SHARES), np.array([0, 1]), 2),
    ],
    "loops": lambda K: [
        K.map_fn(lambda row: row * 2, K.constant(C)),
        K.foldl(lambda total, row: total + row, K.constant(C)),
        K.foldr(lambda total, row: total * row, K.constant(C)),
    ],
    "rnn": lambda K: _loop(K),
    "rnn backwards": lambda K: _loop(K, go_backwards=True),
    "rnn unrolled": lambda K: _loop(K, unroll=True),
    "rnn with a mask": lambda K: _loop(K, mask=K.cast(K.constant(MASK.astype("f")), "bool")),
    "rnn with a mask, zeros": lambda K: _loop(
        K, mask=K.cast(K.constant(MASK.astype("f")), "bool"), zero_output_for_mask=True
    ),
    "rnn, the last output": lambda K: _loop(K, return_all_outputs=False),
    "ctc": lambda K: [
        K.ctc_batch_cost(
            *(K.constant(LABELS, "int32"), K.constant(CHANCES)),
            *(np.array([[6], [5]], np.int32), np.array([[3], [1]], np.int32)),
        ),
        *K.ctc_decode(K.constant(CHANCES), np.array([6, 5], np.int32))[0],
        K.ctc_decode(K.constant(CHANCES), np.array([6, 5], np.int32))[1],
    ],
    "ctc beams": lambda K: [
        part
        for parts in K.ctc_decode(
            *(K.constant(CHANCES), np.array([6, 5], np.int32)),
            greedy=False,
            beam_width=8,
            top_paths=2,
        )
        for part in (parts if isinstance(parts, (list, tuple)) else [parts])
    ],
}


def _facts(K: Any) -> dict[str, Any]:
    x = K.placeholder((None, 3))
    v = K.variable(C, name="weights_of_something")
    return {
        "int_shape": list(K.int_shape(x)),
        "int_shape of a constant": list(K.int_shape(K.constant(A))),
        "ndim": K.ndim(x),
        "ndim of ndim": K.ndim(K.placeholder(ndim=4)),
        "dtype": K.dtype(x),
        "dtype of a variable of ints": K.dtype(K.variable(np.array([1, 2]))),
        "dtype of zeros": K.dtype(K.zeros((2,), "float64")),
        "count_params": int(K.count_params(v)),
        "epsilon": K.epsilon(),
        "floatx": K.floatx(),
        "image_data_format": K.image_data_format(),
        "cast_to_floatx": str(K.cast_to_floatx(np.array([1.0])).dtype),
        "is_sparse": bool(K.is_sparse(x)),
        "backend": K.backend(),
        "shape of batch_dot": list(K.int_shape(K.batch_dot(K.placeholder((None, 3, 4)), B))),
    }


FACTS = _facts
