"""`layers.losses`: what only TensorFlow 1 programs use."""
