"""Estimators (`tf.estimator`): `Estimator`, the premade ones, `EstimatorSpec` and `RunConfig`."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = {
    "export": "estimatorkit.estimator.export",
    "inputs": "estimatorkit.data.inputs",
    **names("estimatorkit.estimator.estimator", "Estimator"),
    **names("estimatorkit.estimator.spec", "EstimatorSpec", "ModeKeys"),
    **names("estimatorkit.estimator.run_config", "RunConfig"),
    **names("estimatorkit.premade.dnn", "DNNClassifier", "DNNRegressor"),
    **names("estimatorkit.premade.linear", "LinearClassifier", "LinearRegressor"),
    **names("estimatorkit.premade.baseline", "BaselineClassifier", "BaselineRegressor"),
    **names("estimatorkit.premade.classification_heads", "BinaryClassHead", "MultiClassHead"),
    **names("estimatorkit.premade.regression_head", "RegressionHead"),
    **names(
        "estimatorkit.layers.feature_column",
        *("classifier_parse_example_spec", "regressor_parse_example_spec"),
    ),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
