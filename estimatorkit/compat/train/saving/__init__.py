"""`train.saving`: what only TensorFlow 1 programs use."""
