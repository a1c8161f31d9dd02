"""Models that estimators cache: what is built, compiled and read again.

Named after what users of `tf.estimator` reported: predictions that rebuilt the graph and read the
checkpoint each time, evaluations that did, inputs that began anew with every call of `train`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator import built_model
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from tests.estimator import models


class Counted:
    """Counts how often a `model_fn` is called and a checkpoint is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.built: list[str] = []
        self.read: list[str] = []
        read = built_model.read_checkpoint

        def reading(path: Any) -> Any:
            self.read.append(str(path))
            return read(path)

        monkeypatch.setattr(built_model, "read_checkpoint", reading)

    def model_fn(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """One weight: predictions are it times the features; the loss moves it up by 1 a step."""
        self.built.append(mode)
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        value = features["x"] if isinstance(features, dict) else features
        predictions = {"y": value * weight}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions)
        loss = tf.reduce_mean(predictions["y"])
        step = tf.train.get_global_step()
        train_op = tf.group(tf.assign_add(weight, 1.0), tf.assign_add(step, 1))
        metrics = {"x": tf.metrics.mean(value)} if mode == ModeKeys.EVAL else None
        return EstimatorSpec(mode, predictions, loss, train_op, metrics)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


@pytest.fixture
def estimator(counted: Counted, tmp_path: Path) -> Estimator:
    config = RunConfig(save_summary_steps=None, log_step_count_steps=None, tf_random_seed=1)
    return Estimator(counted.model_fn, tmp_path, config)


def input_of(*values: float, batch: int = 2) -> Callable[[], Dataset]:
    rows = {"x": np.array(values, np.float32)}
    return lambda: Dataset.from_tensor_slices(rows).batch(batch)


def predicted(estimator: Estimator, *values: float, **arguments: Any) -> list[float]:
    rows = estimator.predict(input_of(*values), **arguments)
    return [float(row["y"]) for row in rows]


