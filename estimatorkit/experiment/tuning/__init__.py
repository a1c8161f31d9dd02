"""Hyperparameter search: spaces, studies of Optuna, trials of experiments."""
