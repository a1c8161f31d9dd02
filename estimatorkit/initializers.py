"""`tf.initializers`: what makes the first values of variables, and what runs it."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.ops.variables.initializers",
        "Constant GlorotNormal GlorotUniform Identity Initializer Ones Orthogonal RandomNormal",
        "RandomUniform TruncatedNormal UniformUnitScaling VarianceScaling Zeros he_normal",
        "he_uniform lecun_normal lecun_uniform constant=Constant glorot_normal=GlorotNormal",
        "glorot_uniform=GlorotUniform identity=Identity ones=Ones orthogonal=Orthogonal",
        "random_normal=RandomNormal random_uniform=RandomUniform truncated_normal=TruncatedNormal",
        "uniform_unit_scaling=UniformUnitScaling variance_scaling=VarianceScaling zeros=Zeros",
    ),
    **names(
        "estimatorkit.ops.variables.variable_collections",
        "tables_initializer global_variables=global_variables_initializer",
        "local_variables=local_variables_initializer variables=variables_initializer",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
