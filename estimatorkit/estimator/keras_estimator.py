"""`model_to_estimator`: converts compiled Keras-style models to estimators.

The model's layers are rebuilt in the estimator's graphs (`layers.engine.base.unbuilt`) with the
same variable names; the model itself is not modified. If it has weights, the estimator starts from
them: they initialize training, and `evaluate` and `predict` work before it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import flatten
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.adapted_model import (
    AdaptedModel,
    Called,
    FormattedKeyError as FormattedKeyError,
    by_name,
    inputs_by_name,
)
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.serving.export_outputs import PredictOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.keras.engine.compiled import CompiledLoss, CompiledMetrics, as_list_of
from estimatorkit.keras.engine.model import Model
from estimatorkit.layers.engine.base import unbuilt
from estimatorkit.layers.engine.call_record import call_scope
from estimatorkit.layers.engine.sessions import values_of
from estimatorkit.ops.math import elementwise
from estimatorkit.storage.checkpoint import write_checkpoint
from estimatorkit.train.checks import add_step_check, collecting_step_checks
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers.optimizer import part_of_mean
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from estimatorkit.train.sessions.scaffold import Scaffold


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | os.PathLike[str] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str | None = None,
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Estimator:
    """Converts a compiled model to an Estimator (`tf.keras.estimator.model_to_estimator`).

    Args:
        keras_model: a compiled `keras.Model`, or a model of Keras 3 on its JAX backend (see
            `estimator.keras3_model`).
        keras_model_path: the path of a model saved with `model.save`, instead.
        custom_objects: custom objects for loading it.
        model_dir, config: as for `Estimator`.
        checkpoint_format: accepted for compatibility only.
        metric_names_map: maps the names of all metrics to their names in the results of `evaluate`.
        export_outputs: by output name, a subclass of `ExportOutput` for a signature of that name,
            or the signature name of a `PredictOutput`.

    Returns:
        The estimator. Its input functions return features by input name (or a single tensor), and
        labels in the structure of the outputs. A dict of 'features' and 'sample_weights' weights
        the examples.

    Raises:
        ValueError: not exactly one model is given, or it is not compiled.
    """
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError(
            "Either keras_model or keras_model_path needs to be provided."
            if keras_model is None
            else "Please specify either keras_model or keras_model_path, but not both."
        )
    if keras_model is None:
        from estimatorkit.keras.engine import saving

        keras_model = saving.load_model(os.fspath(keras_model_path or ""), custom_objects)
    if not isinstance(keras_model, Model):
        from estimatorkit.estimator.keras3_model import Keras3Model

        adapted = Keras3Model(keras_model)
        return KerasEstimator(adapted, model_dir, config, metric_names_map, export_outputs)
    if keras_model.optimizer is None:
        raise value_error(
            "The given keras model has not been compiled yet",
            hint="Please compile the model with `model.compile()` before calling "
            "`model_to_estimator()`",
        )
    return KerasEstimator(_Layers(keras_model), model_dir, config, metric_names_map, export_outputs)


class KerasEstimator(Estimator):
    """An Estimator of a compiled model, created by `model_to_estimator`."""

    def __init__(
        self,
        model: AdaptedModel,
        model_dir: str | os.PathLike[str] | None,
        config: RunConfig | None,
        metric_names: Mapping[str, str] | None = None,
        export_outputs: Mapping[str, Any] | None = None,
    ) -> None:
        self._first_values = model.first_values
        self._first_checkpoint: _FirstCheckpoint | None = None
        model_fn = _model_fn(model, metric_names or {}, export_outputs or {})
        super().__init__(model_fn, model_dir, config)

    def _checkpoint_or_none(self, path: str | os.PathLike[str] | None) -> str | None:
        """Before training, a checkpoint of the model's initial weights."""
        if path is not None or self.latest_checkpoint() is not None or not self._first_values:
            return super()._checkpoint_or_none(path)
        if self._first_checkpoint is None:
            self._first_checkpoint = _FirstCheckpoint(self._first_values)
        return self._first_checkpoint.path


