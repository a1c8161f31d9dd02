"""`tf.contrib.factorization`: k-means."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from numpy.typing import NDArray

from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.lazy import listing
from estimatorkit.premade import kmeans

__dir__ = listing(__name__)


class KMeansClustering(kmeans.KMeansClustering):
    """k-means clustering (`tf.contrib.factorization.KMeansClustering`).

    Differs from `KMeans` in the seed's name, and in that `transform` returns squared distances.

    Args:
        random_seed: of the random choice; 0 by default.
        num_clusters, model_dir, initial_clusters, distance_metric, use_mini_batch,
            mini_batch_steps_per_iteration, kmeans_plus_plus_num_retries, relative_tolerance,
            config, feature_columns: see `estimator.experimental.KMeans`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        num_clusters: int,
        model_dir: str | os.PathLike[str] | None = None,
        initial_clusters: Any = kmeans.KMeansClustering.RANDOM_INIT,
        distance_metric: str = kmeans.KMeansClustering.SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Iterable[Any] | None = None,
    ) -> None:
        super().__init__(
            num_clusters,
            model_dir,
            initial_clusters,
            distance_metric,
            random_seed,
            use_mini_batch,
            mini_batch_steps_per_iteration,
            kmeans_plus_plus_num_retries,
            relative_tolerance,
            config,
            feature_columns,
        )

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[NDArray[Any]]:
        """The distances of each point to all centers: squared Euclidean, or cosine."""
        for row in self.predict(input_fn, predict_keys=[self.ALL_DISTANCES]):
            yield row[self.ALL_DISTANCES]
