"""Ensembles of a network, trees and a linear model: weights, one checkpoint, exports, hooks."""

from __future__ import annotations

import json
import logging
import sys

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.premade import tabular
from estimatorkit.premade.member_hook import MemberHook
from estimatorkit.sklearn import SKEnsembleRegressor
from estimatorkit.storage.checkpoint import read_checkpoint
from estimatorkit.storage.retention import CheckpointRotation

ROWS = 400


def _columns():
    words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    return [tf.feature_column.numeric_column("x"), words]


def _rows(seed=0):
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, ROWS).astype(np.float32)
    word = random.choice(np.array(["a", "b", "c"], object), ROWS)
    jump = {"a": 0.0, "b": 3.0, "c": -1.0}
    noise = random.normal(0, 0.1, ROWS)
    labels = np.sin(3 * x) + np.array([jump[each] for each in word]) + noise
    return {"x": x, "word": word}, labels.astype(np.float32)


def _input(rows):
    return lambda: tf.data.Dataset.from_tensor_slices(rows).repeat().batch(64)


def _read(rows):
    return lambda: tf.data.Dataset.from_tensor_slices(rows).batch(100)


def _config(folder):
    return tf.estimator.RunConfig(
        model_dir=str(folder), tf_random_seed=1, log_step_count_steps=None
    )


@pytest.fixture(scope="module", params=[1, 3], ids=["one fold", "three folds"])
def regressor(request, tmp_path_factory):
    config = _config(tmp_path_factory.mktemp("ensemble") / "model")
    made = tf.estimator.EnsembleRegressor(_columns(), config=config, folds=request.param)
    return made.train(_input(_rows()))


@pytest.mark.slow
def test_ensemble_is_the_weighted_mean_of_its_members(regressor):
    weights = regressor.get_variable_value("ensemble/weights")
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    features, labels = _rows(seed=1)
    found = np.array([each["predictions"] for each in regressor.predict(_read((features, labels)))])
    assert 1 - ((found[:, 0] - labels) ** 2).mean() / labels.var() > 0.97
    metrics = regressor.evaluate(_read((features, labels)))
    assert metrics["average_loss"] == pytest.approx(((found[:, 0] - labels) ** 2).mean(), rel=1e-4)


@pytest.mark.slow
def test_one_checkpoint_holds_all_members(regressor):
    names = regressor.get_variable_names()
    assert {
        "boosted_trees/threshold",
        "tabular/logits/kernel",
        "linear_member/kernel",
        "ensemble/weights",
    } <= set(names)
    assert not [each for each in names if "AdamW" in each]
    before = regressor.latest_checkpoint()
    regressor.train(_input(_rows()))  # does nothing
    assert regressor.latest_checkpoint() == before


@pytest.mark.slow
def test_export_predicts_as_the_ensemble(regressor, tmp_path, caplog):
    features, labels = _rows(seed=1)
    spec = {
        "x": tf.placeholder(tf.float32, [None]),
        "word": tf.placeholder(tf.string, [None]),
    }
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(spec)
    path = regressor.export_saved_model(str(tmp_path), receiver)
    assert "TensorFlow cannot load" not in caplog.text
    with tf.estimator.load_predictor(path) as predictor:
        served = predictor(features, "predict")["predictions"]
    found = np.array([each["predictions"] for each in regressor.predict(_read((features, labels)))])
    np.testing.assert_allclose(served, found, atol=1e-5)


@pytest.mark.slow
def test_members_without_weight_are_not_computed(regressor, tmp_path):
    """Their variables are in no exported model, and no other checkpoint is taken for the same."""
    weights = regressor.get_variable_value("ensemble/weights")
    weighted = np.eye(len(weights), dtype=np.float32)[1]
    saved = read_checkpoint(regressor.latest_checkpoint()).tensors
    config = _config(tmp_path / "other")
    CheckpointRotation(config.model_dir).save(
        "model.ckpt-1", saved | {"ensemble/weights": weighted}, {}
    )
    trees = tf.estimator.EnsembleRegressor(_columns(), config=config, folds=regressor._folds)
    spec = {"x": tf.placeholder(tf.float32, [None]), "word": tf.placeholder(tf.string, [None])}
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(spec)
    path = trees.export_saved_model(str(tmp_path / "export"), receiver)
    names = {name for name, _ in tf.train.list_variables(path.decode() + "/variables/variables")}
    assert any(name.startswith("boosted_trees") for name in names)
    assert not any(name.startswith(("tabular", "linear_member")) for name in names)
    features, _ = _rows(seed=1)
    found = np.array([each["predictions"] for each in trees.predict(_read((features, _)))])
    with tf.estimator.load_predictor(path) as predictor:
        served = predictor(features, "predict")["predictions"]
    np.testing.assert_allclose(served, found, atol=1e-5)
    assert np.count_nonzero(weights) > 1
    with pytest.raises(ValueError, match="other members of the ensemble have a weight"):
        trees.evaluate(_read(_rows()), checkpoint_path=regressor.latest_checkpoint())


@pytest.mark.slow
def test_the_same_seed_gives_the_same_classifier(tmp_path):
    features, labels = _rows()
    words = np.where(labels > 0.5, "high", "low").astype(object)
    found = []
    for name in ("one", "two"):
        classifier = tf.estimator.EnsembleClassifier(
            _columns(), label_vocabulary=["low", "high"], config=_config(tmp_path / name)
        )
        classifier.train(_input((features, words)))
        rows = classifier.predict(_read((features, words)), "probabilities")
        found.append(np.array([each["probabilities"] for each in rows]))
    np.testing.assert_array_equal(found[1], found[0])
    assert ((found[0][:, 1] > 0.5) == (words == "high")).mean() > 0.95


