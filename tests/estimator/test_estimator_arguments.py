"""Arguments and results of estimators: parameters, steps, metrics of any structure."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.serving.predictor import load_predictor
from estimatorkit.estimator.spec import EstimatorSpec

QUIET: Any = {"log_step_count_steps": None}


def rows() -> Any:
    return tf.data.Dataset.from_tensors(({"x": [1.0, 2.0]}, [2.0, 4.0])).repeat(5)


def constant_model(value: float, metrics: Any = None) -> Any:
    """A model function whose only variable, `x`, starts at a value and is not trained."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        x = tf.get_variable("x", initializer=value)
        return EstimatorSpec(
            mode,
            {"x": tf.reshape(x + 1.0, [1])},
            tf.reduce_mean(features["x"]),
            tf.assign_add(tf.train.get_global_step(), 1),
            {"mean": tf.metrics.mean(x + 1.0)} if metrics is None else metrics(),
        )

    return model_fn


def events(folder: str | Path) -> list[Any]:
    paths = sorted(Path(folder).glob("events*"))
    return [each for path in paths for each in tf.train.summary_iterator(str(path))]


def tags(folder: str | Path) -> set[str]:
    return {value.tag for event in events(folder) for value in event.summary.value}


class Parameters:
    def __init__(self) -> None:
        self.rates = [1]


def test_params_are_deep_copied(tmp_path: Path) -> None:
    given = Parameters()
    seen = []

    def model_fn(mode: str, params: Any, features: Any, labels: Any) -> EstimatorSpec:
        seen.append((params.rates, set(features)))
        return constant_model(1.0)(features, labels, mode)  # type: ignore[no-any-return]

    estimator = Estimator(model_fn, tmp_path, RunConfig(**QUIET), params=given)
    given.rates.append(2)
    assert estimator.params.rates == [1]
    assert estimator.params is not estimator.params
    estimator.train(rows, steps=1)
    assert seen == [([1], {"x"})]


@pytest.mark.parametrize("steps", [0, -1, -0.5, float("nan"), float("inf"), True, "3"])
def test_steps_must_be_positive(steps: Any, tmp_path: Path) -> None:
    estimator = Estimator(constant_model(1.0), tmp_path)
    with pytest.raises(ValueError, match="Must specify steps > 0"):
        estimator.train(rows, steps=steps)
    with pytest.raises(ValueError, match="Must specify max_steps > 0"):
        estimator.train(rows, max_steps=steps)
    with pytest.raises(ValueError, match="Must specify steps > 0"):
        estimator.evaluate(rows, steps=steps)
    with pytest.raises(ValueError, match="Must specify max_steps > 0"):
        tf.estimator.TrainSpec(rows, max_steps=steps)
    with pytest.raises(ValueError, match="Must specify steps > 0"):
        tf.estimator.EvalSpec(rows, steps=steps)


def test_steps_of_any_integer_type(tmp_path: Path) -> None:
    estimator = Estimator(constant_model(1.0), tmp_path, RunConfig(**QUIET))
    estimator.train(rows, steps=np.int64(2))
    estimator.train(rows, steps=1e0)  # type: ignore[arg-type]
    assert estimator.get_variable_value("global_step") == 3
    estimator.train(rows, steps=3 / 2)  # type: ignore[arg-type]
    assert estimator.get_variable_value("global_step") == 5
    assert tf.estimator.TrainSpec(rows, max_steps=5 / 2).max_steps == 3
    assert tf.estimator.EvalSpec(rows, steps=0.5).steps == 1


def test_non_chief_config(tmp_path: Path) -> None:
    class Worker(RunConfig):
        @property
        def is_chief(self) -> bool:
            return False

    begun = []

    class Hook(tf.train.SessionRunHook):
        def __init__(self, name: str) -> None:
            self.name = name

        def begin(self) -> None:
            begun.append(self.name)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        made = constant_model(1.0)(features, labels, mode)
        return made._replace(  # type: ignore[no-any-return]
            training_chief_hooks=[Hook("chief")], training_hooks=[Hook("all")]
        )

    estimator = Estimator(model_fn, tmp_path, Worker(**QUIET))
    estimator.train(rows, steps=1)
    assert begun == ["all"]
    assert estimator.latest_checkpoint() is None


