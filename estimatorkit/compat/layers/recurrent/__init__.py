"""The part of `layers.recurrent` that only TensorFlow 1 programs use."""
