"""`contrib.predictor`: SavedModels as functions, and the modules of `saved_model`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

X = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("models") / "model"
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", initializer=np.array([[2.0], [1.0]], np.float32))
        y = tf.matmul(x, w, name="y")
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(path)
        make = tf.saved_model.signature_def_utils.predict_signature_def
        signatures = {
            "serving_default": make({"x": x}, {"y": y}),
            "squared": make({"x": x}, {"squared": tf.square(y, name="squared")}),
        }
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()
    return path


@pytest.mark.parametrize(
    ("arguments", "key", "expected"),
    [
        ({}, "y", [[4.0], [2.0]]),
        ({"signature_def_key": "squared", "tags": "serve"}, "squared", [[16.0], [4.0]]),
        ({"input_names": {"x": "x:0"}, "output_names": {"z": "y:0"}}, "z", [[4.0], [2.0]]),
    ],
)
def test_predictor(folder: Path, arguments: Any, key: str, expected: Any) -> None:
    with tf.contrib.predictor.from_saved_model(folder, **arguments) as predict:
        assert {name: each.tolist() for name, each in predict({"x": X}).items()} == {key: expected}
        assert list(predict.feed_tensors) == ["x"]
        assert predict.graph is predict.session.graph
        with pytest.raises(ValueError, match=r"unexpected keys in input_dict: \{'xs'\}"):
            predict({"xs": X})


def test_errors(folder: Path) -> None:
    load = tf.contrib.predictor.from_saved_model
    with pytest.raises(ValueError, match=r"(?s)has no such signature.*'squared'"):
        load(folder, "square")
    with pytest.raises(ValueError, match="at most one of signature_def_key"):
        load(folder, "squared", input_names={}, output_names={})
    with pytest.raises(ValueError, match="must both be specified or both be None"):
        load(folder, input_names={"x": "x:0"})
    with pytest.raises(RuntimeError, match="tags 'gpu' could not be found"):
        load(folder, tags=["gpu"])
    with pytest.raises(OSError, match="SavedModel file does not exist"):
        load(folder / "nowhere")


def test_import_statements() -> None:
    from estimatorkit.compat.v1.contrib import predictor
    from estimatorkit.compat.v1.python.saved_model import builder, signature_constants
    from estimatorkit.compat.v1.python.saved_model.signature_def_utils import build_signature_def
    from estimatorkit.compat.v1.saved_model import tag_constants

    assert predictor.from_saved_model is tf.contrib.predictor.from_saved_model
    assert builder.SavedModelBuilder is tf.saved_model.Builder
    assert signature_constants.PREDICT_METHOD_NAME == "tensorflow/serving/predict"
    assert build_signature_def is tf.saved_model.build_signature_def
    assert tag_constants.TRAINING == "train"


@pytest.mark.slow
def test_predictor_from_estimator(tmp_path: Path) -> None:
    column = tf.feature_column.numeric_column("x")
    estimator = tf.estimator.LinearRegressor([column], model_dir=tmp_path / "model")
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None], "x")}
    )
    with pytest.raises(ValueError, match="trained model"):
        tf.contrib.predictor.from_estimator(estimator, receiver)
    data = tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [2.0, 4.0]))
    estimator.train(lambda: data.batch(2).repeat(), steps=2)
    predict = tf.contrib.predictor.from_estimator(estimator, receiver, "predict")
    found = predict({"x": [1.0, 2.0]})["predictions"]
    wanted = [each["predictions"] for each in estimator.predict(lambda: data.batch(2))]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    predict.session.close()


@pytest.mark.slow
def test_tutorial_network() -> None:
    from estimatorkit.compat.v1.examples.tutorials.mnist import mnist

    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, mnist.IMAGE_PIXELS])
    labels = tf.placeholder(tf.int32, [None])
    logits = mnist.inference(images, 8, 4)
    loss = mnist.loss(logits, labels)
    step, right = mnist.training(loss, 0.1), mnist.evaluation(logits, labels)
    names = [each.op.name for each in tf.trainable_variables()]
    assert names[:2] == ["hidden1/weights", "hidden1/biases"]
    random = np.random.default_rng(0)
    feeds = {images: random.random((10, 784)), labels: np.arange(mnist.NUM_CLASSES)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([step, loss], feeds)[1] for _ in range(20)]
        assert losses[-1] < losses[0]
        assert 0 <= session.run(right, feeds) <= 10
