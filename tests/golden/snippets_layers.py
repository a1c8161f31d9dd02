"""Programs with `tf.layers`: `make_variables.py` runs them on TensorFlow, tests on this package.

Each is a function of the module that stands for `tf` (`tf.compat.v1`, without its version 2
behaviour). It runs in a fresh default graph. Those of `SNIPPETS` return facts by label; those of
`ERRORS` must fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# Rows that need names of TensorFlow 1.
LEGACY = {
    *("cells_called_again",),
}
SNIPPETS: dict[str, Callable[[Any], dict[str, Any]]] = {}
ERRORS: dict[str, Callable[[Any], object]] = {}


def snippet(function: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """Registers a snippet under its function's name."""
    SNIPPETS[function.__name__] = function
    return function


def mistakes(**calls: Callable[[Any], object]) -> None:
    """Registers mistakes under the names of the arguments."""
    ERRORS.update(calls)


def run_snippet(tf: Any, name: str) -> dict[str, Any]:
    """Runs a snippet in a fresh graph."""
    with tf.Graph().as_default():
        return SNIPPETS[name](tf)


def _names(items: Any) -> list[str]:
    return [each.name for each in items]


def _total(weights: Any) -> Any:
    """A regularizer, of any module's tensors."""
    return weights[0] * 0.5


@snippet
def layers_of_one_name(tf: Any) -> dict[str, Any]:
    x = tf.ones([2, 3])
    layers = [tf.layers.Dense(2, name="fc"), tf.layers.Dense(2, name="fc"), tf.layers.Dense(2)]
    layers += [tf.layers.Dense(2), tf.layers.Conv1D(2, 1)]
    facts: dict[str, Any] = {"before": _names(layers)}
    facts["outputs"] = [layer(x).name for layer in layers[:4]]
    facts["names"] = _names(layers)
    facts["scopes"] = [layer.scope_name for layer in layers[:4]]
    facts["functions"] = _names(
        [tf.layers.dense(x, 2), tf.layers.dense(x, 2, name="q"), tf.layers.dense(x, 2)]
    )
    facts["variables"] = _names(tf.global_variables())
    return facts


@snippet
def layers_called_again(tf: Any) -> dict[str, Any]:
    x = tf.ones([2, 3])
    named, plain = tf.layers.Dense(2, name="fc"), tf.layers.Dense(2)
    outputs = [named(x), named(x), plain(x), plain(x)]
    with tf.name_scope("in"):
        outputs += [plain(x), tf.layers.Dense(2)(x)]
    with tf.variable_scope("vs"):
        inside = tf.layers.Dense(3)
        outputs += [plain(x), inside(x), inside(x)]
    return {"outputs": _names(outputs), "scope": inside.scope_name}


@snippet
def layers_that_share(tf: Any) -> dict[str, Any]:
    x = tf.ones([2, 3])
    first = tf.layers.Dense(2, name="fc")
    first(x)
    outputs = [
        tf.layers.Dense(2, name="fc", _reuse=True)(x),
        tf.layers.Dense(2, _scope="fc", _reuse=True)(x),
    ]
    with tf.variable_scope("s"):
        outputs += [tf.layers.dense(x, 2, name="fc"), tf.layers.dense(x, 2, name="fc", reuse=True)]
    with tf.variable_scope("s", reuse=True):
        outputs.append(tf.layers.dense(x, 2, name="fc"))
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        outputs += [tf.layers.dense(x, 2, name="fc"), tf.layers.dense(x, 2)]
    return {"outputs": _names(outputs), "variables": _names(tf.global_variables())}


@snippet
def scopes_given_when_called(tf: Any) -> dict[str, Any]:
    x = tf.ones([2, 3])
    outputs = [tf.layers.Dense(2, name="fc")(x, scope="other")]
    with tf.variable_scope("vs") as scope:
        outputs.append(tf.layers.Dense(2, name="fc").apply(x, scope=scope))
    return {"outputs": _names(outputs), "variables": _names(tf.global_variables())}


@snippet
def scope_names_of_layers(tf: Any) -> dict[str, Any]:
    class PrivateLayer(tf.layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, inputs: Any) -> Any:
            return inputs

    x = tf.ones([5])
    facts: dict[str, Any] = {}

    def told(**options: Any) -> str:
        layer = PrivateLayer(**options)
        layer.apply(x)
        return str(layer.scope_name)

    facts["plain"] = [told(), told(), told(name="mine"), told(name="mine")]
    with tf.name_scope("names"):
        facts["name scope"] = [told(), told(name="mine"), told(name="other")]
    with tf.variable_scope("vars"):
        facts["variable scope"] = [told(), told(name="mine"), told()]
    with tf.variable_scope("vars"):
        facts["variable scope again"] = [told(), told(name="mine")]
    return facts


