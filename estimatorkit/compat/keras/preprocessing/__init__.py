"""The part of `keras.preprocessing` that only TensorFlow 1 programs use."""
