"""Folds: rows are predicted by parts of a model that have not learnt from them."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.premade.boosted_trees import TreesMember
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.folds import FOLD, divided
from estimatorkit.premade.linear_member import LinearMember
from estimatorkit.premade.tabular import TabularEstimator

ROWS, FOLDS, IDS = 240, 3, 60


def _columns():
    return [
        tf.feature_column.numeric_column("x"),
        tf.feature_column.categorical_column_with_identity("few", 5),
        tf.feature_column.categorical_column_with_identity("many", IDS),
    ]


def _rows():
    """Features with folds, and labels of two classes."""
    random = np.random.default_rng(0)
    x = random.normal(size=ROWS).astype(np.float32)
    x[::17] = np.nan
    features = {"x": x, "few": random.integers(0, 5, ROWS), "many": random.integers(0, IDS, ROWS)}
    labels = (np.nan_to_num(x) + random.normal(size=ROWS) > 0).astype(np.int64)
    return features | {FOLD: divided(labels, FOLDS, 1)}, labels


def _network(head, folder, config):
    return TabularEstimator(head, _columns(), folder, members=2 * FOLDS, config=config, folds=FOLDS)


def _trees(head, folder, config):
    return TreesMember(head, _columns(), folder, config, 20, 0.1, 0.1, refit=True, folds=FOLDS)


def _linear(head, folder, config):
    return LinearMember(head, _columns(), folder, config, folds=FOLDS)


def _trained(make, folder, features, labels):
    config = tf.estimator.RunConfig(model_dir=str(folder), tf_random_seed=1)
    model = make(classification_head(2, None, None, "sum"), str(folder), config)
    return model.train(lambda: tf.data.Dataset.from_tensor_slices((features, labels)).batch(80))


def _probabilities(model, features):
    rows = tf.data.Dataset.from_tensor_slices(features).batch(ROWS)
    found = model.predict(lambda: rows, "probabilities")
    return np.array([each["probabilities"][1] for each in found])


@pytest.mark.parametrize("make", [_network, _trees, _linear])
def test_rows_do_not_depend_on_labels_of_their_fold(make, tmp_path):
    features, labels = _rows()
    first = features[FOLD] == 0
    changed = np.where(first, 1 - labels, labels)
    before, after = (
        _probabilities(_trained(make, tmp_path / name, features, given), features)
        for name, given in (("before", labels), ("after", changed))
    )
    np.testing.assert_array_equal(after[first], before[first])
    assert (after[~first] != before[~first]).mean() > 0.5


@pytest.mark.parametrize("make", [_network, _trees, _linear])
def test_new_rows_are_predicted_by_all_folds(make, tmp_path):
    features, labels = _rows()
    model = _trained(make, tmp_path, features, labels)
    by_fold = [
        _probabilities(model, features | {FOLD: np.full(ROWS, fold, np.int32)})
        for fold in range(FOLDS)
    ]
    new = {key: each for key, each in features.items() if key != FOLD}
    np.testing.assert_allclose(_probabilities(model, new), np.mean(by_fold, 0), rtol=1e-5)
    assert np.abs(by_fold[0] - by_fold[1]).max() > 1e-3


@pytest.mark.parametrize("labels", [np.arange(103) % 3, np.linspace(0, 1, 103)[:, None]])
def test_folds_have_the_labels_of_all_rows(labels):
    folds = divided(labels, 5, seed=2)
    assert set(np.bincount(folds)) == {20, 21}
    means = [labels[folds == each].mean() for each in range(5)]
    np.testing.assert_allclose(means, labels.mean(), atol=0.05)
    np.testing.assert_array_equal(divided(labels, 5, seed=2), folds)


def test_each_fold_has_as_many_members():
    head = classification_head(2, None, None, "sum")
    with pytest.raises(ValueError, match="a multiple of folds >= 1"):
        TabularEstimator(head, _columns(), members=4, folds=3)
