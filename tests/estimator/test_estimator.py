"""`Estimator`: training, evaluation, prediction, and the functions it calls."""

from __future__ import annotations

import functools
import gc
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.best_epoch import train_to_best
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.runtime.steps.single_steps import SingleSteps
from estimatorkit.storage.checkpoint import latest_checkpoint
from tests.threads import StartedThreads
from tests.train import counting
from tests.train.counting import Recorder, no_input

SAVING = {"save_checkpoints_steps": 1000}


def features_of(count: int, batch: int = 2) -> Callable[[], Dataset]:
    """An input function: 1, 2, ..., `count` in batches."""
    values = np.arange(1, count + 1, dtype=np.float32)
    return lambda: Dataset.from_tensor_slices(values).batch(batch)


@pytest.fixture
def trained(tmp_path: Path) -> Estimator:
    """The counting estimator after three steps: its predictions are three times the features."""
    return counting.estimator(tmp_path, config=SAVING).train(no_input, steps=3)


# -- training


class TestTrain:
    def test_steps_are_additional(self, tmp_path: Path) -> None:
        estimator = counting.estimator(tmp_path, config=SAVING)
        assert estimator.train(no_input, steps=3) is estimator
        estimator.train(no_input, steps=4)
        assert estimator.get_variable_value("global_step") == 7

    def test_max_steps_are_total(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        estimator = counting.estimator(tmp_path, config=SAVING)
        estimator.train(no_input, steps=3)
        estimator.train(no_input, max_steps=5)
        assert estimator.get_variable_value("global_step") == 5
        with caplog.at_level(logging.INFO, "estimatorkit"):
            for max_steps in (5, 4):
                estimator.train(_never_called, max_steps=max_steps)
        assert caplog.text.count("Skipping training since max_steps has already saved.") == 2
        assert estimator.get_variable_value("global_step") == 5

    def test_ends_with_input(self, tmp_path: Path) -> None:
        recorder = Recorder()
        estimator = counting.estimator(tmp_path, uses_input=True, config=SAVING)
        estimator.train(features_of(7), [recorder])
        assert len(recorder.losses) == 4
        assert estimator.latest_checkpoint() == str(tmp_path / "model.ckpt-4")

    @pytest.mark.parametrize(("executor", "partial"), [("auto", 0), ("xla", 1)])
    def test_compilations_for_short_last_batch(
        self, tmp_path: Path, executor: str, partial: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", executor)
        for compilations, count in ((1, 40), (1 + partial, 41)):
            recorder = Recorder()
            estimator = counting.estimator(tmp_path, uses_input=True)
            estimator.train(features_of(count), [recorder])
            found = recorder.session.state.compilations
            assert {name: found[name] for name in found if "step" in name and "/" not in name} == {
                "train_step": compilations
            }

    def test_no_elements(self, tmp_path: Path) -> None:
        estimator = counting.estimator(tmp_path, uses_input=True, config=SAVING)
        for hooks in ([], [AskEachStep()]):
            with pytest.raises(ValueError, match="the training input has no elements") as caught:
                estimator.train(lambda: features_of(4)().take(0), hooks, steps=3)
            assert "look at input_fn" in str(caught.value)

    def test_input_error_keeps_traceback(self, tmp_path: Path, threads: StartedThreads) -> None:
        def generator() -> Any:
            yield from ([1.0], [2.0])
            raise KeyError("line 3 of my file")

        estimator = counting.estimator(tmp_path, uses_input=True)
        with pytest.raises(KeyError, match="line 3 of my file") as caught:
            estimator.train(lambda: Dataset.from_generator(generator, tf.float32, [1]))
        assert "generator" in [frame.name for frame in caught.traceback]
        assert not threads.running("estimatorkit")

    def test_last_loss_is_logged(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "estimatorkit"):
            counting.estimator(tmp_path).train(no_input, steps=5)
        assert "Loss for final step: 4.0." in caplog.text

    def test_nested_training_raises(self, tmp_path: Path) -> None:
        estimator = counting.estimator(tmp_path)

        class Nested(tf.train.SessionRunHook):  # type: ignore[misc]
            def after_create_session(self, session: Any, coord: Any) -> None:
                estimator.train(no_input, steps=1)

        with pytest.raises(tf.errors.FailedPreconditionError, match="has a writer already"):
            estimator.train(no_input, [Nested()], steps=1)

    def test_threads_and_session_are_released(
        self, tmp_path: Path, threads: StartedThreads
    ) -> None:
        recorder = Recorder()
        estimator = counting.estimator(tmp_path, uses_input=True)
        estimator.train(lambda: features_of(9000)().repeat(), [recorder], steps=20)
        assert not threads.running("estimatorkit")
        with pytest.raises(RuntimeError, match="closed"):
            recorder.session.run("value:0")

    def test_default_graph_is_unchanged(self, tmp_path: Path) -> None:
        before = tf.get_default_graph()
        counting.estimator(tmp_path).train(no_input, steps=1)
        assert tf.get_default_graph() is before
        assert before.get_operations() == []


class AskEachStep(tf.train.SessionRunHook):  # type: ignore[misc]
    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs("value:0")


def _never_called() -> Any:
    raise AssertionError("the input function was called")


# -- evaluation


class TestEvaluate:
    def test_returns_metrics_loss_and_step(self, trained: Estimator) -> None:
        metrics = trained.evaluate(features_of(5))
        assert metrics == {"mean": 3.0, "loss": 3.0, "global_step": 3}
        assert isinstance(metrics["mean"], np.float32)
        assert isinstance(metrics["global_step"], np.int64)

    def test_loss_is_mean_over_batches(self, tmp_path: Path) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            step = tf.assign_add(tf.train.get_global_step(), 1)
            return EstimatorSpec(mode, loss=tf.reduce_mean(features), train_op=step)

        estimator = Estimator(model_fn, tmp_path, RunConfig(save_summary_steps=None))
        estimator.train(features_of(2), steps=1)
        # (1 + 2) / 2, (3 + 4) / 2 and 5: batches count alike, as in TensorFlow
        assert estimator.evaluate(features_of(5))["loss"] == pytest.approx((1.5 + 3.5 + 5) / 3)

    def test_steps_count_batches(self, trained: Estimator) -> None:
        assert trained.evaluate(features_of(100), steps=2)["mean"] == 2.5
        assert trained.evaluate(features_of(5), steps=100)["mean"] == 3.0

    def test_endless_input(self, trained: Estimator) -> None:
        assert trained.evaluate(lambda: features_of(4)().repeat(), steps=6)["mean"] == 2.5

    def test_constant_features(self, trained: Estimator) -> None:
        assert trained.evaluate(no_input)["mean"] == 1.5
        assert trained.evaluate(no_input, steps=3)["mean"] == 1.5

    def test_older_checkpoint(self, tmp_path: Path) -> None:
        config = {"save_checkpoints_steps": 2}
        estimator = counting.estimator(tmp_path, config=config).train(no_input, steps=6)
        metrics = estimator.evaluate(no_input, checkpoint_path=str(tmp_path / "model.ckpt-2"))
        assert metrics["loss"] == metrics["global_step"] == 2

    def test_names_have_folders(self, trained: Estimator, tmp_path: Path) -> None:
        for name in (None, "test", "test"):
            trained.evaluate(features_of(5), name=name)
        assert trained.eval_dir() == str(tmp_path / "eval")
        assert trained.eval_dir("test") == str(tmp_path / "eval_test")
        lines = (tmp_path / "eval_test" / "metrics.jsonl").read_text().splitlines()
        assert len(lines) == 2
        assert json.loads(lines[0])["mean"] == 3.0
        assert len((tmp_path / "eval" / "metrics.jsonl").read_text().splitlines()) == 1

    def test_no_elements(self, trained: Estimator) -> None:
        with pytest.raises(ValueError, match="the evaluation input has no elements"):
            trained.evaluate(lambda: Dataset.from_tensor_slices(np.zeros(0, np.float32)).batch(2))

    def test_few_batches_are_not_compiled(self, trained: Estimator) -> None:
        recorder = Recorder()
        trained.evaluate(features_of(5), hooks=[recorder])
        assert recorder.session.state.compilations["evaluation_step"] == 0

    def test_evaluations_of_epochs_are_compiled_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are many: NumPy would take a tenth of the compilation's time first."""
        firsts: list[Any] = []
        brief = SingleSteps.brief

        def noted(*given: Any) -> Any:
            if (made := brief(*given)) is not None:
                firsts.append(made)
            return made

        monkeypatch.setattr(SingleSteps, "brief", noted)
        config = {"save_checkpoints_steps": 1, "keep_checkpoint_max": 4}
        estimator = counting.estimator(tmp_path, config=config)
        train_to_best(estimator, no_input, features_of(4), 2, 2, None)
        assert not firsts
        counting.estimator(tmp_path, config=config).evaluate(features_of(5))
        assert firsts

    @pytest.mark.slow
    def test_short_last_batch_is_one_more_compilation(
        self, trained: Estimator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "xla")
        for compilations, count in ((1, 40), (2, 41)):
            recorder = Recorder()
            trained.evaluate(features_of(count), hooks=[recorder])
            assert recorder.session.state.compilations["evaluation_step"] == compilations

    @pytest.mark.slow
    def test_changes_nothing(
        self, threads: StartedThreads, trained: Estimator, tmp_path: Path
    ) -> None:
        before = sorted(path.name for path in tmp_path.iterdir())
        first = trained.evaluate(features_of(5))
        assert trained.evaluate(features_of(5)) == first
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "eval"])
        assert trained.get_variable_value("global_step") == 3
        assert not threads.running("estimatorkit")

    def test_logged_lines(self, trained: Estimator, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "estimatorkit"):
            trained.evaluate(features_of(5))
        assert "Starting evaluation at " in caplog.text
        assert (
            "Saving dict for global step 3: global_step = 3, loss = 3.0, mean = 3.0" in caplog.text
        )

    @pytest.mark.slow
    def test_metric_objects(self, tmp_path: Path) -> None:
        """Anything with `result()` and `updates`, as Keras' metrics have."""

        class Largest:
            def __init__(self, values: Any) -> None:
                with tf.variable_scope("largest"):
                    self._seen = tf.get_variable(
                        "seen",
                        [],
                        initializer=tf.zeros_initializer(),
                        collections=["local_variables"],
                        trainable=False,
                    )
                larger = tf.maximum(self._seen, tf.reduce_max(values))
                self.updates = [tf.assign(self._seen, larger)]

            def result(self) -> Any:
                return tf.identity(self._seen)

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            step = tf.assign_add(tf.train.get_global_step(), 1)
            metrics = {"largest": Largest(features)} if mode == ModeKeys.EVAL else None
            return EstimatorSpec(mode, None, tf.reduce_sum(features), step, metrics)

        estimator = Estimator(model_fn, tmp_path, RunConfig(save_summary_steps=None))
        estimator.train(features_of(2), steps=1)
        assert estimator.evaluate(features_of(9))["largest"] == 9


