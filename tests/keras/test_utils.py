"""Labels, norms, batches by number and seeds; data sets in Keras's files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit import keras
from estimatorkit.core.errors import NotFoundError
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.data import datasets
from estimatorkit.keras import utils


def test_to_categorical() -> None:
    found = utils.to_categorical([[1], [0], [2]])
    assert (found.tolist(), found.dtype) == ([[0, 1, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    assert utils.to_categorical(np.zeros((2, 3)), 4, "int64").shape == (2, 3, 4)
    assert utils.to_categorical(2).tolist() == [0, 0, 1]
    with pytest.raises(IndexError, match="there are 2 classes"):
        utils.to_categorical([0, 2], 2)


def test_normalize() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(utils.normalize(x), [[0.6, 0.8], [0, 0]])
    np.testing.assert_allclose(utils.normalize(x, 0, 1), [[1, 1], [0, 0]])
    np.testing.assert_allclose(utils.normalize([3.0, 4.0]), [[0.6, 0.8]])  # as in TensorFlow


def test_sequence_batches() -> None:
    class Squares(utils.Sequence):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return index**2

    assert list(Squares()) == [0, 1, 4]
    with pytest.raises(NotImplementedError, match="__getitem__"):
        utils.Sequence()[0]


def test_set_random_seed() -> None:
    with Graph().as_default():
        drawn = []
        for _ in range(2):
            utils.set_random_seed(3)
            drawn.append((random.random(), np.random.rand(), get_default_graph().seed))
        assert drawn[0] == drawn[1]
        with pytest.raises(ValueError, match="Expected `seed` argument to be an integer"):
            utils.set_random_seed("three")  # type: ignore[arg-type]


def test_custom_objects_by_name() -> None:
    @utils.register_keras_serializable("mine")
    def twice(x: Any) -> Any:
        return 2 * x

    assert utils.serialize_keras_object(twice) == "mine>twice"
    assert keras.activations.get("mine>twice") is twice
    with utils.CustomObjectScope({"other": twice}):
        assert keras.activations.get("other") is twice
    config = utils.serialize_keras_object(keras.initializers.Ones())
    assert config["class_name"] == "Ones"


def test_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mnist.npz"
    arrays = {"x_train": np.ones(3), "y_train": np.ones(2), "x_test": np.ones(1), "y_test": 0}
    np.savez(path, **arrays)  # type: ignore[arg-type]
    (x, _), (_, y) = keras.datasets.mnist.load_data(path)
    assert (x.shape, y.shape) == ((3,), ())
    own = ((x, x), (x, x))
    for name in ("mnist", "fashion_mnist"):
        monkeypatch.setattr(getattr(datasets, name), "load_data", lambda: own)
        load = getattr(keras.datasets, name).load_data
        assert load() is own
        assert load(f"{name}.npz") is own
    np.savez(path, x_train=np.ones(1))
    with pytest.raises(ValueError, match="lacks the array y_train"):
        keras.datasets.mnist.load_data(path)
    with pytest.raises(NotFoundError, match="No file"):
        keras.datasets.mnist.load_data(tmp_path / "none.npz")
    with pytest.raises(AttributeError, match=r"keras\.datasets\.cifar10 has no loader here"):
        _ = keras.datasets.cifar10


def test_deserialize_keras_object() -> None:
    dense = keras.layers.Dense(3, name="one")
    config = keras.utils.serialize_keras_object(dense)
    given = {"Dense": keras.layers.Dense, "__all__": []}  # a module's variables
    for made in (
        keras.utils.deserialize_keras_object(config),
        keras.utils.deserialize_keras_object(config, module_objects=given),
    ):
        assert made.get_config() == dense.get_config()
    assert keras.utils.deserialize_keras_object("len", {"len": len}) is len
    assert keras.utils.deserialize_keras_object("f", custom_objects={"f": abs}) is abs
    assert keras.utils.deserialize_keras_object(None) is None
    with pytest.raises(ValueError, match="Unknown loss: 'other'"):
        keras.utils.deserialize_keras_object("other", {}, printable_module_name="loss")


def test_masks_and_output_signatures() -> None:
    inputs = keras.layers.Input((3, 2))
    masking, dense = keras.layers.Masking(), keras.layers.Dense(4)
    outputs = dense(masking(inputs))
    assert masking.input_mask is None
    assert masking.output_mask is dense.input_mask is dense.get_input_mask_at(0)
    assert outputs._keras_mask is dense.output_mask
    assert outputs._keras_history.layer is dense
    assert dense.get_input_shape_at(0) == (None, 3, 2)
    signature = dense.compute_output_signature(tf.TensorSpec([None, 2], tf.float32))
    assert signature == tf.TensorSpec([None, 4], tf.float32)
    halves = keras.layers.Lambda(lambda x: (x, x), output_shape=[(2,), (3,)])
    assert [each.as_list() for each in halves.compute_output_shape([None, 5])] == [
        [None, 2],
        [None, 3],
    ]


def test_backend_function_computes_given_tensors() -> None:
    inputs = keras.layers.Input((2,))
    double = keras.backend.function([inputs], [inputs * 2.0])
    np.testing.assert_array_equal(double([tf.ones([1, 2]) + 1.0])[0], [[4.0, 4.0]])
