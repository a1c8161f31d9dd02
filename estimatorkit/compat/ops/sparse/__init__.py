"""The part of `ops.sparse` that only TensorFlow 1 programs use."""
