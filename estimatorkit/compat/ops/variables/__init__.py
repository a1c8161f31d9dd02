"""The part of `ops.variables` that only TensorFlow 1 programs use."""
