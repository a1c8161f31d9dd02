"""The part of `ops.control` that only TensorFlow 1 programs use."""
