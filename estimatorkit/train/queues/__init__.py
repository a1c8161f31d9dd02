"""TensorFlow 1's input pipelines: queues filled by threads."""
