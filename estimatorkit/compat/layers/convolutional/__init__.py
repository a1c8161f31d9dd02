"""The part of `layers.convolutional` that only TensorFlow 1 programs use."""
