"""Keras-style models: structure, training, saving."""