def test_evaluator_does_not_train(tmp_path: Path) -> None:
    class Evaluator(RunConfig):
        @property
        def task_type(self) -> str:
            return "evaluator"

    with pytest.raises(ValueError, match="train_and_evaluate"):
        Estimator(constant_model(1.0), tmp_path, Evaluator()).train(rows, steps=1)


def test_model_summaries_are_written(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        tf.summary.scalar("own", tf.reduce_sum(features["x"]))
        return constant_model(1.0)(features, labels, mode)  # type: ignore[no-any-return]

    config = RunConfig(save_summary_steps=2, **QUIET)
    Estimator(model_fn, tmp_path, config).train(rows)
    written = {
        event.step: value.simple_value
        for event in events(tmp_path)
        for value in event.summary.value
        if value.tag == "own"
    }
    assert written == {1: 3.0, 3: 3.0, 5: 3.0}
    assert "loss" in tags(tmp_path)


def test_nested_metrics_and_summaries(tmp_path: Path) -> None:
    def metrics() -> Any:
        nested = ((tf.constant(2.0), tf.constant(1)), tf.constant(3.0, tf.float64))
        image = tf.summary.image("image", tf.zeros([3, 2, 2, 1]), collections=[])
        return {
            "nested": (nested, tf.no_op()),
            "vector": tf.metrics.mean_tensor(tf.constant([1.0, 0.5])),
            "image": (image, tf.no_op()),
            "number": (tf.constant(4.0), tf.no_op()),
        }

    estimator = Estimator(constant_model(1.0, metrics), tmp_path, RunConfig(**QUIET))
    estimator.train(rows, steps=1)
    found = estimator.evaluate(rows, steps=2)
    assert found["nested"] == ((2.0, 1), 3.0)
    assert found["vector"].tolist() == [1.0, 0.5]
    values = {v.tag: v for event in events(tmp_path / "eval") for v in event.summary.value}
    assert {"image/0", "image/1", "image/2", "number", "loss"} <= set(values)
    assert tf.make_ndarray(values["vector"].tensor).tolist() == [1.0, 0.5]
    path = estimator.latest_checkpoint()
    assert tf.make_ndarray(values["checkpoint_path"].tensor).item().decode() == path
    line = json.loads((tmp_path / "eval" / "metrics.jsonl").read_text())
    assert line["nested"] == [[2.0, 1], 3.0]
    assert line["vector"] == [1.0, 0.5]
    assert "image" not in line


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "export"])
def test_warm_started_but_never_trained(kind: str, tmp_path: Path) -> None:
    def receiver() -> Any:
        x = {"x": tf.placeholder(tf.float32, [None])}
        return tf.estimator.export.ServingInputReceiver(x, x)

    first = Estimator(constant_model(42.0), tmp_path / "first", RunConfig(**QUIET))
    first.train(rows, steps=3)
    start: Any = first.model_dir
    if kind == "export":
        start = first.export_saved_model(tmp_path / "exported", receiver)
    warm = Estimator(constant_model(36.0), tmp_path / "warm", warm_start_from=start)
    found = warm.evaluate(rows, steps=1)
    assert (found["mean"], found["global_step"]) == (43.0, 0)
    assert next(warm.predict(rows))["x"] == 43.0
    exported = load_predictor(warm.export_saved_model(tmp_path / "again", receiver))
    assert exported({"x": [1.0]})["x"].tolist() == [43.0]
    assert warm.latest_checkpoint() is None
    warm.train(rows, steps=2)
    found = warm.evaluate(rows, steps=1)
    assert (found["mean"], found["global_step"]) == (43.0, 2)


def test_checkpoint_is_required_without_warm_start(tmp_path: Path) -> None:
    estimator = Estimator(constant_model(1.0), tmp_path)
    with pytest.raises(ValueError, match="Could not find trained model"):
        estimator.evaluate(rows)


