"""The workloads of `benchmarks/gpu.py`: networks, sizes, and estimatorkit's side of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.criteo_tables_program import DIMENSION, SIZES


@dataclass(frozen=True)
class Workload:
    """A network to train.

    Attributes:
        name: the name.
        kind: 'resnet', 'transformer', 'cnn', 'iris', 'wide_deep' or 'criteo'.
        dtype: of products and convolutions; variables are float32.
        batch: examples a step.
        size: pixels of an edge, symbols of a text, or what divides the rows of tables.
        layers: of a Transformer.
        width: of its vectors.
        steps: in each of the runs that are timed.
    """

    name: str
    kind: str
    dtype: str
    batch: int
    size: int
    steps: int
    layers: int = 6
    width: int = 512

    @property
    def operations(self) -> float:
        """Floating-point operations of products and convolutions in a step; 0 if not counted."""
        if self.kind == "resnet":  # 4.09e9 multiplications a picture, forward
            return 3 * 2 * 4.09e9 * (self.size / 224) ** 2 * self.batch
        if self.kind == "transformer":
            symbols = self.batch * self.size
            weights = 12 * self.layers * self.width**2 + VOCABULARY * self.width
            return 6 * weights * symbols + 12 * self.layers * self.size * self.width * symbols
        return 0.0

    def quick(self) -> Workload:
        """A version of few steps that takes a CPU seconds."""
        small = {"resnet": 32, "transformer": 8, "criteo": 1000}.get(self.kind, self.size)
        batch = min(self.batch, 4 if self.kind == "resnet" else 32)
        return replace(self, batch=batch, size=small, steps=2, layers=1, width=64)

    def estimator(self, tf: Any, config: Any) -> tuple[Any, Callable[[], Any]]:
        """An Estimator and its `input_fn`."""
        return _ESTIMATORS[self.kind](self, tf, config)


VOCABULARY, HEADS, CLASSES = 8192, 8, 1000


def _kept(tf: Any, name: str, values: np.ndarray[Any, Any]) -> Any:
    """A batch that stays on the device, as the synthetic data of TensorFlow's own benchmarks."""
    return tf.get_variable(
        name,
        initializer=values,
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
    )


def _estimator(
    tf: Any, config: Any, workload: Workload, loss_of: Callable[[Any, Any], Any], optimizer: Any
) -> Any:
    def as_float32(getter: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
        """Keeps variables in float32 where a layer computes in 16 bits, as TensorFlow's models."""
        variable = getter(*args, dtype=tf.float32, **options)
        return variable if dtype in (None, tf.float32) else tf.cast(variable, dtype)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with tf.variable_scope("model", custom_getter=as_float32):
            loss = loss_of(features, labels)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = optimizer().minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    return tf.estimator.Estimator(model_fn, config=config)


def _resnet(workload: Workload, tf: Any, config: Any) -> Any:
    def convolve(x: Any, filters: int, size: int, stride: int = 1) -> Any:
        x = tf.layers.conv2d(x, filters, size, stride, padding="same", use_bias=False)
        return tf.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=True)

    def block(x: Any, filters: int, stride: int) -> Any:
        y = tf.nn.relu(convolve(x, filters, 1))
        y = tf.nn.relu(convolve(y, filters, 3, stride))
        y = convolve(y, 4 * filters, 1)
        if x.shape[-1] != y.shape[-1]:
            x = convolve(x, 4 * filters, 1, stride)
        return tf.nn.relu(x + y)

    def loss_of(images: Any, labels: Any) -> Any:
        images = tf.cast(
            images, workload.dtype
        )  # layers of version 1 compute in their inputs' type
        x = tf.nn.relu(convolve(images, 64, 7, 2))
        x = tf.layers.max_pooling2d(x, 3, 2, padding="same")
        for filters, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for number in range(count):
                x = block(x, filters, 1 if number else stride)
        logits = tf.cast(tf.layers.dense(tf.reduce_mean(x, [1, 2]), CLASSES), tf.float32)
        return tf.losses.sparse_softmax_cross_entropy(labels, logits)

    def input_fn() -> Any:
        random = np.random.default_rng(1)
        shape = (workload.batch, workload.size, workload.size, 3)
        images = _kept(tf, "images", random.normal(size=shape).astype(np.float32))
        labels = _kept(tf, "labels", random.integers(0, CLASSES, workload.batch, np.int32))
        return images.read_value(), labels.read_value()

    def optimizer() -> Any:
        return tf.train.MomentumOptimizer(0.01, 0.9)

    return _estimator(tf, config, workload, loss_of, optimizer), input_fn


