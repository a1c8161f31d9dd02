from estimatorkit.ops.math.random import (
    multinomial as multinomial, random_normal, random_shuffle, truncated_normal as truncated_normal,
    random_uniform,
)
from estimatorkit.ops.array.random_draws import (
    categorical as categorical, random_gamma, random_poisson,
)
from estimatorkit.core.graph import set_random_seed as set_random_seed
from estimatorkit.compat.names.random import *

normal = random_normal
shuffle = random_shuffle
uniform = random_uniform
gamma = random_gamma
poisson = random_poisson
set_seed = set_random_seed