@pytest.mark.slow
def test_wrapper_trains_an_ensemble():
    table = _rows()[0]["x"][:, None]
    model = SKEnsembleRegressor(random_state=1).fit(table, np.sin(3 * table[:, 0]))
    assert model.score(table, np.sin(3 * table[:, 0])) > 0.97


class _Told(MemberHook):
    """Keeps what it is told."""

    def __init__(self):
        self.events = []
        self.epochs = []
        self.losses = {}
        self.weights = {}

    def before_member(self, name, rows, epochs):
        self.events.append((name, rows, epochs))

    def after_epoch(self, epoch):
        self.epochs.append(epoch)

    def after_member(self, name, loss, seconds):
        assert seconds > 0
        self.events.append(name)
        self.losses[name] = loss

    def after_members(self, weights, loss):
        self.events.append("all")
        self.weights, self.losses["all"] = weights, loss


@pytest.fixture
def few_epochs(monkeypatch):
    monkeypatch.setattr(tabular, "_LEAST_EPOCHS", 3)
    monkeypatch.setattr(tabular, "_MOST_EPOCHS", 3)


@pytest.mark.slow
def test_hooks_are_told_of_members_and_epochs(tmp_path, few_epochs):
    ensemble = tf.estimator.EnsembleRegressor(_columns(), config=_config(tmp_path))
    told = _Told()
    ensemble.train(_input(_rows()), hooks=[tf.train.StopAtStepHook(1), told])
    rows = ROWS - ROWS * 15 // 100
    assert told.events == [
        ("network", rows, 3),
        "network",
        ("trees", rows, None),
        "trees",
        ("linear", rows, None),
        "linear",
        "all",
    ]
    assert [each.number for each in told.epochs] == [1, 2, 3]
    assert {(each.rows, each.epochs) for each in told.epochs} == {(rows, 3)}
    best = min(each.metrics["average_loss"] for each in told.epochs)
    assert told.losses["network"] == pytest.approx(best, rel=1e-4)
    assert told.losses["all"] <= min(told.losses.values())
    weights = ensemble.get_variable_value("ensemble/weights")
    np.testing.assert_allclose(list(told.weights.values()), weights)

    # There are curves: a training loss and an evaluation for each epoch.
    folder = tmp_path / "members" / "network"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [each["loss"] for each in lines] == [each.loss for each in told.epochs]
    assert len((folder / "eval" / "metrics.jsonl").read_text().splitlines()) == 3
    assert len(list(folder.glob("events.*"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("members", [("linear",), ("trees", "linear")])
def test_given_rows_choose_and_all_others_are_trained_on(tmp_path, members):
    # It repeats, and is read once.
    features, labels = _rows(seed=1)
    held_out = {key: each[:150] for key, each in features.items()}, labels[:150]
    ensemble = tf.estimator.EnsembleRegressor(
        _columns(), members=members, config=_config(tmp_path), held_out_fn=_input(held_out)
    )
    told = _Told()
    ensemble.train(_input(_rows()), [told])
    assert {each[1] for each in told.events if isinstance(each, tuple)} == {ROWS}
    loss = ensemble.evaluate(_read(held_out))["average_loss"]
    assert told.losses["all"] == pytest.approx(loss, rel=1e-4)


def test_a_training_that_did_not_end_begins_again(tmp_path, caplog):
    left = tmp_path / "members" / "linear" / "model.ckpt-1.meta"
    left.parent.mkdir(parents=True)
    left.write_text("")
    ensemble = tf.estimator.EnsembleRegressor(
        _columns(), members=["linear"], config=_config(tmp_path)
    )
    with caplog.at_level(logging.WARNING):
        ensemble.train(_input(_rows()))
    assert "is of a training that did not end: all members are trained again" in caplog.text
    assert ensemble.latest_checkpoint() is not None
    caplog.clear()
    ensemble.train(_input(_rows()))
    assert "did not end" not in caplog.text


def test_wrapper_holds_out_rows_itself():
    assert "held_out_fn" not in SKEnsembleRegressor().get_params()


def test_missing_ydf_is_an_error_before_anything_is_trained(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ydf", None)
    ensemble = tf.estimator.EnsembleRegressor(_columns(), config=_config(tmp_path))
    with pytest.raises(ImportError, match="YDF"):
        ensemble.train(_input(_rows()))
    assert not (tmp_path / "members").exists()


def test_ensembles_say_what_they_need(tmp_path):
    with pytest.raises(ValueError, match="named once each"):
        tf.estimator.EnsembleRegressor(_columns(), members=["network", "network"])
    ensemble = tf.estimator.EnsembleRegressor(_columns(), config=_config(tmp_path))
    with pytest.raises(ValueError, match="cannot be read into memory"):
        ensemble.train(lambda: ({"x": tf.constant([1.0])}, tf.constant([1.0])))
    nested = ({"x": {"y": np.zeros(3)}}, np.zeros(3))
    with pytest.raises(ValueError, match="cannot be read into memory"):
        ensemble.train(_read(nested))

    def endless():
        features = tf.data.Dataset.from_tensors({"x": 1.0}).repeat()
        return tf.data.Dataset.zip((features, tf.data.Dataset.from_tensors(1.0).repeat())).batch(2)

    with pytest.raises(ValueError, match="never ends"):
        ensemble.train(endless)
