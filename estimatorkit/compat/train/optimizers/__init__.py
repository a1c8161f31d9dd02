"""The part of `train.optimizers` that only TensorFlow 1 programs use."""
