"""Saving and restoring: checkpoints, SavedModels, meta graphs and warm starts."""
