"""The part of `keras` that only TensorFlow 1 programs use."""
