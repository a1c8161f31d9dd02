"""k-means against TensorFlow and NumPy: initial centers, resuming, errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
import estimatorkit as tf_v1
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data.dataset import Dataset
from estimatorkit.premade.kmeans import KMeansClustering

RANDOM = np.random.default_rng(0)
POINTS = (RANDOM.normal(size=(60, 2)) + RANDOM.integers(0, 3, (60, 1)) * 3 + 0.5).astype(np.float32)
INITIAL = POINTS[:3]


def batches(size: int, points: Any = POINTS) -> Callable[[], Dataset]:
    return lambda: Dataset.from_tensor_slices(points).repeat().batch(size)


def once(points: Any, size: int = 8) -> Callable[[], Dataset]:
    return lambda: Dataset.from_tensor_slices(points).batch(size)


# What TensorFlow 2.15.1's tf.compat.v1.estimator.experimental.KMeans gives for 7 full batches:
# centers, `score` of the first 8 points, `evaluate` of the first 20 in batches of 8, `transform`.
TENSORFLOW: dict[str, Any] = {
    "squared_euclidean": (
        [[4.04948, 4.13736], [6.29363, 6.57827], [0.2658, 0.37170]],
        *(9.8696, 6.1123, [3.4077, 0.3931, 8.7409], [1, 1, 2, 0, 1, 2]),
    ),
    "cosine": (
        [[0.61582, 0.78789], [0.96778, -0.25181], [-0.95459, -0.29793]],
        *(0.7594, 0.7717, [0.01, 0.4767, 1.8947], [0] * 6),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("metric", TENSORFLOW)
def test_full_batch_matches_tensorflow(metric: str, tmp_path: Path) -> None:
    model = KMeansClustering(
        3, tmp_path, initial_clusters=INITIAL, distance_metric=metric, use_mini_batch=False
    )
    model.train(batches(60), steps=7)
    centers, score, mean_score, distances, nearest = TENSORFLOW[metric]
    np.testing.assert_allclose(model.cluster_centers(), centers, atol=2e-5)
    rows = once(POINTS[:20])
    metrics = model.evaluate(rows)
    assert metrics == {"loss": metrics["score"], "score": metrics["score"], "global_step": 7}
    assert metrics["score"] == pytest.approx(mean_score, abs=1e-4)
    np.testing.assert_allclose(next(model.transform(rows)), distances, atol=1e-4)
    if metric == "cosine":
        return
    assert model.score(rows) == pytest.approx(score, abs=1e-4)
    assert [int(each) for each in model.predict_cluster_index(rows)][:6] == nearest
    row = next(model.predict(rows))
    assert {key: (str(value.dtype), value.shape) for key, value in row.items()} == {
        "all_distances": ("float32", (3,)),
        "cluster_index": ("int64", ()),
    }


@pytest.mark.slow
@pytest.mark.parametrize("delay", [1, 3])
def test_mini_batch_centers_are_running_means(delay: int, tmp_path: Path) -> None:
    model = KMeansClustering(
        3, tmp_path, initial_clusters=INITIAL, mini_batch_steps_per_iteration=delay
    )
    model.train(batches(12), steps=4)
    KMeansClustering(  # resumed: centers are not chosen again
        3, tmp_path, initial_clusters=INITIAL + 9, mini_batch_steps_per_iteration=delay
    ).train(batches(12), steps=3)
    centers = INITIAL.astype(np.float64)
    moving, counts = centers.copy(), np.full(3, 1 if delay == 1 else 0)
    for step in range(7):
        if delay > 1 and step % delay == 0 and step:
            centers, counts = moving.copy(), np.zeros(3, int)
        batch = POINTS[np.arange(12 * step, 12 * step + 12) % 60]
        nearest = ((batch[:, None] - centers) ** 2).sum(2).argmin(1)
        for number, point in zip(nearest, batch, strict=True):
            counts[number] += 1
            moving[number] += (point - moving[number]) / counts[number]
        if delay == 1:
            centers = moving.copy()
    np.testing.assert_allclose(model.cluster_centers(), centers, rtol=1e-4)


def test_empty_center_stays(tmp_path: Path) -> None:
    far = np.array([[0.0, 0.0], [3.0, 3.0], [99.0, 99.0]], np.float32)
    model = KMeansClustering(3, tmp_path, initial_clusters=far, use_mini_batch=False)
    model.train(batches(60), steps=2)
    np.testing.assert_array_equal(model.cluster_centers()[2], far[2])


@pytest.mark.slow
@pytest.mark.parametrize("initial", ["random", "kmeans_plus_plus"])
def test_initial_centers_are_points_and_their_batch_is_trained(
    initial: str, tmp_path: Path
) -> None:
    def centers(folder: str, seed: int) -> Any:
        model = KMeansClustering(
            *(4, str(tmp_path / folder), initial),
            seed=seed,
            mini_batch_steps_per_iteration=100,  # the centers are still those that were chosen
        )
        model.train(once(POINTS, 60))  # one batch only
        assert model.get_variable_value("global_step") == 1
        assert model.get_variable_value("cluster_counts").sum() == 60
        return model.cluster_centers()

    first, again = centers("a", 1), centers("b", 1)
    rows = [np.flatnonzero((center == POINTS).all(1)) for center in first]
    assert len({int(row[0]) for row in rows}) == 4
    np.testing.assert_array_equal(first, again)


def test_initial_centers_from_several_small_batches(tmp_path: Path) -> None:
    given: list[Any] = []

    def choose(points: Any, missing: Any) -> Any:
        given.append((points, missing))
        return points[:2]

    model = KMeansClustering(5, tmp_path, choose, mini_batch_steps_per_iteration=100)
    model.train(batches(4), steps=1)
    expected = POINTS[[0, 1, 4, 5, 8]]
    np.testing.assert_array_equal(model.cluster_centers(), expected)
    assert len(given) == 1


def test_init_function_without_centers_raises(tmp_path: Path) -> None:
    model = KMeansClustering(5, tmp_path, lambda points, missing: points[:0])
    with pytest.raises(InvalidArgumentError, match=r"did not return centers(.|\n)*shape \(0, 2\)"):
        model.train(batches(4), steps=1)


def test_random_centers_of_small_batches_differ(tmp_path: Path) -> None:
    points = np.arange(64, dtype=np.float32)[:, None]
    model = KMeansClustering(16, tmp_path, seed=1, mini_batch_steps_per_iteration=100)
    model.train(batches(8, points[:12]), steps=1)  # the second batch: the last four, the first four
    places = model.cluster_centers()[:, 0]
    first, second = places[:8], places[8:]
    np.testing.assert_array_equal(np.sort(first), points[:8, 0])
    np.testing.assert_array_equal(np.sort(second), [0, 1, 2, 3, 8, 9, 10, 11])
    order = [
        int(np.flatnonzero(np.array([8, 9, 10, 11, 0, 1, 2, 3]) == each)[0]) for each in second
    ]
    assert order != first.astype(int).tolist()


@pytest.mark.slow
def test_plus_plus_picks_distant_points(tmp_path: Path) -> None:
    """One point stands in another direction; the rest is one direction at several lengths."""
    points = np.array(
        [[1.0, 0.0], [10.0, 0.0], [100.0, 0.0], [1000.0, 0.0], [0.0, 0.1]], np.float32
    )
    for seed in range(3):
        model = KMeansClustering(
            *(2, str(tmp_path / str(seed)), "kmeans_plus_plus", "cosine"),
            seed=seed,
            mini_batch_steps_per_iteration=100,
        )
        model.train(once(points), steps=1)
        centers = model.cluster_centers()
        np.testing.assert_allclose(centers[np.argsort(centers[:, 0])], [[0, 1], [1, 0]], atol=1e-6)


@pytest.mark.slow
def test_features_are_concatenated_or_built_by_columns(tmp_path: Path) -> None:
    features = {"b": POINTS[:, 1], "a": POINTS[:, :1], "word": np.array(["x", "y"] * 30, object)}
    columns = [tf.feature_column.numeric_column(key) for key in "ab"]
    numbers = {key: features[key] for key in "ab"}
    found = []
    for folder, given, used in (("1", numbers, None), ("2", features, columns)):
        model = KMeansClustering(
            *(3, str(tmp_path / folder), INITIAL), use_mini_batch=False, feature_columns=used
        )
        model.train(batches(60, given), steps=3)
        found.append(model.cluster_centers())
    np.testing.assert_array_equal(*found)
    with pytest.raises(ValueError, match="points must be rows of numbers"):
        KMeansClustering(3, str(tmp_path / "3")).train(batches(60, features["word"]), steps=1)


def test_training_stops_when_loss_converges(tmp_path: Path) -> None:
    model = KMeansClustering(*(3, tmp_path, INITIAL), use_mini_batch=False, relative_tolerance=1e-6)
    model.train(batches(60), steps=100)
    assert 2 < model.get_variable_value("global_step") < 30


def test_arguments_match_tensorflow_and_are_validated(tmp_path: Path) -> None:
    assert tf_v1.estimator.experimental.KMeans is KMeansClustering
    assert list(inspect.signature(KMeansClustering).parameters) == [
        *("num_clusters", "model_dir", "initial_clusters", "distance_metric", "seed"),
        *("use_mini_batch", "mini_batch_steps_per_iteration", "kmeans_plus_plus_num_retries"),
        *("relative_tolerance", "config", "feature_columns"),
    ]
    for arguments, message in (
        ({"initial_clusters": "best"}, "Unsupported initialization algorithm 'best'"),
        ({"distance_metric": "manhattan"}, "Unsupported distance metric 'manhattan'"),
        ({"num_clusters": 0}, "num_clusters must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            KMeansClustering(**{"num_clusters": 3, **arguments})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the input ended before all cluster centers were chosen"):
        KMeansClustering(61, str(tmp_path / "a")).train(once(POINTS))
    with pytest.raises(InvalidArgumentError, match="a batch of 8"):
        KMeansClustering(9, str(tmp_path / "b"), "kmeans_plus_plus").train(once(POINTS))
