"""The part of `ops.array` that only TensorFlow 1 programs use."""
