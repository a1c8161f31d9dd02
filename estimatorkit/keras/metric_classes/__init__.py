"""The metrics of `tf.keras.metrics`."""
