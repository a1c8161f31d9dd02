"""`train.optimizers`: what only TensorFlow 1 programs use."""
