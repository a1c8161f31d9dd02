"""`train.hooks`: what only TensorFlow 1 programs use."""
