"""Feature columns of every kind, through every layer, as functions of the module used as `tf`.

`CASES`: by name what makes columns of a module, what makes features, and the layers that apply
them. `run` builds one case, gives its variables values that depend on their order only, and tells
what comes out: values, variables, gradients. `big_columns`: columns whose ids of 10,000 rows are
compared by checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from golden_strings import hashed_strings

NAN = float("nan")
VOCABULARY = ("red", "größer", "数据", "blue")
WORDS = ["red", "数据", "", "none", "größer"]
NUMBERS = [0, 7, -1, 3, 100]


class Case(NamedTuple):
    """A case.

    Attributes:
        columns: `columns(tf, path of a vocabulary file)`, a list.
        features: `features(tf)`.
        layers: which of `LAYERS` apply the columns; categorical ones are wrapped by them.
    """

    columns: Callable[[Any, str], list[Any]]
    features: Callable[[Any], Mapping[str, Any]]
    layers: Sequence[str]


DENSE = ("input", "linear", "dense")
CATEGORICAL = (
    *("embedding mean", "embedding sum", "embedding sqrtn", "max_norm", "indicator", "dense"),
    *("linear sum", "linear mean", "linear sqrtn"),
)
SHORT = ("embedding mean", "indicator", "linear sum")
SEQUENCES = ("sequence",)


def sparse(tf: Any, values: Any, dtype: Any = None) -> Any:
    """`(5, 4)`: two values in the first row, none in the second, one, three, one."""
    places = [[0, 0], [0, 2], [2, 1], [3, 0], [3, 1], [3, 3], [4, 0]]
    return tf.SparseTensor(places, np.array(values, dtype), [5, 4])


def words(tf: Any) -> Any:
    """Sparse words, an empty one among them."""
    return sparse(tf, ["red", "数据", "", "none", "größer", "red", "blue"], object)


def numbers(tf: Any) -> Any:
    """Sparse integers, -1 among them."""
    return sparse(tf, [3, 0, -1, 7, 3, 2, 1], np.int64)


def column_of(values: Any) -> Any:
    """`(n, 1)`."""
    return np.array(values, object if isinstance(values[0], str) else None)[:, None]


PAIRS = np.array(
    [["red", ""], ["", ""], ["blue", "red"], ["none", "red"], ["数据", "größer"]], object
)
INT_PAIRS = np.array([[0, -1], [-1, -1], [3, 1], [7, 0], [2, 2]])


def _categorical(
    make: Callable[[Any, str], Any], full: Sequence[str], **features: Callable[[Any], Any]
) -> dict[str, Case]:
    """A column with each kind of input, through all layers where `full` names it."""
    return {
        kind: Case(lambda tf, path: [make(tf, path)], of, CATEGORICAL if kind in full else SHORT)
        for kind, of in (
            (kind, lambda tf, value=value: {"x": value(tf)}) for kind, value in features.items()
        )
    }


STRINGS: dict[str, Any] = {
    "vector": lambda tf: np.array(WORDS, object),
    "column": lambda tf: column_of(WORDS),
    "padded": lambda tf: PAIRS,
    "list": lambda tf: [[word] for word in WORDS],
    "sparse": words,
}
INTEGERS: dict[str, Any] = {
    "vector": lambda tf: np.array(NUMBERS),
    "column": lambda tf: np.array(NUMBERS, np.int32)[:, None],
    "padded": lambda tf: INT_PAIRS,
    "sparse": numbers,
}
SMALL: dict[str, Any] = {
    **INTEGERS,
    "vector": lambda tf: np.array([0, 7, -1, 3, 1]),
    "column": lambda tf: np.array([0, 7, -1, 3, 1])[:, None],
}


def _weighted(fc: Any, dtype: Any, inner: Any) -> Any:
    return fc.weighted_categorical_column(inner, "w", dtype)


def _cases() -> dict[str, Case]:
    found: dict[str, Case] = {}

    def add(
        name: str,
        make: Callable[[Any, str], Any],
        inputs: Mapping[str, Any],
        full: Sequence[str] = (),
    ) -> None:
        for kind, case in _categorical(make, full, **inputs).items():
            found[f"{name}, {kind}"] = case

    add(
        "identity",
        lambda tf, _: tf.feature_column.categorical_column_with_identity("x", 8),
        SMALL,
        ("sparse",),
    )
    add(
        "identity with default",
        lambda tf, _: tf.feature_column.categorical_column_with_identity("x", 5, 4),
        INTEGERS,
    )
    add(
        "vocabulary list",
        lambda tf, _: tf.feature_column.categorical_column_with_vocabulary_list("x", VOCABULARY),
        STRINGS,
        ("padded", "sparse"),
    )
    some = {"column": STRINGS["column"], "sparse": words}
    add(
        "vocabulary list with buckets",
        lambda tf, _: tf.feature_column.categorical_column_with_vocabulary_list(
            "x", VOCABULARY, num_oov_buckets=3
        ),
        some,
    )
    add(
        "vocabulary list with default",
        lambda tf, _: tf.feature_column.categorical_column_with_vocabulary_list(
            "x", VOCABULARY, default_value=2
        ),
        some,
    )
    add(
        "vocabulary list of integers",
        lambda tf, _: tf.feature_column.categorical_column_with_vocabulary_list(
            "x", (3, 7, 0), num_oov_buckets=2
        ),
        {"column": INTEGERS["column"], "sparse": numbers},
    )
    add(
        "vocabulary file",
        lambda tf, path: tf.feature_column.categorical_column_with_vocabulary_file("x", path),
        some,
    )
    add(
        "vocabulary file with buckets",
        lambda tf, path: tf.feature_column.categorical_column_with_vocabulary_file("x", path, 3, 2),
        some,
    )
    add(
        "hash", lambda tf, _: tf.feature_column.categorical_column_with_hash_bucket("x", 5), STRINGS
    )
    add(
        "hash of integers",
        lambda tf, _: tf.feature_column.categorical_column_with_hash_bucket("x", 5, tf.int64),
        INTEGERS,
    )
    crosses = _crosses()
    for name, (make, features) in crosses.items():
        found[f"cross of {name}"] = Case(
            lambda tf, path, make=make: [make(tf.feature_column, path)], features, SHORT
        )
    weights = np.array([[0.5, 0.0], [0.0, 0.0], [-1.0, 3.0], [0.25, 0.25], [2.0, 1.0]], np.float32)
    for name, inputs, dtype in (
        ("dense", lambda tf: {"x": INT_PAIRS, "w": weights}, np.float32),
        (
            "sparse",
            lambda tf: {
                "x": numbers(tf),
                "w": sparse(tf, [0.5, 2, 1, -1, 3, 0.25, 2], np.float32),
            },
            np.float32,
        ),
        (
            "integers",
            lambda tf: {"x": numbers(tf), "w": sparse(tf, [1, 2, 3, 4, 5, 6, 7], np.int64)},
            np.int64,
        ),
    ):
        found[f"weighted, {name}"] = Case(
            lambda tf, path, dtype=dtype: [
                _weighted(
                    tf.feature_column,
                    tf.as_dtype(dtype),
                    tf.feature_column.categorical_column_with_identity("x", 8),
                )
            ],
            inputs,
            CATEGORICAL,
        )
    found.update(_dense_cases())
    found.update(_sequence_cases())
    return found


def _crosses() -> dict[str, Any]:
    left = ["a", "b", "", "数据", "a"]
    right = ["x", "", "y", "x", "größer"]

    def ages(fc: Any) -> Any:
        return fc.bucketized_column(fc.numeric_column("age"), [10.0, 20.0, 40.0])

    def vocabulary(fc: Any) -> Any:
        return fc.categorical_column_with_vocabulary_list("w", VOCABULARY)

    both = {"x": np.array(left, object), "y": column_of(right)}
    mixed = {**both, "age": np.array([5.0, 10.0, 39.0, NAN, 99.0], np.float32)}
    return {
        "two strings": (lambda fc, _: fc.crossed_column(["x", "y"], 7), lambda tf: both),
        "two strings with a key": (
            lambda fc, _: fc.crossed_column(["y", "x"], 7, 12345),
            lambda tf: both,
        ),
        "strings and buckets": (
            lambda fc, _: fc.crossed_column(["x", ages(fc), "y"], 11),
            lambda tf: mixed,
        ),
        "buckets first": (
            lambda fc, _: fc.crossed_column([ages(fc), "y"], 11),
            lambda tf: mixed,
        ),
        "integers": (
            lambda fc, _: fc.crossed_column(["x", "i"], 11),
            lambda tf: {**both, "i": np.array(NUMBERS)},
        ),
        "many values": (
            lambda fc, _: fc.crossed_column(["x", "y"], 11),
            lambda tf: {"x": PAIRS, "y": words(tf)},
        ),
        "vocabulary, a word missing": (
            lambda fc, _: fc.crossed_column([vocabulary(fc), "x"], 11),
            lambda tf: {**both, "w": column_of(WORDS)},
        ),
        "identity and sparse integers": (
            lambda fc, _: fc.crossed_column([fc.categorical_column_with_identity("x", 8), "i"], 11),
            lambda tf: {"x": INT_PAIRS, "i": numbers(tf)},
        ),
        "crosses": (
            lambda fc, _: fc.crossed_column([fc.crossed_column(["x", vocabulary(fc)], 5), "y"], 11),
            lambda tf: {**both, "w": PAIRS},
        ),
        "buckets of two numbers": (
            lambda fc, _: fc.crossed_column(
                [fc.bucketized_column(fc.numeric_column("age", 2), [0.0, 1.0]), "x"], 11
            ),
            lambda tf: {**both, "age": np.linspace(-1, 2, 10, dtype=np.float32).reshape(5, 2)},
        ),
    }


def _dense_cases() -> dict[str, Case]:
    numbers_of = np.array([-1.0, 0.0, 0.5, 1.0, NAN], np.float32)
    pairs = np.arange(10, dtype=np.float32).reshape(5, 2) / 4

    def shared(tf: Any, _: str) -> list[Any]:
        fc = tf.feature_column
        columns = [
            fc.categorical_column_with_vocabulary_list(key, VOCABULARY) for key in ("x", "y")
        ]
        return list(fc.shared_embedding_columns(columns, 2))

    def shared_v2(tf: Any, _: str) -> list[Any]:
        fc = tf.compat.v2.feature_column if hasattr(tf.compat, "v2") else tf.feature_column
        columns = [
            fc.categorical_column_with_vocabulary_list(key, VOCABULARY) for key in ("y", "x")
        ]
        return list(fc.shared_embeddings(columns, 2, "sum"))

    two = {"x": np.array(WORDS, object), "y": PAIRS}
    return {
        "numeric": Case(
            lambda tf, _: [
                tf.feature_column.numeric_column("b.b", 2),
                tf.feature_column.numeric_column("a", normalizer_fn=lambda x: (x - 1.0) / 4.0),
            ],
            lambda tf: {"a": np.arange(5.0), "b.b": pairs},
            DENSE,
        ),
        "bucketized": Case(
            lambda tf, _: [
                tf.feature_column.bucketized_column(
                    tf.feature_column.numeric_column("a"), [0.0, 1.0]
                ),
                tf.feature_column.bucketized_column(
                    tf.feature_column.numeric_column("b", 2), [0.5]
                ),
            ],
            lambda tf: {"a": numbers_of, "b": pairs},
            DENSE,
        ),
        "embedding in a linear model": Case(
            lambda tf, _: [
                tf.feature_column.embedding_column(
                    tf.feature_column.categorical_column_with_hash_bucket("x", 5), 3
                ),
                tf.feature_column.numeric_column("a"),
            ],
            lambda tf: {"x": np.array(WORDS, object), "a": np.arange(5.0)},
            DENSE,
        ),
        "not trainable": Case(
            lambda tf, _: [
                tf.feature_column.embedding_column(
                    tf.feature_column.categorical_column_with_hash_bucket("x", 5),
                    2,
                    trainable=False,
                )
            ],
            lambda tf: {"x": np.array(WORDS, object)},
            DENSE,
        ),
        "shared": Case(shared, lambda tf: two, ("input", "linear")),
        "shared embeddings": Case(shared_v2, lambda tf: two, ("dense",)),
    }


def _sequence_cases() -> dict[str, Case]:
    steps = [[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [3, 0]]
    deep = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [2, 0, 0], [2, 2, 1], [3, 0, 0]]

    def of(make: Callable[[Any, str], Any], values: Any, places: Any, shape: Any) -> Case:
        def columns(tf: Any, path: str) -> list[Any]:
            fc = tf.feature_column
            made = make(fc, path)
            if hasattr(made, "num_buckets"):
                return [fc.embedding_column(made, 2), fc.indicator_column(made)]
            return [made]

        return Case(
            columns, lambda tf: {"x": tf.SparseTensor(places, np.array(values), shape)}, SEQUENCES
        )

    texts = np.array(["red", "none", "blue", "数据", "", "red"], object)
    floats = np.arange(1, 7, dtype=np.float32)
    found = {
        "sequence of numbers": of(
            lambda fc, _: fc.sequence_numeric_column("x"), floats, steps, [5, 3]
        ),
        "sequence of pairs of numbers": of(
            lambda fc, _: fc.sequence_numeric_column("x", 2, default_value=-1.0),
            floats,
            steps,
            [5, 4],
        ),
        "sequence of numbers, deep": of(
            lambda fc, _: fc.sequence_numeric_column("x", 2), floats, deep, [5, 3, 2]
        ),
    }
    for kind, places, shape in (("", steps, [5, 3]), (", deep", deep, [5, 3, 2])):
        found |= {
            f"sequence of identities{kind}": of(
                lambda fc, _: fc.sequence_categorical_column_with_identity("x", 4),
                np.array([0, 3, -1, 1, 2, 3]),
                places,
                shape,
            ),
            f"sequence of listed words{kind}": of(
                lambda fc, _: fc.sequence_categorical_column_with_vocabulary_list("x", VOCABULARY),
                texts,
                places,
                shape,
            ),
            f"sequence of words of a file{kind}": of(
                lambda fc, path: fc.sequence_categorical_column_with_vocabulary_file(
                    "x", path, num_oov_buckets=1
                ),
                texts,
                places,
                shape,
            ),
            f"sequence of hashes{kind}": of(
                lambda fc, _: fc.sequence_categorical_column_with_hash_bucket("x", 4),
                texts,
                places,
                shape,
            ),
        }
    found["sequence, dense"] = Case(
        lambda tf, _: [
            tf.feature_column.indicator_column(
                tf.feature_column.sequence_categorical_column_with_identity("x", 4)
            )
        ],
        lambda tf: {"x": np.array([[0, 3, -1], [-1, -1, -1], [1, -1, 2]])},
        SEQUENCES,
    )
    return found


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("sequence of hashes", "sequence of hashes, deep", "sequence of identities"),
    *("sequence of identities, deep", "sequence of listed words"),
    *("sequence of listed words, deep", "sequence of numbers", "sequence of numbers, deep"),
    *("sequence of pairs of numbers", "sequence of words of a file"),
    *("sequence of words of a file, deep", "sequence, dense", "shared embeddings"),
}
CASES = _cases()


# -- layers


def _embedded(fc: Any, columns: Any, combiner: str, max_norm: Any = None) -> list[Any]:
    return [fc.embedding_column(each, 3, combiner, max_norm=max_norm) for each in columns]


def _is_categorical(columns: Sequence[Any]) -> bool:
    return not any(hasattr(each, "variable_shape") for each in columns)


def apply_layer(tf: Any, layer: str, columns: list[Any], features: Mapping[str, Any]) -> list[Any]:
    """The outputs of a layer."""
    fc = tf.feature_column
    kind, _, how = layer.partition(" ")
    if kind == "linear":
        return [fc.linear_model(features, columns, 2, sparse_combiner=how or "sum")]
    if kind == "embedding":
        return [fc.input_layer(features, _embedded(fc, columns, how))]
    if kind == "max_norm":
        return [fc.input_layer(features, _embedded(fc, columns, "mean", 0.5))]
    if kind == "indicator":
        return [fc.input_layer(features, [fc.indicator_column(each) for each in columns])]
    if kind == "sequence":
        return list(tf.keras.experimental.SequenceFeatures(columns)(features))
    if kind == "dense":
        if _is_categorical(columns):
            columns = [fc.indicator_column(columns[0]), *_embedded(fc, columns, "sqrtn")]
        made = tf.keras.layers.DenseFeatures(columns)
        return [made(features), made(features)]
    return [fc.input_layer(features, columns)]


def value_of(index: int, shape: Sequence[int]) -> Any:
    """The value that the variable number `index` gets."""
    size = int(np.prod(shape))
    return np.sin(np.arange(size) * 0.7 + index).astype(np.float32).reshape(shape)


def run(tf: Any, case: Case, path: str) -> dict[str, Any]:
    """What a case gives: by layer the outputs, their static widths, the gradients of variables."""
    columns, features = case.columns(tf, path), case.features(tf)
    fetches: dict[str, Any] = {}
    for layer in case.layers:
        outputs = apply_layer(tf, layer, columns, features)
        variables = tf.trainable_variables()
        floats = [each for each in outputs if each.dtype == tf.float32]
        loss = tf.add_n([tf.reduce_sum(each * each) for each in floats])
        gradients = tf.gradients(loss, variables) if variables else []
        fetches[layer] = {
            "outputs": outputs,
            "gradients": {
                variable.op.name: tf.convert_to_tensor(gradient)
                for variable, gradient in zip(variables, gradients, strict=True)
                if gradient is not None
            },
        }
    made = tf.global_variables()
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        for index, variable in enumerate(made):
            variable.load(value_of(index, variable.shape.as_list()), session)
        values = session.run(fetches)
    return {
        "variables": [
            [each.op.name, each.shape.as_list(), each in tf.trainable_variables()] for each in made
        ],
        "in model_variables": [each.op.name for each in tf.get_collection("model_variables")],
        "layers": values,
    }


# -- many rows


def big_columns(tf: Any) -> dict[str, Any]:
    """Columns over `big_features`, by name."""
    fc = tf.feature_column
    ages = fc.bucketized_column(fc.numeric_column("age"), [18.0, 25.0, 30.0, 45.0, 65.0])
    word = fc.categorical_column_with_vocabulary_list("word", VOCABULARY)
    return {
        "hash of strings": fc.categorical_column_with_hash_bucket("s", 1 << 40),
        "hash of integers": fc.categorical_column_with_hash_bucket("i", 1 << 40, tf.int64),
        "two strings": fc.crossed_column(["s", "t"], 1 << 40),
        "three": fc.crossed_column(["t", "i", "s"], 1 << 40),
        "integers": fc.crossed_column(["i", "j"], 1 << 40, 1),
        "buckets": fc.crossed_column(["s", ages, "i"], 1 << 40),
        "vocabulary": fc.crossed_column([word, "t", ages], 1 << 40),
        "pairs": fc.crossed_column(["pair", "triple"], 1 << 40),
        "small": fc.crossed_column(["s", "word"], 1000),
    }


def big_features() -> dict[str, Any]:
    """10,000 rows."""
    strings = hashed_strings()
    state, numbers_of = 99, []
    for _ in strings:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        numbers_of.append(state - (1 << 63))
    column = np.array(numbers_of, np.int64)
    text = np.empty(len(strings), object)
    text[:] = strings
    other = np.roll(text, 1)
    return {
        "s": text,
        "t": other,
        "i": column,
        "j": np.roll(column, 3) >> 20,
        "age": (column % 1000).astype(np.float32) / 10,
        "word": np.array([("red", "", "none", "数据")[n % 4].encode() for n in numbers_of], object),
        "pair": np.column_stack([text, np.roll(text, 2)]),
        "triple": np.column_stack([other, np.roll(text, 5), np.roll(text, 7)]),
    }
