"""`ops.nn`: what only TensorFlow 1 programs use."""
