"""`Head`: maps logits to predictions, loss, metrics and the training operation.

A model function passes its logits to a head, which makes it a classifier or regressor. `Head`
defines the interface and creates `EstimatorSpec`s. Subclasses implement `predictions`, and `loss`
and `update_metrics`, or as those in this package `_outcome`, which computes both. `single_head` is
the base of heads of one task, `multi_head` combines several. Keys, dtypes and shapes are those of
TensorFlow 2.15's heads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.estimator.serving.export_outputs import ExportOutput, PredictOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.keras.optimizers.optimizer import Optimizer as KerasOptimizer
from estimatorkit.layers.metrics.streaming import Metric
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_collections import (
    trainable_variables as all_trainable_variables,
)
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.records import recorded_scalar
from estimatorkit.train.optimizers.optimizer import Optimizer, part_of_mean
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

Metrics = dict[str, Metric]
Version = Literal[1, 2]


class Outcome(NamedTuple):
    """The loss and metrics of a batch.

    Attributes:
        loss: a float32 scalar.
        metrics: creates the metrics; only called for evaluation.
        summaries: creates the scalars to summarize in training besides the loss, by tag.
        smoothed: the loss with smoothed labels, which training minimizes; None: there is none.
    """

    loss: Tensor
    metrics: Callable[[], Metrics]
    summaries: Callable[[], dict[str, Tensor]] = dict
    smoothed: Tensor | None = None

    @property
    def minimized(self) -> Tensor:
        """The loss that training minimizes."""
        return self.loss if self.smoothed is None else self.smoothed


class Head(ABC):
    """The base class of heads (`tf.estimator.Head`).

    Custom heads implement `name`, `logits_dimension`, `loss_reduction`, `predictions`, `loss` and,
    for metrics, `update_metrics`; `create_estimator_spec` is derived from these.
    """

    _version: Version = 2  # the version of TensorFlow that operation names follow

    @property
    @abstractmethod
    def name(self) -> str | None:
        """The head's name, or None."""

    @property
    @abstractmethod
    def logits_dimension(self) -> int:
        """The number of logits per example."""

    @property
    @abstractmethod
    def loss_reduction(self) -> str:
        """How the examples' losses are reduced: a value of `layers.losses.Reduction`."""

    # -- what subclasses say

    @abstractmethod
    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """Predictions by key.

        Args:
            logits: numbers `(batch, ..., logits_dimension)`.
            keys: the keys to compute; all by default.

        Raises:
            ValueError: a key is unknown, or the logits have the wrong shape.
        """

    def _outcome(
        self,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None,
    ) -> Outcome:
        """The loss and the metrics; arguments as for `loss`."""
        raise NotImplementedError(f"{type(self).__name__} does not define its loss.")

    def _outcome_of_class(
        self,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None,
        mode: str | None,
    ) -> Outcome:
        """`_outcome`, using the class's overrides of `loss`, `metrics` and `update_metrics`."""
        kind, made = type(self), None
        if kind._outcome is not Head._outcome:
            made = self._outcome(features, logits, labels, regularization_losses)

        def metrics() -> Metrics:
            found = self.metrics(regularization_losses=regularization_losses)
            return self.update_metrics(
                eval_metrics=found,
                features=features,
                logits=logits,
                labels=labels,
                regularization_losses=regularization_losses,
            )

        has_metrics = kind.update_metrics is not Head.update_metrics
        if made is None or kind.loss is not Head.loss:
            loss = self.loss(
                labels=labels,
                logits=logits,
                features=features,
                mode=mode,
                regularization_losses=regularization_losses,
            )
            if made is None:
                return Outcome(loss, metrics if has_metrics else dict)
            made = made._replace(loss=loss, smoothed=None)
        if has_metrics or kind.metrics is not Head.metrics:
            made = made._replace(metrics=metrics)
        return made

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """The outputs of exported models by signature: all predictions by default."""
        output = PredictOutput(predictions)
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: output, "predict": output}

    def average_logits(self, logits: Tensor, weights: Any = None) -> Tensor:
        """The logits of an ensemble: the mean of its members' predictions, as logits.

        Heads of classes average probabilities, others the logits themselves.

        Args:
            logits: float32 `(batch, members, logits_dimension)`.
            weights: `(members,)`, or `(batch, members)` for each row, numbers >= 0 with the sum 1;
                equal by default.

        Returns:
            float32 `(batch, logits_dimension)`.
        """
        if weights is None:
            return reduce.reduce_mean(logits, 1)
        return reduce.reduce_sum(logits * array.expand_dims(weights, -1), 1)

    # -- what users call

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> Tensor:
        """The training loss, a float32 scalar.

        Args:
            labels: see the head.
            logits: numbers `(batch, ..., logits_dimension)`.
            features: the features, among them the weights.
            mode: accepted for compatibility only.
            regularization_losses: scalars to add.

        Raises:
            ValueError, TypeError: labels, logits or weights are invalid.
        """
        return self._outcome(features, logits, labels, regularization_losses).minimized

    def eval_metric_ops(
        self,
        features: Mapping[str, Any] | None,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> Metrics:
        """The metrics, `(value, update_op)` by key; arguments as for `loss`."""
        return self._outcome(features, logits, labels, regularization_losses).metrics()

    def metrics(self, regularization_losses: Sequence[Tensor] | None = None) -> Metrics:
        """Returns an empty dict for `update_metrics`, which creates the metrics."""
        return {}

    def update_metrics(
        self,
        eval_metrics: Metrics,
        features: Mapping[str, Any] | None,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> Metrics:
        """Adds this head's metrics to `eval_metrics`, for `EstimatorSpec(eval_metric_ops=...)`.

        Args:
            eval_metrics: the result of `metrics`, with any additional metrics.
            features, logits, labels, regularization_losses: see `loss`.
        """
        eval_metrics.update(self.eval_metric_ops(features, logits, labels, regularization_losses))
        return eval_metrics

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Optimizer | None = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Tensor] | None = None,
    ) -> EstimatorSpec:
        """Returns the `EstimatorSpec` of a `model_fn`.

        Args:
            features: tensors by key, including weights.
            mode: a `ModeKeys`.
            logits: numbers `(batch, ..., logits_dimension)`.
            labels: see the head; needed for TRAIN and EVAL.
            optimizer: minimizes the loss; TRAIN requires exactly one of it and `train_op_fn`.
            trainable_variables: the variables to train; all trainable ones by default.
            train_op_fn: maps the loss to the training operation.
            update_ops: operations to run with each step; by default the collection UPDATE_OPS
                (TensorFlow 2 runs none by default, so batch normalization silently keeps its
                initial averages).
            regularization_losses: scalars to add to the loss.

        Raises:
            ValueError, TypeError: an argument is invalid.
        """
        graph = get_default_graph()
        with graph.name_scope(self.name or "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(
                    mode,
                    predictions=predictions,
                    export_outputs=self._export_outputs(predictions),
                )
            outcome = self._outcome_of_class(features, logits, labels, regularization_losses, mode)
            if mode == ModeKeys.EVAL and self._version == 2:
                return self._evaluation(predictions, outcome)
            summaries = {self._tag("loss"): outcome.minimized, **outcome.summaries()}
        if mode == ModeKeys.EVAL:
            return self._evaluation(predictions, outcome)
        with graph.name_scope(None):
            train_op = _train_op(outcome.minimized, optimizer, trainable_variables, train_op_fn)
            if update_ops is None:
                update_ops = graph.get_collection(GraphKeys.UPDATE_OPS)
            if not isinstance(update_ops, (list, tuple)):
                raise ValueError(
                    f"update_ops should be a list or a tuple. Given type: {type(update_ops)}."
                )
            if update_ops:
                train_op = builtin_ops.group(train_op, *update_ops)
            if regularization_losses:
                total = elementwise.add_n(regularization_losses)
                summaries[self._tag("regularization_loss")] = total
            for tag, value in summaries.items():
                recorded_scalar(tag, value)
        return EstimatorSpec(
            mode, predictions=predictions, loss=outcome.minimized, train_op=train_op
        )

    @staticmethod
    def _evaluation(predictions: Any, outcome: Outcome) -> EstimatorSpec:
        return EstimatorSpec(
            ModeKeys.EVAL,
            predictions=predictions,
            loss=outcome.loss,
            eval_metric_ops=outcome.metrics(),
        )

    def _tag(self, key: str) -> str:
        """The tag of a summary."""
        return f"{key}/{self.name}" if self.name else key


