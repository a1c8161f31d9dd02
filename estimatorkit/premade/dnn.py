"""Deep networks: `DNNClassifier`, `DNNRegressor`, and the model function they share.

Variables, as TensorFlow 2.15's: `dnn/hiddenlayer_<i>/{kernel,bias}`, `dnn/logits/{kernel,bias}`,
with batch normalization also
`dnn/hiddenlayer_<i>/batchnorm_<i>/{gamma,beta,moving_mean,moving_variance}`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.core.ops import nn
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variable_scope import variable_scope
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers import core as layers
from estimatorkit.layers.feature_column import FeatureColumn, input_layer, normalize_columns
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.head import Head
from estimatorkit.premade.regression_head import RegressionHead
from estimatorkit.train.optimizer import Optimizer
from estimatorkit.train.optimizers_by_name import get_optimizer_by_name

Activation = Callable[[Tensor], Tensor] | None
OptimizerLike = str | Optimizer | Callable[[], Optimizer]

# The default 0.99 forgets too fast for small batches; TensorFlow's DNN estimators use this.
BATCH_NORM_MOMENTUM = 0.999

# TensorFlow 1's, and its documentation's. TensorFlow 2 slipped to Keras's 0.001, with which Iris is
# at a loss of 0.9 after 1000 steps, instead of 0.08.
ADAGRAD_LEARNING_RATE = 0.05


def dnn_logits(
    features: Any,
    mode: str,
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Activation = nn.relu,
    dropout: float | None = None,
    batch_norm: bool = False,
) -> Tensor:
    """The logits of a deep network, float32 `(batch, units)`.

    Args:
        features: tensors by key.
        mode: a `ModeKeys`; dropout and batch statistics are for TRAIN.
        units: the number of logits.
        hidden_units: the width of each hidden layer.
        feature_columns: dense columns.
        activation_fn: after each hidden layer; None for none.
        dropout: the probability that an output of a hidden layer is dropped; None for no dropout.
        batch_norm: whether to normalize after each hidden layer.
    """
    training = mode == ModeKeys.TRAIN
    with variable_scope("dnn"):
        with variable_scope("input_from_feature_columns"):
            net = input_layer(features, feature_columns)
        for number, width in enumerate(hidden_units):
            name = f"hiddenlayer_{number}"
            net = layers.dense(net, width, activation_fn, name=name)
            if dropout is not None:
                net = layers.dropout(net, dropout, training=training)
            if batch_norm:
                net = layers.batch_normalization(
                    net,
                    momentum=BATCH_NORM_MOMENTUM,
                    training=training,
                    name=f"{name}/batchnorm_{number}",
                )
        return layers.dense(net, units, name="logits")


def _model_fn(
    head: Head, optimizer: OptimizerLike, hidden_units: Iterable[int], **network: Any
) -> Callable[..., EstimatorSpec]:
    """A model function: a deep network (see `dnn_logits`) under a head."""
    widths = _checked_units(hidden_units)
    network["feature_columns"] = normalize_columns(network["feature_columns"])
    dropout = network["dropout"]
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(
            explain(
                "dropout is no probability",
                expected="None, or 0 <= dropout < 1",
                received=dropout,
                hint="it is the part that is dropped, not the part that is kept",
            )
        )

    def model_fn(features: Any, labels: Any, mode: str, config: Any = None) -> EstimatorSpec:
        logits = dnn_logits(features, mode, head.logits_dimension, widths, **network)
        return head.create_estimator_spec(
            features,
            mode,
            logits,
            labels,
            optimizer=_optimizer(optimizer) if mode == ModeKeys.TRAIN else None,
        )

    return model_fn


def _optimizer(optimizer: OptimizerLike) -> Optimizer:
    rate = ADAGRAD_LEARNING_RATE if optimizer == "Adagrad" else None
    return get_optimizer_by_name(optimizer, rate)


def _checked_units(hidden_units: Any) -> tuple[int, ...]:
    fits = isinstance(hidden_units, Iterable) and not isinstance(hidden_units, (str, Mapping))
    widths = tuple(hidden_units) if fits else (hidden_units,)
    if not fits or any(
        isinstance(width, bool) or not hasattr(width, "__index__") or width < 1 for width in widths
    ):
        raise ValueError(
            explain(
                "hidden_units must be a list of positive ints, one a hidden layer",
                expected="for example [64, 32]",
                received=repr(hidden_units),
                hint=f"[{hidden_units}]" if isinstance(hidden_units, int) else None,
            )
        )
    return tuple(int(width) for width in widths)


class DNNClassifier(Estimator):
    """A classifier: a deep network (`tf.estimator.DNNClassifier`).

    Example:
        ```python
        import estimatorkit as tf

        columns = [tf.feature_column.numeric_column(key) for key in ("length", "width")]
        classifier = tf.estimator.DNNClassifier([10, 10], columns, "flowers", n_classes=3)

        def input_fn():
            dataset = tf.data.Dataset.from_tensor_slices((features, species))
            return dataset.shuffle(1000).repeat().batch(32)

        classifier.train(input_fn, steps=1000)
        print(classifier.evaluate(input_fn, steps=10)["accuracy"])
        ```

    Features: what the columns and the weight column name. Labels, `(batch,)` or `(batch, 1)`:
    integers in [0, n_classes), or strings where there is a `label_vocabulary`.

    Metrics of `evaluate`: `accuracy`, `average_loss` (weighted mean over examples), `loss` (mean
    over batches), `global_step`; with two classes also `accuracy_baseline`, `auc`,
    `auc_precision_recall`, `precision`, `recall`, `label/mean`, `prediction/mean`.

    Predictions, for each example: `logits`, `probabilities`, `class_ids`, `classes`,
    `all_class_ids`, `all_classes`; with two classes also `logistic` (see `BinaryClassHead` and
    `MultiClassHead` for shapes).

    Args:
        hidden_units: the width of each hidden layer, for example `[64, 32]`.
        feature_columns: the model's inputs: dense feature columns.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        n_classes: the number of classes; 2 by default.
        weight_column: a feature's key or a `NumericColumn`: each example's weight in loss and
            metrics; None (default): all 1.
        label_vocabulary: the `n_classes` names of the classes, where labels are strings; None by
            default.
        optimizer: an `Optimizer`, a function without arguments that makes one, or a name:
            'Adagrad' (default) with learning rate 0.05; 'Adam', 'Ftrl', 'RMSProp', 'SGD' with the
            rates that TensorFlow 2 gives them: 0.001, SGD 0.01.
        activation_fn: applied after each hidden layer; `nn.relu` by default, None for none.
        dropout: the probability that an output of a hidden layer is dropped in training; None
            (default) for no dropout.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum', or another
            of `losses.Reduction`, but not NONE.
        batch_norm: whether to normalize after each hidden layer (momentum 0.999); False by default.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike = "Adagrad",
        activation_fn: Activation = nn.relu,
        dropout: float | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        batch_norm: bool = False,
    ) -> None:
        model_fn = _model_fn(
            classification_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            optimizer,
            hidden_units,
            feature_columns=feature_columns,
            activation_fn=activation_fn,
            dropout=dropout,
            batch_norm=batch_norm,
        )
        super().__init__(
            model_fn=model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from
        )