class _FirstCheckpoint:
    """A checkpoint of a model's initial weights, in a temporary folder."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        folder = tempfile.mkdtemp(prefix="estimatorkit-")
        weakref.finalize(self, shutil.rmtree, folder, True)
        written = {**values, "global_step": np.int64(0)}
        self.path = os.fspath(write_checkpoint(folder, "model.ckpt-0", written))


class _Layers(AdaptedModel):
    """A `keras.Model` of this package."""

    def __init__(self, model: Model) -> None:
        compiled = model.compiled
        self._model = model
        self.loss = compiled.loss
        self.loss_weights = compiled.given_loss_weights
        self.metrics = compiled.given_metrics
        self.weighted_metrics = compiled.given_weighted_metrics
        self.optimizer = compiled.optimizer
        values = zip(model.weights, values_of(model.weights), strict=True)
        self.first_values = {variable.op.name: value for variable, value in values}

    @contextmanager
    def called(self, features: Any, training: bool) -> Iterator[Called]:
        """Calls the model with rebuilt layers."""
        model = self._model
        with unbuilt(model):
            with call_scope(training) as scope, get_default_graph().program_order() as writes:
                outputs = model(_inputs(model, features), training=training)
            yield Called(
                model.output_names_of(outputs),
                flatten(outputs),
                [*scope.losses, *model.regularization_losses()],
                [*scope.updates, *writes],
                model.trainable_weights,
            )


def create_keras_model_fn(
    keras_model: Model,
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Callable[..., EstimatorSpec]:
    """The `model_fn` of a compiled model (TensorFlow's private `_create_keras_model_fn`).

    Args: see `model_to_estimator`.
    """
    return _model_fn(_Layers(keras_model), metric_names_map or {}, export_outputs or {})


def _model_fn(
    model: AdaptedModel, metric_names: Mapping[str, str], export_outputs: Mapping[str, Any]
) -> Callable[..., EstimatorSpec]:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        training = mode == ModeKeys.TRAIN
        weights = None
        if isinstance(features, Mapping) and set(features) == {"features", "sample_weights"}:
            features, weights = features["features"], features["sample_weights"]
        with model.called(features, training) as called:
            names = called.names
            predictions = dict(zip(names, called.tensors, strict=True))
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(
                    mode, predictions, export_outputs=_signatures(predictions, export_outputs)
                )
            if isinstance(labels, Mapping):
                labels = by_name(labels, names, "labels", "outputs")
            truths = as_list_of(labels, names, "labels")
            sample_weights = as_list_of(weights, names, "sample_weights")
            losses = CompiledLoss(model.loss, model.loss_weights, names)
            with collecting_step_checks() as checks:
                total, _ = losses(truths, called.tensors, sample_weights)
            for check in checks:
                add_step_check(check.tensors, check.check)
            for loss in called.losses:
                total = loss if total is None else total + elementwise.cast(loss, total.dtype)
            if total is None:
                raise ValueError("The model has no loss: pass one to compile(loss=...).")
            if not training:
                metrics = CompiledMetrics(model.metrics, model.weighted_metrics, names)
                rows = metrics(truths, called.tensors, sample_weights, features)
                _check_metric_names(metric_names, [name for name, _, _ in rows])
                return EstimatorSpec(
                    mode,
                    predictions,
                    total,
                    eval_metric_ops={
                        metric_names.get(name, name): (metric.result(), update)
                        for name, update, metric in rows
                    },
                )
            train_op = _update(model.optimizer, total, called)
        scaffold = Scaffold(init_fn=lambda _, session: _put(session, model.first_values))
        return EstimatorSpec(mode, predictions, total, train_op, scaffold=scaffold)

    return model_fn


def _inputs(model: Model, features: Any) -> Any:
    """The model's inputs, from features by name or a single tensor."""
    names = [] if model._network is None else model.input_names
    return inputs_by_name(features, names)


def _check_metric_names(given: Mapping[str, str], names: Sequence[str]) -> None:
    missing, extra = set(names) - set(given), set(given) - set(names)
    if given and missing:
        raise ValueError(
            "Invalid `metric_names_map`. The following keras model metric names: "
            f"{sorted(missing)} do not exist in the `metric_names_map` dictionary: {dict(given)}"
        )
    if extra:
        raise ValueError(
            "Invalid `metric_names_map`. There are unexpected keys in the `metric_names_map` "
            f"dictionary: {sorted(extra)}; expected: {sorted(names)}"
        )


def _signatures(predictions: Mapping[str, Tensor], kinds: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(dict(predictions)),
    }
    missed = sorted(set(kinds) - set(predictions))
    if missed:
        raise FormattedKeyError(
            f"export_outputs does not cover the outputs of the keras model.\n\tExpected keys: "
            f"{sorted(predictions)}\n\texport_outputs keys: {sorted(kinds)}\n\t"
            f"Missed keys: {missed}"
        )
    for output, kind in kinds.items():
        if isinstance(kind, str):
            found[kind] = PredictOutput({output: predictions[output]})
        else:
            found[output] = kind(predictions[output])
    return found


def _update(optimizer: Any, loss: Tensor, called: Called) -> Any:
    step = get_or_create_global_step()
    graph = get_default_graph()
    with graph.control_dependencies(called.updates):
        made = optimizer.minimize(part_of_mean(loss, optimizer), var_list=called.trainable)
    with graph.control_dependencies([made]):
        return builtin_ops.group(made, step.assign_add(1))


def _put(session: Any, values: Mapping[str, Any]) -> None:
    """Loads the model's initial weights into a new session."""
    known = {op.name for op in session.graph.get_operations() if role_of(op) is Role.VARIABLE}
    for name, value in values.items():
        if name in known:
            session.state.values[name] = np.array(value)


__all__ = [
    "AdaptedModel",
    "Called",
    "FormattedKeyError",
    "KerasEstimator",
    "create_keras_model_fn",
    "inputs_by_name",
    "model_to_estimator",
]
