"""`tf.random`: random numbers."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"

_PLACES = {
    **names(
        f"{_OPS}.math.random",
        "multinomial=multinomial normal=random_normal shuffle=random_shuffle",
        "truncated_normal=truncated_normal uniform=random_uniform",
    ),
    **names(
        f"{_OPS}.array.random_draws",
        "categorical=categorical gamma=random_gamma poisson=random_poisson",
    ),
    **names(
        f"{_OPS}.array.stateless_random",
        "stateless_binomial stateless_categorical stateless_gamma stateless_multinomial",
        "stateless_normal stateless_parameterized_truncated_normal stateless_poisson",
        "stateless_truncated_normal stateless_uniform fold_in=stateless_fold_in",
        "split=stateless_split",
    ),
    **names(
        f"{_OPS}.nn.candidates",
        "all_candidate_sampler fixed_unigram_candidate_sampler log_uniform_candidate_sampler",
        "uniform_candidate_sampler",
    ),
    **names(f"{_OPS}.nn.learned_candidates", "learned_unigram_candidate_sampler"),
    **names("estimatorkit.core.graph", "set_random_seed=set_random_seed set_seed=set_random_seed"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