@pytest.mark.parametrize("brought_by", ["init_from_checkpoint", "init_fn", "no variables"])
def test_model_with_initial_values_needs_no_training(brought_by: str, tmp_path: Path) -> None:
    first = Estimator(constant_model(42.0), tmp_path / "first", RunConfig(**QUIET))
    first.train(rows, steps=3)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if brought_by == "no variables":
            value = tf.constant(43.0)
            return EstimatorSpec(mode, {"x": features["x"] * 0 + value}, loss=value)
        spec = constant_model(36.0)(features, labels, mode)
        if brought_by == "init_from_checkpoint":
            tf.train.init_from_checkpoint(first.model_dir, {"/": "/"})
            return spec  # type: ignore[no-any-return]
        (variable,) = tf.trainable_variables()
        value = tf.placeholder(tf.float32, [])
        assign = variable.assign(value)

        def init_fn(scaffold: Any, session: Any) -> None:
            session.run(assign, {value: 42.0})

        return spec._replace(scaffold=tf.train.Scaffold(init_fn=init_fn))  # type: ignore[no-any-return]

    estimator = Estimator(model_fn, tmp_path / "second")
    assert next(estimator.predict(rows))["x"] == 43.0
    assert estimator.evaluate(rows, steps=1)["loss"] is not None
    with pytest.raises(ValueError, match="Could not find trained model"):
        estimator.export_saved_model(tmp_path / "exported", rows)


def test_shape_mismatch_uses_tensorflow_message(tmp_path: Path) -> None:
    Estimator(constant_model(1.0), tmp_path, RunConfig(**QUIET)).train(rows, steps=1)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        x = tf.get_variable("x", [2])
        return EstimatorSpec(
            mode, x, tf.reduce_sum(x), tf.assign_add(tf.train.get_global_step(), 1)
        )

    message = "Restoring from checkpoint failed.*a mismatch between"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        Estimator(model_fn, tmp_path).train(rows, steps=1)


@pytest.mark.slow
def test_feature_keys_of_mixed_types(tmp_path: Path) -> None:
    def given() -> Any:
        return {"a": tf.constant([1.0]), 42: tf.constant([43.0])}, None

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        x = features["a"] + features[42]
        return EstimatorSpec(
            mode, x, tf.reduce_sum(x), tf.assign_add(tf.train.get_global_step(), 1)
        )

    def receiver() -> Any:
        features: Any = {"a": tf.placeholder(tf.float32, [1]), 42: tf.placeholder(tf.float32, [1])}
        received = {"a": features["a"], "b": features[42]}
        return tf.estimator.export.ServingInputReceiver(features, received)

    estimator = Estimator(model_fn, tmp_path / "model", RunConfig(**QUIET)).train(given, steps=1)
    served = load_predictor(estimator.export_saved_model(tmp_path / "exported", receiver))
    assert served({"a": [1.0], "b": [2.0]})["output"].tolist() == [3.0]


def test_single_prediction_tensor_is_exported_for_evaluation(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        made = constant_model(1.0)(features, labels, mode)
        return made._replace(predictions=made.predictions["x"])  # type: ignore[no-any-return]

    build = tf.estimator.experimental.build_raw_supervised_input_receiver_fn
    receiver = build({"x": tf.constant([1.0])}, tf.constant([1.0]))
    estimator = Estimator(model_fn, tmp_path / "model", RunConfig(**QUIET)).train(rows, steps=1)
    path = estimator.experimental_export_all_saved_models(tmp_path / "out", {"eval": receiver})
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        meta = tf.saved_model.loader.load(session, ["eval"], path.decode())
    assert set(meta.signature_def["eval"].outputs) >= {"loss", "predictions"}


def forgetful(features: Any, labels: Any, mode: str) -> Any:
    tf.reduce_sum(features["x"])


@pytest.mark.parametrize("given", [forgetful, functools.partial(forgetful)])
def test_missing_return_names_the_function_and_its_line(given: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model_fn should return an EstimatorSpec") as caught:
        tf.estimator.Estimator(given, tmp_path).train(rows, steps=1)
    line = forgetful.__code__.co_firstlineno
    assert f"made at:  {__file__}:{line}, in forgetful\n" in str(caught.value)
    assert "hint:     is a return missing for mode 'train'?" in str(caught.value)


def test_model_fn_that_returns_something_else_is_shown_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="received: 'spec'"):
        tf.estimator.Estimator(lambda features, labels, mode: "spec", tmp_path).train(rows, steps=1)


def test_model_dir_without_nul() -> None:
    with pytest.raises(ValueError, match="model_dir has a NUL character"):
        Estimator(constant_model(1.0), "a\0b")
