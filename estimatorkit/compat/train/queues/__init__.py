"""The part of `train.queues` that only TensorFlow 1 programs use."""
