"""Outputs of an exported model: `ExportOutput` and its subclasses, as in `tf.estimator.export`.

A `model_fn` lists them by signature name in `EstimatorSpec.export_outputs`. Each validates its
tensors on construction, and becomes a `SignatureDef` for given input tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from estimatorkit.core.dtypes import float32, string
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.train.saving import saved_model_constants as constants
from estimatorkit.train.saving.signatures import (
    build_signature_def,
    build_tensor_info,
    classification_signature_def,
    predict_signature_def,
    regression_signature_def,
)


class ExportOutput(ABC):
    """A servable output of a model, usually from a head."""

    @abstractmethod
    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The `SignatureDef` that maps inputs to this output.

        Args:
            receiver_tensors: the fed tensors by the names that clients use.

        Raises:
            ValueError: the inputs do not fit this kind of output.
        """


class ClassificationOutput(ExportOutput):
    """The output of a classifier, for the `classify` method of servers.

    Scores alone are those of every class in the order of class ids; classes alone are the best in
    descending order; given together they are pairs.

    Args:
        scores: float32 `(batch, classes)`, or None.
        classes: string `(batch, classes)`, labels rather than ids, or None.

    Raises:
        ValueError: both are None, or one is not a tensor of its dtype.
    """

    def __init__(self, scores: Tensor | None = None, classes: Tensor | None = None) -> None:
        if scores is not None and not _is_floating(scores):
            raise ValueError(
                _wrong("Classification scores must be a float32 Tensor", float32, scores)
            )
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype is string):
            raise value_error(
                f"Classification classes must be a string Tensor; got {classes}",
                expected="labels as strings",
                hint="as_string(class_ids) makes strings of ids",
            )
        if scores is None and classes is None:
            raise ValueError(
                "Cannot create a ClassificationOutput with empty arguments. At least one of "
                "`scores` and `classes` must be defined."
            )
        self._scores = scores
        self._classes = classes

    @property
    def scores(self) -> Tensor | None:
        """The scores, or None."""
        return self._scores

    @property
    def classes(self) -> Tensor | None:
        """The labels, or None."""
        return self._classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """See `ExportOutput`; the input must be one tensor of serialized `Example`s."""
        examples = _examples("Classification", receiver_tensors)
        return classification_signature_def(examples, self._classes, self._scores)


class RegressionOutput(ExportOutput):
    """The output of a regressor, for the `regress` method of servers.

    Args:
        value: float32 `(batch,)` or `(batch, 1)`.

    Raises:
        ValueError: it is not a floating-point tensor.
    """

    def __init__(self, value: Tensor) -> None:
        if not _is_floating(value):
            raise ValueError(
                _wrong("Regression output value must be a float32 Tensor", float32, value)
            )
        self._value = value

    @property
    def value(self) -> Tensor:
        """The predicted values."""
        return self._value

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """See `ExportOutput`; the input must be one tensor of serialized `Example`s."""
        return regression_signature_def(_examples("Regression", receiver_tensors), self._value)