def _has_own_updates(optimizer: KerasOptimizer) -> bool:
    """Whether a custom Keras optimizer overrides `get_updates`."""
    kind: Any = type(optimizer)
    ours = KerasOptimizer
    return kind.get_updates is not ours.get_updates and kind.minimize is ours.minimize


def _train_op(
    loss: Tensor,
    optimizer: Any,
    trainable_variables: Sequence[Any] | None,
    train_op_fn: Callable[[Tensor], Any] | None,
) -> Any:
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if train_op_fn is not None:
        return train_op_fn(loss)
    if optimizer is None:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    if not isinstance(optimizer, Optimizer):
        raise value_error(
            "The given optimizer is not a tf.keras.optimizers.Optimizer instance, nor a "
            "train.Optimizer",
            received=f"{optimizer!r} of type {type(optimizer)}",
        )
    if not isinstance(trainable_variables, (list, tuple, type(None))):
        raise ValueError(
            "trainable_variables should be a list or a tuple. "
            f"Given type: {type(trainable_variables)}."
        )
    if isinstance(optimizer, KerasOptimizer) and _has_own_updates(optimizer):
        updates: Operation = optimizer.get_updates(
            part_of_mean(loss, optimizer), list(trainable_variables or all_trainable_variables())
        )[0]
        return updates
    operation: Operation = optimizer.minimize(
        part_of_mean(loss, optimizer),
        global_step=get_or_create_global_step(),
        var_list=trainable_variables,
    )
    return operation


__all__ = ["Head", "Metrics", "Outcome", "Version"]
