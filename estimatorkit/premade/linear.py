"""Linear models: `LinearClassifier`, `LinearRegressor`, `LinearEstimator`, and the part they
share.

Variables, as TensorFlow 2.15's: `linear/linear_model/<column>/weights`,
`linear/linear_model/bias_weights`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.feature_column import (
    FeatureColumn,
    check_sparse_combiner,
    linear_model,
    normalize_columns,
)
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.files import summary
from estimatorkit.ops.nn.normalization import zero_fraction
from estimatorkit.ops.variables.partitioned_variables import min_max_variable_partitioner
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike, Part, Premade, Version, summarize_layer
from estimatorkit.premade.regression_head import regression_head
from estimatorkit.train.hooks.records import on_demand
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name
from estimatorkit.train.saving.column_notes import note_columns

LEARNING_RATE = 0.2
"""For optimizers given by name, as TensorFlow's linear estimators."""

_LOGITS: dict[Version, str] = {
    1: "linear/linear_model/linear_model/linear_model/weighted_sum",
    2: "linear/linear_model/linear/linear_model/linear/linear_model/weighted_sum",
}
"""What TensorFlow calls the logits of estimators that are a linear model only."""


def linear_part(
    feature_columns: Any,
    optimizer: OptimizerLike | None,
    learning_rate: float = LEARNING_RATE,
    *,
    sparse_combiner: str = "sum",
    version: Version = 2,
    partitioner: Any = None,
    is_one_of_several: bool = False,
) -> Part:
    """A linear model as a `Part` of a model.

    Args:
        feature_columns: dense and categorical columns.
        optimizer: see `LinearClassifier`.
        learning_rate: for an optimizer given by name.
        sparse_combiner: see `LinearClassifier`.
        version: the major version of TensorFlow whose optimizers the names refer to.
        partitioner: partitions the weights; see `get_variable`.
        is_one_of_several: whether the logits also get their own summaries.

    Raises:
        ValueError: an argument is invalid.
    """
    columns = normalize_columns(feature_columns)
    check_sparse_combiner(sparse_combiner)

    def logits(features: Any, mode: str, units: int) -> Tensor:
        note_columns("linear", (column.name for column in columns))
        made: dict[Any, Any] = {}
        cut = partitioner
        if cut is None and version == 1:
            cut = min_max_variable_partitioner(1)  # version 1's names end with `/part_0`
        with variable_scope("linear", partitioner=cut):
            found = linear_model(features, columns, units, sparse_combiner, cols_to_vars=made)
        outer = "linear/" if version == 1 else None
        if mode != ModeKeys.PREDICT:
            summarize_weights(made, units, outer)
        if is_one_of_several:
            summarize_layer(found, "linear", mode, outer)
            return found
        with get_default_graph().name_scope(None):
            return builtin_ops.identity(found, name=_LOGITS[version])

    def chosen_optimizer() -> Optimizer:
        if optimizer is None:
            rate = learning_rate_for(columns, learning_rate)
            return get_optimizer_by_name("Ftrl", rate, version=version)
        return get_optimizer_by_name(optimizer, learning_rate, version=version)

    return Part(logits, chosen_optimizer, "linear", columns)


def summarize_weights(made: Mapping[Any, Any], units: int, outer: str | None) -> None:
    """Summarizes the bias, and the fraction of zero weights.

    Args:
        made: the variables by column, and those of the bias as "bias".
        units: the number of logits.
        outer: a name scope that ends with a slash, or None.
    """
    with get_default_graph().name_scope(outer):
        bias = [array.reshape(part, [-1]) for part in made["bias"]]
        if units > 1:
            on_demand(summary.histogram("bias", joining.concat(bias, 0)))
        else:
            on_demand(summary.scalar("bias", bias[0][0]))
        weights = [
            array.reshape(part, [-1])
            for column, parts in made.items()
            if column != "bias"
            for part in parts
        ]
        if weights:
            fraction = zero_fraction(joining.concat(weights, 0))
            on_demand(summary.scalar("fraction_of_zero_weights", fraction))


def learning_rate_for(columns: Any, most: float) -> float:
    """The default learning rate: `min(most, 1 / sqrt(number of columns))`."""
    return min(most, 1 / math.sqrt(len(columns)))


class LinearClassifier(Premade):
    """A classifier: a linear model (`tf.estimator.LinearClassifier`).

    Labels, metrics and predictions: see `DNNClassifier`.

    Args:
        feature_columns: the model's inputs.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        n_classes: the number of classes; 2 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        optimizer: an `Optimizer`, a function without arguments that returns one, or 'Adagrad',
            'Adam', 'Ftrl' (default), 'RMSProp', 'SGD', all with learning rate 0.2; None is Ftrl
            with min(0.2, 1 / sqrt(number of columns)).
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum', or another
            of `losses.Reduction`, but not NONE.
        sparse_combiner: how to combine several values of a categorical column: 'sum' (default),
            'mean' or 'sqrtn'.

    Raises:
        ValueError: an argument is invalid.
    """

    takes_columns = "ids"

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike | None = "Ftrl",
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        sparse_combiner: str = "sum",
    ) -> None:
        head = classification_head(
            n_classes, weight_column, label_vocabulary, loss_reduction, self._version
        )
        part = linear_part(
            feature_columns,
            optimizer,
            sparse_combiner=sparse_combiner,
            version=self._version,
            partitioner=self._partitioner,
        )
        super().__init__(head, [part], model_dir, config, warm_start_from)


class LinearRegressor(Premade):
    """A regressor: a linear model (`tf.estimator.LinearRegressor`).

    Labels, metrics and predictions: see `DNNRegressor`.

    Args:
        feature_columns: the model's inputs.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        label_dimension: the number of labels per example; 1 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        optimizer: as for `LinearClassifier`; 'Ftrl' by default.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over batch and labels), 'sum', or
            another of `losses.Reduction`, but not NONE.
        sparse_combiner: how to combine several values of a categorical column: 'sum' (default),
            'mean' or 'sqrtn'.

    Raises:
        ValueError: an argument is invalid.
    """

    takes_columns = "ids"

    def __init__(
        self,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: OptimizerLike | None = "Ftrl",
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        sparse_combiner: str = "sum",
    ) -> None:
        head = regression_head(label_dimension, weight_column, loss_reduction, self._version)
        part = linear_part(
            feature_columns,
            optimizer,
            sparse_combiner=sparse_combiner,
            version=self._version,
            partitioner=self._partitioner,
        )
        super().__init__(head, [part], model_dir, config, warm_start_from)


class LinearEstimator(Premade):
    """A linear model under a head (`tf.estimator.LinearEstimator`).

    Args:
        head: determines labels, loss, metrics and predictions.
        feature_columns: the model's inputs.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        optimizer, config, sparse_combiner, warm_start_from: see `LinearClassifier`.

    Raises:
        ValueError: an argument is invalid.
    """

    takes_columns = "ids"

    def __init__(
        self,
        head: Head,
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        optimizer: OptimizerLike | None = "Ftrl",
        config: RunConfig | None = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        part = linear_part(
            feature_columns,
            optimizer,
            sparse_combiner=sparse_combiner,
            version=self._version,
            partitioner=self._partitioner,
        )
        super().__init__(head, [part], model_dir, config, warm_start_from)


__all__ = [
    "LinearClassifier",
    "LinearEstimator",
    "LinearRegressor",
    "learning_rate_for",
    "linear_part",
    "summarize_weights",
]
