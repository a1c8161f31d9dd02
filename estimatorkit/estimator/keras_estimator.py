"""`model_to_estimator`: an Estimator of a compiled Keras-style model.

The model's layers are built anew in the estimator's graphs (`layers.base.unbuilt`), with the
variables' names that they had; the model itself stays as it is. Where the model has weights
already, the estimator begins with them: training starts there, and `evaluate` and `predict` work
before it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimatorkit.core.checkpoint import write_checkpoint
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import flatten
from estimatorkit.core.ops import array, elementwise
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.export_outputs import PredictOutput
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.keras.compiled import CompiledLoss, CompiledMetrics, as_list_of
from estimatorkit.keras.model import Model
from estimatorkit.layers.base import unbuilt
from estimatorkit.layers.call_record import call_scope
from estimatorkit.layers.sessions import values_of
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from estimatorkit.train.scaffold import Scaffold


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | os.PathLike[str] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str | None = None,
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, str] | None = None,
) -> Estimator:
    """Makes an Estimator of a compiled model (`tf.keras.estimator.model_to_estimator`).

    Args:
        keras_model: a compiled `keras.Model`, or a model of Keras 3 on its JAX backend (see
            `keras3_estimator`).
        keras_model_path: where a model was saved with `model.save`, instead.
        custom_objects: for loading it.
        model_dir, config: as for `Estimator`.
        checkpoint_format: accepted for TensorFlow's signature.
        metric_names_map: other names for metrics in what `evaluate` gives, by their own.
        export_outputs: names of signatures by names of outputs.

    Returns:
        The estimator. Its input functions give features by the names of the model's inputs (or one
        tensor, where there is one input), and labels in the structure of its outputs.

    Raises:
        ValueError: no model or two are given, or it is not compiled.
    """
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError(
            "Either keras_model or keras_model_path needs to be provided."
            if keras_model is None
            else "Please specify either keras_model or keras_model_path, but not both."
        )
    if keras_model is None:
        from estimatorkit.keras import saving

        keras_model = saving.load_model(os.fspath(keras_model_path or ""), custom_objects)
    if not isinstance(keras_model, Model):
        from estimatorkit.estimator.keras3_estimator import as_estimator

        return as_estimator(keras_model, model_dir, config)
    if keras_model.optimizer is None:
        raise ValueError(
            explain(
                "The given keras model has not been compiled yet",
                hint="Please compile the model with `model.compile()` before calling "
                "`model_to_estimator()`",
            )
        )
    return KerasEstimator(keras_model, model_dir, config, metric_names_map, export_outputs)


class KerasEstimator(Estimator):
    """An Estimator of a compiled model; `model_to_estimator` makes it."""

    def __init__(
        self,
        model: Model,
        model_dir: str | os.PathLike[str] | None,
        config: RunConfig | None,
        metric_names: Mapping[str, str] | None,
        export_outputs: Mapping[str, str] | None,
    ) -> None:
        self._first_values = {
            variable.op.name: value
            for variable, value in zip(model.weights, values_of(model.weights), strict=True)
        }
        self._first_checkpoint: tempfile.TemporaryDirectory[str] | None = None
        model_fn = _model_fn(model, self._first_values, metric_names or {}, export_outputs or {})
        super().__init__(model_fn, model_dir, config)

    def _checkpoint_or_error(self, path: str | os.PathLike[str] | None = None) -> str:
        """Before training: a checkpoint of the weights that the model came with."""
        if path is not None or self.latest_checkpoint() is not None or not self._first_values:
            return super()._checkpoint_or_error(path)
        if self._first_checkpoint is None:
            self._first_checkpoint = tempfile.TemporaryDirectory(prefix="estimatorkit-")
            values = {**self._first_values, "global_step": np.int64(0)}
            write_checkpoint(self._first_checkpoint.name, "model.ckpt-0", values)
        return os.path.join(self._first_checkpoint.name, "model.ckpt-0")


def _model_fn(
    model: Model,
    first_values: Mapping[str, Any],
    metric_names: Mapping[str, str],
    export_outputs: Mapping[str, str],
) -> Callable[..., EstimatorSpec]:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        training = mode == ModeKeys.TRAIN
        with unbuilt(model):
            with call_scope(training) as scope:
                outputs = model(_inputs(model, features), training=training)
            names = model.output_names_of(outputs)
            tensors = flatten(outputs)
            predictions = dict(zip(names, tensors, strict=True))
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(
                    mode, predictions, export_outputs=_signatures(predictions, export_outputs)
                )
            compiled = model.compiled
            losses = CompiledLoss(compiled.loss, compiled.given_loss_weights, names)
            truths = as_list_of(labels, names, "labels")
            total, _ = losses(truths, tensors, [None] * len(names))
            for loss in [*scope.losses, *model.regularization_losses()]:
                total = loss if total is None else total + elementwise.cast(loss, total.dtype)
            if total is None:
                raise ValueError("The model has no loss: give one to compile(loss=...).")
            if not training:
                return EstimatorSpec(
                    mode,
                    predictions,
                    total,
                    eval_metric_ops=_metrics(model, names, truths, tensors, metric_names),
                )
            train_op = _update(model, total, scope.updates)
        scaffold = Scaffold(init_fn=lambda _, session: _put(session, first_values))
        return EstimatorSpec(mode, predictions, total, train_op, scaffold=scaffold)

    return model_fn


def _inputs(model: Model, features: Any) -> Any:
    """What the model is called with, of features by name or a single tensor."""
    if not isinstance(features, Mapping) or model._network is None:
        if isinstance(features, Mapping) and len(features) == 1:
            return next(iter(features.values()))
        return features
    names = model.input_names
    if len(names) == 1 and len(features) == 1:
        return next(iter(features.values()))
    missing = [name for name in names if name not in features]
    if missing:
        raise KeyError(
            explain(
                "The dictionary passed into features does not have the expected inputs keys "
                "defined in the keras model",
                expected=f"keys {names}",
                received=f"keys {sorted(features)}",
            )
        )
    return {name: features[name] for name in names}


def _signatures(predictions: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(dict(predictions)),
    }
    for output, signature in names.items():
        if output not in predictions:
            raise ValueError(
                f"export_outputs: the model has no output {output!r}, but {sorted(predictions)}"
            )
        found[signature] = PredictOutput({output: predictions[output]})
    return found


def _metrics(
    model: Model, names: list[str], truths: Any, tensors: Any, renamed: Mapping[str, str]
) -> dict[str, Any]:
    compiled = model.compiled
    metrics = CompiledMetrics(
        compiled.given_metrics, compiled.given_weighted_metrics, compiled.loss, names
    )
    rows = metrics(truths, tensors, [None] * len(names))
    return {renamed.get(name, name): (value, update) for name, update, value in rows}


def _update(model: Model, loss: Tensor, updates: Any) -> Any:
    step = get_or_create_global_step()
    graph = get_default_graph()
    with graph.control_dependencies(updates):
        made = model.compiled.optimizer.minimize(loss, var_list=model.trainable_weights)
    with graph.control_dependencies([made]):
        return array.group(made, step.assign_add(1))


def _put(session: Any, values: Mapping[str, Any]) -> None:
    """Puts the weights that the model came with into a new session."""
    known = {op.name for op in session.graph.get_operations() if op.type == "VarHandleOp"}
    for name, value in values.items():
        if name in known:
            session.state.values[name] = np.array(value)


__all__ = ["KerasEstimator", "model_to_estimator"]
