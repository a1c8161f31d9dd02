"""`keras.wrappers`: what only TensorFlow 1 programs use."""
