"""Linear operators: matrices known by what they do, `tf.linalg.LinearOperator` and its kinds."""

from estimatorkit.core.linear_operators import related as related
