"""Savers, object checkpoints, meta graphs and SavedModels."""