class PredictOutput(ExportOutput):
    """Any outputs, for the `predict` method of servers.

    Args:
        outputs: tensors by name; a single tensor is named 'output'.

    Raises:
        ValueError: a name is not a string, or a value is not a tensor.
    """

    def __init__(self, outputs: Tensor | Mapping[Any, Tensor]) -> None:
        self._outputs = _checked_outputs(outputs, "output", "Prediction")

    @property
    def outputs(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """See `ExportOutput`."""
        return predict_signature_def(receiver_tensors, self._outputs)


class _SupervisedOutput(ExportOutput):
    """Losses, predictions and metrics of a model that is fed labels.

    Args:
        loss: the loss, or losses by name.
        predictions: a tensor, or tensors by name.
        metrics: a (value, update operation) pair or an object with `result()` and `updates`, or
            several by name.

    Raises:
        ValueError: a name is not a string, or a value is not a tensor.
    """

    _method: str

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self._loss = None if loss is None else _prefixed("loss", loss)
        self._predictions = None if predictions is None else _prefixed("predictions", predictions)
        self._metrics = None if metrics is None else _checked_metrics(metrics)

    @property
    def loss(self) -> dict[str, Tensor] | None:
        """The losses by name; names start with 'loss'."""
        return self._loss

    @property
    def predictions(self) -> dict[str, Tensor] | None:
        """The predictions by name; names start with 'predictions'."""
        return self._predictions

    @property
    def metrics(self) -> dict[str, Tensor] | None:
        """Values ('metrics/<name>/value') and updates ('metrics/<name>/update_op')."""
        return self._metrics

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """See `ExportOutput`."""
        if not receiver_tensors:
            raise ValueError(f"{self._method} inputs cannot be None or empty.")
        outputs = {
            **(self._loss or {}),
            **(self._predictions or {}),
            **(self._metrics or {}),
        }
        return build_signature_def(
            {key: build_tensor_info(tensor) for key, tensor in receiver_tensors.items()},
            {key: build_tensor_info(tensor) for key, tensor in outputs.items()},
            self._method,
        )


class TrainOutput(_SupervisedOutput):
    """The outputs of a training graph."""

    _method = constants.SUPERVISED_TRAIN_METHOD_NAME


class EvalOutput(_SupervisedOutput):
    """The outputs of an evaluation graph."""

    _method = constants.SUPERVISED_EVAL_METHOD_NAME


def served_outputs(outputs: Any, predictions: Any) -> dict[str, ExportOutput]:
    """The outputs to serve by signature, including 'serving_default'.

    Args:
        outputs: `ExportOutput`s by name; None for a `PredictOutput` of the predictions.
        predictions: a tensor or a dict of tensors.

    Raises:
        TypeError: `outputs` is not a dict of `ExportOutput`s.
        ValueError: several are given, and none is named 'serving_default'.
    """
    default = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if outputs is None:
        return {default: PredictOutput(predictions)}
    if not isinstance(outputs, Mapping):
        raise TypeError(f"`export_outputs` must be dict, received: {outputs}.")
    for value in outputs.values():
        if not isinstance(value, ExportOutput):
            raise TypeError(
                f"Values in `export_outputs` must be ExportOutput objects, received: {outputs}."
            )
    if len(outputs) == 1:
        return {**outputs, default: next(iter(outputs.values()))}
    if default not in outputs:
        raise ValueError(
            "Multiple `export_outputs` were provided, but none of them are specified as the "
            "default. Use `tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY` to specify a default."
        )
    return dict(outputs)


# -- checks


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_floating


def _wrong(problem: str, expected: Any, value: Any) -> str:
    return explain(
        f"{problem}; got {value}",
        expected=f"a tensor of {expected.name}",
        received=value.dtype.name if isinstance(value, Tensor) else type(value).__name__,
        made_at=value.op.source if isinstance(value, Tensor) else None,
        hint=f"cast(tensor, {expected.name})" if isinstance(value, Tensor) else None,
    )


def _examples(kind: str, receiver_tensors: Mapping[str, Any]) -> Tensor:
    """The single string input required by the methods `classify` and `regress`."""
    given = list(receiver_tensors.values())
    if len(given) != 1 or given[0].dtype is not string or not isinstance(given[0], Tensor):
        raise value_error(
            f"{kind} signatures can only accept a single tensor input of type tf.string. "
            "Please check to make sure that you have structured the "
            "serving_input_receiver_fn so that it creates a single string placeholder. If "
            "your model function expects multiple inputs, then use `tf.io.parse_example()` to "
            "parse the string into multiple tensors.",
            received=dict(receiver_tensors),
        )
    examples: Tensor = given[0]
    return examples


def _checked_name(name: Any, what: str) -> str:
    # Models with several heads name their outputs by tuples.
    joined = "/".join(map(str, name)) if isinstance(name, tuple) else name
    if not isinstance(joined, str):
        raise ValueError(f"{what} output key must be a string; got {joined}.")
    return joined


def _checked_outputs(outputs: Any, default_name: str, what: str) -> dict[str, Tensor]:
    given = outputs if isinstance(outputs, Mapping) else {default_name: outputs}
    for value in given.values():
        if not isinstance(value, Tensor):
            raise ValueError(f"{what} output value must be a Tensor; got {value}.")
    return {_checked_name(name, what): value for name, value in given.items()}


def _with_prefix(prefix: str, name: str) -> str:
    return name if name.startswith(prefix) else f"{prefix}/{name}"


def _prefixed(kind: str, outputs: Any) -> dict[str, Tensor]:
    checked = _checked_outputs(outputs, kind, kind)
    return {_with_prefix(kind, name): value for name, value in checked.items()}


def _checked_metrics(metrics: Any) -> dict[str, Tensor]:
    from estimatorkit.core.conversion import constant

    checked: dict[str, Tensor] = {}
    given = metrics if isinstance(metrics, Mapping) else {"metrics": metrics}
    for name, metric in given.items():
        pair = (metric.result(), *metric.updates) if hasattr(metric, "result") else metric
        value, update = pair
        key = _with_prefix("metrics", _checked_name(name, "metrics"))
        if not isinstance(value, Tensor):
            raise ValueError(f"{key} output value must be a Tensor; got {value}.")
        if not isinstance(update, (Tensor, Operation)):
            raise ValueError(f"{key} update_op must be a Tensor or Operation; got {update}.")
        if isinstance(update, Operation):  # signatures name tensors
            with get_default_graph().control_dependencies([update]):
                update = constant([], name="metric_op_wrapper")
        checked[f"{key}/value"] = value
        checked[f"{key}/update_op"] = update
    return checked


__all__ = [
    "ClassificationOutput",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "TrainOutput",
    "served_outputs",
]
