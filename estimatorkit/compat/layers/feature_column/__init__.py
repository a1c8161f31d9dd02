"""`layers.feature_column`: what only TensorFlow 1 programs use."""
