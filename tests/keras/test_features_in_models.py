"""Feature columns in Keras-style models: `DenseFeatures` and `SequenceFeatures` as layers.

The tutorial "Classify structured data with feature columns" is here whole, on made-up rows. Names
and shapes of variables are those that TensorFlow 2.15.1 gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_numeric_dtype

import estimatorkit as tf
import estimatorkit.compat.v1 as v1
from estimatorkit import keras
from estimatorkit.core.graph import Graph
from estimatorkit.keras.engine.compiled import weights_of_classes

JOBS = ["clerk", "farmer", "chief"]


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    """Each test has a graph of its own, so that layers are named alike."""
    with Graph().as_default() as fresh:
        yield fresh


def people(count: int, seed: int = 0) -> pd.DataFrame:
    """Rows whose target says whether a person is old enough and no farmer, or lives in d."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, count),
            "hours": random.normal(40, 10, count).astype(np.float32),
            "job": random.choice(JOBS, count),
            "place": random.choice(list("abcd"), count),
        }
    )
    old = (frame["age"] >= 45) & (frame["job"] != "farmer")
    frame["target"] = (old | (frame["place"] == "d")).astype(int)
    return frame


def df_to_dataset(frame: pd.DataFrame, shuffle: bool = True, batch_size: int = 32) -> Any:
    """As the tutorial has it."""
    frame = frame.copy()
    labels = frame.pop("target")
    dataset = tf.data.Dataset.from_tensor_slices((dict(frame), labels))
    if shuffle:
        dataset = dataset.shuffle(buffer_size=len(frame))
    return dataset.batch(batch_size)


def columns() -> list[Any]:
    """A column of each kind that the tutorial has."""
    column = tf.feature_column
    age = column.bucketized_column(column.numeric_column("age"), [18, 30, 45, 60])
    job = column.categorical_column_with_vocabulary_list("job", JOBS)
    place = column.categorical_column_with_hash_bucket("place", 20)
    return [
        column.numeric_column("hours", normalizer_fn=tenth),
        age,
        column.indicator_column(job),
        column.embedding_column(job, 2),
        column.embedding_column(place, 4),
        column.indicator_column(column.crossed_column([age, job], 50)),
    ]


@keras.utils.register_keras_serializable("tests")
def tenth(values: Any) -> Any:
    """A tenth."""
    return values / 10.0


WIDTH = 1 + 5 + 3 + 2 + 4 + 50


def classifier() -> Any:
    """The tutorial's model, compiled."""
    model = keras.Sequential(
        [
            keras.layers.DenseFeatures(columns()),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(1),
        ]
    )
    compiled(model)
    return model


