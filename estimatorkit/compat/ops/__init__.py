"""The part of `ops` that only TensorFlow 1 programs use."""
