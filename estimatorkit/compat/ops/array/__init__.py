"""`ops.array`: what only TensorFlow 1 programs use."""
