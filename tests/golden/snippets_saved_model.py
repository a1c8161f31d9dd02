"""Models that are exported by TensorFlow and by this package, and loaded by both.

Each is a function of the module that stands for `tf`: it makes a graph and gives the inputs, the
outputs and the operation that initializes its tables, if any. `FEEDS` has what is fed to the
inputs. The vocabulary is a file of the current folder, so that no folder's name is in a model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

VOCABULARY = ("words.txt", b"emerson\nlake\npalmer\n")


class Model(NamedTuple):
    """A model's tensors by name, what initializes its tables, and what changes its state before it
    is exported.
    """

    inputs: dict[str, Any]
    outputs: dict[str, Any]
    main_op: Any = None
    step: Any = None


def _numbers(*shape: int) -> Any:
    """Numbers between -1 and 1 that are the same everywhere."""
    count = int(np.prod(shape))
    return (np.arange(count) * 37 % 101 / 50 - 1).astype(np.float32).reshape(shape)


def vocabulary(tf: Any) -> Model:
    """Words by a table of a file, an embedding, layers, and a training step beside them."""
    words = tf.placeholder(tf.string, [None], name="words")
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    file = tf.lookup.TextFileInitializer(VOCABULARY[0], tf.string, -2, tf.int64, -1)
    ids = tf.lookup.StaticHashTable(file, 3).lookup(words)
    known = tf.lookup.KeyValueTensorInitializer(["lake", "palmer"], tf.constant([5, 7], tf.int64))
    lengths = tf.lookup.StaticHashTable(known, -1).lookup(words)
    table = tf.get_variable("table", initializer=_numbers(4, 2))
    with tf.variable_scope("layer"):
        kernel = tf.get_variable("kernel", initializer=_numbers(5, 4))
        bias = tf.get_variable("bias", initializer=_numbers(4))
    rows = tf.concat([tf.nn.embedding_lookup(table, ids), x], 1)
    logits = tf.nn.bias_add(tf.matmul(rows, kernel), bias, name="logits")
    y = tf.nn.softmax(logits, name="y")
    loss = tf.reduce_mean(tf.square(y - 0.5))
    step = tf.train.get_or_create_global_step()
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step)
    outputs = {"y": y, "class": tf.argmax(logits, 1), "lengths": lengths}
    return Model({"words": words, "x": x}, outputs, tf.tables_initializer())


def examples(tf: Any) -> Model:
    """Serialized `Example`s: dense, with defaults, padded, sparse."""
    serialized = tf.placeholder(tf.string, [None], name="serialized")
    parsed = tf.parse_example(
        serialized,
        {
            "a": tf.FixedLenFeature([2], tf.float32),
            "b": tf.VarLenFeature(tf.int64),
            "c": tf.FixedLenFeature([], tf.string, default_value="none"),
            "d": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1),
        },
    )
    weights = tf.get_variable("weights", initializer=_numbers(2, 1))
    outputs = {**parsed, "score": tf.matmul(parsed["a"], weights)}
    return Model({"serialized": serialized}, outputs)


def operations(tf: Any) -> Model:
    """One operation after another."""
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    image = tf.placeholder(tf.float32, [None, 4, 4, 2], name="image")
    text = tf.placeholder(tf.string, [None], name="text")
    i = tf.cast(tf.round(x * 3.0), tf.int32)
    positive = tf.abs(x) + 0.5
    n = tf.shape(x)[0]
    positive = tf.check_numerics(positive, "it is no number")
    outputs = {
        "unary": [
            *(tf.exp(x), tf.log(positive), tf.sqrt(positive), tf.square(x), tf.tanh(x), -x),
            *(tf.sigmoid(x), tf.nn.relu(x), tf.nn.relu6(x), tf.nn.elu(x), tf.nn.selu(x)),
            *(tf.nn.softplus(x), tf.nn.softsign(x), tf.sin(x), tf.cos(x), tf.floor(x), tf.ceil(x)),
            *(tf.sign(x), tf.erf(x), tf.rsqrt(positive), tf.reciprocal(positive), tf.expm1(x)),
            *(tf.log1p(positive), tf.nn.leaky_relu(x, 0.3), tf.stop_gradient(x), tf.rint(x)),
            *(tf.atan(x), tf.lgamma(positive), tf.sinh(x), tf.identity(x)),
        ],
        "binary": [
            *(x + 1.0, x - positive, x * x, x / positive, tf.maximum(x, 0.1), tf.minimum(x, 0.1)),
            *(tf.pow(positive, x), tf.squared_difference(x, 1.0), tf.atan2(x, positive)),
            *(x // positive, x % positive, tf.div_no_nan(x, tf.nn.relu(x)), tf.add_n([x, x, x])),
            tf.clip_by_value(x, -0.5, 0.5),
        ],
        "compared": [
            tf.cast(each, tf.float32)
            for each in (
                *(x > 0.1, x >= 0.1, x < 0.1, x <= 0.1, tf.equal(i, 1), tf.not_equal(i, 1)),
                *(tf.logical_and(x > 0, x < 0.5), tf.logical_or(x > 0.5, x < 0)),
                *(tf.logical_not(x > 0), tf.logical_xor(x > 0, x > 0.5), tf.is_finite(x)),
            )
        ],
        "chosen": [tf.where(x > 0, x, -x), tf.where(x[:, 0] > 0, x, -x)],
        "softmax": [tf.nn.softmax(x), tf.nn.log_softmax(x), tf.cumsum(x, 1, exclusive=True)],
        "reduced": [
            *(tf.reduce_sum(x, 1), tf.reduce_mean(x, 1), tf.reduce_max(x, -1), tf.reduce_min(x, 1)),
            tf.reduce_prod(x, [1]),
            tf.cast(tf.reduce_any(x > 0.5, 1), tf.float32),
            tf.cast(tf.reduce_all(x > -0.5, 1), tf.float32),
            tf.cast(tf.argmax(x, 1), tf.float32),
            tf.cast(tf.argmin(x, 1), tf.float32),
        ],
        "arrays": [
            *(tf.transpose(tf.transpose(x)), tf.reshape(tf.reshape(x, [-1, 2, 2]), [-1, 4])),
            *(tf.squeeze(tf.expand_dims(x, 1), [1]), tf.reverse(x, [1])),
            tf.concat(tf.split(x, 2, 1)[::-1], 1),
            tf.concat(tf.split(x, [1, 3], 1)[::-1], 1),
            tf.stack(tf.unstack(x, axis=1)[::-1], axis=1),
            tf.tile(x[:, :1], [1, 4]),
            tf.pad(x[:, 1:3], [[0, 0], [1, 1]]),
            tf.pad(x[:, 1:3], [[0, 0], [1, 1]], constant_values=2.0),
            tf.pad(x[:, 1:3], [[0, 0], [1, 1]], "REFLECT"),
            tf.gather(x, [3, 1, 2, 0], axis=1),
            tf.one_hot(tf.argmax(x, 1), 4),
            tf.nn.top_k(x, 4).values,
            tf.fill([n, 4], 0.5) + tf.zeros_like(x) + tf.ones_like(x),
            tf.cast(tf.range(4), tf.float32) + tf.cast(tf.size(x), tf.float32) + x,
            tf.slice(x, [0, 0], [-1, 4]),
            x[:, ::-1],
            x[..., tf.newaxis][:, :, 0],
            x[:n, -4:],
        ],
        "losses": [
            tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(-x), logits=x),
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.argmin(x, 1), logits=x),
            tf.reduce_logsumexp(x, 1),
            tf.squeeze(tf.reduce_logsumexp(x, 1, keepdims=True), [1]),
            tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x * 9.0), 1),
        ],
        "rows": [
            tf.cumprod(x, 1, reverse=True),
            tf.unsorted_segment_sum(x, [1, 0], 2),
            tf.unsorted_segment_max(x, [1, 0], 2),
            tf.scatter_nd([[1], [0]], x, [2, 4]),
            tf.sparse_tensor_to_dense(tf.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [2, 4])),
        ],
        "unique": tf.unique(tf.reshape(i, [-1]))[0],
        "lengths": tf.strings.length(text),
        "gray": tf.image.grayscale_to_rgb(image[..., :1]),
        "flipped": tf.image.flip_left_right(image),
        "vectors": tf.nn.conv1d(image[:, 0], _numbers(2, 2, 3), 1, "SAME"),
        "volumes": tf.nn.conv3d(
            image[:, tf.newaxis], _numbers(1, 2, 2, 2, 1), [1, 1, 2, 2, 1], "SAME"
        ),
        "nowhere": tf.where(x > 0.5),
        "gathered": tf.gather_nd(x, [[0, 1], [1, 2]]),
        "products": tf.matmul(x, x, transpose_b=True),
        "batches": tf.matmul(image, image, transpose_a=True),
        "sums": tf.einsum("ij,kj->ik", x, x),
        "convolved": tf.nn.conv2d(image, _numbers(3, 3, 2, 3), [1, 2, 2, 1], "SAME"),
        "depthwise": tf.nn.depthwise_conv2d(image, _numbers(3, 3, 2, 2), [1, 1, 1, 1], "VALID"),
        "transposed": tf.nn.conv2d_transpose(
            image, _numbers(3, 3, 1, 2), [2, 8, 8, 1], [1, 2, 2, 1], "SAME"
        ),
        "pooled": tf.nn.max_pool(image, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        "averaged": tf.nn.avg_pool(image, [1, 3, 3, 1], [1, 2, 2, 1], "VALID"),
        "normalized": tf.nn.fused_batch_norm(
            *(image, _numbers(2), _numbers(2)),
            *(_numbers(2), np.abs(_numbers(2)) + 1),
            is_training=False,
        )[0],
        "resized": tf.image.resize_bilinear(image, [3, 4]),
        "texts": [
            *(tf.string_join([text, "!"]), tf.strings.lower(text), tf.strings.upper(text)),
            *(tf.regex_replace(text, "[0-9]", "#"), tf.string_strip(text)),
            tf.as_string(tf.string_to_hash_bucket_fast(text, 1000)),
            tf.as_string(tf.string_to_number(tf.regex_replace(text, "[^0-9]", "")), precision=2),
        ],
    }
    flat = {
        key: tf.stack(each) if isinstance(each, list) else each for key, each in outputs.items()
    }
    return Model({"x": x, "image": image, "text": text}, flat)


def images(tf: Any) -> Model:
    """Operations on images; the random ones with parameters that leave nothing to chance."""
    image = tf.placeholder(tf.float32, [None, 4, 4, 4], name="image")
    sizes = tf.constant([3, 3, 4, 2])
    outputs = {
        "groups": tf.nn.conv2d(image, _numbers(3, 3, 2, 6), [1, 1, 1, 1], "SAME"),
        "groups_of_vectors": tf.nn.conv1d(image[:, 0], _numbers(2, 2, 4), 1, "VALID"),
        "filter_gradient": tf.nn.conv2d_backprop_filter(
            image, sizes, tf.slice(image, [0, 0, 0, 0], [-1, 2, 2, 2]), [1, 1, 1, 1], "VALID"
        ),
    }
    return Model({"image": image}, outputs)


def loops(tf: Any) -> Model:
    """Loops and branches, one within the other; what they capture, constants, and variables."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    weights = tf.get_variable("weights", initializer=_numbers(3, 3))
    most = tf.reduce_max(tf.abs(x))

    def doubled_until(limit: Any) -> Any:
        return tf.while_loop(
            lambda step, value: tf.logical_and(step < 9, tf.reduce_max(value) < limit),
            lambda step, value: (
                step + 1,
                tf.cond(tf.equal(step % 2, 0), lambda: value * 2.0, lambda: value + most),
            ),
            [tf.constant(0), tf.abs(x) + 0.1],
        )

    steps, value = doubled_until(20.0)
    outputs = {
        "steps": steps,
        "value": value,
        "either": tf.cond(most > 0.5, lambda: tf.matmul(x, weights), lambda: x),
        "constant": tf.cond(most > 100.0, lambda: tf.constant(1.0), lambda: tf.constant(2.0)),
        "mapped": tf.map_fn(lambda row: tf.reduce_sum(row * weights), x),
        "pairs": tf.map_fn(lambda row: (row[0], tf.tanh(row)), x, (tf.float32, tf.float32))[1],
        "scanned": tf.scan(lambda sum_, row: sum_ * 0.5 + row, x),
        "reversed": tf.scan(lambda sum_, row: sum_ + row, x, reverse=True),
        "folded": tf.foldl(lambda sum_, row: sum_ + tf.reduce_max(row), x, tf.constant(0.0)),
        "nested": tf.map_fn(
            lambda row: tf.while_loop(
                lambda each: tf.reduce_sum(each) < 5.0, lambda each: each * 1.5, [tf.abs(row) + 0.1]
            ),
            x,
        ),
    }
    return Model({"x": x}, outputs)