def _transformer(workload: Workload, tf: Any, config: Any) -> Any:
    width, length = workload.width, workload.size
    dtype = tf.as_dtype(workload.dtype)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + tf.erf(x * 2**-0.5))

    def norm(x: Any) -> Any:
        return tf.cast(tf.keras.layers.LayerNormalization(dtype="float32")(x), dtype)

    def heads(x: Any) -> Any:
        return tf.transpose(tf.reshape(x, [-1, length, HEADS, width // HEADS]), [0, 2, 1, 3])

    def attention(x: Any, mask: Any) -> Any:
        queries, keys, values = map(heads, tf.split(tf.layers.dense(x, 3 * width), 3, axis=2))
        scores = tf.matmul(queries, keys, transpose_b=True) * (width // HEADS) ** -0.5
        weights = tf.nn.softmax(tf.cast(scores, tf.float32) + mask)
        found = tf.transpose(tf.matmul(tf.cast(weights, dtype), values), [0, 2, 1, 3])
        return tf.layers.dense(tf.reshape(found, [-1, length, width]), width)

    def loss_of(symbols: Any, labels: Any) -> Any:
        stddev = tf.random_normal_initializer(0, 0.02)
        table = tf.get_variable("table", [VOCABULARY, width], initializer=stddev)
        places = tf.get_variable("places", [length, width], initializer=stddev)
        mask = tf.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
        x = tf.cast(tf.nn.embedding_lookup(table, symbols) + places, dtype)
        for _ in range(workload.layers):
            x += attention(norm(x), mask)
            x += tf.layers.dense(tf.layers.dense(norm(x), 4 * width, gelu), width)
        x = tf.reshape(norm(x), [-1, width])
        logits = tf.matmul(x, tf.cast(table, dtype), transpose_b=True)
        return tf.losses.sparse_softmax_cross_entropy(
            tf.reshape(labels, [-1]), tf.cast(logits, tf.float32)
        )

    def input_fn() -> Any:
        random = np.random.default_rng(1)
        drawn = random.integers(0, VOCABULARY, (workload.batch, length + 1), np.int32)
        symbols, labels = _kept(tf, "symbols", drawn[:, :-1]), _kept(tf, "labels", drawn[:, 1:])
        return symbols.read_value(), labels.read_value()

    def optimizer() -> Any:
        return tf.train.AdamOptimizer(1e-4)

    return _estimator(tf, config, workload, loss_of, optimizer), input_fn


def pictures() -> tuple[Any, Any]:
    """10,000 pictures of 28 x 28 pixels, and their classes."""
    random = np.random.default_rng(2)
    return random.random((10_000, 28, 28, 1), np.float32), random.integers(0, 10, 10_000)


def _cnn(workload: Workload, tf: Any, config: Any) -> Any:
    def loss_of(x: Any, labels: Any) -> Any:
        for filters in (32, 64):
            x = tf.layers.conv2d(x, filters, 5, padding="same", activation=tf.nn.relu)
            x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.dense(tf.layers.flatten(x), 1024, tf.nn.relu)
        return tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(x, 10))

    def input_fn() -> Any:
        data = tf.data.Dataset.from_tensor_slices(pictures())
        return data.shuffle(10_000).repeat().batch(workload.batch)

    def optimizer() -> Any:
        return tf.train.AdamOptimizer(1e-4)

    return _estimator(tf, config, workload, loss_of, optimizer), input_fn


def iris() -> tuple[Any, Any]:
    """120 rows of 4 numbers, and their classes."""
    random = np.random.default_rng(3)
    labels = random.integers(0, 3, 120)
    return (random.normal(size=(120, 4)) + labels[:, None]).astype(np.float32), labels


def _iris(workload: Workload, tf: Any, config: Any) -> Any:
    column = tf.feature_column.numeric_column("x", [4])
    model = tf.estimator.DNNClassifier([10, 10], [column], n_classes=3, config=config)

    def input_fn() -> Any:
        rows, labels = iris()
        data = tf.data.Dataset.from_tensor_slices(({"x": rows}, labels))
        return data.shuffle(1000).repeat().batch(workload.batch)

    return model, input_fn


BUCKETS, CATEGORIES, NUMBERS, HIDDEN = 1000, 8, 5, (100, 75, 50, 25)


def table() -> tuple[Any, Any, Any]:
    """30,000 rows: ids of 8 categories, 5 numbers, and labels."""
    random = np.random.default_rng(4)
    ids = random.integers(0, BUCKETS, (30_000, CATEGORIES))
    return ids, random.normal(size=(30_000, NUMBERS)).astype(np.float32), ids[:, 0] % 2


def _wide_deep(workload: Workload, tf: Any, config: Any) -> Any:
    columns = tf.feature_column
    ids = [
        columns.categorical_column_with_identity(f"C{number}", BUCKETS)
        for number in range(CATEGORIES)
    ]
    deep = [columns.embedding_column(each, 8) for each in ids]
    model = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=ids,
        dnn_feature_columns=[*deep, columns.numeric_column("x", [NUMBERS])],
        dnn_hidden_units=list(HIDDEN),
        config=config,
    )

    def input_fn() -> Any:
        values, numbers, labels = table()
        features = {f"C{number}": values[:, number] for number in range(CATEGORIES)}
        data = tf.data.Dataset.from_tensor_slices(({**features, "x": numbers}, labels))
        return data.shuffle(30_000).repeat().batch(workload.batch)

    return model, input_fn


def clicks(workload: Workload) -> tuple[Any, Any, Any]:
    """50 batches in the shape of Criteo's: ids of 26 tables (log-uniform), 13 numbers, labels."""
    random = np.random.default_rng(0)
    count = 50 * workload.batch
    rows = [max(2, size // workload.size) for size in SIZES]
    ids = [
        np.minimum(np.exp(random.random(count) * np.log(size + 1)) - 1, size - 1).astype(np.int64)
        for size in rows
    ]
    numbers = random.normal(size=(count, 13)).astype(np.float32)
    return np.stack(ids, 1), numbers, random.integers(0, 2, count)


def _criteo(workload: Workload, tf: Any, config: Any) -> Any:
    columns = tf.feature_column
    tables = [
        columns.embedding_column(
            columns.categorical_column_with_identity(f"C{number}", max(2, size // workload.size)),
            DIMENSION,
        )
        for number, size in enumerate(SIZES)
    ]
    model = tf.estimator.DNNClassifier(
        [256, 128], [*tables, columns.numeric_column("x", [13])], config=config
    )

    def input_fn() -> Any:
        ids, numbers, labels = clicks(workload)
        features = {f"C{number}": ids[:, number] for number in range(len(SIZES))}
        data = tf.data.Dataset.from_tensor_slices(({**features, "x": numbers}, labels))
        return data.repeat().batch(workload.batch)

    return model, input_fn


_ESTIMATORS: dict[str, Callable[[Workload, Any, Any], Any]] = {
    "resnet": _resnet,
    "transformer": _transformer,
    "cnn": _cnn,
    "iris": _iris,
    "wide_deep": _wide_deep,
    "criteo": _criteo,
}

WORKLOADS = {
    each.name: each
    for each in (
        Workload("iris", "iris", "float32", 32, 4, 5000),
        Workload("mnist_cnn", "cnn", "float32", 128, 28, 500),
        Workload("wide_deep", "wide_deep", "float32", 256, 0, 2000),
        Workload("criteo", "criteo", "float32", 2048, 1, 200),
        Workload("transformer_float32", "transformer", "float32", 64, 256, 40),
        Workload("transformer_bfloat16", "transformer", "bfloat16", 64, 256, 80),
        Workload("resnet50_float32", "resnet", "float32", 128, 224, 20),
        Workload("resnet50_bfloat16", "resnet", "bfloat16", 128, 224, 40),
    )
}
