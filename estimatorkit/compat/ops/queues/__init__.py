"""The part of `ops.queues` that only TensorFlow 1 programs use."""
