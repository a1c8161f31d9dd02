"""`ops.text`: what only TensorFlow 1 programs use."""
