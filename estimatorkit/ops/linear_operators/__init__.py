"""Linear operators: matrices known by what they do, `tf.linalg.LinearOperator` and its kinds."""

from estimatorkit.ops.linear_operators import related as related
