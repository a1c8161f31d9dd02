"""`ClassificationOutput`, `RegressionOutput`, `PredictOutput`, `EvalOutput`: checks, signatures.

The words of errors and the content of signatures are those of TensorFlow 2.15.1's
`saved_model/model_utils/export_output.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.estimator import export
from estimatorkit.estimator.serving.export_outputs import TrainOutput
from estimatorkit.estimator.serving.serving_signatures import make_signatures
from estimatorkit.train.saving import saved_model_constants as constants


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _examples() -> dict[str, tf.Tensor]:
    return {"examples": tf.placeholder(tf.string, [None], name="examples")}


def _names(signature: Any) -> tuple[dict[str, str], dict[str, str], str]:
    inputs = {key: info.name for key, info in signature.inputs.items()}
    outputs = {key: info.name for key, info in signature.outputs.items()}
    return inputs, outputs, signature.method_name


def test_classification_output() -> None:
    scores = tf.placeholder(tf.float32, [None, 3], name="scores")
    classes = tf.placeholder(tf.string, [None, 3], name="classes")
    output = export.ClassificationOutput(scores, classes)
    assert (output.scores, output.classes) == (scores, classes)
    assert _names(output.as_signature_def(_examples())) == (
        {"inputs": "examples:0"},
        {"classes": "classes:0", "scores": "scores:0"},
        "tensorflow/serving/classify",
    )
    only = export.ClassificationOutput(scores=scores)
    assert _names(only.as_signature_def({"x": _examples()["examples"]}))[1] == {
        "scores": "scores:0"
    }


def test_regression_output() -> None:
    value = tf.placeholder(tf.float32, [None, 1], name="value")
    output = export.RegressionOutput(value=value)
    assert output.value is value
    assert _names(output.as_signature_def(_examples())) == (
        {"inputs": "examples:0"},
        {"outputs": "value:0"},
        "tensorflow/serving/regress",
    )


def test_predict_output_names_and_tuples() -> None:
    x, y = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.int64, name="y")
    assert set(export.PredictOutput(x).outputs) == {"output"}
    output = export.PredictOutput({"y": y, ("head", "logits"): x})
    assert _names(output.as_signature_def({"x": x})) == (
        {"x": "x:0"},
        {"y": "y:0", "head/logits": "x:0"},
        "tensorflow/serving/predict",
    )


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_only_examples_can_be_classified(kind: str) -> None:
    numbers = tf.placeholder(tf.float32, [None, 3])
    output: Any = (
        export.ClassificationOutput(scores=numbers)
        if kind == "classification"
        else export.RegressionOutput(numbers)
    )
    two = {**_examples(), "more": tf.placeholder(tf.string)}
    for inputs in (two, {"x": numbers}):
        with pytest.raises(ValueError, match=f"(?i){kind} signatures can only accept a single"):
            output.as_signature_def(inputs)


def test_wrong_tensors_raise() -> None:
    ids = tf.placeholder(tf.int64, [None])
    with pytest.raises(ValueError, match="Classification scores must be a float32 Tensor"):
        export.ClassificationOutput(scores=ids)
    with pytest.raises(ValueError, match=r"classes must be a string Tensor(.|\n)*as_string"):
        export.ClassificationOutput(classes=ids)
    with pytest.raises(ValueError, match="Cannot create a ClassificationOutput with empty"):
        export.ClassificationOutput()
    with pytest.raises(ValueError, match="Regression output value must be a float32 Tensor"):
        export.RegressionOutput(3.0)
    with pytest.raises(ValueError, match="Prediction output value must be a Tensor; got 3"):
        export.PredictOutput({"a": 3})
    with pytest.raises(ValueError, match="Prediction output key must be a string; got 1"):
        export.PredictOutput({1: ids})


def test_supervised_outputs_have_prefixes() -> None:
    x, loss = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, [], name="loss")
    output = export.EvalOutput(loss, {"a": x, "predictions_b": x}, {"mean": (x, tf.no_op())})
    inputs, outputs, method = _names(output.as_signature_def({"x": x}))
    assert (inputs, method) == ({"x": "x:0"}, constants.SUPERVISED_EVAL_METHOD_NAME)
    assert outputs == {
        "loss": "loss:0",
        "predictions/a": "x:0",
        "predictions_b": "x:0",
        "metrics/mean/value": "x:0",
        "metrics/mean/update_op": "metric_op_wrapper:0",
    }
    assert (
        TrainOutput(loss).as_signature_def({"x": x}).method_name == "tensorflow/supervised/training"
    )
    with pytest.raises(ValueError, match=r"metrics/mean output value must be a Tensor"):
        export.EvalOutput(metrics={"mean": (1.0, tf.no_op())})


def test_log_names_only_signatures_that_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="estimatorkit"):
        x = tf.placeholder(tf.float32, [None, 3])
        outputs = {
            "classes": export.ClassificationOutput(scores=x),
            "serving_default": export.ClassificationOutput(scores=x),
            "predict": export.PredictOutput({"scores": x}),
        }
        receiver = export.ServingInputReceiver({"x": x}, {"x": x})
        found = make_signatures(receiver, outputs, tf.estimator.ModeKeys.PREDICT)
    assert set(found) == {"predict", "serving_default"}
    assert "Signature 'classes' is not part of the export" in caplog.text
    assert "serving_default" not in caplog.text
