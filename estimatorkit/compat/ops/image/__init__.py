"""`ops.image`: what only TensorFlow 1 programs use."""
