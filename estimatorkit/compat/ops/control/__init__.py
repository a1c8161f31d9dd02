"""`ops.control`: what only TensorFlow 1 programs use."""
