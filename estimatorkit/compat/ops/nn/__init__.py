"""The part of `ops.nn` that only TensorFlow 1 programs use."""
