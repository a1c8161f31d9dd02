"""Baselines that ignore the features: `BaselineClassifier` learns class frequencies,
`BaselineRegressor` the mean, `BaselineEstimator` what its head asks for.

The logits are a single variable, `baseline/bias`: the baseline that a model with features must
beat.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.sparse.sparse import convert_to_tensor_or_sparse_tensor
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike, Part, Premade, Version
from estimatorkit.premade.regression_head import regression_head
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name

LEARNING_RATE = 0.3
"""For optimizers given by name, as TensorFlow's baseline estimators."""


def _baseline_logits(features: Any, units: int, weight_column: Any) -> Tensor:
    """The bias, repeated for each example: float32 `(batch, units)`."""
    weight_key = getattr(weight_column, "key", weight_column)
    given = features if isinstance(features, Mapping) else {"features": features}
    # Weights are excluded, so that predicting needs none; strings and sparse tensors come last, as
    # they live on the host.
    candidates = [
        convert_to_tensor_or_sparse_tensor(v) for k, v in given.items() if k != weight_key
    ]
    candidates.sort(key=lambda each: isinstance(each, SparseTensor) or each.dtype.on_host)
    if not candidates or candidates[0].shape.rank == 0:
        raise value_error(
            "a baseline needs a feature to determine the batch size",
            expected="a feature besides the weights, with the batch as its first dimension",
            received=f"features {sorted(map(str, given))}",
        )
    first = candidates[0]
    shape = first.dense_shape if isinstance(first, SparseTensor) else array.shape(first)
    batch = elementwise.cast(shape[0], int32)
    with variable_scope("baseline"):
        bias = get_variable("bias", [units], initializer=Zeros())
        return elementwise.multiply(bias, filling.ones(joining.stack([batch, units])), name="Mul")


def _part(optimizer: OptimizerLike, weight_column: Any, version: Version) -> Part:
    """A bias as a part of a model."""
    return Part(
        lambda features, mode, units: _baseline_logits(features, units, weight_column),
        lambda: get_optimizer_by_name(optimizer, LEARNING_RATE, version=version),
    )


class BaselineClassifier(Premade):
    """A classifier that learns class frequencies (`tf.estimator.BaselineClassifier`).

    Labels, metrics and predictions: see `DNNClassifier`.

    Args:
        model_dir: where checkpoints and logs go; a temporary folder by default.
        n_classes: the number of classes; 2 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        optimizer: an `Optimizer`, a function without arguments that returns one, or 'Adagrad',
            'Adam', 'Ftrl' (default), 'RMSProp', 'SGD', all with learning rate 0.3.
        config: a `RunConfig`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum', or another
            of `losses.Reduction`, but not NONE.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = "sum_over_batch_size",
    ) -> None:
        head = classification_head(
            n_classes, weight_column, label_vocabulary, loss_reduction, self._version
        )
        part = _part(optimizer, weight_column, self._version)
        super().__init__(head, [part], model_dir, config)


class BaselineRegressor(Premade):
    """A regressor that learns the mean of the labels (`tf.estimator.BaselineRegressor`).

    Labels, metrics and predictions: see `DNNRegressor`.

    Args:
        model_dir: where checkpoints and logs go; a temporary folder by default.
        label_dimension: the number of labels per example; 1 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        optimizer: as for `BaselineClassifier`; 'Ftrl' by default.
        config: a `RunConfig`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over batch and labels), 'sum', or
            another of `losses.Reduction`, but not NONE.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: OptimizerLike = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = "sum_over_batch_size",
    ) -> None:
        head = regression_head(label_dimension, weight_column, loss_reduction, self._version)
        part = _part(optimizer, weight_column, self._version)
        super().__init__(head, [part], model_dir, config)


class BaselineEstimator(Premade):
    """A bias under a head (`tf.estimator.BaselineEstimator`).

    Args:
        head: determines labels, loss, metrics and predictions.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        optimizer: as for `BaselineClassifier`; 'Ftrl' by default.
        config: a `RunConfig`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        head: Head,
        model_dir: str | os.PathLike[str] | None = None,
        optimizer: OptimizerLike = "Ftrl",
        config: RunConfig | None = None,
    ) -> None:
        super().__init__(head, [_part(optimizer, None, self._version)], model_dir, config)


__all__ = ["BaselineClassifier", "BaselineEstimator", "BaselineRegressor"]
