"""The part of `ops.linalg` that only TensorFlow 1 programs use."""
