"""Linear models: `LinearClassifier`, `LinearRegressor`, and the model function they share.

Variables, as TensorFlow 2.15's: `linear/linear_model/<column>/weights`,
`linear/linear_model/bias_weights`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from estimatorkit.core.variable_scope import variable_scope
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers.feature_column import (
    FeatureColumn,
    check_sparse_combiner,
    linear_model,
    normalize_columns,
)
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.head import Head
from estimatorkit.premade.regression_head import RegressionHead
from estimatorkit.train.optimizer import Optimizer
from estimatorkit.train.optimizers_by_name import get_optimizer_by_name

OptimizerLike = str | Optimizer | Callable[[], Optimizer] | None

LEARNING_RATE = 0.2
"""For optimizers given by name, as TensorFlow's linear estimators."""


def _model_fn(
    head: Head, optimizer: OptimizerLike, feature_columns: Any, sparse_combiner: str
) -> Callable[..., EstimatorSpec]:
    """A model function: a linear model under a head."""
    columns = normalize_columns(feature_columns)
    check_sparse_combiner(sparse_combiner)

    def chosen_optimizer() -> Optimizer:
        if optimizer is None:
            return get_optimizer_by_name("Ftrl", min(LEARNING_RATE, 1 / math.sqrt(len(columns))))
        return get_optimizer_by_name(optimizer, LEARNING_RATE)

    def model_fn(features: Any, labels: Any, mode: str, config: Any = None) -> EstimatorSpec:
        with variable_scope("linear"):
            logits = linear_model(features, columns, head.logits_dimension, sparse_combiner)
        return head.create_estimator_spec(
            features,
            mode,
            logits,
            labels,
            optimizer=chosen_optimizer() if mode == ModeKeys.TRAIN else None,
        )

    return model_fn


class LinearClassifier(Estimator):
    """A classifier: a linear model (`tf.estimator.LinearClassifier`).

    Labels, metrics and predictions: see `DNNClassifier`.

    Args:
        feature_columns: the model's inputs.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        n_classes: the number of classes; 2 by default.
        weight_column: a feature's key or a `NumericColumn`: each example's weight in loss and
            metrics; None (default): all 1.
        label_vocabulary: the `n_classes` names of the classes, where labels are strings; None by
            default.
        optimizer: an `Optimizer`, a function without arguments that makes one, or 'Adagrad',
            'Adam', 'Ftrl' (default), 'RMSProp', 'SGD', all with learning rate 0.2; None is Ftrl
            with min(0.2, 1 / sqrt(number of columns)).
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum', or another
            of `losses.Reduction`, but not NONE.
        sparse_combiner: how several values of a categorical column become one: 'sum' (default),
            'mean' or 'sqrtn'.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike = "Ftrl",
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        sparse_combiner: str = "sum",
    ) -> None:
        head = classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            model_fn=_model_fn(head, optimizer, feature_columns, sparse_combiner),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
        )


class LinearRegressor(Estimator):
    """A regressor: a linear model (`tf.estimator.LinearRegressor`).

    Labels, metrics and predictions: see `DNNRegressor`.

    Args:
        feature_columns: the model's inputs.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        label_dimension: the number of labels an example; 1 by default.
        weight_column: a feature's key or a `NumericColumn`: each example's weight in loss and
            metrics; None (default): all 1.
        optimizer: as for `LinearClassifier`; 'Ftrl' by default.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over batch and labels), 'sum', or
            another of `losses.Reduction`, but not NONE.
        sparse_combiner: how several values of a categorical column become one: 'sum' (default),
            'mean' or 'sqrtn'.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: OptimizerLike = "Ftrl",
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            model_fn=_model_fn(head, optimizer, feature_columns, sparse_combiner),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
        )


__all__ = ["LinearClassifier", "LinearRegressor"]
