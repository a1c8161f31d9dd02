"""Monotonic attention (Raffel et al. 2017): attention never moves backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.compat.layers.seq2seq.attention import (
    BahdanauScore,
    BaseAttentionMechanism,
    LuongScore,
    own_layer,
)
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import name_scope
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.steps import size_of
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.control.higher_order import scan
from estimatorkit.ops.math import elementwise, random, reduce
from estimatorkit.ops.math.special import cumprod
from estimatorkit.ops.variables.initializers import Constant
from estimatorkit.ops.variables.variable_scope import get_variable


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Cumulative product of numbers in [0, 1], computed as a sum of logarithms.

    Args:
        x: a floating tensor; it is clipped to [smallest positive number, 1].
        args, kwargs: as of `cumsum`.
    """
    with name_scope(None, "SafeCumprod", [x]):
        values = convert_to_tensor(x, name="x")
        tiny = float(np.finfo(values.dtype.numpy_dtype).tiny)
        logarithms = elementwise.log(elementwise.clip_by_value(values, tiny, 1.0))
        return elementwise.exp(reduce.cumsum(logarithms, *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """The probabilities to attend at each place.

    Args:
        p_choose_i: `(batch, places)`: the probability to stop at a place that is reached.
        previous_attention: `(batch, places)`: where the step before attended.
        mode: 'recursive' (exact), 'parallel' (faster, by a cumulative product; exact unless
            probabilities are close to 1) or 'hard' (`p_choose_i` is 0 or 1).

    Returns:
        `(batch, places)`.

    Raises:
        ValueError: `mode` is none of these.
    """
    choose = convert_to_tensor(p_choose_i, name="p_choose_i")
    previous = convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        batch = size_of(choose, 0)
        ones = filling.ones([batch, 1], choose.dtype)
        passed = joining.concat([ones, 1 - choose[:, :-1]], 1)
        reached = scan(
            lambda before, row: array.reshape(row[0] * before + row[1], [batch]),
            [array.transpose(passed), array.transpose(previous)],
            filling.zeros([batch], choose.dtype),
        )
        return choose * array.transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - choose, axis=1, exclusive=True)
        shares = previous / elementwise.clip_by_value(passed, 1e-10, 1.0)
        return choose * passed * reduce.cumsum(shares, axis=1)
    if mode == "hard":
        choose = choose * reduce.cumsum(previous, axis=1)
        return choose * cumprod(1 - choose, axis=1, exclusive=True)
    raise value_error("mode must be 'recursive', 'parallel', or 'hard'.", received=repr(mode))


def monotonic_probability_fn(
    score: Any,
    previous_alignments: Any,
    sigmoid_noise: float,
    mode: str,
    seed: int | None = None,
) -> Tensor:
    """`monotonic_attention` with probabilities sigmoid(score).

    Args:
        score: `(batch, places)`.
        previous_alignments: `(batch, places)`.
        sigmoid_noise: the standard deviation of noise added to the scores; it pushes them away from
            0 in training.
        mode: see `monotonic_attention`; with 'hard', places of positive score are chosen.
        seed: of the noise.
    """
    score = convert_to_tensor(score)
    if sigmoid_noise > 0:
        noise = random.random_normal(array.shape(score), dtype=score.dtype, seed=seed)
        score = score + sigmoid_noise * noise
    if mode == "hard":
        choose = elementwise.cast(elementwise.greater(score, 0), score.dtype)
    else:
        choose = elementwise.sigmoid(score)
    return monotonic_attention(choose, previous_alignments, mode)


class _Monotonic(BaseAttentionMechanism):
    """A mechanism that starts at the first place, with a bias on its scores."""

    _score_bias_init: float

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """One-hot at the first place."""
        first = filling.zeros([batch_size], "int32")
        return indexing.one_hot(first, self._alignments_size, dtype=dtype)

    def _score(self, query: Any) -> Tensor:
        score: Tensor = super()._score(query)  # type: ignore[misc]
        start = Constant(self._score_bias_init)
        return score + get_variable("attention_score_bias", (), query.dtype, initializer=start)


class LuongMonotonicAttention(_Monotonic, LuongScore):
    """Monotonic attention with the scores of `LuongAttention`.

    Args:
        num_units, memory, memory_sequence_length, scale, score_mask_value, dtype, name: see
            `LuongAttention`.
        sigmoid_noise, sigmoid_noise_seed, mode: see `monotonic_probability_fn`.
        score_bias_init: with what the scores' bias starts; negative numbers attend later.
    """

    _scope = "luong_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            None,
            memory,
            _probability(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length,
            own_layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._scale = scale
        self._score_bias_init = score_bias_init


class BahdanauMonotonicAttention(_Monotonic, BahdanauScore):
    """Monotonic attention with the scores of `BahdanauAttention`.

    Args:
        num_units, memory, memory_sequence_length, normalize, score_mask_value, dtype, name: see
            `BahdanauAttention`.
        sigmoid_noise, sigmoid_noise_seed, mode: see `monotonic_probability_fn`.
        score_bias_init: with what the scores' bias starts; negative numbers attend later.
    """

    _scope = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        super().__init__(
            own_layer(num_units, "query_layer", dtype),
            memory,
            _probability(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length,
            own_layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._score_bias_init = score_bias_init


def _probability(noise: float, mode: str, seed: int | None) -> Callable[[Any, Any], Tensor]:
    return functools.partial(monotonic_probability_fn, sigmoid_noise=noise, mode=mode, seed=seed)


__all__ = [
    "BahdanauMonotonicAttention",
    "LuongMonotonicAttention",
    "monotonic_attention",
    "monotonic_probability_fn",
    "safe_cumprod",
]
__dir__ = listing(__name__)
