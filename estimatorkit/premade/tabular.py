"""Networks for tables whose defaults need no tuning: `TabularClassifier`, `TabularRegressor`,
`TabularEstimator`.

They are classes of their own, and not settings of `DNNClassifier`, because nearly every default
differs: what columns become, initial values, layers, optimizer, loss and predictions. TensorFlow
has no such estimator.

Variables: `tabular/...` (see `tabular_network`), and `tabular/statistics/...` (see
`tabular_inputs`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.array.rearrange import repeat
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.dnn import check_dropout, checked_units
from estimatorkit.premade.folds import of_rows as folds_of_rows, repeated
from estimatorkit.premade.head import Head
from estimatorkit.premade.label_checks import checked_labels
from estimatorkit.premade.regression_head import RegressionHead, regression_head
from estimatorkit.premade.tabular_inputs import (
    MeasureTable,
    TableColumns,
    TableStatistics,
    table_inputs,
)
from estimatorkit.premade.tabular_network import RATE_FACTORS, NetworkSettings, network_logits
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverListener
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.optimizers.adam_w import AdamWOptimizer
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.schedules import coslog_decay

Columns = FeatureColumn | Iterable[FeatureColumn]

_BATCH_SIZE = 256
_STEPS, _LEAST_EPOCHS, _MOST_EPOCHS = 5000, 40, 256

OF_CLASSES: dict[str, Any] = {"activation": "selu", "learning_rate": 0.04}
"""RealMLP's defaults for classification, where they differ from those of `TabularEstimator`."""

SCOPE = "tabular"
"""The scope of all variables."""


