"""`keras.preprocessing`: what only TensorFlow 1 programs use."""
