"""`keras.engine`: what only TensorFlow 1 programs use."""
