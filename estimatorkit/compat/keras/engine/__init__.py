"""The part of `keras.engine` that only TensorFlow 1 programs use."""