class DNNRegressor(Estimator):
    """A regressor: a deep network (`tf.estimator.DNNRegressor`).

    Labels: numbers `(batch, label_dimension)` or, for one label an example, `(batch,)`.

    Metrics of `evaluate`: `average_loss` (weighted mean squared error), `loss` (mean over batches),
    `label/mean`, `prediction/mean`, `global_step`. Predictions: `predictions`, float32
    `(label_dimension,)` for each example.

    Args:
        hidden_units: the width of each hidden layer, for example `[64, 32]`.
        feature_columns: the model's inputs: dense feature columns.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        label_dimension: the number of labels an example; 1 by default.
        weight_column: a feature's key or a `NumericColumn`: each example's weight in loss and
            metrics; None (default): all 1.
        optimizer: as for `DNNClassifier`; 'Adagrad' by default.
        activation_fn: applied after each hidden layer; `nn.relu` by default, None for none.
        dropout: the probability that an output of a hidden layer is dropped in training; None
            (default) for no dropout.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over batch and labels), 'sum', or
            another of `losses.Reduction`, but not NONE.
        batch_norm: whether to normalize after each hidden layer (momentum 0.999); False by default.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: OptimizerLike = "Adagrad",
        activation_fn: Activation = nn.relu,
        dropout: float | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        batch_norm: bool = False,
    ) -> None:
        model_fn = _model_fn(
            RegressionHead(label_dimension, weight_column, loss_reduction),
            optimizer,
            hidden_units,
            feature_columns=feature_columns,
            activation_fn=activation_fn,
            dropout=dropout,
            batch_norm=batch_norm,
        )
        super().__init__(
            model_fn=model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from
        )


__all__ = ["DNNClassifier", "DNNRegressor", "dnn_logits"]
