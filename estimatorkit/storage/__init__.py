"""Files: file systems, records, checkpoints, TensorFlow's checkpoints."""
