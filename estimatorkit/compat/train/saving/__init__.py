"""The part of `train.saving` that only TensorFlow 1 programs use."""
