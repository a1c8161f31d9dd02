"""The part of `ops.text` that only TensorFlow 1 programs use."""
