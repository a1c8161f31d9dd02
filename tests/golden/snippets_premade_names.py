"""Premade estimators whose graphs are compared by name, as functions of the module `tf`.

`graphs(tf, v1, estimators)` gives, for each and each mode, the names of predictions, loss, metrics,
exported tensors and summaries. `tf` is the module of version 2, `v1` that of version 1, and
`estimators` is 'v1' or 'v2': whose estimators are built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_CLASSES = [[1], [0]]
_NUMBERS = [[1.0], [0.0]]

# What makes each estimator from `tf.estimator` and the columns, and its labels.
ESTIMATORS: Mapping[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "dnn binary": (lambda e, x: e.DNNClassifier([2], x, weight_column="w"), _CLASSES),
    "dnn words": (lambda e, x: e.DNNClassifier([2], x, label_vocabulary=["a", "b"]), [["a"]] * 2),
    "dnn classes": (lambda e, x: e.DNNClassifier([2, 3], x, n_classes=3), _CLASSES),
    "dnn numbers": (lambda e, x: e.DNNRegressor([2], x, weight_column="w"), _NUMBERS),
    "linear binary": (lambda e, x: e.LinearClassifier(x), _CLASSES),
    "linear classes": (lambda e, x: e.LinearClassifier(x, n_classes=3), _CLASSES),
    "linear numbers": (lambda e, x: e.LinearRegressor(x), _NUMBERS),
    "combined binary": (
        lambda e, x: e.DNNLinearCombinedClassifier(
            linear_feature_columns=x, dnn_feature_columns=x, dnn_hidden_units=[2]
        ),
        _CLASSES,
    ),
    "combined numbers": (
        lambda e, x: e.DNNLinearCombinedRegressor(
            linear_feature_columns=x, dnn_feature_columns=x, dnn_hidden_units=[2]
        ),
        _NUMBERS,
    ),
    "baseline binary": (lambda e, x: e.BaselineClassifier(), _CLASSES),
    "baseline classes": (lambda e, x: e.BaselineClassifier(n_classes=3), _CLASSES),
    "baseline numbers": (lambda e, x: e.BaselineRegressor(), _NUMBERS),
}

HEADS: Mapping[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "head named": (lambda e, x: e.DNNEstimator(e.BinaryClassHead(name="h"), [2], x), _CLASSES),
    "head of labels": (
        lambda e, x: e.DNNEstimator(e.MultiLabelHead(3), [2], x),
        [[1, 0, 1], [0, 1, 0]],
    ),
    "head of counts": (lambda e, x: e.DNNEstimator(e.PoissonRegressionHead(), [2], x), _NUMBERS),
    "head of rates": (lambda e, x: e.LinearEstimator(e.LogisticRegressionHead(), x), _NUMBERS),
}


def _names(value: Any) -> Any:
    """The names of the tensors in a structure, with the keys as texts."""
    if isinstance(value, Mapping):
        return {str(key): _names(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_names(each) for each in value]
    return None if value is None else value.name


def _exported(output: Any) -> Any:
    parts = {
        part: getattr(output, part, None) for part in ("outputs", "scores", "classes", "value")
    }
    return {part: _names(value) for part, value in parts.items() if value is not None}


def graphs(tf: Any, v1: Any, estimators: str) -> dict[str, Any]:
    """Names by estimator and mode."""
    module = {"v1": v1, "v2": tf}[estimators].estimator
    cases = ESTIMATORS if estimators == "v1" else {**ESTIMATORS, **HEADS}
    found: dict[str, Any] = {}
    for name, (make, labels) in cases.items():
        estimator = make(module, [v1.feature_column.numeric_column("x")])
        found[name] = {}
        for mode in ("train", "eval", "infer"):
            with v1.Graph().as_default() as graph:
                v1.train.get_or_create_global_step()
                features = {"x": v1.constant(_NUMBERS), "w": v1.constant(_NUMBERS)}
                truth = None if mode == "infer" else v1.constant(labels)
                spec = estimator._call_model_fn(features, truth, mode, estimator.config)
                outputs = (spec.export_outputs or {}).items()
                found[name][mode] = {
                    "predictions": _names(spec.predictions),
                    "loss": _names(spec.loss),
                    "metrics": _names(spec.eval_metric_ops),
                    "exported": {key: _exported(output) for key, output in outputs},
                    "summaries": [each.name for each in graph.get_collection("summaries")],
                    "operations": [
                        op.name for op in graph.get_operations() if op.name.endswith("truediv")
                    ],
                }
    return found