@snippet
def variables_before_building(tf: Any) -> dict[str, Any]:
    layer = tf.layers.Layer(name="mine")
    made = [
        layer.add_variable("v", [], initializer=tf.zeros_initializer()),
        layer.add_weight("w", [2], initializer=tf.zeros_initializer(), trainable=False),
        layer.add_variable(
            "r",
            [2],
            initializer=tf.ones_initializer(),
            synchronization=tf.VariableSynchronization.ON_READ,
        ),
        layer.add_variable("l", [2], initializer=tf.ones_initializer(), regularizer=_total),
    ]
    dense = tf.layers.Dense(2, name="d")
    dense.add_variable("more", [2, 2], initializer=tf.zeros_initializer())
    by_hand = tf.layers.Dense(2, name="by_hand")
    by_hand.build((None, 3))
    outputs = [dense(tf.ones([2, 3])), by_hand(tf.ones([2, 3]))]
    return {
        "made": _names(made),
        "trainable": _names(layer.trainable_variables),
        "variables": _names(layer.variables),
        "dense": _names(dense.variables),
        "by hand": _names(by_hand.variables),
        "outputs": _names(outputs),
        "losses": [len(layer.losses), len(tf.losses.get_regularization_losses())],
    }


@snippet
def losses_of_layers(tf: Any) -> dict[str, Any]:
    x = tf.ones([4, 3])
    ones = tf.ones_initializer()
    total = tf.reduce_sum
    plain = tf.layers.Dense(2, kernel_initializer=ones, kernel_regularizer=total, name="a")
    both = tf.layers.Dense(
        2,
        kernel_initializer=ones,
        kernel_regularizer=lambda w: 0.5 * total(w),
        activity_regularizer=total,
        name="b",
    )
    for layer in (plain, both):
        layer(x)
        layer(x)
    shared = tf.layers.Dense(2, kernel_regularizer=total, name="a", _reuse=True)
    shared(x)
    with tf.variable_scope("s", regularizer=total):
        inherited = tf.layers.Dense(2)
        inherited(x)
    layers = (plain, both, shared, inherited)
    facts: dict[str, Any] = {"collection": _names(tf.losses.get_regularization_losses())}
    facts["count"] = [len(layer.losses) for layer in layers]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        facts["values"] = [
            sorted(float(loss) for loss in session.run(layer.losses)) for layer in (plain, both)
        ]
    return facts


@snippet
def normalization_called_again(tf: Any) -> dict[str, Any]:
    x = tf.placeholder(tf.float32, [None, 4])
    layer = tf.layers.BatchNormalization(name="bn")
    reused = {"name": "bn2", "reuse": tf.AUTO_REUSE}
    outputs = [
        layer(x, training=True),
        layer(x, training=False),
        tf.layers.batch_normalization(x, training=True),
        tf.layers.batch_normalization(x, training=True, **reused),
        tf.layers.batch_normalization(x, training=True, **reused),
    ]
    return {
        "outputs": _names(outputs),
        "variables": _names(tf.global_variables()),
        "updates": [len(layer.updates), len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))],
    }


