"""Layers, feature columns, losses and metrics."""
