"""Estimators: `Estimator`, what a `model_fn` returns, how a run is configured."""
