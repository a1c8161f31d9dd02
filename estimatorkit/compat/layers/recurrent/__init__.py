"""`layers.recurrent`: what only TensorFlow 1 programs use."""
