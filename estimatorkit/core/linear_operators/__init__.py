"""Linear operators: matrices known by what they do, `tf.linalg.LinearOperator` and its kinds."""
