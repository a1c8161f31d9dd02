"""Premade estimators with every kind of column, exported for both ways to feed a model.

`write_exports.py` exports each case with this package, `make_exports.py` loads the files in
TensorFlow and records what it predicts with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

VOCABULARY = ("animals.txt", b"cat\ndog\nowl\n")
RECEIVERS = ("parsing", "raw", "supervised")
"""Serialized `Example`s, features as they are, and these with labels, to train and evaluate."""
Columns = Callable[[Any], list[Any]]

FEATURES: dict[str, Any] = {
    "x": np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 3.0], [1.5, 1.0]], np.float32),
    "age": np.array([[17.0], [25.0], [40.0], [63.5]], np.float32),
    "word": np.array([[b"cat"], [b"horse"], [b"owl"], [b"\xc3\xa9"]], object),
    "words": np.array([[b"dog", b"cat"], [b"cat", b""], [b"", b""], [b"emu", b"owl"]], object),
    "number": np.array([[3], [0], [7], [2]], np.int64),
    "numbers": np.array([[3, 1], [-1, -1], [7, -1], [2, 2]], np.int64),
    "weights": np.array([[0.5, 2.0], [1.0, 0.0], [0.0, 0.0], [-1.0, 0.25]], np.float32),
}
FEATURES |= {
    **dict.fromkeys(("tags", "texts"), FEATURES["words"]),
    **dict.fromkeys(("counts", "places"), FEATURES["numbers"]),
}
"""Four examples; '' and -1 fill up the rows of what an example has any number of."""

SEQUENCES: dict[str, Any] = {
    "x": FEATURES["x"],
    **dict.fromkeys(
        ("tokens", "tags", "texts"),
        np.array([[b"cat", b"dog", b"owl"], [b"emu", b"", b""]] * 2, object),
    ),
    "places": np.array([[1, 0, 2], [2, -1, -1]] * 2, np.int64),
    "steps": np.array([[1.0, 2.0, -0.5], [0.5, 0.0, 0.0]] * 2, np.float32),
}
_LENGTHS = {"steps": "tokens", "weights": "words"}
"""Features that have as many values as another."""


def values_of(features: dict[str, Any], key: str, row: int) -> list[Any]:
    """The values that an example has."""
    by = features[_LENGTHS.get(key, key)][row]
    missing = b"" if by.dtype == object else -1
    is_float = by.dtype.kind == "f"
    pairs = zip(features[key][row], by, strict=True)
    return [each for each, given in pairs if is_float or given != missing]


def serialized(tf: Any, features: dict[str, Any]) -> list[bytes]:
    """The examples as `Example` protos."""
    kinds = {"O": "bytes_list", "i": "int64_list", "f": "float_list"}
    made = []
    for row in range(4):
        example = tf.train.Example()
        for key, values in features.items():
            feature = example.features.feature[key]
            held = getattr(feature, kinds[values.dtype.kind]).value
            held.extend(values_of(features, key, row))
        made.append(example.SerializeToString(deterministic=True))
    return made


# -- columns


def _words(tf: Any, key: str = "words", **more: Any) -> Any:
    column = tf.feature_column.categorical_column_with_vocabulary_list
    return column(key, ["cat", "dog"], **more)


def _buckets(tf: Any, key: str, size: int) -> Any:
    numbers = tf.feature_column.numeric_column(key, [size])
    return tf.feature_column.bucketized_column(numbers, [0.0, 20.0, 50.0])


def _categorical(kind: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    names = {"vocabulary": "vocabulary_list", "hashed": "hash_bucket", "file": "vocabulary_file"}
    name = f"categorical_column_with_{names.get(kind, kind)}"
    return lambda tf: getattr(tf.feature_column, name)(*args, **kwargs)


def _crossed(size: int, *keys: Any, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda tf: tf.feature_column.crossed_column(
        [key(tf) if callable(key) else key for key in keys], size, **kwargs
    )


CATEGORICAL: dict[str, Callable[[Any], Any]] = {
    "vocabulary": _words,
    "vocabulary_buckets": _categorical("vocabulary", "word", ["cat", "ox"], num_oov_buckets=3),
    "vocabulary_of_ints": _categorical("vocabulary", "counts", [1, 3, 7], default_value=1),
    "vocabulary_file": _categorical("file", "texts", VOCABULARY[0], num_oov_buckets=2),
    "hashed": _categorical("hashed", "tags", 5),
    "hashed_ints": lambda tf: tf.feature_column.categorical_column_with_hash_bucket(
        "numbers", 7, tf.int64
    ),
    "identity": _categorical("identity", "places", 8),
    "identity_default": _categorical("identity", "number", 4, default_value=1),
    "bucketized": lambda tf: _buckets(tf, "age", 1),
    "bucketized_pairs": lambda tf: _buckets(tf, "x", 2),
    "crossed": _crossed(11, "word", "words"),
    "crossed_columns": _crossed(
        13, "word", _words, lambda tf: _buckets(tf, "x", 2), "tags", hash_key=42
    ),
    "crossed_ids": _crossed(
        *(9, _categorical("identity", "number", 4, 1), _categorical("identity", "places", 8)),
        lambda tf: _buckets(tf, "age", 1),
    ),
    "weighted": lambda tf: tf.feature_column.weighted_categorical_column(_words(tf), "weights"),
}


def wide(tf: Any) -> list[Any]:
    """All categorical columns."""
    return [make(tf) for make in CATEGORICAL.values()]


def numeric(tf: Any) -> list[Any]:
    """Numbers."""
    fc = tf.feature_column
    return [fc.numeric_column("x", [2], normalizer_fn=_normalized), fc.numeric_column("age")]


def _normalized(x: Any) -> Any:
    return (x - 1.0) / 2.0


def shared(tf: Any) -> list[Any]:
    """Embeddings that share a table."""
    columns = [_words(tf), _words(tf, "word")]
    return list(tf.feature_column.shared_embeddings(columns, 2, max_norm=0.5))


def _embedded(*kinds: str) -> Columns:
    """Indicators and embeddings of categorical columns."""

    def columns(tf: Any) -> list[Any]:
        fc, made = tf.feature_column, [CATEGORICAL[kind](tf) for kind in kinds]
        embeddings = [fc.embedding_column(each, 2, combiner="sqrtn") for each in made]
        return [*map(fc.indicator_column, made), *embeddings]

    return columns


def deep(tf: Any) -> list[Any]:
    """Dense columns of each kind."""
    embedding = tf.feature_column.embedding_column
    embedded = [embedding(each, 2, combiner="sqrtn") for each in wide(tf)]
    return [*embedded, *_embedded("crossed_columns", "hashed")(tf)[:2], *numeric(tf), *shared(tf)]


def sequences(tf: Any) -> list[Any]:
    """Columns of sequences of each kind."""
    fc = tf.feature_column
    words = fc.sequence_categorical_column_with_vocabulary_list("tokens", ["cat", "owl"], None, -1)
    hashed = fc.sequence_categorical_column_with_hash_bucket("tags", 3)
    file = fc.sequence_categorical_column_with_vocabulary_file("texts", VOCABULARY[0])
    places = fc.sequence_categorical_column_with_identity("places", 3)
    return [
        fc.indicator_column(words),
        fc.embedding_column(hashed, 2),
        fc.embedding_column(file, 2),
        fc.embedding_column(places, 1),
    ]


def sequences_of_numbers(tf: Any) -> list[Any]:
    """The same, and numbers, which only `Example`s can give."""
    return [*sequences(tf), tf.feature_column.sequence_numeric_column("steps")]


# -- cases


class Case(NamedTuple):
    """An estimator: its name below `tf.estimator`, its arguments, its labels and features."""

    estimator: str
    arguments: Callable[[Any], dict[str, Any]]
    labels: Any
    features: dict[str, Any] = FEATURES
    receivers: tuple[str, ...] = RECEIVERS

    def build(self, tf: Any, model_dir: str) -> Any:
        """The estimator."""
        made = tf.estimator
        for part in self.estimator.split("."):
            made = getattr(made, part)
        config = tf.estimator.RunConfig(tf_random_seed=1, log_step_count_steps=None)
        return made(model_dir=model_dir, config=config, **self.arguments(tf))

    def columns(self, tf: Any) -> list[Any]:
        """All columns of the arguments."""
        found = []
        for key, value in self.arguments(tf).items():
            if key.endswith("_columns"):
                found += value
        return found


NUMBERS = np.array([[0.5], [-1.0], [2.0], [0.0]], np.float32)
CLASSES = np.array([[0], [2], [1], [2]], np.int64)
NAMES = np.array([[b"u"], [b"w"], [b"v"], [b"w"]], object)
SEVERAL = np.array([[0, 1], [1, 1], [0, 0], [1, 0]], np.int64)


def _linear(columns: Columns, **more: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda tf: {"feature_columns": columns(tf), **_of(tf, more)}


def _dnn(columns: Columns, **more: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda tf: {"feature_columns": columns(tf), "hidden_units": [3], **_of(tf, more)}


def _both(**more: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda tf: {
        "linear_feature_columns": wide(tf),
        "dnn_feature_columns": deep(tf),
        "dnn_hidden_units": [3],
        **_of(tf, more),
    }


def _rnn(columns: Columns, **more: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda tf: {
        "sequence_feature_columns": columns(tf),
        "context_feature_columns": [tf.feature_column.numeric_column("x", [2])],
        "optimizer": "Adam",
        **_of(tf, more),
    }


def _of(tf: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: each(tf) if callable(each) else each for key, each in arguments.items()}


def _alone(kind: str) -> Columns:
    return lambda tf: [CATEGORICAL[kind](tf)]


_NAMED = {"n_classes": 3, "label_vocabulary": ["u", "v", "w"]}


def _binary(tf: Any) -> Any:
    return tf.estimator.BinaryClassHead()


def _multi_label(tf: Any) -> Any:
    return tf.estimator.MultiLabelHead(2, label_vocabulary=["p", "q"])


def _multi_head(tf: Any) -> Any:
    e = tf.estimator
    return e.MultiHead([e.MultiClassHead(3, name="a"), e.RegressionHead(name="b")])


def _poisson(tf: Any) -> Any:
    return tf.estimator.PoissonRegressionHead()


_SERVED = (FEATURES, RECEIVERS[:2])

CASES: dict[str, Case] = {
    **{
        f"linear_{kind}": Case("LinearRegressor", _linear(_alone(kind)), NUMBERS, *_SERVED)
        for kind in CATEGORICAL
    },
    **{
        f"dnn_{kind}": Case("DNNRegressor", _dnn(_embedded(kind)), NUMBERS, *_SERVED)
        for kind in CATEGORICAL
    },
    "dnn_numeric": Case("DNNRegressor", _dnn(numeric), NUMBERS),
    "dnn_shared": Case("DNNRegressor", _dnn(shared), NUMBERS),
    "linear_classifier": Case(
        "LinearClassifier", _linear(wide, sparse_combiner="mean", **_NAMED), NAMES
    ),
    "linear_regressor": Case("LinearRegressor", _linear(wide, label_dimension=2), SEVERAL / 2.0),
    "linear_estimator": Case("LinearEstimator", _linear(wide, head=_poisson), NUMBERS**2),
    "dnn_classifier": Case("DNNClassifier", _dnn(deep, batch_norm=True), CLASSES % 2),
    "dnn_regressor": Case("DNNRegressor", _dnn(deep), NUMBERS),
    "dnn_estimator": Case("DNNEstimator", _dnn(deep, head=_multi_label), SEVERAL),
    "dnn_estimator_heads": Case(
        "DNNEstimator", _dnn(numeric, head=_multi_head), {"a": CLASSES, "b": NUMBERS}
    ),
    "combined_classifier": Case("DNNLinearCombinedClassifier", _both(n_classes=3), CLASSES),
    "combined_regressor": Case("DNNLinearCombinedRegressor", _both(), NUMBERS),
    "combined_estimator": Case("DNNLinearCombinedEstimator", _both(head=_binary), CLASSES % 2),
    "baseline_classifier": Case("BaselineClassifier", lambda tf: dict(_NAMED), NAMES),
    "baseline_regressor": Case("BaselineRegressor", lambda tf: {}, NUMBERS),
    "baseline_estimator": Case("BaselineEstimator", lambda tf: {"head": _binary(tf)}, CLASSES % 2),
    "kmeans": Case(
        "experimental.KMeans",
        lambda tf: {"num_clusters": 2, "feature_columns": numeric(tf)},
        None,
        *_SERVED,
    ),
    "rnn_classifier": Case(
        "experimental.RNNClassifier",
        _rnn(sequences, units=[3], cell_type="lstm", **_NAMED),
        NAMES,
        SEQUENCES,
    ),
    "rnn_classifier_simple": Case(
        "experimental.RNNClassifier",
        _rnn(sequences_of_numbers, units=[2, 3]),
        CLASSES % 2,
        SEQUENCES,
        RECEIVERS[:1],
    ),
    "rnn_estimator": Case(
        "experimental.RNNEstimator",
        _rnn(sequences, head=_poisson, units=[3], cell_type="gru"),
        NUMBERS**2,
        SEQUENCES,
    ),
}


def feature_spec(tf: Any, case: Case) -> dict[str, Any]:
    """How `Example`s are parsed for a case."""
    spec: dict[str, Any] = tf.feature_column.make_parse_example_spec(case.columns(tf))
    return spec or {"x": tf.io.FixedLenFeature([2], tf.float32)}


def receiver_of(tf: Any, case: Case, receiver: str) -> Any:
    """The function that makes a case's receiver; '' and -1 fill up what is fed as it is."""
    spec = feature_spec(tf, case)
    export = tf.estimator.export
    if receiver == "parsing":
        return export.build_parsing_serving_input_receiver_fn(spec)
    features = {key: _spec(tf, key, case.features[key]) for key in sorted(spec)}
    if receiver == "raw":
        return export.build_raw_serving_input_receiver_fn(features)
    several = isinstance(case.labels, dict)
    labels = {"label": case.labels} if not several else case.labels
    made = {key: _spec(tf, key, each, each.shape[1]) for key, each in labels.items()}
    return tf.estimator.experimental.build_raw_supervised_input_receiver_fn(
        features, made if several else made["label"]
    )


