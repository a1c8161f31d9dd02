"""`train.sessions`: what only TensorFlow 1 programs use."""
