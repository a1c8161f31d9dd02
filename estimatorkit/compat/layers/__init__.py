"""The part of `layers` that only TensorFlow 1 programs use."""