def mutable_tables(tf: Any) -> Model:
    """Tables that a step fills: of numbers, of vectors, with reserved keys; a variable."""
    words = tf.placeholder(tf.string, [None], name="words")
    ids = tf.placeholder(tf.int64, [None], name="ids")
    lookup = tf.lookup.experimental
    numbers = lookup.MutableHashTable(tf.string, tf.int64, -1, name="numbers")
    vectors = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0], name="vectors")
    dense = lookup.DenseHashTable(tf.int64, tf.int64, -1, 0, -7, 4, name="dense")
    texts = lookup.DenseHashTable(tf.string, tf.float32, [0.5, 0.0], "", "$", 8, name="texts")
    scale = tf.get_variable("scale", initializer=1.5)
    keys = np.arange(3, 8)
    step = tf.group(
        numbers.insert(tf.constant(["x", "y"]), tf.constant([5, 6], tf.int64)),
        vectors.insert(tf.constant([3, 4], tf.int64), tf.constant([[1.0, 2.0], [3.0, 4.0]])),
        dense.insert(tf.constant(keys, tf.int64), tf.constant(10 * keys, tf.int64)),
        texts.insert(tf.constant(["p", "q"]), tf.constant([[1.0, 2.0], [3.0, 4.0]])),
        tf.assign_add(scale, 1.0),
    )
    outputs = {
        "numbers": numbers.lookup(words),
        "size": numbers.size(),
        "vectors": vectors.lookup(ids) * scale,
        "dense": dense.lookup(ids),
        "texts": texts.lookup(words),
    }
    return Model({"words": words, "ids": ids}, outputs, None, step)


