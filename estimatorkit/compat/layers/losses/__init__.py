"""The part of `layers.losses` that only TensorFlow 1 programs use."""
