"""Deep networks: `DNNClassifier`, `DNNRegressor`, `DNNEstimator`, and the part they share.

Variables, as TensorFlow 2.15's: `dnn/hiddenlayer_<i>/{kernel,bias}`, `dnn/logits/{kernel,bias}`,
with batch normalization also
`dnn/hiddenlayer_<i>/batchnorm_<i>/{gamma,beta,moving_mean,moving_variance}`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers import functional as layers
from estimatorkit.layers.feature_column import FeatureColumn, input_layer, normalize_columns
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.partitioned_variables import min_max_variable_partitioner
from estimatorkit.ops.variables.variable_scope import get_variable_scope, variable_scope
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike, Part, Premade, Version, summarize_layer
from estimatorkit.premade.regression_head import regression_head
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name
from estimatorkit.train.saving.column_notes import note_columns

Activation = Callable[[Tensor], Tensor] | None

# The default of 0.99 forgets too quickly for small batches; TensorFlow's DNN estimators use this.
BATCH_NORM_MOMENTUM = 0.999

# The default of TensorFlow 1 and of its documentation. TensorFlow 2 slipped to Keras's 0.001, with
# which Iris is at a loss of 0.9 after 1000 steps, instead of 0.08.
LEARNING_RATE = 0.05


def dnn_logits(
    features: Any,
    mode: str,
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Activation = nn.relu,
    dropout: float | None = None,
    batch_norm: bool = False,
    partitioner: Any = None,
    version: Version = 2,
) -> Tensor:
    """The logits of a deep network, float32 `(batch, units)`.

    Args:
        features: tensors by key.
        mode: a `ModeKeys`; dropout and batch statistics are used in TRAIN only.
        units: the number of logits.
        hidden_units: the width of each hidden layer.
        feature_columns: dense columns.
        activation_fn: applied after each hidden layer; None for none.
        dropout: the probability of dropping an output of a hidden layer; None for no dropout.
        batch_norm: whether to normalize after each hidden layer.
        partitioner: partitions the columns' embedding tables; see `get_variable`.
        version: the major version of TensorFlow to follow in summary names.
    """
    # TensorFlow 1 names it `dnn/hiddenlayer_0/kernel/part_0`, and saves it as a whole.
    whole = min_max_variable_partitioner(1) if version == 1 else None
    with variable_scope("dnn", partitioner=whole):
        return layered_logits(
            features,
            mode,
            units,
            hidden_units,
            feature_columns,
            activation_fn=activation_fn,
            dropout=dropout,
            batch_norm=batch_norm,
            partitioner=partitioner,
            outer="dnn/" if version == 1 else None,
        )


def layered_logits(
    features: Any,
    mode: str,
    units: int,
    hidden_units: Iterable[int],
    feature_columns: Any,
    *,
    activation_fn: Activation,
    dropout: float | None,
    batch_norm: bool,
    partitioner: Any,
    outer: str | None,
) -> Tensor:
    """`dnn_logits` whose variables are in the current variable scope.

    Args:
        features, mode, units, hidden_units, feature_columns, activation_fn, dropout, batch_norm,
            partitioner: see `dnn_logits`.
        outer: the name scope of the summaries, which ends with a slash; None for none.
    """
    with variable_scope("input_from_feature_columns", partitioner=partitioner):
        net = input_layer(features, feature_columns)
    return tower_logits(
        net,
        mode,
        units,
        hidden_units,
        activation_fn=activation_fn,
        dropout=dropout,
        batch_norm=batch_norm,
        outer=outer,
    )


def tower_logits(
    net: Tensor,
    mode: str,
    units: int,
    hidden_units: Iterable[int],
    *,
    activation_fn: Activation,
    dropout: float | None,
    batch_norm: bool,
    outer: str | None = None,
) -> Tensor:
    """Hidden layers and logits over a tensor, whose variables are in the current variable scope.

    Args:
        net: float32 `(batch, n)`.
        mode, units, hidden_units, activation_fn, dropout, batch_norm: see `dnn_logits`.
        outer: see `layered_logits`.
    """
    scope = get_variable_scope().name
    below = f"{scope}/" if scope else ""
    dtype = net.dtype  # of the logits, even if layers compute in bfloat16
    net = hidden_layers(
        net,
        mode,
        hidden_units,
        activation_fn=activation_fn,
        dropout=dropout,
        batch_norm=batch_norm,
        outer=outer,
    )
    logits = cast(layers.dense(net, units, name="logits"), dtype)
    summarize_layer(logits, f"{below}logits", mode, outer)
    return logits


def hidden_layers(
    net: Tensor,
    mode: str,
    hidden_units: Iterable[int],
    *,
    activation_fn: Activation,
    dropout: float | None,
    batch_norm: bool,
    outer: str | None = None,
) -> Tensor:
    """The last hidden layer of a deep network in the current variable scope.

    Args:
        net: float32 `(batch, n)`.
        mode, hidden_units, activation_fn, dropout, batch_norm: see `dnn_logits`.
        outer: see `layered_logits`.
    """
    training = mode == ModeKeys.TRAIN
    scope = get_variable_scope().name
    below = f"{scope}/" if scope else ""
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
        summarize_layer(net, f"{below}{name}", mode, outer)
    return net


def dnn_part(
    hidden_units: Iterable[int],
    feature_columns: Any,
    optimizer: OptimizerLike,
    learning_rate: float | None = None,
    *,
    version: Version = 2,
    **network: Any,
) -> Part:
    """A deep network as a `Part` of a model.

    Args:
        hidden_units, feature_columns: see `dnn_logits`.
        optimizer: see `DNNClassifier`.
        learning_rate: for an optimizer given by name; by default that of `DNNClassifier`.
        version: the major version of TensorFlow whose optimizers the names refer to.
        network: the other arguments of `dnn_logits`.

    Raises:
        ValueError: an argument is invalid.
    """
    widths = checked_units(hidden_units)
    columns = normalize_columns(feature_columns)
    check_dropout(network.get("dropout"))

    def logits(features: Any, mode: str, units: int) -> Tensor:
        note_columns("dnn", (column.name for column in columns))
        return dnn_logits(features, mode, units, widths, columns, version=version, **network)

    return Part(
        logits, lambda: optimizer_of(optimizer, learning_rate, version=version), "dnn", columns
    )


def optimizer_of(
    optimizer: OptimizerLike, learning_rate: float | None = None, *, version: Version = 2
) -> Optimizer:
    """The optimizer of a network; arguments are those of `dnn_part`."""
    if learning_rate is None and (version == 1 or optimizer == "Adagrad"):
        learning_rate = LEARNING_RATE
    return get_optimizer_by_name(optimizer, learning_rate, version=version)


def check_dropout(dropout: Any) -> None:
    """Raises ValueError unless `dropout` is None or a probability below 1."""
    if dropout is not None and not 0 <= dropout < 1:
        raise value_error(
            "dropout is not a valid probability",
            expected="None, or 0 <= dropout < 1",
            received=dropout,
            hint="dropout is the fraction to drop, not the fraction to keep",
        )


def checked_units(hidden_units: Any) -> tuple[int, ...]:
    """The widths of hidden layers; raises ValueError if they are not positive ints."""
    fits = isinstance(hidden_units, Iterable) and not isinstance(hidden_units, (str, Mapping))
    widths = tuple(hidden_units) if fits else (hidden_units,)
    if not fits or any(
        isinstance(width, bool) or not hasattr(width, "__index__") or width < 1 for width in widths
    ):
        raise value_error(
            "hidden_units must be a list of positive ints, one per hidden layer",
            expected="for example [64, 32]",
            received=repr(hidden_units),
            hint=f"[{hidden_units}]" if isinstance(hidden_units, int) else None,
        )
    return tuple(int(width) for width in widths)


class DNNClassifier(Premade):
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

    Features: those of the columns and the weight column. Labels, `(batch,)` or `(batch, 1)`:
    integers in [0, n_classes), or strings with a `label_vocabulary`.

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
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        optimizer: an `Optimizer`, a function without arguments that returns one, or a name:
            'Adagrad' (default) with learning rate 0.05; 'Adam', 'Ftrl', 'RMSProp' (0.001) or 'SGD'
            (0.01), the defaults of TensorFlow 2.
        activation_fn: applied after each hidden layer; `nn.relu` by default, None for none.
        dropout: the probability of dropping an output of a hidden layer in training; None (default)
            for no dropout.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum', or another
            of `losses.Reduction`, but not NONE.
        batch_norm: whether to normalize after each hidden layer (momentum 0.999); False by default.

    Raises:
        ValueError: an argument is invalid.
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
        head = classification_head(
            n_classes, weight_column, label_vocabulary, loss_reduction, self._version
        )
        part = dnn_part(
            hidden_units,
            feature_columns,
            optimizer,
            version=self._version,
            activation_fn=activation_fn,
            dropout=dropout,
            batch_norm=batch_norm,
            partitioner=self._partitioner,
        )
        super().__init__(head, [part], model_dir, config, warm_start_from)


class DNNRegressor(Premade):
    """A regressor: a deep network (`tf.estimator.DNNRegressor`).

    Labels: numbers `(batch, label_dimension)` or, for one label per example, `(batch,)`.

    Metrics of `evaluate`: `average_loss` (weighted mean squared error), `loss` (mean over batches),
    `label/mean`, `prediction/mean`, `global_step`. Predictions: `predictions`, float32
    `(label_dimension,)` for each example.

    Args:
        hidden_units: the width of each hidden layer, for example `[64, 32]`.
        feature_columns: the model's inputs: dense feature columns.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        label_dimension: the number of labels per example; 1 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        optimizer: as for `DNNClassifier`; 'Adagrad' by default.
        activation_fn: applied after each hidden layer; `nn.relu` by default, None for none.
        dropout: the probability of dropping an output of a hidden layer in training; None (default)
            for no dropout.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over batch and labels), 'sum', or
            another of `losses.Reduction`, but not NONE.
        batch_norm: whether to normalize after each hidden layer (momentum 0.999); False by default.

    Raises:
        ValueError: an argument is invalid.
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
        head = regression_head(label_dimension, weight_column, loss_reduction, self._version)
        part = dnn_part(
            hidden_units,
            feature_columns,
            optimizer,
            version=self._version,
            activation_fn=activation_fn,
            dropout=dropout,
            batch_norm=batch_norm,
            partitioner=self._partitioner,
        )
        super().__init__(head, [part], model_dir, config, warm_start_from)


class DNNEstimator(Premade):
    """A deep network under a head (`tf.estimator.DNNEstimator`).

    Args:
        head: determines labels, loss, metrics and predictions.
        hidden_units: the width of each hidden layer, for example `[64, 32]`.
        feature_columns: the model's inputs: dense feature columns.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        optimizer, activation_fn, dropout, config, warm_start_from, batch_norm: see
            `DNNClassifier`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        head: Head,
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        optimizer: OptimizerLike = "Adagrad",
        activation_fn: Activation = nn.relu,
        dropout: float | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        part = dnn_part(
            hidden_units,
            feature_columns,
            optimizer,
            version=self._version,
            activation_fn=activation_fn,
            dropout=dropout,
            batch_norm=batch_norm,
            partitioner=self._partitioner,
        )
        super().__init__(head, [part], model_dir, config, warm_start_from)


__all__ = [
    "DNNClassifier",
    "DNNEstimator",
    "DNNRegressor",
    "check_dropout",
    "checked_units",
    "dnn_logits",
    "dnn_part",
    "hidden_layers",
    "layered_logits",
    "optimizer_of",
    "tower_logits",
]