def usual_batch_size(rows: int) -> int:
    """The rows of a step of so many, where nothing else is said: 256 (RealMLP), but at least
    4 steps an epoch of 64 rows or more.
    """
    return min(_BATCH_SIZE, max(16, 1 << max(rows // 4, 1).bit_length() - 1))


def usual_epochs(rows: int) -> int:
    """How often so many rows are seen where nothing else is said: about 5,000 steps, and at least
    40 and at most 256 epochs (RealMLP's number).
    """
    steps = max(rows // usual_batch_size(rows), 1)
    return min(_MOST_EPOCHS, max(_LEAST_EPOCHS, _STEPS // steps))


def _model_fn(
    head: Head, columns: TableColumns, settings: NetworkSettings, schedule: _Schedule
) -> Callable[..., EstimatorSpec]:
    units = head.logits_dimension
    scaled = isinstance(head, RegressionHead) and head.is_least_squares

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        training = mode == ModeKeys.TRAIN
        rates = _rates(schedule, settings) if training else None
        with variable_scope(SCOPE):
            statistics = TableStatistics(columns.count, units if scaled else None)
            inputs = table_inputs(features, columns, statistics, settings.folds)
            logits = network_logits(inputs, settings, units, None if rates is None else rates[2])
        if rates is None:
            own = _of_members(features, settings)
            shares = None if own is None else own * (settings.folds / settings.members)
            averaged = head.average_logits(statistics.in_label_units(logits), shares)
            return head.create_estimator_spec(features, mode, averaged, labels)
        span = Variable(np.zeros(2, np.float32), name=f"{SCOPE}/train_span", trainable=False)
        measured = checked_labels(labels, inputs.raw, units) if scaled else None
        given = labels if measured is None else statistics.standardized(measured)
        unseen = _of_members(features, settings)
        if unseen is not None:  # members do not learn from the rows of their fold
            is_unseen = array.expand_dims(unseen > 0.0, -1)
            logits = indexing.where(is_unseen, array.stop_gradient(logits), logits)
        spec = head.create_estimator_spec(
            _of_each_member(features, settings.members),
            mode,
            array.reshape(logits, [-1, units]),
            _of_each_member(given, settings.members),
            schedule.optimizer(span, rates[0], rates[1]),
        )
        hooks = [MeasureTable(statistics, inputs.raw, measured), _LoadSpan(schedule, span)]
        return spec._replace(training_hooks=(*spec.training_hooks, *hooks))

    return model_fn


def _rates(schedule: _Schedule, settings: NetworkSettings) -> Any:
    """The learning rate, the weight decay and the dropout, float32 `(3,)`.

    They are state that is not saved: with constants, each trial of a search would be compiled.
    """
    values = np.array([schedule.learning_rate, schedule.weight_decay, settings.dropout], np.float32)
    local = [GraphKeys.LOCAL_VARIABLES]
    return Variable(values, name=f"{SCOPE}/rates", trainable=False, collections=local).value()


def _of_members(features: Any, settings: NetworkSettings) -> Tensor | None:
    """1 for the members of a row's fold, float32 `(batch, members)`; None: see `folds.of_rows`."""
    own = folds_of_rows(features, settings.folds)
    return None if own is None else repeated(own, settings.members // settings.folds, axis=1)


def _of_each_member(given: Any, members: int) -> Any:
    """Tensors in which each example stands once for each member."""
    if isinstance(given, Mapping):
        return {key: _of_each_member(each, members) for key, each in given.items()}
    return repeat(given, members, axis=0) if isinstance(given, Tensor) else given


@dataclass
class _Schedule:
    """How a network is trained.

    Attributes:
        learning_rate, weight_decay: see `TabularClassifier`.
        span: the global steps at which the training begins and ends; equal if its end is not known.
    """

    learning_rate: float
    weight_decay: float
    span: tuple[int, int]

    def optimizer(self, span: Variable, learning_rate: Tensor, weight_decay: Tensor) -> Optimizer:
        """AdamW with RealMLP's rates for each kind of variable.

        Args:
            span: float32 `(2,)`.
            learning_rate, weight_decay: float32 scalars.
        """
        begin, end = joining.unstack(span.value())
        step = elementwise.cast(get_or_create_global_step(), float32) - begin
        steps = end - begin
        rate = indexing.where(
            steps > 0.0,
            coslog_decay(learning_rate, step, elementwise.maximum(steps, 1.0)),
            0.5 * learning_rate,
        )
        return AdamWOptimizer(rate, beta2=0.95, weight_decay=weight_decay, factors=RATE_FACTORS)


class _LoadSpan(SessionRunHook):
    """Tells a model, which may serve several trainings, how long this one is."""

    serves_one_training = False

    def __init__(self, schedule: _Schedule, span: Variable) -> None:
        self._schedule, self._span = schedule, span

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the variable."""
        self._span.load(np.array(self._schedule.span, np.float32), session)


class _Scheduled(Estimator):
    """An estimator whose learning rate's schedule ends with the last step of its training."""

    _schedule: _Schedule
    _train_steps: int | None

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> Self:
        """See `Estimator.train`; the learning rate's schedule ends with the last step, unless
        `train_steps` was given. With `steps`, it begins anew.
        """
        if self._train_steps is None:
            done = self._steps_done() if steps else 0
            self._schedule.span = done, done + (steps or max_steps or 0)
        return super().train(input_fn, hooks, steps, max_steps, saving_listeners)

    def _steps_done(self) -> int:
        checkpoint = self.latest_checkpoint()
        return 0 if checkpoint is None else int(self.get_variable_value("global_step"))


class TabularEstimator(_Scheduled):
    """A network for tables under a head; see `TabularClassifier`.

    Args:
        head: determines labels, loss, metrics and predictions.
        activation: the name of the activation of hidden layers; 'mish' by default, as RealMLP has
            for numbers.
        feature_columns, model_dir, hidden_units, members, dropout, learning_rate, weight_decay,
            train_steps, config, warm_start_from: see `TabularClassifier`.
        folds: the number of folds; 1 by default. The rows of each, by `features[folds.FOLD]`, are
            predicted by `members / folds` members that are trained on all other rows.

    Raises:
        ValueError: an argument is invalid.
    """

    takes_columns = "raw"

    def __init__(
        self,
        head: Head,
        feature_columns: Columns,
        model_dir: str | os.PathLike[str] | None = None,
        hidden_units: Iterable[int] = (128, 128, 128),
        members: int = 4,
        activation: str = "mish",
        dropout: float = 0.15,
        learning_rate: float = 0.1,
        weight_decay: float = 0.02,
        train_steps: int | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        folds: int = 1,
    ) -> None:
        check_dropout(dropout)
        if members < 1:
            raise value_error("members must be positive", expected=">= 1", received=members)
        if folds < 1 or members % folds:
            raise value_error(
                "folds must have as many members each",
                expected="members, a multiple of folds >= 1",
                received=f"members={members}, folds={folds}",
            )
        units = checked_units(hidden_units)
        settings = NetworkSettings(units, members, activation, dropout or 0.0, folds=folds)
        self._train_steps = train_steps
        self._schedule = _Schedule(learning_rate, weight_decay, (0, train_steps or 0))
        super().__init__(
            _model_fn(head, TableColumns.of(feature_columns, folds), settings, self._schedule),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
        )


class TabularClassifier(TabularEstimator):
    """A classifier for tables: an ensemble of networks in one computation.

    Columns are given as they are: numbers are scaled by what the first 20,000 rows of the training
    input show, may be missing (NaN), and are embedded by cosines; categorical columns become
    indicators or, of more than 10 ids, embeddings. The members of the ensemble are trained on the
    same batches, and their probabilities are averaged.

    Labels, metrics and predictions: see `DNNClassifier`. The parts and most values are those of
    RealMLP (Holzmueller et al. 2024, arXiv:2407.04491); TensorFlow has no such estimator.

    Example:
        ```python
        import estimatorkit as tf

        columns = [
            tf.feature_column.numeric_column("age"),
            tf.feature_column.categorical_column_with_vocabulary_list("sex", ["f", "m"]),
        ]
        classifier = tf.estimator.TabularClassifier(columns, "people")
        classifier.train(input_fn, max_steps=2000)
        ```

    Args:
        feature_columns: numeric, categorical and dense columns.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        n_classes: the number of classes; 2 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        hidden_units: the width of each hidden layer; `(128, 128, 128)` by default.
        members: the networks of the ensemble; 4 by default.
        dropout: the probability of dropping an output of a hidden layer in training, rounded to a
            multiple of 1 / 256; 0.15 by default.
        learning_rate: the greatest one; 0.04 by default.
        weight_decay: the share by which a step shrinks kernels, times the learning rate; 0.02 by
            default.
        train_steps: the steps of a whole training, in which the learning rate rises and falls four
            times ("coslog"). None (default): those that `train` is called with: `max_steps`, or
            `steps` from where it begins; the rate is constant if it has neither. Give it where a
            training is made of several calls.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: as for `DNNClassifier`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        feature_columns: Columns,
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        hidden_units: Iterable[int] = (128, 128, 128),
        members: int = 4,
        dropout: float = 0.15,
        learning_rate: float = 0.04,
        weight_decay: float = 0.02,
        train_steps: int | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            classification_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            feature_columns,
            model_dir,
            hidden_units,
            members,
            OF_CLASSES["activation"],
            dropout,
            learning_rate,
            weight_decay,
            train_steps,
            config,
            warm_start_from,
        )


class TabularRegressor(TabularEstimator):
    """A regressor for tables: an ensemble of networks in one computation.

    Labels, metrics and predictions: see `DNNRegressor`; in training, the loss is that of
    standardized labels. Columns and the rest: see `TabularClassifier`.

    Args:
        feature_columns, model_dir, hidden_units, members, dropout, weight_decay, train_steps,
            config, warm_start_from: see `TabularClassifier`.
        label_dimension: the number of labels per example; 1 by default.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        learning_rate: the greatest one; 0.1 by default.
        loss_reduction: as for `DNNRegressor`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        feature_columns: Columns,
        model_dir: str | os.PathLike[str] | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        hidden_units: Iterable[int] = (128, 128, 128),
        members: int = 4,
        dropout: float = 0.15,
        learning_rate: float = 0.1,
        weight_decay: float = 0.02,
        train_steps: int | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            regression_head(label_dimension, weight_column, loss_reduction),
            feature_columns,
            model_dir,
            hidden_units,
            members,
            "mish",
            dropout,
            learning_rate,
            weight_decay,
            train_steps,
            config,
            warm_start_from,
        )


__all__ = ["TabularClassifier", "TabularEstimator", "TabularRegressor"]
