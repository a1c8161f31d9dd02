"""The part of `ops.tables` that only TensorFlow 1 programs use."""
