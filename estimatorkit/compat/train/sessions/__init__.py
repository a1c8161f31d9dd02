"""The part of `train.sessions` that only TensorFlow 1 programs use."""
