"""`KMeansClustering`: full-batch and mini-batch k-means.

A training step is a compiled matrix product and update. The initial centers are chosen on the host
from the first batches, which training then uses as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.data.iterator_ops import iterator_states, restore_iterators
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.serving.export_outputs import ExportOutput, PredictOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers import metrics
from estimatorkit.layers.feature_column import input_layer
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.hooks import SessionRunArgs, SessionRunHook
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

Array = NDArray[Any]

_RANDOM, _PLUS_PLUS = "random", "kmeans_plus_plus"
_EUCLIDEAN, _COSINE = "squared_euclidean", "cosine"


@dataclass(frozen=True)
class _Settings:
    """The arguments of `KMeansClustering` for its model function."""

    num_clusters: int
    initial_clusters: Any
    distance_metric: str
    seed: int | None
    use_mini_batch: bool
    steps_per_iteration: int
    retries: int
    relative_tolerance: float | None
    feature_columns: Any

    @property
    def delayed(self) -> bool:
        """Whether centers are only updated every few steps."""
        return self.use_mini_batch and self.steps_per_iteration > 1

    @property
    def cosine(self) -> bool:
        """Whether distances are cosine distances."""
        return self.distance_metric == _COSINE

    def stored(self, centers: Tensor) -> Tensor:
        """Centers in stored form: normalized for cosine distances."""
        return nn.l2_normalize(centers, 1) if self.cosine else centers


# -- the model


def _points_of(features: Any, feature_columns: Any) -> Tensor:
    """Points, float32 `(batch, dimensions)`: all features concatenated by name, or those of
    the columns.
    """
    if not isinstance(features, Mapping):
        points = convert_to_tensor(features, name="points")
    elif feature_columns:
        points = input_layer(features, feature_columns)
    else:
        parts = [convert_to_tensor(features[key]) for key in sorted(features)]
        parts = [array.expand_dims(each, 1) if each.shape.rank == 1 else each for each in parts]
        points = joining.concat(parts, 1) if len(parts) > 1 else parts[0]
    if points.shape.rank != 2 or points.shape[1] is None or points.dtype.on_host:
        raise value_error(
            "points must be rows of numbers",
            expected="(batch, dimensions)",
            received=f"{points.name} {points.shape} {points.dtype.name}",
            made_at=points.op.source,
            hint="use feature_columns=[...] to convert strings to numbers",
        )
    return elementwise.cast(points, float32)


def _distances(points: Tensor, centers: Tensor, cosine: bool) -> Tensor:
    """From each point to each center, `(batch, clusters)`; all unit vectors where `cosine`."""
    products = linalg.matmul(points, centers, transpose_b=True)
    if cosine:
        return 1.0 - products
    squares = reduce.reduce_sum(elementwise.square(points), 1, keepdims=True)
    return squares - 2.0 * products + reduce.reduce_sum(elementwise.square(centers), 1)


class _Copies:
    """Copies of the centers that steps move; every few steps they become the centers.

    Attributes:
        centers: those that a step's points are compared with.
        due: whether the copies become the centers in this step, before they are moved.
    """

    def __init__(self, settings: _Settings, centers: Variable) -> None:
        period = np.int64(settings.steps_per_iteration)
        self.held = Variable(centers.initial_value, name="clusters_updated", trainable=False)
        left = Variable(period, name="update_in_steps", trainable=False)
        self.due = left <= np.int64(0)
        whole = settings.stored(self.held.value())
        self.centers = indexing.where(self.due, whole, centers)
        self.moving = indexing.where(self.due, whole, self.held)
        self.count_down = left.assign(indexing.where(self.due, period, left) - np.int64(1))


def _model_fn(settings: _Settings) -> Callable[..., EstimatorSpec]:
    def model_fn(features: Any, mode: str, config: Any = None) -> EstimatorSpec:
        training = mode == ModeKeys.TRAIN
        raw = _points_of(features, settings.feature_columns)
        held = [settings.num_clusters, raw.shape[1]]
        centers = Variable(np.zeros(held, np.float32), name="clusters", trainable=False)
        copies = _Copies(settings, centers) if training and settings.delayed else None
        points = nn.l2_normalize(raw, 1) if settings.cosine else raw
        current = centers.value() if copies is None else copies.centers
        near = nn.l2_normalize(current, 1) if settings.cosine else current
        distances = _distances(points, near, settings.cosine)
        nearest = reduce.argmin(distances, 1)
        loss = reduce.reduce_sum(reduce.reduce_min(distances, 1))
        if training:
            hooks: list[SessionRunHook] = [_ChooseCenters(settings, raw, centers, copies)]
            if settings.relative_tolerance is not None:
                hooks.append(_StopWhereLossStays(loss, settings.relative_tolerance))
            update = _update(settings, points, nearest, centers, copies)
            with get_default_graph().control_dependencies([update, loss]):
                train_op = get_or_create_global_step().assign_add(1).op
            return EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)
        predictions = {
            KMeansClustering.ALL_DISTANCES: distances,
            KMeansClustering.CLUSTER_INDEX: nearest,
        }
        outputs: dict[str, ExportOutput] = {
            key: PredictOutput(value) for key, value in predictions.items()
        }
        outputs[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = outputs[KMeansClustering.CLUSTER_INDEX]
        return EstimatorSpec(
            mode,
            predictions=predictions,
            loss=loss,
            eval_metric_ops={KMeansClustering.SCORE: metrics.mean(loss)},
            export_outputs=outputs,
        )

    return model_fn


def _update(
    settings: _Settings,
    points: Tensor,
    nearest: Tensor,
    centers: Variable,
    copies: _Copies | None,
) -> Operation:
    """One step: moves centers to the means of their nearest points."""
    member = indexing.one_hot(nearest, settings.num_clusters, dtype=float32)
    new = reduce.reduce_sum(member, 0)
    sums = linalg.matmul(member, points, transpose_a=True)
    if not settings.use_mini_batch:
        means = sums / elementwise.maximum(new, 1.0)[:, None]
        # A center without points stays where it is.
        kept = indexing.where(new[:, None] > 0.0, means, centers)
        replaced: Operation = centers.assign(settings.stored(kept)).op
        return replaced
    first = np.full([settings.num_clusters], 1 if copies is None else 0, np.int64)
    counts = Variable(first, name="cluster_counts", trainable=False)
    if copies is None:
        moved, total = _moved(centers, counts, new, sums)
        both: Operation = builtin_ops.group(centers.assign(moved), counts.assign(total))
        return both
    counted = indexing.where(copies.due, counts * np.int64(0), counts)
    moved, total = _moved(copies.moving, counted, new, sums)
    all_of_it: Operation = builtin_ops.group(
        centers.assign(copies.centers),
        copies.held.assign(moved),
        counts.assign(total),
        copies.count_down,
    )
    return all_of_it


def _moved(centers: Any, counts: Any, new: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
    """Running means of all points so far, and their counts."""
    total = counts + elementwise.cast(new, int64)
    step = elementwise.div_no_nan(
        sums - new[:, None] * centers, elementwise.cast(total, float32)[:, None]
    )
    return centers + step, total


# -- before and after steps


class _ChooseCenters(SessionRunHook):
    """Chooses the initial centers, unless restored from a checkpoint."""

    def __init__(
        self, settings: _Settings, points: Tensor, centers: Variable, copies: _Copies | None
    ) -> None:
        self._settings = settings
        self._points = points
        self._centers = [centers] if copies is None else [centers, copies.held]
        self._chosen = Variable(False, name="initialized", trainable=False)
        self._missing = array.placeholder_with_default(np.int32(settings.num_clusters), [])
        initial = settings.initial_clusters
        self._given: Tensor | None = None
        if callable(initial):
            self._given = convert_to_tensor(initial(points, self._missing))
        elif not isinstance(initial, str):
            self._given = convert_to_tensor(initial, dtype=float32)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Chooses the centers, and rewinds the input."""
        if session.run(self._chosen):
            return
        positions = iterator_states(session.state)
        values = self._choose(session)
        restore_iterators(session.state, positions)
        if self._settings.cosine:
            values = _unit_vectors(values)
        for variable in self._centers:
            variable.load(values.astype(np.float32), session)
        self._chosen.load(np.bool_(True), session)

    def _choose(self, session: Any) -> Array:
        wanted = self._settings.num_clusters
        found: list[Array] = []
        # One generator for all batches: otherwise each would draw the same positions.
        random = np.random.default_rng(self._settings.seed)
        while (missing := wanted - sum(map(len, found))) > 0:
            try:
                found.append(self._some(session, missing, random))
            except OutOfRangeError:
                raise value_error(
                    "the input ended before all cluster centers were chosen",
                    expected=f"at least num_clusters={wanted} points",
                    received=f"{wanted - missing} centers from the whole input",
                    hint="repeat the data in input_fn, or use fewer clusters",
                ) from None
        return np.concatenate(found)

    def _some(self, session: Any, missing: int, random: np.random.Generator) -> Array:
        """Centers from the next batch, up to `missing`."""
        settings = self._settings
        if self._given is not None:
            values: Array = np.asarray(session.run(self._given, {self._missing: np.int32(missing)}))
            if not len(values):
                raise InvalidArgumentError.explained(
                    "initial_clusters did not return centers",
                    expected=f"1 to {missing} rows from each batch until all centers are chosen",
                    received=f"an array of shape {values.shape}",
                    made_at=self._given.op.source,
                    op=self._given.op,
                )
            return values[:missing]
        batch: Array = session.run(self._points)
        if settings.initial_clusters == _RANDOM:
            return batch[random.permutation(len(batch))[:missing]]
        if len(batch) < missing:
            raise InvalidArgumentError.explained(
                "kmeans++ chooses all centers from the first batch, which is too small",
                expected=f"at least {missing} points",
                received=f"a batch of {len(batch)}",
                hint="use larger batches, or initial_clusters='random'",
                op=self._points.op,
            )
        from sklearn.cluster import kmeans_plusplus

        trials = None if settings.retries < 0 else settings.retries + 1
        state = None if settings.seed is None else np.random.RandomState(settings.seed)
        batch = _unit_vectors(batch) if settings.cosine else batch
        centers, _ = kmeans_plusplus(batch, missing, random_state=state, n_local_trials=trials)
        return np.asarray(centers)


