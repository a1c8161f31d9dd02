"""The part of `layers.feature_column` that only TensorFlow 1 programs use."""
