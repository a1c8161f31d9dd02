"""The interface of a `model_fn`: `ModeKeys` and `EstimatorSpec`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.estimator.serving.export_outputs import ExportOutput, served_outputs
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.sessions.scaffold import Scaffold


class ModeKeys:
    """The modes that a model is built for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _Spec(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Mapping[str, tuple[Any, Any]]
    export_outputs: Mapping[str, ExportOutput] | None
    training_chief_hooks: tuple[SessionRunHook, ...]
    training_hooks: tuple[SessionRunHook, ...]
    scaffold: Scaffold
    evaluation_hooks: tuple[SessionRunHook, ...]
    prediction_hooks: tuple[SessionRunHook, ...]


class EstimatorSpec(_Spec):
    """The parts of a model that an `Estimator` runs (`tf.estimator.EstimatorSpec`).

    All tensors and operations must be in the default graph.

    Args:
        mode: a `ModeKeys`.
        predictions: a tensor or a dict of tensors, one row per example; needed for PREDICT.
        loss: a scalar (or one-element) tensor; needed for TRAIN and EVAL.
        train_op: an operation or tensor that does one update; needed for TRAIN.
        eval_metric_ops: by name, (value, update) pairs, or metric objects with `result()` and
            `updates`. A value is a tensor or a nested structure of tensors, an update an operation
            or a tensor.
        export_outputs: the outputs of an exported model, an `ExportOutput` by signature name; by
            default a `PredictOutput` of all predictions. If there are several, one must be named
            'serving_default'; a single one is exported under that name as well.
        training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: `SessionRunHook`s.
        scaffold: initializes, restores and saves; a new `Scaffold` by default.

    Raises:
        ValueError: an argument that the mode needs is missing, belongs to another graph or has the
            wrong shape; a metric object was never updated; or several `export_outputs` lack a
            default.
        TypeError: an argument has the wrong type.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        training_chief_hooks: Sequence[Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        scaffold: Scaffold | None = None,
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
        if scaffold is not None and not isinstance(scaffold, Scaffold):
            raise TypeError(_given("scaffold must be tf.train.Scaffold", scaffold))
        predictions = _checked_predictions({} if predictions is None else predictions)
        if mode == ModeKeys.PREDICT:
            export_outputs = served_outputs(export_outputs, predictions)
        return super().__new__(
            cls,
            mode,
            predictions,
            None if loss is None else _checked_loss(loss),
            None if train_op is None else _checked_operation(train_op, "train_op"),
            _checked_metrics({} if eval_metric_ops is None else eval_metric_ops),
            export_outputs,
            _checked_hooks(training_chief_hooks),
            _checked_hooks(training_hooks),
            scaffold or Scaffold(),
            _checked_hooks(evaluation_hooks),
            _checked_hooks(prediction_hooks),
        )

    def _replace(self, **changes: Any) -> EstimatorSpec:
        """Returns a copy with some fields replaced, after validation.

        Raises:
            ValueError: `mode` is replaced, or see the class.
            TypeError: a field has the wrong type or does not exist.
        """
        if changes.get("mode", self.mode) != self.mode:
            raise ValueError("mode of EstimatorSpec cannot be changed.")
        return EstimatorSpec(**{**self._asdict(), **changes})


def _given(problem: str, value: Any) -> str:
    return f"{problem}, given: {str(value)[:200]}"


def _in_default_graph(value: Any, what: str, name: str | None = None) -> None:
    """Raises ValueError if a tensor or operation belongs to another graph."""
    if value.graph is not get_default_graph():
        raise value_error(
            f'{what} with "{name or value.name}" must be from the default graph',
            received="a tensor of another graph",
            hint="create it inside the model_fn, on each call",
        )


def _checked_hooks(hooks: Sequence[Any] | None) -> tuple[SessionRunHook, ...]:
    checked = tuple(hooks or ())
    for hook in checked:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(_given("All hooks must be SessionRunHook instances", hook))
    return checked


def _as_graph_element(value: Any) -> Any:
    """Converts to a tensor or operation, for instance from a variable."""
    return value._as_graph_element() if hasattr(value, "_as_graph_element") else value


def _checked_predictions(predictions: Any) -> Any:
    if not isinstance(predictions, Mapping):
        return _checked_prediction(predictions, "predictions")
    checked = {
        key: _checked_prediction(value, f"predictions[{key}]") for key, value in predictions.items()
    }
    same = all(value is predictions[key] for key, value in checked.items())
    return predictions if same else checked


def _checked_prediction(value: Any, what: str) -> Tensor:
    tensor = _as_graph_element(value)
    if not isinstance(tensor, Tensor):
        raise TypeError(_given(f"{what} must be Tensor", value))
    _in_default_graph(tensor, "prediction values")
    return tensor


def _checked_loss(loss: Any) -> Any:
    loss = _as_graph_element(loss)
    if not isinstance(loss, Tensor):
        raise TypeError(_given("loss must be Tensor", loss))
    _in_default_graph(loss, "loss")
    if loss.shape.rank == 0 or loss.shape.rank is None:
        return loss
    if loss.shape.num_elements() not in (1, None):
        raise value_error(
            f"Loss must be scalar, given: {loss}",
            made_at=loss.op.source,
            hint="use reduce_mean or reduce_sum",
        )
    from estimatorkit.ops.array.array import reshape

    return reshape(loss, [])


def _checked_operation(value: Any, what: str, name: str | None = None) -> Any:
    value = _as_graph_element(value)
    if not isinstance(value, (Tensor, Operation)):
        raise TypeError(_given(f"{what} must be Operation or Tensor", value))
    _in_default_graph(value, what, name)
    return value


def _checked_metrics(metrics: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    if not isinstance(metrics, Mapping):
        raise TypeError(_given("eval_metric_ops must be a dict", metrics))
    checked = {}
    for name, metric in metrics.items():
        if hasattr(metric, "result") and hasattr(metric, "updates"):
            metric = _metric_operations(name, metric)
        if not isinstance(metric, tuple) or len(metric) != 2:
            raise TypeError(
                _given("Values of eval_metric_ops must be (metric_value, update_op) tuples", metric)
                + f" for key: {name}"
            )
        value, update = metric
        checked[name] = (
            map_structure(partial(_checked_operation, what="metric_value", name=name), value),
            _checked_operation(update, "update_op", name),
        )
    return checked


def _metric_operations(name: str, metric: Any) -> tuple[Any, Operation]:
    """The value and the update of a metric object.

    Raises:
        ValueError: it was never updated, or in another graph.
    """
    updates = list(metric.updates)
    if not updates:
        raise ValueError(
            f'Please call update_state(...) on the "{metric.name}" metric of {name}: its updates '
            "must be from the default graph"
        )
    for each in flatten(updates):
        _in_default_graph(each, "eval_metric_ops", f"{name}: {each.name}")
    from estimatorkit.core.builtin_ops import group

    update: Operation = group(*updates)
    return metric.result(), update


__all__ = ["EstimatorSpec", "ModeKeys"]
