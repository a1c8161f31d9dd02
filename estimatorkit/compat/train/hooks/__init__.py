"""The part of `train.hooks` that only TensorFlow 1 programs use."""
