"""`ops.tables`: what only TensorFlow 1 programs use."""
