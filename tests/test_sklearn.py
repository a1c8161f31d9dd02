"""`estimatorkit.sklearn` in scikit-learn's own tools, and scikit-learn's estimator checks."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import estimatorkit as tf
from estimatorkit.sklearn import (
    SKBaselineClassifier,
    SKBaselineRegressor,
    SKBoostedTreesClassifier,
    SKBoostedTreesRegressor,
    SKClassifier,
    SKDNNClassifier,
    SKDNNRegressor,
    SKLinearClassifier,
    SKLinearRegressor,
    SKRegressor,
)

CHECKED = [
    SKLinearClassifier(epochs=20, random_state=0),
    SKLinearRegressor(epochs=20, random_state=0),
    SKBoostedTreesClassifier(n_trees=20, random_state=0),
    SKBoostedTreesRegressor(n_trees=20, random_state=0),
]
EXPECTED_TO_FAIL = {
    "check_sample_weight_equivalence_on_dense_data": "weights and repetitions are equal for all "
    "rows at once, not for the mini-batches that they are trained in (as scikit-learn's SGD)",
}


ONE_LABEL = {"check_supervised_y_2d": "a column of labels is not flattened with a warning"}


def expected_to_fail(estimator: Any) -> dict[str, str]:
    one_label = isinstance(estimator, SKBoostedTreesRegressor)
    return EXPECTED_TO_FAIL | (ONE_LABEL if one_label else {})


def two_classes(rows: int = 96) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers on far different scales, and words as labels that a line tells apart."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3)) * [1, 100, 1] + [0, 1000, 0]
    return X, np.where(X[:, 0] + (X[:, 1] - 1000) / 100 > 0, "yes", "no")


@pytest.mark.slow
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_to_fail, xfail_strict=True)
def test_scikit_learn_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
def test_string_labels_and_mixed_frame_columns() -> None:
    X, y = two_classes(160)
    frame = pd.DataFrame(
        {
            "number": np.where(np.arange(160) % 9, X[:, 0], np.nan),
            "color": pd.Categorical(np.where(y == "yes", "red", "blue")),
            "when": pd.date_range("2024-01-01", periods=160, freq="31h"),
        }
    )
    model = SKDNNClassifier(hidden_units=(8,), epochs=20, random_state=1).fit(frame, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["number", "color", "when"]
    assert model.n_features_in_ == 3
    assert model.score(frame, y) > 0.95
    # The words are known to the model inside.
    features = model._features(frame)
    prediction = next(
        model.estimator_.predict(lambda: tf.data.Dataset.from_tensor_slices(features).batch(4))
    )
    assert set(prediction["all_classes"]) == {b"no", b"yes"}
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["color", "number", "when"]])


@pytest.mark.slow
def test_copy_predicts_the_same_and_folder_follows_model() -> None:
    X, y = two_classes()
    model = SKLinearClassifier(epochs=2, random_state=3).fit(X, y)
    folder = model.model_dir_
    twin, far = copy.deepcopy(model), pickle.loads(pickle.dumps(model))  # noqa: S301 (our own)
    expected = model.predict_proba(X)
    for each in (twin, far):
        assert each.model_dir_ != folder
        np.testing.assert_array_equal(each.predict_proba(X), expected)
    assert os.path.isdir(folder)
    del model
    gc.collect()
    assert not os.path.exists(folder)
    assert os.path.isdir(twin.model_dir_)
    # One row gets, to the bit, what it gets among others.
    np.testing.assert_array_equal(twin.predict_proba(X[5:6]), expected[5:6])
    assert not hasattr(clone(twin), "classes_")


@pytest.mark.slow
def test_random_state_is_reproducible_and_columns_are_standardized() -> None:
    X, y = two_classes()
    one, same, raw = (
        SKLinearClassifier(epochs=2, random_state=seed, standardize=standardize).fit(X, y)
        for seed, standardize in ((1, True), (1, True), (1, False))
    )
    probabilities = one.predict_proba(X)
    np.testing.assert_array_equal(probabilities, same.predict_proba(X))
    assert one.score(X, y) > raw.score(X, y)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.slow
def test_searches_pipelines_and_calibration() -> None:
    X, y = two_classes()
    model = SKLinearClassifier(epochs=60, random_state=0)
    once = ShuffleSplit(1, test_size=0.3, random_state=0)  # each fit is a compilation
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"sklinearclassifier__optimizer": ["Ftrl", "SGD"]},
        cv=once,
        error_score="raise",
    ).fit(X, y)
    assert set(search.cv_results_["param_sklinearclassifier__optimizer"]) == {"Ftrl", "SGD"}
    assert search.best_score_ > 0.9
    assert cross_val_score(model, X, y, cv=once, error_score="raise").min() > 0.9
    calibrated = CalibratedClassifierCV(model, cv=once).fit(X, y)
    assert calibrated.predict_proba(X).shape == (96, 2)
    assert calibrated.score(X, y) > 0.9


@pytest.mark.slow
def test_sample_weights_and_partial_fit() -> None:
    X = np.zeros((40, 1))
    y = np.arange(40) % 2
    model = SKBaselineClassifier(epochs=40, optimizer=lambda: tf.train.AdamOptimizer(0.1))
    model.fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(model.predict_proba(X)[0], [0.25, 0.75], atol=0.05)
    regressor = SKBaselineRegressor(steps=3, batch_size=8, random_state=0)
    for rows in (40, 30):
        regressor.partial_fit(X[:rows], y[:rows])
    assert regressor.n_steps_ == 6
    with pytest.raises(ValueError, match="labels that are not among the classes"):
        SKBaselineClassifier(steps=1).partial_fit(X, y, classes=[0, 2])


@pytest.mark.slow
def test_early_stopping_on_validation_loss() -> None:
    X, _ = two_classes(64)
    y = np.random.default_rng(5).integers(0, 2, 64)  # nothing to learn
    model = SKDNNClassifier(
        hidden_units=(16,),
        epochs=60,
        validation_fraction=0.5,
        patience=1,
        random_state=0,
        optimizer=lambda: tf.train.AdamOptimizer(0.2),
    ).fit(X, y)
    losses = [each["average_loss"] for each in model.history_]
    assert len(losses) == model.best_epoch_ + 1 < 60
    assert losses[model.best_epoch_ - 1] == min(losses)
    rows = tf.data.Dataset.from_tensor_slices(model._features(X)).batch(64)
    best = model._model.checkpoint
    (inside,) = model.estimator_.predict(
        lambda: rows, ["probabilities"], checkpoint_path=best, yield_single_examples=False
    )
    np.testing.assert_allclose(model.predict_proba(X), inside["probabilities"], rtol=1e-5)
    with pytest.raises(ValueError, match="validation_fraction > 0"):
        SKDNNClassifier(patience=2).fit(X, y)


@pytest.mark.slow
def test_validation_loss_may_be_infinite() -> None:
    X, y = np.arange(8.0)[:, None], np.zeros(8)
    settings = {"epochs": 3, "validation_fraction": 0.5, "patience": 2, "random_state": 0}
    model = SKLinearRegressor(**settings)
    _, (_, held_out, _) = model._validation(X, np.arange(8), np.ones(8))
    y[held_out] = 1e25  # whose square is no float32
    model.fit(X, y)
    assert model.history_[0]["average_loss"] == np.inf
    assert (model.best_epoch_, len(model.history_)) == (1, 3)


def test_estimator_arguments_are_parameters() -> None:
    model = SKClassifier("DNNClassifier").set_params(hidden_units=(3,), dropout=0.5, epochs=2)
    assert model.get_params()["hidden_units"] == (3,)
    with pytest.raises(ValueError, match="did you mean 'dropout'"):
        model.set_params(drop_out=0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'n_classes'"):
        model.set_params(n_classes=3)  # that is learnt of the labels


@pytest.mark.slow
def test_multilabel_and_custom_models(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(128, 2))
    y = np.stack([X[:, 0], -X[:, 1]], axis=1)
    made: list[int] = []

    def own(columns: Any, label_dimension: int, config: Any, rate: float = 0.05) -> Any:
        made.append(label_dimension)
        return tf.estimator.LinearRegressor(
            columns, None, label_dimension, optimizer=tf.train.AdamOptimizer(rate), config=config
        )

    model = SKRegressor(own, rate=0.1, model_dir=tmp_path, random_state=0).fit(X, y)
    assert made == [2]
    assert model.predict(X).shape == (128, 2)
    assert model.score(X, y) > 0.95
    assert model.get_params()["rate"] == 0.1
    assert Path(model.model_dir_).parent == tmp_path
    assert model.model_dir_.rpartition("/")[2].startswith("fit-")
    with pytest.raises(ValueError, match="does not support sample_weight"):
        model.fit(X, y, sample_weight=np.ones(128))


@pytest.mark.parametrize(
    ("model", "X", "error", "said"),
    [
        (SKClassifier("DNNClasifier"), [[1.0], [2.0]], ValueError, "DNNClassifier"),
        (SKClassifier(hidden_unit=[3]), [[1.0], [2.0]], ValueError, "hidden_units"),
        (SKClassifier(epochs=0), [[1.0], [2.0]], ValueError, "epochs is not a positive int"),
        (SKDNNRegressor(), sparse.csr_array([[1.0], [2.0]]), TypeError, "[Ss]parse"),
    ],
)
def test_invalid_input_raises(model: Any, X: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        model.fit(X, [0, 1])
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])
    with pytest.raises(ValueError, match="did you mean 'epochs'"):
        SKDNNRegressor().set_params(epoch=3)


@pytest.mark.slow
def test_columns_are_converted_independently() -> None:
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "kind": pd.Categorical(random.integers(0, 3, 90)),
        "count": random.integers(0, 4, 90),
        "size": random.normal(size=90),
        "word": np.array(["red", "blue", "green"])[random.integers(0, 3, 90)],
    }
    y = random.integers(0, 2, 90)
    found: dict[str, Any] = {}
    for left_out in (None, "word", "count", "size"):
        frame = pd.DataFrame({key: each for key, each in columns.items() if key != left_out})
        model = SKLinearClassifier(steps=1, random_state=0).fit(frame, y)
        features = model._features(model._table(frame, reset=False))
        for name in frame:
            expected = found.setdefault(name, (features[name], repr(model.columns_)))
            np.testing.assert_array_equal(features[name], expected[0])
    # Of categories that are integers each has a weight of its own.
    frame = pd.DataFrame({"kind": columns["kind"]})
    labels = np.asarray(columns["kind"]) == 1
    model = SKLinearClassifier(epochs=60, random_state=0).fit(frame, labels)
    assert model.score(frame, labels) == 1.0


@pytest.mark.slow
def test_boosted_trees_read_the_rows_once() -> None:
    X, y = two_classes(96)
    model = SKClassifier("BoostedTreesClassifier", n_trees=10, validation_fraction=0.25)
    assert model.fit(X, y).score(X, y) > 0.9
    assert len(model.history_) == 1
    assert model.n_steps_ == 3
    assert not hasattr(model, "partial_fit")
    frame, heights = pd.DataFrame({"x": X[:, 0], "word": y}), np.where(y == "yes", 7.0, 1.0)
    regressor = SKBoostedTreesRegressor(n_trees=50).fit(frame, heights)
    assert regressor.score(frame, heights) > 0.99
