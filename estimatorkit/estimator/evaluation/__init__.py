"""Evaluation, on its own and during training."""
