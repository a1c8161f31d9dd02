"""The part of `ops.image` that only TensorFlow 1 programs use."""
