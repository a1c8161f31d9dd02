"""Layers with vocabularies, and `FeatureSpace`; expected values are those of TensorFlow 2.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.keras import layers

WORDS = np.array(["b", "a", "b", "c", "c", "b", "z", "a"])
NUMBERS = np.array([5, 7, 5, -1, 0, 12, 7, 5])
TEXTS = np.array(["The cat, sat!", "the DOG sat on", "", "a  b"])
ASKED = ["the cat the", "dog x on the mat today", ""]


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


@pytest.mark.parametrize(
    ("arguments", "asked", "vocabulary", "expected"),
    [
        ({}, ["a", "zz", "b", ""], "[UNK] b c a z", [3, 0, 1, 0]),
        ({"mask_token": ""}, ["a", "zz", "b", ""], " [UNK] b c a z", [4, 1, 2, 0]),
        ({"max_tokens": 3}, ["a", "zz", "b", ""], "[UNK] b c", [0, 0, 1, 0]),
        (
            {"output_mode": "multi_hot"},
            [["a", "b"], ["q", "c"]],
            "[UNK] b c a z",
            [[0, 1, 0, 1, 0], [1, 0, 1, 0, 0]],
        ),
        (
            {"output_mode": "count", "max_tokens": 7, "pad_to_max_tokens": True},
            [["a", "a"]],
            "[UNK] b c a z",
            [[0, 0, 0, 2, 0, 0, 0]],
        ),
    ],
)
def test_words(arguments: Any, asked: Any, vocabulary: str, expected: Any) -> None:
    layer = layers.StringLookup(**arguments)
    layer.adapt(WORDS)
    assert layer.get_vocabulary() == vocabulary.split(" ")
    assert layer.vocabulary_size() == len(vocabulary.split(" "))
    np.testing.assert_array_equal(run(layer(tf.constant(asked))), expected)
    again = layers.StringLookup.from_config(layer.get_config())
    np.testing.assert_array_equal(run(again(tf.constant(asked))), expected)


@pytest.mark.parametrize("mode", ["int", "multi_hot"])
def test_unknown_words_without_id_end_run(mode: str) -> None:
    asked = tf.placeholder(tf.string, [2])
    found = layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=0, output_mode=mode)(asked)
    with tf.Session() as session:
        session.run(found, {asked: ["b", "a"]})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"found OOV values: inputs\[1\]"):
            session.run(found, {asked: ["b", "c"]})


def test_several_oov_ids() -> None:
    layer = layers.StringLookup(vocabulary=["a"], num_oov_indices=3)
    found = run(layer(tf.constant(["a", "zz", "b", ""])))
    assert found[0] == 3
    assert set(found[1:]) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("arguments", "vocabulary", "expected"),
    [
        ({}, [-1, 5, 7, 12, 0], [[1, 4], [2, 0], [0, 3]]),
        ({"mask_token": 0}, [0, -1, 5, 7, 12], [[2, 0], [3, 1], [1, 4]]),
        ({"num_oov_indices": 2}, [-1, -1, 5, 7, 12, 0], [[2, 5], [3, 1], [1, 4]]),
        (
            {"output_mode": "multi_hot"},
            [-1, 5, 7, 12, 0],
            [[0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0]],
        ),
    ],
)
def test_integers(arguments: Any, vocabulary: list[int], expected: Any) -> None:
    layer = layers.IntegerLookup(**arguments)
    layer.adapt(iter([NUMBERS[:3], NUMBERS[3:]]))
    assert layer.get_vocabulary() == vocabulary
    asked = tf.constant([[5, 0], [7, -1], [99, 12]], tf.int64)
    np.testing.assert_array_equal(run(layer(asked)), expected)


def test_inverse_lookup() -> None:
    layer = layers.StringLookup(vocabulary=["x", "y"], invert=True)
    assert run(layer(tf.constant([0, 1, 2, 9]))).tolist() == [b"[UNK]", b"x", b"y", b"[UNK]"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [[2, 6, 2, 0, 0, 0], [5, 1, 4, 2, 1, 1], [0, 0, 0, 0, 0, 0]]),
        ({"output_sequence_length": 3}, [[2, 6, 2], [5, 1, 4], [0, 0, 0]]),
        (
            {"output_sequence_length": 7, "max_tokens": 4},
            [[2, 1, 2, 0, 0, 0, 0], [1, 1, 1, 2, 1, 1, 0], [0] * 7],
        ),
        (
            {"output_mode": "multi_hot"},
            [[0, 1, 0, 0, 0, 1, 0, 0], [1, 1, 0, 1, 1, 0, 0, 0], [0] * 8],
        ),
        (
            {"output_mode": "count", "max_tokens": 5},
            [[1, 2, 0, 0, 0], [3, 1, 0, 1, 1], [0, 0, 0, 0, 0]],
        ),
        (
            {"output_mode": "tf_idf"},
            [
                [0, 1.69459569, 0, 0, 0, 1.0986123, 0, 0],
                [3.0804243, 0.84729785, 0, 1.0986123, 1.0986123, 0, 0, 0],
                [0] * 8,
            ],
        ),
        ({"standardize": None}, [[2, 1, 2, 0, 0, 0], [1, 1, 5, 2, 1, 1], [0, 0, 0, 0, 0, 0]]),
    ],
)
def test_texts(arguments: Any, expected: Any) -> None:
    layer = layers.TextVectorization(**arguments)
    layer.adapt(tf.data.Dataset.from_tensor_slices(TEXTS).batch(3))
    np.testing.assert_allclose(run(layer(tf.constant(ASKED))), expected, rtol=1e-6)


def test_characters() -> None:
    layer = layers.TextVectorization(standardize="lower", split="character")
    layer.adapt(TEXTS)
    assert "".join(layer.get_vocabulary()[2:]) == " tasohengdcb,!"
    assert run(layer(tf.constant(["that"]))).tolist() == [[3, 7, 4, 3]]


def test_crossing_and_discretization() -> None:
    words, numbers = tf.constant(["a", "b", "c"]), tf.constant([1, 2, 3], tf.int64)
    assert run(layers.HashedCrossing(5)((words, numbers))).tolist() == [0, 2, 4]
    columns = (tf.constant([["a"], ["b"]]), tf.constant([[1], [2]], tf.int64))
    one_hot = run(layers.HashedCrossing(5, output_mode="one_hot")(columns))
    assert one_hot.argmax(1).tolist() == [0, 2]
    ranges = layers.Discretization(num_bins=3)
    ranges.adapt(np.arange(9.0))
    numbers = tf.constant(np.arange(9.0), tf.float32)
    assert run(ranges(numbers)).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert layers.Discretization.from_config(ranges.get_config()).bin_boundaries == (
        ranges.bin_boundaries
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: layers.StringLookup(vocabulary=["a", "a"]), "has a word twice"),
        (lambda: layers.StringLookup(vocabulary=["a", "b"], max_tokens=2), "larger than max_tok"),
        (lambda: layers.StringLookup(max_tokens=1), "leaves no room"),
        (lambda: layers.StringLookup(output_mode="ints"), "Unknown value for `output_mode`"),
        (lambda: layers.StringLookup(invert=True, output_mode="count"), "needs ids"),
        (lambda: layers.TextVectorization(split="words"), "unknown split"),
        (lambda: layers.TextVectorization(ngrams=2), "ngrams is not there"),
        (lambda: layers.HashedCrossing(0), "must be positive"),
        (lambda: layers.Discretization(), "either bin_boundaries or num_bins"),
        (lambda: layers.Discretization([0.5]).adapt([1.0]), "was given boundaries"),
    ],
)
def test_errors(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_missing_or_late_vocabulary_raises() -> None:
    layer = layers.StringLookup()
    with pytest.raises(RuntimeError, match="has no vocabulary"):
        layer(tf.constant(["a"]))
    layer = layers.StringLookup(vocabulary=["a"])
    layer(tf.constant(["a"]))
    with pytest.raises(ValueError, match="before the first call"):
        layer.adapt(["b"])


# -- FeatureSpace

TABLE = {
    "age": np.array([10.0, 20.0, 30.0, 40.0], np.float32),
    "town": np.array(["Rome", "Oslo", "Rome", "Bern"]),
    "level": np.array([1, 2, 1, 3]),
}


def test_feature_space_concatenates_columns() -> None:
    space = tf.keras.utils.FeatureSpace(
        {
            "age": "float_normalized",
            "town": "string_categorical",
            "level": tf.keras.utils.FeatureSpace.integer_categorical(num_oov_indices=0),
        },
        crosses=[("town", "level")],
        crossing_dim=4,
    )
    space.adapt(tf.data.Dataset.from_tensor_slices(TABLE))
    found = run(space(TABLE))
    assert found.shape == (4, 1 + 4 + 3 + 4)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 0], [-1.3416, -0.4472, 0.4472, 1.3416], atol=1e-4)
    assert found[:, 1:5].argmax(1).tolist() == [1, 2, 1, 3]  # Rome, Oslo, Rome, Bern
    assert (found[:, 5:8].sum(1) == 1).all()
    assert (found[0, 8:] == found[2, 8:]).all()

    one = {name: values[0] for name, values in TABLE.items()}
    np.testing.assert_allclose(run(space(one)), found[0], atol=1e-6)


def test_feature_space_of_every_kind() -> None:
    kinds = ["float", "float_rescaled", "float_discretized"]
    features: dict[str, Any] = {f"age {kind}": kind for kind in kinds}
    features |= {"town hashed": "string_hashed", "level hashed": "integer_hashed"}
    space = tf.keras.utils.FeatureSpace(
        features, output_mode="dict", hashing_dim=6, num_discretization_bins=2
    )
    data = {name: TABLE[name.split(" ")[0]] for name in features}
    space.adapt(data)
    found = run(space(data))
    shapes = {name: each.shape for name, each in found.items()}
    assert shapes == {
        "age float": (4, 1),
        "age float_rescaled": (4, 1),
        "age float_discretized": (4, 2),
        "town hashed": (4, 6),
        "level hashed": (4, 6),
    }


def test_feature_space_in_dataset_and_model() -> None:
    space = tf.keras.utils.FeatureSpace({"age": "float_normalized", "town": "string_categorical"})
    space.adapt(TABLE)
    labels = np.array([0.0, 1.0, 0.0, 1.0], np.float32)
    rows = {name: TABLE[name] for name in ("age", "town")}
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(2)
    prepared = dataset.map(lambda data, label: (space(data), label))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(5,))])
    model.compile("adam", "mse")
    history = model.fit(prepared, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


def test_feature_space_errors() -> None:
    space = tf.keras.utils.FeatureSpace
    with pytest.raises(ValueError, match="did you mean 'float_normalized'"):
        space({"x": "float_normalised"})
    with pytest.raises(ValueError, match="names an unknown column"):
        space({"x": "float"}, crosses=[("x", "y")])
    with pytest.raises(ValueError, match="a column is missing"):
        space({"x": "float"})({"y": [1.0]})
    with pytest.raises(ValueError, match="unknown output_mode"):
        space({"x": "float"}, output_mode="list")  # type: ignore[arg-type]
