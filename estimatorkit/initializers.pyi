from estimatorkit.ops.variables.initializers import (
    Constant as Constant, GlorotNormal as GlorotNormal, GlorotUniform as GlorotUniform,
    he_normal as he_normal, he_uniform as he_uniform, Identity as Identity,
    Initializer as Initializer, lecun_normal as lecun_normal, lecun_uniform as lecun_uniform,
    Ones as Ones, Orthogonal as Orthogonal, RandomNormal as RandomNormal,
    RandomUniform as RandomUniform, TruncatedNormal as TruncatedNormal,
    UniformUnitScaling as UniformUnitScaling, VarianceScaling as VarianceScaling, Zeros as Zeros,
)
from estimatorkit.ops.variables.variable_collections import (
    global_variables_initializer, local_variables_initializer,
    tables_initializer as tables_initializer, variables_initializer,
)

constant = Constant
glorot_normal = GlorotNormal
glorot_uniform = GlorotUniform
identity = Identity
ones = Ones
orthogonal = Orthogonal
random_normal = RandomNormal
random_uniform = RandomUniform
truncated_normal = TruncatedNormal
uniform_unit_scaling = UniformUnitScaling
variance_scaling = VarianceScaling
zeros = Zeros
global_variables = global_variables_initializer
local_variables = local_variables_initializer
variables = variables_initializer
