"""The part of `train` that only TensorFlow 1 programs use."""
