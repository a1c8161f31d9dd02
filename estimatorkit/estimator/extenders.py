"""`add_metrics`, `forward_features`, mixed precision: extended copies of estimators."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.built_model import ModelStore
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.serving.export_outputs import PredictOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers.engine.policy import policy_scope
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense

_METRIC_FN_ARGUMENTS = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Mapping[str, Any]]) -> Estimator:
    """Returns an estimator with additional metrics (`tf.estimator.add_metrics`).

    Args:
        estimator: the estimator, whose `model_dir` is shared.
        metric_fn: takes any of `features`, `labels`, `predictions` and `config`; returns (value,
            update) pairs or metric objects by name, which replace existing ones.

    Raises:
        ValueError: `metric_fn` takes other arguments.
    """
    names = list(inspect.signature(metric_fn).parameters)
    unknown = [name for name in names if name not in _METRIC_FN_ARGUMENTS]
    if unknown:
        raise value_error(
            f"metric_fn ({metric_fn}) has following not expected args: {unknown}",
            expected=f"any of {', '.join(_METRIC_FN_ARGUMENTS)}",
            hint=did_you_mean(unknown[0], _METRIC_FN_ARGUMENTS),
        )

    def extend(spec: EstimatorSpec, features: Any, labels: Any, config: Any) -> EstimatorSpec:
        if spec.mode != ModeKeys.EVAL:
            return spec
        values = (features, labels, spec.predictions, config)
        known = dict(zip(_METRIC_FN_ARGUMENTS, values, strict=True))
        added = metric_fn(**{name: known[name] for name in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **added})

    return extended(estimator, extend)


def forward_features(
    estimator: Estimator,
    keys: str | Sequence[str] | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """Returns an estimator whose predictions include features
    (`tf.contrib.estimator.forward_features`).

    An example's id, for instance, is then part of its prediction, in `predict` and exported models.

    Args:
        estimator: the estimator, whose `model_dir` is shared.
        keys: the features' keys; all by default.
        sparse_default_values: by key, the default for missing values of sparse features, which are
            forwarded as dense tensors.

    Raises:
        ValueError: a key is not a string, or repeated; on building the model, a feature is missing
            or sparse, or a prediction has the same name.
    """
    wanted = None if keys is None else [keys] if isinstance(keys, str) else list(keys)
    defaults = dict(sparse_default_values or {})
    for position, key in enumerate(wanted or ()):
        if not isinstance(key, str):
            raise ValueError(
                f"All items in the given keys list should be string. There exist {key!r}."
            )
        if key in (wanted or ())[:position]:
            raise ValueError(
                f"All items in the given keys list should be unique. {key!r} occurs twice."
            )

    def extend(spec: EstimatorSpec, features: Any, labels: Any, config: Any) -> EstimatorSpec:
        if spec.mode != ModeKeys.PREDICT:
            return spec
        if not isinstance(features, Mapping) or not isinstance(spec.predictions, Mapping):
            raise value_error(
                "features can only be forwarded by name",
                expected="dicts of features and of predictions",
                received=f"{type(features).__name__} and {type(spec.predictions).__name__}",
            )
        added = {
            key: _forwarded(key, features, spec.predictions, defaults)
            for key in (features if wanted is None else wanted)
        }
        outputs = {
            name: PredictOutput({**output.outputs, **added})
            if isinstance(output, PredictOutput)
            else output
            for name, output in (spec.export_outputs or {}).items()
        }
        return spec._replace(
            predictions={**spec.predictions, **added},
            export_outputs=outputs or spec.export_outputs,
        )

    return extended(estimator, extend)


def _forwarded(
    key: str,
    features: Mapping[str, Any],
    predictions: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> Tensor:
    if key not in features:
        raise value_error(
            f"keys should be exist in features. Key {key!r} is not there",
            expected=f"one of {', '.join(sorted(features))}",
            hint=did_you_mean(key, features),
        )
    if key in predictions:
        raise value_error(
            f"Cannot forward feature key ({key}). Since it does exist in predictions",
            expected=f"a key other than {', '.join(sorted(predictions))}",
            hint="choose features with keys=[...]",
        )
    feature = features[key]
    if isinstance(feature, SparseTensor) and key in defaults:
        dense: Tensor = sparse_tensor_to_dense(feature, default_value=defaults[key])
        return dense
    if key in defaults or not isinstance(feature, Tensor):
        raise value_error(
            f"Feature ({key}) should be a " + ("SparseTensor" if key in defaults else "Tensor"),
            received=type(feature).__name__,
            hint="choose features with keys=[...], or give sparse_default_values={key: value}",
        )
    return feature


def with_mixed_precision(estimator: Estimator) -> Estimator:
    """Returns an estimator whose layers compute in bfloat16, with variables in float32.

    Not in TensorFlow, which has `keras.mixed_precision.set_global_policy` for whole programs.
    Layers with a dtype of their own keep it.

    Args:
        estimator: the estimator, whose `model_dir` is shared.
    """
    return extended(estimator, lambda spec, *_: spec, lambda: policy_scope("mixed_bfloat16"))


def extended(
    estimator: Estimator,
    extend: Callable[[EstimatorSpec, Any, Any, Any], EstimatorSpec],
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Estimator:
    """Returns an estimator that applies a function to another's specs.

    Args:
        estimator: the other.
        extend: takes the spec, features, labels and config.
        scope: makes the context in which the other's model function is called.
    """

    def model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
        with scope():
            spec = estimator._call_model_fn(features, labels, mode, config)
        return extend(spec, features, labels, config)

    copied = copy.copy(estimator)  # with its other attributes, such as a Keras model's weights
    copied._model_fn = model_fn
    copied._models = ModelStore()
    return copied