# -- prediction


class TestPredict:
    def test_yields_single_examples(self, trained: Estimator) -> None:
        predictions = list(trained.predict(features_of(5)))
        assert predictions == [{"scaled": 3.0 * n} for n in range(1, 6)]

    def test_yields_batches(self, trained: Estimator) -> None:
        batches = list(trained.predict(features_of(5), yield_single_examples=False))
        assert [batch["scaled"].tolist() for batch in batches] == [[3, 6], [9, 12], [15]]

    @pytest.mark.parametrize("keys", ["b", ["b"], ["b", "unknown"], ("b",)])
    def test_predict_keys(self, tmp_path: Path, keys: Any) -> None:
        estimator = two_predictions(tmp_path)
        assert list(estimator.predict(features_of(2), keys)) == [{"b": 2.0}, {"b": 4.0}]

    def test_unknown_keys_raise(self, tmp_path: Path) -> None:
        estimator = two_predictions(tmp_path)
        with pytest.raises(ValueError, match=r"at least one output from dict_keys\(\['a', 'b'\]\)"):
            next(estimator.predict(features_of(2), ["c"]))

    def test_single_tensor_predictions(self, tmp_path: Path) -> None:
        estimator = two_predictions(tmp_path, alone=True)
        assert list(estimator.predict(features_of(3))) == [1.0, 2.0, 3.0]
        with pytest.raises(ValueError, match="predict_keys argument is not valid"):
            next(estimator.predict(features_of(3), ["a"]))

    def test_labels_are_ignored(self, trained: Estimator) -> None:
        def input_fn() -> Dataset:
            return Dataset.from_tensor_slices((np.ones(3, np.float32), np.arange(3))).batch(3)

        assert len(list(trained.predict(input_fn))) == 3

    def test_constant_features_are_one_batch(self, trained: Estimator) -> None:
        assert list(trained.predict(no_input)) == [{"scaled": 3.0}, {"scaled": 6.0}]

    def test_older_checkpoint(self, tmp_path: Path) -> None:
        estimator = counting.estimator(tmp_path, config={"save_checkpoints_steps": 2})
        estimator.train(no_input, steps=6)
        path = tmp_path / "model.ckpt-4"
        assert next(estimator.predict(no_input, checkpoint_path=path)) == {"scaled": 4.0}

    def test_empty_input_yields_nothing(self, trained: Estimator) -> None:
        assert list(trained.predict(lambda: features_of(5)().take(0))) == []

    @pytest.mark.slow
    def test_abandoned_prediction_releases_resources(
        self, threads: StartedThreads, trained: Estimator
    ) -> None:
        recorder = Recorder()
        predictions = trained.predict(
            lambda: features_of(9000)().prefetch(2).repeat(), hooks=[recorder]
        )
        next(predictions)
        del predictions
        gc.collect()
        assert recorder.calls == ["begin", "after_create_session", "close"]
        with pytest.raises(RuntimeError, match="closed"):
            recorder.session.run("value:0")
        assert not threads.running("estimatorkit")

    def test_concurrent_predictions(self, trained: Estimator) -> None:
        one, two = (trained.predict(features_of(3)) for _ in range(2))
        pairs = [(a["scaled"], b["scaled"]) for a, b in zip(one, two, strict=True)]
        assert pairs == [(3, 3), (6, 6), (9, 9)]

    def test_untrained_model_raises(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="Could not find trained model"):
            next(counting.estimator(tmp_path).predict(features_of(1)))


