"""`tf.contrib`, one module per sub-package."""