def _spec(tf: Any, key: str, values: Any, width: int | None = None) -> Any:
    width = values.shape[1] if key in ("x", "age", "word", "number") else width
    dtype = {"O": tf.string, "i": tf.int64, "f": tf.float32}[values.dtype.kind]
    return tf.TensorSpec([None, width], dtype, key)


def request_of(tf: Any, case: Case, receiver: str) -> dict[str, Any]:
    """What is fed, by the names of inputs."""
    if receiver == "parsing":
        return {"examples": np.array(serialized(tf, case.features), object)}
    request = {key: case.features[key] for key in sorted(feature_spec(tf, case))}
    if receiver == "supervised":
        request |= case.labels if isinstance(case.labels, dict) else {"label": case.labels}
    return request


def signature_of(signatures: Any) -> str:
    """The key of the signature that gives all predictions."""
    return "predict" if "predict" in signatures else "serving_default"


def answer(tf: Any, request: dict[str, Any], receiver: str, folder: str) -> dict[str, Any]:
    """What an export computes, by the loader of TensorFlow 1, whose module `tf` is.

    Predictions; or the loss of the graph that trains, and the metrics of the one that evaluates.
    """
    if receiver != "supervised":
        return _run(tf, folder, "serve", request)
    trained = _run(tf, folder, "train", request)
    return {**_run(tf, folder, "eval", request), "train_loss": trained["loss"]}


def _run(tf: Any, folder: str, tag: str, request: dict[str, Any]) -> dict[str, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, [tag], folder)
        signatures = loaded.signature_def
        signature = signatures[signature_of(signatures) if tag == "serve" else tag]
        feeds = {signature.inputs[key].name: request[key] for key in signature.inputs}
        names = {key: info.name for key, info in signature.outputs.items()}
        updates = [name for key, name in names.items() if key.endswith("/update_op")]
        rest = {key: name for key, name in names.items() if name not in updates}
        session.run(updates, feeds)
        found: dict[str, Any] = session.run(rest, feeds)
        return found
