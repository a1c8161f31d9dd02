"""`tf.linalg.LinearOperator` and its subclasses: matrices defined by their products."""

from estimatorkit.ops.linear_operators import related as related
