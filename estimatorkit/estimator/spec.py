"""What a `model_fn` is asked for and what it returns: `ModeKeys` and `EstimatorSpec`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from estimatorkit.core.errors import explain
from estimatorkit.core.tensor import Operation, Tensor


class ModeKeys:
    """What a model is built for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _Spec(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Mapping[str, tuple[Any, Any]]
    export_outputs: Any
    training_chief_hooks: tuple[Any, ...]
    training_hooks: tuple[Any, ...]
    scaffold: Any
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


class EstimatorSpec(_Spec):
    """The parts of a model that an `Estimator` runs, as `tf.estimator.EstimatorSpec`.

    Args:
        mode: a `ModeKeys`.
        predictions: a tensor or a dict of tensors, one row an example; needed for PREDICT.
        loss: a scalar (or one-element) tensor; needed for TRAIN and EVAL.
        train_op: an operation or tensor that does one update; needed for TRAIN.
        eval_metric_ops: by name, (value, update) pairs of tensors or operations, or metric objects
            with `result()` and `updates`.
        export_outputs: by signature name, what an exported model gives.
        training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: hooks to run with.
        scaffold: the `Scaffold` that initializes, restores and saves; made for it by default.

    Raises:
        ValueError: a part that the mode needs is missing.
        TypeError: a part is of the wrong kind.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Any = None,
        training_chief_hooks: Sequence[Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        scaffold: Any = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        train, evaluate = mode == ModeKeys.TRAIN, mode == ModeKeys.EVAL
        if train and train_op is None:
            raise ValueError("Missing train_op.")
        if (train or evaluate) and loss is None:
            raise ValueError("Missing loss.")
        if mode == ModeKeys.PREDICT and predictions is None:
            raise ValueError("Missing predictions.")
        return super().__new__(
            cls,
            mode,
            _checked_predictions({} if predictions is None else predictions),
            None if loss is None else _checked_loss(loss),
            None if train_op is None else _checked_operation(train_op, "train_op"),
            _checked_metrics({} if eval_metric_ops is None else eval_metric_ops),
            export_outputs,
            tuple(training_chief_hooks or ()),
            tuple(training_hooks or ()),
            scaffold,
            tuple(evaluation_hooks or ()),
            tuple(prediction_hooks or ()),
        )


def _given(problem: str, value: Any) -> str:
    return f"{problem}, given: {repr(value)[:200]}"


def _checked_predictions(predictions: Any) -> Any:
    values = predictions.values() if isinstance(predictions, Mapping) else [predictions]
    for value in values:
        if not isinstance(value, Tensor):
            raise TypeError(_given("predictions must be a Tensor or a dict of them", value))
    return predictions


def _checked_loss(loss: Any) -> Any:
    if not isinstance(loss, Tensor):
        raise TypeError(_given("loss must be Tensor", loss))
    if loss.shape.rank == 0 or loss.shape.rank is None:
        return loss
    if loss.shape.num_elements() not in (1, None):
        raise ValueError(
            explain(
                f"Loss must be scalar, given: {loss}",
                made_at=loss.op.source,
                hint="take reduce_mean or reduce_sum of it",
            )
        )
    from estimatorkit.core.ops.array import reshape

    return reshape(loss, [])


def _checked_operation(value: Any, what: str) -> Any:
    if hasattr(value, "_as_graph_element"):
        value = value._as_graph_element()
    if not isinstance(value, (Tensor, Operation)):
        raise TypeError(_given(f"{what} must be Operation or Tensor", value))
    return value


def _checked_metrics(metrics: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    if not isinstance(metrics, Mapping):
        raise TypeError(_given("eval_metric_ops must be a dict", metrics))
    checked = {}
    for name, metric in metrics.items():
        if hasattr(metric, "result") and hasattr(metric, "updates"):
            from estimatorkit.core.ops.array import group

            metric = (metric.result(), group(*metric.updates))
        if not isinstance(metric, (tuple, list)) or len(metric) != 2:
            raise TypeError(
                _given("Values of eval_metric_ops must be (metric_value, update_op) tuples", metric)
                + f" for key: {name}"
            )
        value, update = metric
        checked[name] = (
            _checked_operation(value, "metric_value"),
            _checked_operation(update, "update_op"),
        )
    return checked
