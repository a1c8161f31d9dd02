"""`contrib.learn`'s experiments run on `train_and_evaluate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from tests.estimator import scripted

learn = tf.contrib.learn
learn_runner = tf.contrib.learn.python.learn.learn_runner
SCORES = [9.0, 5.0, 3.0, 4.0, 6.0]


def experiment(model_dir: Any, **arguments: Any) -> Any:
    return learn.Experiment(
        **{
            "estimator": scripted.estimator(str(model_dir), SCORES),
            "train_input_fn": scripted.batches,
            "eval_input_fn": lambda: scripted.batches(2),
            "train_steps": 30,
            **arguments,
        }
    )


def test_experiment_runs(tmp_path: Path) -> None:
    """The newest form: run_config and hparams."""

    def experiment_fn(run_config: Any, hparams: Any) -> Any:
        return experiment(run_config.model_dir, train_steps=hparams.steps, eval_steps=None)

    config = learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=10)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (10, None)
    metrics, exports = learn_runner.run(
        experiment_fn, run_config=config, hparams=tf.contrib.training.HParams(steps=20)
    )
    assert (metrics["global_step"], metrics["loss"], exports) == (20, 3.0, [])
    lines = (tmp_path / "eval" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 2  # at each checkpoint


@pytest.mark.slow
def test_exports_at_end(tmp_path: Path) -> None:
    def serving_input_fn() -> Any:
        features = tf.placeholder(tf.float32, [None], "features")
        return learn.InputFnOps({"features": features}, None, {"features": features})

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        train_op = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        predictions = {"twice": 2.0 * features["features"]}
        loss = tf.reduce_mean(predictions["twice"])
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, export_outputs=outputs)

    def input_fn() -> Any:
        features = {"features": np.array([1, 2], np.float32)}
        return tf.data.Dataset.from_tensor_slices(features).batch(2)

    config = tf.estimator.RunConfig(save_checkpoints_steps=10, save_summary_steps=None)
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config)
    strategy = learn.make_export_strategy(serving_input_fn, exports_to_keep=1)
    _, exports = experiment(
        tmp_path,
        estimator=estimator,
        train_input_fn=lambda: input_fn().repeat(),
        eval_input_fn=input_fn,
        export_strategies=strategy,
    ).train_and_evaluate()
    (exported,) = (tmp_path / "export" / "Servo").glob("1*")
    assert exports == [os.fsencode(exported)]
    predict = tf.contrib.predictor.from_saved_model(str(exported))
    np.testing.assert_array_equal(predict({"features": [3.0]})["twice"], [6.0])


def test_min_eval_frequency_0_evaluates_at_end(tmp_path: Path) -> None:
    recorder = scripted.Recorder()
    metrics, exports = experiment(
        tmp_path, min_eval_frequency=0, export_strategies=[recorder]
    ).train_and_evaluate()
    assert (metrics["global_step"], recorder.asked) == (30, [(30, True)])
    assert len((tmp_path / "eval" / "metrics.jsonl").read_text().splitlines()) == 1
    assert exports == [str(tmp_path / "export/recorder/model.ckpt-30")]


def test_train_evaluate_and_test_separately(tmp_path: Path) -> None:
    stops: list[int] = []

    class Ends(tf.train.SessionRunHook):  # type: ignore[misc]
        def end(self, session: Any) -> None:
            stops.append(1)

    made = experiment(tmp_path)
    made.extend_train_hooks([Ends()])
    metrics, _ = made.test()
    assert metrics["global_step"] == 1
    made.train()
    assert made.evaluate(name="again")["global_step"] == 30
    assert (tmp_path / "eval_again").is_dir()
    assert len(stops) == 2
    assert (made.train_steps, made.eval_steps, made.eval_metrics) == (30, 100, None)
    recorder = scripted.Recorder()
    assert made.reset_export_strategies(recorder) == []
    assert made.reset_export_strategies() == [recorder]


def test_legacy_run_takes_output_dir(tmp_path: Path) -> None:
    estimator = learn_runner.run(experiment, str(tmp_path), "train")
    assert estimator.get_variable_value("global_step") == 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Must set value for `output_dir` or `run_config`"),
        ({"output_dir": "a", "run_config": learn.RunConfig()}, "Cannot provide both"),
        ({"run_config": learn.RunConfig()}, "Must set value for `model_dir`"),
        ({"output_dir": "a", "hparams": 3}, "Must set `run_config` to use `hparams`"),
        ({"output_dir": "a", "schedule": "trian"}, "did you mean 'train'"),
    ],
)
def test_run_errors(
    arguments: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=words):
        learn_runner.run(experiment, **arguments)


def test_other_errors(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="did not return an Experiment"):
        learn_runner.run(lambda folder: 3, str(tmp_path))
    with pytest.raises(TypeError, match="is not callable"):
        learn_runner.run(3, str(tmp_path))
    with pytest.raises(ValueError, match="`eval_metrics` must be `None`"):
        experiment(tmp_path, eval_metrics={})
    with pytest.raises(ValueError, match=r"must implement `tf\.estimator\.Estimator`"):
        experiment(tmp_path, estimator=3)
    with pytest.raises(ValueError, match="export_strategies must be made by"):
        experiment(tmp_path, export_strategies=[3])
    with pytest.raises(ValueError, match="default_output_alternative_key"):
        learn.make_export_strategy(None, "key")


def test_model_fn_may_compute_loss_in_prediction(tmp_path: Path) -> None:
    """`contrib.learn` gives it placeholders like the labels of the training."""

    def model_fn(features: Any, targets: Any, mode: str) -> Any:
        weight = tf.get_variable("w", initializer=2.0)
        scores = features * weight
        loss = tf.losses.mean_squared_error(targets, scores)
        step = tf.contrib.framework.get_global_step()
        train_op = tf.contrib.layers.optimize_loss(loss, step, 0.5, "SGD")
        return scores, loss, train_op

    def input_fn() -> Any:
        return tf.constant([[1.0]]), tf.constant([[1.0]])

    estimator = tf.contrib.learn.Estimator(model_fn, tmp_path)
    estimator.fit(input_fn=input_fn, steps=1)
    assert list(estimator.predict(input_fn=input_fn)) == [[1.0]]
