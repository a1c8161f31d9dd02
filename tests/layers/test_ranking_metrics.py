"""Metrics of rankings and click models against scikit-learn and enumerated tie orders.

Groups are kept by `KeptExamples`, `KeepExamples` and `GroupedListSums`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sk

import estimatorkit as ek
from tests.sweep import sweep

RANDOM = np.random.RandomState(5)
SIZES = (40, 40, 13)
COUNT = sum(SIZES)
LABELS = RANDOM.randint(0, 2, COUNT)
SCORES = RANDOM.randint(0, 6, COUNT) / 6  # many are equal
WEIGHTS = RANDOM.uniform(0.5, 2.0, COUNT)
GROUPS = RANDOM.randint(0, 15, COUNT) * 10**12
LABELS[GROUPS == 0] = 0


def batches() -> Iterable[slice]:
    ends = np.cumsum(SIZES)
    return [slice(end - size, end) for end, size in zip(ends, SIZES, strict=True)]


def value_of(make: Callable[..., Any], *columns: Any, repeats: int = 1) -> Any:
    with ek.Graph().as_default():
        fed = [
            ek.placeholder(ek.string if each.dtype.kind == "O" else each.dtype, [None])
            for each in columns
        ]
        value, update = make(*fed)
        with ek.Session() as session:
            for _ in range(repeats):
                session.run(ek.local_variables_initializer())
                assert np.all(session.run(value) == 0)
                for rows in batches():
                    feeds = dict(zip(fed, (each[rows] for each in columns), strict=True))
                    last = session.run(update, feeds)
                found = session.run(value)
                np.testing.assert_array_equal(found, last)
            return found


def auc_by_group(weights: Any = None) -> float:
    total = weight = 0.0
    for group in np.unique(GROUPS):
        rows = group == GROUPS
        if len(np.unique(LABELS[rows])) == 2:
            own = None if weights is None else weights[rows]
            size = rows.sum() if weights is None else own.sum()
            total += size * sk.roc_auc_score(LABELS[rows], SCORES[rows], sample_weight=own)
            weight += size
    return total / weight


def names(groups: Any) -> Any:
    return np.array([b"user\0%d" % each for each in groups], object)


@pytest.mark.parametrize("groups", [GROUPS, names(GROUPS)], ids=["int64", "string"])
def test_grouped_auc_matches_scikit_learn(groups: Any) -> None:
    found = value_of(ek.metrics.group_auc, LABELS, SCORES, groups, repeats=2)
    np.testing.assert_allclose(found, auc_by_group(), 1e-6)


def test_weights_count_as_repetitions() -> None:
    found = value_of(ek.metrics.group_auc, LABELS, SCORES, GROUPS, WEIGHTS)
    np.testing.assert_allclose(found, auc_by_group(WEIGHTS), 1e-6)


def test_single_class_groups_have_no_auc() -> None:
    found = value_of(ek.metrics.group_auc, np.zeros(COUNT), SCORES, GROUPS)
    assert found == 0


# -- lists, by their definitions in every order of equal scores


def in_order(kind: str, labels: Any, weights: Any, k: int) -> float:
    hits = labels >= 1
    ranks = np.arange(1, len(labels) + 1)
    if kind == "ndcg":
        gains = weights * (2.0**labels - 1)
        discounts = (ranks <= k) / np.log2(ranks + 1)
        best = np.sort(gains)[::-1] @ discounts
        return gains @ discounts / best if best else 0.0
    if not hits.any():
        return 0.0
    if kind == "recall":
        return (weights * hits)[:k].sum() / (weights * hits).sum()
    if kind == "hit_rate":
        return float(hits[:k].any())
    if kind == "mean_reciprocal_rank":
        first = int(np.argmax(hits))
        return 1 / (first + 1) if first < k else 0.0
    precisions = np.cumsum(hits) / ranks
    return (precisions * weights * hits)[:k].sum() / (weights * hits).sum()


def expected_list(kind: str, labels: Any, scores: Any, weights: Any, k: int) -> float:
    tied = [np.flatnonzero(scores == each) for each in sorted(set(scores), reverse=True)]
    orders = itertools.product(*(list(itertools.permutations(each)) for each in tied))
    found = []
    for order in orders:
        places = np.array(list(itertools.chain(*order)))
        found.append(in_order(kind, labels[places], weights[places], k))
    return float(np.mean(found))


def expected_mean(kind: str, rows: list[tuple[Any, Any, Any]], k: int) -> float:
    values, weights = [], []
    for labels, scores, own in rows:
        relevance = 2.0**labels - 1 if kind == "ndcg" else (labels >= 1).astype(float)
        values.append(expected_list(kind, labels, scores, own, k))
        weights.append((own * relevance).sum() / relevance.sum() if relevance.any() else np.nan)
    known = np.array(weights)
    known[np.isnan(known)] = np.nanmean(known)  # as TensorFlow Ranking
    return float(np.average(values, weights=known))


FUNCTIONS = {
    "ndcg": "ndcg_at_k",
    "mean_average_precision": "mean_average_precision_at_k",
    "mean_reciprocal_rank": "mean_reciprocal_rank",
    "recall": "list_recall_at_k",
    "hit_rate": "hit_rate_at_k",
}
LIST_LABELS = RANDOM.randint(0, 3, [12, 6]) * RANDOM.randint(0, 2, [12, 6])
LIST_LABELS[3] = 0
LIST_SCORES = RANDOM.randint(0, 5, [12, 6]).astype(np.float64)
LIST_WEIGHTS = RANDOM.uniform(0.5, 2.0, [12, 6])
PADDED = np.where(np.arange(6) < RANDOM.randint(2, 7, [12, 1]), LIST_LABELS, -1)


def as_rows(labels: NDArray[Any]) -> list[tuple[Any, Any, Any]]:
    real = labels >= 0
    rows = zip(labels, LIST_SCORES, LIST_WEIGHTS, real, strict=True)
    return [(one[kept], score[kept], own[kept]) for one, score, own, kept in rows]


@sweep("k", [2, 6], quick=1)
@sweep("kind", FUNCTIONS, quick=2)
def test_lists_are_rows_or_groups(kind: str, k: int) -> None:
    expected = expected_mean(kind, as_rows(PADDED), k)
    function = getattr(ek.metrics, FUNCTIONS[kind])
    with ek.Graph().as_default():
        fed = [ek.placeholder(ek.float32, [None, 6]) for _ in range(3)]
        value, update = function(fed[0], fed[1], k, fed[2])
        with ek.Session() as session:
            session.run(ek.local_variables_initializer())
            for rows in (slice(0, 5), slice(5, 10), slice(10, 12)):
                columns = (PADDED[rows], LIST_SCORES[rows], LIST_WEIGHTS[rows])
                session.run(update, dict(zip(fed, columns, strict=True)))
            np.testing.assert_allclose(session.run(value), expected, 1e-5)
    order = RANDOM.permutation(72)
    lists = np.repeat(np.arange(12), 6)
    with ek.Graph().as_default():
        dtypes = (ek.float32, ek.float32, ek.float32, ek.int64)
        flat = [ek.placeholder(each, [None]) for each in dtypes]
        value, update = function(flat[0], flat[1], k, flat[2], flat[3])
        with ek.Session() as session:
            session.run(ek.local_variables_initializer())
            whole = [each.reshape(-1) for each in (PADDED, LIST_SCORES, LIST_WEIGHTS)]
            for some in np.array_split(order, 5):
                columns = [each[some] for each in (*whole, lists)]
                session.run(update, dict(zip(flat, columns, strict=True)))
            np.testing.assert_allclose(session.run(value), expected, 1e-5)


def test_ndcg_matches_scikit_learn() -> None:
    value, update = ek.metrics.ndcg_at_k(LIST_LABELS, LIST_SCORES, 3)
    with ek.Session() as session:
        session.run(ek.local_variables_initializer())
        session.run(update)
        expected = sk.ndcg_score(2.0**LIST_LABELS - 1, LIST_SCORES, k=3)
        np.testing.assert_allclose(session.run(value), expected, 1e-6)


# -- click models


@pytest.mark.slow
def test_normalized_cross_entropy_and_calibration() -> None:
    scores = np.clip(SCORES, 0.01, 0.99)
    mean = np.average(LABELS, weights=WEIGHTS)
    loss = sk.log_loss(LABELS, scores, sample_weight=WEIGHTS)
    entropy = -(mean * np.log(mean) + (1 - mean) * np.log(1 - mean))
    found = value_of(ek.metrics.normalized_cross_entropy, LABELS, scores, WEIGHTS, repeats=2)
    np.testing.assert_allclose(found, loss / entropy, 1e-5)
    found = value_of(ek.metrics.calibration, LABELS, scores, WEIGHTS)
    np.testing.assert_allclose(found, np.average(scores, weights=WEIGHTS) / mean, 1e-5)
    rows = value_of(
        lambda *columns: ek.metrics.calibration_by_bucket(*columns, num_buckets=4),
        *(LABELS, scores, WEIGHTS),
    )
    for bucket in range(4):
        inside = np.floor(scores * 4) == bucket
        weight = WEIGHTS[inside].sum()
        wanted = [(each[inside] @ WEIGHTS[inside]) / weight for each in (scores, LABELS)]
        np.testing.assert_allclose(rows[bucket], [*wanted, weight], 1e-5)


# -- in estimators and Keras


def model_input() -> Any:
    features = {"x": SCORES[:, None].astype(np.float32), "user": names(GROUPS)}
    return ek.data.Dataset.from_tensor_slices((features, LABELS)).batch(40)


def estimator(folder: Any) -> Any:
    made = ek.estimator.LinearClassifier(
        [ek.feature_column.numeric_column("x")], model_dir=str(folder)
    )

    def added(features: Any, labels: Any, predictions: Any) -> Any:
        scores = predictions["logistic"]
        return {
            "gauc": ek.metrics.group_auc(labels, scores, features["user"]),
            "ndcg": ek.metrics.ndcg_at_k(labels, scores, 3, groups=features["user"]),
            "nce": ek.metrics.normalized_cross_entropy(labels, scores),
        }

    return ek.estimator.add_metrics(made, added)


@pytest.mark.slow
def test_estimators_evaluate_sequentially_and_in_threads(tmp_path: Any) -> None:
    made = estimator(tmp_path)
    made.train(model_input, steps=30)
    results = [made.evaluate(model_input) for _ in range(2)]
    np.testing.assert_allclose(results[0]["gauc"], auc_by_group(), 1e-6)
    assert 0 < results[0]["nce"] <= 1.5
    workers = [
        threading.Thread(target=lambda: results.append(made.evaluate(model_input)))
        for _ in range(3)
    ]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(results) == 5
    assert all(each == results[0] for each in results)


@pytest.mark.slow
def test_keras_models_group_by_feature() -> None:
    user = ek.keras.Input([], name="user", dtype="int64")
    inputs = {"x": ek.keras.Input([1], name="x"), "user": user}
    outputs = ek.keras.layers.Dense(1, "sigmoid", kernel_initializer="ones")(inputs["x"])
    model = ek.keras.Model(inputs, outputs)
    model.compile(
        "sgd",
        "binary_crossentropy",
        [ek.keras.metrics.GroupAUC("user"), ek.keras.metrics.NDCG(3, "user"), "Calibration"],
    )
    x = {"x": SCORES[:, None].astype(np.float32), "user": GROUPS}
    first = model.evaluate(x, LABELS, batch_size=40, verbose=0, return_dict=True)
    np.testing.assert_allclose(first["group_auc"], auc_by_group(), 1e-6)
    assert model.evaluate(x, LABELS, batch_size=40, verbose=0, return_dict=True) == first
    with pytest.raises(ValueError, match="needs the examples' groups"):
        ek.keras.metrics.GroupAUC().update_state([1.0], [0.5])


@pytest.mark.parametrize("name", ["GroupAUC", "NDCG", "CalibrationByBucket"])
def test_configs_round_trip(name: str) -> None:
    metric = getattr(ek.keras.metrics, name)()
    assert type(metric).from_config(metric.get_config()).get_config() == metric.get_config()


@pytest.mark.slow
def test_compilations_do_not_grow_with_batches(tmp_path: Any) -> None:
    made = estimator(tmp_path)
    made.train(model_input, steps=2)
    counts = []
    for repeats in (2, 6):
        made.evaluate(lambda repeats=repeats: model_input().unbatch().repeat(repeats).batch(31))
        (kept,) = [each for each in made._models._models.values() if each.mode == "eval"][-1:]
        counts.append(sum(kept.session.state.compilations.values()))
    assert counts[1] == counts[0]
