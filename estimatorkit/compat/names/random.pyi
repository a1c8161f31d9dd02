from estimatorkit.compat.ops.array.stateless_random import (
    stateless_fold_in, stateless_split, stateless_binomial as stateless_binomial,
    stateless_categorical as stateless_categorical, stateless_gamma as stateless_gamma,
    stateless_multinomial as stateless_multinomial, stateless_normal as stateless_normal,
    stateless_parameterized_truncated_normal as stateless_parameterized_truncated_normal,
    stateless_poisson as stateless_poisson,
    stateless_truncated_normal as stateless_truncated_normal,
    stateless_uniform as stateless_uniform,
)
from estimatorkit.compat.ops.nn.candidates import (
    all_candidate_sampler as all_candidate_sampler,
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    uniform_candidate_sampler as uniform_candidate_sampler,
)
fold_in = stateless_fold_in
split = stateless_split
