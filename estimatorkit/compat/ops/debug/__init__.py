"""`ops.debug`: what only TensorFlow 1 programs use."""
