"""`ops.variables`: what only TensorFlow 1 programs use."""