def compiled(model: Any) -> Any:
    """Compiles as the tutorial does."""
    model.compile(
        optimizer=keras.optimizers.Adam(0.01),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def inputs_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Inputs of a functional model for the features of a frame."""
    return {
        name: keras.Input(
            (1,), name=name, dtype="float32" if is_numeric_dtype(values) else "string"
        )
        for name, values in frame.drop(columns="target").items()
    }


def functional(frame: pd.DataFrame) -> Any:
    inputs = inputs_of(frame)
    return compiled(
        keras.Model(inputs, keras.layers.Dense(1)(keras.layers.DenseFeatures(columns())(inputs)))
    )


class Subclass(keras.Model):
    """Features and one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = keras.layers.DenseFeatures(columns(), name="features")
        self.outputs_layer = keras.layers.Dense(1, name="out")

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return self.outputs_layer(self.features(inputs))


def names_of(weights: Any) -> list[str]:
    return [each.op.name for each in weights]


def one_calls(model: Any) -> dict[str, bool]:
    """For each kind of step whether its loop runs many steps in one XLA call."""
    return {kind: step.ready().loop.one_call for (kind, *_), step in model._steps.items()}


@pytest.mark.slow
def test_tutorial() -> None:
    frame = people(1200)
    train, validation = df_to_dataset(frame[:900]), df_to_dataset(frame[900:], shuffle=False)
    model = classifier()
    history = model.fit(train, validation_data=validation, epochs=8, verbose=0)
    assert len(history.history["val_accuracy"]) == 8
    loss, accuracy = model.evaluate(validation, verbose=0)
    assert history.history["val_loss"][-1] == pytest.approx(loss, rel=1e-5)
    assert accuracy > 0.95
    predicted = model.predict(validation)
    assert predicted.shape == (300, 1)
    assert np.mean((predicted[:, 0] > 0) == frame["target"][900:]) == pytest.approx(accuracy)
    # Words are looked up where blocks are read, so that steps follow each other in one call.
    assert one_calls(model) == {"train": True, "test": True, "predict": True}
    assert names_of(model.trainable_weights) == [
        "sequential/dense_features/job_embedding/embedding_weights",
        "sequential/dense_features/place_embedding/embedding_weights",
        *(f"sequential/{layer}/{name}" for layer in ("dense", "dense_1") for name in NAMES),
    ]
    assert [tuple(each.shape.as_list()) for each in model.weights[:3]] == [
        *((3, 2), (20, 4), (WIDTH, 32)),
    ]
    lines: list[str] = []
    model.summary(print_fn=lines.append)
    assert next(line for line in lines if "dense_features" in line).split()[-1] == "86"


NAMES = ("kernel", "bias")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sequential", "functional", "subclass"])
def test_every_kind_of_model_trains_and_round_trips(form: str, tmp_path: Path) -> None:
    frame = people(96)
    data = df_to_dataset(frame, shuffle=False)
    make = {"sequential": classifier, "functional": lambda: functional(frame)}
    model = make.get(form, lambda: compiled(Subclass()))()
    model.fit(data, verbose=0)
    assert one_calls(model) == {"train": True}
    table = model.weights[0]
    assert table.op.name.endswith("features/job_embedding/embedding_weights")
    assert [each.shape.as_list() for each in model.weights[:2]] == [[3, 2], [20, 4]]
    before, outputs = model.get_weights(), model.predict(data)
    model.save_weights(tmp_path / "weights")
    model.fit(data, epochs=2, verbose=0)
    assert all(
        np.abs(one - two).max() > 0 for one, two in zip(before, model.get_weights(), strict=True)
    )
    model.load_weights(tmp_path / "weights")
    np.testing.assert_array_equal(model.predict(data), outputs)
    other = make.get(form, lambda: compiled(Subclass()))()
    other.fit(data, verbose=0)
    other.load_weights(tmp_path / "weights")
    np.testing.assert_allclose(other.predict(data), outputs, rtol=1e-5)
    if form == "subclass":
        with pytest.raises(NotImplementedError, match="save_weights"):
            model.save(tmp_path / "model")
        return
    model.save(tmp_path / "model.keras")
    with Graph().as_default():
        loaded = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(loaded.predict(data), outputs, rtol=1e-5)
        loaded.fit(data, verbose=0)


@pytest.mark.slow
def test_frozen_features_do_not_change() -> None:
    data = df_to_dataset(people(64), shuffle=False)
    model = classifier()
    model.layers[0].trainable = False
    model.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
    model.fit(data, verbose=0)
    assert names_of(model.trainable_weights)[0] == "sequential/dense/kernel"
    tables = model.layers[0].get_weights()
    model.fit(data, epochs=2, verbose=0)
    for one, two in zip(tables, model.layers[0].get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)
    model.layers[0].trainable = True
    model.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
    model.fit(data, verbose=0)
    assert np.abs(tables[0] - model.layers[0].get_weights()[0]).max() > 0


def test_layers_of_equal_columns_share_nothing() -> None:
    features = {"job": np.array(["clerk", "chief"], object)}
    column = tf.feature_column
    listed = column.categorical_column_with_vocabulary_list("job", JOBS)
    layers = [keras.layers.DenseFeatures(column.embedding_column(listed, 2)) for _ in range(2)]
    for layer in layers:
        layer(features)
        layer(features)
    assert [names_of(each.weights) for each in layers] == [
        ["dense_features/job_embedding/embedding_weights"],
        ["dense_features_1/job_embedding/embedding_weights"],
    ]
    named = [keras.layers.DenseFeatures(columns()[3:4], name="same") for _ in range(2)]
    for layer in named:
        layer(features)
    assert named[0].weights[0] is not named[1].weights[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shared_embeddings", "shared_embedding_columns"])
def test_shared_embedding_columns_share_table(kind: str) -> None:
    column = tf.feature_column
    jobs = [column.categorical_column_with_vocabulary_list(key, JOBS) for key in ("now", "once")]
    shared = getattr(column, kind)(jobs, 3)
    layer = keras.layers.DenseFeatures(shared)
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = {key: np.array(JOBS[::step], object) for key, step in (("now", 1), ("once", -1))}
    model.fit(x, np.ones(3, np.float32), verbose=0)
    assert [each.shape.as_list() for each in model.weights] == [[3, 3], [6, 1], [1]]
    once, again = (keras.layers.DenseFeatures(shared), layer)
    once(x)
    assert once.weights == again.weights
    with pytest.raises(ValueError, match="save_weights"):
        model.save("nowhere")


def test_build_without_features() -> None:
    layer = keras.layers.DenseFeatures(columns())
    layer.build({"job": (None, 1)})
    assert [each.shape.as_list() for each in layer.weights] == [[3, 2], [20, 4]]
    assert layer.count_params() == 86
    assert layer.compute_output_shape({"job": (None, 1)}).as_list() == [None, WIDTH]


def test_outputs_by_column_and_list_features() -> None:
    column = tf.feature_column
    words = column.categorical_column_with_vocabulary_list("job", JOBS)
    layer = keras.layers.DenseFeatures([column.indicator_column(words), column.numeric_column("n")])
    by_column: dict[Any, Any] = {}
    out = layer({"job": [["clerk"], [], ["chief", "clerk"]], "n": [1, 2, 3]}, by_column)
    with v1.Session() as session:
        found, parts = session.run([out, list(by_column.values())])
    assert found.tolist() == [[1, 0, 0, 1], [0, 0, 0, 2], [1, 0, 1, 3]]
    assert [each.shape for each in parts] == [(3, 3), (3, 1)]
    with pytest.raises(ValueError, match="Feature n is not in features dictionary"):
        layer({"job": [["clerk"]]})
    with pytest.raises(ValueError, match="features should be a dictionary"):
        layer(np.ones((2, 2)))


def test_get_variable_in_variable_scope() -> None:
    with v1.variable_scope("tower", partitioner=v1.fixed_size_partitioner(2)):
        layer = keras.layers.DenseFeatures(columns()[4:5])
        layer({"place": ["a"]})
    parts = [f"tower/dense_features/place_embedding/embedding_weights/part_{n}" for n in (0, 1)]
    assert names_of(layer.weights) == parts
    with pytest.raises(ValueError, match="partitioner"):
        keras.layers.DenseFeatures(columns(), partitioner=len).get_config()


def test_configs_match_tensorflow() -> None:
    layer = keras.layers.DenseFeatures(columns(), name="features", trainable=False)
    config = layer.get_config()
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert again._feature_columns == layer._feature_columns
    assert (again.name, again.trainable) == ("features", False)
    assert config["feature_columns"][0] == {
        "class_name": "BucketizedColumn",
        "config": {
            "source_column": {
                "class_name": "NumericColumn",
                "config": {
                    "key": "age",
                    "shape": (1,),
                    "default_value": None,
                    "dtype": "float32",
                    "normalizer_fn": None,
                },
            },
            "boundaries": (18.0, 30.0, 45.0, 60.0),
        },
    }
    # What TensorFlow writes of an identity and of an embedding.
    identity = {"key": "i", "number_buckets": 3, "default_value": 0}
    normal = {"mean": 0.0, "stddev": 0.5, "seed": None, "dtype": "float32"}
    embedding = {
        "categorical_column": {"class_name": "IdentityCategoricalColumn", "config": identity},
        "dimension": 4,
        "combiner": "mean",
        "initializer": {"class_name": "TruncatedNormal", "config": normal},
        "ckpt_to_load_from": None,
        "tensor_name_in_ckpt": None,
        "max_norm": None,
        "trainable": True,
        "use_safe_embedding_lookup": True,
    }
    described = {"class_name": "EmbeddingColumn", "config": embedding}
    made = keras.layers.DenseFeatures.from_config(
        {"name": "x", "feature_columns": [described], "partitioner": None, "dtype": "float32"}
    )
    made({"i": [1, 2]})
    assert made.weights[0].shape.as_list() == [3, 4]


def test_invalid_configs_raise() -> None:
    column = tf.feature_column.numeric_column("n", normalizer_fn=lambda values: values)
    with pytest.raises(ValueError, match="register_keras_serializable"):
        keras.layers.DenseFeatures(column).get_config()
    for described, problem in (
        ({"class_name": "NumericColum", "config": {}}, "did you mean"),
        ({"class_name": "IndicatorColumn", "config": {}}, "wrong keys"),
        ({"class_name": "CrossedColumn", "config": {"keys": [], "x": 1}}, "wrong keys"),
        (3, "Improper config"),
    ):
        with pytest.raises(ValueError, match=problem):
            keras.layers.DenseFeatures.from_config({"feature_columns": [described]})


@pytest.mark.slow
def test_sequence_features() -> None:
    column = tf.feature_column
    words = column.sequence_categorical_column_with_vocabulary_list("w", ["a", "b"])
    layer = v1.keras.experimental.SequenceFeatures(column.embedding_column(words, 3))
    words_in = keras.Input((4,), name="w", dtype="string")
    steps, lengths = layer({"w": words_in})
    mask = tf.sequence_mask(lengths, 4)
    outputs = keras.layers.Dense(1)(keras.layers.LSTM(5)(steps, mask=mask))
    model = keras.Model({"w": words_in}, outputs)
    model.compile("adam", "mse")
    x = {"w": np.array([["a", "b", "", ""], ["b", "", "", ""]], object)}
    model.fit(x, np.ones(2, np.float32), epochs=2, verbose=0)
    assert one_calls(model) == {"train": True}
    assert names_of(model.weights)[0] == "sequence_features/w_embedding/embedding_weights"
    again = v1.keras.experimental.SequenceFeatures.from_config(layer.get_config())
    assert again._feature_columns == layer._feature_columns


@pytest.mark.slow
def test_sparse_features_from_dataset() -> None:
    rows = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["clerk", "chief", "farmer"], [2, 2])
    dataset = tf.data.Dataset.from_tensor_slices(({"job": rows}, [1.0, 0.0])).batch(2)
    column = tf.feature_column
    words = column.categorical_column_with_vocabulary_list("job", JOBS)
    model = keras.Sequential(
        [keras.layers.DenseFeatures(column.embedding_column(words, 2)), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    model.fit(dataset.repeat(3), verbose=0)
    assert model.predict(dataset).shape == (2, 1)


@pytest.mark.slow
def test_estimator_from_model_with_features(tmp_path: Path) -> None:
    frame = people(64)
    model = functional(frame)
    estimator = keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    estimator.train(lambda: df_to_dataset(frame), steps=4)
    assert "dense_features/place_embedding/embedding_weights" in estimator.get_variable_names()
    assert 0 <= estimator.evaluate(lambda: df_to_dataset(frame, False))["accuracy"] <= 1


@pytest.mark.slow
def test_features_with_mixed_precision() -> None:
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = classifier()
        model.fit(df_to_dataset(people(64)), verbose=0)
        assert {each.dtype.name for each in model.weights} == {"float32"}
    finally:
        keras.mixed_precision.set_global_policy("float32")


@pytest.mark.parametrize("one_hot", [False, True])
def test_class_weight_defaults_to_1(one_hot: bool) -> None:
    labels = np.array([0, 1, 2, 3, 1])
    given = np.eye(4, dtype=np.float32)[labels] if one_hot else labels[:, None]
    weights = weights_of_classes(tf.constant(given), {1: 2.5, 0: 0.5})
    with v1.Session() as session:
        assert session.run(weights).tolist() == [0.5, 2.5, 1.0, 1.0, 2.5]


def test_class_weight_of_negative_labels() -> None:
    with v1.Session() as session:
        assert session.run(weights_of_classes(tf.constant([-1, 2]), {2: 3.0})).tolist() == [1, 3]
    with pytest.raises(ValueError, match="key 'yes'"):
        weights_of_classes(tf.constant([0]), {"yes": 1.0})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="from 0 to 1"):
        weights_of_classes(tf.constant([[0, 1]]), {2: 1.0})