def two_predictions(model_dir: Path, *, alone: bool = False) -> Estimator:
    """A trained estimator that predicts the features as 'a' and twice them as 'b'."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        predictions = features if alone else {"a": features, "b": features * 2.0}
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, predictions, tf.reduce_sum(features), step)

    estimator = Estimator(model_fn, model_dir, RunConfig(save_summary_steps=None))
    return estimator.train(no_input, steps=1)


# -- what it knows


class TestVariables:
    def test_names_and_values(self, trained: Estimator) -> None:
        assert trained.get_variable_names() == ["global_step", "x"]
        assert trained.get_variable_value("x") == 3.0
        with pytest.raises(tf.errors.NotFoundError, match="'y' is not in the checkpoint"):
            trained.get_variable_value("y")

    def test_before_training_raises(self, tmp_path: Path) -> None:
        estimator = counting.estimator(tmp_path)
        assert estimator.latest_checkpoint() is None
        for ask in (estimator.get_variable_names, lambda: estimator.get_variable_value("x")):
            with pytest.raises(ValueError, match="Could not find trained model in model_dir"):
                ask()

    def test_latest_checkpoint(self, trained: Estimator, tmp_path: Path) -> None:
        assert trained.latest_checkpoint() == str(tmp_path / "model.ckpt-3")
        assert latest_checkpoint(tmp_path) == trained.latest_checkpoint()


class TestModelDir:
    def test_temporary_folder_is_created_and_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            estimator = Estimator(counting.model_fn, params={})
        assert Path(estimator.model_dir).is_dir()
        assert f"temporary folder as model directory: {estimator.model_dir}" in caplog.text
        Path(estimator.model_dir).rmdir()

    def test_from_config(self, tmp_path: Path) -> None:
        for config in (RunConfig(model_dir=str(tmp_path)), RunConfig(model_dir=tmp_path)):
            for model_dir in (None, tmp_path, str(tmp_path)):
                estimator = Estimator(counting.model_fn, model_dir, config)
                assert estimator.model_dir == estimator.config.model_dir == str(tmp_path)

    def test_is_created_when_needed(self, tmp_path: Path) -> None:
        folder = tmp_path / "a b" / "ü"
        counting.estimator(folder, config=SAVING).train(no_input, steps=1)
        assert latest_checkpoint(folder) == str(folder / "model.ckpt-1")

    def test_repr(self, tmp_path: Path) -> None:
        estimator = counting.estimator(tmp_path)
        assert repr(estimator) == f"Estimator(model_dir={str(tmp_path)!r})"


def test_params_and_config_are_copies(tmp_path: Path) -> None:
    seen = []

    def model_fn(features: Any, mode: str, params: dict[str, Any], config: Any) -> EstimatorSpec:
        seen.append(params["layers"])
        params["layers"].append(9)
        assert isinstance(config, RunConfig)
        assert config.model_dir == str(tmp_path)
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, loss=tf.constant(1.0), train_op=step)

    estimator = Estimator(model_fn, tmp_path, params={"layers": [4]})
    estimator.params["layers"].append(5)
    for _ in range(2):
        estimator.train(no_input, steps=1)
    assert seen == [[4, 9], [4, 9]]
    assert estimator.params == {"layers": [4]}


# -- input functions


class Seen:
    """A model function that notes what it is given; `run` trains with an input function."""

    def __init__(self, model_dir: Path) -> None:
        self._estimator = Estimator(
            self.model_fn, model_dir, RunConfig(tf_random_seed=8), {"rows": 6}
        )

    def model_fn(self, features: Any, labels: Any, mode: str, params: Any) -> EstimatorSpec:
        self.features, self.labels = features, labels
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, loss=tf.constant(1.0), train_op=step)

    def run(self, input_fn: Callable[..., Any]) -> Seen:
        self._estimator.train(input_fn, steps=1)
        return self


class TestInput:
    @pytest.fixture
    def seen(self, tmp_path: Path) -> Seen:
        return Seen(tmp_path)

    def test_dataset_of_pairs(self, seen: Seen) -> None:
        data = Dataset.from_tensor_slices(({"a": [1.0], "b": [2]}, [True])).batch(1)
        seen.run(lambda: data)
        assert set(seen.features) == {"a", "b"}
        assert seen.features["b"].dtype == tf.int32
        assert seen.labels.dtype == tf.bool

    def test_dataset_of_features(self, seen: Seen) -> None:
        seen.run(lambda: Dataset.from_tensor_slices({"a": [1.0]}).batch(1))
        assert set(seen.features) == {"a"}
        assert seen.labels is None

    def test_tensors(self, seen: Seen) -> None:
        seen.run(lambda: ({"a": tf.zeros([2])}, tf.ones([2])))
        assert seen.features["a"].shape == [2]
        assert seen.labels.shape == [2]
        seen.run(lambda: [tf.zeros([3]), None])
        assert (seen.features.shape, seen.labels) == ([3], None)

    def test_tensors_without_labels(self, seen: Seen) -> None:
        seen.run(lambda: {"a": tf.zeros([2])})
        assert (set(seen.features), seen.labels) == ({"a"}, None)

    def test_iterator_get_next(self, seen: Seen) -> None:
        seen.run(lambda: features_of(4)().make_one_shot_iterator().get_next())
        assert seen.features.dtype == tf.float32

    @pytest.mark.parametrize("wanted", ["mode", "params", "config", "config, mode, params"])
    def test_gets_requested_arguments(self, seen: Seen, wanted: str) -> None:
        given: dict[str, Any] = {}

        def mode(mode: str) -> Any:
            given.update(mode=mode)
            return no_input()

        def params(params: Any) -> Any:
            given.update(params=params)
            return no_input()

        def config(config: Any) -> Any:
            given.update(config=config)
            return no_input()

        def every(config: Any, mode: str, params: Any) -> Any:
            given.update(config=config, mode=mode, params=params)
            return no_input()

        functions = {"mode": mode, "params": params, "config": config}
        seen.run(functions.get(wanted, every))
        assert sorted(given) == sorted(wanted.split(", "))
        assert given.get("mode", "train") == "train"
        assert given.get("params", {"rows": 6}) == {"rows": 6}
        assert isinstance(given.get("config", RunConfig()), RunConfig)

    def test_kinds_of_callables(self, seen: Seen) -> None:
        def rows(count: int, mode: str = "?") -> Any:
            assert mode == "train"
            return tf.zeros([count])

        def default(count: int = 3) -> Any:
            return tf.zeros([count])

        class Callable_:
            def __call__(self, params: Any) -> Any:
                return tf.zeros([params["rows"]])

        assert seen.run(functools.partial(rows, 5)).features.shape == [5]
        assert seen.run(functools.partial(rows, count=4)).features.shape == [4]
        assert seen.run(Callable_()).features.shape == [6]
        assert seen.run(default).features.shape == [3]

    def test_graph_seed_comes_from_config(self, seen: Seen) -> None:
        seeds = []

        def input_fn() -> Any:
            seeds.append(tf.get_default_graph().seed)
            return no_input()

        seen.run(input_fn)
        assert seeds == [8]  # and it is called once

    def test_dataset_is_not_callable(self, seen: Seen) -> None:
        with pytest.raises(TypeError, match=r"(?s)input_fn must be a function.*lambda: dataset"):
            seen.run(features_of(3)())  # type: ignore[arg-type]


# -- model functions


def step_spec(mode: str, **changes: Any) -> EstimatorSpec:
    """What a model function returns that learns nothing."""
    made: dict[str, Callable[[], Any]] = {
        "loss": lambda: tf.constant(1.0),
        "predictions": lambda: {"a": tf.zeros([2])},
        "train_op": lambda: tf.assign_add(tf.train.get_global_step(), 1),
        **changes,
    }
    return EstimatorSpec(mode, **{name: make() for name, make in made.items()})


class TestModelFn:
    def test_fewer_arguments(self, tmp_path: Path) -> None:
        def model_fn(features: Any) -> EstimatorSpec:
            return step_spec("train")

        Estimator(model_fn, tmp_path).train(no_input, steps=1)

    def test_own_keyword_arguments(self, tmp_path: Path) -> None:
        def model_fn(features: Any, labels: Any, mode: str, units: int, rate: float) -> Any:
            assert (units, rate) == (4, 0.1)
            return step_spec(mode)

        bound = functools.partial(model_fn, units=4, rate=0.1)
        Estimator(bound, tmp_path).train(no_input, steps=1)

    def test_method_and_callable_object(self, tmp_path: Path) -> None:
        class Model:
            def build(self, features: Any, mode: str) -> EstimatorSpec:
                return step_spec(mode)

            __call__ = build

        for model_fn in (Model().build, Model()):
            Estimator(model_fn, tmp_path).train(no_input, steps=1)

    def test_bound_method(self, tmp_path: Path) -> None:
        estimator = counting.estimator(tmp_path, by=3)
        with tf.Graph().as_default():
            tf.train.create_global_step()
            spec = estimator.model_fn(tf.zeros([2]), None, ModeKeys.EVAL, estimator.config)
        assert spec.mode == ModeKeys.EVAL

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"loss": lambda: None}, ValueError, r"Missing loss\."),
            ({"loss": lambda: tf.zeros([3])}, ValueError, "Loss must be scalar, given: Tensor"),
            (
                {"eval_metric_ops": lambda: {"m": tf.constant(1.0)}},
                TypeError,
                r"must be \(metric_value, update_op\) tuples, given: .* for key: m",
            ),
            (
                {"eval_metric_ops": lambda: {"m": (1.0, tf.no_op())}},
                TypeError,
                "metric_value must be Operation or Tensor, given: 1.0",
            ),
            (
                {"eval_metric_ops": lambda: {"m": (tf.constant(1.0), 2)}},
                TypeError,
                "update_op must be Operation or Tensor, given: 2",
            ),
            ({"eval_metric_ops": lambda: [3]}, TypeError, "eval_metric_ops must be a dict"),
            ({"predictions": lambda: {"a": 3}}, TypeError, r"predictions\[a\] must be Tensor"),
            *(
                (
                    {"eval_metric_ops": lambda name=name: {name: tf.metrics.mean([1.0])}},
                    ValueError,
                    f"Metric with name {quoted} is not allowed",
                )
                for name, quoted in (("loss", '"loss"'), ("global_step", "`global_step`"))
            ),
        ],
    )
    def test_evaluation_requirements(
        self, tmp_path: Path, changes: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        def model_fn(features: Any, mode: str) -> EstimatorSpec:
            return step_spec(mode, **(changes if mode == ModeKeys.EVAL else {}))

        estimator = Estimator(model_fn, tmp_path).train(no_input, steps=1)
        with pytest.raises(error, match=message):
            estimator.evaluate(no_input)

    def test_prediction_requirements(self, tmp_path: Path) -> None:
        def model_fn(features: Any, mode: str) -> EstimatorSpec:
            return step_spec(mode, predictions=lambda: None)

        estimator = Estimator(model_fn, tmp_path).train(no_input, steps=1)
        with pytest.raises(ValueError, match=r"Missing predictions\."):
            next(estimator.predict(no_input))

    def test_one_element_loss_is_scalar(self, tmp_path: Path) -> None:
        def model_fn(features: Any, mode: str) -> EstimatorSpec:
            return step_spec(mode, loss=lambda: tf.ones([1, 1]))

        recorder = Recorder()
        Estimator(model_fn, tmp_path).train(no_input, [recorder], steps=2)
        assert recorder.losses == [1.0, 1.0]

    def test_train_op_may_be_variable_or_tensor(self, tmp_path: Path) -> None:
        def model_fn(features: Any, mode: str) -> EstimatorSpec:
            counted = tf.assign_add(tf.train.get_global_step(), 1)
            with tf.control_dependencies([counted]):
                return step_spec(mode, train_op=lambda: tf.zeros([2]))

        estimator = Estimator(model_fn, tmp_path).train(no_input, steps=2)
        assert estimator.get_variable_value("global_step") == 2

    def test_local_variables_are_reinitialized(self, tmp_path: Path) -> None:
        def model_fn(features: Any, mode: str) -> EstimatorSpec:
            batches = tf.get_variable(
                "batches", [], initializer=tf.zeros_initializer(), collections=["local_variables"]
            )
            with tf.control_dependencies([tf.assign_add(batches, 1.0)]):
                return step_spec(mode, loss=lambda: tf.identity(batches))

        recorder = Recorder()
        for _ in range(2):
            Estimator(model_fn, tmp_path).train(no_input, [recorder], steps=2)
        assert recorder.losses == [1, 2, 1, 2]


def test_hooks_find_loss_in_collection() -> None:
    found: list[Any] = []

    class Hook(tf.train.SessionRunHook):
        def begin(self) -> None:
            found.extend(tf.get_default_graph().get_collection("losses"))

    def model_fn(features: Any, mode: str) -> Any:
        loss = tf.reduce_mean((features * tf.Variable(1.0, name="w")) ** 2)
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = tf.estimator.Estimator(model_fn)
    rows = tf.data.Dataset.from_tensor_slices
    estimator.train(lambda: rows(np.ones([4, 2], np.float32)).batch(2), hooks=[Hook()])
    assert [each.shape.rank for each in found] == [0]


def test_metrics_may_be_strings_and_are_sorted(tmp_path: Path) -> None:
    def model_fn(features: Any, mode: str) -> EstimatorSpec:
        metrics = {
            "word": (tf.constant("cat"), tf.no_op()),
            "answer": (tf.constant(42, tf.int64), tf.no_op()),
        }
        return EstimatorSpec(
            mode,
            loss=tf.constant(1.0),
            train_op=tf.train.get_global_step().assign_add(1),
            eval_metric_ops=metrics,
        )

    estimator = Estimator(model_fn, tmp_path)
    estimator.train(features_of(2), steps=1)
    results = estimator.evaluate(features_of(4))
    assert results == {"answer": 42, "loss": 1.0, "word": b"cat", "global_step": 1}
    assert list(results) == ["answer", "loss", "word", "global_step"]


def test_evaluation_with_own_saver_starts_at_first_element(tmp_path: Path) -> None:
    """The training saves the position of the same data."""

    def model_fn(features: Any, mode: str) -> EstimatorSpec:
        weight = tf.get_variable("weight", initializer=1.0)
        loss = tf.reduce_mean(features) * weight
        scaffold = tf.train.Scaffold(saver=tf.train.Saver())
        train_op = tf.train.get_global_step().assign_add(1)
        return EstimatorSpec(mode, features, loss, train_op, scaffold=scaffold)

    def input_fn() -> Dataset:
        return Dataset.from_tensor_slices([1.0, 2.0, 3.0, 6.0])

    estimator = Estimator(model_fn, tmp_path)
    estimator.train(input_fn, steps=3)
    assert estimator.evaluate(input_fn)["loss"] == 3.0
    assert list(estimator.predict(input_fn, yield_single_examples=False)) == [1, 2, 3, 6]