@snippet
def normalization_outside_training(tf: Any) -> dict[str, Any]:
    x = tf.placeholder(tf.float32, [None, 4])
    layer = tf.layers.BatchNormalization()
    drop = tf.layers.Dropout(0.9)
    outputs = [layer(x), layer(x, training=False), tf.layers.batch_normalization(x), drop(x)]
    counts = [len(layer.updates), len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))]
    layer(x, training=tf.placeholder_with_default(True, []))
    counts.append(len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {x: [[1.0, 2.0, 3.0, 4.0]]}
        values = [np.round(each, 2).tolist() for each in session.run(outputs, feeds)]
    return {"updates": counts, "values": values}


@snippet
def names_without_a_bias(tf: Any) -> dict[str, Any]:
    image = tf.ones([1, 4, 4, 1])
    volume = tf.ones([1, 4, 4, 4, 1])
    given = {"kernel_size": 3, "use_bias": False}
    outputs = [
        tf.layers.conv2d(image, 2, **given),
        tf.layers.conv3d(volume, 2, **given),
        tf.layers.separable_conv2d(image, 2, **given),
        tf.layers.conv2d(image, 2, 3),
        tf.layers.conv2d(image, 2, 3, activation=tf.nn.relu),
        tf.keras.layers.Conv2D(2, 3, use_bias=False)(image),
    ]
    return {"names": _names(outputs)}


@snippet
def static_shapes_of_dropout(tf: Any) -> dict[str, Any]:
    x = tf.placeholder(tf.float32, [None, 5])
    p = tf.placeholder(tf.float32)
    made = {
        "keep_prob": tf.nn.dropout(x, p),
        "rate": tf.nn.dropout(x, rate=p),
        "layer": tf.layers.dropout(x, rate=p, training=True),
        "training": tf.layers.dropout(x, 0.5, training=tf.placeholder(tf.bool)),
        "noise": tf.nn.dropout(x, 0.5, noise_shape=[1, 5]),
        "placeholder": tf.nn.dropout(x, 0.5, noise_shape=tf.placeholder(tf.int32, [2])),
    }
    return {label: tensor.shape.as_list() for label, tensor in made.items()}


@snippet
def draws_that_elements_share(tf: Any) -> dict[str, Any]:
    x = tf.ones([4, 5, 3])
    made = [
        tf.nn.dropout(x, 0.5, noise_shape=[None, 1, 3]),
        tf.nn.dropout(x, 0.5, noise_shape=tf.TensorShape([None, 1, None])),
        tf.nn.dropout(x, rate=tf.constant(0.5), noise_shape=[4, 1, 1]),
    ]
    with tf.Session() as session:
        values = session.run(made)
    return {
        "shared": [bool(np.all(value == value[:, :1])) for value in values],
        "shapes": [list(value.shape) for value in values],
        "0 or 2": [set(np.unique(value).tolist()) <= {0.0, 2.0} for value in values],
    }


@snippet
def cells_called_again(tf: Any) -> dict[str, Any]:
    x, state = tf.ones([2, 3]), tf.zeros([2, 2])
    cell = tf.nn.rnn_cell.GRUCell(2)
    outputs = [cell(x, state)[0], cell(x, state)[0]]
    with tf.name_scope("in"):
        outputs.append(cell(x, state)[0])
    with tf.variable_scope("r"):
        outputs.append(tf.nn.rnn_cell.GRUCell(2)(x, state)[0])
    with tf.variable_scope("r", reuse=True):
        outputs.append(tf.nn.rnn_cell.GRUCell(2)(x, state)[0])
    return {"outputs": _names(outputs), "variables": _names(tf.global_variables())}


def _image(tf: Any) -> Any:
    return tf.ones([1, 3, 3, 2])


mistakes(
    keep_prob_below_zero=lambda tf: tf.nn.dropout(tf.ones([4]), -1.0),
    keep_prob_above_one=lambda tf: tf.nn.dropout(tf.ones([4]), 1.1),
    keep_prob_that_is_a_list=lambda tf: tf.nn.dropout(tf.ones([4]), [0.0, 1.0]),
    keep_prob_of_another_dtype=lambda tf: tf.nn.dropout(tf.ones([4]), tf.placeholder(tf.float64)),
    keep_prob_and_rate=lambda tf: tf.nn.dropout(tf.ones([4]), 0.5, rate=0.5),
    no_keep_prob=lambda tf: tf.nn.dropout(tf.ones([4])),
    keep_prob_that_is_a_vector=lambda tf: tf.nn.dropout(tf.ones([2]), tf.constant([0.5, 0.5])),
    dropout_of_integers=lambda tf: tf.nn.dropout(tf.ones([2], tf.int32), 0.5),
    noise_of_another_length=lambda tf: tf.nn.dropout(tf.ones([4, 5]), 0.5, noise_shape=[4, 3]),
    noise_of_another_rank=lambda tf: tf.nn.dropout(tf.ones([4, 5]), 0.5, noise_shape=[4, 5, 1]),
    layer_rate_above_one=lambda tf: tf.layers.dropout(tf.ones([4]), 1.5, training=True),
    layer_rate_below_zero=lambda tf: tf.layers.dropout(tf.ones([4]), -0.5),
    dense_of_unknown_rank=lambda tf: tf.layers.dense(tf.placeholder(tf.float32), 2),
    dense_of_unknown_size=lambda tf: tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 2),
    dense_of_a_vector=lambda tf: tf.layers.dense(tf.placeholder(tf.float32, [None]), 2),
    dense_of_integers=lambda tf: tf.layers.dense(tf.ones([2, 2], tf.int32), 2),
    dense_units_below_one=lambda tf: tf.layers.dense(tf.ones([2, 2]), -1),
    dense_of_another_size=lambda tf: _twice(tf),
    unknown_argument_of_call=lambda tf: tf.layers.Dense(2)(tf.ones([2, 2]), foo=1),
    unknown_argument=lambda tf: tf.layers.Dense(2, foo=1),
    unknown_channels=lambda tf: tf.layers.conv2d(tf.placeholder(tf.float32, [2, 3, 3, None]), 2, 2),
    image_without_a_batch=lambda tf: tf.layers.conv2d(tf.ones([2, 3, 3]), 2, 2),
    window_of_three=lambda tf: tf.layers.conv2d(_image(tf), 2, (1, 2, 3)),
    window_of_none=lambda tf: tf.layers.conv2d(_image(tf), 2, None),
    window_of_zero=lambda tf: tf.layers.conv2d(_image(tf), 2, 0),
    steps_of_three=lambda tf: tf.layers.conv2d(_image(tf), 2, 2, strides=(1, 2, 3)),
    steps_of_none=lambda tf: tf.layers.conv2d(_image(tf), 2, 2, strides=None),
    steps_and_dilation=lambda tf: tf.layers.conv2d(_image(tf), 2, 2, strides=2, dilation_rate=2),
    unknown_interpolation=lambda tf: tf.keras.layers.UpSampling2D(interpolation="x"),
    unknown_data_format=lambda tf: tf.layers.conv2d(_image(tf), 2, 2, data_format="invalid"),
    filters_of_zero=lambda tf: tf.layers.conv2d(_image(tf), 0, 2),
    window_larger_than_the_image=lambda tf: tf.layers.conv1d(tf.ones([1, 2, 2]), 2, 3),
    pooling_of_a_matrix=lambda tf: tf.layers.max_pooling2d(tf.ones([5, 3]), 2, 2),
    pooling_window_of_three=lambda tf: tf.layers.max_pooling2d(_image(tf), (1, 2, 3), 2),
    pooling_steps_of_none=lambda tf: tf.layers.max_pooling2d(_image(tf), 2, "strides"),
    pooling_data_format=lambda tf: tf.layers.max_pooling2d(_image(tf), 2, 2, data_format="foo"),
    pooling_padding=lambda tf: tf.layers.max_pooling2d(_image(tf), 2, 2, padding="foo"),
    flatten_of_a_scalar=lambda tf: tf.layers.flatten(tf.ones([])),
    normalization_of_unknown_size=lambda tf: tf.layers.batch_normalization(
        tf.placeholder(tf.float32, [2, None])
    ),
    normalization_axis=lambda tf: tf.layers.batch_normalization(tf.ones([2, 2]), axis=4),
    pooling_without_strides=lambda tf: tf.layers.max_pooling2d(tf.ones([1, 4, 4, 1]), 2, None),
    pooling_layer_without_strides=lambda tf: tf.layers.AveragePooling1D(2, None),
    scope_name_before_use=lambda tf: tf.layers.Dense(2).scope_name,
    variable_shared_before_it_is_made=lambda tf: tf.layers.dense(
        tf.ones([2, 2]), 2, name="fc", reuse=True
    ),
    variable_made_twice=lambda tf: [
        tf.layers.dense(tf.ones([2, 2]), 2, name="fc") for _ in range(2)
    ],
    trainable_variable_read_together=lambda tf: tf.layers.Layer().add_variable(
        "v", [], synchronization=tf.VariableSynchronization.ON_READ, trainable=True
    ),
    input_of_another_rank=lambda tf: _expecting(tf, ndim=2)(tf.ones([2])),
    input_of_too_many_dimensions=lambda tf: _expecting(tf, max_ndim=2)(tf.ones([1, 1, 1])),
    input_of_another_size=lambda tf: _expecting(tf, axes={-1: 2})(tf.ones([2, 3])),
    input_of_another_shape=lambda tf: _expecting(tf, shape=(None, 3))(tf.ones([2, 2])),
    input_of_another_dtype=lambda tf: _expecting(tf, dtype="float32")(tf.ones([2], tf.int32)),
)


def _twice(tf: Any) -> Any:
    layer = tf.layers.Dense(2)
    layer(tf.ones([2, 2]))
    return layer(tf.ones([2, 3]))


def _expecting(tf: Any, **spec: Any) -> Any:
    layer = tf.layers.Layer()
    layer.input_spec = tf.layers.InputSpec(**spec)
    return layer
