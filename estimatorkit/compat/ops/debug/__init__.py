"""The part of `ops.debug` that only TensorFlow 1 programs use."""