OURS = {"loops": loops}
"""Models that are not read of TensorFlow's files."""

MODELS = {
    "vocabulary": vocabulary,
    "examples": examples,
    "operations": operations,
    "images": images,
    "mutable_tables": mutable_tables,
}

FEEDS: dict[str, dict[str, Any]] = {
    "vocabulary": {"words": ["lake", "zeppelin", "emerson"], "x": _numbers(3, 3)},
    "operations": {
        "x": _numbers(2, 4),
        "image": _numbers(2, 4, 4, 2),
        "text": [" Route 66", "Area 51 "],
    },
    "images": {"image": _numbers(2, 4, 4, 4)},
    "loops": {"x": _numbers(4, 3)},
    "mutable_tables": {"words": ["x", "p", "q", "z"], "ids": [3, 4, 7, 9]},
}


def feeds_of(tf: Any, name: str) -> dict[str, Any]:
    """What is fed to a model, by the names of its inputs."""
    if name != "examples":
        return FEEDS[name]
    return {"serialized": [_example(tf, 2.0, [1, 2, 3], b"z", 4), _example(tf, -1.0, [], None, 2)]}


def _example(tf: Any, number: float, b: list[int], c: bytes | None, d: int) -> bytes:
    train = tf.train
    feature = {
        "a": train.Feature(float_list=train.FloatList(value=[number, 1.0])),
        "b": train.Feature(int64_list=train.Int64List(value=b)),
        "d": train.Feature(int64_list=train.Int64List(value=range(d))),
    }
    if c is not None:
        feature["c"] = train.Feature(bytes_list=train.BytesList(value=[c]))
    example = train.Example(features=train.Features(feature=feature))
    data: bytes = example.SerializeToString()
    return data


def export(tf: Any, name: str, folder: str) -> Any:
    """Writes a model to a folder, and gives what it computes before."""
    with tf.Graph().as_default(), tf.Session() as session:
        model = {**MODELS, **OURS}[name](tf)
        session.run(tf.global_variables_initializer())
        if model.main_op is not None:
            session.run(model.main_op)
        if model.step is not None:
            session.run(model.step)
        feeds = {model.inputs[key]: value for key, value in feeds_of(tf, name).items()}
        found = session.run(model.outputs, feeds)
        tf.saved_model.simple_save(session, folder, model.inputs, model.outputs, model.main_op)
        return found


def predict(tf: Any, name: str, folder: str) -> Any:
    """Loads a model from a folder, and gives what it computes."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, ["serve"], folder)
        signature = loaded.signature_def["serving_default"]
        get = tf.saved_model.utils.get_tensor_from_tensor_info
        inputs = {key: get(info, graph) for key, info in signature.inputs.items()}
        outputs = {key: get(info, graph) for key, info in signature.outputs.items()}
        feeds = {inputs[key]: value for key, value in feeds_of(tf, name).items()}
        return session.run(outputs, feeds)
