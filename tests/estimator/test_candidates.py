"""`export_candidates`: the best items for a user, exactly and with faiss; requests that rank many
items for one user.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.estimator.serving import predictor as predictors
from estimatorkit.estimator.serving.predictor import Predictor
from estimatorkit.ops.nn import nearest_neighbors
from tests.sweep import sweep

USERS = [f"user {number}" for number in range(9)]
NUMBERS = list(range(100, 140))


def identity(key: str, buckets: int) -> Any:
    ids = tf.feature_column.categorical_column_with_identity(key, buckets)
    return tf.feature_column.embedding_column(ids, 6)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    words = tf.feature_column.categorical_column_with_vocabulary_list("user", USERS)
    made = tf.estimator.TwoTower(
        [tf.feature_column.embedding_column(words, 6), tf.feature_column.numeric_column("age")],
        [identity("movie", 200)],
        [8],
        embedding_dimension=6,
        model_dir=str(tmp_path_factory.mktemp("model")),
        item_id="movie",
        config=tf.estimator.RunConfig(tf_random_seed=2),
    )
    features = {"user": USERS, "age": np.linspace(-1, 1, 9), "movie": NUMBERS[:9]}
    return made.train(lambda: tf.data.Dataset.from_tensors(features).repeat(3))


def receiver() -> Any:
    specs = {
        "user": tf.TensorSpec([None], tf.string),
        "age": tf.TensorSpec([None], tf.float32),
        "movie": tf.TensorSpec([None], tf.int64),
    }
    return tf.estimator.export.build_raw_serving_input_receiver_fn(specs)


def items() -> Any:
    return tf.data.Dataset.from_tensor_slices({"movie": np.array(NUMBERS)}).batch(7)


@pytest.fixture(scope="module")
def exported(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Predictor]:
    base = tmp_path_factory.mktemp("export")
    with tf.estimator.load_predictor(
        tf.estimator.export_candidates(model, base, receiver(), items, k=4)
    ) as predictor:
        yield predictor


@pytest.mark.slow
def test_best_items_are_found(exported: Predictor) -> None:
    users = {"user": USERS[:3], "age": [0.0, 0.5, -0.5]}
    vectors = exported(users, "user")["user_embedding"]
    matrix = exported({"movie": NUMBERS}, "item")["item_embedding"]
    scores = vectors @ matrix.T
    best = np.argsort(-scores, axis=1)[:, :4]
    found = exported(users)
    assert found["ids"].tolist() == np.array(NUMBERS)[best].tolist()
    assert found["scores"] == pytest.approx(np.take_along_axis(scores, best, 1), abs=1e-5)
    assert exported(users, "top_k")["ids"].tolist() == found["ids"].tolist()
    assert exported.has_independent_rows(exported.signature())


def test_user_is_repeated_for_candidates(exported: Predictor) -> None:
    one = {"user": USERS[3:4], "age": [0.25], "movie": NUMBERS[:5]}
    many = {"user": USERS[3:4] * 5, "age": [0.25] * 5, "movie": NUMBERS[:5]}
    ranked = exported(one, "score")["score"]
    assert ranked.shape == (5,)
    assert ranked == pytest.approx(exported(many, "score")["score"], abs=1e-6)
    other = {"user": USERS, "age": np.zeros(9), "movie": NUMBERS[:1]}  # one item, many users
    assert exported(other, "score")["score"].shape == (9,)


@pytest.mark.parametrize("count", [0, 2])
def test_unequal_row_counts_raise(exported: Predictor, count: int) -> None:
    wrong = {"user": USERS[:count], "age": [0.0], "movie": NUMBERS[:5]}
    with pytest.raises(ValueError, match="different numbers of examples"):
        exported(wrong, "score")


def test_repetition_is_bounded(exported: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictors, "_MOST_REPEATED_BYTES", 50)
    few, many = ({"user": USERS[:1], "age": [0.0], "movie": NUMBERS[:n]} for n in (4, 5))
    assert exported(few, "score")["score"].shape == (4,)
    with pytest.raises(ValueError, match="too large to be repeated"):
        exported(many, "score")


def test_unsupported_models_raise(model: Any, tmp_path: Path) -> None:
    def twice() -> Any:
        return {"movie": np.array([7, 8, 7])}

    def users() -> Any:
        return {"user": np.array(USERS), "age": np.zeros(9)}

    def none() -> Any:
        return tf.data.Dataset.from_tensor_slices({"movie": np.zeros(0, np.int64)}).batch(2)

    for input_fn, k, words in (
        (items, 41, r"k does not fit(.|\n)*41"),
        (twice, 1, r"repeats an item(.|\n)*7 2 times"),
        (users, 1, "predictions lack item_embedding, item_id"),
        (none, 1, "has no items"),
    ):
        with pytest.raises(ValueError, match=words):
            tf.estimator.export_candidates(model, tmp_path, receiver(), input_fn, k)
    only_items = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"movie": tf.TensorSpec([None], tf.int64)}
    )
    with pytest.raises(ValueError, match="predictions lack user_embedding"):
        tf.estimator.export_candidates(model, tmp_path, only_items, items)
    assert not any(tmp_path.iterdir())  # no temporaries


# -- by faiss


def test_missing_faiss_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"estimatorkit\[ann\]"):
        nearest_neighbors.nearest_neighbors([[1.0]], [[1.0]], 1)


@pytest.mark.slow
def test_approximate_export_matches_exact_export(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    path = tf.estimator.export_candidates(model, tmp_path, receiver(), items, 3, approximate=True)
    users = {"user": USERS, "age": np.zeros(9)}
    with tf.estimator.load_predictor(path) as predictor:  # so few items are all compared
        exact, found = (predictor(users, name) for name in ("top_k", "approximate_top_k"))
        assert found["ids"].tolist() == exact["ids"].tolist()
        assert predictor(users)["ids"].tolist() == found["ids"].tolist()


@sweep("size", [5, 16], quick=1)
def test_faiss_nearest_neighbors(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(nearest_neighbors, "SCANNED", 1000)
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3000, size)).astype(np.float32)
    queries = rng.normal(size=(20, size)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.Variable(first)
        found = nearest_neighbors.nearest_neighbors(queries, rows, 10)
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.FailedPreconditionError, match="not built"):
            session.run(found)  # NearestNeighbors without BuildNearestNeighbors
        for matrix in (first, second):
            rows.load(matrix, session)
            session.run(tf.tables_initializer())
            scores, places = session.run(found)
            exact = np.argsort(-(queries @ matrix.T), axis=1)[:, :10]
            hits = [len({*one} & {*other}) for one, other in zip(places, exact, strict=True)]
            assert np.mean(hits) > 9
            assert scores == pytest.approx(
                np.take_along_axis(queries @ matrix.T, places, 1), abs=1e-4
            )