def _unit_vectors(values: Array) -> Array:
    """Normalizes rows."""
    unit: Array = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-6)
    return unit


class _StopWhereLossStays(SessionRunHook):
    """Stops training when the relative change of the loss is below a tolerance."""

    def __init__(self, loss: Tensor, tolerance: float) -> None:
        self._loss = loss
        self._tolerance = tolerance
        self._last: float | None = None

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Fetches the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Compares it with the previous one."""
        loss = float(run_values.results)
        if self._last is not None:
            change = abs(loss - self._last) / (1 + abs(self._last))
            if change < self._tolerance:
                run_context.request_stop()
        self._last = loss


class KMeansClustering(Estimator):
    """K-means clustering (`tf.compat.v1.estimator.experimental.KMeans`).

    The input is a batch of points: a tensor `(batch, dimensions)`, or a dict of features that are
    concatenated in the order of their keys. There are no labels.

    Evaluation gives `score` and `loss`: the sum over a batch of each point's distance to the
    nearest center, the mean over batches. Predictions, for each point: `cluster_index` int64 and
    `all_distances` float32 `(num_clusters,)`.

    Differences from TensorFlow: the batches from which the initial centers are chosen are also used
    for training, and a center that is nearest to no point keeps its place (in TensorFlow it moves
    to the origin).

    Args:
        num_clusters: the number of clusters; ignored if `initial_clusters` is an array.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        initial_clusters: the initial centers: 'random' (default) points of the first batches,
            'kmeans_plus_plus' (Arthur & Vassilvitskii 2007, by scikit-learn) on the first batch, an
            array `(num_clusters, dimensions)`, or a function `f(points, missing)` of tensors that
            returns up to `missing` centers for a batch.
        distance_metric: 'squared_euclidean' (default), or 'cosine': 1 - cosine of the angle.
        seed: the seed of the random initialization.
        use_mini_batch: True (default): centers are means of the points of all steps (Sculley 2010);
            False: each step is a step of Lloyd's algorithm, whose batch should hold all points.
        mini_batch_steps_per_iteration: the number of steps between updates of the centers, with
            mini-batches.
        kmeans_plus_plus_num_retries: the number of additional candidates that k-means++ tries for
            each center.
        relative_tolerance: stop when the relative change of the loss is smaller.
        config: a `RunConfig`.
        feature_columns: dense columns that convert a dict of features to points.

    Raises:
        ValueError: an argument is invalid.
    """

    SQUARED_EUCLIDEAN_DISTANCE: ClassVar[str] = _EUCLIDEAN
    COSINE_DISTANCE: ClassVar[str] = _COSINE
    RANDOM_INIT: ClassVar[str] = _RANDOM
    KMEANS_PLUS_PLUS_INIT: ClassVar[str] = _PLUS_PLUS
    SCORE: ClassVar[str] = "score"
    CLUSTER_INDEX: ClassVar[str] = "cluster_index"
    ALL_DISTANCES: ClassVar[str] = "all_distances"
    CLUSTER_CENTERS_VAR_NAME: ClassVar[str] = "clusters"

    def __init__(
        self,
        num_clusters: int,
        model_dir: str | os.PathLike[str] | None = None,
        initial_clusters: Any = _RANDOM,
        distance_metric: str = _EUCLIDEAN,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Iterable[Any] | None = None,
    ) -> None:
        if isinstance(initial_clusters, str) and initial_clusters not in (_RANDOM, _PLUS_PLUS):
            raise ValueError(f"Unsupported initialization algorithm '{initial_clusters}'")
        if distance_metric not in (_EUCLIDEAN, _COSINE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}'")
        if not isinstance(initial_clusters, (str, Tensor)) and not callable(initial_clusters):
            initial_clusters = np.asarray(initial_clusters, np.float32)
            num_clusters = len(initial_clusters)
        if num_clusters < 1:
            raise value_error("num_clusters must be positive", received=num_clusters)
        self._distance_metric = distance_metric
        settings = _Settings(
            int(num_clusters),
            initial_clusters,
            distance_metric,
            seed,
            use_mini_batch,
            mini_batch_steps_per_iteration,
            kmeans_plus_plus_num_retries,
            relative_tolerance,
            None if feature_columns is None else list(feature_columns),
        )
        super().__init__(model_fn=_model_fn(settings), model_dir=model_dir, config=config)

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The index of each point's nearest center; `input_fn` as for `predict`."""
        for row in self.predict(input_fn, predict_keys=[self.CLUSTER_INDEX]):
            yield row[self.CLUSTER_INDEX]

    def score(self, input_fn: Callable[..., Any]) -> float:
        """The sum over the points of the first batch of the distance to the nearest center."""
        return float(self.evaluate(input_fn, steps=1)[self.SCORE])

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Array]:
        """Each point's distances to all centers: Euclidean (not squared), or cosine."""
        for row in self.predict(input_fn, predict_keys=[self.ALL_DISTANCES]):
            distances = row[self.ALL_DISTANCES]
            # Rounding may make a distance of 0 slightly negative.
            squared = self._distance_metric == _EUCLIDEAN
            yield np.sqrt(np.maximum(distances, 0.0)) if squared else distances

    def cluster_centers(self) -> Array:
        """The centers, float32 `(num_clusters, dimensions)`."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)


__all__ = ["KMeansClustering"]
