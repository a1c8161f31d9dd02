"""`tf.contrib`, a module each."""
