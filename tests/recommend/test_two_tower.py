"""`TwoTower`, `RetrievalHead` and the estimation of item frequencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.core.graph import Graph
from estimatorkit.recommend.item_frequency import ItemFrequency
from estimatorkit.recommend.retrieval_head import Catalogue, fingerprints

Array = NDArray[Any]

USERS = [f"user {number}" for number in range(20)]
ITEMS = [f"item {number}" for number in range(12)]
RNG = np.random.default_rng(0)
USER = RNG.normal(size=(5, 4)).astype(np.float32)
ITEM = RNG.normal(size=(5, 4)).astype(np.float32)
NEGATIVE = RNG.normal(size=(3, 4)).astype(np.float32)
IDS = ["a", "b", "a", "c", "d", "b", "e", "e"]  # of the items, then of the negatives
PROBABILITY = [0.5, 0.1, 0.5, 1e-9, 0.2, 0.1, 0.01, 3.0]
WEIGHTS = [1.0, 2.0, 0.0, 0.5, 1.0]


def tfrs_losses(
    users: Array,
    candidates: Array,
    temperature: float = 1.0,
    ids: Any = None,
    probability: Any = None,
) -> Array:
    """`tfrs.tasks.Retrieval.call`, step by step, before the reduction."""
    scores = users.astype(np.float64) @ candidates.astype(np.float64).T
    labels = np.eye(*scores.shape)
    scores = scores / temperature
    if probability is not None:
        scores = scores - np.log(np.clip(probability, 1e-6, 1.0))
    if ids is not None:
        own = labels @ (np.asarray(ids)[:, None] == np.asarray(ids)[None, :])
        duplicate = own - labels
        scores = scores + duplicate * np.finfo(np.float32).min / 100
    highest = scores.max(1, keepdims=True)
    normalizer = highest[:, 0] + np.log(np.exp(scores - highest).sum(1))
    losses: Array = normalizer - (scores * labels).sum(1)
    return losses


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(tensor)


@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size"])
@pytest.mark.parametrize("temperature", [1.0, 0.05])
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("with_negatives", [False, True])
def test_loss_matches_tensorflow_recommenders(
    reduction: str, temperature: float, corrected: bool, with_ids: bool, with_negatives: bool
) -> None:
    count = 8 if with_negatives else 5
    logits = {"user": USER, "item": ITEM} | ({"negative": NEGATIVE} if with_negatives else {})
    features = {"id": IDS[:count], "probability": PROBABILITY[:count], "weight": WEIGHTS}
    head = tf.estimator.RetrievalHead(
        4,
        temperature,
        item_id="id" if with_ids else None,
        sampling_probability="probability" if corrected else None,
        weight_column="weight",
        loss_reduction=reduction,
    )
    with Graph().as_default():
        found = value(head.loss(None, logits, {k: tf.constant(v) for k, v in features.items()}))
    losses = tfrs_losses(
        USER,
        np.concatenate([ITEM, NEGATIVE])[:count],
        temperature,
        IDS[:count] if with_ids else None,
        PROBABILITY[:count] if corrected else None,
    )
    total = (losses * WEIGHTS).sum()
    assert found == pytest.approx(total if reduction == "sum" else total / 5, rel=1e-5)


def test_metrics_are_ranks_in_batch_and_among_all_items() -> None:
    items = ["a", "b", "c", "d"]
    embeddings = np.array([[1, 0], [0, 1], [0.6, 0.8], [-1, 0]], np.float32)
    users = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    own = [0, 2, 2]  # the scores of all items are 1, 0, .6, -1, twice, and 0, 1, .8, 0
    head = tf.estimator.RetrievalHead(2, item_id="id", weight_column="weight", top_k=(1, 2))
    with Graph().as_default():
        catalogue = Catalogue(tf.constant(embeddings), fingerprints(tf.constant(items)))
        logits = {"user": users, "item": embeddings[own], "catalogue": catalogue}
        features = {
            "id": tf.constant(["a", "c", "c"]),
            "weight": tf.constant([[1.0], [2.0], [4.0]]),
        }
        metrics = head.eval_metric_ops(features, logits, None)
        found = value({key: update for key, (_, update) in metrics.items()})
    assert found["in_batch_top_1_accuracy"] == pytest.approx(5 / 7)  # 'a' is before the second
    assert found["in_batch_top_2_accuracy"] == 1
    assert found["recall_at_1"] == pytest.approx(1 / 7)
    assert found["recall_at_2"] == 1


def test_item_frequencies_match_paper() -> None:
    rate, steps = 0.1, 60
    frequency = ItemFrequency(buckets=1 << 16, hashes=2, rate=rate)
    rng = np.random.default_rng(1)
    batches = np.where(rng.random((steps, 4)) < 0.5, rng.integers(0, 3, (steps, 4)), 9 + steps)
    last: dict[int, int] = {}
    interval: dict[int, float] = {}
    with Graph().as_default() as graph:
        batch = tf.placeholder(tf.int64, [None])
        probability = frequency.probability(fingerprints(batch), training=True)
        later = tf.group(*graph.get_collection(tf.GraphKeys.UPDATE_OPS))
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies([later]):
            both = tf.assign_add(step, 1)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for number, items in enumerate(batches, 1):
                found, _ = session.run([probability, both], {batch: items})
                for item in set(items.tolist()):
                    since = number - last.get(item, 0)
                    before = interval.get(item, since)
                    interval[item] = before + rate * (since - before)
                    last[item] = number
                assert found == pytest.approx([1 / max(1, interval[i]) for i in items], rel=1e-4)


@pytest.mark.slow
def test_hash_collision_shortens_one_interval() -> None:
    frequency = ItemFrequency(buckets=4, hashes=3, rate=0.05)
    rng = np.random.default_rng(0)
    with Graph().as_default() as graph:
        batch = tf.placeholder(tf.int64, [None])
        frequency.probability(fingerprints(batch), training=True)
        later = [*graph.get_collection(tf.GraphKeys.UPDATE_OPS)]
        increased = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            known = frequency.probability(fingerprints(tf.constant([1, 2])), training=False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(400):  # 1 is in a batch of 5, 2 in every other
                items = [1] * (rng.random() < 0.2) + [2] * (rng.random() < 0.5)
                session.run(later, {batch: items})
                session.run(increased)
            rare, frequent = session.run(known)
    assert rare == pytest.approx(0.2, rel=0.4)
    assert frequent == pytest.approx(0.5, rel=0.4)


# -- the estimator


def embedded(key: str, words: list[str], dimension: int = 8) -> Any:
    ids = tf.feature_column.categorical_column_with_vocabulary_list(key, words)
    return tf.feature_column.embedding_column(ids, dimension)


def clicks(count: int = 1200) -> dict[str, Array]:
    """Clicks of users on one of three items, popular ones more often."""
    rng = np.random.default_rng(3)
    users = rng.integers(0, len(USERS), count)
    items = (users * 5 + rng.choice(3, count, p=[0.6, 0.3, 0.1])) % len(ITEMS)
    return {"user": np.array(USERS)[users], "item": np.array(ITEMS)[items]}


def tower(folder: Path, **options: Any) -> Any:
    config = tf.estimator.RunConfig(model_dir=str(folder), tf_random_seed=1)
    columns = [embedded("user", USERS)], [embedded("item", ITEMS)]
    return tf.estimator.TwoTower(*columns, [16], [16], 8, item_id="item", config=config, **options)


def training() -> Any:
    return tf.data.Dataset.from_tensor_slices(clicks()).shuffle(1200, seed=1).repeat(5).batch(64)


def evaluation() -> Any:
    return tf.data.Dataset.from_tensor_slices(clicks()).batch(256)


def catalogue() -> Any:
    return tf.data.Dataset.from_tensor_slices({"item": ITEMS}).batch(5)


@pytest.mark.slow
def test_learns_clicks_and_keeps_metrics_current(tmp_path: Path) -> None:
    model = tower(tmp_path, candidates=catalogue, top_k=(1, 3), estimate_sampling_probability=True)
    model.train(training, steps=5)
    before = model.evaluate(evaluation)
    model.train(training)
    after = model.evaluate(evaluation)
    assert before["recall_at_3"] < 0.6
    assert after["recall_at_3"] > 0.95  # of the catalogue's embeddings after the training
    assert after["loss"] < before["loss"]
    assert after["recall_at_1"] > 0.5


def test_train_evaluate_and_predict_one_tower(tmp_path: Path) -> None:
    model = tower(tmp_path)
    specs = tf.estimator.TrainSpec(training, max_steps=40), tf.estimator.EvalSpec(evaluation)
    metrics, _ = tf.estimator.train_and_evaluate(model, *specs)
    assert metrics["global_step"] == 40
    pair = next(model.predict(evaluation))
    assert pair["score"] == pytest.approx(pair["user_embedding"] @ pair["item_embedding"], rel=1e-4)
    assert np.linalg.norm(pair["user_embedding"]) == pytest.approx(1, rel=1e-5)
    (items,) = [
        batch for batch in model.predict(lambda: {"item": ITEMS}, yield_single_examples=False)
    ]
    assert items.keys() == {"item_embedding", "item_id"}
    assert items["item_embedding"].shape == (len(ITEMS), 8)
    user = next(model.predict(lambda: {"user": USERS[:1]}))
    assert user.keys() == {"user_embedding"}


@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_negatives_are_candidates_for_every_user(tmp_path: Path, shape: tuple[int, ...]) -> None:
    model = tower(tmp_path, negative_prefix="not_", sampling_probability="p", temperature=0.2)
    few = {key: values[:3] for key, values in clicks().items()}
    others = np.array(ITEMS)[:6].reshape(shape)
    rare = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(shape)
    features = few | {"p": np.float32([0.5, 0.2, 0.3]), "not_item": others, "not_p": rare}
    model.train(lambda: tf.data.Dataset.from_tensors(features), steps=1)
    users = [each["user_embedding"] for each in model.predict(lambda: {"user": few["user"]})]
    ids = [*few["item"], *ITEMS[:6]]
    items = [each["item_embedding"] for each in model.predict(lambda: {"item": ids})]
    expected = tfrs_losses(
        np.array(users), np.array(items), 0.2, ids, [0.5, 0.2, 0.3, *rare.reshape(-1)]
    )
    found = model.evaluate(lambda: tf.data.Dataset.from_tensors(features))
    assert found["loss"] == pytest.approx(expected.mean(), rel=1e-5)


def test_tower_signatures_take_own_features(tmp_path: Path) -> None:
    model = tower(tmp_path / "model")
    model.train(training, steps=3)
    features = {key: tf.TensorSpec([None], tf.string) for key in ("user", "item")}
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(features)
    folder = model.export_saved_model(tmp_path / "export", receiver)
    with tf.estimator.load_predictor(folder) as predictor:
        inputs = {name: set(each.inputs) for name, each in predictor.signatures.items()}
        assert inputs == {
            "serving_default": {"user", "item"},
            "score": {"user", "item"},
            "user": {"user"},
            "item": {"item"},
        }
        few = {key: values[:4] for key, values in clicks().items()}
        user = predictor({"user": few["user"]}, "user")["user_embedding"]
        item = predictor({"item": few["item"]}, "item")["item_embedding"]
        assert predictor(few)["score"] == pytest.approx((user * item).sum(1), rel=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"embedding_dimension": 0}, "embedding_dimension must be positive"),
        ({"top_k": (0,)}, "top_k must be positive"),
        ({"dropout": 1.5}, "dropout is not a valid probability"),
        ({"candidates": catalogue}, "need the items' ids"),
        ({"estimate_sampling_probability": True}, "need the items' ids"),
        (
            {"item_id": "i", "estimate_sampling_probability": True, "frequency_rate": 2.0},
            "no share",
        ),
        (
            {"item_id": "i", "estimate_sampling_probability": True, "frequency_hashes": 9},
            "too many",
        ),
        (
            {"item_id": "i", "estimate_sampling_probability": True, "sampling_probability": "p"},
            "either a feature or estimated",
        ),
    ],
)
def test_invalid_arguments_raise(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.estimator.TwoTower([embedded("u", ["a"])], [embedded("i", ["b"])], **options)


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [
        ({"user": ["a"], "item": ["b"]}, {"sampling_probability": "q"}, "feature 'q' is missing"),
        ({"user": ["a"], "item": [["b", "c"]]}, {}, "one value for each candidate"),
        ({"user": ["a"], "item": ["b"]}, {"negative_prefix": "not_"}, "every feature of an item"),
        (({"user": ["a"], "item": ["b"]}, [1.0]), {}, "takes no labels"),
    ],
)
def test_features_are_validated(
    tmp_path: Path, features: Any, options: dict[str, Any], message: str
) -> None:
    model = tower(tmp_path, **options)
    with pytest.raises(ValueError, match=message):
        model.train(lambda: tf.data.Dataset.from_tensors(features))
