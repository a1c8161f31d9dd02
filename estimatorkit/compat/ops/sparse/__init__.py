"""`ops.sparse`: what only TensorFlow 1 programs use."""