class TestPainPoint02PredictReloads:
    def test_second_prediction_builds_and_reads_nothing(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        estimator.train(input_of(1, 2, 3, 4), steps=2)
        assert predicted(estimator, 1, 2, 3) == [2, 4, 6]
        built, read = len(counted.built), len(counted.read)
        assert predicted(estimator, 5) == [10]
        assert predicted(estimator, 6, 7, 8, 9) == [12, 14, 16, 18]
        assert (len(counted.built), len(counted.read)) == (built, read)

    def test_new_checkpoint_is_read_without_rebuilding(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        estimator.train(input_of(1, 2, 3, 4), steps=1)
        assert predicted(estimator, 1) == [1]
        estimator.train(input_of(1, 2, 3, 4), steps=1)
        assert predicted(estimator, 1) == [2]
        assert counted.built.count(ModeKeys.PREDICT) == 1
        assert len(counted.read) == 2

    def test_older_checkpoint_in_between(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        first = estimator.latest_checkpoint()
        estimator.train(input_of(1, 2, 3, 4), steps=2)
        assert predicted(estimator, 1) == [3]
        assert predicted(estimator, 1, checkpoint_path=first) == [1]
        assert predicted(estimator, 1) == [3]

    def test_concurrent_predictions_have_own_models(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        one, two = (estimator.predict(input_of(*values)) for values in ((1, 2, 3), (4, 5, 6)))
        pairs = [(float(a["y"]), float(b["y"])) for a, b in zip(one, two, strict=True)]
        assert pairs == [(1, 4), (2, 5), (3, 6)]

    def test_abandoned_prediction_returns_its_model(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        estimator.train(input_of(1, 2), steps=1)
        rows = estimator.predict(input_of(1, 2, 3, 4, 5))
        next(rows)
        rows.close()  # type: ignore[attr-defined]
        assert predicted(estimator, 7, 8) == [7, 8]
        assert counted.built.count(ModeKeys.PREDICT) == 1

    def test_threads(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        results: dict[int, list[float]] = {}

        def work(number: int) -> None:
            results[number] = predicted(estimator, number, number + 1)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {number: [number, number + 1] for number in range(6)}

    def test_other_input_structure_builds_new_model(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        estimator.train(input_of(1, 2), steps=1)
        assert predicted(estimator, 1) == [1]
        array = np.array([3.0], np.float32)
        rows = estimator.predict(lambda: Dataset.from_tensor_slices(array).batch(1))
        assert [float(row["y"]) for row in rows] == [3]
        assert counted.built.count(ModeKeys.PREDICT) == 2

    def test_input_beyond_a_dataset_is_rebuilt(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        estimator.train(input_of(1, 2), steps=1)

        def input_fn() -> Any:
            element = input_of(1, 2)().make_one_shot_iterator().get_next()
            return {"x": element["x"] * 10.0}

        for _ in range(2):
            assert [float(row["y"]) for row in estimator.predict(input_fn)] == [10, 20]
        assert counted.built.count(ModeKeys.PREDICT) == 2

    def test_iterator_elements_count_as_dataset(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        def of(*values: float) -> Callable[[], Any]:
            rows = {"x": np.array(values, np.float32), "z": np.zeros(len(values), np.float32)}
            dataset = Dataset.from_tensor_slices(rows)

            def input_fn() -> Any:
                element = dataset.batch(2).make_one_shot_iterator().get_next()
                return {"x": element["x"]}, element["z"]

            return input_fn

        estimator.train(of(1, 2), steps=1)
        assert [float(row["y"]) for row in estimator.predict(of(1, 2, 3))] == [1, 2, 3]
        assert [float(row["y"]) for row in estimator.predict(of(4))] == [4]
        assert counted.built.count(ModeKeys.PREDICT) == 1

    def test_forget_models(self, estimator: Estimator, counted: Counted) -> None:
        estimator.train(input_of(1, 2), steps=1)
        predicted(estimator, 1)
        estimator.forget_models()
        predicted(estimator, 1)
        assert counted.built.count(ModeKeys.PREDICT) == 2


class TestPainPoint03EvaluationRebuilds:
    def test_alternating_training_and_evaluation_builds_two_models(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        losses = []
        for _ in range(4):
            estimator.train(input_of(1, 2, 3, 4, batch=4), steps=1)
            losses.append(float(estimator.evaluate(input_of(2, 4, batch=4))["loss"]))
        assert losses == [3, 6, 9, 12]
        assert sorted(counted.built) == [ModeKeys.EVAL, ModeKeys.TRAIN]

    def test_metrics_restart(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        assert estimator.evaluate(input_of(1, 3))["x"] == 2
        assert estimator.evaluate(input_of(5, 7))["x"] == 6
        assert estimator.evaluate(input_of(5, 7, 9, 11), steps=1)["x"] == 6

    def test_evaluation_compiles_once(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        estimator.evaluate(input_of(1, 3))
        model = next(
            each for each in estimator._models._models.values() if each.mode == ModeKeys.EVAL
        )
        compiled = dict(model.session.state.compilations)
        for _ in range(3):
            estimator.evaluate(input_of(1, 3))
        assert dict(model.session.state.compilations) == compiled


class TestPainPoint05TheInputStartsAnew:
    def test_train_calls_continue_the_epoch(self, tmp_path: Path) -> None:
        whole = models.adder(tmp_path / "whole", 1000)
        whole.train(models.numbers, steps=30)
        parts = models.adder(tmp_path / "parts", 1000)
        for steps in (7, 3, 15, 5):
            parts.train(models.numbers, steps=steps)
        assert parts.get_variable_value("total") == whole.get_variable_value("total")
        assert parts.get_variable_value("total") == models.expected_total(30)

    @pytest.mark.slow
    def test_evaluations_and_predictions_in_between(self, tmp_path: Path) -> None:
        whole = models.network(tmp_path / "whole")
        whole.train(models.batches, steps=12)
        parts = models.network(tmp_path / "parts")
        for steps in (5, 4, 3):
            parts.train(models.batches, steps=steps)
            parts.evaluate(lambda: models.batches().take(2))
            next(parts.predict(lambda: models.batches().take(1)))
        expected, found = (
            models.variables(each.latest_checkpoint() or "") for each in (whole, parts)
        )
        assert expected.keys() == found.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)

    @pytest.mark.slow
    def test_new_estimator_continues(self, tmp_path: Path) -> None:
        for steps in (7, 3, 15, 5):
            models.adder(tmp_path, 1000).train(models.numbers, steps=steps)
        made = models.adder(tmp_path, 1000)
        assert made.get_variable_value("total") == models.expected_total(30)

    def test_checkpoint_of_another_writer_is_noticed(self, tmp_path: Path) -> None:
        one, other = (models.adder(tmp_path, 1000) for _ in range(2))
        one.train(models.numbers, steps=5)
        other.train(models.numbers, steps=5)
        one.train(models.numbers, steps=5)
        assert one.get_variable_value("total") == models.expected_total(15)


class TestHooks:
    def test_graph_changing_hook_gets_new_model(
        self, estimator: Estimator, counted: Counted
    ) -> None:
        class Adds(tf.train.SessionRunHook):  # type: ignore[misc]
            def begin(self) -> None:
                self.twice = tf.get_default_graph().get_tensor_by_name("mul:0") * 2.0

            def before_run(self, run_context: Any) -> Any:
                return tf.train.SessionRunArgs(self.twice)

            def after_run(self, run_context: Any, run_values: Any) -> None:
                seen.append(run_values.results.tolist())

        seen: list[Any] = []
        estimator.train(input_of(1, 2), steps=1)
        for _ in range(2):
            predicted(estimator, 1, 2, hooks=[Adds()])
        assert seen == [[2, 4], [2, 4]]
        assert counted.built.count(ModeKeys.PREDICT) == 2

    def test_built_in_hooks_share_model(self, estimator: Estimator, counted: Counted) -> None:
        for _ in range(3):
            hook = tf.train.LoggingTensorHook(["weight"], every_n_iter=1)
            estimator.train(input_of(1, 2, 3, 4), hooks=[hook], steps=1)
        assert counted.built == [ModeKeys.TRAIN]

    def test_model_fn_hooks_are_created_per_call(self, tmp_path: Path) -> None:
        begun = []

        class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
            def after_create_session(self, session: Any, coord: Any) -> None:
                begun.append(self)

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            step = tf.assign_add(tf.train.get_global_step(), 1)
            return EstimatorSpec(
                mode, loss=tf.reduce_sum(features), train_op=step, training_hooks=[Hook()]
            )

        made = Estimator(model_fn, tmp_path)
        for _ in range(2):
            made.train(lambda: tf.constant([1.0]), steps=1)
        assert len(set(map(id, begun))) == 2


def test_failed_training_leaves_no_model(estimator: Estimator, counted: Counted) -> None:
    def bad() -> Any:
        raise RuntimeError("no more")
        yield  # pragma: no cover

    def input_fn() -> Dataset:
        made = Dataset.from_generator(bad, tf.float32, [])
        return made.batch(2).map(lambda x: {"x": x})

    with pytest.raises(Exception, match="no more"):
        estimator.train(input_fn, steps=1)
    estimator.train(input_of(1, 2), steps=1)
    assert estimator.get_variable_value("weight") == 1


class TestPredictor:
    def test_one_example(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2, 3, 4), steps=2)
        with estimator.as_predictor() as predictor:
            assert predictor({"x": 3.0}) == {"y": 6.0}
            assert predictor({"x": np.float32(4)})["y"].shape == ()
            batch = predictor.batch({"x": [1.0, 2.0, 3.0]})
            assert batch["y"].tolist() == [2, 4, 6]

    def test_is_built_once(self, estimator: Estimator, counted: Counted) -> None:
        estimator.train(input_of(1, 2), steps=1)
        with estimator.as_predictor() as predictor:
            for value in range(5):
                assert predictor({"x": float(value)})["y"] == value
            predictor.batch({"x": [1.0, 2.0]})
        assert counted.built.count(ModeKeys.PREDICT) == 1

    def test_keeps_checkpoint_until_refreshed(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        with estimator.as_predictor() as predictor:
            assert predictor({"x": 1.0})["y"] == 1
            estimator.train(input_of(1, 2), steps=1)
            assert predictor({"x": 1.0})["y"] == 1
            assert predictor.refresh()
            assert predictor({"x": 1.0})["y"] == 2
            assert not predictor.refresh()

    def test_threads(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        found: dict[int, set[float]] = {}
        with estimator.as_predictor() as predictor:

            def work(number: int) -> None:
                values = {float(predictor({"x": float(number)})["y"]) for _ in range(50)}
                found[number] = values

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert found == {number: {number} for number in range(4)}

    @pytest.mark.slow
    def test_strings_and_premade_predictions(self, tmp_path: Path) -> None:
        column = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])
        made = tf.estimator.LinearClassifier([column], tmp_path, label_vocabulary=["no", "yes"])
        rows = {"word": ["a", "b", "a", "b"]}
        made.train(
            lambda: (
                Dataset.from_tensor_slices((rows, ["no", "yes", "no", "yes"])).repeat().batch(4)
            ),
            steps=20,
        )
        with made.as_predictor() as predictor:
            assert predictor({"word": "a"})["classes"].tolist() == [b"no"]
            assert predictor({"word": b"b"})["classes"].tolist() == [b"yes"]
            words = predictor.batch({"word": ["b", "a"]})["classes"].tolist()
            assert words == [[b"yes"], [b"no"]]

    def test_missing_checkpoint_raises(self, estimator: Estimator) -> None:
        with pytest.raises(ValueError, match="Could not find trained model"):
            estimator.as_predictor()

    def test_features_without_batch(self, estimator: Estimator) -> None:
        estimator.train(input_of(1, 2), steps=1)
        with (
            estimator.as_predictor() as predictor,
            pytest.raises(ValueError, match="features have no batch"),
        ):
            predictor.batch({"x": 1.0})


class TestScaffold:
    @pytest.mark.slow
    def test_init_fn_and_saver(self, tmp_path: Path) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
            other = tf.get_variable("other", [], initializer=tf.ones_initializer())
            step = tf.train.get_global_step()
            scaffold = tf.train.Scaffold(
                init_fn=lambda scaffold, session: weight.load(5.0, session),
                saver=tf.train.Saver({"renamed": weight, "global_step": step}),
            )
            train_op = tf.group(tf.assign_add(weight, 1.0), tf.assign_add(step, 1))
            if mode != ModeKeys.TRAIN:
                scaffold = tf.train.Scaffold(
                    saver=tf.train.Saver({"renamed": weight, "global_step": step}),
                    init_op=tf.global_variables_initializer(),
                    local_init_op=tf.variables_initializer([other]),
                )
            return EstimatorSpec(
                mode,
                {"weight": features * weight * other},
                tf.identity(weight),
                train_op,
                scaffold=scaffold,
            )

        made = Estimator(model_fn, tmp_path)
        made.train(lambda: tf.constant([1.0]), steps=3)
        assert made.get_variable_names() == ["global_step", "renamed"]
        assert made.get_variable_value("renamed") == 8
        rows = list(made.predict(lambda: tf.constant([1.0])))
        assert [float(row["weight"]) for row in rows] == [8]
        # A restored session is not initialized again.
        made.train(lambda: tf.constant([1.0]), steps=1)
        assert made.get_variable_value("renamed") == 9


class TestWarmStart:
    @pytest.fixture
    def old(self, tmp_path: Path) -> Estimator:
        made = models.network(tmp_path / "old")
        return made.train(models.batches, steps=3)

    def _network(self, model_dir: Path, warm_start_from: Any) -> Estimator:
        made = models.network(model_dir)
        return Estimator(made._model_fn, model_dir, made.config, warm_start_from=warm_start_from)

    @pytest.mark.slow
    def test_path_warm_starts_all_trainable_variables(self, old: Estimator, tmp_path: Path) -> None:
        class First(tf.train.SessionRunHook):  # type: ignore[misc]
            def after_create_session(self, session: Any, coord: Any) -> None:
                for variable in tf.trainable_variables():
                    first[variable.op.name] = session.run(variable)

        first: dict[str, Any] = {}
        new = self._network(tmp_path / "new", old.model_dir)
        new.train(models.batches, hooks=[First()], steps=1)
        assert first
        for name, value in first.items():
            np.testing.assert_array_equal(value, old.get_variable_value(name))
        assert new.get_variable_value("global_step") == 1

    @pytest.mark.slow
    def test_existing_checkpoint_takes_precedence(self, old: Estimator, tmp_path: Path) -> None:
        new = self._network(tmp_path / "new", old.model_dir)
        new.train(models.batches, steps=1)
        before = models.variables(new.latest_checkpoint() or "")
        again = self._network(tmp_path / "new", old.model_dir)
        again.train(models.batches, steps=1)
        reference = models.network(tmp_path / "reference")
        reference.train(models.batches, steps=1)
        assert before["global_step"] == 1
        assert again.get_variable_value("global_step") == 2

    @pytest.mark.slow
    def test_settings(self, old: Estimator, tmp_path: Path) -> None:
        name = next(each for each in old.get_variable_names() if each.endswith("kernel"))
        settings = tf.estimator.WarmStartSettings(old.model_dir, vars_to_warm_start=f"^{name}$")
        new = self._network(tmp_path / "new", settings)
        new.train(models.batches, steps=1)
        assert new.get_variable_value("global_step") == 1

    @pytest.mark.parametrize("wrong", [7, [], ""])
    def test_other_types_raise(self, wrong: Any, tmp_path: Path) -> None:
        if wrong == "":
            wrong = tf.estimator.WarmStartSettings("")
        with pytest.raises(ValueError, match=r"warm_start_from must be|MUST be set"):
            self._network(tmp_path, wrong)


def test_evaluation_randomness_is_independent_of_earlier_runs(
    tmp_path: Path,
) -> None:
    """Also where the training has drawn some, whose count is in the checkpoint."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        loss = tf.get_variable("zero", [], initializer=tf.zeros_initializer())
        loss = loss + tf.random_uniform([]) + 0.0 * tf.reduce_sum(features["x"])
        return EstimatorSpec(mode, loss=loss, train_op=tf.assign_add(tf.train.get_global_step(), 1))

    config = RunConfig(save_checkpoints_steps=1, save_summary_steps=None, tf_random_seed=3)
    estimator = Estimator(model_fn, tmp_path, config)
    estimator.train(input_of(1, 2, 3, 4), steps=2)
    paths = [None, None, str(tmp_path / "model.ckpt-1"), None]
    losses = [
        estimator.evaluate(input_of(1, 2, 3, 4), checkpoint_path=path)["loss"] for path in paths
    ]
    assert len(set(losses)) == 1


def test_datasets_of_sparse_tensors(tmp_path: Path) -> None:
    """What `parse_example` makes of a `VarLenFeature`; a second call takes the kept model."""

    def input_fn() -> Dataset:
        places = [[0, 0], [0, 2], [1, 1], [3, 0]]
        values = np.array([1, 2, 3, 4], np.float32)
        return Dataset.from_tensor_slices({"x": tf.SparseTensor(places, values, [4, 3])}).batch(2)

    built: list[str] = []

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        built.append(mode)
        total = tf.sparse_reduce_sum(features["x"], 1)
        zero = tf.get_variable("zero", [], initializer=tf.zeros_initializer())
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, {"sum": total}, tf.reduce_sum(total) + zero, step)

    estimator = Estimator(model_fn, tmp_path, RunConfig(save_summary_steps=None))
    for steps in (2, 4):
        estimator.train(input_fn)
        assert estimator.evaluate(input_fn)["loss"] == 5.0
        assert [float(row["sum"]) for row in estimator.predict(input_fn)] == [3, 3, 0, 4]
        assert estimator.get_variable_value("global_step") == steps
    assert sorted(built) == [ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.TRAIN]
