"""TensorFlow's private modules that programs import."""
