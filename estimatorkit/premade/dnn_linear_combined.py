"""Wide and deep models: the sum of the logits of a linear model and a deep network, each with its
own columns and optimizer (Cheng et al. 2016, arXiv:1606.07792).

Variables: those of `linear` and `dnn`. Optimizers given by name have TensorFlow's learning rates:
0.001 for the network, `min(0.005, 1 / sqrt(number of columns))` for the linear model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.layers.feature_column import FeatureColumn, normalize_columns
from estimatorkit.ops.nn import nn
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.dnn import Activation, dnn_part
from estimatorkit.premade.head import Head
from estimatorkit.premade.linear import learning_rate_for, linear_part
from estimatorkit.premade.parts import OptimizerLike, Part, Premade, Version
from estimatorkit.premade.regression_head import regression_head

Columns = FeatureColumn | Iterable[FeatureColumn] | None

DNN_LEARNING_RATE = 0.001
LINEAR_LEARNING_RATE = 0.005


def _parts(
    version: Version,
    partitioner: Any,
    linear_feature_columns: Columns,
    linear_optimizer: OptimizerLike,
    linear_sparse_combiner: str,
    dnn_feature_columns: Columns,
    dnn_optimizer: OptimizerLike,
    dnn_hidden_units: Iterable[int] | None,
    **network: Any,
) -> list[Part]:
    """The network and the linear model, if they have columns."""
    linear = [] if not linear_feature_columns else normalize_columns(linear_feature_columns)
    deep = [] if not dnn_feature_columns else normalize_columns(dnn_feature_columns)
    if not linear and not deep:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    if deep and not dnn_hidden_units:
        raise value_error(
            "dnn_hidden_units must be defined when dnn_feature_columns is specified.",
            expected="for example [64, 32]",
            received=repr(dnn_hidden_units),
        )
    parts = []
    if deep and dnn_hidden_units:
        parts.append(
            dnn_part(
                dnn_hidden_units,
                deep,
                dnn_optimizer,
                DNN_LEARNING_RATE,
                version=version,
                partitioner=partitioner,
                **network,
            )
        )
    if linear:
        parts.append(
            linear_part(
                linear,
                linear_optimizer,
                learning_rate_for(linear, LINEAR_LEARNING_RATE),
                sparse_combiner=linear_sparse_combiner,
                version=version,
                partitioner=partitioner,
                is_one_of_several=True,
            )
        )
    return parts


class DNNLinearCombinedClassifier(Premade):
    """A classifier: a linear model beside a deep network
    (`tf.estimator.DNNLinearCombinedClassifier`).

    Labels, metrics and predictions: see `DNNClassifier`.

    Args:
        model_dir: where checkpoints and logs go; a temporary folder by default.
        linear_feature_columns: the inputs of the linear model, dense and categorical columns; None
            (default) for no linear model.
        linear_optimizer: trains it: an `Optimizer`, a function without arguments that returns one,
            or 'Adagrad', 'Adam', 'Ftrl' (default), 'RMSProp', 'SGD', all with the learning rate
            min(0.005, 1 / sqrt(number of columns)).
        dnn_feature_columns: the inputs of the network, dense columns; None (default) for no
            network.
        dnn_optimizer: its optimizer; 'Adagrad' by default, with learning rate 0.001 if given by
            name.
        dnn_hidden_units: the width of each hidden layer, for example `[64, 32]`.
        dnn_activation_fn: applied after each hidden layer; `nn.relu` by default, None for none.
        dnn_dropout: the probability of dropping an output of a hidden layer in training; None
            (default) for no dropout.
        n_classes: the number of classes; 2 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum', or another
            of `losses.Reduction`, but not NONE.
        batch_norm: whether to normalize after each hidden layer (momentum 0.999); False by default.
        linear_sparse_combiner: how the linear model combines several values of a categorical
            column: 'sum' (default), 'mean' or 'sqrtn'.

    Raises:
        ValueError: an argument is invalid, or there are no columns at all.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        linear_feature_columns: Columns = None,
        linear_optimizer: OptimizerLike = "Ftrl",
        dnn_feature_columns: Columns = None,
        dnn_optimizer: OptimizerLike = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Activation = nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = classification_head(
            n_classes, weight_column, label_vocabulary, loss_reduction, self._version
        )
        parts = _parts(
            self._version,
            self._partitioner,
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            activation_fn=dnn_activation_fn,
            dropout=dnn_dropout,
            batch_norm=batch_norm,
        )
        super().__init__(head, parts, model_dir, config, warm_start_from)


class DNNLinearCombinedRegressor(Premade):
    """A regressor: a linear model beside a deep network
    (`tf.estimator.DNNLinearCombinedRegressor`).

    Labels, metrics and predictions: see `DNNRegressor`.

    Args:
        model_dir, linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
            dnn_hidden_units, dnn_activation_fn, dnn_dropout: see `DNNLinearCombinedClassifier`.
        label_dimension: the number of labels per example; 1 by default.
        weight_column, config, warm_start_from, loss_reduction, batch_norm, linear_sparse_combiner:
            see `DNNLinearCombinedClassifier`.

    Raises:
        ValueError: an argument is invalid, or there are no columns at all.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        linear_feature_columns: Columns = None,
        linear_optimizer: OptimizerLike = "Ftrl",
        dnn_feature_columns: Columns = None,
        dnn_optimizer: OptimizerLike = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Activation = nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        parts = _parts(
            self._version,
            self._partitioner,
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            activation_fn=dnn_activation_fn,
            dropout=dnn_dropout,
            batch_norm=batch_norm,
        )
        head = regression_head(label_dimension, weight_column, loss_reduction, self._version)
        super().__init__(head, parts, model_dir, config, warm_start_from)


class DNNLinearCombinedEstimator(Premade):
    """A linear model beside a deep network under a head
    (`tf.estimator.DNNLinearCombinedEstimator`).

    Args:
        head: determines labels, loss, metrics and predictions.
        model_dir, linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
            dnn_hidden_units, dnn_activation_fn, dnn_dropout, config, batch_norm,
            linear_sparse_combiner: see `DNNLinearCombinedClassifier`.

    Raises:
        ValueError: an argument is invalid, or there are no columns at all.
    """

    def __init__(
        self,
        head: Head,
        model_dir: str | os.PathLike[str] | None = None,
        linear_feature_columns: Columns = None,
        linear_optimizer: OptimizerLike = "Ftrl",
        dnn_feature_columns: Columns = None,
        dnn_optimizer: OptimizerLike = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Activation = nn.relu,
        dnn_dropout: float | None = None,
        config: RunConfig | None = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        parts = _parts(
            self._version,
            self._partitioner,
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            activation_fn=dnn_activation_fn,
            dropout=dnn_dropout,
            batch_norm=batch_norm,
        )
        super().__init__(head, parts, model_dir, config)


__all__ = [
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
]
