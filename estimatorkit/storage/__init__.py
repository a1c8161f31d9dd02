"""Storage: file systems, TFRecords, checkpoints and TensorFlow's checkpoint formats."""
