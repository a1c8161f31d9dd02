"""The part of `keras.wrappers` that only TensorFlow 1 programs use."""
