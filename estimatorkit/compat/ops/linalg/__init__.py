"""`ops.linalg`: what only TensorFlow 1 programs use."""
