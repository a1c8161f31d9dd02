"""Streaming metrics as functions of the module that they use as `tf`, with their arrays.

`V1` are those of `tf.metrics`, called with labels, predictions and weights; `KERAS` the classes of
`tf.keras.metrics`. Each stands beside the name of its arrays in `ARRAYS`: labels, predictions and
one weight an example. `look_at` and `look_at_keras` stream batches through them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

ROWS = 12
BATCHES = (slice(0, 5), slice(5, 10), slice(10, 12))
HALVES = (slice(0, 6), slice(6, 12))
UNEVEN = [0.2, 0.5, 0.5, 0.9, 0.1]
"""Thresholds out of order, one of them twice."""

Arrays = tuple[Any, Any, Any]


def _arrays() -> dict[str, Arrays]:
    random = np.random.default_rng(11)
    weights = np.array([1, 2, 0, 1, 0.5, 1, 3, 1, 1.5, 0, 2, 1], np.float32)
    labels = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0])
    decisions = np.array([0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1])
    chances = random.uniform(0, 1, ROWS).astype(np.float32)
    chances[[0, 1, 2, 5, 8]] = [0.0, 1.0, 0.5, 0.9, 0.5]
    numbers = random.normal(1, 2, (2, ROWS)).astype(np.float32)
    vectors = random.normal(0, 2, (2, ROWS, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    classes = random.integers(0, 4, (2, ROWS))
    classes[1, 3:8] = classes[0, 3:8]
    scores = random.normal(0, 1, (ROWS, 5)).astype(np.float32)
    best = np.argsort(-scores, 1)
    ranked = np.stack([best[:, 1], best[:, 3]], 1)
    ranked[0] = [best[0, 0], best[0, 2]]
    ranked[1] = [best[1, 0], -1]
    ranked[2] = [best[2, 2], best[2, 2]]
    ranked[3] = [best[3, 0], 7]
    bits = random.integers(0, 2, (ROWS, 3)).astype(np.float32)
    chances_of_bits = random.uniform(0, 1, (ROWS, 3)).astype(np.float32)
    one_hot = np.eye(3, dtype=np.float32)[random.integers(0, 3, ROWS)]
    shares = random.dirichlet([1.0, 1.0, 1.0], ROWS).astype(np.float32)
    shares[::2] = (shares[::2] + one_hot[::2]) / 2
    return {
        "decisions": (labels, decisions, weights),
        "chances": (labels, chances, weights),
        "numbers": (numbers[0], numbers[1], weights),
        "columns": (numbers[0][:, None], numbers[1][:, None], weights),
        "vectors": (vectors[0], vectors[1], weights),
        "positive vectors": (np.abs(vectors[0]), np.abs(vectors[1]), weights),
        "classes": (classes[0], classes[1], weights),
        "ranked": (ranked, scores, weights),
        "ranked best": (ranked, best[:, :3], weights),
        "ranked one": (best[:, 1], scores, weights),
        "bits": (bits, chances_of_bits, weights),
        "one hot": (one_hot, shares, weights),
        "indices": (one_hot.argmax(1), shares, weights),
        "column of indices": (one_hot.argmax(1)[:, None], shares, weights),
        "column of bits": (labels[:, None], chances[:, None], weights),
    }


ARRAYS = _arrays()

Metric = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


def _sparse(tf: Any, labels: Any) -> Any:
    """Labels without those below 0."""
    indices = tf.where(tf.greater_equal(labels, 0))
    values = tf.gather_nd(labels, indices)
    return tf.SparseTensor(indices, values, tf.shape(labels, out_type=tf.int64))


def _column(tf: Any, weights: Any) -> Any:
    return None if weights is None else tf.expand_dims(weights, 1)


V1: dict[str, tuple[str, Metric]] = {
    "mean": ("numbers", lambda tf, y, p, w: tf.metrics.mean(p, w)),
    "mean_tensor": (
        "numbers",
        lambda tf, y, p, w: tf.metrics.mean_tensor(
            tf.stack([tf.reduce_sum(p), tf.reduce_max(p)]),
            None if w is None else tf.stack([tf.reduce_sum(w), 1.0]),
        ),
    ),
    "percentage_below": ("numbers", lambda tf, y, p, w: tf.metrics.percentage_below(p, 1.2, w)),
    "accuracy": ("decisions", lambda tf, y, p, w: tf.metrics.accuracy(y, p, w)),
    "mean_absolute_error": ("numbers", lambda tf, y, p, w: tf.metrics.mean_absolute_error(y, p, w)),
    "mean_squared_error": ("numbers", lambda tf, y, p, w: tf.metrics.mean_squared_error(y, p, w)),
    "root_mean_squared_error": (
        "numbers",
        lambda tf, y, p, w: tf.metrics.root_mean_squared_error(y, p, w, name="rmse"),
    ),
    "mean_relative_error": (
        "numbers",
        lambda tf, y, p, w: tf.metrics.mean_relative_error(
            y, p, tf.where(tf.greater(y, 0.0), y, tf.zeros_like(y)), w
        ),
    ),
    "mean_cosine_distance": (
        "vectors",
        lambda tf, y, p, w: tf.metrics.mean_cosine_distance(y, p, 1, _column(tf, w)),
    ),
    "mean_iou": ("classes", lambda tf, y, p, w: tf.metrics.mean_iou(y, p, 5, w)),
    "mean_per_class_accuracy": (
        "classes",
        lambda tf, y, p, w: tf.metrics.mean_per_class_accuracy(y, p, 4, w),
    ),
    "precision": ("decisions", lambda tf, y, p, w: tf.metrics.precision(y, p, w)),
    "recall": ("decisions", lambda tf, y, p, w: tf.metrics.recall(y, p, w)),
    **{
        name: ("decisions", lambda tf, y, p, w, name=name: getattr(tf.metrics, name)(y, p, w))
        for name in ("true_positives", "true_negatives", "false_positives", "false_negatives")
    },
    **{
        f"{name}_at_thresholds": (
            "chances",
            lambda tf, y, p, w, name=name: getattr(tf.metrics, f"{name}_at_thresholds")(
                y, p, UNEVEN, w
            ),
        )
        for name in (
            *("precision", "recall", "true_positives", "true_negatives", "false_positives"),
            "false_negatives",
        )
    },
    **{
        f"auc {curve} {method}": (
            "chances",
            lambda tf, y, p, w, curve=curve, method=method: tf.metrics.auc(
                y, p, w, curve=curve, summation_method=method
            ),
        )
        for curve in ("ROC", "PR")
        for method in ("trapezoidal", "careful_interpolation", "minoring", "majoring")
    },
    "auc of 3 thresholds": (
        "chances",
        lambda tf, y, p, w: tf.metrics.auc(y, p, w, num_thresholds=3),
    ),
    "auc of thresholds": (
        "chances",
        lambda tf, y, p, w: tf.metrics.auc(y, p, w, thresholds=[0.5, 0.2, 0.9]),
    ),
    "sensitivity_at_specificity": (
        "chances",
        lambda tf, y, p, w: tf.metrics.sensitivity_at_specificity(y, p, 0.6, w),
    ),
    "specificity_at_sensitivity": (
        "chances",
        lambda tf, y, p, w: tf.metrics.specificity_at_sensitivity(y, p, 0.6, w, 50),
    ),
    "precision_at_k": ("ranked", lambda tf, y, p, w: tf.metrics.precision_at_k(y, p, 3, None, w)),
    "precision_at_k of a class": (
        "ranked",
        lambda tf, y, p, w: tf.metrics.precision_at_k(y, p, 3, class_id=1, weights=w),
    ),
    "sparse_precision_at_k": (
        "ranked",
        lambda tf, y, p, w: tf.metrics.sparse_precision_at_k(_sparse(tf, y), p, 2, weights=w),
    ),
    "precision_at_top_k": (
        "ranked best",
        lambda tf, y, p, w: tf.metrics.precision_at_top_k(y, p, 3, weights=w),
    ),
    "recall_at_k": ("ranked", lambda tf, y, p, w: tf.metrics.recall_at_k(y, p, 3, weights=w)),
    "recall_at_k of one label": (
        "ranked one",
        lambda tf, y, p, w: tf.metrics.recall_at_k(y, p, 2, weights=w),
    ),
    "recall_at_k of a class": (
        "ranked",
        lambda tf, y, p, w: tf.metrics.recall_at_k(y, p, 3, class_id=2, weights=w),
    ),
    "recall_at_k of sparse labels": (
        "ranked",
        lambda tf, y, p, w: tf.metrics.recall_at_k(_sparse(tf, y), p, 2, weights=w),
    ),
    "recall_at_top_k": (
        "ranked best",
        lambda tf, y, p, w: tf.metrics.recall_at_top_k(y, p, class_id=1, weights=w),
    ),
    "average_precision_at_k": (
        "ranked",
        lambda tf, y, p, w: tf.metrics.average_precision_at_k(y, p, 4, w),
    ),
    "average_precision_at_k of one label": (
        "ranked one",
        lambda tf, y, p, w: tf.metrics.average_precision_at_k(y, p, 2, w),
    ),
    "sparse_average_precision_at_k": (
        "ranked",
        lambda tf, y, p, w: tf.metrics.sparse_average_precision_at_k(_sparse(tf, y), p, 3, w),
    ),
}

Make = Callable[[Any], Any]


def _many(arrays: str, *made: tuple[str, Make]) -> dict[str, tuple[str, Make]]:
    return {name: (arrays, make) for name, make in made}


KERAS: dict[str, tuple[str, Make]] = {
    **{
        name: (arrays, lambda k, name=name: getattr(k, name)())
        for arrays, names in {
            "decisions": ("Accuracy",),
            "columns": (
                *("MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError"),
                *("RootMeanSquaredError", "LogCoshError", "R2Score"),
            ),
            "vectors": ("CosineSimilarity", "CategoricalHinge"),
            "positive vectors": ("MeanSquaredLogarithmicError", "Poisson", "KLDivergence"),
            "bits": ("BinaryAccuracy", "Hinge", "SquaredHinge", "F1Score"),
            "column of bits": (
                *("BinaryCrossentropy", "Precision", "Recall", "AUC", "TruePositives"),
                *("TrueNegatives", "FalsePositives", "FalseNegatives", "BinaryIoU"),
            ),
            "one hot": ("CategoricalAccuracy", "CategoricalCrossentropy"),
            "indices": ("SparseCategoricalAccuracy", "SparseCategoricalCrossentropy"),
        }.items()
        for name in names
    },
    **_many(
        "column of bits",
        ("AUC PR", lambda k: k.AUC(curve="PR")),
        ("AUC minoring", lambda k: k.AUC(summation_method="minoring")),
        ("AUC PR minoring", lambda k: k.AUC(100, "PR", "minoring")),
        ("AUC PR majoring", lambda k: k.AUC(curve="PR", summation_method="majoring")),
        ("AUC thresholds", lambda k: k.AUC(thresholds=[0.7, 0.5, 0.1], name="area")),
        ("AUC logits", lambda k: k.AUC(from_logits=True)),
        ("TruePositives thresholds", lambda k: k.TruePositives([0.7, 0.2])),
        ("FalseNegatives thresholds", lambda k: k.FalseNegatives(thresholds=UNEVEN)),
        ("Precision thresholds", lambda k: k.Precision([0.2, 0.5, 0.8])),
        ("Recall threshold", lambda k: k.Recall(thresholds=0.3)),
        ("SensitivityAtSpecificity", lambda k: k.SensitivityAtSpecificity(0.6)),
        ("SpecificityAtSensitivity", lambda k: k.SpecificityAtSensitivity(0.6, num_thresholds=1)),
        ("PrecisionAtRecall", lambda k: k.PrecisionAtRecall(0.6)),
        ("RecallAtPrecision", lambda k: k.RecallAtPrecision(0.6, 50)),
        ("BinaryAccuracy threshold", lambda k: k.BinaryAccuracy(threshold=0.8)),
        ("BinaryIoU class", lambda k: k.BinaryIoU([1], 0.3)),
        ("BinaryCrossentropy logits", lambda k: k.BinaryCrossentropy(from_logits=True)),
    ),
    **_many(
        "bits",
        ("AUC labels", lambda k: k.AUC(multi_label=True, num_labels=3)),
        ("AUC weighed", lambda k: k.AUC(multi_label=True, label_weights=[1.0, 2.0, 0.5])),
        ("AUC weighed PR", lambda k: k.AUC(curve="PR", multi_label=True, label_weights=[1, 2, 3])),
        ("Precision class", lambda k: k.Precision(class_id=1)),
        ("Precision top", lambda k: k.Precision(top_k=2)),
        ("Recall top class", lambda k: k.Recall(top_k=1, class_id=2)),
        ("PrecisionAtRecall class", lambda k: k.PrecisionAtRecall(0.5, class_id=0)),
        ("F1Score macro", lambda k: k.F1Score("macro", 0.4)),
        ("F1Score micro", lambda k: k.F1Score("micro")),
        ("FBetaScore", lambda k: k.FBetaScore("weighted", 2.0)),
    ),
    **_many(
        "one hot",
        ("TopKCategoricalAccuracy", lambda k: k.TopKCategoricalAccuracy(2)),
        ("OneHotIoU", lambda k: k.OneHotIoU(3, [0, 2])),
        ("OneHotMeanIoU", lambda k: k.OneHotMeanIoU(3)),
        (
            "CategoricalCrossentropy smooth",
            lambda k: k.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2),
        ),
    ),
    **_many(
        "indices",
        ("SparseTopKCategoricalAccuracy", lambda k: k.SparseTopKCategoricalAccuracy(2)),
        (
            "SparseCategoricalCrossentropy ignore",
            lambda k: k.SparseCategoricalCrossentropy(ignore_class=1),
        ),
    ),
    **_many(
        "column of indices",
        ("SparseCategoricalAccuracy column", lambda k: k.SparseCategoricalAccuracy("acc")),
        ("SparseTopK column", lambda k: k.SparseTopKCategoricalAccuracy(2)),
    ),
    **_many(
        "classes",
        ("MeanIoU", lambda k: k.MeanIoU(5)),
        ("MeanIoU ignore", lambda k: k.MeanIoU(4, ignore_class=2)),
        ("IoU", lambda k: k.IoU(4, [0, 3])),
    ),
    **_many(
        "vectors",
        ("R2Score raw", lambda k: k.R2Score(None)),
        ("R2Score weighted", lambda k: k.R2Score("variance_weighted_average")),
        ("MeanMetricWrapper", lambda k: k.MeanMetricWrapper(k.mean_squared_error, "w")),
    ),
}
VALUES: dict[str, tuple[str, Make]] = {
    "Mean": ("vectors", lambda k: k.Mean()),
    "Sum": ("vectors", lambda k: k.Sum(name="all", dtype="float64")),
}
"""Metrics of values instead of labels and predictions."""

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "binary_accuracy": lambda k: k.binary_accuracy(*ARRAYS["one hot"][:2], threshold=0.4),
    "categorical_accuracy": lambda k: k.categorical_accuracy(*ARRAYS["one hot"][:2]),
    "sparse_categorical_accuracy": lambda k: k.sparse_categorical_accuracy(*ARRAYS["indices"][:2]),
    "sparse_categorical_accuracy of a column": lambda k: k.sparse_categorical_accuracy(
        *ARRAYS["column of indices"][:2]
    ),
    "top_k_categorical_accuracy": lambda k: k.top_k_categorical_accuracy(*ARRAYS["one hot"][:2], 2),
    "sparse_top_k_categorical_accuracy": lambda k: k.sparse_top_k_categorical_accuracy(
        *ARRAYS["column of indices"][:2], k=1
    ),
}


def look_at(
    tf: Any, arrays: Mapping[str, Arrays], batches: Sequence[slice] = BATCHES
) -> dict[str, dict[str, Any]]:
    """The metrics of `V1`, in one graph: their updates, values, variables and names.

    Args:
        tf: the module.
        arrays: labels, predictions and weights by kind.
        batches: which rows are fed.
    """
    with tf.Graph().as_default() as graph:
        feeds = _placeholders(tf, arrays)
        made, variables = {}, {}
        for index, (name, (kind, make)) in enumerate(V1.items()):
            with tf.name_scope(f"case_{index}"):
                made[name] = make(tf, *feeds[kind])
            variables[name] = tf.local_variables(scope=f"case_{index}/")
        with tf.Session(graph=graph) as session:
            session.run(tf.local_variables_initializer())
            updates = {name: update for name, (_, update) in made.items()}
            runs = [session.run(updates, _fed(feeds, arrays, each)) for each in batches]
            values = session.run({name: value for name, (value, _) in made.items()})
    return {
        name: {
            "updates": [run[name] for run in runs],
            "value": values[name],
            "variables": [
                f"{_short(each.op.name)} {each.dtype.base_dtype.name} {each.shape.as_list()}"
                for each in variables[name]
            ],
            "names": [_short(value.name), _short(update.name)],
        }
        for name, (value, update) in made.items()
    }


def _short(name: str) -> str:
    return name.split("/", 1)[1]


def look_at_keras(
    tf: Any,
    module: Any,
    arrays: Mapping[str, Arrays],
    batches: Sequence[slice] = HALVES,
    updating: Callable[[Any], Callable[..., Any]] = lambda metric: metric.update_state,
) -> dict[str, Any]:
    """What the metrics of `KERAS` and `VALUES` give after all batches.

    Args:
        tf: the module of the session.
        module: the module of the metrics.
        arrays, batches: see `look_at`.
        updating: the function that gives a metric's update.
    """
    with tf.Graph().as_default() as graph:
        feeds = _placeholders(tf, arrays)
        updates, results, variables = [], {}, []
        for name, (kind, make) in {**KERAS, **VALUES}.items():
            metric = make(module)
            *given, weights = feeds[kind]
            update = updating(metric)(*given[name in VALUES :], sample_weight=weights)
            updates.append(update)
            results[name] = metric.result()
            variables += metric.variables
        with tf.Session(graph=graph) as session:
            session.run(tf.variables_initializer(variables))
            for each in batches:
                session.run(updates, _fed(feeds, arrays, each))
            values: dict[str, Any] = session.run(results)
            return values


def _placeholders(tf: Any, arrays: Mapping[str, Arrays]) -> dict[str, list[Any]]:
    return {
        kind: [tf.placeholder(each.dtype, [None, *each.shape[1:]]) for each in given]
        for kind, given in arrays.items()
    }


def _fed(feeds: dict[str, list[Any]], arrays: Mapping[str, Arrays], batch: slice) -> dict[Any, Any]:
    return {
        feed: each[batch]
        for kind, given in arrays.items()
        for feed, each in zip(feeds[kind], given, strict=True)
    }
